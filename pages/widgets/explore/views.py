"""The ways to show a receptive field: its sum, over the input, differences, densities, a class."""

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
from pages.widgets.common.cache import kept, seen_by
from pages.widgets.common.link import FLAG, Numbers, check_link, in_link

FIELD, OVER, DIFFERENCE, SWIPE = "field", "on the input", "difference", "swipe"
PIXELS, DENSITIES, CLASS = "pixels", "densities", "class weight"
ANSWER = "its answer"
TOGETHER, COLOURS = "together", ["red", "green", "blue"]


@dataclass(frozen=True)
class Show:
    """What is drawn: the way, the opacity over the input, the index of the class, contours.

    `channel` is the colour whose field is shown, None for all of them together.
    """

    way: str
    opacity: float
    label: int
    contours: bool
    channel: int | None = None


def ways(checkpoint: Checkpoint) -> list[str]:
    """Those that make sense for a model."""
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
    """Widgets for the way to show the field, and for what that way asks.

    Args:
        answer: index of the class that the model says after training, the one shown unless
            another is chosen.
        asks_class: whether something else on the page needs the class.
    """
    options, classes = ways(checkpoint), checkpoint.header.classes
    opacity, label = 0.6, answer
    colours = [TOGETHER, *COLOURS] if checkpoint.header.input_shape[0] == len(COLOURS) else []
    check_link("show", "Show", options, FIELD)
    check_link("opacity", "Opacity", Numbers(0.0, 1.0), opacity)
    check_link("for", "For the class", [ANSWER, *classes], ANSWER)
    check_link("contours", "Contours", FLAG, "none")
    check_link(
        "channel", "Channel", colours, "all there is",
        None if colours else "what a model of grey pictures has",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        way = st.segmented_control(
            "Show", options, default=FIELD, key="show", bind="query-params", required=True,
            wrap=True, label_visibility="collapsed",
        )  # fmt: skip
        if way == OVER:
            opacity = st.slider(
                "Opacity", 0.0, 1.0, 0.6, 0.1, "opacity %.1f", key="opacity", bind="query-params",
                width=150, label_visibility="collapsed",
            )  # fmt: skip
        if way in (DENSITIES, CLASS) or asks_class:
            st.markdown("for the class", width="content")
            chosen = st.selectbox(
                "For the class", [ANSWER, *classes], key="for", bind="query-params", width=140,
                label_visibility="collapsed",
            )  # fmt: skip
            label = answer if chosen == ANSWER else classes.index(chosen)
        contours = way != DENSITIES and st.toggle("Contours", key="contours", bind="query-params")
        channel = None
        if colours and way != DENSITIES:
            chosen = st.segmented_control(
                "Channel", colours, default=TOGETHER, key="channel", bind="query-params",
                required=True, label_visibility="collapsed",
            )  # fmt: skip
            channel = None if chosen == TOGETHER else COLOURS.index(chosen)
    return Show(way, opacity, label, contours, channel)


def of_channel(values: np.ndarray, channel: int | None) -> np.ndarray:
    """A field (C, rows, columns) of one channel, or of all together: (rows, columns).

    Densities that all channels share have one field, whichever is asked for.
    """
    return values.sum(0) if channel is None else values[channel % len(values)]


def density_number(count: int) -> int:
    """The density that is open, from 1: the one clicked or typed, else the link's."""
    number = st.session_state.get("density") or int(in_link("density", "1"))
    return min(max(number, 1), count)


def class_field(checkpoint: Checkpoint, pixels: Tensor, label: int, index: int) -> np.ndarray:
    """Σ_i w_ci φ_i of one snapshot."""
    model = checkpoint.network(index)
    return finite(weighted_field(model, as_input(pixels[None]), class_weights(model)[label]))


@dataclass(frozen=True)
class Seen:
    """All of a checkpoint's snapshots for one input: fields and opinions, densities, numbers."""

    view: View
    densities: list[Densities] | None
    numbers: list[str]


def see(checkpoint: Checkpoint, pixels: Tensor) -> Seen:
    """What every step makes of an input: computed once, whatever is shown of it."""
    key = "densities", checkpoint.digest, pixels.numpy().tobytes()
    seen = seen_by(checkpoint, pixels)
    placed, lines = kept.get(key, lambda: _placed(checkpoint, pixels, seen))
    return Seen(seen, placed, lines)


def _placed(
    checkpoint: Checkpoint, pixels: Tensor, seen: View
) -> tuple[list[Densities] | None, list[str]]:
    placed = None
    if checkpoint.has_densities:
        x = as_input(pixels[None])
        placed = [densities(checkpoint.network(k), x) for k in range(len(seen.steps))]
    return placed, numbers_lines(seen, placed)


def numbers_lines(seen: View, placed: list[Densities] | None) -> list[str]:
    """Centre, spread and the like of the field at each step, a quiet line each.

    Args:
        placed: the densities at each step, None where the model has none.
    """
    lines = []
    for k in range(len(seen.fields)):
        parts = [f"{name} {value}" for name, value in measures(seen, k).items()]
        if placed:
            parts.append(
                f"densities moved {mean_displacement(placed[0], placed[k]):.1f} pixels on average"
            )
        lines.append(" · ".join(parts))
    return lines


def measures(seen: View, index: int) -> dict[str, str]:
    """Centre, spread, entropy and area of the field at a step, in words."""
    total = seen.size[0] * seen.size[1]
    found = measure(seen.fields[index], seen.fields[0], seen.x, seen.y)
    shown = {
        "centre": f"{found.centre[0]:.1f}, {found.centre[1]:.1f}",
        "spread": f"{found.spread:.1f} pixels",
        "entropy": f"{found.entropy:.1f} of {np.log2(total):.1f} bits",
        f"{100 * MASS:.0f} % of the mass in": f"{found.area:.0f} of {total} pixels",
    }
    # Densities outside the picture, or narrower than the distance of the drawn points.
    return shown if seen.fields[index].any() else dict.fromkeys(shown, "not drawn")
