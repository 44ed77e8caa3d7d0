"""The models that Compare puts side by side, and where in its training each is shown."""

from bisect import bisect_right
from dataclasses import dataclass, replace

import streamlit as st

from densembed.fields.agreement import UNITS, align_steps
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.link import OneOf, check_link, in_link
from pages.widgets.inputs.checkpoints import pick_checkpoint, titles
from pages.widgets.inputs.choose import Input

NAMES = ("first", "second", "third", "fourth")
OTHERS = {"second": "logistic-el-15", "third": "logistic-el-5", "fourth": "linear"}
"""What stands there until another one is chosen."""
SLIDERS = {
    "step": "Step of training",
    "epoch": "Epoch of training",
    "fraction": "Fraction of the training",
}

SUM, MEAN = "sum", "mean"
BY = "The slider moves by"
BESIDE = "Compare the first with the"


@dataclass(frozen=True)
class Side:
    """One of the models: `name` is which in words, keys and the link, `model` what it is."""

    name: str
    checkpoint: Checkpoint
    model: str

    def takes(self, given: Input) -> bool:
        return tuple(given.pixels.shape) == self.checkpoint.header.input_shape

    @property
    def densities(self) -> int:
        embedding = self.checkpoint.model().embedding
        return embedding.groups * embedding.num_densities

    def moment(self, index: int) -> str:
        """When in its training a snapshot was taken, in words."""
        return self.checkpoint.moment(self.checkpoint.steps[index])


def pick_sides() -> list[Side]:
    """Widgets for how many models, and which."""
    counts = list(range(2, len(NAMES) + 1))
    check_link("models", "Models", counts, 2)
    bar = st.container(horizontal=True, key="which")
    count = bar.segmented_control(
        "Models", counts, default=2, key="models", bind="query-params", required=True,
        width="content",
    )  # fmt: skip
    sides: list[Side] = []
    with bar.container(key="models-chosen"):
        rows = [st.columns(2, gap="small") for _ in range(0, count, 2)]
    columns = [column for row in rows for column in row]
    for name, column in zip(NAMES[:count], columns, strict=False):
        with column:
            first = sides[0].checkpoint if sides else None
            own = "" if first is None or first.config.dataset == "mnist" else "-digits"
            default = _another(f"{OTHERS[name]}{own}") if sides else None
            label = f"{name.capitalize()} model"
            checkpoint = pick_checkpoint(label, name, default, story=count == 2)
            sides.append(Side(name, checkpoint, describe(checkpoint.config.model)))
    check_link("beside", BESIDE, NAMES[1:count], NAMES[1])
    for name in NAMES[count:]:
        label = f"{name.capitalize()} model"
        check_link(name, label, (), f"{count} models", f"shown among {count} models")
        st.query_params.pop(name, None)
    return _told_apart(sides)


def _told_apart(sides: list[Side]) -> list[Side]:
    """Sides whose models have one name get the data set in theirs."""
    names = [side.model for side in sides]
    return [
        replace(side, model=f"{side.model}, {side.checkpoint.header.provenance.dataset_title}")
        if names.count(side.model) > 1
        else side
        for side in sides
    ]


def _another(wanted: str) -> str | None:
    """That model where it is there, else the first that no side before it shows."""
    options = titles()
    shown = {st.session_state.get(name) for name in NAMES}
    free = (key for key in options if key not in shown)
    return wanted if wanted in options else next(free, None)


def remark_sides(sides: list[Side], given: Input) -> None:
    """Say which of them cannot be shown the input."""
    for side in sides:
        if side.takes(given):
            continue
        channels, height, width = side.checkpoint.header.input_shape
        colour = "colour" if channels == 3 else f"{channels}-channel" if channels > 1 else "grey"
        st.info(
            f"The {side.name} model takes {colour} pictures of {height} × {width}, so it cannot be "
            "shown this input. Its curves and its recipe compare below."
        )


