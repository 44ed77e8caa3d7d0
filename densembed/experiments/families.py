"""Every family of densities in the same two networks: which one is best, and what it looks like."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from torch import Tensor

from densembed.data import Dataset
from densembed.data.codec import encode_field
from densembed.experiments.benchmark import machine
from densembed.experiments.reproduce import RECIPES, table_jobs
from densembed.fields.field import TOP_PERCENTILE, view
from densembed.functional.densities import FAMILIES, in_words
from densembed.markup import for_markdown
from densembed.runs.jobs import Job, typical
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.loop import estimate_seconds

KINDS = {"fixed": "{}-el-8", "moving": "{}-el-mnn-8-4"}
RESOLUTION = 2
TIMED = 5


def models() -> Iterator[tuple[str, str, str]]:
    """(kind, family, model) of all of them."""
    for kind, form in KINDS.items():
        for family in FAMILIES:
            yield kind, family, form.format(family)


def family_jobs(dataset: str, recipe: str, seeds: int, out: Path, device: str = "") -> list[Job]:
    """A job for each seed of each; those of the paper's own family are Table 1's."""
    names = [model for _, _, model in models()]
    return table_jobs(names, dataset, recipe, seeds, out, device)


def step_milliseconds(model: str, dataset: Dataset, device: str = "auto") -> float:
    """Time of a training step of one member at the paper's batch, median of several looks."""
    config = RunConfig(model=model, dataset=dataset.name, epochs=1, device=device or "auto")
    steps = -(-len(dataset.train) // config.batch_size)
    return 1e3 * median(estimate_seconds(config, dataset) / steps for _ in range(TIMED))


def report(
    jobs: Sequence[Job], dataset: Dataset, called: str, recipe: str, device: str = ""
) -> dict:
    """Errors, times and fields of all families whose members are all there, as JSON."""
    rows, fields = [], {kind: [] for kind in KINDS}
    picture = dataset.test.images[0]
    for kind, family, model in models():
        own = [job for job in jobs if job.config.model == model]
        kept = [job.checkpoint() for job in own]
        if not own or not all(kept):
            continue
        errors = [checkpoint.errors[0] for checkpoint in kept]
        nearest = typical(kept)
        rows.append(
            {
                "kind": kind,
                "family": family,
                "model": model,
                "parameters": nearest.parameters,
                "errors": [round(error, 4) for error in errors],
                "mean": round(Errors(errors).mean, 4),
                "deviation": round(Errors(errors).deviation, 4),
                "step_ms": round(step_milliseconds(model, dataset, device), 3),
            }
        )
        fields[kind].append(_field(nearest, picture))
    for kind, found in fields.items():
        # One scale for a kind, so that narrow and wide densities can be compared by eye.
        top = float(np.percentile(np.stack(found), TOP_PERCENTILE)) if found else 1.0
        for row, values in zip([row for row in rows if row["kind"] == kind], found, strict=True):
            row["field"] = encode_field(values, top)
    return {
        "dataset": called,
        "recipe": recipe,
        "config": RECIPES[recipe],
        "machine": machine(),
        "picture": encode_field(picture.float().mean(0).numpy(), 255.0),
        "rows": rows,
    }


def _field(checkpoint: Checkpoint, picture: Tensor) -> np.ndarray:
    """The trained field for one picture, channels added."""
    return view(checkpoint, picture, [-1], resolution=RESOLUTION).fields[0].sum(0)


def of_kind(table: dict, kind: str) -> list[dict]:
    """The rows of one kind of network, best first."""
    return sorted((row for row in table["rows"] if row["kind"] == kind), key=lambda r: r["mean"])


def finding(table: dict) -> str:
    """Which family is best, and whether the paper's own is a good choice, in sentences."""
    said = []
    words = {"fixed": "With fixed densities", "moving": "With a micro network"}
    for kind, start in words.items():
        rows = of_kind(table, kind)
        names = [row["family"] for row in rows]
        if len(rows) < 2 or "logistic" not in names:
            continue
        best, own = rows[0], rows[names.index("logistic")]
        text = (
            f"{start} the **{in_words(best['family'])}** density does best, "
            f"{best['mean']:.2f} ± {best['deviation']:.2f} %"
        )
        if own is best:
            second = rows[1]
            text += f"; the next is the {in_words(second['family'])} at {second['mean']:.2f} %."
        else:
            gap = own["mean"] - best["mean"]
            spread = (own["deviation"] ** 2 + best["deviation"] ** 2) ** 0.5
            verdict = "within" if gap <= spread else "more than"
            text += (
                f"; the logistic is number {names.index('logistic') + 1} of {len(rows)} at "
                f"{own['mean']:.2f} ± {own['deviation']:.2f} %, {gap:.2f} points behind, which is "
                f"{verdict} the spread of the seeds."
            )
        said.append(text)
    return " ".join(said)


def as_markdown(table: dict) -> str:
    """The report for people."""
    lines = [f"### Families on {for_markdown(table['dataset'])}, recipe {table['recipe']}", ""]
    for kind, form in KINDS.items():
        rows = of_kind(table, kind)
        if not rows:
            continue
        lines += [
            f"{form.format('…')}, {rows[0]['parameters']:,} parameters, "
            f"{len(rows[0]['errors'])} seeds:",
            "",
            "| family | test error % | a step, ms |",
            "| --- | ---: | ---: |",
            *(
                f"| {in_words(row['family'])} | {row['mean']:.2f} ± {row['deviation']:.2f} "
                f"| {row['step_ms']:.2f} |"
                for row in rows
            ),
            "",
        ]
    device = table["machine"]["device"]
    lines += [finding(table), "", f"Steps of 128 images, one member, on {device}.", ""]
    return "\n".join(lines)
