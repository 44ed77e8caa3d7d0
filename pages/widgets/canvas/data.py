"""What components show: encoded fields, colour scales, pictures."""

import base64

import numpy as np
from torch import Tensor

from densembed.data.codec import to_png
from densembed.fields.field import LARGEST, finite
from densembed.figures.theme import DENSITY_SCALE, SIGNED_SCALE, stops

LEVELS = 65535
"""A field has 16 bits per cell: the error is at most 1/131070 of the range over all steps."""


def pack(values: np.ndarray) -> dict:
    """Numbers (steps, rows, columns) with 16 bits each between the lowest and the highest."""
    values = finite(values)
    low, high = float(values.min()), float(values.max())
    shares = (values.astype(np.float64) - low) / ((high - low) or 1)
    packed = np.rint(LEVELS * shares).astype("<u2")
    return {"stack": text(packed), "shape": values.shape[1:], "low": low, "high": high}


def as_url(pixels: Tensor) -> str:
    """A picture as a data URL."""
    return "data:image/png;base64," + base64.b64encode(to_png(pixels)).decode()


def text(values: np.ndarray) -> str:
    """The bytes of an array in base 64."""
    return base64.b64encode(values.tobytes()).decode()


def colours(low: float, high: float, name: str, unit: str, scale: str | None = None) -> dict:
    """A colour scale: its ends, its name and unit, its stops.

    Args:
        scale: name of a Plotly scale. By default the scale of signed fields if `low` is negative,
            else the scale of densities; a few of the highest values may then exceed the ends.
    """
    low, high = (float(np.clip(np.nan_to_num(end), -LARGEST, LARGEST)) for end in (low, high))
    return {
        "low": low,
        "high": high if high > low else low + 1,
        "name": name,
        "unit": unit,
        "open": scale is None,
        "stops": stops(scale or (SIGNED_SCALE if low < 0 else DENSITY_SCALE)),
    }
