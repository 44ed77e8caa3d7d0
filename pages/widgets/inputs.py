"""Choosing an input: a test image of a data set, or a picture of one's own."""

from dataclasses import dataclass

import streamlit as st
from torch import Tensor

from densembed.checkpoint import Checkpoint
from densembed.data import DATASETS, DataError, Dataset, is_available, load_dataset
from densembed.data.images import MAX_BYTES, ImageError, Picture, read_picture
from pages.widgets.page import name_wrong_link

KINDS = ["png", "jpg", "jpeg", "webp", "bmp", "gif", "tif", "tiff"]


@dataclass(frozen=True)
class Input:
    """What the models get: pixels (C, H, W) uint8, the true class's index where it is known."""

    pixels: Tensor
    label: int | None = None
    source: str = ""
    seen: str = "digit"


def pick_input(checkpoint: Checkpoint) -> Input:
    """Widgets for the input; without a click it is a test image that is already there."""
    bar = st.container(horizontal=True)
    way = bar.segmented_control(
        "Input", ["Samples", "Upload"], default="Samples", key="from", bind="query-params",
        required=True, persist_state="session",
    )  # fmt: skip
    return _upload(checkpoint, bar) if way == "Upload" else _sample(checkpoint, bar)


def _sample(checkpoint: Checkpoint, bar) -> Input:
    dataset = _dataset(checkpoint)
    usual = dataset.classes[7 % len(dataset.classes)]
    name_wrong_link("class", dataset.classes)
    wanted = bar.pills(
        "Class", dataset.classes, default=usual, key="class",
        bind="query-params", required=True, width="content", persist_state="session",
    )  # fmt: skip
    label = dataset.classes.index(wanted or usual)
    choices = (dataset.test.labels == label).nonzero()[:, 0]
    name_wrong_link("example", range(1, len(choices) + 1))
    number = bar.number_input(
        "Example", 1, len(choices), 1, key="example", bind="query-params", width=130,
        persist_state="session",
        help=f"{len(choices):,} test images of this class; the model did not learn from them.",
    )  # fmt: skip
    return Input(dataset.test.images[choices[number - 1]], label, dataset.name)


def _dataset(checkpoint: Checkpoint) -> Dataset:
    """The data set that the model learned from where it is here, else one of the same shape."""
    own = checkpoint.config.dataset
    name = own if is_available(own) else "digits"
    if own != name and own in DATASETS:
        _offer_download(own)
        name = own if is_available(own) else name
    dataset = load_dataset(name)
    if dataset.input_shape != checkpoint.header.input_shape:
        st.info("No test images of this model's shape are here. Upload a picture instead.")
        st.stop()
    return dataset


def _offer_download(name: str) -> None:
    title = DATASETS[name].TITLE
    if st.button(f"Get {title}'s test images", help="Downloads the data set once, some 12 MB."):
        try:
            with st.spinner(f"Downloading {title} …"):
                load_dataset(name)
        except DataError as error:
            st.warning(str(error))


def _upload(checkpoint: Checkpoint, bar) -> Input:
    file = bar.file_uploader(
        "A picture of a handwritten digit", type=KINDS, key="upload",
        help="Photograph, scan or drawing, up to 5 MB. It is read in memory and never stored.",
    )  # fmt: skip
    if file is not None:
        if file.size > MAX_BYTES:
            st.error("The picture is larger than 5 MB: choose a smaller one.")
        else:
            st.session_state["picture"] = file.getvalue()
    if "picture" not in st.session_state:
        st.info("Choose a picture: one digit, any colour, any size. It is found and centred.")
        st.stop()
    try:
        picture = _read(st.session_state["picture"], checkpoint)
    except ImageError as error:
        del st.session_state["picture"]
        st.error(str(error))
        st.stop()
    return Input(picture.pixels, None, "upload", picture.seen)


def _read(data: bytes, checkpoint: Checkpoint) -> Picture:
    return read_picture(data, checkpoint.header.input_shape, checkpoint.reads_digits)


def remark(given: Input, *checkpoints: Checkpoint) -> None:
    """Say what a person should know of this input before believing the models."""
    if given.seen == "no ink":
        st.warning("No ink was found in the picture, so there is nothing to read.")
    elif given.seen == "several digits":
        st.warning("There seem to be several digits; the model reads one at a time.")
    elif given.source in DATASETS:
        others = [c.header.provenance for c in checkpoints if c.config.dataset != given.source]
        for own in sorted({provenance.dataset_title for provenance in others}):
            st.info(
                f"A model that learned from {own} is shown {DATASETS[given.source].TITLE}: "
                "expect more errors than on its own kind of picture."
            )
