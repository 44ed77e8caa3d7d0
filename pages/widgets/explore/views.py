"""The ways to show a receptive field: the sum, over the input, differences, densities, a class."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.data import as_input
from densembed.fields.field import View, finite
from densembed.fields.measures import (
    MASS,
    Densities,
    class_weights,
    densities,
    mean_displacement,
    measure,
    weighted_field,
)
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.cache import kept, response_of
from pages.widgets.common.parameter import Flag, Numbers, Parameter, Slugs

FIELD, OVER, DIFFERENCE, SWIPE = "field", "overlay", "difference", "swipe"
PIXELS, DENSITIES, CLASS = "pixels", "densities", "class"
WAYS = {
    FIELD: "field",
    OVER: "over the input",
    DIFFERENCE: "difference",
    SWIPE: "swipe",
    PIXELS: "per pixel",
    DENSITIES: "densities",
    CLASS: "weight for a class",
}
OLD_WAYS = {"on the input": OVER, "class weight": CLASS}
PREDICTED, OLD_PREDICTED = "predicted", {"its answer": "predicted"}
TOGETHER, COLOURS = "together", ["red", "green", "blue"]
OPACITY = Parameter("opacity", "Opacity", Numbers(0.0, 1.0), 0.6)
CONTOURS = Parameter("contours", "Contours", Flag(), False)


@dataclass(frozen=True)
class Show:
    """What is drawn: the way, the opacity over the input, the index of the class, contours.

    `channel` is the index of the colour whose field is shown, None for their sum.
    """

    way: str
    opacity: float
    label: int
    contours: bool
    channel: int | None = None


def ways(checkpoint: Checkpoint) -> list[str]:
    """The ways that apply to a model."""
    linear = class_weights(checkpoint.network()) is not None
    return [
        FIELD,
        OVER,
        DIFFERENCE,
        SWIPE,
        *([PIXELS, DENSITIES] if checkpoint.has_densities else []),
        *([CLASS] if linear else []),
    ]


def pick_show(checkpoint: Checkpoint, answer: int, asks_class: bool = False) -> Show:
    """Widgets for the way to show the field, and for the settings of that way.

    Args:
        answer: index of the class that the model predicts after training, the default.
        asks_class: whether another part of the page needs the class.
    """
    classes = checkpoint.header.classes
    colours = [TOGETHER, *COLOURS] if checkpoint.header.input_shape[0] == len(COLOURS) else []
    shown = Slugs({way: WAYS[way] for way in ways(checkpoint)}, OLD_WAYS)
    labels = Slugs([PREDICTED, *classes], OLD_PREDICTED)
    of_class = Parameter("for", "For class", labels, PREDICTED)
    of_colour = Parameter(
        "channel", "Channel", Slugs(colours), TOGETHER,
        "" if colours else "available for a model of grey pictures",
    )  # fmt: skip
    collapsed = {"label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center"):
        way = Parameter("show", "Show", shown, FIELD).draw(
            st.segmented_control, required=True, wrap=True, **collapsed
        )
        opacity, label, contours, channel = OPACITY.default, answer, False, None
        if way == OVER:
            opacity = OPACITY.draw(
                st.slider, step=0.1, format="opacity %.1f", width=150, **collapsed
            )
        else:
            OPACITY.drop()
        if way in (DENSITIES, CLASS) or asks_class:
            st.markdown("for class", width="content")
            chosen = of_class.draw(st.selectbox, width=140, **collapsed)
            label = answer if chosen == PREDICTED else classes.index(chosen)
        else:
            of_class.drop()
        if way != DENSITIES:
            contours = CONTOURS.draw(st.toggle)
        else:
            CONTOURS.drop()
        if colours and way != DENSITIES:
            chosen = of_colour.draw(st.segmented_control, required=True, **collapsed)
            channel = None if chosen == TOGETHER else COLOURS.index(chosen)
        else:
            of_colour.drop()
    return Show(way, opacity, label, contours, channel)


def of_channel(values: np.ndarray, channel: int | None) -> np.ndarray:
    """A field (C, rows, columns) of one channel, or of all together: (rows, columns).

    Densities that all channels share have the same field in each of them.
    """
    return values.sum(0) if channel is None else values[channel % len(values)]


def density_parameter(count: int) -> Parameter:
    """The number of the selected density, from 1; without densities none is valid."""
    if not count:
        return Parameter("density", "Density", Slugs(()), None, "available without densities")
    return Parameter("density", "Density", Numbers(1, count), 1)


def class_field(checkpoint: Checkpoint, pixels: Tensor, label: int, index: int) -> np.ndarray:
    """Σ_i w_ci φ_i of one snapshot."""
    model = checkpoint.network(index)
    return finite(weighted_field(model, as_input(pixels[None]), class_weights(model)[label]))


@dataclass(frozen=True)
class Response:
    """Fields, predictions, densities and measures of all snapshots of a checkpoint for an input."""

    view: View
    densities: list[Densities] | None
    numbers: list[str]


def respond(checkpoint: Checkpoint, pixels: Tensor) -> Response:
    """The response of every snapshot to an input; cached."""
    key = "densities", checkpoint.digest, pixels.numpy().tobytes()
    shown = response_of(checkpoint, pixels)
    placed, lines = kept.get(key, lambda: _placed(checkpoint, pixels, shown))
    return Response(shown, placed, lines)


def _placed(
    checkpoint: Checkpoint, pixels: Tensor, shown: View
) -> tuple[list[Densities] | None, list[str]]:
    placed = None
    if checkpoint.has_densities:
        x = as_input(pixels[None])
        placed = [densities(checkpoint.network(k), x) for k in range(len(shown.steps))]
    return placed, numbers_lines(shown, placed)


def numbers_lines(shown: View, placed: list[Densities] | None) -> list[str]:
    """Centre, spread and other measures of the field at each step, one line each.

    Args:
        placed: the densities at each step, None where the model has none.
    """
    lines = []
    for k in range(len(shown.fields)):
        parts = [f"{name} {value}" for name, value in measures(shown, k).items()]
        if placed:
            distance = mean_displacement(placed[0], placed[k])
            parts.append(f"densities have moved {distance:.1f} pixels on average since the start")
        lines.append(" · ".join(parts))
    return lines


def measures(shown: View, index: int) -> dict[str, str]:
    """Centre, spread, entropy and area of the field at a step, in words."""
    total = shown.size[0] * shown.size[1]
    result = measure(shown.fields[index], shown.fields[0], shown.x, shown.y)
    numbers = {
        "centre": f"{result.centre[0]:.1f}, {result.centre[1]:.1f}",
        "spread": f"{result.spread:.1f} pixels",
        "entropy": f"{result.entropy:.1f} of {np.log2(total):.1f} bits",
        f"{100 * MASS:.0f} % of the field in": f"{result.area:.0f} of {total} pixels",
    }
    # Densities may lie outside the picture, or be narrower than the distance of the drawn points.
    return numbers if shown.fields[index].any() else dict.fromkeys(numbers, "not drawn")
