"""Inputs: a test image of a data set, an uploaded picture, and remarks about both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import streamlit as st
import torch
from torch import Tensor

from densembed.data import Dataset, as_input
from densembed.data import title as title_of
from densembed.data.frames import frames_note
from densembed.data.images import MAX_BYTES, Content, ImageError, ModelInput, read_picture
from densembed.data.scaling import Scaling
from densembed.fields import novelty
from densembed.fields.doubt import Doubt, close_classes, doubts
from densembed.fields.field import logits
from densembed.text import counted
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.data import as_url, colours
from pages.widgets.canvas.stills import show_stills, still
from pages.widgets.common.callbacks import callback
from pages.widgets.common.link import in_link, plain
from pages.widgets.common.parameter import Numbers, Parameter, Slugs
from pages.widgets.common.uploaded import uploaded_files
from pages.widgets.inputs import thumbnails
from pages.widgets.inputs.checkpoints import Follow
from pages.widgets.inputs.test_images import usual_class
from pages.widgets.photograph.photograph import show_photograph

SAMPLES, UPLOAD, DRAW = "samples", "upload", "draw"


@dataclass(frozen=True)
class Input:
    """The input of the models: pixels (C, H, W) uint8, and the index of the true class or None.

    `content`, `clean` and `cut_off` are results of `read_photograph` for a picture of the visitor,
    and `remark` is what to know of its file.
    """

    pixels: Tensor
    label: int | None = None
    source: str = ""
    content: Content = Content.DIGIT
    clean: bool = True
    cut_off: bool = False
    remark: str | None = None

    @property
    def own(self) -> bool:
        """Whether the visitor uploaded or drew the picture, which is then part of the link."""
        return self.source in (UPLOAD, DRAW)


def pick_sample(dataset: Dataset, bar, place) -> Input:
    """Widgets for a test image: class and number in `bar`, thumbnails to click in `place`.

    The choice is shared by all pages and is part of their links.
    """
    usual, tested = usual_class(dataset), dataset.tested
    untested = [name for name in dataset.classes if name not in tested]
    expected = "a class with test images" if in_link("class") in untested else ""
    options = Slugs({name: plain(name) for name in tested})
    wanted = Parameter("class", "Class", options, usual, expected).draw(
        bar.pills,
        width="content",
        help=f"Without test {dataset.noun}s: {plain(', '.join(untested))}." if untested else None,
        required=True,
        persist_state="session",
    )
    label = dataset.classes.index(wanted)
    choices = (dataset.test.labels == label).nonzero()[:, 0]
    with bar:
        number = Parameter("example", "Example", Numbers(1, len(choices)), 1).draw(
            st.number_input,
            width=130,
            help=f"{counted(len(choices), f'test {dataset.noun}')} of this class, not used in "
            "training.",
            persist_state="session",
        )
    thumbnails.row(dataset, choices, number, place)
    return Input(dataset.test.images[choices[number - 1]], label, dataset.name)


def takes_pictures(parameters: Mapping[str, str]) -> bool:
    """Whether the page shows the widget for a picture.

    From the first upload on it is shown while the visitor draws, too: without it the pad would move
    under the pen.
    """
    source = parameters.get("from", SAMPLES)
    before = not st.session_state["arrived"] and st.session_state.get("takes-pictures", False)
    shown = source == UPLOAD or (source == DRAW and before)
    st.session_state["takes-pictures"] = shown
    return shown


def upload_picture(checkpoint: Checkpoint, follow: Follow) -> Input | None:
    """A widget for a picture, and the picture as the model's input.

    Any file is accepted, so that the error message is our own.

    Args:
        follow: makes the view follow the link, after a function has changed its parameters.
    """
    digit = checkpoint.reads_digits
    file = st.file_uploader(
        "A picture of a handwritten digit" if digit else "A picture",
        key="upload",
        on_change=callback(_drop_removed, follow),
        help=f"Photograph, scan or drawing, up to {MAX_BYTES >> 20} MiB. It is processed in memory "
        "and never stored. The link of the page contains the small picture that is the model's "
        "input.",
    )
    if file is not None:
        if file.size > MAX_BYTES:
            _refuse(
                f"The picture is {file.size / 2**20:,.1f} MiB, more than the {MAX_BYTES >> 20} MiB "
                "that are allowed. Choose a smaller picture.",
                follow,
            )
        else:
            st.session_state["picture"] = file.getvalue()
    elif "picture" in st.session_state:  # chosen on another page
        st.button("Remove the picture", on_click=callback(_forget_picture, follow))
    if "picture" not in st.session_state:
        return None
    try:
        return _input_of(st.session_state["picture"], checkpoint)
    except ImageError as error:
        _refuse(str(error), follow)
        return None


def _refuse(sentence: str, follow: Follow) -> None:
    """Report a picture that cannot be used, and forget the one before it."""
    _forget_picture(follow)
    instead = " An example is shown." if st.query_params.get("from") == UPLOAD else ""
    st.error(plain(f"{sentence}{instead}"))


def _input_of(data: bytes, checkpoint: Checkpoint) -> Input:
    """A picture as the model's input; a photograph of digits is shown, with each to choose."""
    shape, digit = checkpoint.header.input_shape, checkpoint.reads_digits
    faint = None
    if digit and shape[0] == 1:
        chosen, photograph = show_photograph(data, checkpoint)
        pixels = torch.zeros(shape, dtype=torch.uint8) if chosen is None else chosen.pixels
        content = Content.BLANK if chosen is None else Content.DIGIT
        cut_off = chosen is not None and chosen.cut_off
        shown = Input(pixels, None, UPLOAD, content, photograph.clean, cut_off)
    else:
        picture = read_picture(data, shape, digit)
        shown = Input(picture.pixels, None, UPLOAD, picture.content, picture.clean)
        faint = picture.faint
    remarks = filter(None, (frames_note("The picture", data), faint))
    return replace(shown, remark=" ".join(remarks) or None)


