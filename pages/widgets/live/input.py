"""The input that Explore shows, as the browser reports it."""

from dataclasses import replace

from densembed.data.images import Content
from densembed.training.checkpoint import Checkpoint
from pages.widgets.inputs.choose import DRAW, SAMPLES, UPLOAD, Input
from pages.widgets.inputs.test_images import test_images
from pages.widgets.live.live import Report


def explored(report: Report, checkpoint: Checkpoint, picture: Input | None) -> Input | None:
    """The input of a report, or None if the model takes others.

    Args:
        picture: the uploaded picture, whose remarks hold while it is the input.
    """
    pixels = report.input(checkpoint)
    if pixels is None:
        return None
    source = report.parameters.get("from", SAMPLES)
    if source == UPLOAD and picture is not None:
        return replace(picture, pixels=pixels)
    if source in (UPLOAD, DRAW) and report.label is None:
        content = Content.DIGIT if pixels.any() else Content.BLANK
        return Input(pixels, None, source, content if checkpoint.reads_digits else Content.IMAGE)
    dataset = test_images(checkpoint)
    if dataset is None or report.label not in dataset.classes:
        return Input(pixels, None, "")
    return Input(pixels, dataset.classes.index(report.label), dataset.name)
