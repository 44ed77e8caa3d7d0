"""What a field that moves is good for: test error on pictures that were shifted, scaled, turned or
made noisy, and how far the field follows the digit.

Nothing is trained: it is about the networks as they are, which never saw such pictures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

import numpy as np
from torch import Tensor, nn

from densembed.data import Dataset, Split
from densembed.data.codec import encode_field
from densembed.data.transform import Transform
from densembed.fields.field import field
from densembed.markup import for_markdown
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from densembed.training.loop import error_rate

MODELS = ("linear", "logistic-el-15", "logistic-el-mnn-10-5")
FOLLOWED = 500
"""Test images on which the field's centre is followed."""
SHIFTS = tuple(range(-6, 7))
SHOWN_SHIFTS = (-6, -3, 0, 3, 6)
RESOLUTION = 2
TOP_PERCENTILE = 99.5


@dataclass(frozen=True)
class Perturbation:
    """A family of transforms of increasing amount.

    `transforms` gives the transforms of one amount, whose errors are averaged.
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
        "scale", "times the size", (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3),
        lambda size: [Transform(size=size)],
    ),
    Perturbation("rotation", "degrees, either way", (0, 5, 10, 15, 20, 25, 30), _turns),
    Perturbation(
        "noise", "deviation, of full ink", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
        lambda noise: [Transform(noise=noise)],
    ),
)  # fmt: skip


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
    """Centre of mass of fields or pictures (N, C, H, W), in pixels (column, row): (N, 2)."""
    mass = values.sum(1).astype(np.float64)
    total = np.maximum(mass.sum((1, 2)), 1e-12)
    height, width = mass.shape[1:]
    along = mass.sum(1) @ (np.arange(width) + 0.5) / total
    down = mass.sum(2) @ (np.arange(height) + 0.5) / total
    return np.stack((along, down), -1)


def slopes(model: nn.Module, images: Tensor, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the centre of the field moves for a pixel that the digit moves.

    The digit's own centre of mass is what it is held against, since some ink leaves the picture.

    Args:
        axis: 0 along the columns, 1 along the rows.
    Returns:
        The slope of each image's regression, (N,), and the field's mean centre at each shift.
    """
    digit, seen = [], []
    for shift in SHIFTS:
        there = Transform(**{"down" if axis else "right": shift})(images)
        digit.append(centres(there.numpy())[:, axis])
        values = field(model, there.float() / 255, 1).values
        seen.append(np.broadcast_to(centres(values)[:, axis], len(images)))
    x, y = np.stack(digit), np.stack(seen)
    x, middle = x - x.mean(0), y.mean(1)
    return (x * (y - y.mean(0))).sum(0) / np.maximum((x * x).sum(0), 1e-12), middle


def follows(model: nn.Module, images: Tensor) -> dict:
    """The slopes of both axes, mean and deviation over the images."""
    found = {"images": len(images), "shifts": list(SHIFTS)}
    for axis, name in enumerate(("columns", "rows")):
        each, middle = slopes(model, images, axis)
        found[name] = {
            "slope": round(float(each.mean()), 4),
            "deviation": round(float(each.std(ddof=1)) if len(each) > 1 else 0.0, 4),
            "centre": [round(float(place), 3) for place in middle],
        }
    return found


def pictures(checkpoint: Checkpoint, image: Tensor) -> list[dict]:
    """One image (C, H, W) at some shifts to the right, and the field that it gets there."""
    model, found = checkpoint.model(), []
    for shift in SHOWN_SHIFTS:
        there = Transform(right=shift)(image[None])
        values = field(model, there.float() / 255, RESOLUTION).values[0].sum(0)
        found.append((shift, there[0].float().mean(0).numpy(), values))
    top = float(np.percentile(np.stack([values for _, _, values in found]), TOP_PERCENTILE))
    return [
        {
            "shift": shift,
            "picture": encode_field(picture, 255.0),
            "field": encode_field(values, top),
        }
        for shift, picture, values in found
    ]


