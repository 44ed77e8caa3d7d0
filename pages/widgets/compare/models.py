"""The models that Compare shows side by side, and the step at which each is shown."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import streamlit as st

from densembed.fields.agreement import align_steps
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from pages.widgets.inputs.checkpoints import first_choice, titles
from pages.widgets.inputs.choose import Input
from pages.widgets.live.live import model_of

NAMES = ("first", "second", "third", "fourth")
OTHERS = {"second": "logistic-el-15", "third": "logistic-el-5", "fourth": "linear"}
"""The default models."""
SLIDERS = {
    "step": "Step of training",
    "epoch": "Epoch of training",
    "fraction": "Fraction of the training",
}

MEAN = "mean"
BESIDE = "Compare the first with the"


@dataclass(frozen=True)
class ComparedModel:
    """A model of the comparison: `name` is its ordinal, also in the link, `model` its title."""

    name: str
    key: str
    checkpoint: Checkpoint
    model: str

    def takes(self, given: Input) -> bool:
        return tuple(given.pixels.shape) == self.checkpoint.header.input_shape

    @property
    def densities(self) -> int:
        embedding = self.checkpoint.model().embedding
        return embedding.groups * embedding.num_densities

    def moment(self, index: int) -> str:
        """The moment of training of a snapshot, in words."""
        return self.checkpoint.moment(self.checkpoint.steps[index])


def default_models() -> dict[str, str]:
    """The key of the model that each place shows by default."""
    options = titles()
    first = first_choice(options)
    own = "-digits" if first.endswith("-digits") else ""
    keys = {"first": first}
    for name, wanted in OTHERS.items():
        free = [key for key in options if key not in keys.values()] or [first]
        key = f"{wanted}{own}"
        keys[name] = key if key in options else free[0]
    return keys


def compared_models(parameters: Mapping[str, str]) -> list[ComparedModel]:
    """The models of a link, or the default ones in place of those that were deleted."""
    defaults = default_models()
    count = parameters.get("models")
    names = NAMES[: int(count) if count in ("3", "4") else 2]
    compared = []
    for name in names:
        key, checkpoint = model_of(parameters, name, defaults[name])
        compared.append(ComparedModel(name, key, checkpoint, describe(checkpoint.config.model)))
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


def remark_inputs(compared: list[ComparedModel], given: Input) -> None:
    """Report the models that cannot take the input."""
    for entry in compared:
        if entry.takes(given):
            continue
        channels, height, width = entry.checkpoint.header.input_shape
        colour = "colour" if channels == 3 else f"{channels}-channel" if channels > 1 else "grey"
        st.info(
            f"The {entry.name} model takes {colour} pictures of {height} × {width}, so it cannot "
            "take this input. Its training curves and settings can be compared below."
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
            "one uniform density on each. The field is the same everywhere, at any step."
        )


@dataclass(frozen=True)
class Moment:
    """The place of the slider, and the way in which densities are combined.

    `by` is what runs are aligned by, `indices` are each model's snapshots. If `mean`, a field is
    the mean of a model's densities instead of their sum.
    """

    by: str
    indices: list[int]
    mean: bool

    @property
    def unit(self) -> str:
        return "mean density per pixel²" if self.mean else "density per pixel²"

    def parts(self, entry: ComparedModel) -> int:
        """The divisor of the sum of a model's densities."""
        return entry.densities if self.mean else 1


def moment_of(compared: list[ComparedModel], parameters: Mapping[str, str]) -> Moment:
    """The place of the slider in a link, which is at the end without one."""
    by = parameters.get("by")
    by = by if by in SLIDERS else "step"
    places_of = [align_steps(entry.checkpoint, entry.checkpoint.steps, by) for entry in compared]
    places = sorted({place for places in places_of for place in places})
    try:
        wanted = float(parameters.get(by, "inf"))
    except ValueError:
        wanted = inf
    place = places[max(0, bisect_right(places, wanted) - 1)]
    indices = [max(0, bisect_right(own, place) - 1) for own in places_of]
    return Moment(by, indices, parameters.get("field") == MEAN)
