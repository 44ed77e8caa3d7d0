"""Choosing a folder of pictures to train on."""

import contextlib

import streamlit as st

from densembed.data import DataError, default_data_dir, is_folder, load_dataset
from densembed.data.folder import PREFIX as FOLDER
from densembed.data.folder import Folder
from pages.widgets.common.link import plain

SHAPES = {
    "": "Original size if all agree, otherwise 32 × 32",
    "1x28x28": "28 × 28, grey",
    "3x32x32": "32 × 32, colour",
    "3x48x48": "48 × 48, colour",
    "3x64x64": "64 × 64, colour",
}
LAYOUT = (
    "One subfolder per class, named after the class, with pictures of any size and format. Folders "
    "named train and test are used as such; otherwise about a fifth of each class is used for "
    "testing."
)
SHOWN = 5
KEPT = {"persist_state": "session"}
"""Forms keep their values when the visitor opens another page."""


def pick_folder() -> str | None:
    """Widgets for the folder and the size of the pictures; the name of the data set, or None."""
    columns = st.columns([5, 2], vertical_alignment="bottom")
    path = columns[0].text_input(
        "Folder on the server", key="new-folder", **KEPT, max_chars=180,
        placeholder="/home/me/photos", help=LAYOUT,
    )  # fmt: skip
    shapes = list(SHAPES)
    if (own := st.session_state.get("new-shape", "")) not in SHAPES:
        shapes.append(own)  # of a duplicated run
    shape = columns[1].selectbox(
        "Size", shapes, format_func=lambda shape: SHAPES.get(shape, shape), key="new-shape", **KEPT,
        help="Every picture is cropped at the centre to this shape, and resized.",
    )  # fmt: skip
    if not path.strip():
        st.caption(LAYOUT)
        return None
    return Folder.named(path.strip(), shape)


def folder_fields(name: str) -> dict[str, str]:
    """Values of the widgets for a data set of that name."""
    if not is_folder(name):
        return {}
    path, shape = name.removeprefix(FOLDER), ""
    with contextlib.suppress(DataError):
        if Folder.parse(name, default_data_dir()).shape:
            path, _, shape = path.rpartition("@")
    return {"new-folder": path, "new-shape": shape}


def show_folder(name: str) -> bool:
    """Read the folder and describe it; returns whether it can be used for training."""
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
        f"{len(dataset.test):,} test pictures, {height} × {width}, {kind}."
    )
    if dataset.left_out:
        first = ", ".join(dataset.left_out[:SHOWN])
        more = len(dataset.left_out) - SHOWN
        text += f" Files that are not pictures: {first}" + (
            f" and {more:,} more." if more > 0 else "."
        )
    notes = list(dataset.notes[:SHOWN])
    if (more := len(dataset.notes) - SHOWN) > 0:
        notes.append(f"{more:,} more notes.")
    st.text("\n".join([text, *notes]))
    return True
