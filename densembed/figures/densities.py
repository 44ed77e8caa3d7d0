"""Figures of single densities and of many small fields."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.figures.heatmaps import as_image
from densembed.figures.theme import (
    AFTER,
    AGAINST,
    BEFORE,
    DENSITY_SCALE,
    FOR,
    colour_bar,
    themed,
)
from densembed.markup import for_plotly


def path_figure(
    places: np.ndarray, steps: Sequence[int], size: tuple[float, float], now: int
) -> go.Figure:
    """The path of one density over the steps.

    Args:
        places: its (column, row) at each step, in pixels.
        now: index of the step to highlight.
    """
    figure = go.Figure(
        go.Scatter(
            x=places[:, 0],
            y=places[:, 1],
            mode="lines+markers",
            line={"color": BEFORE, "width": 1},
            marker={
                "size": [14 if k == now else 6 for k in range(len(steps))],
                "color": [AFTER if k == now else BEFORE for k in range(len(steps))],
                "opacity": 1,
            },
            customdata=list(steps),
            hovertemplate="step %{customdata:,}<br>column %{x:.2f}, row %{y:.2f}<extra></extra>",
        )
    )
    width, height = size
    figure = as_image(figure, width, height)
    frame = {"type": "rect", "x0": 0, "y0": 0, "x1": width, "y1": height}
    return figure.add_shape(**frame, line={"color": BEFORE, "width": 1})


def weights_figure(weights: np.ndarray, classes: Sequence[str]) -> go.Figure:
    """The weight of one density for each class, as bars."""
    figure = go.Figure(
        go.Bar(
            x=weights,
            y=[for_plotly(name) for name in classes],
            orientation="h",
            marker={"color": [FOR if w > 0 else AGAINST for w in weights], "line": {"width": 0}},
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="weight", fixedrange=True)
    figure.update_yaxes(autorange="reversed", fixedrange=True, type="category")
    return themed(figure, top=28)


def atlas_figure(
    fields: Sequence[np.ndarray],
    names: Sequence[str],
    size: tuple[float, float],
    top: float,
    name: str,
    columns: int = 5,
) -> go.Figure:
    """Several fields (H · r, W · r) on one colour scale."""
    rows = -(-len(fields) // columns)
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=[for_plotly(own) for own in names],
        horizontal_spacing=0.01,
        vertical_spacing=0.08,
    )
    width, height = size
    for k, values in enumerate(fields):
        trace = go.Heatmap(
            z=values.astype(np.float32),
            x=(np.arange(values.shape[1]) + 0.5) * width / values.shape[1],
            y=(np.arange(values.shape[0]) + 0.5) * height / values.shape[0],
            coloraxis="coloraxis",
            hovertemplate="column %{x:.1f}, row %{y:.1f}<br>%{z:.4f} per pixel²<extra></extra>",
        )
        figure.add_trace(trace, k // columns + 1, k % columns + 1)
    figure.update_xaxes(visible=False, constrain="domain", fixedrange=True, range=[0, width])
    figure.update_yaxes(visible=False, constrain="domain", fixedrange=True, range=[height, 0])
    for k in range(1, len(fields) + 1):
        figure.update_layout({f"yaxis{k if k > 1 else ''}": {"scaleanchor": f"x{k}"}})
    return themed(
        figure,
        height=170 * rows + 86,
        left=4,
        right=4,
        top=24,
        bottom=72,
        margin_autoexpand=False,
        coloraxis={
            "cmin": 0,
            "cmax": top,
            "colorscale": DENSITY_SCALE,
            "colorbar": colour_bar(name, (0, top)),
        },
    )
