"""Static fields: one, a few side by side, or one per class on one scale."""

from collections.abc import Sequence

import numpy as np

from pages.widgets.canvas.data import colours, pack
from pages.widgets.common.component import component

NAME, UNIT = "density per pixel²", "per pixel²"
CLASSES_IN_A_ROW = 5
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


def show_classes(
    fields: Sequence[np.ndarray],
    classes: Sequence[str],
    size: tuple[float, float],
    top: float,
    title: str,
    note: str,
    key: str,
    name: str = NAME,
) -> None:
    """One field (rows, columns) per class, on one colour scale from 0 to `top`.

    Args:
        name: of the quantity on the scale.
    """
    scale = colours(0, top, name, UNIT)
    figures = [
        still(values, size, scale, own, "", f"{title}, a heatmap, class")
        for values, own in zip(fields, classes, strict=True)
    ]
    shared = {"title": title, "note": note, "scale": scale}
    _stills(data={"figures": figures, "columns": CLASSES_IN_A_ROW, "shared": shared}, key=key)
