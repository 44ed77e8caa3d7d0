"""Choosing a checkpoint: one that ships, one of a run, or a file of the visitor's own."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod

import streamlit as st

from densembed.data import DATASETS, is_available
from densembed.runs import gallery
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint, CheckpointError, error_text
from pages.widgets.common.link import notice, plain
from pages.widgets.common.parameter import Choice, Parameter, requested

OWN = "upload-"
"""How the key of an uploaded file begins: in a link it tells what the file was."""
BRING = "Bring a model of your own"
KEPT = "Your file, kept for this session: a link to it says elsewhere that it is gone."
ELSEWHERE = "elsewhere"
MAX_BYTES = 5 * 2**20
MAX_KEPT = 3
MAX_VALUES = 2**20
"""Snapshots × values of an input that a page draws: beyond it a file only exhausts the memory."""


@dataclass(frozen=True)
class Upload:
    """A file that a visitor brought: kept in memory, for this session only."""

    checkpoint: Checkpoint
    data: bytes
    name: str

    @property
    def title(self) -> str:
        return f"{gallery.one_line(self.checkpoint.header)} · your file {self.name}"


def uploads() -> dict[str, Upload]:
    return st.session_state.setdefault("uploads", {})


def titles(also: str = "") -> dict[str, str]:
    """Every checkpoint that opens, by its key: a line for each, the visitor's own first.

    Of the members of sweeps only the one of key `also`: they would flood a list.
    """
    found = {key: upload.title for key, upload in reversed(uploads().items())}
    entries = {entry.key: entry for entry in gallery.entries()}
    if also not in found | entries and (member := gallery.find(also)):
        entries[also] = member
    for entry in entries.values():
        try:
            found[entry.key] = entry.title
        except CheckpointError:
            continue  # a run's file that is just being removed, or a stranger's file in the folder
    several = Counter(found.values())
    return {
        key: title if several[title] == 1 else f"{title} · {key}" for key, title in found.items()
    }


def first_choice(options: Collection[str]) -> str:
    """The visitor's last file, else the mNN of the best data that is here."""
    mnn = "logistic-el-mnn-10-5"
    wanted = [mnn] if is_available("mnist") else [f"{mnn}-digits", mnn]
    wanted = [*reversed(uploads()), *wanted]
    return next((key for key in wanted if key in options), next(iter(options)))


def opened(key: str) -> Checkpoint:
    """The checkpoint of a key among `titles`."""
    return uploads()[key].checkpoint if key in uploads() else gallery.find(key).open()


def file_of(key: str) -> Callable[[], bytes]:
    """What reads the file of a key among `titles`: later, in a thread that knows no session."""
    if key in uploads():
        data = uploads()[key].data
        return lambda: data
    return gallery.find(key).path.read_bytes


def pick_checkpoint(
    label: str, key: str, default: str | None = None, story: bool = True
) -> Checkpoint:
    """A select box over all checkpoints, and a way to bring one; ends the script with none.

    Args:
        story: whether a shipped model is introduced by a sentence.
    """
    options = titles(requested(key))
    if not options:
        st.info("There is no trained model yet. Train one: it takes some seconds.")
        st.page_link("pages/train.py", label="Train a model")
        st.stop()
    if default not in options:
        default = first_choice(options)
    _name_gone_upload(key, default, options)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = Parameter(key, label, Choice(options), default, always=True).draw(
            st.selectbox, persist_state="session"
        )
        with (
            st.container(key=f"bring-{key}", width="content"),
            st.popover(BRING, icon=":material/upload_file:", help=BRING),
        ):
            st.file_uploader(
                "A densembed checkpoint", key=f"file-{key}",
                on_change=_take, args=(key,),
                help="A .safetensors file that densembed wrote, up to 5 MB. It is read in memory, "
                "kept for this session alone, and never executed.",
            )  # fmt: skip
            if chosen in uploads() and not st.session_state.get(f"file-{key}"):
                # It was brought on another page, or in another column: no × removes it here.
                st.button("Remove this file", key=f"remove-{key}", on_click=forget, args=(chosen,))
    if complaint := st.session_state.pop(f"file-{key}-refused", None):
        st.error(plain(complaint))
    try:
        checkpoint = opened(chosen)
    except CheckpointError as error:  # damage that the list did not see
        st.error(plain(str(error)))
        st.stop()
    if chosen in uploads():
        st.caption(f"{_facts(checkpoint)} {KEPT}")
    elif story:
        st.caption(f"{_facts(checkpoint)} {gallery.STORIES.get(chosen, '')}")
    return checkpoint


def _facts(checkpoint: Checkpoint) -> str:
    """What the box has no room for on a phone."""
    header = checkpoint.header
    title, images = plain(header.provenance.dataset_title), header.provenance.test_images
    if header.errors:
        number = f"{images:,} test image{'' if images == 1 else 's'}"
        title = f"{error_text(header.errors)} error on {title} ({number})"
    return f"{title}, {checkpoint.parameters:,} parameters."


def _name_gone_upload(key: str, default: str, options: dict[str, str]) -> None:
    wanted = requested(key)
    if wanted.startswith(OWN) and wanted not in options and key not in st.session_state:
        notice(
            "The link shows a model that a visitor had uploaded. Such a file is kept for their "
            "session alone, so it is gone. Showing another one; with the file, upload it again."
        )
        st.query_params[key] = default


def _take(key: str) -> None:
    """Keep the file that was just brought, and choose it; or forget the one that was removed."""
    file, brought = st.session_state[f"file-{key}"], st.session_state.pop(f"file-{key}-brought", "")
    if file is None:
        forget(brought)
        return
    try:
        st.session_state[key] = st.session_state[f"file-{key}-brought"] = keep(
            file.getvalue(), file.name
        )
    except CheckpointError as error:
        st.session_state[f"file-{key}-refused"] = str(error)


def forget(brought: str) -> None:
    """Take a visitor's file off the lists, and out of the page's link where it is shown."""
    uploads().pop(brought, None)
    for key, value in list(st.query_params.items()):
        if value == brought:
            del st.query_params[key]
            st.session_state.pop(key, None)


def keep(data: bytes, name: str) -> str:
    """Keep a file for this session; its key. Raises CheckpointError with one sentence."""
    if len(data) > MAX_BYTES:
        raise CheckpointError(
            f"The file has {len(data) / 2**20:,.1f} MB, and a checkpoint has at most "
            f"{MAX_BYTES >> 20} MB here: choose a smaller one."
        )
    checkpoint = Checkpoint.from_bytes(data)
    if len(checkpoint.steps) * prod(checkpoint.header.input_shape) > MAX_VALUES:
        raise CheckpointError(
            "The file has more snapshots of larger pictures than these pages can draw: keep fewer."
        )
    kept, key = uploads(), OWN + checkpoint.digest[:12]
    kept.pop(key, None)
    if checkpoint.config.dataset not in DATASETS:
        # It may name a place on this machine: a stranger's file decides about none.
        config = checkpoint.config.model_copy(update={"dataset": ELSEWHERE})
        header = checkpoint.header.model_copy(update={"config": config})
        checkpoint = Checkpoint(header, checkpoint.tensors)
    kept[key] = Upload(checkpoint, data, printable(name.removesuffix(".safetensors"))[:40])
    while len(kept) > MAX_KEPT:
        del kept[next(iter(kept))]
    return key
