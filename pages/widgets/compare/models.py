"""The models that Compare shows side by side, and the step at which each is shown."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import streamlit as st
from torch import Tensor

from densembed.fields.agreement import align_steps, distinguish
from densembed.runs import gallery
from densembed.text import counted
from densembed.training.checkpoint import Checkpoint
from pages.widgets.inputs.checkpoints import first_choice, partners, titles, uploads
from pages.widgets.inputs.choose import Input
from pages.widgets.live.live import Report, model_of

NAMES = ("first", "second", "third", "fourth")
SLIDERS = {
    "step": "Step of training",
    "epoch": "Epoch of training",
    "fraction": "Fraction of the training",
}

MEAN = "mean"
BESIDE = "Compare the first with the"
TYPICAL = (
    "Fields and predictions of a model of several members are those of the member whose error is "
    "nearest to the mean."
)


@dataclass(frozen=True)
class ComparedModel:
    """A model of the comparison.

    `name` is its ordinal, also in the link; `model` is its title: what distinguishes it from the
    others.
    """

    name: str
    key: str
    checkpoint: Checkpoint
    model: str

    def takes(self, shown: Input) -> bool:
        return tuple(shown.pixels.shape) == self.checkpoint.header.input_shape

    def input(self, report: Report, first: "ComparedModel") -> Tensor | None:
        """The input of a report, which the first model takes; None if this model takes others."""
        alike = self.checkpoint.header.input_shape == first.checkpoint.header.input_shape
        return report.input(self.checkpoint) if alike else None

    @property
    def densities(self) -> int:
        embedding = self.checkpoint.model().embedding
        return embedding.groups * embedding.num_densities

    def moment(self, index: int) -> str:
        """The moment of training of a snapshot, in words."""
        return self.checkpoint.moment(self.checkpoint.steps[index])


def default_models(first: str = "") -> dict[str, str]:
    """The key of the model that each place shows by default.

    Args:
        first: the key of the first model, if the link names it.
    """
    options = titles([first])
    first = first if first in options else first_choice(options)
    keys = [first, *partners(first, options)]
    return {name: keys[k] if k < len(keys) else first for k, name in enumerate(NAMES)}


def compared_models(parameters: Mapping[str, str]) -> list[ComparedModel]:
    """The models of a link, or the default ones in place of those that were deleted."""
    defaults = default_models(parameters.get("first", ""))
    count = parameters.get("models")
    names = NAMES[: int(count) if count in ("3", "4") else 2]
    chosen = [(name, *model_of(parameters, name, defaults[name])) for name in names]
    models = distinguish([(_name_of(key), checkpoint) for _, key, checkpoint in chosen])
    return [
        # Two places may show the same model.
        ComparedModel(
            name, key, checkpoint, model if models.count(model) == 1 else f"{model} ({name})"
        )
        for (name, key, checkpoint), model in zip(chosen, models, strict=True)
    ]


def _name_of(key: str) -> str:
    """The user's name of a run, or ""."""
    entry = None if key in uploads() else gallery.find(key)
    return entry.name if entry else ""


def remark_inputs(compared: list[ComparedModel], shown: Input) -> None:
    """Report the models that cannot take the input."""
    for entry in compared:
        if entry.takes(shown):
            continue
        st.info(
            f"The {entry.name} model takes {_kind(entry.checkpoint.header.input_shape)}, so it "
            "cannot take this input. Its training curves and settings can be compared below."
        )


def _kind(input_shape: Sequence[int]) -> str:
    """The inputs of that shape, in words."""
    channels, *sizes = input_shape
    if len(sizes) == 1:
        several = f" and {channels} channels" if channels > 1 else ""
        return f"signals of {counted(sizes[0], 'sample')}{several}"
    colour = "colour" if channels == 3 else f"{channels}-channel" if channels > 1 else "grey"
    return f"{colour} pictures of {sizes[0]} × {sizes[1]}"


def remark_fields(compared: list[ComparedModel]) -> None:
    """Explain fields that are equal or constant."""
    same = [
        entry.name
        for entry in compared[1:]
        if entry.checkpoint.digest == compared[0].checkpoint.digest
    ]
    if same:
        st.caption(
            f"The {' and '.join(same)} {'model is' if len(same) == 1 else 'models are'} the same "
            "as the first."
        )
    even = [entry.name for entry in compared if not entry.checkpoint.has_densities]
    if even:
        signals = {
            entry.checkpoint.header.scaling is not None
            for entry in compared
            if not entry.checkpoint.has_densities
        }
        cell = " or ".join("sample" if each else "pixel" for each in sorted(signals))
        st.caption(
            f"The {' and '.join(even)} {'model has' if len(even) == 1 else 'models have'} no "
            f"densities, but weights for each {cell} or each cell of a feature map. They "
            "correspond to one uniform density on each, so the field is the same everywhere and at "
            "every step."
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

    def unit(self, per: str) -> str:
        """The unit of a field; `per` is "pixel²" or "sample"."""
        return f"mean density per {per}" if self.mean else f"density per {per}"

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
