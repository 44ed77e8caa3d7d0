"""Static fields: one, or a few side by side."""

from collections.abc import Sequence

import numpy as np

from pages.widgets.canvas.data import pack
from pages.widgets.common.component import component

NAME, UNIT = "density per pixel²", "per pixel²"
SIGNAL_NAME, SIGNAL_UNIT = "density per sample", "per sample"
_stills = component("densembed/panels/stills", "densembed/panels/panel.css")


def still(
    values: np.ndarray,
    size: tuple[float, float],
    scale: dict,
    title: str,
    note: str,
    alt: str,
    colour: str | None = None,
) -> dict:
    """One field (rows, columns) with its texts; `alt` is its text for screen readers.

    Args:
        size: width and height of the picture in pixels; of a signal its length and 1.
        scale: as `colours` makes it.
        colour: of a signal, whose rows are drawn as curves over its one axis.
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
        "curves": colour and {"colours": [colour], "signs": None},
        **pack(values[None]),
    }


def show_stills(figures: Sequence[dict], key: str) -> None:
    """Fields side by side, each with its own colour bar; curves one above the other."""
    columns = 1 if figures[0]["curves"] else len(figures)
    _stills(data={"figures": figures, "columns": columns, "shared": None}, key=key)
