"""All families of densities in the same two networks: errors, times and trained fields."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np
from torch import Tensor

from densembed.data import Dataset
from densembed.data.codec import encode_field
from densembed.experiments.benchmark import machine
from densembed.experiments.recipes import RECIPES
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    all_finished,
    deviation,
    error_rates,
    markdown_table,
    plus_minus,
    summary,
)
from densembed.experiments.reproduce import table_jobs
from densembed.fields.field import TOP_PERCENTILE, view
from densembed.functional.densities import FAMILIES
from densembed.functional.families import in_words
from densembed.markup import for_markdown
from densembed.runs.jobs import Job, typical
from densembed.text import counted
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import estimate_seconds

KINDS = {"fixed": "{}-el-8", "moving": "{}-el-mnn-8-4"}
RESOLUTION = 2
TIMED = 5


def models() -> Iterator[tuple[str, str, str]]:
    """(kind, family, model) of all networks."""
    for kind, form in KINDS.items():
        for family in FAMILIES:
            yield kind, family, form.format(family)


def step_milliseconds(
    model: str, dataset: Dataset, device: str = "", grid: str = RunConfig().grid
) -> float:
    """Time of one training step of one member at the default batch size, median of several runs."""
    config = RunConfig(
        model=model, dataset=dataset.name, epochs=1, device=device or "auto", grid=grid
    )
    steps = -(-len(dataset.train) // config.batch_size)
    return 1e3 * median(estimate_seconds(config, dataset) / steps for _ in range(TIMED))


def families_report(
    jobs: Sequence[Job], dataset: Dataset, *, title: str, recipe: str, device: str = ""
) -> Report:
    """Errors, times and fields of the families all of whose members were trained to the end.

    Args:
        title: name of the data set in the report.
    """
    rows: list[Report] = []
    fields: dict[str, list[np.ndarray]] = {kind: [] for kind in KINDS}
    image = dataset.test.images[0]
    for kind, family, model in models():
        if not (members := all_finished(jobs, model)):
            continue
        nearest = typical(members)
        rows.append(
            {
                "kind": kind,
                "family": family,
                "model": model,
                "parameters": nearest.parameters,
                **summary(error_rates(members)),
                "step_ms": round(step_milliseconds(model, dataset, device), 3),
            }
        )
        fields[kind].append(_field(nearest, image))
    for kind, values in fields.items():
        # One scale per kind, so that narrow and wide densities can be compared by eye.
        top = float(np.percentile(np.stack(values), TOP_PERCENTILE)) if values else 1.0
        for row, field in zip([row for row in rows if row["kind"] == kind], values, strict=True):
            row["field"] = encode_field(field, top)
    return {
        "dataset": title,
        "recipe": recipe,
        "config": RECIPES[recipe],
        "machine": machine(),
        "picture": encode_field(image.float().mean(0).numpy(), 255.0),
        "rows": rows,
    }


def _field(checkpoint: Checkpoint, image: Tensor) -> np.ndarray:
    """The trained field for one image, summed over channels."""
    return view(checkpoint, image, [-1], resolution=RESOLUTION).fields[0].sum(0)


def of_kind(report: Report, kind: str) -> list[Report]:
    """The rows of one kind of network, lowest error first."""
    return sorted((row for row in report["rows"] if row["kind"] == kind), key=lambda r: r["mean"])


def finding(report: Report) -> str:
    """Which family has the lowest error, and how the paper's family compares, in sentences."""
    sentences = []
    words = {"fixed": "With fixed densities", "moving": "With a micro network"}
    for kind, start in words.items():
        rows = of_kind(report, kind)
        names = [row["family"] for row in rows]
        if len(rows) < 2 or "logistic" not in names:
            continue
        best, own = rows[0], rows[names.index("logistic")]
        equal = sum(row["mean"] == best["mean"] for row in rows)
        text = (
            f"{start}, the **{in_words(best['family'])}** density has the lowest error, "
            f"{plus_minus(best)} %"
            if equal == 1
            else f"{start}, {equal} of {len(rows)} densities have the lowest error, "
            f"{plus_minus(best)} %"
        )
        if equal > 1 and own["mean"] == best["mean"]:
            text += ", among them the logistic density."
        elif own is best:
            second = rows[1]
            text += f"; the next is the {in_words(second['family'])} at {second['mean']:.2f} %."
        else:
            rank = 1 + sum(row["mean"] < own["mean"] for row in rows)
            gap = own["mean"] - best["mean"]
            text += (
                f"; the logistic density ranks {rank} of {len(rows)} at {plus_minus(own)} %, "
                f"{gap:.2f} points higher"
            )
            spreads = [spread for row in (own, best) if (spread := deviation(row)) is not None]
            if len(spreads) == 2:
                verdict = "within" if gap <= math.hypot(*spreads) else "more than"
                text += f", which is {verdict} the spread between seeds"
            text += "."
        sentences.append(text)
    return " ".join(sentences)


class Families(Experiment):
    """Every family of densities in a network with fixed densities and one with a micro network.

    The networks of the logistic family are also rows of Table 1, so they are trained once.
    """

    name, seeds, uses_recipe = "families", 3, True

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield table_jobs([model for _, _, model in models()], settings)

    def report(self, settings: Settings) -> Report:
        (jobs,) = self.jobs(settings)
        return families_report(
            jobs,
            settings.load(),
            title=settings.title,
            recipe=settings.recipe,
            device=settings.device,
        )

    def markdown(self, report: Report) -> str:
        dataset = for_markdown(report["dataset"])
        parts = [f"### Families on {dataset}, recipe {report['recipe']}"]
        for kind, form in KINDS.items():
            if rows := of_kind(report, kind):
                parts += [
                    f"{form.format('…')}, {rows[0]['parameters']:,} parameters, "
                    f"{counted(len(rows[0]['errors']), 'seed')}:",
                    markdown_table(
                        {
                            "family": "{family}",
                            "test error %": plus_minus,
                            "ms per step": "{step_ms:.2f}",
                        },
                        [{**row, "family": in_words(row["family"])} for row in rows],
                    ),
                ]
        device = report["machine"]["device"]
        parts += [finding(report), f"Steps of 128 images, one member, on {device}.\n"]
        return "\n\n".join(parts)
