"""A chart that is redrawn during training, and keeps its zoom.

Streamlit makes a new chart of each new figure, so Plotly itself cannot keep the zoom: an invisible
component sends the visible range of the axes to the page, and the next figure is drawn with it.
"""

import math

import plotly.graph_objects as go

from pages.widgets.common.component import component

_follow = component("pages/common/zoom")
DOUBLE_CLICK = {"doubleClick": "autosize"}
"""For the chart's config: a double click shows the whole chart, not the range of the last zoom."""


def keep_zoom(figure: go.Figure, chart: str, name: str) -> None:
    """Give a figure the zoom of an earlier figure with the same name.

    To be called before the chart of the key `chart` is drawn.
    """
    axes = [axis for axis in figure.layout if axis[1:].startswith("axis")]
    state = _follow(
        data={"chart": chart, "axes": axes, "name": name},
        key=f"zoom-{chart}",
        on_range_change=lambda: None,
    )
    zoom = state.range if isinstance(state.range, dict) else {}
    if zoom.get("name") != name or not isinstance(zoom.get("axes"), dict):
        return
    for axis in axes:
        if _is_range(ends := zoom["axes"].get(axis)):
            figure.layout[axis].range = ends


def _is_range(ends: object) -> bool:
    return (
        isinstance(ends, list)
        and len(ends) == 2
        and all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    )
