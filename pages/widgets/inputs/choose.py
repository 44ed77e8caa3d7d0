"""Choosing an input: a test image of a data set, an uploaded picture, or a drawing."""

from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from densembed.data import DATASETS, DataError, Dataset, is_available, is_folder, load_dataset
from densembed.data import title as title_of
from densembed.data.codec import MAX_TEXT, from_text, to_text
from densembed.data.images import MAX_BYTES, Content, ImageError, ModelInput, read_picture
from densembed.fields import novelty
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.moving import as_url, colours
from pages.widgets.canvas.stills import show_stills, still
from pages.widgets.common.link import in_link, name_wrong, plain
from pages.widgets.common.page import panel
from pages.widgets.common.parameter import Numbers, Parameter, Slugs
from pages.widgets.inputs import draw_pad, thumbnails

SAMPLES, UPLOAD, DRAW = "samples", "upload", "draw"
WAYS = {SAMPLES: "Samples", UPLOAD: "Upload", DRAW: "Draw"}
OLD_WAYS = {text: slug for slug, text in WAYS.items()}
DOT = 0.25
"""Largest extent of a dot, relative to the side of the picture; a digit takes up 0.7 of it."""
MOST = 100_000
"""Upper bound on the number of test images per class of any data set."""


@dataclass(frozen=True)
class Input:
    """The input of the models: pixels (C, H, W) uint8, and the index of the true class or None.

    `content` and `clean` are results of `read_picture` for a picture of the visitor. `changed` is
    true if the picture was transformed.
    """

    pixels: Tensor
    label: int | None = None
    source: str = ""
    content: Content = Content.DIGIT
    clean: bool = True
    changed: bool = False

    @property
    def own(self) -> bool:
        """Whether the visitor uploaded or drew the picture, which is then part of the link."""
        return self.source in ("upload", "drawing")


def pick_input(checkpoint: Checkpoint) -> Input:
    """Widgets for the input, by default a test image."""
    bar, place = st.container(horizontal=True), st.container()
    ways = {slug: text for slug, text in WAYS.items() if slug != DRAW or checkpoint.reads_digits}
    way = Parameter("from", "Input", Slugs(ways, OLD_WAYS), SAMPLES).draw(
        bar.segmented_control, required=True, persist_state="session"
    )
    _take_linked(checkpoint)
    if way == SAMPLES:
        given = pick_sample(_dataset(checkpoint), bar, place)
    else:
        classes = checkpoint.header.classes
        own = "the uploaded picture" if way == UPLOAD else "the drawing"
        Parameter("class", "Class", Slugs(classes), instead=own).check()
        Parameter("example", "Example", Numbers(1, MOST), 1, instead=own).check()
        in_link("shuffle")  # applies again when the samples are chosen
        given = _upload(checkpoint, bar) if way == UPLOAD else _draw(checkpoint)
    _write_link(given)
    return given


def _take_linked(checkpoint: Checkpoint) -> None:
    """Store the picture in a link, unless this session itself wrote the link."""
    asked = in_link("ink")
    if asked is None or asked in st.session_state.setdefault("inks", set()):
        return
    try:
        from_text(asked, checkpoint.header.input_shape)
    except ImageError:
        del st.query_params["ink"]
        channels, height, width = checkpoint.header.input_shape
        kind = f"a whole picture of {height} × {width} pixels" + (
            f" in {channels} channels" if channels > 1 else ""
        )
        name_wrong("Picture", asked, kind, "an example")
    else:
        st.session_state["linked"] = asked
        for own in ("drawing", "picture"):
            st.session_state.pop(own, None)
        st.session_state["inks"].add(asked)


def _write_link(given: Input) -> None:
    text = to_text(given.pixels) if given.own and given.pixels.any() else ""
    if text and len(text) <= MAX_TEXT:
        st.session_state.setdefault("inks", set()).add(text)
        st.query_params["ink"] = text
    else:
        st.query_params.pop("ink", None)


def _linked(checkpoint: Checkpoint) -> Tensor | None:
    """The picture of a link, until another one is drawn or uploaded."""
    text = st.session_state.get("linked")
    if not text:
        return None
    try:
        return from_text(text, checkpoint.header.input_shape)
    except ImageError as error:
        del st.session_state["linked"]
        st.warning(plain(str(error)))
        return None


