"""The fields of all steps, animated in the browser: its slider does not wait for the server."""

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.data import as_input
from densembed.data.images import Content
from densembed.fields.field import TOP_PERCENTILE, pixel_field
from densembed.fields.measures import Densities
from densembed.figures.theme import AFTER, AGAINST, BEFORE, FOR
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.data import as_url, colours, pack, predictions, text
from pages.widgets.common.component import component
from pages.widgets.common.parameter import Numbers, OneOf, Parameter
from pages.widgets.explore.views import (
    CLASS,
    DENSITIES,
    OVER,
    PIXELS,
    SWIPE,
    Response,
    Show,
    class_field,
    density_parameter,
    of_channel,
)
from pages.widgets.inputs.choose import Input

BOUND_PERCENTILE = 97
"""Percentile of the weights at which their colour scale ends, so that the others stay visible."""
MIDDLE = 50
DIVIDER = Parameter("divider", "Divider of the swipe", Numbers(0, 100), MIDDLE)
DIM = 0.4
"""Brightness of the input under its densities."""
_pair = component("densembed/panels/pair", "densembed/panels/panel.css")


def chosen_step(steps: list[int]) -> int:
    """Index of the step where the slider stands, else of the link's step, else of the last one."""
    parameter = Parameter(
        "step", "Step of training", OneOf(steps), steps[-1], "a saved step", "the end of training"
    )
    state = st.session_state
    if state.get("moved_to") is None:
        parameter.check()
        state["moved_to"] = parameter.value()
    if state["moved_to"] not in steps:
        state["moved_to"] = steps[-1]
    parameter.write(state["moved_to"])
    return steps.index(state["moved_to"])


def _divider(swipes: bool) -> int:
    """Where the divider of the swipe stands, else its place in the link, in percent."""
    DIVIDER.check()
    place = st.session_state.setdefault("divided", DIVIDER.value())
    DIVIDER.write(place if swipes else MIDDLE)
    return place


def show_stage(
    checkpoint: Checkpoint,
    given: Input,
    response: Response,
    show: Show,
    index: int,
    hidden: list[str],
) -> None:
    """Fields before training and at the slider's step, and the predictions at every step."""
    steps, header = checkpoint.steps, checkpoint.header
    probabilities = None if given.content == Content.BLANK else response.view.probabilities
    blank = ", for a blank picture" if probabilities is None else ""
    data = {
        "step": steps[index],
        "steps": steps,
        "by": "step",
        "titles": [checkpoint.moment(step) for step in steps],
        "notes": [f"epoch {checkpoint.epoch_of(step):.3g}{blank}" for step in steps],
        "numbers": response.numbers,
        "predictions": predictions(probabilities, header.classes, len(steps)),
        "classes": header.classes,
        "right": given.label,
        "predicts": probabilities is not None,
        "probabilities": None if probabilities is None else np.round(probabilities, 6).tolist(),
        "colours": [BEFORE, AFTER],
        "legend": ["before training", "at this step"],
        "size": response.view.size,
        "way": show.way,
        "divider": _divider(show.way == SWIPE),
        "contours": show.contours,
        "hidden": hidden,
        "picture": _picture(given.pixels, show),
        **_look(checkpoint, given.pixels, response, show),
    }
    _pair(
        data=data, key="stage", on_step_change=_moved, on_divider_change=_divided,
        on_density_change=_chosen,
    )  # fmt: skip


def _moved() -> None:
    st.session_state["moved_to"] = st.session_state["stage"].step


def _divided() -> None:
    place = st.session_state["stage"].divider
    if place in range(101):  # it comes from a browser
        st.session_state["divided"] = place


def _chosen() -> None:
    """A click on a density opens it below."""
    st.session_state["density"] = st.session_state["stage"].density
    st.session_state["more"] = "density"


def _picture(pixels: Tensor, show: Show) -> dict | None:
    """The picture under the field, and the opacity of the field."""
    if show.way not in (OVER, DENSITIES):
        return None
    under = pixels if show.way == OVER else (pixels * DIM).byte()
    return {"url": as_url(under), "opacity": show.opacity}


def _look(checkpoint: Checkpoint, pixels: Tensor, response: Response, show: Show) -> dict:
    """The values to draw at every step, and their colour scales."""
    x, count = as_input(pixels[None]), len(response.view.steps)
    name = checkpoint.header.classes[show.label]
    alt = "Receptive field, a heatmap of the sum of the densities,"
    if show.way == DENSITIES:
        scale, dots = _dots(response.densities, show.label, f"weight for {name}")
        alt = f"Densities as ellipses, coloured by their weight for {name},"
        return {"stack": None, "scales": [scale], "dots": dots, "alt": alt}
    if show.way == CLASS:
        each = (class_field(checkpoint, pixels, show.label, k) for k in range(count))
        values = [of_channel(field, show.channel) for field in each]
        ends = (abs(values[k]) for k in (0, -1))
        bound = max(float(np.percentile(end, TOP_PERCENTILE)) for end in ends)
        scales = [colours(-bound, bound, f"weight for {name} × density per pixel²", "per pixel²")]
        alt = f"Densities times their weights for {name}, summed,"
    elif show.way == PIXELS:
        each = (pixel_field(checkpoint.network(k), x)[0] for k in range(count))
        values = [of_channel(field, show.channel) for field in each]
        top = max(float(np.percentile(each, TOP_PERCENTILE)) for each in values)
        scales = [colours(0, top, "mass of the densities in a pixel, ΣΓ", "in this pixel")]
        alt = "Sum of Γ over the densities, a heatmap of the pixels,"
    else:
        values = [of_channel(field, show.channel) for field in response.view.fields]
        scales = [
            colours(0, response.view.top, "density per pixel²", "per pixel²"),
            colours(
                -response.view.top,
                response.view.top,
                "difference, density per pixel²",
                "per pixel²",
            ),
        ]
    return {**pack(np.stack(values)), "scales": scales, "dots": None, "alt": alt}


def _dots(placed: list[Densities], label: int, name: str) -> tuple[dict, dict]:
    count = len(placed[0].loc)
    none = np.zeros(count)
    weights = [none if each.weights is None else each.weights[label] for each in placed]
    last = placed[-1].weights
    bound = 1.0 if last is None else float(np.percentile(abs(last), BOUND_PERCENTILE)) or 1.0
    arrays = {
        "loc": [each.loc for each in placed],
        "scale": [each.scale for each in placed],
        "weights": weights,
    }
    opened = st.session_state.get("more") == "density"
    scale = colours(-bound, bound, name, "")
    scale["stops"] = [(0, AGAINST), (0.5, "#55595e"), (1, FOR)]
    return scale, {
        **{key: text(np.stack(parts).astype("<f4")) for key, parts in arrays.items()},
        "count": count,
        "bound": bound,
        "against": AGAINST,
        "favour": FOR,
        "chosen": density_parameter(count).value() if opened else None,
    }
