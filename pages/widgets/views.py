"""The ways to show a receptive field: its sum, over the input, differences, densities, a class."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from torch import Tensor

from densembed.checkpoint import Checkpoint
from densembed.data import as_input
from densembed.density_figures import channels_figure, densities_figure, over_input_figure
from densembed.fields import TOP_PERCENTILE, View
from densembed.figures import difference_figure, field_figure
from densembed.meaning import class_weights, densities, measure, moved, weighted_field
from pages.widgets.page import CHART, name_wrong_link

FIELD, OVER, DIFFERENCE = "field", "on the input", "difference"
DENSITIES, CLASS, CHANNELS = "densities", "class weight", "by channel"
ANSWER = "its answer"
BOUND_PERCENTILE = 97
"""Of the weights: their colour scale ends there, else a few large ones leave the others grey."""


@dataclass(frozen=True)
class Show:
    """What is drawn: the way, the opacity over the input, and the index of the class."""

    way: str
    opacity: float
    label: int


def ways(checkpoint: Checkpoint) -> list[str]:
    """Those that make sense for a model."""
    linear = class_weights(checkpoint.model()) is not None
    return [
        FIELD,
        OVER,
        DIFFERENCE,
        *([DENSITIES] if checkpoint.has_densities else []),
        *([CLASS] if linear else []),
        *([CHANNELS] if _in_colours(checkpoint) else []),
    ]


def _in_colours(checkpoint: Checkpoint) -> bool:
    """Whether each of three channels has densities of its own."""
    embedding = checkpoint.model().embedding
    return checkpoint.has_densities and embedding.groups == embedding.in_channels == 3


def pick_show(checkpoint: Checkpoint, answer: int, asks_class: bool = False) -> Show:
    """Widgets for the way to show the field, and for what that way asks.

    Args:
        answer: index of the class that the model says, the one shown unless another is chosen.
        asks_class: whether something else on the page needs the class.
    """
    options, classes = ways(checkpoint), checkpoint.header.classes
    opacity, label = 0.6, answer
    name_wrong_link("show", options)
    with st.container(horizontal=True):
        way = st.segmented_control(
            "Show", options, default=FIELD, key="show", bind="query-params", required=True,
            wrap=True,
        )  # fmt: skip
        if way == OVER:
            opacity = st.slider(
                "Opacity", 0.0, 1.0, 0.6, 0.1, key="opacity", bind="query-params", width=150,
            )  # fmt: skip
        if way == CHANNELS:
            st.caption("The densities of each channel in its own light: white where all three look")
        if way in (DENSITIES, CLASS) or asks_class:
            name_wrong_link("for", [ANSWER, *classes])
            chosen = st.selectbox(
                "For the class", [ANSWER, *classes], key="for", bind="query-params", width=150,
            )  # fmt: skip
            label = answer if chosen == ANSWER else classes.index(chosen)
    return Show(way, opacity, label)


def choose_density(key: str) -> None:
    """A click on a density in the chart of that key opens it below."""
    for point in st.session_state[key].selection.points:
        if point.get("customdata"):  # of all traces only the dots have it
            st.session_state["density"] = point["point_index"] + 1
            st.session_state["more"] = "One density"


def density_number(count: int) -> int:
    """The density that is open, from 1: the one clicked or typed, else the link's."""
    asked = st.query_params.get("density", "1")
    linked = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 7 else 1
    return min(max(st.session_state.get("density") or linked, 1), count)


def draw_field(
    key: str, name: str, show: Show, checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int,
) -> None:  # fmt: skip
    """The chart of one snapshot, in the chosen way."""
    alt = f"Receptive field {name}, a heatmap of the sum of the densities"
    choosing = {}
    if show.way == OVER:
        figure = over_input_figure(
            pixels.numpy(), seen.fields[index], seen.x, seen.y, seen.top, show.opacity
        )
        alt += " over the input"
    elif show.way == DIFFERENCE and index:
        change = seen.fields[index] - seen.fields[0]
        figure = difference_figure(change, seen.x, seen.y, seen.top)
        alt = f"Receptive field {name} less the one before training"
    elif show.way == DENSITIES:
        figure = _densities(show, checkpoint, pixels, index)
        alt = f"Densities {name} as ellipses, coloured by their weight for a class"
        choosing = {"on_select": lambda: choose_density(key), "selection_mode": "points"}
    elif show.way == CLASS:
        figure = _class_field(show, checkpoint, pixels, seen, index)
        alt = f"Densities {name} times their weights for a class, summed"
    elif show.way == CHANNELS:
        top = max(float(np.percentile(seen.fields[k], TOP_PERCENTILE)) for k in (0, -1))
        figure = channels_figure(seen.fields[index], seen.x, seen.y, top)
        alt = f"Receptive fields of red, green and blue {name}, each in its own light"
    else:
        figure = field_figure(seen.fields[index], seen.x, seen.y, seen.top)
    st.plotly_chart(figure, key=key, config=CHART, alt=alt, **choosing)


def _densities(show: Show, checkpoint: Checkpoint, pixels: Tensor, index: int) -> go.Figure:
    x = as_input(pixels[None])
    weights = densities(checkpoint.model(), x).weights
    shown = densities(checkpoint.model(index), x)
    opened = st.session_state.get("more") == "One density"
    return densities_figure(
        pixels.numpy(), shown, show.label, checkpoint.header.classes[show.label],
        1.0 if weights is None else float(np.percentile(abs(weights), BOUND_PERCENTILE)),
        density_number(len(shown.loc)) - 1 if opened else None,
    )  # fmt: skip


def class_field(checkpoint: Checkpoint, pixels: Tensor, label: int, index: int) -> np.ndarray:
    """Σ_i w_ci φ_i of one snapshot."""
    model = checkpoint.model(index)
    return weighted_field(model, as_input(pixels[None]), class_weights(model)[label])


def _class_field(
    show: Show, checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int
) -> go.Figure:
    ends = [abs(class_field(checkpoint, pixels, show.label, k).sum(0)) for k in (0, -1)]
    bound = max(float(np.percentile(end, TOP_PERCENTILE)) for end in ends)
    values = class_field(checkpoint, pixels, show.label, index)
    name = f"weight for {checkpoint.header.classes[show.label]} × density per pixel²"
    return difference_figure(values, seen.x, seen.y, bound, name)


def numbers_line(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int) -> None:
    """Centre, spread and the like of the shown field as one quiet line."""
    found = measure(seen.fields[index], seen.fields[0], seen.x, seen.y)
    total = round(seen.x[0] + seen.x[-1]) * round(seen.y[0] + seen.y[-1])
    parts = [
        f"centre {found.centre[0]:.1f}, {found.centre[1]:.1f}",
        f"spread {found.spread:.1f} pixels",
        f"entropy {found.entropy:.1f} of {np.log2(total):.1f} bits",
        f"90 % of the mass in {found.area:.0f} of {total} pixels",
    ]
    if checkpoint.has_densities:
        x = as_input(pixels[None])
        first, now = (densities(checkpoint.model(k), x) for k in (0, index))
        parts.append(f"densities moved {moved(first, now):.1f} pixels from before")
    st.caption(" · ".join(parts))