def report(checkpoints: dict[str, Checkpoint], dataset: Dataset, called: str) -> dict:
    """Everything as JSON.

    Args:
        checkpoints: by the names of their models; what has densities is followed, too.
        called: the data set's name in the report.
    """
    rows = []
    for name, checkpoint in checkpoints.items():
        model = checkpoint.model()
        row = {
            "model": name,
            "parameters": checkpoint.parameters,
            "errors": {
                each.name: [round(error, 3) for error in errors(model, dataset.test, each)]
                for each in PERTURBATIONS
            },
        }
        if checkpoint.has_densities:
            row["follows"] = follows(model, dataset.test.images[:FOLLOWED])
            row["pictures"] = pictures(checkpoint, dataset.test.images[0])
        rows.append(row)
    return {
        "dataset": called,
        "test_images": len(dataset.test),
        "changes": {
            each.name: {"unit": each.unit, "amounts": list(each.amounts)} for each in PERTURBATIONS
        },
        "rows": rows,
    }


def half_way(amounts: Sequence[float], errors: Sequence[float], bound: float) -> float | None:
    """Where the error first reaches a bound, between two amounts; None where it does not."""
    for (low, before), (high, after) in pairwise(zip(amounts, errors, strict=True)):
        if before < bound <= after:
            return low + (high - low) * (bound - before) / (after - before)
    return None


BOUND = 20.0
"""Percent of errors at which a shift counts as too much."""
NOISE = 0.2
"""The noise whose errors are told in words."""
STILL = 0.005
"""Pixels a pixel: a field that moves less stays where it is."""


def finding(table: dict) -> str:
    """What the numbers say, a line for each."""
    said = [
        _following(describe(row["model"]), row["follows"])
        for row in table["rows"]
        if "follows" in row
    ]
    amounts = table["changes"]["shift"]["amounts"]
    reached = [
        (describe(row["model"]), half_way(amounts, row["errors"]["shift"], BOUND))
        for row in table["rows"]
    ]
    listed = "; ".join(
        f"{name}: {at:.1f} pixels" if at else f"{name}: not up to {amounts[-1]} pixels"
        for name, at in reached
    )
    said.append(f"How far a digit may be shifted until {BOUND:.0f} % are wrong. {listed}.")
    at = table["changes"]["noise"]["amounts"].index(NOISE)
    listed = "; ".join(
        f"{describe(row['model'])}: {row['errors']['noise'][at]:.0f} %" for row in table["rows"]
    )
    said.append(f"Errors under noise of a deviation of {NOISE:g} of full ink. {listed}.")
    return "\n".join(f"- {line}" for line in said)


def _following(name: str, found: dict) -> str:
    along, down = found["columns"], found["rows"]
    if max(abs(along["slope"]), abs(down["slope"])) < STILL:
        return f"The field of {name} stays where it is."
    return (
        f"For a pixel that the digit moves, the field of {name} moves "
        f"{along['slope']:.2f} ± {along['deviation']:.2f} pixels along the columns and "
        f"{down['slope']:.2f} ± {down['deviation']:.2f} along the rows."
    )


def as_markdown(table: dict) -> str:
    """The report for people."""
    lines = [f"### Changed pictures of {for_markdown(table['dataset'])}", ""]
    for name, change in table["changes"].items():
        amounts = change["amounts"]
        lines += [
            f"Test error in % by {name} ({change['unit']}):",
            "",
            "| model | " + " | ".join(f"{amount:g}" for amount in amounts) + " |",
            "| --- |" + " ---: |" * len(amounts),
            *(
                f"| {row['model']} | "
                + " | ".join(f"{error:.2f}" for error in row["errors"][name])
                + " |"
                for row in table["rows"]
            ),
            "",
        ]
    return "\n".join([*lines, finding(table), ""])
