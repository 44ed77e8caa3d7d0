"""Reasons to doubt the prediction for an image."""

from collections.abc import Sequence
from enum import StrEnum

CLOSE = 1 / 3
"""The second class is close to the first if it is at least this likely in comparison."""


class Doubt(StrEnum):
    """A reason to doubt a prediction. The values appear in the output of `read --json`."""

    UNLIKE = "unlike the training images"
    CUT_OFF = "cut off"
    CLOSE = "two close classes"


def doubts(
    probabilities: Sequence[float], *, unlike: bool | None = None, cut_off: bool = False
) -> list[Doubt]:
    """The reasons to doubt a prediction, the strongest first; none for one that is fine.

    Args:
        probabilities: of the classes.
        unlike: whether the image is unlike the training images, None if this is unknown.
        cut_off: whether the digit ends at the edge of the picture.

    >>> doubts([0.6, 0.1, 0.3])
    [<Doubt.CLOSE: 'two close classes'>]
    >>> doubts([0.9, 0.05, 0.05], cut_off=True)
    [<Doubt.CUT_OFF: 'cut off'>]
    """
    first, second = sorted(probabilities, reverse=True)[:2]
    holds_by_doubt = {
        Doubt.UNLIKE: bool(unlike),
        Doubt.CUT_OFF: cut_off,
        Doubt.CLOSE: second >= CLOSE * first,
    }
    return [doubt for doubt, holds in holds_by_doubt.items() if holds]


def two_classes(probabilities: Sequence[float], classes: Sequence[str]) -> str:
    """The two most likely classes, e.g. "9 (55 %) or 3 (40 %)"."""
    order = sorted(range(len(probabilities)), key=lambda k: -probabilities[k])[:2]
    return " or ".join(f"{classes[k]} ({100 * probabilities[k]:.0f} %)" for k in order)