def remark_fields(sides: list[Side]) -> None:
    """Say why fields are the same, or the same everywhere."""
    same = [side.name for side in sides[1:] if side.checkpoint.digest == sides[0].checkpoint.digest]
    if same:
        st.caption(f"The {' and the '.join(same)} model is the first itself: nothing differs.")
    even = [side.name for side in sides if not side.checkpoint.has_densities]
    if even:
        st.caption(
            f"The {' and the '.join(even)} {'has' if len(even) == 1 else 'have'} no learned "
            "densities: a weight for each pixel, or for each cell of a feature map, is the special "
            "case of one uniform density on each. The field is the same everywhere, at any step."
        )


@dataclass(frozen=True)
class Moment:
    """Where the one slider stands, and what the fields show.

    `by` tells along what it moves over its `places`, of which `place` is the one where it stands.
    `snapshots` are those of each side at each place, `indices` at this one. `mean` tells whether a
    field is the mean of a model's densities in place of their sum.
    """

    by: str
    places: list[float]
    place: float
    snapshots: list[list[int]]
    mean: bool

    @property
    def indices(self) -> list[int]:
        at = self.places.index(self.place)
        return [each[at] for each in self.snapshots]

    @property
    def unit(self) -> str:
        return "mean density per pixel²" if self.mean else "density per pixel²"

    def parts(self, side: Side) -> int:
        """What a side's sum is divided by."""
        return side.densities if self.mean else 1


def pick_moment(sides: list[Side]) -> Moment:
    """Widgets for what the one slider moves by, and for sum or mean; where the slider stands."""
    check_link("by", BY, UNITS, "step")
    by = st.segmented_control(
        BY, UNITS, default="step", key="by", bind="query-params", required=True,
        help="Trainings of different lengths line up by the step, by the epoch, or by the "
        "fraction of the epochs that were planned. Each model shows the last step that it kept up "
        "to there.",
    )  # fmt: skip
    check_link("field", "A field is the", (SUM, MEAN), SUM)
    field = st.segmented_control(
        "A field is the", (SUM, MEAN), default=SUM, key="field", bind="query-params", required=True,
        help="The sum of a model's densities; or their mean, which shows where models with many "
        "and with few densities look as if they had equally many.",
    )  # fmt: skip
    places_of, places = _places(sides, by)
    if "rested" not in st.session_state:  # later the address is what this page left there
        for pace in UNITS:
            known = OneOf(places) if pace == by else ()
            expected = "one that was kept" if pace == by else f"what moves the slider, the {by}"
            check_link(pace, SLIDERS[pace], known, "the end of training", expected)
    snapshots = [[bisect_right(own, place) - 1 for place in places] for own in places_of]
    return Moment(by, places, _place(by, places, sides[0]), snapshots, field == MEAN)


def _places(sides: list[Side], by: str) -> tuple[list[list[float]], list[float]]:
    """Where each side's snapshots are, and all these places in order."""
    places_of = [align_steps(side.checkpoint, side.checkpoint.steps, by) for side in sides]
    return places_of, sorted({place for places in places_of for place in places})


def _place(by: str, places: list[float], first: Side) -> float:
    """Where the slider came to rest, else the link's place, else the end.

    At its end it shows models after training, and goes on to the end when others come. When it is
    to move by something else it stays where it was in the first model's training.
    """
    linked = {pace: in_link(pace) for pace in UNITS}[by]
    if (rested := st.session_state.get("rested")) is None:
        place = places[-1] if linked is None else float(linked)
    else:
        before, place = rested
        if place is None:
            place = places[-1]
        elif before != by:
            steps = first.checkpoint.steps
            index = bisect_right(align_steps(first.checkpoint, steps, before), place) - 1
            place = align_steps(first.checkpoint, steps, by)[index]
        place = places[bisect_right(places, place) - 1]
    at_end = place == places[-1]
    st.session_state["rested"] = by, None if at_end else place
    for pace in UNITS:
        if pace == by and not at_end:
            st.query_params[pace] = f"{place:.10g}"
        else:
            st.query_params.pop(pace, None)
    return place


def rest_at(place: float | None) -> None:
    """The slider came to rest there; None for the end, whatever comes to be the end."""
    by, _ = st.session_state["rested"]
    st.session_state["rested"] = by, place
