"""Test error by number of parameters: the best network of the framework's layers in each budget.

The candidates and recipes are declared here. Everything is chosen on 10,000 images held out of the
training set: first, after a few epochs with one recipe, the best candidate of each budget and kind,
then the best recipe for each of those. Only these finalists are trained on all images and evaluated
on the test set, once. Images are not augmented.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from densembed.data import Dataset
from densembed.experiments.paper import TABLES
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    all_finished,
    error_rates,
    finished,
    markdown_table,
    plus_minus,
    summary,
)
from densembed.markup import for_markdown
from densembed.models.names import describe
from densembed.models.registry import build, parameter_count
from densembed.runs.jobs import Job
from densembed.text import unknown

BUDGETS = (136, 360, 906, 3160, 6510)
"""Parameters of five rows of the paper: three with fixed densities, and the two largest."""

CANDIDATES: dict[str, tuple[str, ...]] = {
    "densities": (
        "logistic-el-3", "gaussian-el-3", "laplace-el-3", "logistic-el-mnn-2-2",
        "logistic-el-mnn-scale-2-1", "stages-2-logistic-el-2",
        "logistic-el-5", "logistic-el-mnn-3-3", "logistic-el-mnn-scale-3-2",
        "stages-6-logistic-el-2", "stages-3-4-logistic-el-2",
        "logistic-el-mnn-scale-4-3", "stages-6-8-logistic-el-2", "stages-4-6-logistic-el-3",
        "stages-4-5-7-logistic-el-2",
        "logistic-el-mnn-scale-6-4", "stages-8-16-logistic-el-3", "stages-8-10-12-logistic-el-3",
        "stages-8-12-14-logistic-el-2",
        "logistic-el-mnn-scale-8-4", "stages-8-12-logistic-el-mnn-4-2",
        "stages-16-24-logistic-el-3", "stages-12-16-18-logistic-el-3",
        "stages-10-16-24-logistic-el-2",
    ),
    "cnn": ("cnn-2-3-2", "cnn-4-4-5", "cnn-8-10-12", "cnn-12-16-18"),
    "mlp": ("mlp-3", "mlp-8"),
}  # fmt: skip
"""The candidates of each kind. A network belongs to the smallest budget that is large enough."""
KINDS = {
    "densities": "density layers",
    "cnn": "plain CNN",
    "mlp": "MLP",
}

SEARCH: dict[str, tuple[float, ...]] = {
    "learning_rate": (0.02, 0.04),
    "density_rate": (3.0, 0.5),
}
"""The values that are combined into recipes. Candidates are chosen with the first value of each.
Only the learning rate matters for networks without densities."""
SHARED: dict[str, Any] = {
    "batch_size": 256,
    "location_start": "grid",
    "scale_start": -2.0,
    "locator_rate": 0.2,
}
"""Settings that all recipes share."""
SCREEN_EPOCHS, SEARCH_EPOCHS, EPOCHS = 3, 8, 20


def budget_of(parameters: int) -> int | None:
    """The smallest budget that is large enough, or None."""
    return next((budget for budget in BUDGETS if parameters <= budget), None)


@dataclass(frozen=True)
class Candidate:
    """A network, with its kind, its number of parameters and its budget."""

    kind: str
    model: str
    parameters: int
    budget: int


def candidates(dataset: Dataset, models: Sequence[str] = ()) -> list[Candidate]:
    """The candidates that fit a budget: those in `models`, or all.

    Raises:
        ValueError: if a model is not among `CANDIDATES`.
    """
    kinds = {model: kind for kind, models in CANDIDATES.items() for model in models}
    for model in models:
        if model not in kinds:
            sentence = unknown("candidate", model, kinds)
            raise ValueError(f"{sentence}; the candidates are {', '.join(kinds)}.")
    fitting = []
    for model in models or kinds:
        network = build(model, dataset.input_shape, classes=len(dataset.classes))
        size = parameter_count(network)
        if budget := budget_of(size):
            fitting.append(Candidate(kinds[model], model, size, budget))
    return fitting


def _held_out(
    model: str, settings: Settings, folder: str, epochs: int, recipe: dict[str, float]
) -> Job:
    config = settings.config(model, epochs=epochs, **SHARED, **recipe)
    path = settings.folder / "frontier" / folder / f"{model}.safetensors"
    return Job(config, path, held_out=True)


def screen_jobs(candidates: Sequence[Candidate], settings: Settings) -> list[Job]:
    """A job for each candidate, with the first recipe, evaluated on held-out images."""
    first = {name: values[0] for name, values in SEARCH.items()}
    return [_held_out(one.model, settings, "screen", SCREEN_EPOCHS, first) for one in candidates]


def search_jobs(candidates: Sequence[Candidate], settings: Settings) -> list[Job]:
    """A job for each recipe of each candidate, evaluated on held-out images."""
    jobs = []
    for candidate in candidates:
        grid = SEARCH
        if candidate.kind != "densities":
            grid = {n: v if n == "learning_rate" else v[:1] for n, v in SEARCH.items()}
        for values in product(*grid.values()):
            recipe = dict(zip(SEARCH, values, strict=True))
            folder = f"search/{'_'.join(map(str, values))}"
            jobs.append(_held_out(candidate.model, settings, folder, SEARCH_EPOCHS, recipe))
    return jobs


@dataclass(frozen=True)
class Choice:
    """A candidate with its best recipe on held-out images, and the error of that recipe."""

    candidate: Candidate
    recipe: dict[str, Any]
    error: float


def choose(candidates: Sequence[Candidate], jobs: Sequence[Job]) -> list[Choice]:
    """The best recipe of each candidate of which at least one training finished."""
    choices = []
    for candidate in candidates:
        trained = [
            (error, job)
            for job in jobs
            if job.config.model == candidate.model
            for error in error_rates(finished([job]))
        ]
        if trained:
            error, job = min(trained, key=lambda pair: pair[0])
            recipe = {name: getattr(job.config, name) for name in SEARCH}
            choices.append(Choice(candidate, recipe, error))
    return choices


def finalists(choices: Sequence[Choice]) -> list[Choice]:
    """The choice with the lowest held-out error for each budget and kind."""
    best: dict[tuple[int, str], Choice] = {}
    for choice in sorted(choices, key=lambda choice: choice.error):
        best.setdefault((choice.candidate.budget, choice.candidate.kind), choice)
    return [best[key] for key in sorted(best)]


def final_jobs(choices: Sequence[Choice], settings: Settings) -> list[Job]:
    """A job for each seed of each finalist, on all training images."""
    folder = settings.folder / "frontier" / "final"
    return [
        job
        for choice in choices
        for job in settings.jobs(
            [choice.candidate.model], folder, epochs=EPOCHS, **SHARED, **choice.recipe
        )
    ]


def frontier_report(
    screened: Sequence[Choice], finals: Sequence[Choice], jobs: Sequence[Job], *, title: str
) -> Report:
    """Held-out errors of the candidates and test errors of the finalists.

    Args:
        jobs: the finalists' trainings.
        title: name of the data set in the report.
    """
    entries = []
    for choice in finals:
        if members := all_finished(jobs, choice.candidate.model):
            entries.append({**_entry(choice), **summary(error_rates(members))})
    return {
        "dataset": title,
        "budgets": list(BUDGETS),
        "shared": SHARED,
        "search": {name: list(values) for name, values in SEARCH.items()},
        "screen_epochs": SCREEN_EPOCHS,
        "search_epochs": SEARCH_EPOCHS,
        "epochs": EPOCHS,
        "candidates": [_entry(choice) for choice in screened],
        "entries": entries,
        "paper": [
            {
                "model": row.model,
                "parameters": row.parameters,
                "mean": row.error,
                "deviation": row.deviation,
            }
            for row in TABLES.get(title, ())
        ],
    }


def _entry(choice: Choice) -> Report:
    return {
        "budget": choice.candidate.budget,
        "kind": choice.candidate.kind,
        "model": choice.candidate.model,
        "parameters": choice.candidate.parameters,
        "recipe": choice.recipe,
        "held_out": round(choice.error, 4),
    }


def best(report: Report, budget: int, kind: str = "densities") -> Report | None:
    """The finalist of a kind with the lowest test error among those within a budget."""
    within = [
        entry
        for entry in report["entries"]
        if entry["kind"] == kind and entry["parameters"] <= budget
    ]
    return min(within, key=lambda entry: entry["mean"], default=None)


def finding(report: Report) -> str:
    """The lowest error in each budget, next to the paper's and that of a plain CNN."""
    sentences = []
    for budget in report["budgets"]:
        own = best(report, budget)
        if own is None:
            continue
        text = (
            f"With at most {budget:,} parameters: **{plus_minus(own)} %** "
            f"({describe(own['model'])}, {own['parameters']:,})"
        )
        rows = [row for row in report["paper"] if row["parameters"] <= budget]
        others = []
        if rows:
            lowest = min(rows, key=lambda row: row["mean"])
            others.append(f"the paper's best model: {lowest['mean']:.2f} %")
        if plain := best(report, budget, "cnn"):
            others.append(f"a plain CNN: {plus_minus(plain)} %")
        sentences.append("; ".join([text, *others]) + ".")
    return "\n".join(f"- {text}" for text in sentences)


