"""A model's input as a short text that a link or a program can carry, and as a PNG."""

import base64
import binascii
import io
import zlib
from math import prod

import numpy as np
import torch
from PIL import Image

from densembed.data.decode import ImageError

MAX_TEXT = 6000
"""Longest text that is read: a link with more would break in some browsers and servers."""


def to_text(pixels: torch.Tensor) -> str:
    """Pixels (C, H, W) uint8 as URL-safe text.

    >>> from_text(to_text(torch.zeros(1, 28, 28, dtype=torch.uint8)), (1, 28, 28)).shape
    torch.Size([1, 28, 28])
    """
    packed = zlib.compress(pixels.contiguous().numpy().tobytes(), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def from_text(text: str, input_shape: tuple[int, int, int]) -> torch.Tensor:
    """The pixels of `to_text`, of that shape. Raises ImageError for anything else.

    Text comes from anywhere: its length is bounded, and no more is unpacked than the shape needs.
    """
    size = prod(input_shape)
    wrong = ImageError("The picture in the link is damaged or of another size than the model's.")
    if len(text) > MAX_TEXT:
        raise wrong
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise wrong from error
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise wrong
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).reshape(input_shape)


def to_png(pixels: torch.Tensor, invert: bool = False) -> bytes:
    """Pixels (1 or 3, H, W) uint8 as a PNG of that size; as dark ink on white if `invert`."""
    array = np.moveaxis(pixels.numpy(), 0, -1)
    array = 255 - array if invert else array
    file = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(file, "PNG")
    return file.getvalue()
