"""A chart that is redrawn during training, and keeps its zoom.

Streamlit makes a new chart of each new figure, so Plotly itself cannot keep the zoom: an invisible
component sends the visible range of the axes to the page, and the next figure is drawn with it.
"""

import math

import plotly.graph_objects as go
import streamlit as st

JS = """
export default function({ data, setStateValue }) {
  const listen = () => {
    const plot = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!plot?.on || plot.followed) return;
    plot.followed = true;
    plot.on("plotly_relayout", (change) => {
      if (!Object.keys(change).some((name) => /axis[0-9]*[.](range|autorange)/.test(name))) return;
      const seen = {};
      for (const axis of data.axes) {
        const { autorange, range } = plot.layout[axis] ?? {};
        if (range && !autorange) seen[axis] = [...range];
      }
      setStateValue("seen", { name: data.name, axes: seen });
    });
  };
  const timer = setInterval(listen, 100);
  return () => clearInterval(timer);
}
"""
_follow = st.components.v2.component("zoom", js=JS)
DOUBLE_CLICK = {"doubleClick": "autosize"}
"""For the chart's config: a double click shows the whole chart, not the range of the last zoom."""


def keep_zoom(figure: go.Figure, chart: str, name: str) -> None:
    """Give a figure the zoom of an earlier figure with the same name.

    To be called before the chart of the key `chart` is drawn.
    """
    axes = [axis for axis in figure.layout if axis[1:].startswith("axis")]
    state = _follow(
        data={"chart": chart, "axes": axes, "name": name}, key=f"zoom-{chart}",
        on_seen_change=lambda: None,
    )  # fmt: skip
    seen = state.seen if isinstance(state.seen, dict) else {}
    if seen.get("name") != name or not isinstance(seen.get("axes"), dict):
        return
    for axis in axes:
        if _is_range(ends := seen["axes"].get(axis)):
            figure.layout[axis].range = ends


def _is_range(ends: object) -> bool:
    return (
        isinstance(ends, list)
        and len(ends) == 2
        and all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    )
