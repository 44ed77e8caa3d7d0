"""The models that Compare shows side by side, and the step at which each is shown."""

from bisect import bisect_right
from dataclasses import dataclass, replace

import streamlit as st

from densembed.fields.agreement import UNITS, align_steps
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.parameter import OneOf, Parameter, Slugs
from pages.widgets.inputs.checkpoints import pick_checkpoint, titles
from pages.widgets.inputs.choose import Input

NAMES = ("first", "second", "third", "fourth")
OTHERS = {"second": "logistic-el-15", "third": "logistic-el-5", "fourth": "linear"}
"""The default models."""
SLIDERS = {
    "step": "Step of training",
    "epoch": "Epoch of training",
    "fraction": "Fraction of the training",
}

SUM, MEAN = "sum", "mean"
BESIDE = "Compare the first with the"


@dataclass(frozen=True)
class ComparedModel:
    """A model of the comparison: `name` is its ordinal, also in the link, `model` its title."""

    name: str
    checkpoint: Checkpoint
    model: str

    def takes(self, image: Input) -> bool:
        return tuple(image.pixels.shape) == self.checkpoint.header.input_shape

    @property
    def densities(self) -> int:
        embedding = self.checkpoint.model().embedding
        return embedding.groups * embedding.num_densities

    def moment(self, index: int) -> str:
        """The moment of training of a snapshot, in words."""
        return self.checkpoint.moment(self.checkpoint.steps[index])


def pick_models() -> list[ComparedModel]:
    """Widgets for the number of models, and for each model."""
    counts = Slugs(str(count) for count in range(2, len(NAMES) + 1))
    bar = st.container(horizontal=True, key="which")
    models = Parameter("models", "Models", counts, "2")
    count = int(models.draw(bar.segmented_control, required=True, width="content"))
    compared: list[ComparedModel] = []
    with bar.container(key="models-chosen"):
        rows = [st.columns(2, gap="small") for _ in range(0, count, 2)]
    columns = [column for row in rows for column in row]
    for name, column in zip(NAMES[:count], columns, strict=False):
        with column:
            first = compared[0].checkpoint if compared else None
            own = "" if first is None or first.config.dataset == "mnist" else "-digits"
            default = _another(f"{OTHERS[name]}{own}") if compared else None
            label = f"{name.capitalize()} model"
            checkpoint = pick_checkpoint(label, name, default, story=count == 2)
            compared.append(ComparedModel(name, checkpoint, describe(checkpoint.config.model)))
    Parameter("beside", BESIDE, Slugs(NAMES[1:count]), NAMES[1]).check()
    for name in NAMES[count:]:
        label = f"{name.capitalize()} model"
        among = f"one of the {count} models"
        Parameter(name, label, Slugs(()), expected=among, instead=f"{count} models").drop()
    return _distinguish(compared)


def _distinguish(compared: list[ComparedModel]) -> list[ComparedModel]:
    """Columns whose models have the same title get the data set in their titles."""
    names = [entry.model for entry in compared]
    return [
        replace(entry, model=f"{entry.model}, {entry.checkpoint.header.provenance.dataset_title}")
        if names.count(entry.model) > 1
        else entry
        for entry in compared
    ]


def _another(wanted: str) -> str | None:
    """The wanted model if it exists, else the first one that is not shown yet."""
    options = titles()
    shown = {st.session_state.get(name) for name in NAMES}
    free = (key for key in options if key not in shown)
    return wanted if wanted in options else next(free, None)


def remark_inputs(compared: list[ComparedModel], image: Input) -> None:
    """Report the models that cannot take the input."""
    for entry in compared:
        if entry.takes(image):
            continue
        channels, height, width = entry.checkpoint.header.input_shape
        colour = "colour" if channels == 3 else f"{channels}-channel" if channels > 1 else "grey"
        st.info(
            f"The {entry.name} model takes {colour} pictures of {height} × {width}, so it cannot "
            "take this "
            "input. Its training curves and settings can be compared below."
        )


def remark_fields(compared: list[ComparedModel]) -> None:
    """Explain fields that are equal or constant."""
    same = [
        entry.name
        for entry in compared[1:]
        if entry.checkpoint.digest == compared[0].checkpoint.digest
    ]
    if same:
        st.caption(
            f"The {' and the '.join(same)} model is the same as the first, so nothing differs."
        )
    even = [entry.name for entry in compared if not entry.checkpoint.has_densities]
    if even:
        st.caption(
            f"The {' and the '.join(even)} {'has' if len(even) == 1 else 'have'} no learned "
            "densities: one weight per pixel, or per cell of a feature map, is the special case of "
            "one "
            "uniform density on each. The field is the same everywhere, at any step."
        )


@dataclass(frozen=True)
class Moment:
    """The place of the slider, and the way in which densities are combined.

    The slider stands at `place`, one of its `places`: steps, epochs or fractions, as `by` says.
    `snapshots` are the indices of each model's snapshots at all places, `indices` at this
    one. If `mean`, a field is the mean of a model's densities instead of their sum.
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

    def parts(self, entry: ComparedModel) -> int:
        """The divisor of the sum of a model's densities."""
        return entry.densities if self.mean else 1


def pick_moment(compared: list[ComparedModel]) -> Moment:
    """Widgets for the alignment of the runs, and for sum or mean."""
    by = Parameter("by", "Align runs by", Slugs(UNITS), "step").draw(
        st.segmented_control,
        required=True,
        help="Runs of different lengths are aligned by the step, by the epoch, or by the fraction "
        "of the planned epochs. Each model shows its last saved step up to that point.",
    )
    field = Parameter("field", "Combine densities by", Slugs((SUM, MEAN)), SUM).draw(
        st.segmented_control,
        required=True,
        help="The sum of a model's densities, or their mean. With the mean, the scale does not "
        "depend on the number of densities.",
    )
    places_of, places = _places(compared, by)
    parameters = _slider_parameters(by, places)
    if "rested" not in st.session_state:  # later the link contains what this page wrote
        for parameter in parameters.values():
            parameter.check()
    snapshots = [[bisect_right(own, place) - 1 for place in places] for own in places_of]
    return Moment(by, places, _place(parameters, by, places, compared[0]), snapshots, field == MEAN)


def _places(compared: list[ComparedModel], by: str) -> tuple[list[list[float]], list[float]]:
    """The places of each model's snapshots, and all these places in order."""
    places_of = [align_steps(entry.checkpoint, entry.checkpoint.steps, by) for entry in compared]
    return places_of, sorted({place for places in places_of for place in places})


def _slider_parameters(by: str, places: list[float]) -> dict[str, Parameter]:
    """The slider's place in the link, by what runs are aligned by; only that of `by` is valid."""
    return {
        pace: Parameter(
            pace,
            SLIDERS[pace],
            OneOf(places) if pace == by else Slugs(()),
            places[-1] if pace == by else None,
            "a saved place" if pace == by else f"used when runs are aligned by {by}",
            "the end of training",
        )
        for pace in UNITS
    }


def _place(
    parameters: dict[str, Parameter], by: str, places: list[float], first: ComparedModel
) -> float:
    """Where the slider stands, else its place in the link, else the end.

    A slider at its end stays there when the models change. With another alignment the slider keeps
    its place in the training of the first model.
    """
    if (rested := st.session_state.get("rested")) is None:
        place = parameters[by].value()
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
    for pace, parameter in parameters.items():
        parameter.write(place if pace == by else None)
    return place


def rest_at(place: float | None) -> None:
    """Store the place of the slider; None for the end, also that of other models."""
    by, _ = st.session_state["rested"]
    st.session_state["rested"] = by, place
