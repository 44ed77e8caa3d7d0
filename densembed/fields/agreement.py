"""Comparison of checkpoints: settings, progress of the training, and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import cast

import numpy as np
import torch
from scipy.stats import binomtest
from torch import Tensor

from densembed.data import as_input, noun
from densembed.data.grids import OWN
from densembed.fields.measures import on_pixels
from densembed.models.architectures import DensityNetwork
from densembed.models.initialisation import is_locator
from densembed.models.names import describe
from densembed.text import counted
from densembed.training.checkpoint import Checkpoint
from densembed.training.errors import Errors

BATCH = 500
UNITS = ("step", "epoch", "fraction")
"""Units by which trainings of different lengths can be aligned."""


def align_steps(checkpoint: Checkpoint, steps: Sequence[int], unit: str) -> list[float]:
    """Convert steps to steps, epochs, or fractions of the planned training.

    Values are rounded for display and for links: to three digits below 1 and to two decimals above.
    Only step 0 becomes 0.
    """
    if unit == "step":
        return list(steps)
    total = checkpoint.header.steps_per_epoch
    if unit == "fraction":
        total *= checkpoint.config.epochs
    values = [step / total for step in steps]
    return [float(f"{value:.3g}") if value < 1 else round(value, 2) for value in values]


UNTITLED = ("model", "dataset", "device", "compile")
"""Settings that are no part of a title: the first two have words of their own."""


def distinguish(models: Sequence[tuple[str, Checkpoint]]) -> list[str]:
    """Titles of compared models that say what distinguishes them.

    Of each model its name or kind, and as many settings as tell it from the others of that title:
    the data first, then the settings in the order of the config. What all have in common is left
    out.

    Args:
        models: each with the user's name of its run, or "".
    """
    titles = [[name or describe(checkpoint.config.model)] for name, checkpoint in models]
    same = all(title == titles[0] for title in titles)
    settings = [
        [
            checkpoint.header.provenance.dataset_title,
            *(
                f"{key.replace('_', ' ')} {_plain(value)}"
                for key, value in checkpoint.config.model_dump().items()
                if key not in UNTITLED
            ),
        ]
        for _, checkpoint in models
    ]
    for k in range(len(settings[0])):
        before = [tuple(title) for title in titles]
        for title, own in zip(titles, settings, strict=True):
            alike = [
                other for other, of in zip(settings, before, strict=True) if of == tuple(title)
            ]
            if any(other[k] != own[k] for other in alike):
                title.append(own[k])
    return [", ".join(title[1:] if same and len(title) > 1 else title) for title in titles]


def _plain(value: object) -> str:
    """A setting without an exponent or a decimal point that it does not need."""
    return np.format_float_positional(value, trim="-") if isinstance(value, float) else str(value)


@torch.inference_mode()
def predict(checkpoint: Checkpoint, images: Tensor, snapshot: int = -1) -> np.ndarray:
    """Class index predicted by a checkpoint's typical member for each image (N, C, H, W) uint8."""
    model = checkpoint.model(snapshot)
    parts = [model(as_input(part)).argmax(1) for part in images.split(BATCH)]
    return torch.cat(parts).numpy()


@dataclass(frozen=True)
class Disagreement:
    """Comparison of the predictions of two models for the same inputs.

    `first_only` and `second_only` are the indices of the inputs that only this model classifies
    correctly; `both` and `neither` count the others. `p` is that of McNemar's exact test: the
    probability of counts at least this uneven if both models are equally good.
    """

    first_only: np.ndarray
    second_only: np.ndarray
    both: int
    neither: int
    p: float


def disagreement(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> Disagreement:
    """Compare the predictions of two models with the labels, all (N,)."""
    one, two = first == labels, second == labels
    first_only, second_only = np.flatnonzero(one & ~two), np.flatnonzero(two & ~one)
    count = len(first_only) + len(second_only)
    p = float(binomtest(len(first_only), count).pvalue) if count else 1.0
    return Disagreement(
        first_only, second_only, int((one & two).sum()), int((~one & ~two).sum()), p
    )


ALPHA = 0.05
"""Significance level of McNemar's test."""


def verdict(result: Disagreement) -> str:
    """The result of McNemar's test, in a sentence."""
    if len(result.first_only) == len(result.second_only):
        text = "both are right equally often"
    elif result.p < ALPHA:
        text = "a difference this large is unlikely to be due to chance"
    else:
        text = "this difference could be due to chance"
    p = f"p = {result.p:.2g}" if result.p >= 0.0001 else "p < 0.0001"
    return f"McNemar's exact test: {text} ({p})."


def confusion_matrix(predicted: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Counts (classes, classes), with a row per true class and a column per predicted class."""
    return np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)


def summary(checkpoint: Checkpoint) -> dict[str, str]:
    """Error, size, settings and speed of a checkpoint, as text."""
    header, config = checkpoint.header, checkpoint.config
    dense = checkpoint.has_densities
    inputs = f"{noun(header.input_shape)}s"
    cell, size = (
        "sample" if header.scaling else "pixel",
        " × ".join(map(str, header.input_shape[1:])),
    )
    seconds = [epoch.seconds for epoch in header.epochs]
    return {
        "Model": describe(config.model),
        "Test error": Errors(checkpoint.errors).text(
            header.provenance.test_images, noun(header.input_shape)
        )
        if checkpoint.errors
        else "unknown",
        "Parameters": f"{checkpoint.parameters:,}",
        "Densities": _densities(checkpoint),
        "Size of one network": f"{4 * checkpoint.parameters / 1000:,.1f} kB",
        "Training data": "; the data set changed ".join(
            (
                f"{header.provenance.dataset_title}, {header.provenance.train_images:,} {inputs}",
                *header.data_changes,
            )
        ),
        "Epochs": f"{len(header.epochs):,} of {config.epochs:,}",
        "Batch size": f"{config.batch_size:,} {inputs}",
        "Learning rate": f"at most {config.learning_rate:g}",
        "Density learning rate": f"{config.density_rate:g} × the learning rate" if dense else "–",
        "Weight decay": f"{config.weight_decay:g}",
        "Micro network": f"{config.locator_rate:g} × the learning rate, weight decay "
        f"{config.weight_decay + config.locator_decay:g}"
        if any(map(is_locator, checkpoint.tensors))
        else "–",
        "Grid": f"that of the data ({size})" if config.grid == OWN else config.grid,
        "Random shifts": f"at most {counted(config.shift, cell)}" if config.shift else "none",
        "Initialisation": f"{config.location_start} locations, "
        + f"β around {config.scale_start:g}".replace("-", "−")
        if dense
        else "–",
        "Seed": f"{config.seed} to {config.seed + checkpoint.members - 1}"
        if checkpoint.members > 1
        else f"{config.seed}",
        "Time per epoch": f"{_short_time(mean(seconds))} on {header.provenance.device}"
        if seconds
        else "unknown",
    }


def _short_time(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _densities(checkpoint: Checkpoint) -> str:
    model = cast(DensityNetwork, checkpoint.model())
    if not checkpoint.has_densities:
        own = "sample" if checkpoint.header.scaling else "pixel"
        what = own if on_pixels(model) else "cell of the last feature maps"
        return f"none learned: a weight for each {what}"
    count = model.embedding.groups * model.embedding.num_densities
    return f"{count:,}, {'moving with the input' if model.adaptive else 'fixed'}"
