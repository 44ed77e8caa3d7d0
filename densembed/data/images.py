"""Turns an image file into a model's input.

A photograph of digits is read by `photograph.py`; any other image is cropped and resized (here).
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from densembed.data.content import Content
from densembed.data.decode import (
    MAX_BYTES,
    MAX_PIXELS,
    ImageError,
    decode,
    open_picture,
    read_bytes,
    reading_pixels,
)
from densembed.data.ink import resample
from densembed.data.levels import faint_note, levels
from densembed.data.normalise import normalise_digit
from densembed.data.photograph import read_photograph

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "Content",
    "ImageError",
    "ModelInput",
    "normalise_digit",
    "read_picture",
]


@dataclass(frozen=True)
class ModelInput:
    """An image in the form that a model takes.

    Attributes:
        pixels: uint8 tensor of shape (channels, height, width); white ink on black for digits.
            If there are several digits, it is the first in reading order.
        content: what the image shows.
        clean: whether the background is an even page. If not, the "digit" may be a part of a
            photograph.
        faint: the sentence about an image that is almost black, grey or white because of its
            `levels`, None otherwise.
    """

    pixels: torch.Tensor
    content: Content
    clean: bool = True
    faint: str | None = None

    @property
    def has_ink(self) -> bool:
        return self.content != Content.BLANK

    @property
    def note(self) -> str | None:
        """What the user should know about the digit or the image, if anything."""
        if self.content == Content.BLANK:
            return "No digit was found, so a blank image is used."
        if self.content == Content.SEVERAL_DIGITS:
            return "Several digits were found: the first in reading order is used."
        return self.faint


def read_picture(
    source: bytes | str | os.PathLike,
    input_shape: tuple[int, ...] = (1, 28, 28),
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
    if len(input_shape) != 3 or input_shape[0] not in (1, 3) or min(input_shape) < 1:
        raise ValueError(f"input_shape must be (1 or 3, height, width), not {tuple(input_shape)}")
    channels, height, width = input_shape
    if not digit or channels == 3:
        data = read_bytes(source)
        pixels = centre_crop(decode(data), channels, (height, width))
        deep = levels(open_picture(data))
        faint = faint_note("the picture", pixels.numpy()) if deep else None
        return ModelInput(pixels, Content.IMAGE, faint=faint)
    photograph = read_photograph(source, (height, width))
    blank = torch.zeros(1, height, width, dtype=torch.uint8)
    pixels = photograph.digits[0].pixels if photograph.digits else blank
    return ModelInput(pixels, photograph.content, photograph.clean)


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


def to_shape(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """Decode an image to (C, H, W) uint8. Raises the ImageErrors of `decode`.

    An image with the right size and mode is used directly, which gives the same pixels as the
    general code about ten times faster.
    """
    channels, height, width = shape
    data = read_bytes(path)
    image = open_picture(data)
    plain = image.mode == ("L" if channels == 1 else "RGB") and (
        "transparency" not in image.info  # of a PNG or GIF: one colour that is not shown
        and not levels(image)
    )
    with reading_pixels():
        if plain and image.size == (width, height):
            array = np.asarray(ImageOps.exif_transpose(image))
            if array.shape[:2] == (height, width):
                planes = array[None] if channels == 1 else array.transpose(2, 0, 1)
                return np.ascontiguousarray(planes)
        return centre_crop(decode(data), channels, (height, width)).numpy()
