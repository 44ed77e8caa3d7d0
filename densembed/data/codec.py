"""Images and small fields as short text, for links and JSON, and images as PNG."""

import base64
import binascii
import io
import zlib
from math import prod
from typing import Any

import numpy as np
import torch
from PIL import Image

from densembed.data.decode import ImageError

MAX_TEXT = 6000
"""Longest text that is decoded. Some browsers and servers reject longer links."""

LEVELS = 255


def to_text(pixels: torch.Tensor) -> str:
    """Encode pixels (C, H, W) uint8 as URL-safe text.

    >>> from_text(to_text(torch.zeros(1, 28, 28, dtype=torch.uint8)), (1, 28, 28)).shape
    torch.Size([1, 28, 28])
    """
    compressed = zlib.compress(pixels.contiguous().numpy().tobytes(), 9)
    return base64.urlsafe_b64encode(compressed).decode().rstrip("=")


def from_text(text: str, input_shape: tuple[int, int, int]) -> torch.Tensor:
    """Decode the text of `to_text` to pixels of the given shape. Raises ImageError on failure.

    The text may come from anyone: its length is limited, and no more bytes are decompressed than
    the shape needs.
    """
    size = prod(input_shape)
    invalid = ImageError("The picture in the link is damaged or of another size than the model's.")
    if len(text) > MAX_TEXT:
        raise invalid
    try:
        compressed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        decompressor = zlib.decompressobj()
        data = decompressor.decompress(compressed, size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise invalid from error
    if len(data) != size or not decompressor.eof or decompressor.unused_data:
        raise invalid
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).reshape(input_shape)


def encode_field(values: np.ndarray, top: float) -> dict[str, Any]:
    """Encode an array (H, W) as JSON values, quantised to 255 steps from 0 to `top`.

    Values outside of this range are clipped.
    """
    share = np.clip(np.asarray(values, np.float64) / (top or 1), 0, 1)
    levels = torch.from_numpy(np.rint(LEVELS * share).astype(np.uint8))[None]
    return {"size": list(values.shape), "top": float(f"{top:.6g}"), "levels": to_text(levels)}


def decode_field(encoded: dict[str, Any]) -> np.ndarray:
    """Decode the values of `encode_field` to an array. Raises ImageError if they are invalid."""
    height, width = encoded["size"]
    levels = from_text(encoded["levels"], (1, height, width))[0].numpy()
    return levels.astype(np.float32) * encoded["top"] / LEVELS


def to_png(pixels: torch.Tensor) -> bytes:
    """Encode pixels (1, 3 or, with their opacity, 4, H, W) uint8 as PNG."""
    array = np.moveaxis(pixels.numpy(), 0, -1)
    file = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(file, "PNG")
    return file.getvalue()
