"""Turns an image file into a model's input.

A file is decoded (`decode.py`), its ink is detected and the digit is segmented (`ink.py`), and
the digit is brought to the size and position of MNIST's digits (here).
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from densembed.data.decode import (
    MAX_BYTES,
    MAX_PIXELS,
    ImageError,
    decode,
    open_picture,
    read_bytes,
)
from densembed.data.ink import Content, find_digit, resample

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "Content",
    "ImageError",
    "ModelInput",
    "normalise_digit",
    "read_picture",
]

BOX = 20 / 28
"""The digit's longer side as a fraction of the image: 20 of MNIST's 28 pixels."""

EDGE = 0.25
"""Minimum ink of a pixel in the digit's bounding box, which excludes faint pixels."""


@dataclass(frozen=True)
class ModelInput:
    """An image in the form that a model takes.

    Attributes:
        pixels: uint8 tensor of shape (channels, height, width); white ink on black for digits.
            If there are several digits, all of them are in it.
        content: what the image shows.
        clean: whether the background is an even page. If not, the "digit" may be a part of a
            photograph.
    """

    pixels: torch.Tensor
    content: Content
    clean: bool = True

    @property
    def has_ink(self) -> bool:
        return self.content != Content.BLANK


def read_picture(
    source: bytes | str | os.PathLike,
    input_shape: tuple[int, int, int] = (1, 28, 28),
    digit: bool = True,
) -> ModelInput:
    """Turn an image file into a model's input.

    If `digit` is set and the model has one input channel, the handwritten digit is segmented,
    whatever its colour, position and size, and normalised as in MNIST. Otherwise the image is
    cropped at its centre to the input's aspect ratio and resized.

    Args:
        source: the file's bytes, or its path.
        input_shape: the model's (channels, height, width); channels is 1 or 3.
        digit: whether the model reads handwritten digits.

    Raises:
        ImageError: the file cannot be decoded.
        ValueError: `input_shape` is not the shape of an image.
    """
    channels, height, width = input_shape
    if channels not in (1, 3) or height < 1 or width < 1:
        raise ValueError(f"input_shape must be (1 or 3, height, width), not {tuple(input_shape)}")
    rgba = decode(source)
    if not digit or channels == 3:
        return ModelInput(centre_crop(rgba, channels, (height, width)), Content.IMAGE)
    ink, content, clean = find_digit(rgba)
    pixels = torch.from_numpy(normalise_digit(ink, (height, width)))[None]
    return ModelInput(pixels, content, clean)


def normalise_digit(ink: np.ndarray, size: tuple[int, int] = (28, 28)) -> np.ndarray:
    """Bring a digit to the size and position of MNIST's digits.

    The bounding box is scaled, with its aspect ratio unchanged, to 20/28 of the shorter side of
    `size`. The centre of mass is placed at the centre, or as near to it as possible without
    cutting anything off.

    Args:
        ink: (h, w) in [0, 1], of any size; 0 is no ink.
        size: (height, width) of the result.

    Returns:
        uint8 array of shape `size`. The darkest ink is 255; without ink, all pixels are 0.

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
    unit = max(bottom - top, right - left) / (BOX * min(size))  # source pixels per target pixel
    window_h, window_w = size[0] * unit, size[1] * unit
    digit = ink[top:bottom, left:right]
    mass_y, mass_x = _centre_of_mass(digit)
    # MNIST's centre is the middle of pixel 14 of 28, half a pixel beyond the middle.
    y = _keep_inside(mass_y + (size[0] / 2 - size[0] // 2 - 0.5) * unit, bottom - top, window_h)
    x = _keep_inside(mass_x + (size[1] / 2 - size[1] // 2 - 0.5) * unit, right - left, window_w)
    # A single resampling scales and shifts without rounding to whole pixels, so that the result
    # does not depend on the digit's position in the image.
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
    """The point nearest to `centre` at which a window around it contains [0, length]."""
    return min(max(centre, length - window / 2), window / 2)


def centre_crop(rgba: np.ndarray, channels: int, size: tuple[int, int]) -> torch.Tensor:
    """Crop RGBA colours at the centre to the aspect ratio of `size`, on white, and resize them."""
    alpha = rgba[..., 3:]
    rgb = rgba[..., :3] * alpha + (1 - alpha)
    height, width = rgb.shape[:2]
    unit = min(height / size[0], width / size[1])
    h, w = unit * size[0], unit * size[1]
    x0, y0 = (width - w) / 2, (height - h) / 2
    box = (x0, y0, x0 + w, y0 + h)
    planes = [resample(rgb[..., c], size, box, Image.Resampling.BICUBIC) for c in range(3)]
    if channels == 1:
        # ITU-R 601 luma, as in Pillow and torchvision.
        planes = [0.299 * planes[0] + 0.587 * planes[1] + 0.114 * planes[2]]
    pixels = np.rint(255 * np.clip(np.stack(planes), 0, 1)).astype(np.uint8)
    return torch.from_numpy(pixels)


def to_shape(path: Path, shape: tuple[int, int, int]) -> np.ndarray | None:
    """Decode an image to (C, H, W) uint8; None if the file is damaged.

    An image with the right size and mode is used directly, which gives the same pixels as the
    general code about ten times faster.
    """
    channels, height, width = shape
    try:
        data = read_bytes(path)
        image = open_picture(data)
        if image.mode == ("L" if channels == 1 else "RGB") and image.size == (width, height):
            array = np.asarray(ImageOps.exif_transpose(image))
            if array.shape[:2] == (height, width):
                planes = array[None] if channels == 1 else array.transpose(2, 0, 1)
                return np.ascontiguousarray(planes)
        return centre_crop(decode(data), channels, (height, width)).numpy()
    except Exception:  # Pillow raises many kinds of exceptions on damaged data
        return None
