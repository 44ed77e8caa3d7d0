"""The searches for recipes: `tuned` on MNIST, in the order in which its candidates were thought of,
and `colour` on pictures of several channels.

All are judged on images that are held out of the training set, never on the test set. On a GPU
the candidates of one model train in one step.
"""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean

from densembed.data import slug
from densembed.experiments.reproduce import RECIPES
from densembed.runs.jobs import Job
from densembed.training.config import RunConfig

GRIDS: tuple[dict[str, tuple], ...] = (
    {
        "learning_rate": (0.005, 0.01, 0.02),
        "density_rate": (1.0, 3.0),
        "scale_start": (-3.0, -2.3),
    },
    {
        "learning_rate": (0.01,),
        "density_rate": (3.0,),
        "scale_start": (-3.0, -2.3),
        "weight_decay": (0.03, 0.1),
    },
)
"""First: every combination of each."""
CHOICES: dict[str, tuple] = {
    "learning_rate": (0.003, 0.005, 0.0075, 0.01, 0.015),
    "density_rate": (1.0, 2.0, 3.0, 6.0),
    "weight_decay": (0.0, 0.0, 0.01, 0.03),
    "locator_rate": (0.25, 0.5, 1.0, 2.0),
    "locator_decay": (0.0, 0.05, 0.1, 0.2, 0.4, 0.8),
    "scale_start": (-3.0, -2.6, -2.3, -2.0, -1.6),
}
DRAWN = 64
"""Then: so many drawn from these."""
NEAR = (
    {"locator_rate": 0.2, "scale_start": -1.6},
    {"density_rate": 0.5, "locator_rate": 0.2},
    {"locator_rate": 0.1, "locator_decay": 0.5},
    {"locator_rate": 0.15, "locator_decay": 1.0},
    {"locator_rate": 0.1, "locator_decay": 0.1},
    {"locator_rate": 0.15, "weight_decay": 0.003},
    {"density_rate": 0.5, "locator_rate": 0.1, "locator_decay": 0.1},
    {"density_rate": 0.5, "locator_rate": 0.1, "locator_decay": 0.03},
)
"""Last: near the best of those, at a rate of 0.02; what each changes in `BASE`."""
BASE = {
    "learning_rate": 0.02, "density_rate": 1.0, "locator_rate": 0.25, "locator_decay": 0.2,
    "scale_start": -2.0,
}  # fmt: skip
SUGGESTED = {"learning_rate": 0.04, "density_rate": 0.25, "locator_rate": 0.05}
COLOUR: tuple[dict, ...] = (
    {},
    {"learning_rate": 0.03},
    {"learning_rate": 0.04, "density_rate": 0.25},
    {"density_rate": 1.0},
    {"locator_decay": 0.5},
    {"locator_rate": 0.1},
    {"batch_size": 64},
    SUGGESTED,
    {**SUGGESTED, "batch_size": 64},
    {**SUGGESTED, "batch_size": 64, "learning_rate": 0.03, "density_rate": 0.33},
    {**SUGGESTED, "density_rate": 0.5},
    {**SUGGESTED, "scale_start": -1.6},
    {**SUGGESTED, "scale_start": -2.4},
    {**SUGGESTED, "scale_start": -2.8},
    {**SUGGESTED, "scale_start": -3.2},
    {**SUGGESTED, "scale_start": -3.6},
    {**SUGGESTED, "scale_start": -4.2},
    {**SUGGESTED, "learning_rate": 0.06, "density_rate": 0.17, "locator_rate": 0.033},
)
"""For pictures of several channels: what each changes in the recipe `tuned`; the last ones lie near
what the first ones suggested together."""
ROWS = ("logistic-el-3", "logistic-el-15", "logistic-el-mnn-6-3", "logistic-el-mnn-10-5")


def candidates(channels: int = 1) -> list[dict]:
    """What each candidate changes in a `RunConfig`; all start on a grid."""
    if channels > 1:
        return [{**RECIPES["tuned"], **change} for change in COLOUR]
    found = [
        dict(zip(grid, values, strict=True)) for grid in GRIDS for values in product(*grid.values())
    ]
    draws = random.Random(0)
    found += [
        {name: draws.choice(values) for name, values in CHOICES.items()} for _ in range(DRAWN)
    ]
    found += [{**BASE, **change} for change in NEAR]
    return [{**change, "location_start": "grid"} for change in found]


def jobs(
    rows: Sequence[str], dataset: str, channels: int, seeds: int, out: Path, device: str = ""
) -> list[tuple[dict, list[Job]]]:
    """Each candidate with a job for every row and seed."""
    place = {"device": device} if device else {}
    folder = out / slug(dataset) / "search"
    return [
        (
            change,
            [
                Job(
                    RunConfig(model=model, dataset=dataset, seed=seed, **change, **place),
                    folder / f"{number:03}" / model / f"{seed}.safetensors",
                    held_out=True,
                )
                for model in rows
                for seed in range(seeds)
            ],
        )
        for number, change in enumerate(candidates(channels))
    ]


def as_markdown(rows: Sequence[str], searched: Sequence[tuple[dict, list[Job]]]) -> str:
    """Mean held-out errors, the best candidate first; one that diverged counts as all wrong."""
    lines = []
    for change, own in searched:
        errors = [mean(_error(job) for job in own if job.config.model == model) for model in rows]
        said = ", ".join(f"{name} {value}" for name, value in change.items())
        cells = " | ".join(f"{error:.2f}" for error in errors)
        lines.append((sum(errors), f"| {said} | {cells} |"))
    return "\n".join(
        [
            "Mean error % on held-out training images",
            "",
            f"| candidate | {' | '.join(rows)} |",
            "| --- " * (len(rows) + 1) + "|",
            *(line for _, line in sorted(lines)),
            "",
        ]
    )


def _error(job: Job) -> float:
    kept = job.checkpoint()
    return kept.errors[0] if kept else 100.0
