"""The networks of Table 1 with densities in the frame of the mass, beside those of the paper.

Both have the same parameters and are trained in the same way, on images that are not transformed.
They are evaluated on test images that are shifted or scaled.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

from densembed.experiments.paper import TABLES
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
from densembed.experiments.robustness import PERTURBATIONS, errors, follows
from densembed.markup import for_markdown
from densembed.models.names import fill, parse, parts
from densembed.runs.jobs import Job
from densembed.text import unknown
from densembed.training.config import RunConfig

SHOWN = {"shift": (2, 4), "scale": (0.5, 0.7, 0.8, 1.2, 1.3)}
"""The amounts of each transform in the table."""
FOLLOWED = 200
"""Number of test images for the displacement of the field."""


def framed(model: str, frame: str) -> str:
    """The name of the same network with its densities in a frame.

    >>> framed("logistic-el-mnn-10-5", "mass")
    'logistic-el-mnn-mass-10-5'
    """
    template, arguments = parse(model)
    swapped = [
        frame if part == "{frame}" else argument
        for part, argument in zip(parts(template), arguments, strict=True)
    ]
    return fill(template, swapped)


def _error(change: str, amount: str, row: Mapping[str, Any]) -> str:
    return f"{row[change][amount]:.2f}"


class Frames(Experiment):
    """Test errors on shifted and scaled images, by the frame of the densities."""

    name, uses_recipe = "frames", True

    def _models(self, settings: Settings) -> list[str]:
        """The rows of Table 1 that have densities, each followed by its framed network."""
        published = [
            row.model for row in TABLES["mnist"] if "{frame}" in parts(parse(row.model)[0])
        ]
        for model in settings.rows:
            if model not in published:
                sentence = unknown("row with densities", model, published)
                raise ValueError(f"{sentence}; they are {', '.join(published)}.")
        chosen = settings.rows or published
        return [framed(model, frame) for model in chosen for frame in ("input", "mass")]

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield table_jobs(self._models(settings), settings)

    def report(self, settings: Settings) -> Report:
        dataset, rows = settings.load(), []
        for model in self._models(settings):
            members = all_finished(table_jobs([model], settings), model)
            if not members:
                continue
            row: dict[str, Any] = {
                "model": model,
                "parameters": members[0].parameters,
                **summary(error_rates(members)),
            }
            for change in PERTURBATIONS:
                if change.name in SHOWN:
                    each = [errors(member.model(), dataset.test, change) for member in members]
                    row[change.name] = {
                        f"{amount:g}": round(mean(values), 4)
                        for amount, values in zip(
                            change.amounts, zip(*each, strict=True), strict=True
                        )
                    }
            images = dataset.test.images[:FOLLOWED]
            slopes = [follows(member.model(), images) for member in members]
            row["follows"] = round(
                mean(slope[axis]["slope"] for slope in slopes for axis in ("columns", "rows")), 4
            )
            rows.append(row)
        return {"dataset": settings.title, "recipe": settings.recipe, "rows": rows}

    def markdown(self, report: Report) -> str:
        columns: dict[str, Any] = {
            "model": "{model}",
            "parameters": "{parameters:,}",
            "test error %": plus_minus,
        }
        for name, amounts in SHOWN.items():
            for amount in amounts:
                columns[f"{name} {amount:g}"] = partial(_error, name, f"{amount:g}")
        columns["field per pixel"] = "{follows:.2f}"
        rows = report["rows"]
        seeds = len(rows[0]["errors"]) if rows else 0
        epochs = RunConfig().epochs
        return (
            f"### Frames on {for_markdown(report['dataset'])}, recipe {report['recipe']}\n\n"
            f"{markdown_table(columns, rows)}\n\n"
            f"{seeds} seeds per row, {epochs} epochs, no augmentation. Errors in % on shifted "
            "(pixels, in four directions) and scaled test images; the last column is the "
            "displacement of the field per pixel of the digit's.\n"
        )

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        """The framed networks; those of the paper come from `reproduce table1`."""
        rows = [row["model"] for row in report["rows"]]
        return {
            model: table_jobs([model], settings)
            for model in rows
            if framed(model, "input") != model
        }