def _drop_removed(follow: Follow) -> None:
    """Remove a picture from the page and its link when it is removed from the uploader."""
    if not uploaded_files("upload"):
        _forget_picture(follow)


def _forget_picture(follow: Follow) -> None:
    for key in ("picture", "photograph-of"):  # with what was asked for of the photograph
        st.session_state.pop(key, None)
    if st.query_params.get("from") == UPLOAD:  # the ink may also be of a drawing
        follow(lambda link: {name: value for name, value in link.items() if name != "ink"})


def show_picture(pixels: Tensor, note: str) -> None:
    """The input of the model, in the panel that all pages have for it."""
    channels, height, width = pixels.shape
    ink = colours(0, 1, "ink, 0 to 1", "ink", "Greys_r")
    alt = "The input of the model:"
    shown = still(pixels[0].numpy() / 255, (width, height), ink, "the input", note, alt)
    if channels > 1:  # in its colours
        shown |= {"stack": None, "picture": {"url": as_url(pixels), "opacity": 1}}
    show_stills([shown], "the-input")


def show_signal(signal: Tensor, scaling: Scaling, among: Tensor | None, note: str) -> None:
    """A signal (C, L) as the step function that the model reads, with measured values.

    Args:
        among: the signals whose values fit on its axis; None for its surroundings.
    """
    around = torch.tensor([-1.0, 1.0]) if among is None else among
    low, high = (float(scaling.measured(end.double())) for end in around.aminmax())
    if low < 0 < high:
        low, high = -max(-low, high), max(-low, high)
    values = scaling.measured(signal.double()).float().numpy()
    scale = colours(low, high, "value", "", "Greys_r")
    alt = "The input of the model, a step function:"
    size = (signal.shape[1], 1)
    show_stills([still(values, size, scale, "the input", note, alt, "currentColor")], "the-input")


def unlike(shown: Input, checkpoint: Checkpoint) -> bool:
    """Whether an input is unlike the training images of a model, if these are available."""
    picture = ModelInput(shown.pixels, shown.content, shown.clean)
    return novelty.unlike_training(picture, checkpoint) is True


def strange_drawing(shown: Input | None, checkpoints: Iterable[Checkpoint]) -> Tensor | None:
    """The drawing, if it is unlike the training images of one of the models."""
    drawn = shown is not None and shown.source == DRAW
    return shown.pixels if drawn and any(unlike(shown, each) for each in checkpoints) else None


def remark(shown: Input, checkpoints: dict[str, Checkpoint]) -> None:
    """Warn about an input for which predictions are unreliable.

    Args:
        checkpoints: by their names on the page, such as "the second model".
    """
    if shown.source == DRAW:
        return  # the pad has its own note: a message above would move the pad under the pen
    if shown.remark:
        st.info(shown.remark)
    if shown.content == Content.BLANK:
        st.warning("No digit found. Is the picture blank?")
    elif shown.own:
        strange = [name for name, checkpoint in checkpoints.items() if unlike(shown, checkpoint)]
        if strange:
            st.warning(
                f"This picture is unlike the training images of {' and '.join(strange)}. A model "
                "always picks a class, so treat this answer with caution."
            )
        elif shown.content == Content.DIGIT:
            _remark_doubts(shown, checkpoints)
    elif shown.source:
        others: dict[str, list[str]] = {}
        for name, checkpoint in checkpoints.items():
            if checkpoint.config.dataset != shown.source:
                others.setdefault(checkpoint.header.provenance.dataset_title, []).append(name)
        for own, names in sorted(others.items()):
            text = " and ".join(names)
            was, is_ = ("was", "is") if len(names) == 1 else ("were", "are")
            st.info(
                f"{text[0].upper()}{text[1:]} {was} trained on {plain(own)} but {is_} shown "
                f"{plain(title_of(shown.source))}, so expect more errors."
            )


def _remark_doubts(shown: Input, checkpoints: dict[str, Checkpoint]) -> None:
    """Warn about a digit that is cut off, or between classes."""
    if shown.cut_off:
        st.warning(
            "The digit seems to be cut off at the edge. Choose a larger part of the photograph, or "
            "one that shows all of the digit."
        )
    for name, checkpoint in checkpoints.items():
        scores = logits(checkpoint.network(), as_input(shown.pixels[None]))[0].softmax(0).tolist()
        if Doubt.CLOSE in doubts(scores):
            classes = [plain(each) for each in checkpoint.header.classes]
            st.warning(f"Several classes are close for {name}: {close_classes(scores, classes)}.")
