"""Test error on shifted, scaled, rotated and noisy images, and how far the field follows the digit.

No model is trained on such images: the experiment evaluates trained models as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np
from torch import Tensor, nn

from densembed.data import Dataset, Split
from densembed.data.codec import encode_field
from densembed.data.transform import Transform
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    finished,
    markdown_table,
)
from densembed.experiments.reproduce import table_jobs
from densembed.fields.field import TOP_PERCENTILE, field
from densembed.markup import for_markdown
from densembed.models.names import describe
from densembed.runs import gallery
from densembed.runs.jobs import Job, typical
from densembed.training.checkpoint import Checkpoint
from densembed.training.loop import error_rate

MODELS = ("linear", "logistic-el-15", "logistic-el-mnn-10-5")
FOLLOWED = 500
"""Number of test images for the displacement of the field."""
SHIFTS = tuple(range(-6, 7))
SHOWN_SHIFTS = (-6, -3, 0, 3, 6)
RESOLUTION = 2


@dataclass(frozen=True)
class Perturbation:
    """Transforms of one kind, of increasing amount.

    `transforms` returns the transforms of one amount, over which the error is averaged.
    """

    name: str
    unit: str
    amounts: tuple[float, ...]
    transforms: Callable[[float], Sequence[Transform]]


def _shifts(pixels: float) -> list[Transform]:
    directions = ((1, 0), (-1, 0), (0, 1), (0, -1)) if pixels else ((0, 0),)
    return [Transform(right=pixels * x, down=pixels * y) for x, y in directions]


def _turns(degrees: float) -> list[Transform]:
    return [Transform(turn=sign * degrees) for sign in ((-1, 1) if degrees else (1,))]


PERTURBATIONS = (
    Perturbation("shift", "pixels, in four directions", (0, 1, 2, 3, 4, 5, 6), _shifts),
    Perturbation(
        "scale",
        "times the size",
        (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3),
        lambda size: [Transform(size=size)],
    ),
    Perturbation("rotation", "degrees, either way", (0, 5, 10, 15, 20, 25, 30), _turns),
    Perturbation(
        "noise",
        "standard deviation, of full ink",
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
        lambda noise: [Transform(noise=noise)],
    ),
)


def errors(model: nn.Module, split: Split, perturbation: Perturbation) -> list[float]:
    """Test error in percent for each amount of a perturbation."""
    return [
        mean(
            error_rate(model, Split(transform(split.images), split.labels))
            for transform in perturbation.transforms(amount)
        )
        for amount in perturbation.amounts
    ]


def centres(values: np.ndarray) -> np.ndarray:
    """Centres of mass (N, 2) of fields or images (N, C, H, W), as (column, row) in pixels."""
    mass = values.sum(1).astype(np.float64)
    total = np.maximum(mass.sum((1, 2)), 1e-12)
    height, width = mass.shape[1:]
    along = mass.sum(1) @ (np.arange(width) + 0.5) / total
    down = mass.sum(2) @ (np.arange(height) + 0.5) / total
    return np.stack((along, down), -1)


def slopes(model: nn.Module, images: Tensor, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Field displacement per pixel of digit displacement.

    The digit's displacement is that of its centre of mass, since some ink leaves the image.

    Args:
        axis: 0 for horizontal, 1 for vertical displacement.

    Returns:
        The slope of each image's regression (N,), and the mean centre of the field at each shift.
    """
    digit, followed = [], []
    for shift in SHIFTS:
        shifted = Transform(**{"down" if axis else "right": shift})(images)
        digit.append(centres(shifted.numpy())[:, axis])
        values = field(model, shifted.float() / 255, 1).values
        followed.append(np.broadcast_to(centres(values)[:, axis], len(images)))
    x, y = np.stack(digit), np.stack(followed)
    x, middle = x - x.mean(0), y.mean(1)
    return (x * (y - y.mean(0))).sum(0) / np.maximum((x * x).sum(0), 1e-12), middle


def follows(model: nn.Module, images: Tensor) -> Report:
    """Mean and standard deviation over the images of the slopes along both axes."""
    report: Report = {"images": len(images), "shifts": list(SHIFTS)}
    for axis, name in enumerate(("columns", "rows")):
        each, middle = slopes(model, images, axis)
        report[name] = {
            "slope": round(float(each.mean()), 4),
            "deviation": round(float(each.std(ddof=1)) if len(each) > 1 else 0.0, 4),
            "centre": [round(float(place), 3) for place in middle],
        }
    return report


def shifted_fields(checkpoint: Checkpoint, image: Tensor) -> list[Report]:
    """One image (C, H, W) at several horizontal shifts, and its field at each of them."""
    model, rows = checkpoint.model(), []
    for shift in SHOWN_SHIFTS:
        shifted = Transform(right=shift)(image[None])
        values = field(model, shifted.float() / 255, RESOLUTION).values[0].sum(0)
        rows.append((shift, shifted[0].float().mean(0).numpy(), values))
    top = float(np.percentile(np.stack([values for _, _, values in rows]), TOP_PERCENTILE))
    return [
        {
            "shift": shift,
            "picture": encode_field(picture, 255.0),
            "field": encode_field(values, top),
        }
        for shift, picture, values in rows
    ]


