"""Figures of answers: who takes what for what."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from densembed.figures.heatmaps import DENSITY_SCALE, _bar
from densembed.markup import for_plotly

HEIGHT = 400


def confusion_figure(counts: np.ndarray, classes: Sequence[str], top: float) -> go.Figure:
    """A confusion matrix (row the true class, column the answer), its mistakes coloured.

    The diagonal has its numbers but no colour: it would leave the mistakes dark.

    Args:
        top: end of the colour scale, the same for all that are compared.
    """
    mistakes = np.where(np.eye(len(classes)), np.nan, counts).astype(np.float32)
    return _matrix(mistakes, counts, classes, 0, top, DENSITY_SCALE, "mistakes", "d")


def confusion_difference_figure(
    change: np.ndarray, classes: Sequence[str], bound: float
) -> go.Figure:
    """One confusion matrix less another, on a scale from −bound to bound; as above."""
    mistakes = np.where(np.eye(len(classes)), np.nan, change).astype(np.float32)
    return _matrix(mistakes, change, classes, -bound, bound, "RdBu_r", "more mistakes", "+d")


def _matrix(
    values: np.ndarray, shown: np.ndarray, classes: Sequence[str], low: float, high: float,
    scale: str, name: str, form: str,
) -> go.Figure:  # fmt: skip
    names = [for_plotly(name) for name in classes]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=names,
            y=names,
            zmin=low,
            zmax=high,
            colorscale=scale,
            colorbar=_bar(name) | {"nticks": 7},
            text=[[format(int(count), form) if count else "" for count in row] for row in shown],
            texttemplate="%{text}" if len(classes) <= 20 else None,
            textfont={"size": 10},
            xgap=1,
            ygap=1,
            hoverongaps=False,
            hovertemplate="it is %{y}, the answer is %{x}: %{text}<extra></extra>",
        )
    )
    common = {"type": "category", "fixedrange": True, "showgrid": False, "constrain": "domain"}
    figure.update_xaxes(title="answer", side="top", **common)
    figure.update_yaxes(title="true class", autorange="reversed", scaleanchor="x", **common)
    return figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 44, "b": 56},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
