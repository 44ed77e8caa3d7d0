"""Models side by side at all moments of their trainings at once, moved in the browser."""

from pathlib import Path

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.fields.field import View
from densembed.figures.heatmaps import COLOURS
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.moving import colours, moving, pack, said
from pages.widgets.common.cache import kept, seen_by
from pages.widgets.compare.models import SLIDERS, Moment, Side, rest_at
from pages.widgets.explore.views import measures
from pages.widgets.inputs.choose import Input

PARTS = ("predictions", "differences", "numbers", "steps")
"""What a link may hide of them."""
_columns = moving("columns", Path(__file__).parent)


def show_columns(sides: list[Side], given: Input, moment: Moment, hidden: list[str]) -> None:
    """Fields of those that take the input, the first among them, their differences, opinions."""
    shown = [k for k, side in enumerate(sides) if side.takes(given)]
    sees = {k: _seen(sides[k].checkpoint, given.pixels) for k in shown}
    shares = {k: 1 / moment.parts(sides[k]) for k in shown}
    stacks: list[dict] = []  # what several have in common travels once
    for k in shown:
        if sees[k]["stack"] not in stacks:
            stacks.append(sees[k]["stack"])
    top = max(sees[k]["top"] * shares[k] for k in shown)
    classes = sides[0].checkpoint.header.classes
    known = [sides[k].checkpoint.header.classes for k in shown]
    asked = [n for n, own in enumerate(known) if sorted(own) == sorted(classes)]
    order = {n: [known[n].index(name) for name in classes] for n in asked}
    no_ink = given.seen == "no ink"
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
                "name": sides[k].name,
                "model": sides[k].model,
                "stack": stacks.index(sees[k]["stack"]),
                "each": sees[k]["each"],
                "share": shares[k],
                "at": moment.snapshots[k],
                "moments": _moments(sides[k], len(sees[k]["numbers"])),
                "numbers": sees[k]["numbers"],
                "said": said(
                    None if no_ink else sees[k]["probabilities"],
                    sides[k].checkpoint.header.classes,
                    len(sees[k]["each"]),
                ),
            }
            for k in shown
        ],
        "measures": sees[0]["measures"],
        "asked": asked,
        "classes": classes,
        "right": given.label,
        "probabilities": None
        if no_ink
        else [np.round(sees[shown[n]]["probabilities"][:, order[n]], 6).tolist() for n in asked],
        "colours": [COLOURS[shown[n]] for n in asked],
        "note": _note(no_ink, [sides[k].name for n, k in enumerate(shown) if n not in asked]),
        "picture": None,
        "hidden": hidden,
    }
    _columns(data=data, key="columns", on_step_change=_moved)


def _moments(side: Side, count: int) -> list[str]:
    """What a field is of, at each snapshot."""
    if not side.checkpoint.has_densities:
        return ["even at every step"] * count
    return [side.moment(index) for index in range(count)]


def _moved() -> None:
    _, places, _ = st.session_state["sent"]
    place = st.session_state["columns"].step
    rest_at(None if place == places[-1] else place)
    st.session_state["knows"] = True


def _sent(moment: Moment) -> float:
    """The place to send: the one before where the browser itself told of the new one.

    Some 3 MB of fields then stay exactly as they were, and the browser has them already. Where
    the places have changed meanwhile, by another model or pace, it is told where it stands.
    """
    knows = st.session_state.pop("knows", False)
    by, places, place = st.session_state.get("sent", ("", [], None))
    if not knows or (by, places) != (moment.by, moment.places):
        place = moment.place
    st.session_state["sent"] = moment.by, moment.places, place
    return place


def _note(no_ink: bool, others: list[str]) -> str:
    if no_ink:
        return "nothing: no digit was found"
    knows = "knows" if len(others) == 1 else "know"
    return f"the {' and the '.join(others)} {knows} other classes" if others else ""


def _seen(checkpoint: Checkpoint, pixels: Tensor) -> dict:
    """What a checkpoint makes of an input at each snapshot, as it travels."""
    key = "columns", checkpoint.digest, tuple(pixels.shape), pixels.numpy().tobytes()
    return kept.get(key, lambda: _packed(seen_by(checkpoint, pixels)))


def _packed(seen: View) -> dict:
    fields = [values.sum(0) for values in seen.fields]
    first: dict[bytes, int] = {}  # what stays as it was travels once
    each = [first.setdefault(values.tobytes(), len(first)) for values in fields]
    numbers = [measures(seen, k) for k in range(len(fields))]
    return {
        "stack": pack(np.stack([fields[each.index(n)] for n in range(len(first))])),
        "each": each,
        "top": seen.top,
        "measures": list(numbers[0]),
        "numbers": [list(row.values()) for row in numbers],
        "probabilities": seen.probabilities,
    }
