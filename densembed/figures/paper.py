"""The paper's Figure 1, and its tables as figures."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from densembed.fields.field import view
from densembed.figures.theme import (
    ACCENT,
    AFTER,
    BEFORE,
    DENSITY_SCALE,
    INK_SCALE,
    LEGEND,
    colour_bar,
    themed,
)
from densembed.figures.web import Panel, html_page
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint


def table_figure(rows: Sequence[dict]) -> go.Figure:
    """Published and reproduced test errors, with bars of ± one standard deviation.

    Args:
        rows: of `reproduce.table_report`.

    The axis is logarithmic if the errors differ by a large factor.
    """
    figure = go.Figure()
    names = [describe(row["model"]) for row in rows]
    series = (
        ("the paper", "paper_mean", "paper_deviation", ACCENT, "diamond", -APART),
        ("ours", "mean", "deviation", AFTER, "circle", APART),
    )
    for name, middle, deviation, colour, symbol, shift in series:
        figure.add_scatter(
            x=[row[middle] for row in rows],
            y=[k + shift for k in range(len(rows))],
            error_x={"array": [row[deviation] for row in rows], "thickness": 1.5, "width": 4},
            name=name,
            mode="markers",
            marker={"size": 9, "color": colour, "symbol": symbol, "line": {"width": 0}},
            customdata=[[of, row[deviation]] for of, row in zip(names, rows, strict=True)],
            hovertemplate="%{customdata[0]}<br>"
            + name
            + ": %{x:.2f} ± %{customdata[1]:.2f} %<extra></extra>",
        )
    means = [row[middle] for _, middle, *_ in series for row in rows]
    if max(means) > WIDE * min(means):
        figure.update_xaxes(type="log", tickvals=TICKS)
    figure.update_xaxes(title="test error, %")
    figure.update_yaxes(
        range=[len(rows) - 0.5, -0.5],
        tickvals=list(range(len(rows))),
        ticktext=[
            f"{name}<br><span style='font-size:0.85em'>{row['parameters']:,} parameters</span>"
            for name, row in zip(names, rows, strict=True)
        ],
        zeroline=False,
        fixedrange=True,
        automargin=True,
    )
    return themed(figure, height=60 + 44 * len(rows) + 60, top=32, legend=LEGEND)


APART = 0.14
"""Distance between the two marks of a row, so that their bars do not overlap."""
WIDE = 2.5
"""The largest error over the smallest from which the axis is logarithmic."""
TICKS = [1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80]


def times_figure(rows: Sequence[dict]) -> go.Figure:
    """Seconds per epoch, with bars of ± one standard deviation."""
    figure = go.Figure(
        go.Bar(
            x=[row["mean"] for row in rows],
            y=[describe(row["model"]) for row in rows],
            error_x={
                "array": [row["deviation"] for row in rows],
                "thickness": 1.5,
                "color": BEFORE,
            },
            orientation="h",
            marker={"color": AFTER},
            hovertemplate="%{y}: %{x:.2f} s<extra></extra>",
        )
    )
    figure.update_xaxes(title="seconds per epoch")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return themed(figure, height=60 + 34 * len(rows) + 40)


def figure1_part(
    rows: Sequence[tuple[np.ndarray | None, np.ndarray, np.ndarray]], top: float
) -> go.Figure:
    """A panel of Figure 1: the fields of one model before and after training, on one scale.

    Args:
        rows: for each input the image (C, H, W) as uint8, or None if the field is the same for
            every input, and the fields (C, H · r, W · r) before and after training.
        top: end of the colour scale, per square pixel.
    """
    titles = ["before training", "after training"]
    if rows[0][0] is not None:
        titles.insert(0, "input")
    figure = make_subplots(
        len(rows),
        len(titles),
        column_titles=titles,
        horizontal_spacing=0.03 / len(titles),
        vertical_spacing=0.03 / len(rows),
    )
    for row, (picture, *fields) in enumerate(rows, 1):
        if picture is not None:
            ink = go.Heatmap(
                z=picture.mean(0, dtype=np.float32) / 255,
                colorscale=INK_SCALE,
                zmin=0,
                zmax=1,
                showscale=False,
                hovertemplate="ink %{z:.2f}<extra></extra>",
            )
            figure.add_trace(ink, row, 1)
        for column, field in enumerate(fields, len(titles) - 1):
            heat = go.Heatmap(
                z=field.sum(0).astype(np.float32),
                coloraxis="coloraxis",
                hovertemplate="%{z:.4f} per pixel²<extra></extra>",
            )
            figure.add_trace(heat, row, column)
    for k in range(1, len(rows) * len(titles) + 1):
        number = k if k > 1 else ""
        figure.update_layout({f"yaxis{number}": {"scaleanchor": f"x{number}"}})
    hidden = {"visible": False, "constrain": "domain", "fixedrange": True}
    figure.update_xaxes(**hidden)
    figure.update_yaxes(autorange="reversed", **hidden)
    figure.update_annotations(font_size=13)
    return themed(
        figure,
        width=CELL * len(titles),
        height=CELL * len(rows) + 88,
        left=4,
        right=4,
        top=24,
        bottom=64,
        coloraxis={
            "cmin": 0,
            "cmax": top,
            "colorscale": DENSITY_SCALE,
            "colorbar": colour_bar("density per pixel²", (0, top)),
        },
    )


CELL = 250
"""Pixels per cell, if no page sets the size."""


FIGURE1 = ("logistic-el-mnn-10-5", "logistic-el-5", "logistic-el-15")
FIGURE1_INPUTS = 3


def figure1_of(checkpoints: dict[str, Checkpoint], pictures: torch.Tensor) -> dict[str, go.Figure]:
    """The panels of Figure 1, by model.

    Args:
        pictures: (3, C, H, W) uint8, the inputs of panel (a).
    """
    parts = {}
    for model in FIGURE1:
        moves = model == FIGURE1[0]
        inputs = pictures if moves else pictures[:1]
        views = [view(checkpoints[model], picture, [0, -1]) for picture in inputs]
        rows = [
            (picture.numpy() if moves else None, own.fields[0], own.fields[1])
            for picture, own in zip(inputs, views, strict=True)
        ]
        parts[model] = figure1_part(rows, max(own.top for own in views))
    return parts


def _cells(figure: go.Figure) -> float:
    """Number of rows of a panel of Figure 1 divided by its number of columns."""
    rows, columns = (
        len({axis.domain for axis in axes})
        for axes in (figure.select_yaxes(), figure.select_xaxes())
    )
    return rows / columns


def figure1_page(parts: dict[str, go.Figure]) -> str:
    """The panels of Figure 1 with their models' names, as one self-contained HTML page."""
    panels = [
        Panel(f"({part}) {describe(model)}", figure, _cells(figure))
        for part, (model, figure) in zip("abc", parts.items(), strict=True)
    ]
    return html_page("Figure 1: where the densities lie", [panels[:1], panels[1:]])
