"""Reads a photograph of handwritten digits: its frame, its colours, and every digit in it."""

import os
from dataclasses import dataclass

import numpy as np
import torch

from densembed.data.content import Content, Polarity
from densembed.data.decode import decode
from densembed.data.ink import Box, Colour, find_digits
from densembed.data.normalise import normalise_digit

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class DigitInput:
    """A digit of a photograph in the form that a model takes.

    Attributes:
        pixels: uint8 tensor of shape (1, height, width), white ink on black.
        box: left, top, right and bottom edge, as shares of the photograph's width and height.
        cut_off: whether its strokes end at the edge of the frame.
    """

    pixels: torch.Tensor
    box: Box
    cut_off: bool


@dataclass(frozen=True)
class Photograph:
    """A photograph and the digits in it.

    Attributes:
        digits: in reading order.
        frame: the part in which digits were looked for, as shares like `DigitInput.box`.
        polarity: whether the ink is darker or lighter than the paper.
        paper: the colour of the paper, (red, green, blue) in [0, 1]; None if it is transparent.
        ink: the colour of the ink; None if there is none.
        clean: whether the background is an even page. If not, a "digit" may be a part of another
            scene.
    """

    digits: tuple[DigitInput, ...]
    frame: Box
    polarity: Polarity
    paper: Colour | None
    ink: Colour | None
    clean: bool

    @property
    def content(self) -> Content:
        """By the number of digits, which `marks.is_second_digit` tells apart."""
        if not self.digits:
            return Content.BLANK
        return Content.DIGIT if len(self.digits) == 1 else Content.SEVERAL_DIGITS


def read_photograph(
    source: bytes | str | os.PathLike | np.ndarray,
    size: tuple[int, int] = (28, 28),
    *,
    frame: Box | None = None,
    quarter_turns: int = 0,
    light_on_dark: bool | None = None,
) -> Photograph:
    """Find the handwritten digits of a photograph, whatever their colours, places and sizes.

    Args:
        source: the file's bytes, its path, or its colours as `decode` returns them.
        size: (height, width) of the models' input.
        frame: the part in which to look, as left, top, right and bottom in shares of the width and
            height after turning. By default the photograph without an even border.
        quarter_turns: clockwise turns by 90 degrees before anything else.
        light_on_dark: whether the ink is lighter than the paper; by default this is detected.

    Raises:
        ImageError: the file cannot be decoded.
        ValueError: the frame is empty or not within the photograph.

    >>> page = np.ones((60, 90, 4))
    >>> page[10:50, 20:24, :3] = page[10:50, 60:64, :3] = 0
    >>> [[round(edge, 1) for edge in digit.box] for digit in read_photograph(page).digits]
    [[0.2, 0.2, 0.3, 0.8], [0.7, 0.2, 0.7, 0.8]]
    """
    rgba = source if isinstance(source, np.ndarray) else decode(source)
    rgba = np.rot90(rgba, -quarter_turns)
    left, top, right, bottom = frame or WHOLE
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise ValueError(f"frame must be left < right and top < bottom in [0, 1], got {frame}")
    height, width = rgba.shape[:2]
    x0, y0 = min(int(left * width), width - 1), min(int(top * height), height - 1)
    x1, y1 = max(x0 + 1, round(right * width)), max(y0 + 1, round(bottom * height))
    sheet = find_digits(rgba[y0:y1, x0:x1], light_on_dark)

    def outer(box: Box) -> Box:
        return (
            (x0 + box[0] * (x1 - x0)) / width,
            (y0 + box[1] * (y1 - y0)) / height,
            (x0 + box[2] * (x1 - x0)) / width,
            (y0 + box[3] * (y1 - y0)) / height,
        )

    digits = tuple(
        DigitInput(
            torch.from_numpy(normalise_digit(digit.ink, size))[None],
            outer(digit.box),
            digit.cut_off,
        )
        for digit in sheet.digits
    )
    return Photograph(
        digits, frame or outer(sheet.frame), sheet.polarity, sheet.paper, sheet.ink, sheet.clean
    )