def pick_sample(dataset: Dataset, bar, place) -> Input:
    """Widgets for a test image: class and number in `bar`, thumbnails to click in `place`.

    The choice is shared by all pages and is part of their links.
    """
    usual, tested = _usual_class(dataset), dataset.tested
    untested = [name for name in dataset.classes if name not in tested]
    expected = "a class with test images" if in_link("class") in untested else ""
    options = Slugs({name: plain(name) for name in tested})
    wanted = Parameter("class", "Class", options, usual, expected).draw(
        bar.pills,
        width="content",
        help=f"Without test images: {plain(', '.join(untested))}." if untested else None,
        required=True,
        persist_state="session",
    )
    label = dataset.classes.index(wanted)
    choices = (dataset.test.labels == label).nonzero()[:, 0]
    with bar:
        number = Parameter("example", "Example", Numbers(1, len(choices)), 1).draw(
            st.number_input,
            width=130,
            help=f"{len(choices):,} test images of this class, not used in training.",
            persist_state="session",
        )
    thumbnails.row(dataset, choices, number, place)
    return Input(dataset.test.images[choices[number - 1]], label, dataset.name)


def _last_sample(checkpoint: Checkpoint) -> Input:
    """The test image that was chosen last, shown until there is a picture; stops without any."""
    dataset = test_images(checkpoint)
    if dataset is None:
        st.stop()
    usual = _usual_class(dataset)
    kept = st.session_state.get("class", usual)
    label = dataset.classes.index(kept if kept in dataset.tested else usual)
    choices = (dataset.test.labels == label).nonzero()[:, 0]
    number = min(st.session_state.get("example", 1), len(choices))
    return Input(dataset.test.images[choices[number - 1]], label, dataset.name)


def _usual_class(dataset: Dataset) -> str:
    return dataset.tested[7 % len(dataset.tested)]


def test_images(checkpoint: Checkpoint) -> Dataset | None:
    """The data set that the model was trained on if it is available, else the built-in digits.

    Its classes are in the order of the model's. None if neither has the model's classes and shape.
    """
    for name in (checkpoint.config.dataset, "digits"):
        if not is_available(name):
            continue
        try:
            dataset = load_dataset(name).in_order(checkpoint.header.classes)
        except DataError:
            continue
        if dataset and dataset.input_shape == checkpoint.header.input_shape:
            return dataset
    return None


def _dataset(checkpoint: Checkpoint) -> Dataset:
    """As `test_images`; offers to download the data set, and stops the page without any."""
    own = checkpoint.config.dataset
    if own in DATASETS and not is_available(own):
        _offer_download(own)
    dataset = test_images(checkpoint)
    if dataset is None:
        title = plain(checkpoint.header.provenance.dataset_title)
        st.info(
            f"The folder “{title}”, on which the model was trained, was not found or has changed, "
            "so "
            "there are no test images. Restore the folder, or upload a picture."
            if is_folder(own)
            else f"No test images of {title} for this model are available. Upload a picture "
            "instead."
        )
        st.stop()
    return dataset


def _offer_download(name: str) -> None:
    source = DATASETS[name]
    if st.button(
        f"Download the test images of {source.title}",
        help=f"Downloads the data set once, {source.download_size}.",
    ):
        try:
            with st.spinner(f"Downloading {source.title} …"):
                load_dataset(name)
        except DataError as error:
            st.warning(plain(str(error)))


def _upload(checkpoint: Checkpoint, bar) -> Input:
    """An uploaded picture. Any file is accepted, so that the error message is our own."""
    digit = checkpoint.reads_digits
    file = bar.file_uploader(
        "A picture of a handwritten digit" if digit else "A picture", key="upload",
        on_change=_drop_removed,
        help=f"Photograph, scan or drawing, up to {MAX_BYTES >> 20} MB. It is processed in memory "
        "and never "
        "stored. The link of the page contains the small picture that is the model's input.",
    )  # fmt: skip
    if file is not None:
        if file.size > MAX_BYTES:
            _forget_picture()
            st.error(
                f"The picture has {file.size / 2**20:,.1f} MB, more than the {MAX_BYTES >> 20} MB "
                "that are allowed, so an example is shown. Choose a smaller picture."
            )
        else:
            st.session_state["picture"] = file.getvalue()
    elif {"picture", "linked"} & set(st.session_state):  # chosen on another page, or a link's
        bar.button("Remove the picture", on_click=_forget_picture)
    if "picture" not in st.session_state:
        if (pixels := _linked(checkpoint)) is not None:
            return Input(pixels, None, "upload", _content(pixels) if digit else Content.IMAGE)
        st.info(
            (
                "Choose a picture of one digit, of any colour and size. The digit is found and "
                "centred "
                "automatically."
                if digit
                else "Choose a picture of any size. It is cropped at the centre and scaled down."
            )
            + " An example is shown until you choose one."
        )
        return _last_sample(checkpoint)
    try:
        picture = _read(st.session_state["picture"], checkpoint)
    except ImageError as error:
        del st.session_state["picture"]
        st.error(plain(str(error)))
        return _last_sample(checkpoint)
    return Input(picture.pixels, None, "upload", picture.content, picture.clean)


