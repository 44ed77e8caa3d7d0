"""The searches for recipes: `tuned` on MNIST, `mass` for networks in the frame of the mass, and
`colour` on images with several channels.

Candidates are compared on images held out of the training set, never on the test set. On a GPU
all candidates of one model are trained together.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean
from typing import Any

from densembed.experiments.frames import framed
from densembed.experiments.recipes import RECIPES
from densembed.experiments.report import Experiment, Report, Settings, markdown_table
from densembed.runs.jobs import Job

Change = dict[str, Any]
"""Settings that differ from the defaults of `RunConfig`."""
GRIDS: tuple[dict[str, tuple[float, ...]], ...] = (
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
"""First: all combinations of the values in each grid."""
CHOICES: dict[str, tuple[float, ...]] = {
    "learning_rate": (0.003, 0.005, 0.0075, 0.01, 0.015),
    "density_rate": (1.0, 2.0, 3.0, 6.0),
    "weight_decay": (0.0, 0.0, 0.01, 0.03),
    "locator_rate": (0.25, 0.5, 1.0, 2.0),
    "locator_decay": (0.0, 0.05, 0.1, 0.2, 0.4, 0.8),
    "scale_start": (-3.0, -2.6, -2.3, -2.0, -1.6),
}
DRAWN = 64
"""Then: this number of random draws from `CHOICES`."""
NEAR: tuple[Change, ...] = (
    {"locator_rate": 0.2, "scale_start": -1.6},
    {"density_rate": 0.5, "locator_rate": 0.2},
    {"locator_rate": 0.1, "locator_decay": 0.5},
    {"locator_rate": 0.15, "locator_decay": 1.0},
    {"locator_rate": 0.1, "locator_decay": 0.1},
    {"locator_rate": 0.15, "weight_decay": 0.003},
    {"density_rate": 0.5, "locator_rate": 0.1, "locator_decay": 0.1},
    {"density_rate": 0.5, "locator_rate": 0.1, "locator_decay": 0.03},
)
"""Last: changes to `BASE`, which is close to the best of the draws."""
BASE: Change = {
    "learning_rate": 0.02,
    "density_rate": 1.0,
    "locator_rate": 0.25,
    "locator_decay": 0.2,
    "scale_start": -2.0,
}
SUGGESTED: Change = {"learning_rate": 0.04, "density_rate": 0.25, "locator_rate": 0.05}
COLOUR: tuple[Change, ...] = (
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
"""For images with several channels: changes to the recipe `tuned`. The last ones start from
`SUGGESTED`, the best combination of the first ones."""
MASS: tuple[Change, ...] = (
    {},
    {"learning_rate": 0.03},
    {"learning_rate": 0.015},
    {"density_rate": 0.25},
    {"density_rate": 1.0},
    {"locator_rate": 0.1},
    {"locator_rate": 0.3},
    {"locator_decay": 0.1},
    {"locator_decay": 0.4},
    {"scale_start": -1.6},
    {"scale_start": -2.4},
    {"scale_start": -2.8},
    {"weight_decay": 0.003},
    {"batch_size": 64},
    {"batch_size": 64, "learning_rate": 0.015},
    {"scale_start": -2.4, "density_rate": 1.0},
    {"scale_start": -2.6},
    {"scale_start": -2.6, "density_rate": 1.0},
)
"""For networks in the frame of the mass: changes to the recipe `tuned`. The last ones are near the
best of the first ones."""
ROWS = ("logistic-el-3", "logistic-el-15", "logistic-el-mnn-6-3", "logistic-el-mnn-10-5")


def candidates(channels: int = 1, models: Sequence[str] = ROWS) -> list[Change]:
    """The settings of each candidate; all start on a grid."""
    near_tuned = COLOUR if channels > 1 else ()
    if not near_tuned and all(framed(model, "input") != model for model in models):
        near_tuned = MASS
    if near_tuned:
        return [{**RECIPES["tuned"], **change} for change in near_tuned]
    changes = [
        dict(zip(grid, values, strict=True)) for grid in GRIDS for values in product(*grid.values())
    ]
    draws = random.Random(0)
    changes += [
        {name: draws.choice(values) for name, values in CHOICES.items()} for _ in range(DRAWN)
    ]
    changes += [{**BASE, **change} for change in NEAR]
    return [{**change, "location_start": "grid"} for change in changes]


def search_jobs(models: Sequence[str], settings: Settings, channels: int) -> list[list[Job]]:
    """For each candidate a job per model and seed."""
    folder = settings.folder / "search"
    return [
        settings.jobs(models, folder / f"{number:03}", held_out=True, **change)
        for number, change in enumerate(candidates(channels, models))
    ]


def _error(job: Job) -> float:
    """The held-out error; a training that diverged counts as 100 %."""
    checkpoint = job.checkpoint()
    return checkpoint.errors[0] if checkpoint and checkpoint.errors else 100.0


class Search(Experiment):
    """The search for a recipe: the mean held-out error of each candidate."""

    name = "search"

    def selected(self, settings: Settings) -> Sequence[str]:
        return settings.rows or ROWS

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        channels = settings.load().input_shape[0]
        batches = search_jobs(self.selected(settings), settings, channels)
        yield [job for batch in batches for job in batch]

    def report(self, settings: Settings) -> Report:
        channels, models = settings.load().input_shape[0], self.selected(settings)
        batches = search_jobs(models, settings, channels)
        rows = [
            {
                "change": change,
                "errors": [
                    mean(_error(job) for job in jobs if job.config.model == model)
                    for model in models
                ],
            }
            for change, jobs in zip(candidates(channels, models), batches, strict=True)
        ]
        return {"dataset": settings.title, "models": list(models), "rows": rows}

    def markdown(self, report: Report) -> str:
        """The candidates with the lowest errors first."""
        columns = {name: f"{{errors[{k}]:.2f}}" for k, name in enumerate(report["models"])}
        rows = [
            {**row, "change": ", ".join(f"{name} {value}" for name, value in row["change"].items())}
            for row in sorted(report["rows"], key=lambda row: sum(row["errors"]))
        ]
        table = markdown_table({"candidate": "{change}", **columns}, rows)
        return f"Mean error % on held-out training images\n\n{table}\n"
