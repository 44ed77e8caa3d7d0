"""Test error of one set of weights by the grid of its inputs."""

import plotly.graph_objects as go

from densembed.experiments.resolution import errors_by_side, trained_on
from densembed.figures.paper import TICKS
from densembed.figures.theme import ACCENT, AFTER, BEFORE, LEGEND, themed
from densembed.models.names import describe

LOOKS = ((BEFORE, "dot"), (ACCENT, "dash"), (AFTER, "solid"))
MARKED = (7, 10, 14, 20, 28, 42, 56, 84, 112)
"""Pixels along each axis that are written at the axis."""


def resolution_figure(table: dict) -> go.Figure:
    """Test error by the pixels along each axis, both logarithmic."""
    figure = go.Figure()
    for row, (colour, dash) in zip(table["rows"], LOOKS, strict=False):
        words = f"{describe(row['model'])}<br>trained on {trained_on(row, table['own'])}"
        errors = errors_by_side(row)
        figure.add_scatter(
            x=list(errors),
            y=list(errors.values()),
            name=words,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            hovertemplate=f"{words}<br>%{{x}} pixels along each axis: %{{y:.2f}} %<extra></extra>",
        )
    figure.update_xaxes(
        title="pixels along each axis (logarithmic)", type="log", tickvals=MARKED, tickangle=0
    )
    figure.update_yaxes(title="test error, % (logarithmic)", type="log", tickvals=TICKS)
    return themed(figure, height=440, top=96, legend={**LEGEND, "y": 1.08})