def _drop_removed() -> None:
    """Remove a picture from the page and its link when it is removed from the uploader."""
    if st.session_state["upload"] is None:
        _forget_picture()


def _forget_picture() -> None:
    for own in ("picture", "linked"):
        st.session_state.pop(own, None)


def _draw(checkpoint: Checkpoint) -> Input:
    """The drawing on the pad, which `show_input` draws."""
    nothing = Input(
        torch.zeros(checkpoint.header.input_shape, dtype=torch.uint8),
        None,
        "drawing",
        Content.BLANK,
    )
    if "drawing" not in st.session_state:
        pixels = _linked(checkpoint)
        return nothing if pixels is None else Input(pixels, None, "drawing", _content(pixels))
    data = draw_pad.drawn()
    if data is None:
        return nothing
    try:
        picture = _read(data, checkpoint)
    except ImageError as error:
        st.error(plain(str(error)))
        return nothing
    pixels = picture.pixels
    if picture.content == Content.BLANK:  # a dot, which the link keeps as it is
        pixels = 255 - read_picture(data, checkpoint.header.input_shape, digit=False).pixels
    return Input(pixels, None, "drawing", picture.content, picture.clean)


def _content(pixels: Tensor) -> Content:
    """The content of a picture in a link: a digit fills it, and a dot on the pad does not."""
    rows, columns = pixels.amax(0).nonzero(as_tuple=True)
    if not len(rows):
        return Content.BLANK
    extent = 1 + max(int(rows.max() - rows.min()), int(columns.max() - columns.min()))
    return Content.DIGIT if extent > DOT * max(pixels.shape) else Content.BLANK


def _read(data: bytes, checkpoint: Checkpoint) -> ModelInput:
    return read_picture(data, checkpoint.header.input_shape, checkpoint.reads_digits)


def show_input(given: Input, checkpoint: Checkpoint) -> None:
    """The input of the model, or the pad with the input beside its tools."""
    size = f"{given.pixels.shape[1]} × {given.pixels.shape[2]}"
    size += ", edited" if given.changed else ""
    if given.source != "drawing":
        show_picture(given.pixels, size)
        return
    notes = {
        Content.BLANK: "no digit yet",
        Content.SEVERAL_DIGITS: "several digits: draw one at a time",
    }
    if unlike(given, checkpoint):
        notes[Content.DIGIT] = "unlike the training images"
    panel("draw a digit", notes.get(given.content, f"scaled to {size} (small picture)"))
    linked = _linked(checkpoint)
    base = None if linked is None else as_url(linked, checkpoint.reads_digits)
    draw_pad.pad(as_url(given.pixels), base)


def show_picture(pixels: Tensor, note: str) -> None:
    """The input of the model, in the panel that all pages have for it."""
    channels, height, width = pixels.shape
    ink = colours(0, 1, "ink, 0 to 1", "ink", "Greys_r")
    alt = "The input of the model:"
    shown = still(pixels[0].numpy() / 255, (width, height), ink, "the input", note, alt)
    if channels > 1:  # in its colours
        shown |= {"stack": None, "picture": {"url": as_url(pixels), "opacity": 1}}
    show_stills([shown], "the-input")


def unlike(given: Input, checkpoint: Checkpoint) -> bool:
    """Whether an input is unlike the training images of a model, if these are available."""
    picture = ModelInput(given.pixels, given.content, given.clean)
    return novelty.unlike_training(picture, checkpoint) is True


def remark(given: Input, checkpoints: dict[str, Checkpoint]) -> None:
    """Warn about an input for which predictions are unreliable.

    Args:
        checkpoints: by their names on the page, such as "the second model".
    """
    if given.source == "drawing":
        return  # the pad has its own note: a message above would move the pad under the pen
    if given.content == Content.BLANK:
        st.warning("No digit found. Is the picture blank?")
    elif given.content == Content.SEVERAL_DIGITS:
        st.warning(
            "The picture seems to contain several digits, but the model reads one at a time."
        )
    elif given.own:
        strange = [name for name, checkpoint in checkpoints.items() if unlike(given, checkpoint)]
        if strange:
            st.warning(
                f"This picture is unlike the training images of {' and '.join(strange)}. A model "
                "always "
                "picks a class, so treat this answer with caution."
            )
    else:
        others: dict[str, list[str]] = {}
        for name, checkpoint in checkpoints.items():
            if checkpoint.config.dataset != given.source:
                others.setdefault(checkpoint.header.provenance.dataset_title, []).append(name)
        for own, names in sorted(others.items()):
            text = " and ".join(names)
            was, is_ = ("was", "is") if len(names) == 1 else ("were", "are")
            st.info(
                f"{text[0].upper()}{text[1:]} {was} trained on {plain(own)} but {is_} shown "
                f"{plain(title_of(given.source))}, so expect more errors."
            )
