"""Figures of many small fields."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.figures.theme import DENSITY_SCALE, colour_bar, themed
from densembed.markup import for_plotly


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
