"""The colours of all figures, and the Plotly template that they share.

`.streamlit/config.toml` repeats `BEFORE` and `AFTER`, since it cannot import them.
"""

from typing import Any

import plotly.graph_objects as go
import plotly.io
from plotly.colors import get_colorscale, hex_to_rgb, unlabel_rgb

BEFORE, AFTER = "#9aa3ad", "#2f6f9f"
"""What is compared: before and after training, the others and the selected one."""
ACCENT = "#d1892b"
SERIES = (AFTER, ACCENT, "#3a9d78", "#b0609f", "#8a6fa8", BEFORE)
"""Distinct for colour-blind readers and in both themes."""
AGAINST, FOR = "#4393c3", "#d6604d"
"""Evidence against and for a class, negative and positive: stops of `SIGNED_SCALE`."""
DENSITY_SCALE, SIGNED_SCALE, INK_SCALE = "Cividis", "RdBu_r", "Greys_r"
CLEAR = "rgba(0,0,0,0)"
GRID = "rgba(128,128,128,0.25)"
HEIGHT = 380
"""Pixels of a figure in a row of figures."""
LEGEND = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"}
"""A legend above the plot."""
TEMPLATE = "densembed"

_axis = {"gridcolor": GRID, "zerolinecolor": GRID, "automargin": True, "title": {"standoff": 8}}
plotly.io.templates[TEMPLATE] = go.layout.Template(
    data={"scatter": [{"marker": {"line": {"width": 0}}}]},
    layout={
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "colorway": SERIES,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "xaxis": _axis,
        "yaxis": _axis,
    },
)


def themed(
    figure: go.Figure,
    *,
    height: int = HEIGHT,
    left: int = 8,
    right: int = 8,
    top: int = 8,
    bottom: int = 48,
    **layout: Any,
) -> go.Figure:
    """Apply the template, a height and margins in pixels, and further properties of the layout.

    Margins and backgrounds are not left to the template, whose values Streamlit replaces.
    """
    return figure.update_layout(
        template=TEMPLATE,
        height=height,
        margin={"l": left, "r": right, "t": top, "b": bottom},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        **layout,
    )


def clipped_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Places and labels of the ticks of a colour scale that fields exceed, as the pages have them.

    >>> clipped_ticks(-2, 2)
    ([-2, 0.0, 2], ['≤ −2', '0', '≥ 2'])
    """
    places = [low, (low + high) / 2, high]
    first, middle, last = (f"{place:.3g}".replace("-", "−") for place in places)
    return places, [f"≤ {first}" if low < 0 else first, middle, f"≥ {last}"]


def colour_bar(
    title: str, clipped: tuple[float, float] | None = None, **properties: Any
) -> dict[str, Any]:
    """A thin horizontal colour bar under the plot.

    Args:
        clipped: ends of a scale that values exceed, which its labels then say.
    """
    if clipped:
        places, labels = clipped_ticks(*clipped)
        properties = {"tickvals": places, "ticktext": labels, "len": 0.84, **properties}
    return {
        "orientation": "h",
        "x": 0.5,
        "y": 0,
        "yanchor": "top",
        "thickness": 8,
        "len": 0.9,
        "outlinewidth": 0,
        "nticks": 4,
        "title": {"text": title, "side": "bottom", "font": {"size": 12}},
        **properties,
    }


def rgb(colour: str) -> tuple[float, ...]:
    """Red, green and blue from 0 to 255 of a colour as Plotly's scales contain it."""
    return hex_to_rgb(colour) if colour.startswith("#") else unlabel_rgb(colour)


def stops(scale: str) -> list[tuple[float, str]]:
    """The stops of one of Plotly's scales: shares from 0 to 1, and hexadecimal colours."""
    return [
        (share, "#" + "".join(f"{round(part):02x}" for part in rgb(colour)))
        for share, colour in get_colorscale(scale)
    ]


def translucent(colour: str, opacity: float) -> str:
    """A hexadecimal colour as CSS with an opacity."""
    return f"rgba({','.join(map(str, hex_to_rgb(colour)))},{opacity:g})"
