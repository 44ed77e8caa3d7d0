"""Pictures to train on: uploaded ones, or a folder on the server, with a preview of the classes."""

import base64
import contextlib
from html import escape
from math import ceil

import streamlit as st
import torch

from densembed.data import DataError, Dataset, default_data_dir, is_folder, load_dataset, upload
from densembed.data.codec import to_png
from densembed.data.folder import PREFIX as FOLDER
from densembed.data.folder import Folder
from densembed.data.images import MAX_BYTES
from densembed.markup import JOINER
from densembed.text import counted
from densembed.training.config import RunConfig
from pages.widgets.common.callbacks import callback
from pages.widgets.common.link import plain
from pages.widgets.common.uploaded import uploaded_files

UPLOADED = "upload:"
"""The choice of uploaded pictures in a form, as `FOLDER` is that of a folder on the server."""
OWN = {UPLOADED: "Your pictures (zip or files)", FOLDER: "A folder on the server"}
UPLOADER = "new-uploader"
"""In the session: how often the form got other uploaded pictures than those in its uploader."""
SHAPES = {
    "": "Original size if all agree and have at most 64 × 64, otherwise 32 × 32",
    "1x28x28": "28 × 28, grey",
    "3x32x32": "32 × 32, colour",
    "3x48x48": "48 × 48, colour",
    "3x64x64": "64 × 64, colour",
}
LAYOUT = (
    "One subfolder per class, named after the class, with pictures of any size and format. Folders "
    "named train and test set the split; otherwise about a fifth of the pictures is used for "
    "testing, roughly a tenth to a third of each class."
)
PACKED = (
    "A zip archive with one folder per class, or pictures whose names begin with the class, such "
    "as cat-1.jpg. They are stored on this server for the training."
)
EPOCHS, STEPS = 20, 500
"""Suggested epochs for uploaded pictures: at least as many as give so many steps."""
SHOWN, CLASSES, PREVIEWS = 5, 12, 5
"""How many files that are left out, classes, and pictures per class are shown."""
SIGNALS = (
    "MNIST-1D contains signals; all other data sets contain images. For signals of your own in "
    "a CSV file, train on the command line: "
    "`python -m densembed train logistic-el-25 --dataset csv:signals.csv`."
)
"""Where a visitor looks for data with one axis."""
KEPT = {"persist_state": "session"}
"""Forms keep their values when the visitor opens another page."""
STYLE = """
<style>
.classes {display: grid; grid-template-columns: minmax(3em, max-content) 1fr; gap: 4px 10px;
  align-items: center; font-size: 0.9rem;}
.classes b {font-weight: 600; overflow-wrap: anywhere; max-width: 9em;}
.classes small {display: block; font-weight: 400; opacity: 0.75;}
.classes img {height: 36px; max-width: 100%; image-rendering: pixelated; border-radius: 4px;}
</style>
"""


def pick_pictures(source: str) -> str | None:
    """Widgets for the pictures and their size; the name of the data set, or None.

    Args:
        source: `UPLOADED` or `FOLDER`.
    """
    if source == UPLOADED:
        path = _pick_upload()
    else:
        path = st.text_input(
            "Folder on the server",
            key="new-folder",
            **KEPT,
            placeholder="/home/me/photos",
            help=LAYOUT,
        )
        # A path that was copied from a message of a page may contain some, and a name as on the
        # command line has a prefix.
        path = path.replace(JOINER, "").strip().removeprefix(FOLDER)
        if not path:
            st.caption(LAYOUT)
        elif not (name := _checked(FOLDER + path)):
            return None
        elif shape := _path_and_shape(name)[1]:
            st.caption(f"The path sets the size {shape}. To choose it here, leave out “@{shape}”.")
            return name
    shapes = list(SHAPES)
    if (own := st.session_state.get("new-shape", "")) not in SHAPES:
        shapes.append(own)  # of a duplicated run
    shape = st.selectbox(
        "Size",
        shapes,
        format_func=lambda shape: SHAPES.get(shape, shape),
        key="new-shape",
        **KEPT,
        help="Every picture is cropped at the centre to this shape, and resized.",
    )
    return Folder.named(path, shape) if path else None


def _checked(name: str) -> str:
    """The name of a folder, or "" after a sentence about the shape in it."""
    try:
        return Folder.parse(name, default_data_dir()).name
    except DataError as error:
        st.error(plain(str(error)))
        return ""


