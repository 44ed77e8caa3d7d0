"""Static fields: one, or a few side by side."""

from collections.abc import Sequence

import numpy as np

from pages.widgets.canvas.data import pack
from pages.widgets.common.component import component

NAME, UNIT = "density per pixel²", "per pixel²"
_stills = component("densembed/panels/stills", "densembed/panels/panel.css")


def still(
    values: np.ndarray, size: tuple[float, float], scale: dict, title: str, note: str, alt: str
) -> dict:
    """One field (rows, columns) with its texts; `alt` is its text for screen readers.

    Args:
        size: width and height of the picture in pixels.
        scale: as `colours` makes it.
    """
    return {
        "title": title,
        "note": note,
        "alt": alt,
        "size": [round(side) for side in size],
        "scale": scale,
        "contours": False,
        "dots": None,
        "picture": None,
        **pack(values[None]),
    }


def show_stills(figures: Sequence[dict], key: str) -> None:
    """Fields side by side, each with its own colour bar."""
    _stills(data={"figures": figures, "columns": len(figures), "shared": None}, key=key)
