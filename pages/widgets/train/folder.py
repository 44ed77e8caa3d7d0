"""Choosing a folder of pictures to train on."""

import contextlib

import streamlit as st

from densembed.data import DataError, default_data_dir, is_folder, load_dataset
from densembed.data.folder import PREFIX as FOLDER
from densembed.data.folder import Folder
from pages.widgets.common.link import plain

SHAPES = {
    "": "as they are, or 32 × 32",
    "1x28x28": "28 × 28, grey",
    "3x32x32": "32 × 32, colour",
    "3x48x48": "48 × 48, colour",
    "3x64x64": "64 × 64, colour",
}
LAYOUT = (
    "One subfolder per class, named after the class, with pictures of any size and format. Folders "
    "named train and test are used as such; otherwise about a fifth of each class is kept for "
    "testing."
)
SHOWN = 5
KEPT = {"persist_state": "session"}
"""What is filled in stays when a visitor looks at another page."""


def pick_folder() -> str | None:
    """Widgets for the folder and the pictures' size; the data set's name, None without one."""
    columns = st.columns([5, 2], vertical_alignment="bottom")
    path = columns[0].text_input(
        "Folder, on the machine where this app runs", key="new-folder", **KEPT, max_chars=180,
        placeholder="/home/me/photos", help=LAYOUT,
    )  # fmt: skip
    shapes = list(SHAPES)
    if (own := st.session_state.get("new-shape", "")) not in SHAPES:
        shapes.append(own)  # a duplicated run's
    shape = columns[1].selectbox(
        "Size", shapes, format_func=lambda shape: SHAPES.get(shape, shape), key="new-shape", **KEPT,
        help="Every picture is brought to this size: cut to its shape at the middle, and resized.",
    )  # fmt: skip
    if not path.strip():
        st.caption(LAYOUT)
        return None
    return Folder.named(path.strip(), shape)


def folder_fields(name: str) -> dict[str, str]:
    """What the widgets hold for a data set of that name."""
    if not is_folder(name):
        return {}
    path, shape = name.removeprefix(FOLDER), ""
    with contextlib.suppress(DataError):
        if Folder.parse(name, default_data_dir()).shape:
            path, _, shape = path.rpartition("@")
    return {"new-folder": path, "new-shape": shape}


def show_folder(name: str) -> bool:
    """Read the folder and say what is in it; whether it can be trained on."""
    try:
        with st.spinner("Reading the pictures …"):
            dataset = load_dataset(name)
    except DataError as error:
        st.error(plain(str(error)))
        return False
    channels, height, width = dataset.input_shape
    kind = "grey" if channels == 1 else "colour"
    text = (
        f"{dataset.title}: {len(dataset.classes):,} classes, {len(dataset.train):,} pictures to "
        f"train on and {len(dataset.test):,} to test, {height} × {width}, {kind}."
    )
    if dataset.left_out:
        first = ", ".join(dataset.left_out[:SHOWN])
        more = len(dataset.left_out) - SHOWN
        text += f" Left out, as no pictures: {first}" + (
            f" and {more:,} more." if more > 0 else "."
        )
    notes = list(dataset.notes[:SHOWN])
    if (more := len(dataset.notes) - SHOWN) > 0:
        notes.append(f"And {more:,} more notes of the kind.")
    st.text("\n".join([text, *notes]))
    return True