def _pick_upload() -> str:
    """Widgets to upload pictures; the path of the stored ones in the data folder, or ""."""
    state = st.session_state
    files = st.file_uploader(
        "Your pictures",
        key=_uploader(),
        accept_multiple_files=True,
        on_change=callback(_store),
        help=f"{PACKED} A picture may have up to {MAX_BYTES >> 20} MiB, an archive up to "
        f"{st.get_option('server.maxUploadSize')} MiB.",
    )
    if not (name := state.get("new-upload", "")):
        if complaint := state.get("new-complaint"):
            st.error(plain(complaint))
        else:
            st.caption(PACKED)
        return ""
    if not files and st.button("Remove the pictures", help="Choose others for the next training."):
        state.pop("new-upload")
        st.rerun()
    inverted = st.toggle(
        "Invert the pictures",
        key="new-inverted",
        **KEPT,
        help="Makes them light on dark, like MNIST’s digits and the drawings on Explore.",
    )
    if name in state.get("new-dark", ()):
        st.caption(
            "The pictures are dark on light"
            + (", so they are inverted." if inverted else ". MNIST’s digits are light on dark.")
        )
    if inverted:
        try:
            with st.spinner("Inverting the pictures …"):
                name = upload.inverted(name, default_data_dir())
        except DataError as error:
            st.error(plain(str(error)))
            return ""
    return name.removeprefix(FOLDER)


def _uploader() -> str:
    """The key of the uploader. Another key makes one without the files of before."""
    return f"new-files-{st.session_state.get(UPLOADER, 0)}"


def _store() -> None:
    """Store the pictures that were just chosen."""
    state = st.session_state
    for key in ("new-upload", "new-complaint", "new-dark", "new-left-out"):
        state.pop(key, None)
    if not (files := uploaded_files(_uploader())):
        return
    try:
        stored = upload.store([(file.name, file.getvalue()) for file in files], default_data_dir())
        dataset = load_dataset(stored.name)
    except DataError as error:
        state["new-complaint"] = str(error)
        return
    dark = upload.is_dark_on_light(dataset)
    state["new-upload"], state["new-inverted"] = stored.name, dark
    # By name, as the form may show another upload or a folder next.
    state["new-left-out"] = {stored.name: stored}
    state["new-dark"] = {stored.name} if dark else set()
    per_epoch = ceil(len(dataset.train) / RunConfig().batch_size)
    state[f"new-epochs-{UPLOADED}"] = max(EPOCHS, ceil(STEPS / per_epoch))


def source_of(dataset: str) -> str:
    """The choice in the form for a data set."""
    if not is_folder(dataset):
        return dataset
    return UPLOADED if upload.is_upload(_path_and_shape(dataset)[0]) else FOLDER


def picture_fields(dataset: str) -> dict[str, str | bool | int]:
    """Values of the widgets for a data set of that name."""
    if not is_folder(dataset):
        return {}
    name, shape = _path_and_shape(dataset)
    if source_of(dataset) == UPLOADED:
        original = _original(name)
        state, fields = st.session_state, {}
        if original != state.get("new-upload"):
            # First: if a request ends what fills in the form, it is begun again.
            fields = {UPLOADER: state.get(UPLOADER, 0) + 1, "new-complaint": ""}
        inverted = original != name
        return fields | {"new-upload": original, "new-inverted": inverted, "new-shape": shape}
    return {"new-folder": name.removeprefix(FOLDER), "new-shape": shape}


def _path_and_shape(name: str) -> tuple[str, str]:
    """The name of a folder without its shape, and the shape, "" without one."""
    with contextlib.suppress(DataError):
        if Folder.parse(name, default_data_dir()).shape:
            path, _, shape = name.rpartition("@")
            return path, shape
    return name, ""


def _original(name: str) -> str:
    """The name of stored pictures that were not inverted."""
    return name.replace(f"{upload.INVERTED}/", "/")


def show_pictures(name: str) -> bool:
    """Read the pictures and describe them; returns whether they can be used for training."""
    try:
        with st.spinner("Reading the pictures …"):
            dataset = load_dataset(name)
    except DataError as error:
        st.error(plain(str(error)))
        return False
    channels, height, width = dataset.input_shape
    kind = "grey" if channels == 1 else "colour"
    text = (
        f"{dataset.title}: {len(dataset.classes):,} classes, {len(dataset.train):,} training and "
        f"{counted(len(dataset.test), 'test picture')}, {height} × {width}, {kind}."
    )
    own = _original(_path_and_shape(name)[0])
    uploaded = st.session_state.get("new-left-out", {}).get(own, upload.Stored(own))
    left_out = [*uploaded.left_out, *dataset.left_out]
    if left_out:
        more = len(left_out) - SHOWN
        text += f" Files that are no pictures or cannot be read: {', '.join(left_out[:SHOWN])}" + (
            f" and {more:,} more." if more > 0 else "."
        )
    st.text("\n".join([text, *uploaded.notes, *dataset.notes]))
    _preview(dataset)
    return True


def _preview(dataset: Dataset) -> None:
    """The first pictures of each class."""
    rows = []
    for label, name in enumerate(dataset.classes[:CLASSES]):
        images = dataset.train.images[dataset.train.labels == label]
        sprite = base64.b64encode(to_png(torch.cat(list(images[:PREVIEWS]), 2))).decode()
        rows.append(
            f"<b>{escape(name)}<small>{len(images):,}</small></b>"
            f'<img src="data:image/png;base64,{sprite}" alt="Pictures of {escape(name)}">'
        )
    st.html(f'{STYLE}<div class="classes">{"".join(rows)}</div>')
    if (more := len(dataset.classes) - CLASSES) > 0:
        st.caption(f"And {more:,} more classes.")
