"""The brightness of grey images whose pixels are not unsigned 8-bit integers.

Which values are black and white depends only on the data type in the file, not on the content, so
that a single image and all images of a folder have the same scale:

    integers of 16 bits       0 to 65,535; with a sign −32,768 to 32,767
    integers of 12 bits       0 to 4,095, if the file says that it has 12 bits
    integers of 8 bits        with a sign −128 to 127
    integers of 32 bits       0 to 65,535, as no image fills their range
    floating-point numbers    0 to 1

Values outside are black or white, NaN is black. A TIFF whose photometric interpretation is 0 has
white at its lowest value.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import (
    BITSPERSAMPLE,
    PHOTOMETRIC_INTERPRETATION,
    SAMPLEFORMAT,
    TiffImageFile,
)

FULL = 65535
SIGNED = 2
"""The sample format of a TIFF with signed integers."""
FAINT = 32
"""A smaller difference between the brightest and the darkest pixel, of 255, is noted."""
WHITE_SHARE = 0.99
"""A share of white pixels of at least this is noted."""


@dataclass(frozen=True)
class Levels:
    """The values that are black and white, and the data type if Pillow's array has another one."""

    black: float
    white: float
    dtype: str = ""

    def grey(self, image: Image.Image) -> np.ndarray:
        """The brightness in [0, 1] of an image or a part of it, float32 (height, width)."""
        values = np.asarray(image)
        # The array has the bits of the values, but another data type.
        values = (values.view(self.dtype) if self.dtype else values).astype(np.float64)
        # NaN, of pixels without a value, is black.
        grey = np.nan_to_num((values - self.black) / (self.white - self.black), nan=0.0)
        return np.clip(grey, 0, 1).astype(np.float32)


def levels(image: Image.Image) -> Levels | None:
    """The levels of an opened image, None if Pillow has its brightness in 8 bits."""
    tags = image.tag_v2 if isinstance(image, TiffImageFile) else {}
    bits = tags.get(BITSPERSAMPLE, (16,))[0]
    signed = tags.get(SAMPLEFORMAT, (1,))[0] == SIGNED
    if image.mode == "L" and signed and bits == 8:
        black, white, dtype = -128, 127, "i1"
    elif image.mode == "F":
        black, white, dtype = 0, 1, ""
    elif image.mode == "I" and bits == 32:
        black, white, dtype = 0, FULL, "" if signed else "u4"
    elif image.mode == "I" and signed:
        black, white, dtype = -32768, 32767, ""
    elif image.mode == "I" or image.mode.startswith("I;16"):
        black, white, dtype = 0, 2**bits - 1, ""
    else:
        return None
    inverted = tags.get(PHOTOMETRIC_INTERPRETATION) == 0
    return Levels(white, black, dtype) if inverted else Levels(black, white, dtype)


def faint_note(which: str, pixels: np.ndarray) -> str | None:
    """The sentence about images that are almost black, grey or white by their `levels`.

    Args:
        which: the images, such as "the picture".
        pixels: uint8 of any shape, all their pixels.
    Returns:
        None if they are neither.

    >>> faint_note("the picture", np.array([0, 128, 255], np.uint8))
    """
    low, high = int(pixels.min()), int(pixels.max())
    if high - low >= FAINT and np.mean(pixels == 255) < WHITE_SHARE:
        return None
    shade = "black" if high < 2 * FAINT else "white" if np.median(pixels) >= 192 else "grey"
    return (
        f"The brightness values of {which} lie between {low} and {high} of 255, almost all "
        f"{shade}: values of 0 to {FULL:,} (16 or 32 bits), −32,768 to 32,767 (16 bits with a "
        "sign) or 0 to 1 (floating point) are read as black to white. Scale the values of the file "
        "to this range."
    )
