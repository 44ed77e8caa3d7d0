"""Choosing a checkpoint: a shipped one, one of a run, or a file of the visitor."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from math import prod
from weakref import WeakValueDictionary

import streamlit as st

from densembed.cache import drop
from densembed.data import DATASETS, is_available
from densembed.runs import gallery
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError, Header
from pages.widgets.common.callbacks import callback
from pages.widgets.common.link import notice, plain
from pages.widgets.common.uploaded import uploaded_files

OWN = "upload-"
"""Prefix of the key of an uploaded file, by which links to such files are recognised."""
BRING = "Upload a model"
KEPT = "Your file, which is deleted when this session ends. Links to it work only in this tab."
DELETED = "This model was deleted."
MAX_BYTES = 5 * 2**20
MAX_KEPT = 4
"""As many as Compare can show."""
MAX_VALUES = 2**20
"""Limit on snapshots × values of an input, so that a file cannot exhaust the memory."""
Link = dict[str, str]
Follow = Callable[[Callable[[Link], Link]], None]


@dataclass(frozen=True)
class Upload:
    """An uploaded file, kept in memory for this session only."""

    checkpoint: Checkpoint
    data: bytes
    name: str

    @property
    def title(self) -> str:
        return f"{gallery.one_line(self.checkpoint.header)} · your file {self.name}"


_uploads: WeakValueDictionary[str, Upload] = WeakValueDictionary()
"""The files of all sessions."""


def uploads() -> dict[str, Upload]:
    return st.session_state.setdefault("uploads", {})


@st.cache_resource(scope="session", on_release=drop, show_spinner=False)
def _shown() -> set[str]:
    """Digests of the visitor's files that were shown.

    Streamlit gives this up when the tab is closed or has lost its connection, and with it what was
    computed of these files. It is computed again for a tab that comes back.
    """
    return set()


def titles(also: Iterable[str] = ()) -> dict[str, str]:
    """The titles of all readable checkpoints by key, uploaded files first.

    Members of sweeps are left out, except those with a key in `also`.
    """
    by_key = {key: upload.title for key, upload in reversed(uploads().items())}
    entries = {entry.key: entry for entry in gallery.entries()}
    for key in also:
        if key not in by_key | entries and (member := gallery.find(key)):
            entries[key] = member
    for entry in entries.values():
        try:
            by_key[entry.key] = entry.title
        except CheckpointError:
            continue  # a file that is being deleted, or that is no checkpoint
    several = Counter(by_key.values())
    return {
        key: title if several[title] == 1 else f"{title} · {key}" for key, title in by_key.items()
    }


def first_choice(options: Collection[str]) -> str:
    """The file uploaded last, else the usual choice."""
    return next((key for key in reversed(uploads()) if key in options), usual_choice(options))


def usual_choice(options: Collection[str]) -> str:
    """The model with a micro network for the available data."""
    mnn = "logistic-el-mnn-10-5"
    wanted = [mnn] if is_available("mnist") else [f"{mnn}-digits", mnn]
    return next((key for key in wanted if key in options), next(iter(options)))


PARTNERS = ("logistic-el-15", "logistic-el-mnn-6-3", "logistic-el-5", "logistic-el-mnn-10-5")
"""Included models to compare with, best first: fixed and moving densities, many and few."""


def partners(first: str, options: Collection[str]) -> list[str]:
    """The other models in the order in which they suit a comparison with the first.

    Those that take the same inputs, then those of the same data; for a model of a run, the other
    runs before the included models. A model of signals has no partner that takes images.
    """
    others = [key for key in options if key != first]
    if not (own := header_of(first)):
        return others
    others = [key for key in others if takes_signals(key) == takes_signals(first)]

    def rank(key: str) -> tuple:
        if not (header := header_of(key)):
            return (3,)
        place = key.removesuffix("-digits")
        is_own = gallery.is_own(key)
        return (
            header.input_shape != own.input_shape,
            header.config.dataset != own.config.dataset,
            not (is_own and gallery.is_own(first)),
            PARTNERS.index(place) if place in PARTNERS else len(PARTNERS),
        )

    return sorted(others, key=rank)


def takes_signals(key: str) -> bool:
    """Whether a model, by its key as in `titles`, takes signals."""
    header = header_of(key)
    return header is not None and header.scaling is not None


def header_of(key: str) -> Header | None:
    if upload := uploads().get(key):
        return upload.checkpoint.header
    try:
        entry = gallery.find(key)
        return entry.header if entry else None
    except CheckpointError:
        return None


def group_of(key: str) -> str:
    """The heading of the models among which a list shows this one."""
    if key in uploads():
        return "Your files"
    return "Your runs" if gallery.is_own(key) else "Included models"


def opened(key: str) -> Checkpoint:
    """The checkpoint with a key as in `titles`. Raises CheckpointError if there is none."""
    if upload := uploads().get(key):
        _shown().add(upload.checkpoint.digest)
        return upload.checkpoint
    return opened_in_gallery(key)


def opened_in_gallery(key: str) -> Checkpoint:
    if entry := gallery.find(key):
        return entry.open()
    raise CheckpointError(DELETED)


def opened_anywhere(key: str) -> Checkpoint:
    """As `opened`, for a request that belongs to no session. An uploaded file has a key that only
    those know who have the file."""
    upload = _uploads.get(key)
    return upload.checkpoint if upload else opened_in_gallery(key)


def file_of(key: str) -> Callable[[], bytes]:
    """A function that reads the file of a key of `titles`, also in a thread without session."""
    if key in uploads():
        data = uploads()[key].data
        return lambda: data
    return gallery.find(key).path.read_bytes


def require_models() -> dict[str, str]:
    """The `titles` of all checkpoints by key; stops the page without any."""
    options = titles()
    if not options:
        st.info("There is no trained model yet. Training one takes a few seconds.")
        st.page_link("pages/train.py", label="Train a model")
        st.stop()
    return options


def upload_model(key: str, shown: str, follow: Follow) -> None:
    """A field, opened by a button, to upload a checkpoint, which the view then shows.

    It is not a popover: a click beside one closes it, and so ends an upload in progress.

    Args:
        key: the parameter that names the model in the link.
        shown: the key of the model that is shown.
        follow: makes the view follow the link, after a function has changed its parameters.
    """
    with (
        st.container(key=f"bring-{key}"),
        st.expander(BRING, icon=":material/upload_file:", key=f"brought-{key}"),
    ):
        if not st.session_state.get(f"file-{key}"):  # new, or without files
            st.session_state[f"file-{key}-brought"] = {}
        st.file_uploader(
            "Checkpoints of densembed",
            accept_multiple_files=True,
            key=f"file-{key}",
            on_change=callback(_take, key, follow),
            help=f"Files (.safetensors) written by densembed, up to {MAX_BYTES >> 20} MiB each. "
            f"The last {MAX_KEPT} are kept in memory for this session only, and never executed.",
        )
        if shown in uploads():
            st.caption(KEPT)
            if shown not in st.session_state[f"file-{key}-brought"].values():
                # Uploaded on another page, so this uploader has no × for it.
                st.button(
                    "Remove this file",
                    key=f"remove-{key}",
                    on_click=callback(forget, shown, follow),
                )
    if st.session_state["arrived"]:
        st.session_state.pop(f"file-{key}-remarks", None)
    if remarks := st.session_state.get(f"file-{key}-remarks"):
        st.error(plain(remarks))


def is_deleted_upload(key: str) -> bool:
    """Whether a key is that of an uploaded file that this session does not have."""
    return key.startswith(OWN) and key not in uploads()


def report_deleted_uploads(names: Iterable[str]) -> None:
    """Report and remove links to uploaded files that this session does not have.

    Args:
        names: the parameters that name models.
    """
    links = {name: st.query_params.get(name, "") for name in names}
    gone = [name for name, key in links.items() if is_deleted_upload(key)]
    if gone:
        notice(
            "This link points to an uploaded model, which is kept only in the tab in which it was "
            "uploaded, until that tab is closed or reloaded. Upload the file here to see it."
        )
    for name in gone:
        del st.query_params[name]


def _take(key: str, follow: Follow) -> None:
    """Keep the files that were just uploaded and show the last; drop those that were removed."""
    files = {file.file_id: file for file in uploaded_files(f"file-{key}")}
    brought: dict[str, str] = st.session_state[f"file-{key}-brought"]
    taken = {name: own for name, own in brought.items() if name in files}
    for own in set(brought.values()) - set(taken.values()):
        forget(own, follow)
    remarks = []
    for name, file in files.items():
        if name in taken:
            continue
        taken[name] = ""  # if it is refused
        try:
            taken[name] = own = keep(file.getvalue(), file.name)
        except CheckpointError as error:
            remarks.append(f"“{_shown_name(file.name)}”: {error}" if len(files) > 1 else str(error))
        else:
            follow(lambda link, own=own: link | {key: own})
    for name, own in taken.items():  # of files with one content, one may have been removed
        if own in uploads():
            named = replace(uploads()[own], name=_shown_name(files[name].name))
            uploads()[own] = _uploads[own] = named
    while len(uploads()) > MAX_KEPT:
        own, upload = next(iter(uploads().items()))
        remarks.append(f"Only {MAX_KEPT} files are kept, so “{upload.name}” was removed.")
        forget(own, follow)
    st.session_state[f"file-{key}-remarks"] = " ".join(remarks)
    st.session_state[f"file-{key}-brought"] = taken  # last: until then all of it may begin again


def forget(brought: str, follow: Follow) -> None:
    """Remove an uploaded file from the lists, and from the page's link."""
    _remove(brought)
    follow(lambda link: {name: value for name, value in link.items() if value != brought})


def _remove(key: str) -> None:
    if upload := uploads().pop(key, None):
        drop([upload.checkpoint.digest])


def keep(data: bytes, name: str) -> str:
    """Keep a file for this session; returns its key. Raises CheckpointError with one sentence."""
    if len(data) > MAX_BYTES:
        raise CheckpointError(
            f"The file is {len(data) / 2**20:,.1f} MiB, more than the {MAX_BYTES >> 20} MiB that "
            "are allowed. Choose a smaller file."
        )
    checkpoint = Checkpoint.from_bytes(data)
    if len(checkpoint.steps) * prod(checkpoint.header.input_shape) > MAX_VALUES:
        raise CheckpointError(
            "The file has more snapshots than these pages can draw for inputs of its size."
        )
    kept, key = uploads(), OWN + checkpoint.digest[:12]
    kept.pop(key, None)
    if checkpoint.config.dataset not in DATASETS:
        # An untrusted file must not select a folder of this machine.
        checkpoint = checkpoint.without_data()
    kept[key] = _uploads[key] = Upload(checkpoint, data, _shown_name(name))
    return key


def _shown_name(name: str) -> str:
    return printable(name.removesuffix(".safetensors"))[:40]
