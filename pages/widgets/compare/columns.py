"""Models side by side at all moments of their trainings, animated in the browser."""

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.data.images import Content
from densembed.fields.field import View
from densembed.figures.theme import SERIES
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.data import colours, pack, predictions
from pages.widgets.common.cache import kept, response_of
from pages.widgets.common.component import component
from pages.widgets.compare.models import SLIDERS, ComparedModel, Moment, rest_at
from pages.widgets.explore.views import measures
from pages.widgets.inputs.choose import Input

PARTS = ("predictions", "differences", "numbers", "steps")
"""Parts that a link may hide."""
_columns = component("densembed/panels/columns", "densembed/panels/panel.css")


def show_columns(
    compared: list[ComparedModel], given: Input, moment: Moment, hidden: list[str]
) -> None:
    """Fields, differences and predictions of the models that take the input."""
    shown = [k for k, entry in enumerate(compared) if entry.takes(given)]
    responses = {k: _response(compared[k].checkpoint, given.pixels) for k in shown}
    shares = {k: 1 / moment.parts(compared[k]) for k in shown}
    stacks: list[dict] = []  # equal fields are sent once
    for k in shown:
        if responses[k]["stack"] not in stacks:
            stacks.append(responses[k]["stack"])
    top = max(responses[k]["top"] * shares[k] for k in shown)
    classes = compared[0].checkpoint.header.classes
    class_lists = [compared[k].checkpoint.header.classes for k in shown]
    comparable = [n for n, own in enumerate(class_lists) if sorted(own) == sorted(classes)]
    order = {n: [class_lists[n].index(name) for name in classes] for n in comparable}
    no_ink = given.content == Content.BLANK
    data = {
        "step": _sent(moment),
        "steps": moment.places,
        "by": moment.by,
        "label": SLIDERS[moment.by],
        "stacks": stacks,
        "shape": stacks[0]["shape"],
        "size": [given.pixels.shape[2], given.pixels.shape[1]],
        "scales": [
            colours(0, top, moment.unit, "per pixel²"),
            colours(-top, top, f"difference, {moment.unit}", "per pixel²"),
        ],
        "sides": [
            {
                "name": compared[k].name,
                "model": compared[k].model,
                "stack": stacks.index(responses[k]["stack"]),
                "each": responses[k]["each"],
                "share": shares[k],
                "at": moment.snapshots[k],
                "moments": _moments(compared[k], len(responses[k]["numbers"])),
                "numbers": responses[k]["numbers"],
                "predictions": predictions(
                    None if no_ink else responses[k]["probabilities"],
                    compared[k].checkpoint.header.classes,
                    len(responses[k]["each"]),
                ),
                "probabilities": None
                if no_ink or n not in comparable
                else np.round(responses[k]["probabilities"][:, order[n]], 6).tolist(),
            }
            for n, k in enumerate(shown)
        ],
        "measures": responses[0]["measures"],
        "classes": classes,
        "right": given.label,
        "predicts": not no_ink,
        "colours": [SERIES[shown[n]] for n in comparable],
        "note": _note(
            no_ink, [compared[k].name for n, k in enumerate(shown) if n not in comparable]
        ),
        "picture": None,
        "hidden": hidden,
    }
    _columns(data=data, key="columns", on_step_change=_moved)


def _moments(entry: ComparedModel, count: int) -> list[str]:
    """The moment of training at each snapshot, in words."""
    if not entry.checkpoint.has_densities:
        return ["the same at every step"] * count
    return [entry.moment(index) for index in range(count)]


def _moved() -> None:
    _, places, _ = st.session_state["sent"]
    place = st.session_state["columns"].step
    rest_at(None if place == places[-1] else place)
    st.session_state["knows"] = True


def _sent(moment: Moment) -> float:
    """The place to send: the previous one if the browser reported the new one itself.

    The data, about 3 MB of fields, are then unchanged and not sent again. If the places have
    changed because of another model or alignment, the new place is sent.
    """
    knows = st.session_state.pop("knows", False)
    by, places, place = st.session_state.get("sent", ("", [], None))
    if not knows or (by, places) != (moment.by, moment.places):
        place = moment.place
    st.session_state["sent"] = moment.by, moment.places, place
    return place


def _note(no_ink: bool, others: list[str]) -> str:
    if no_ink:
        return "none: no digit found"
    has = "has" if len(others) == 1 else "have"
    return f"the {' and the '.join(others)} {has} other classes" if others else ""


def _response(checkpoint: Checkpoint, pixels: Tensor) -> dict:
    """The response of all snapshots of a checkpoint to an input, as it is sent to the browser."""
    key = "columns", checkpoint.digest, tuple(pixels.shape), pixels.numpy().tobytes()
    return kept.get(key, lambda: _packed(response_of(checkpoint, pixels)))


def _packed(response: View) -> dict:
    fields = [values.sum(0) for values in response.fields]
    first: dict[bytes, int] = {}  # equal fields are sent once
    each = [first.setdefault(values.tobytes(), len(first)) for values in fields]
    numbers = [measures(response, k) for k in range(len(fields))]
    return {
        "stack": pack(np.stack([fields[each.index(n)] for n in range(len(first))])),
        "each": each,
        "top": response.top,
        "measures": list(numbers[0]),
        "numbers": [list(row.values()) for row in numbers],
        "probabilities": response.probabilities,
    }
