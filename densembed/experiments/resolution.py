"""The same weights on other grids: their test error, and the time of a training step.

Models that were trained on the grid of the data are evaluated on finer and coarser ones, beside
models that were trained on several grids.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from densembed.data.grids import for_axes, read_grids
from densembed.data.transform import scaled
from densembed.experiments.families import step_milliseconds
from densembed.experiments.recipes import RECIPES
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    all_finished,
    error_rates,
    markdown_table,
    plus_minus,
    summary,
)
from densembed.experiments.reproduce import table_jobs
from densembed.markup import for_markdown
from densembed.models.names import describe
from densembed.models.registry import at_grid
from densembed.runs import gallery
from densembed.runs.jobs import Job
from densembed.training.checkpoint import Checkpoint
from densembed.training.loop import error_rate

MODELS = ("logistic-el-15", "logistic-el-mnn-10-5")
"""Models trained on the grid of the data: the included ones, if there are any for the data."""
MODEL, GRIDS = "logistic-el-mnn-10-5", "14,20,data"
"""The model that is trained on several grids, and these grids."""
SAME = 0.005
"""Errors whose difference in % is below this are the same as they are written."""
SIDES = (7, 10, 14, 17, 20, 24, 28, 35, 42, 56, 84, 112)
"""Pixels along each axis of the grids on which the models are evaluated."""


def _error(side: int, row: Mapping[str, Any]) -> str:
    return f"{row['by_side'][str(side)]['mean']:.2f}"


def _time(side: int, row: Mapping[str, Any]) -> str:
    return f"{row['by_side'][str(side)]:.2f}"


class Resolution(Experiment):
    """Test error and time of a step by the grid of the images."""

    name, uses_recipe = "resolution", True

    def _trained(self, settings: Settings) -> dict[tuple[str, str], list[Job]]:
        """The trainings of each model that is not included, by its name and its grids."""
        folder = settings.folder / f"{settings.recipe}-grids"
        jobs = {
            (model, "data"): table_jobs([model], settings)
            for model in MODELS
            if settings.dataset != "mnist" or gallery.find(model) is None
        }
        several = settings.jobs([MODEL], folder, **RECIPES[settings.recipe], grid=GRIDS)
        return {**jobs, (MODEL, GRIDS): several}

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield [job for jobs in self._trained(settings).values() for job in jobs]

    def report(self, settings: Settings) -> Report:
        dataset, trained, rows = settings.load(), self._trained(settings), []
        members: dict[tuple[str, str], list[Checkpoint]] = {}
        for model, grids in [*((model, "data") for model in MODELS), (MODEL, GRIDS)]:
            if jobs := trained.get((model, grids)):
                members[model, grids] = all_finished(jobs, model)
            elif entry := gallery.find(model):
                members[model, grids] = [entry.open()]
        sizes = {side: for_axes((side, side), len(dataset.input_shape) - 1) for side in SIDES}
        tests = {side: scaled(dataset.test, sizes[side]) for side in SIDES}
        for (model, grids), checkpoints in members.items():
            if checkpoints:
                by_side = {
                    str(side): summary(
                        [
                            error_rate(at_grid(each.model(), sizes[side]), test)
                            for each in checkpoints
                        ]
                    )
                    for side, test in tests.items()
                }
                rows.append(
                    {
                        "model": model,
                        "grids": grids,
                        **summary(error_rates(checkpoints)),
                        "by_side": by_side,
                    }
                )
        times = [
            {
                "model": model,
                "by_side": {
                    str(side): step_milliseconds(model, dataset, settings.device, str(side))
                    for side in SIDES
                },
            }
            for model in MODELS
        ]
        return {
            "dataset": settings.title,
            "recipe": settings.recipe,
            "own": list(dataset.input_shape[1:]),
            "rows": rows,
            "milliseconds": times,
        }

    def markdown(self, report: Report) -> str:
        errors = {f"{side}": partial(_error, side) for side in SIDES}
        head: dict[str, Any] = {
            "model": "{model}",
            "trained on": "{grids}",
            "seeds": lambda row: str(len(row["errors"])),
            "own grid": plus_minus,
        }
        times = {f"{side}": partial(_time, side) for side in SIDES}
        own = " × ".join(map(str, report["own"]))
        return (
            f"### Grids on {for_markdown(report['dataset'])}, recipe {report['recipe']}\n\n"
            "Test error in % on images that are scaled to a grid, by the pixels along each axis "
            f"(data: the images' own grid, {own}):\n\n"
            f"{markdown_table({**head, **errors}, report['rows'])}\n\n"
            "Milliseconds per training step, scaling of the images included:\n\n"
            f"{markdown_table({'model': '{model}', **times}, report['milliseconds'])}\n\n"
            f"{finding(report)}\n"
        )


def errors_by_side(row: Mapping[str, Any]) -> dict[int, float]:
    """The test error of a row in %, by the pixels along each axis."""
    return {int(side): errors["mean"] for side, errors in row["by_side"].items()}


def trained_on(row: Mapping[str, Any], own: Sequence[int]) -> str:
    """The grids on which the network of a row was trained, in words.

    >>> trained_on({"grids": "14,20,data"}, [28, 28])
    '14 × 14, 20 × 20 and 28 × 28 pixels'
    """
    grids = [_pixels(sizes) for sizes in read_grids(row["grids"], tuple(own))]
    return f"{_listed(grids)} pixels"


def _pixels(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))


def _listed(texts: Sequence[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def finding(report: Report) -> str:
    """The errors of each network on fine and coarse grids, as a list."""
    own = report["own"]
    sentences = []
    for row in report["rows"]:
        errors = errors_by_side(row)
        # Half the pixels along each axis, or more, are fine.
        fine = {side: error for side, error in errors.items() if side >= min(own) / 2}
        ends = [_pixels([side] * len(own)) for side in (min(fine), max(fine))]
        low, high = (f"{end(fine.values()):.2f}" for end in (min, max))
        coarse = [
            f"{error:.2f} % on {_pixels([side] * len(own))}"
            for side, error in errors.items()
            if side not in fine
        ]
        seeds = len(row["errors"])
        mean = f" (mean over {seeds} seeds)" if seeds > 1 else ""
        sentences.append(
            f"{describe(row['model'])}, trained on {trained_on(row, own)}, has an error of "
            f"{low if low == high else f'{low} to {high}'} % on the grids from {ends[0]} to "
            f"{ends[1]} pixels{mean}.{f' It is {_listed(coarse)}.' if coarse else ''}"
        )
    sides = sorted({int(side) for row in report["rows"] for side in row["by_side"]})
    multiples = [side for side in sides if side > min(own) and not side % min(own)]
    same = all(
        abs(error - row["mean"]) < SAME
        for row in report["rows"]
        for side, error in errors_by_side(row).items()
        if side in multiples
    )
    if multiples and same and len(set(own)) == 1:
        grids = _listed([_pixels([side] * len(own)) for side in multiples])
        sentences.append(
            f"On {grids} pixels, every error is that on {_pixels(own)}, because these grids "
            "represent the same image."
        )
    return "\n".join(f"- {sentence}" for sentence in sentences)
