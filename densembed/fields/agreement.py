"""Checkpoints beside each other: what they are, how they learned, where their answers differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
from scipy.stats import binomtest
from torch import Tensor

from densembed.data import as_input
from densembed.fields.measures import on_pixels
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint, error_text

BATCH = 500
PACES = ("step", "epoch", "fraction")
"""What trainings of different lengths can be laid beside each other by."""


def along(checkpoint: Checkpoint, steps: Sequence[int], by: str) -> list[float]:
    """Where steps lie in a training: as they are, in epochs, or as a fraction of what was planned.

    Rounded to three digits under 1 and to two decimals above, so that a person can read it and a
    link carry it; only step 0 is 0.
    """
    if by == "step":
        return list(steps)
    whole = checkpoint.header.steps_per_epoch
    if by == "fraction":
        whole *= checkpoint.config.epochs
    places = [step / whole for step in steps]
    return [float(f"{place:.3g}") if place < 1 else round(place, 2) for place in places]


@torch.inference_mode()
def answers(checkpoint: Checkpoint, images: Tensor, snapshot: int = -1) -> np.ndarray:
    """The class that a checkpoint's typical member says of each image (N, C, H, W) uint8."""
    model = checkpoint.model(snapshot)
    parts = [model(as_input(part)).argmax(1) for part in images.split(BATCH)]
    return torch.cat(parts).numpy()


@dataclass(frozen=True)
class Disagreement:
    """Answers of two models to the same inputs.

    `first_only` and `second_only` are the indices of the inputs that only this one gets right;
    `both` and `neither` count the others. `p` is that of McNemar's exact test: how likely such an
    uneven pair of counts, or a more uneven one, is if both models are equally good.
    """

    first_only: np.ndarray
    second_only: np.ndarray
    both: int
    neither: int
    p: float


def disagreement(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> Disagreement:
    """Where two models differ, from their answers and the true labels, all (N,)."""
    one, two = first == labels, second == labels
    first_only, second_only = np.flatnonzero(one & ~two), np.flatnonzero(two & ~one)
    count = len(first_only) + len(second_only)
    p = float(binomtest(len(first_only), count).pvalue) if count else 1.0
    return Disagreement(
        first_only, second_only, int((one & two).sum()), int((~one & ~two).sum()), p
    )


ALPHA = 0.05
"""Below this p a difference is called more than chance."""


def verdict(found: Disagreement) -> str:
    """What McNemar's test says of a disagreement, with its p: a sentence."""
    if len(found.first_only) == len(found.second_only):
        said = "both are right equally often"
    elif found.p < ALPHA:
        said = "a difference this large is unlikely to be due to chance"
    else:
        said = "this difference could be due to chance"
    p = f"p = {found.p:.2g}" if found.p >= 0.0001 else "p < 0.0001"
    return f"McNemar's exact test: {said} ({p})."


def confusion(said: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Counts (classes, classes): row the true class, column the answer."""
    return np.bincount(labels * classes + said, minlength=classes**2).reshape(classes, classes)


def facts(checkpoint: Checkpoint) -> dict[str, str]:
    """What a person compares: error, size, recipe, and speed, in words."""
    header, config = checkpoint.header, checkpoint.config
    seconds = [epoch.seconds for epoch in header.epochs]
    return {
        "Model": describe(config.model),
        "Test error": error_text(checkpoint.errors, header.provenance.test_images)
        if checkpoint.errors
        else "not known yet",
        "Parameters": f"{checkpoint.parameters:,}",
        "Densities": _densities(checkpoint),
        "Size of one network": f"{4 * checkpoint.parameters / 1000:,.1f} kB",
        "Learned from": f"{header.provenance.dataset_title}, {header.provenance.train_images:,} "
        "images",
        "Epochs": f"{len(header.epochs):,} of {config.epochs:,}",
        "Batch": f"{config.batch_size:,} images",
        "Learning rate": f"at most {config.learning_rate:g}",
        "For the densities": f"{config.density_rate:g} × that",
        "Weight decay": f"{config.weight_decay:g}",
        "Start": f"{config.location_start} locations, "
        + f"β around {config.scale_start:g}".replace("-", "−"),
        "Seeds": f"{config.seed} to {config.seed + checkpoint.members - 1}"
        if checkpoint.members > 1
        else f"{config.seed}",
        "Time of an epoch": f"{mean(seconds):,.1f} s on {header.provenance.device}"
        if seconds
        else "not known",
    }


def _densities(checkpoint: Checkpoint) -> str:
    model = checkpoint.model()
    if not checkpoint.has_densities:
        what = "pixel" if on_pixels(model) else "cell of the last feature maps"
        return f"none learned: a weight for each {what}"
    count = model.embedding.groups * model.embedding.num_densities
    return f"{count:,}, {'moving with the input' if model.adaptive else 'fixed'}"
