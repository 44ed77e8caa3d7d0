"""The paper's tables, figure and times.

Rows, recipes and seeds become jobs (`densembed.runs.jobs`); all that is reported is read from what
those left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from densembed.data import Dataset, slug
from densembed.experiments.paper import Row
from densembed.markup import for_markdown
from densembed.runs.jobs import Job
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.loop import Epoch, train

TUNED = {
    "learning_rate": 0.02,
    "density_rate": 0.5,
    "locator_rate": 0.2,
    "locator_decay": 0.2,
    "scale_start": -2.0,
    "location_start": "grid",
}
RECIPES: dict[str, dict] = {
    "paper": {},
    "tuned": TUNED,
    "colour": {
        **TUNED,
        "learning_rate": 0.04,
        "density_rate": 0.25,
        "locator_rate": 0.05,
        "scale_start": -3.6,
    },
}
"""What each recipe changes in a `RunConfig`: `paper` is its defaults (20 epochs of Section 4),
`tuned` was sought on held-out images of MNIST, `colour` on those of CIFAR-10 (JPEG)."""


def recipe_of(config: RunConfig) -> str | None:
    """The recipe that a training followed, None where it is none of them."""
    told = config.model_dump(include={"model", "dataset", "seed", "seeds", "device"})
    return next((name for name, own in RECIPES.items() if RunConfig(**told, **own) == config), None)


def table_jobs(
    rows: Sequence[str], dataset: str, recipe: str, seeds: int, out: Path, device: str = ""
) -> list[Job]:
    """A job for each seed of each row, on that device where one is named."""
    folder = out / slug(dataset) / recipe
    place = {"device": device} if device else {}
    return [
        Job(
            RunConfig(model=model, dataset=dataset, seed=seed, **{**RECIPES[recipe], **place}),
            folder / model / f"{seed}.safetensors",
        )
        for model in rows
        for seed in range(seeds)
    ]


@dataclass(frozen=True)
class Result:
    """A row of a table as it came out, beside the one that is printed."""

    row: Row
    errors: list[float]
    parameters: int
    seconds: float
    """Of training all members, one after the other or together."""
    device: str

    @property
    def mean(self) -> float:
        return Errors(self.errors).mean

    @property
    def deviation(self) -> float:
        return Errors(self.errors).deviation


def results(rows: Sequence[Row], dataset: str, recipe: str, seeds: int, out: Path) -> list[Result]:
    """The rows whose members are all there."""
    found = []
    for row in rows:
        jobs = table_jobs([row.model], dataset, recipe, seeds, out)
        parts = [job.checkpoint() for job in jobs]
        if all(parts):
            seconds = sum(epoch.seconds for part in parts for epoch in part.header.epochs)
            errors = [part.errors[0] for part in parts]
            device = parts[0].header.provenance.device
            found.append(Result(row, errors, parts[0].parameters, seconds, device))
    return found


def as_json(found: Sequence[Result], dataset: str, recipe: str) -> dict:
    """What the Paper page reads: every number of the table, ours and theirs.

    Args:
        dataset: what it is to be called.
    """
    return {
        "dataset": dataset,
        "recipe": recipe,
        "config": RunConfig(**RECIPES[recipe]).model_dump(
            exclude={"model", "dataset", "seed", "seeds", "device"}
        ),
        "rows": [
            {
                "model": result.row.model,
                "parameters": result.parameters,
                "errors": [round(error, 4) for error in result.errors],
                "mean": round(result.mean, 4),
                "deviation": round(result.deviation, 4),
                "seconds": round(result.seconds, 1),
                "device": result.device,
                "paper_mean": result.row.error,
                "paper_deviation": result.row.deviation,
                "paper_parameters": result.row.parameters,
            }
            for result in found
        ],
    }


def as_markdown(table: dict) -> str:
    """The table of `as_json` for people."""
    lines = [
        f"### {for_markdown(table['dataset'])}, recipe {table['recipe']}",
        "",
        "| model | parameters | ours, test error % | paper, test error % | difference |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in table["rows"]:
        lines.append(
            f"| {row['model']} | {row['parameters']:,} "
            f"| {row['mean']:.2f} ± {row['deviation']:.2f} "
            f"| {row['paper_mean']:.2f} ± {row['paper_deviation']:.2f} "
            f"| {row['mean'] - row['paper_mean']:+.2f} |"
        )
    members = len(table["rows"][0]["errors"]) if table["rows"] else 0
    seconds = sum(row["seconds"] for row in table["rows"])
    devices = {row.get("device", "cpu") for row in table["rows"]}
    threads = ", one thread each" if devices == {"cpu"} else f" on {', '.join(sorted(devices))}"
    lines += ["", f"{members} seeds a row; {seconds:,.0f} s of training in all{threads}.", ""]
    return "\n".join(lines)


def epoch_times(model: str, dataset: Dataset, runs: int) -> list[float]:
    """Seconds of training an epoch, for `runs` epochs after one to warm up."""
    config = RunConfig(model=model, dataset=dataset.name, epochs=runs + 1)
    epochs = [event for event in train(config, dataset) if isinstance(event, Epoch)]
    return [epoch.seconds for epoch in epochs[1:]]
