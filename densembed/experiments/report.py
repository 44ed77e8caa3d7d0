"""What every experiment of `python -m densembed reproduce` provides, and tables in Markdown."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from densembed.data import DATASETS, Dataset, is_folder, is_path, load_dataset, slug, title
from densembed.markup import for_markdown
from densembed.runs.jobs import Job
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors

Report = dict[str, Any]
"""The JSON content of a report."""
HARMLESS = re.compile(r"(?!.*www)\+?[\w .,%/±…-]*")
"""Text that has no meaning in Markdown, so that it can stay readable in the source."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options that all experiments share.

    Args:
        rows: names of the models to include; all of the experiment's models if empty.
        out: folder for checkpoints and reports.
        device: where to train; each training chooses one if empty.
        included: whether Figure 1 shows the included models, without a training.
        inputs: the classes whose first test images are in Figure 1; if empty, 7, 2 and 1,
            or classes that the data set has.
    """

    dataset: str
    seeds: int
    out: Path
    recipe: str = "paper"
    rows: tuple[str, ...] = ()
    data_dir: Path | None = None
    device: str = ""
    included: bool = False
    inputs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name of the data set in reports: for files of the user their title, not their path.

        A folder with the name of a built-in data set does not pass for it.
        """
        if not is_path(self.dataset):
            return self.dataset
        own = title(self.dataset, self.data_dir)
        kind = "folder" if is_folder(self.dataset) else "table"
        return f"{kind} {own}" if slug(own) in DATASETS else own

    @property
    def slug(self) -> str:
        """Name of the data set in file names."""
        return slug(self.title)

    @property
    def folder(self) -> Path:
        """Folder for the checkpoints of this data set."""
        return self.out / self.slug

    def config(self, model: str, **change: Any) -> RunConfig:
        """The config of a training, with the settings that differ from the defaults."""
        device = {"device": self.device} if self.device else {}
        return RunConfig(model=model, dataset=self.dataset, **{**change, **device})

    def jobs(
        self, models: Iterable[str], folder: Path, held_out: bool = False, **change: Any
    ) -> list[Job]:
        """A job for each seed of each model, with the settings that differ from the defaults."""
        return [
            Job(
                self.config(model, seed=seed, **change),
                folder / model / f"{seed}.safetensors",
                held_out,
            )
            for model in models
            for seed in range(self.seeds)
        ]

    def load(self) -> Dataset:
        return load_dataset(self.dataset, self.data_dir)


class Experiment(Protocol):
    """An experiment: trainings, the report that is read from their checkpoints, and its Markdown.

    `name` is its name on the command line, `dataset` and `seeds` are defaults.
    """

    name: str
    dataset: str = "mnist"
    seeds: int = 5
    uses_recipe: bool = False
    """Whether `--recipe` makes a difference, so that file names contain the recipe."""

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        """Batches of trainings; each batch has finished before the next one is requested."""
        ...

    def report(self, settings: Settings) -> Report:
        """The results as JSON, once all jobs have finished."""
        ...

    def markdown(self, report: Report) -> str:
        """The report as Markdown."""
        ...

    def stem(self, settings: Settings) -> str:
        """Name of the report's files, without extension."""
        parts = [self.name, settings.slug, *([settings.recipe] if self.uses_recipe else [])]
        return "-".join(parts)

    def selected(self, settings: Settings) -> Sequence[str]:
        """The models that `--rows` selects; none if the report has all that the experiment has."""
        return settings.rows

    def row_of(self, model: str) -> str:
        """The name for `--rows` of a model in the report."""
        return model

    def files(self, report: Report) -> dict[str, str]:
        """The contents of the report's files, by extension."""
        return {"json": json.dumps(report, indent=1) + "\n", "md": self.markdown(report)}

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        """The trainings of each model that belongs in the gallery, by file name."""
        return {}


LISTS = ("rows", "entries", "candidates", "screened")
"""The lists of a report whose items are results of a model."""


def models_of(report: Any) -> list[str]:
    """The models with results in a report of any experiment; none in a foreign or damaged file."""
    models = report.get("models") if isinstance(report, dict) else None
    names = [*models] if isinstance(models, list) else []
    names += [item.get("model") for item in _items(report)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def seeds_of(report: Any) -> int:
    """The largest number of errors of a model in a report; 0 if it has none, or is foreign."""
    errors = [item.get("errors") for item in _items(report) if "model" in item]
    return max((len(each) for each in errors if isinstance(each, list)), default=0)


def _items(report: Any) -> Iterator[dict]:
    lists = (report.get(name) for name in LISTS) if isinstance(report, dict) else ()
    for items in lists:
        if isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))


def finished(jobs: Iterable[Job]) -> list[Checkpoint]:
    """The checkpoints of those jobs that were trained to the end."""
    return [checkpoint for job in jobs if (checkpoint := job.checkpoint())]


def all_finished(jobs: Sequence[Job], model: str) -> list[Checkpoint]:
    """The checkpoints of a model's jobs, or none unless all were trained to the end."""
    own = [job for job in jobs if job.config.model == model]
    members = finished(own)
    return members if len(members) == len(own) else []


def error_rates(checkpoints: Iterable[Checkpoint]) -> list[float]:
    """The test error of each checkpoint's first member, in percent."""
    return [checkpoint.errors[0] for checkpoint in checkpoints if checkpoint.errors]


def summary(errors: Sequence[float]) -> dict[str, Any]:
    """Errors with their mean and standard deviation, as reports contain them.

    The deviation of one error is None.
    """
    values = Errors(errors)
    return {
        "errors": [round(error, 4) for error in errors],
        "mean": round(values.mean, 4),
        "deviation": round(values.deviation, 4) if len(values) > 1 else None,
    }


def deviation(row: Mapping[str, Any], prefix: str = "") -> float | None:
    """The standard deviation of a row of a report; None for a single training.

    Files of earlier versions have 0 for it.
    """
    return None if len(row.get(f"{prefix}errors", ())) == 1 else row[f"{prefix}deviation"]


def plus_minus(row: Mapping[str, Any], prefix: str = "") -> str:
    """Mean and standard deviation of a row of a report; the mean alone of a single training."""
    spread = deviation(row, prefix)
    return f"{row[f'{prefix}mean']:.2f}" + (f" ± {spread:.2f}" if spread is not None else "")


Columns = Mapping[str, str | Callable[[Mapping[str, Any]], str]]
"""For each heading of a table the format of its cells, or a function of the row."""


def formatted(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The text of each cell of a table, by heading, one dictionary per row."""
    forms = {
        heading: form if callable(form) else form.format_map for heading, form in columns.items()
    }
    return [{heading: form(row) for heading, form in forms.items()} for row in rows]


def markdown_table(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> str:
    """A table in Markdown; text that could be markup is escaped.

    Args:
        columns: formatted numbers and the results of functions are aligned right.
        rows: the values of each row, by name.

    >>> rows = [{"model": "linear", "error": 7.34}]
    >>> print(markdown_table({"model": "{model}", "error %": "{error:.1f}"}, rows))
    | model | error % |
    | --- | ---: |
    | linear | 7.3 |
    """
    right = [callable(form) or ":" in form for form in columns.values()]
    lines = [[*map(_cell, columns)], ["---:" if numbers else "---" for numbers in right]]
    lines += [[*map(_cell, texts.values())] for texts in formatted(columns, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str) -> str:
    return text if HARMLESS.fullmatch(text) else for_markdown(text)
