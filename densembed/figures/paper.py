"""The paper's Figure 1, and its tables as figures."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from densembed.data import Dataset
from densembed.experiments.paper import TABLES
from densembed.experiments.report import deviation, plus_minus
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
from densembed.text import unknown
from densembed.training.checkpoint import Checkpoint


def table_figure(by_recipe: Mapping[str, Sequence[dict]]) -> go.Figure:
    """Published test errors and ours with each recipe, with bars of ± one standard deviation.

    The axis fits the published errors and all models with densities; our errors beyond it are
    written at its end. It is logarithmic if the errors differ by a large factor.

    A model has one place, whichever recipes have a row of it, in the order of the paper's table.

    Args:
        by_recipe: the rows of `reproduce.table_report` by recipe, at least one in all.
    """
    of_model = {row["model"]: row for own in by_recipe.values() for row in own}
    rows: Sequence[dict] = sorted(of_model.values(), key=_place_in_paper)
    place = {row["model"]: k for k, row in enumerate(rows)}
    ours = len(by_recipe)
    series = [("the paper", "paper_", rows, ACCENT, "diamond")]
    for (recipe, own), colour in zip(by_recipe.items(), (AFTER, OTHER), strict=False):
        series.append((f"ours, recipe {recipe}", "", own, colour, "circle"))
    bounds = [
        row[f"{prefix}mean"] + sign * (deviation(row, prefix) or 0)
        for _, prefix, own, *_ in series
        for row in own
        for sign in (-1, 1)
        if prefix or "-el-" in row["model"]
    ]
    log = max(bounds) > WIDE * min(bounds)
    low, high = _padded(min(bounds), max(bounds), log)
    figure = go.Figure()
    for k, (name, prefix, own, colour, symbol) in enumerate(series):
        middle = f"{prefix}mean"
        beyond = [row[middle] > high for row in own]
        marks = list(zip(own, beyond, strict=True))
        figure.add_scatter(
            x=[min(row[middle], high) for row in own],
            y=[place[row["model"]] + APART * (k - ours / 2) for row in own],
            error_x={
                "array": [None if far else deviation(row, prefix) for row, far in marks],
                "thickness": 1.5,
                "width": 3,
            },
            name=name,
            mode="markers+text",
            text=[f"{row[middle]:.2f} % →" if far else "" for row, far in marks],
            textposition="middle left",
            cliponaxis=False,
            marker={
                "size": 8,
                "color": colour,
                "symbol": ["triangle-right" if far else symbol for far in beyond],
            },
            customdata=[[describe(row["model"]), plus_minus(row, prefix)] for row in own],
            hovertemplate="%{customdata[0]}<br>" + name + ": %{customdata[1]} %<extra></extra>",
        )
    if log:
        figure.update_xaxes(type="log", tickvals=TICKS, range=[math.log10(low), math.log10(high)])
    else:
        figure.update_xaxes(range=[low, high])
    figure.update_xaxes(title="test error, %", tickangle=0)
    figure.update_yaxes(
        range=[len(rows) - 0.5, -0.5],
        tickvals=list(range(len(rows))),
        ticktext=[
            # A long name has two lines, which leaves a phone some room for the plot.
            f"{describe(row['model']).replace('with mNN, ', 'with mNN,<br>')}<br>"
            f"<span style='font-size:0.85em'>{row['parameters']:,} parameters</span>"
            for row in rows
        ],
        zeroline=False,
        fixedrange=True,
        automargin=True,
    )
    return themed(figure, height=60 + 54 * len(rows) + 60, top=32, legend=LEGEND)


def _place_in_paper(row: Mapping[str, Any]) -> int:
    """The place of a row's model in the paper's tables, which have the same models."""
    models = [published.model for published in TABLES["mnist"]]
    return models.index(row["model"]) if row["model"] in models else len(models)


def _padded(low: float, high: float, log: bool) -> tuple[float, float]:
    """The ends of an axis, a little beyond the lowest and the highest value."""
    if log:
        factor = (high / low) ** PADDING
        return low / factor, high * factor
    return low - PADDING * (high - low), high + PADDING * (high - low)


PADDING = 0.04
"""Share of the axis that is empty at each end."""
OTHER = "#3a9d78"
"""The second of our recipes."""
APART = 0.22
"""Distance between the marks of a row, so that their bars do not overlap."""
WIDE = 2.5
"""The largest error over the smallest from which the axis is logarithmic."""
TICKS = [1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 80]


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
FIGURE1_INPUTS = ("7", "2", "1")
"""The classes whose first test images are the inputs of panel (a)."""


def usual_inputs(tested: Sequence[str]) -> tuple[str, ...]:
    """The classes of Figure 1's inputs; for one that has no test images, another class.

    Args:
        tested: the classes with test images, at least one.
    """
    return tuple(
        name if name in tested else tested[k % len(tested)] for k, name in enumerate(FIGURE1_INPUTS)
    )


def check_inputs(classes: Sequence[str]) -> None:
    """Raises ValueError unless there are as many classes as Figure 1 has inputs."""
    if len(classes) != len(FIGURE1_INPUTS):
        raise ValueError(f"Figure 1 has three inputs; got {len(classes)}: write three classes.")


def first_images(dataset: Dataset, classes: Sequence[str]) -> torch.Tensor:
    """The first test image of each of three classes, (3, C, H, W) uint8.

    Raises:
        ValueError: a class has no test images.
    """
    for name in classes:
        if name not in dataset.tested:
            raise ValueError(
                f"{unknown('class', name, dataset.tested)}; {dataset.title} has test images of "
                f"{', '.join(dataset.tested)}."
            )
    labels = [dataset.classes.index(name) for name in classes]
    return torch.stack([dataset.test.images[dataset.test.labels == label][0] for label in labels])


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


def figure1_page(title: str, parts: dict[str, go.Figure]) -> str:
    """The panels of Figure 1 with their models' names, as one self-contained HTML page."""
    panels = [
        Panel(f"({part}) {describe(model)}", figure, _cells(figure))
        for part, (model, figure) in zip("abc", parts.items(), strict=True)
    ]
    return html_page(title, [panels[:1], panels[1:]])
