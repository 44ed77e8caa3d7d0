"""Brings a digit to the size and position of MNIST's digits."""

import numpy as np

from densembed.data.ink import resample

BOX = 20 / 28
"""The digit's longer side as a fraction of the image: 20 of MNIST's 28 pixels."""

EDGE = 0.25
"""Minimum ink of a pixel in the digit's bounding box, which excludes faint pixels."""


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
