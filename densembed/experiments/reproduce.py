"""Tables 1 and 2 of the paper, and the time that an epoch takes.

Rows, recipes and seeds become jobs (`densembed.runs.jobs`); the reports are read from their
checkpoints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from densembed.data import Dataset
from densembed.experiments.benchmark import machine
from densembed.experiments.paper import TABLES, Row
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    error_rates,
    finished,
    markdown_table,
    plus_minus,
    spread,
    summary,
)
from densembed.markup import for_markdown
from densembed.runs.jobs import Job
from densembed.text import unknown
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
"""The settings of each recipe that differ from the defaults of `RunConfig`.

`paper` uses the defaults (20 epochs, Section 4). `tuned` was chosen on held-out images of MNIST,
`colour` on held-out images of CIFAR-10 (JPEG).
"""


def recipe_of(config: RunConfig) -> str | None:
    """The recipe that a training followed, or None if it followed none of them."""
    own = config.model_dump(include={"model", "dataset", "seed", "seeds", "device"})
    return next(
        (name for name, part in RECIPES.items() if RunConfig(**own, **part) == config), None
    )


def table_jobs(models: Sequence[str], settings: Settings) -> list[Job]:
    """A job for each seed of each model."""
    folder = settings.folder / settings.recipe
    change = {**RECIPES[settings.recipe], **settings.place}
    return [
        Job(
            RunConfig(model=model, dataset=settings.dataset, seed=seed, **change),
            folder / model / f"{seed}.safetensors",
        )
        for model in models
        for seed in range(settings.seeds)
    ]


def table_rows(table: Sequence[Row], settings: Settings) -> list[Row]:
    """The rows that the settings name, or all.

    Raises:
        ValueError: if the table has no such row.
    """
    by_model = {row.model: row for row in table}
    models = settings.rows or tuple(by_model)
    for model in models:
        if model not in by_model:
            sentence = unknown("row of the table", model, by_model)
            raise ValueError(f"{sentence}; it has {', '.join(by_model)}.")
    return [by_model[model] for model in models]


@dataclass(frozen=True)
class Result:
    """A reproduced row of a table next to the published one."""

    row: Row
    errors: list[float]
    parameters: int
    seconds: float
    """Training time of all members together."""
    device: str

    @property
    def mean(self) -> float:
        return Errors(self.errors).mean

    @property
    def deviation(self) -> float:
        return spread(self.errors)


def results(rows: Sequence[Row], settings: Settings) -> list[Result]:
    """The rows all of whose members were trained to the end."""
    complete = []
    for row in rows:
        jobs = table_jobs([row.model], settings)
        members = finished(jobs)
        if len(members) == len(jobs):
            seconds = sum(epoch.seconds for member in members for epoch in member.header.epochs)
            first = members[0]
            device = first.header.provenance.device
            complete.append(Result(row, error_rates(members), first.parameters, seconds, device))
    return complete


def table_report(results: Sequence[Result], *, dataset: str, recipe: str) -> Report:
    """All numbers of a table, ours and the paper's; the Paper page reads this.

    Args:
        dataset: name of the data set in the report.
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
                **summary(result.errors),
                "seconds": round(result.seconds, 1),
                "device": result.device,
                "paper_mean": result.row.error,
                "paper_deviation": result.row.deviation,
                "paper_parameters": result.row.parameters,
            }
            for result in results
        ],
    }


class Table(Experiment):
    """A table of the paper: test errors over several seeds, next to the published ones."""

    uses_recipe = True

    def __init__(self, name: str, dataset: str):
        self.name, self.dataset, self.rows = name, dataset, TABLES[dataset]

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        rows = table_rows(self.rows, settings)
        yield table_jobs([row.model for row in rows], settings)

    def report(self, settings: Settings) -> Report:
        complete = results(table_rows(self.rows, settings), settings)
        return table_report(complete, dataset=settings.title, recipe=settings.recipe)

    def markdown(self, report: Report) -> str:
        rows = report["rows"]
        table = markdown_table(
            {
                "model": "left",
                "parameters": "right",
                "ours, test error %": "right",
                "paper, test error %": "right",
                "difference": "right",
            },
            [
                [
                    row["model"],
                    f"{row['parameters']:,}",
                    plus_minus(row),
                    plus_minus(row, "paper_"),
                    f"{row['mean'] - row['paper_mean']:+.2f}",
                ]
                for row in rows
            ],
        )
        members = len(rows[0]["errors"]) if rows else 0
        seconds = sum(row["seconds"] for row in rows)
        devices = {row.get("device", "cpu") for row in rows}
        threads = ", one thread each" if devices == {"cpu"} else f" on {', '.join(sorted(devices))}"
        return (
            f"### {for_markdown(report['dataset'])}, recipe {report['recipe']}\n\n{table}\n\n"
            f"{members} seeds per row; {seconds:,.0f} s of training in total{threads}.\n"
        )

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        return {row["model"]: table_jobs([row["model"]], settings) for row in report["rows"]}


class Times(Experiment):
    """Seconds per epoch of each network of Table 1, without evaluation."""

    name = "times"
    epochs = 10

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        table_rows(TABLES["mnist"], settings)
        yield from ()

    def report(self, settings: Settings) -> Report:
        dataset, rows = settings.load(), []
        for row in table_rows(TABLES["mnist"], settings):
            seconds = epoch_times(row.model, dataset, self.epochs)
            rows.append({"model": row.model, "mean": mean(seconds), "deviation": spread(seconds)})
        return {"machine": machine(), "dataset": dataset.name, "runs": self.epochs, "rows": rows}

    def markdown(self, report: Report) -> str:
        rows = [
            [row["model"], f"{row['mean']:.3f} ± {row['deviation']:.3f}"] for row in report["rows"]
        ]
        return markdown_table({"model": "left", "seconds per epoch": "right"}, rows) + "\n"


def epoch_times(model: str, dataset: Dataset, runs: int) -> list[float]:
    """Training time in seconds of each of `runs` epochs, after one epoch to warm up."""
    config = RunConfig(model=model, dataset=dataset.name, epochs=runs + 1)
    epochs = [event for event in train(config, dataset) if isinstance(event, Epoch)]
    return [epoch.seconds for epoch in epochs[1:]]