class Frontier(Experiment):
    """The lowest error within each budget of parameters."""

    name = "frontier"

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        for _, _, jobs in self._stages(settings):
            yield jobs

    def _stages(
        self, settings: Settings
    ) -> Iterator[tuple[Sequence[Choice], Sequence[Choice], list[Job]]]:
        """Screening, search and final training: the choices of the stages before, and the jobs."""
        everyone = candidates(settings.load(), settings.rows)
        jobs = screen_jobs(everyone, settings)
        yield [], [], jobs
        screened = choose(everyone, jobs)
        chosen = [choice.candidate for choice in finalists(screened)]
        jobs = search_jobs(chosen, settings)
        yield screened, [], jobs
        finals = choose(chosen, jobs)
        yield screened, finals, final_jobs(finals, settings)

    def report(self, settings: Settings) -> Report:
        *_, (screened, finals, jobs) = self._stages(settings)
        return frontier_report(screened, finals, jobs, title=settings.title)

    def gallery(self, settings: Settings, report: Report) -> dict[str, Sequence[Job]]:
        """The best network of each budget, with a prefix that tells it from a row of Table 1."""
        *_, (_, _, jobs) = self._stages(settings)
        winners = {entry["model"] for budget in BUDGETS if (entry := best(report, budget))}
        return {
            f"frontier-{model}": [job for job in jobs if job.config.model == model]
            for model in sorted(winners)
        }

    def markdown(self, report: Report) -> str:
        search = "; ".join(
            f"{name} {', '.join(map(str, values))}" for name, values in report["search"].items()
        )
        tested = sorted(report["candidates"], key=lambda one: (one["budget"], one["held_out"]))
        parts = [
            f"### Errors by parameters on {for_markdown(report['dataset'])}",
            markdown_table(
                {
                    "at most": "{budget:,}",
                    "kind": "{kind}",
                    "model": "{model}",
                    "parameters": "{parameters:,}",
                    "test error %": plus_minus,
                    "held out %": "{held_out:.2f}",
                },
                [{**entry, "kind": KINDS[entry["kind"]]} for entry in report["entries"]],
            ),
            finding(report),
            f"Their recipes. Each is the best on held-out training images after "
            f"{report['search_epochs']} epochs, out of all combinations of {search}:",
            markdown_table(
                {"model": "{model}", **{name: f"{{recipe[{name}]:g}}" for name in SEARCH}},
                report["entries"],
            ),
            f"All candidates after {report['screen_epochs']} epochs with the first of these "
            "recipes. The best of each budget and kind went on:",
            markdown_table(
                {
                    "model": "{model}",
                    "parameters": "{parameters:,}",
                    "held out %": "{held_out:.2f}",
                },
                tested,
            ),
        ]
        return "\n\n".join(parts) + "\n"
