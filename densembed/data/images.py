"""images.py turns any picture into a model's input.

A file goes through four steps: colours (`decode.py`), a map of ink and the digit in it (`ink.py`),
and here the size and place that the MNIST digits have.
"""

import os
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from densembed.data.decode import MAX_BYTES, MAX_PIXELS, ImageError, decode
from densembed.data.ink import find_digit, resample

__all__ = ["MAX_BYTES", "MAX_PIXELS", "ImageError", "Picture", "normalise_digit", "read_picture"]

BOX = 20 / 28
"""The digit's longer side, as a share of the picture: 20 of MNIST's 28 pixels."""

EDGE = 0.25
"""Ink from which the digit's box is measured: half-covered pixels belong to it, faint ones don't"""


@dataclass(frozen=True)
class Picture:
    """A picture as a model gets it.

    Attributes:
        pixels: uint8 tensor of shape (channels, height, width); white ink on black for digits.
        seen: "digit", "no ink" (all pixels are zero), "several digits" (all of them are in
            `pixels`, so that a person sees why the answer is none), or "picture" for a picture
            that was not searched for a digit.
        clean: whether the rest of the picture is an even page: where it is not, what was read may
            be no digit at all, but a part of a photograph.
    """

    pixels: torch.Tensor
    seen: str
    clean: bool = True

    @property
    def has_ink(self) -> bool:
        return self.seen != "no ink"


def read_picture(
    source: bytes | str | os.PathLike,
    input_shape: tuple[int, int, int] = (1, 28, 28),
    digit: bool = True,
) -> Picture:
    """Turn a picture file into a model's input.

    With one channel and `digit`, the handwritten digit is found, whatever its colour, place and
    size, and placed the MNIST way. Else the picture is cropped at its centre to the input's aspect
    and resized.

    Args:
        source: the file's bytes, or the path of a file.
        input_shape: the model's (channels, height, width); channels is 1 or 3.
        digit: whether the model reads handwritten digits.

    Raises:
        ImageError: the file cannot be read as a picture.
        ValueError: `input_shape` is none that a picture can have.
    """
    channels, height, width = input_shape
    if channels not in (1, 3) or height < 1 or width < 1:
        raise ValueError(f"input_shape must be (1 or 3, height, width), not {tuple(input_shape)}")
    rgba = decode(source)
    if not digit or channels == 3:
        return Picture(whole(rgba, channels, (height, width)), "picture")
    ink, seen, clean = find_digit(rgba)
    return Picture(torch.from_numpy(normalise_digit(ink, (height, width)))[None], seen, clean)


def normalise_digit(ink: np.ndarray, size: tuple[int, int] = (28, 28)) -> np.ndarray:
    """Bring a digit to the size and place of MNIST's.

    Its box is scaled, aspect kept, to 20/28 of the shorter side of `size`, and its centre of mass
    is put at the centre, moved back only as far as needed to leave nothing outside.

    Args:
        ink: (h, w) in [0, 1], 0 where there is none. Any size.
        size: (height, width) of the result.

    Returns:
        uint8 array of shape `size`; the darkest ink is 255; all zero if there is no ink.

    >>> normalise_digit(np.ones((8, 8))).max(), normalise_digit(np.zeros((8, 8))).max()
    (np.uint8(255), np.uint8(0))
    """
    ink = np.asarray(ink, np.float32)
    peak = float(ink.max(initial=0.0))
    if peak <= 0:
        return np.zeros(size, np.uint8)
    ink = ink / peak
    rows, columns = np.nonzero(ink >= EDGE)
    # In edge coordinates: pixel i covers [i, i + 1].
    top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
    unit = max(bottom - top, right - left) / (BOX * min(size))  # source pixels a target pixel
    window_h, window_w = size[0] * unit, size[1] * unit
    digit = ink[top:bottom, left:right]
    mass_y, mass_x = _centre_of_mass(digit)
    # MNIST's centre is the middle of pixel 14 of 28, half a pixel beyond the middle.
    y = _keep_inside(mass_y + (size[0] / 2 - size[0] // 2 - 0.5) * unit, bottom - top, window_h)
    x = _keep_inside(mass_x + (size[1] / 2 - size[1] // 2 - 0.5) * unit, right - left, window_w)
    # One resampling does scaling and shift, with no rounding to whole pixels: the same digit
    # elsewhere in a picture gives the same result.
    pad_y, pad_x = int(np.ceil(window_h)), int(np.ceil(window_w))
    canvas = np.pad(digit, ((pad_y, pad_y), (pad_x, pad_x)))
    x0, y0 = x + pad_x - window_w / 2, y + pad_y - window_h / 2
    small = resample(canvas, size, box=(x0, y0, x0 + window_w, y0 + window_h))
    small = small / max(float(small.max()), 1e-6)
    return np.rint(255 * np.clip(small, 0, 1)).astype(np.uint8)


def _centre_of_mass(ink: np.ndarray) -> tuple[float, float]:
    total = float(ink.sum())
    y = float((ink.sum(1) * (np.arange(ink.shape[0]) + 0.5)).sum()) / total
    x = float((ink.sum(0) * (np.arange(ink.shape[1]) + 0.5)).sum()) / total
    return y, x


def _keep_inside(centre: float, length: float, window: float) -> float:
    """Nearest to `centre`, the middle of a window that holds [0, length]."""
    return min(max(centre, length - window / 2), window / 2)


def whole(rgba: np.ndarray, channels: int, size: tuple[int, int]) -> torch.Tensor:
    """The picture's centre in the aspect of `size`, on white where it is transparent."""
    alpha = rgba[..., 3:]
    rgb = rgba[..., :3] * alpha + (1 - alpha)
    height, width = rgb.shape[:2]
    unit = min(height / size[0], width / size[1])
    h, w = unit * size[0], unit * size[1]
    x0, y0 = (width - w) / 2, (height - h) / 2
    box = (x0, y0, x0 + w, y0 + h)
    planes = [resample(rgb[..., c], size, box, Image.Resampling.BICUBIC) for c in range(3)]
    if channels == 1:
        # Luma of ITU-R 601, as in Pillow's and torchvision's own grey.
        planes = [0.299 * planes[0] + 0.587 * planes[1] + 0.114 * planes[2]]
    pixels = np.rint(255 * np.clip(np.stack(planes), 0, 1)).astype(np.uint8)
    return torch.from_numpy(pixels)
