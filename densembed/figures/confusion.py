"""Confusion matrices."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from densembed.figures.theme import DENSITY_SCALE, SIGNED_SCALE, colour_bar, themed
from densembed.markup import for_plotly

HEIGHT = 400
TICKS = 3
"""Most ticks of a colour bar on either side of 0."""


def confusion_figure(counts: np.ndarray, classes: Sequence[str], top: float) -> go.Figure:
    """A confusion matrix: rows are true classes, columns are predictions.

    The diagonal is not coloured, since its large counts would leave the mistakes dark.

    Args:
        top: end of the colour scale, the same for all matrices that are compared.
    """
    mistakes = np.where(np.eye(len(classes)), np.nan, counts).astype(np.float32)
    return _matrix(mistakes, counts, classes, 0, top, DENSITY_SCALE, "mistakes", "d")


def confusion_difference_figure(
    change: np.ndarray, classes: Sequence[str], bound: float
) -> go.Figure:
    """The difference of two confusion matrices, on a scale from −bound to bound."""
    mistakes = np.where(np.eye(len(classes)), np.nan, change).astype(np.float32)
    return _matrix(mistakes, change, classes, -bound, bound, SIGNED_SCALE, "more mistakes", "+d")


def _matrix(
    values: np.ndarray,
    shown: np.ndarray,
    classes: Sequence[str],
    low: float,
    high: float,
    scale: str,
    name: str,
    form: str,
) -> go.Figure:
    names = [for_plotly(name) for name in classes]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=names,
            y=names,
            zmin=low,
            zmax=high,
            colorscale=scale,
            colorbar=colour_bar(name, dtick=math.ceil(high / TICKS)),
            text=[
                [format(int(count), form).replace("-", "−") if count else "" for count in row]
                for row in shown
            ],
            texttemplate="%{text}" if len(classes) <= 20 else None,
            textfont={"size": 10},
            xgap=1,
            ygap=1,
            hoverongaps=False,
            hovertemplate="true class %{y}, prediction %{x}: %{text}<extra></extra>",
        )
    )
    common = {"type": "category", "fixedrange": True, "showgrid": False, "constrain": "domain"}
    figure.update_xaxes(title="prediction", side="top", **common)
    figure.update_yaxes(title="true class", autorange="reversed", scaleanchor="x", **common)
    return themed(figure, height=HEIGHT, top=44, bottom=56)
