"""Reasons to doubt the prediction for an image."""

from collections.abc import Sequence
from enum import StrEnum

CLOSE = 1 / 3
"""A class is close to the first if it is at least this likely in comparison."""
MOST_NAMED = 3
"""Most close classes in a sentence."""


class Doubt(StrEnum):
    """A reason to doubt a prediction. The values appear in the output of `read --json`."""

    UNLIKE = "unlike the training images"
    CUT_OFF = "cut off"
    CLOSE = "close classes"


def doubts(
    probabilities: Sequence[float], *, unlike: bool | None = None, cut_off: bool = False
) -> list[Doubt]:
    """The reasons to doubt a prediction, the strongest first; none for one that is fine.

    Args:
        probabilities: of the classes.
        unlike: whether the image is unlike the training images, None if this is unknown.
        cut_off: whether the digit ends at the edge of the picture.

    >>> doubts([0.6, 0.1, 0.3])
    [<Doubt.CLOSE: 'close classes'>]
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


def close_classes(probabilities: Sequence[float], classes: Sequence[str]) -> str:
    """The most likely class and those close to it, for a sentence.

    >>> close_classes([0.55, 0.4, 0.05], "930")
    '9 (55 %) or 3 (40 %)'
    >>> close_classes([0.1] * 10, "0123456789")
    '0 (10 %), 1 (10 %), 2 (10 %) or 7 more'
    """
    order = sorted(range(len(probabilities)), key=lambda k: -probabilities[k])
    close = [k for k in order if probabilities[k] >= CLOSE * probabilities[order[0]]]
    named = [f"{classes[k]} ({100 * probabilities[k]:.0f} %)" for k in close[:MOST_NAMED]]
    if len(close) > MOST_NAMED:
        named.append(f"{len(close) - MOST_NAMED:,} more")
    return " or ".join(filter(None, (", ".join(named[:-1]), named[-1])))
