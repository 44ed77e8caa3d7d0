"""The button that downloads the test images of a model, and the download itself."""

import threading
from collections.abc import Callable

import streamlit as st

from densembed.data import DATASETS, DataError, is_available, load_dataset, title
from densembed.data.download import Cancelled, watching
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.callbacks import callback, run_callbacks
from pages.widgets.common.link import plain

LOOK_EVERY = 0.5
AWAITED = "awaited-images"
"""In the session: the data set whose download the page has shown."""


class Download:
    """A download of a data set in a thread of the server, which outlasts the runs of a page."""

    def __init__(self, name: str):
        self.name = name
        self.received = self.size = 0
        self.error = ""
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._load, daemon=True)
        self.thread.start()

    def _load(self) -> None:
        try:
            with watching(self.stopped.is_set, self._note):
                load_dataset(self.name)
        except Cancelled:
            return
        except DataError as error:
            self.error = str(error)

    def _note(self, received: int, size: int) -> None:
        self.received, self.size = received, size


_downloads: dict[str, Download] = {}
"""The last one of each data set, which all tabs follow."""


def download_progress(name: str, received: int, size: int) -> tuple[float, str]:
    """Share and text of a progress bar for the download of a data set, in bytes.

    Args:
        size: 0 if the server did not say how much it sends.
    """
    of = f" of {size / 1e6:,.1f}" if size else ""
    line = f"downloading {plain(title(name))} · {received / 1e6:,.1f}{of} MB"
    return (min(1.0, received / size) if size else 0.0), line


def offer_download(checkpoint: Checkpoint, follow: Callable[[], None]) -> None:
    """A button that downloads the test images of a model, if they are not available.

    Args:
        follow: makes the view read the test images again.
    """
    name = checkpoint.config.dataset
    if name not in DATASETS:
        return
    if st.session_state["arrived"]:
        st.session_state.pop(AWAITED, None)
    download = _downloads.get(name)
    if download and download.thread.is_alive():
        st.session_state[AWAITED] = name
        st.fragment(_progress, run_every=LOOK_EVERY)(download)
        return
    if is_available(name):
        if st.session_state.get(AWAITED) == name:
            follow()
            del st.session_state[AWAITED]
            st.rerun()
        return
    st.button(
        f"Download the test images of {DATASETS[name].title}",
        help=f"Downloads the data set once, {DATASETS[name].download_size}.",
        on_click=callback(_begin, name, anywhere=True),
    )
    if download and download.error and st.session_state.get(AWAITED) == name:
        st.warning(plain(download.error))


def _begin(name: str) -> None:
    st.session_state[AWAITED] = name
    if not (name in _downloads and _downloads[name].thread.is_alive()):
        _downloads[name] = Download(name)


def _progress(download: Download) -> None:
    run_callbacks()
    if not download.thread.is_alive():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(*download_progress(download.name, download.received, download.size))
        st.button(
            "Stop the download",
            key="stop-download",
            on_click=callback(download.stopped.set, anywhere=True),
        )
