"""The networks of Table 1 with densities in the frame of the mass, beside those of the paper.

Both have the same parameters and are trained in the same way, on images that are not transformed.
They are evaluated on test images that are shifted, scaled, rotated or noisy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Any

from densembed.experiments.paper import TABLES, PublishedResult
from densembed.experiments.report import (
    Columns,
    Experiment,
    Report,
    Settings,
    all_finished,
    error_rates,
    markdown_table,
    plus_minus,
)
from densembed.experiments.reproduce import BESIDE_THE_PAPER, other_data, result, table_jobs
from densembed.experiments.robustness import PERTURBATIONS, errors, follows
from densembed.markup import for_markdown
from densembed.models.names import describe, fill, parse, parts
from densembed.runs.jobs import Job
from densembed.text import counted, unknown
from densembed.training.config import RunConfig

AMOUNTS: dict[str, tuple[float, ...]] = {
    "shift": (2, 4, 6),
    "scale": (0.5, 0.7, 0.8, 1.2, 1.3),
    "rotation": (15,),
    "noise": (0.1,),
}
"""The amounts of each transform with which the networks are evaluated."""
MOST_SHIFT = 4
"""Larger shifts, in pixels, move much of the ink of some digits out of the image."""
FOLLOWED = 200
"""Number of test images for the displacement of the field."""


def _error(change: str, amount: str, row: Mapping[str, Any]) -> str:
    return f"{row[change][amount]:.2f}"


TRANSFORMED: Columns = {
    f"{name} {amount:g}": partial(_error, name, f"{amount:g}")
    for name, amounts in AMOUNTS.items()
    for amount in amounts
} | {"field per pixel": "{follows:z.2f}"}
"""The columns of the test errors in % on transformed images."""


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


class Frames(Experiment):
    """Test errors on transformed images, by the frame of the densities."""

    name, uses_recipe = "frames", True

    def _models(self, settings: Settings) -> list[str]:
        """The rows of Table 1 that have densities, each followed by its framed network."""
        published = [row.model for row in _published()]
        for model in settings.rows:
            if model not in published:
                sentence = unknown("row with densities", model, published)
                raise ValueError(f"{sentence}; they are {', '.join(published)}.")
        chosen = settings.rows or published
        return [framed(model, frame) for model in chosen for frame in ("input", "mass")]

    def row_of(self, model: str) -> str:
        with suppress(ValueError):  # of a file with another author
            return framed(model, "input")
        return model

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield table_jobs(self._models(settings), settings)

    def report(self, settings: Settings) -> Report:
        dataset, rows = settings.load(), []
        published = {row.model: row for row in _published()}
        for model in self._models(settings):
            members = all_finished(table_jobs([model], settings), model)
            if not members:
                continue
            row = result(
                replace(published[framed(model, "input")], model=model),
                error_rates(members),
                parameters=members[0].parameters,
                seconds=sum(each.seconds for own in members for each in own.header.epochs),
                device=members[0].header.provenance.device,
            )
            models = [member.model() for member in members]
            for change in PERTURBATIONS:
                shown = replace(change, amounts=AMOUNTS[change.name])
                each = [errors(own, dataset.test, shown) for own in models]
                row[change.name] = {
                    f"{amount:g}": round(mean(values), 4)
                    for amount, values in zip(shown.amounts, zip(*each, strict=True), strict=True)
                }
            slopes = [follows(own, dataset.test.images[:FOLLOWED]) for own in models]
            row["follows"] = round(
                mean(slope[axis]["slope"] for slope in slopes for axis in ("columns", "rows")), 4
            )
            rows.append(row)
        return {"dataset": settings.title, "recipe": settings.recipe, "rows": rows}

    def markdown(self, report: Report) -> str:
        rows = report["rows"]
        seeds = len(rows[0]["errors"]) if rows else 0
        epochs = RunConfig().epochs
        return (
            f"### Frames on {for_markdown(report['dataset'])}, recipe {report['recipe']}\n\n"
            f"{markdown_table(BESIDE_THE_PAPER, rows)}\n\n"
            f"{counted(seeds, 'seed')} per row, {epochs} epochs, no augmentation."
            f"{other_data(report['dataset'], self.dataset)} Test error in % on images "
            "that are shifted (pixels, in four directions), scaled, rotated (degrees, either way) "
            "or noisy (standard deviation, of full ink); the last column is how far the field "
            "shifts when the digit shifts by 1 pixel:\n\n"
            f"{markdown_table({'model': '{model}', **TRANSFORMED}, rows)}\n\n"
            f"{finding(report)}\n"
        )

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        """The framed networks; those of the paper come from `reproduce table1`."""
        rows = [row["model"] for row in report["rows"]]
        return {
            model: table_jobs([model], settings)
            for model in rows
            if framed(model, "input") != model
        }


def _published() -> list[PublishedResult]:
    """The rows of Table 1 whose networks have densities."""
    return [row for row in TABLES["mnist"] if "{frame}" in parts(parse(row.model)[0])]


def pairs(report: Report) -> list[tuple[Report, Report]]:
    """The rows of each network in the frame of the input and in the frame of the mass."""
    by_model = {row["model"]: row for row in report["rows"]}
    others = {model: framed(model, "mass") for model in by_model}
    return [
        (by_model[model], by_model[other])
        for model, other in others.items()
        if other != model and other in by_model
    ]


def _worst(row: Report) -> float:
    """The highest error on shifts up to `MOST_SHIFT`, and on all scales."""
    shifts = [error for amount, error in row["shift"].items() if float(amount) <= MOST_SHIFT]
    return max(*shifts, *row["scale"].values())


def _range(values: Sequence[float], digits: int = 2) -> str:
    low, high = (f"{end(values):z.{digits}f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def finding(report: Report) -> str:
    """What the frame of the mass changes, as a list; empty without a pair of networks."""
    both = pairs(report)
    if not both:
        return ""
    whole, best = min(both, key=lambda pair: pair[1]["mean"])
    lower = sum(other["mean"] < own["mean"] for own, other in both)
    plain, mass = ([_worst(row) - row["mean"] for row in rows] for rows in zip(*both, strict=True))
    scales = AMOUNTS["scale"]
    moved = [_range([row["follows"] for row in rows]) for rows in zip(*both, strict=True)]
    sentences = [
        f"In the frame of the mass, {lower} of {len(both)} networks have a lower error on the test "
        f"images as they are. The lowest error is {plus_minus(best)} % "
        f"({describe(best['model'])}); in the frame of the input, that network has "
        f"{plus_minus(whole)} %.",
        f"With shifts of up to {MOST_SHIFT} pixels and scales from {min(scales):g} to "
        f"{max(scales):g}, the error rises by at most {max(*mass, 0):.2f} points in the frame of "
        f"the mass. In the frame of the input, it rises by as much as {_range(plain, 0)} points, "
        "depending on the network.",
        f"When the digit is shifted by 1 pixel, the field shifts by {moved[1]} pixels in the frame "
        f"of the mass and by {moved[0]} pixels in the frame of the input.",
    ]
    for change in ("rotation", "noise"):
        amount = f"{AMOUNTS[change][0]:g}"
        what = {
            "rotation": f"a rotation by {amount} degrees",
            "noise": f"added noise (standard deviation {amount})",
        }
        sentences.append(
            f"With {what[change]}, the error of {describe(whole['model'])} is "
            f"{best[change][amount]:.2f} % in the frame of the mass and "
            f"{whole[change][amount]:.2f} % in the frame of the input."
        )
    return "\n".join(f"- {sentence}" for sentence in sentences)
