"""The models that Compare puts side by side, and where in its training each is shown."""

from bisect import bisect_right
from dataclasses import dataclass

import streamlit as st

from densembed.checkpoint import Checkpoint
from densembed.comparison import PACES, along
from densembed.models import describe
from pages.widgets.inputs import Input
from pages.widgets.link import check_link
from pages.widgets.models import pick_checkpoint, titles

NAMES = ("first", "second", "third", "fourth")
OTHERS = {"second": "logistic-el-15", "third": "logistic-el-5", "fourth": "linear"}
"""What stands there until another one is chosen."""
SLIDERS = {
    "step": "Step of training",
    "epoch": "Epoch of training",
    "fraction": "Fraction of the training",
}

SUM, MEAN = "sum", "mean"
BESIDE = "The first beside the"


@dataclass(frozen=True)
class Side:
    """One of the models: `name` tells which in words, in keys and in the link."""

    name: str
    checkpoint: Checkpoint

    @property
    def model(self) -> str:
        return describe(self.checkpoint.config.model)

    def takes(self, given: Input) -> bool:
        return tuple(given.pixels.shape) == self.checkpoint.header.input_shape

    @property
    def densities(self) -> int:
        embedding = self.checkpoint.model().embedding
        return embedding.groups * embedding.densities

    def moment(self, index: int) -> str:
        """When in its training a snapshot was taken, in words."""
        steps = self.checkpoint.steps
        if index == len(steps) - 1 and self.checkpoint.header.outcome == "done":
            return "after training"
        return f"after {steps[index]:,} steps" if index else "before training"


def pick_sides() -> list[Side]:
    """Widgets for how many models, and which."""
    counts = list(range(2, len(NAMES) + 1))
    check_link("models", "Models", counts, 2)
    asked, choices = st.columns([1, 9], gap="small")
    with asked:
        count = st.segmented_control(
            "Models", counts, default=2, key="models", bind="query-params", required=True,
        )  # fmt: skip
    sides: list[Side] = []
    with choices, st.container(key="models-chosen"):
        columns = st.columns(count, gap="small")
    for name, column in zip(NAMES, columns, strict=False):
        with column:
            first = sides[0].checkpoint if sides else None
            own = "" if first is None or first.config.dataset == "mnist" else "-digits"
            default = f"{OTHERS[name]}{own}" if sides else None
            sides.append(Side(name, pick_checkpoint(f"{name.capitalize()} model", name, default)))
    check_link("beside", BESIDE, NAMES[1:count], NAMES[1])
    for name in NAMES[count:]:
        if name in st.query_params:
            label = f"{name.capitalize()} model"
            check_link(name, label, titles(), f"{count} models", "here any more")
            st.query_params.pop(name, None)
    return sides


@dataclass(frozen=True)
class Moment:
    """Where the one slider stands, and what the fields show.

    `by` tells along what it moves, `indices` the snapshot of each side there, and `mean` whether a
    field is the mean of a model's densities in place of their sum.
    """

    by: str
    indices: list[int]
    mean: bool


def pick_moment(sides: list[Side]) -> Moment:
    """Widgets for the one slider, for what it moves by, and for sum or mean."""
    bar = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="moment")
    check_link("by", "It moves by", PACES, "step")
    sliding = bar.container(key="sliding")
    by = bar.segmented_control(
        "It moves by", PACES, default="step", key="by", bind="query-params", required=True,
        help="Trainings of different lengths line up by the step, by the epoch, or by the "
        "fraction of the epochs that were planned.",
    )  # fmt: skip
    check_link("field", "A field is the", (SUM, MEAN), SUM)
    field = bar.segmented_control(
        "A field is the", (SUM, MEAN), default=SUM, key="field", bind="query-params", required=True,
        help="The sum of a model's densities; or their mean, which shows where models with many "
        "and with few densities look as if they had equally many.",
    )  # fmt: skip
    for other in PACES:
        _, places = _places(sides, other)
        check_link(other, SLIDERS[other], places, "the end of training", "one that was kept")
    places_of, places = _places(sides, by)
    _stay_at_the_end(by, places[-1])
    with sliding:
        place = st.select_slider(
            SLIDERS[by], places, places[-1], key=by, bind="query-params",
            help="It moves all models: each shows the last step that it kept up to here.",
        )  # fmt: skip
    return Moment(by, [bisect_right(places, place) - 1 for places in places_of], field == MEAN)


def _places(sides: list[Side], by: str) -> tuple[list[list[float]], list[float]]:
    """Where each side's snapshots are, and all these places in order."""
    places_of = [along(side.checkpoint, side.checkpoint.steps, by) for side in sides]
    return places_of, sorted({place for places in places_of for place in places})


def _stay_at_the_end(key: str, end: float) -> None:
    """A slider at its end shows models after training, and goes on to when others come."""
    ends = st.session_state.setdefault("ends", {})
    if key in ends and st.session_state.get(key) == ends[key] != end:
        st.session_state[key] = end
    ends[key] = end
