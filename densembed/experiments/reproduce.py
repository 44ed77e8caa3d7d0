"""Tables 1 and 2 of the paper, and the time that an epoch takes.

Rows, recipes and seeds become jobs (`densembed.runs.jobs`); the reports are read from their
checkpoints.
"""

from collections.abc import Iterator, Sequence

from densembed.data import Dataset, title
from densembed.experiments.benchmark import machine
from densembed.experiments.paper import TABLES, PublishedResult
from densembed.experiments.recipes import RECIPES
from densembed.experiments.report import (
    Columns,
    Experiment,
    Report,
    Settings,
    all_finished,
    error_rates,
    markdown_table,
    plus_minus,
    summary,
)
from densembed.markup import for_markdown
from densembed.runs.jobs import Job
from densembed.text import counted, unknown
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.errors import Errors
from densembed.training.loop import Epoch, train


def table_jobs(models: Sequence[str], settings: Settings) -> list[Job]:
    """A job for each seed of each model."""
    folder = settings.folder / settings.recipe
    return settings.jobs(models, folder, **RECIPES[settings.recipe])


def table_rows(table: Sequence[PublishedResult], settings: Settings) -> list[PublishedResult]:
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


BESIDE_THE_PAPER: Columns = {
    "model": "{model}",
    "parameters": "{parameters:,}",
    "ours, test error %": plus_minus,
    "paper, test error %": lambda row: plus_minus(row, "paper_"),
    "difference": lambda row: f"{row['mean'] - row['paper_mean']:+.2f}",
}
"""The columns of a table of results, each a `result`."""


def other_data(dataset: str, papers: str) -> str:
    """A sentence below a table, if our errors are not of the paper's data set."""
    return "" if dataset == papers else f" The paper's errors are of {title(papers)}."


def result(
    row: PublishedResult,
    errors: Sequence[float],
    *,
    parameters: int,
    seconds: float = 0.0,
    device: str = "cpu",
) -> Report:
    """A row of a table: our errors next to the published ones.

    Args:
        seconds: training time of all members together.
    """
    return {
        "model": row.model,
        "parameters": parameters,
        **summary(errors),
        "seconds": round(seconds, 1),
        "device": device,
        "paper_mean": row.error,
        "paper_deviation": row.deviation,
        "paper_parameters": row.parameters,
    }


def results(rows: Sequence[PublishedResult], settings: Settings) -> list[Report]:
    """The rows all of whose members were trained to the end."""
    complete = []
    for row in rows:
        if members := all_finished(table_jobs([row.model], settings), row.model):
            complete.append(
                result(
                    row,
                    error_rates(members),
                    parameters=members[0].parameters,
                    seconds=sum(each.seconds for own in members for each in own.header.epochs),
                    device=members[0].header.provenance.device,
                )
            )
    return complete


def table_report(rows: Sequence[Report], *, dataset: str, recipe: str) -> Report:
    """All numbers of a table, ours and the paper's; the Paper page reads this.

    Args:
        rows: from `results`.
        dataset: name of the data set in the report.
    """
    return {
        "dataset": dataset,
        "recipe": recipe,
        "config": RunConfig(**RECIPES[recipe]).model_dump(
            exclude={"model", "dataset", "seed", "seeds", "device"}
        ),
        "rows": list(rows),
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
        table = markdown_table(BESIDE_THE_PAPER, rows)
        members = len(rows[0]["errors"]) if rows else 0
        seconds = sum(row["seconds"] for row in rows)
        devices = {row.get("device", "cpu") for row in rows}
        threads = ", one thread each" if devices == {"cpu"} else f" on {', '.join(sorted(devices))}"
        return (
            f"### {for_markdown(report['dataset'])}, recipe {report['recipe']}\n\n{table}\n\n"
            f"{counted(members, 'seed')} per row; {seconds:,.0f} s of training in total{threads}."
            f"{other_data(report['dataset'], self.dataset)}\n"
        )

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        return {row["model"]: table_jobs([row["model"]], settings) for row in report["rows"]}


class Times(Experiment):
    """Seconds per epoch of each network of Table 1, without evaluation."""

    name = "times"
    epochs = 10

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        table_rows(TABLES["mnist"], settings)
        pick_device(settings.device or "auto")  # before a download
        yield from ()

    def report(self, settings: Settings) -> Report:
        dataset, rows = settings.load(), []
        for row in table_rows(TABLES["mnist"], settings):
            times = Errors(epoch_times(settings.config(row.model, epochs=1 + self.epochs), dataset))
            rows.append({"model": row.model, "mean": times.mean, "deviation": times.deviation})
        device = pick_device(settings.device or "auto").type
        return {
            "machine": machine(device),
            "dataset": settings.title,
            "runs": self.epochs,
            "rows": rows,
        }

    def markdown(self, report: Report) -> str:
        columns = {"model": "{model}", "seconds per epoch": "{mean:.3f} ± {deviation:.3f}"}
        return markdown_table(columns, report["rows"]) + "\n"


def epoch_times(config: RunConfig, dataset: Dataset) -> list[float]:
    """Training time in seconds of each epoch after the first one, which warms up."""
    epochs = [event for event in train(config, dataset) if isinstance(event, Epoch)]
    return [epoch.seconds for epoch in epochs[1:]]
