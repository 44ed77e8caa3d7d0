"""The paper's figures, and its tables as pictures."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.figures import AFTER, BEFORE, DENSITY_SCALE
from densembed.models import describe

CLEAR = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}


def table_figure(rows: Sequence[dict]) -> go.Figure:
    """Test errors with bars of ± a standard deviation: the paper's, and ours under it.

    Args:
        rows: of `reproduce.as_json`; each may hold several results, {recipe: row}.
    """
    figure = go.Figure()
    names = [describe(row["model"]) for row in rows]
    series = [("the paper", "paper_mean", "paper_deviation", BEFORE, "diamond-open")]
    series.append(("ours", "mean", "deviation", AFTER, "circle"))
    for name, middle, deviation, colour, symbol in series:
        figure.add_scatter(
            x=[row[middle] for row in rows],
            y=names,
            error_x={"array": [row[deviation] for row in rows], "thickness": 1.5, "width": 4},
            name=name,
            mode="markers",
            marker={"size": 10, "color": colour, "symbol": symbol},
            customdata=[row[deviation] for row in rows],
            hovertemplate="%{y}<br>" + name + ": %{x:.2f} ± %{customdata:.2f} %<extra></extra>",
        )
    figure.update_xaxes(title="test error, % (logarithmic)", type="log", tickvals=TICKS)
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        height=60 + 40 * len(rows) + 60,
        margin={"l": 8, "r": 8, "t": 32, "b": 48},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        **CLEAR,
    )
    return figure


TICKS = [1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70]


def times_figure(rows: Sequence[dict]) -> go.Figure:
    """Seconds an epoch, mean and standard deviation over the runs."""
    figure = go.Figure(
        go.Bar(
            x=[row["mean"] for row in rows],
            y=[describe(row["model"]) for row in rows],
            error_x={"array": [row["deviation"] for row in rows], "thickness": 1.5},
            orientation="h",
            marker={"color": AFTER},
            hovertemplate="%{y}: %{x:.2f} s<extra></extra>",
        )
    )
    figure.update_xaxes(title="seconds an epoch")
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        height=60 + 34 * len(rows) + 40, margin={"l": 8, "r": 8, "t": 8, "b": 48}, **CLEAR
    )
    return figure


def figure1(
    pictures: Sequence[np.ndarray],
    moving: Sequence[tuple[np.ndarray, np.ndarray]],
    fixed: Sequence[tuple[str, np.ndarray, np.ndarray]],
    tops: tuple[float, float],
) -> go.Figure:
    """Figure 1: (a) inputs and the fields that they get, (b, c) the fields that are the same.

    Args:
        pictures: inputs (C, H, W) as uint8.
        moving: for each of them the field before and after training, (C, H · r, W · r).
        fixed: name, field before, field after.
        tops: end of the colour scale of the moving fields and of the fixed ones.
    """
    count = len(pictures) + len(fixed)
    titles = ["input", "before training", "after training"]
    figure = make_subplots(
        count, 3, column_titles=titles, horizontal_spacing=0.03, vertical_spacing=0.02
    )
    for row, (picture, fields) in enumerate(zip(pictures, moving, strict=True), 1):
        _heat(figure, row, 1, picture[0] / 255, "Greys_r", 1.0)
        for column, field in enumerate(fields, 2):
            _heat(figure, row, column, field.sum(0), DENSITY_SCALE, tops[0])
    for row, (name, *fields) in enumerate(fixed, len(pictures) + 1):
        figure.add_annotation(
            text=name + "<br>the same for every input",
            row=row, col=1, x=0.5, y=0.5, showarrow=False, font={"size": 13},
        )  # fmt: skip
        for column, field in enumerate(fields, 2):
            _heat(figure, row, column, field.sum(0), DENSITY_SCALE, tops[1])
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, constrain="domain")
    figure.update_layout(
        height=220 * count, width=680, margin={"l": 8, "r": 8, "t": 40, "b": 8}, **CLEAR
    )
    return figure


def _heat(figure, row, column, values, scale, top) -> None:
    heat = go.Heatmap(
        z=values.astype(np.float32), colorscale=scale, zmin=0, zmax=top, showscale=False
    )
    figure.add_trace(heat, row, column)
    axis = figure.get_subplot(row, column).yaxis.anchor
    figure.update_yaxes(autorange="reversed", scaleanchor=axis, row=row, col=column)