def robustness_report(
    checkpoints: Mapping[str, Checkpoint], dataset: Dataset, *, title: str
) -> Report:
    """Errors of all models, and the displacement of the fields of those with densities.

    Args:
        checkpoints: by model name.
        title: name of the data set in the report.
    """
    rows = []
    for name, checkpoint in checkpoints.items():
        model = checkpoint.model()
        row: dict[str, Any] = {
            "model": name,
            "parameters": checkpoint.parameters,
            "errors": {
                each.name: [round(error, 3) for error in errors(model, dataset.test, each)]
                for each in PERTURBATIONS
            },
        }
        if checkpoint.has_densities:
            row["follows"] = follows(model, dataset.test.images[:FOLLOWED])
            row["pictures"] = shifted_fields(checkpoint, dataset.test.images[0])
        rows.append(row)
    return {
        "dataset": title,
        "test_images": len(dataset.test),
        "changes": {
            each.name: {"unit": each.unit, "amounts": list(each.amounts)} for each in PERTURBATIONS
        },
        "rows": rows,
    }


def half_way(amounts: Sequence[float], errors: Sequence[float], bound: float) -> float | None:
    """The amount, interpolated, at which the error first reaches a bound, or None.

    It is the first amount if the error is not below the bound there.
    """
    if errors[0] >= bound:
        return amounts[0]
    for (low, before), (high, after) in pairwise(zip(amounts, errors, strict=True)):
        if before < bound <= after:
            return low + (high - low) * (bound - before) / (after - before)
    return None


BOUND = 20.0
"""The error in percent at which a shift counts as too large."""
NOISE = 0.2
"""The standard deviation of the noise in the finding."""
STILL = 0.005
"""A field that moves by less, per pixel of digit displacement, counts as fixed."""


def finding(report: Report) -> str:
    """What the numbers show, as a list."""
    sentences = [
        _following(describe(row["model"]), row["follows"])
        for row in report["rows"]
        if "follows" in row
    ]
    amounts = report["changes"]["shift"]["amounts"]
    reached = [
        (describe(row["model"]), half_way(amounts, row["errors"]["shift"], BOUND))
        for row in report["rows"]
    ]
    if unshifted := "; ".join(name for name, at in reached if at == amounts[0]):
        sentences.append(f"Without a shift, the error is {BOUND:.0f} % or more ({unshifted}).")
    parts = "; ".join(
        f"more than {amounts[-1]} pixels ({name})" if at is None else f"{at:.1f} pixels ({name})"
        for name, at in reached
        if at != amounts[0]
    )
    if parts:
        sentences.append(f"The error reaches {BOUND:.0f} % at a shift of {parts}.")
    at = report["changes"]["noise"]["amounts"].index(NOISE)
    parts = "; ".join(
        f"{row['errors']['noise'][at]:.0f} % ({describe(row['model'])})" for row in report["rows"]
    )
    sentences.append(f"With added noise (standard deviation {NOISE:g}) the error is {parts}.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _following(name: str, row: Report) -> str:
    along, down = row["columns"], row["rows"]
    if max(abs(along["slope"]), abs(down["slope"])) < STILL:
        return f"{name}: the field stays in place when the digit is shifted."
    return (
        f"{name}: when the digit is shifted by 1 pixel, the field shifts by "
        f"{along['slope']:.2f} ± {along['deviation']:.2f} pixels horizontally and "
        f"{down['slope']:.2f} ± {down['deviation']:.2f} pixels vertically."
    )


class Robustness(Experiment):
    """Trained models on transformed test images: the shipped ones, or those of Table 1."""

    name = "robustness"

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield [job for jobs in self._jobs(settings).values() for job in jobs]

    def _jobs(self, settings: Settings) -> dict[str, list[Job]]:
        """The trainings of the models that are not shipped for this data set."""
        return {
            model: table_jobs([model], settings)
            for model in MODELS
            if settings.dataset != "mnist" or gallery.find(model) is None
        }

    def report(self, settings: Settings) -> Report:
        jobs, checkpoints = self._jobs(settings), {}
        for model in MODELS:
            entry = None if model in jobs else gallery.find(model)
            members = [entry.open()] if entry else finished(jobs[model])
            if not members:
                raise ValueError(
                    f"All trainings of {model} diverged: choose another recipe or other seeds."
                )
            checkpoints[model] = typical(members)
        return robustness_report(checkpoints, settings.load(), title=settings.title)

    def markdown(self, report: Report) -> str:
        parts = [f"### Transformed images of {for_markdown(report['dataset'])}"]
        for name, change in report["changes"].items():
            columns = {
                f"{amount:g}": f"{{errors[{name}][{k}]:.2f}}"
                for k, amount in enumerate(change["amounts"])
            }
            parts += [
                f"Test error in % by {name} ({change['unit']}):",
                markdown_table({"model": "{model}", **columns}, report["rows"]),
            ]
        return "\n\n".join([*parts, finding(report)]) + "\n"
