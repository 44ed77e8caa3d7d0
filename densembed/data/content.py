"""What an image shows."""

from enum import StrEnum


class Content(StrEnum):
    """What an image shows. The values appear in the output of `densembed read --json`."""

    DIGIT = "digit"
    SEVERAL_DIGITS = "several digits"
    BLANK = "no ink"
    IMAGE = "picture"
    """An image of any kind, in which no digit was looked for."""


class Polarity(StrEnum):
    """How the ink differs from the paper. The values appear in the output of `read --json`."""

    DARK_ON_LIGHT = "dark on light"
    LIGHT_ON_DARK = "light on dark"
    TRANSPARENT = "strokes on transparency"
