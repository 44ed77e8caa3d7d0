"""Test accuracy on signals: density layers beside a linear classifier, an MLP and plain CNNs.

All networks are trained in the same way. The network of each row and its recipe are chosen on a
fifth of the training signals, which are held out: first the best candidate of each row with the
first recipe, then the best recipe for it. Only these are trained on all training signals and
evaluated on the test set, once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from densembed.experiments.report import (
    Columns,
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
from densembed.runs.jobs import Job
from densembed.text import counted, unknown

Recipe = dict[str, Any]
"""Settings that differ from the defaults of `RunConfig` and from `SHARED`."""
CANDIDATES: dict[str, tuple[str, ...]] = {
    "linear": ("linear",),
    "MLP": ("mlp-90",),
    "fixed densities": ("logistic-el-25", "logistic-el-40"),
    "mNN": (
        "logistic-el-mnn-20-8",
        "logistic-el-mnn-mass-20-8",
        "logistic-el-mnn-scale-20-8",
        "logistic-el-mnn-scale-mass-20-8",
        "logistic-el-mnn-scale-20-20",
        "logistic-el-mnn-scale-40-40",
    ),
    "one stage, fixed densities": ("stages-8-logistic-el-10",),
    "one stage, mNN": ("stages-8-logistic-el-mnn-10-5",),
    "plain CNN, at most 2,000 parameters": ("cnn-8-12-16",),
    "stages, at most 2,000 parameters": ("stages-10-14-20-logistic-el-3",),
    "plain CNN, at most 5,000 parameters": ("cnn-16-24-30",),
    "stages, at most 5,000 parameters": (
        "stages-16-24-32-logistic-el-4",
        "stages-16-24-32-logistic-el-mnn-3-3",
    ),
}
"""The networks of which each row of the table has the best."""
SHARED: Recipe = {"batch_size": 128, "location_start": "grid", "scale_start": -2.0}
"""Settings that all recipes share."""
RECIPES: tuple[Recipe, ...] = (
    {"epochs": 100, "learning_rate": 0.02, "shift": 4},
    {"epochs": 100, "learning_rate": 0.02, "shift": 0},
)
"""The recipes. Candidates are compared with the first one."""
SEARCH_SEEDS = 1
PUBLISHED: dict[str, dict[str, float]] = {
    "mnist1d": {
        "logistic regression": 32.0,
        "MLP": 68.0,
        "GRU": 91.0,
        "CNN": 94.0,
        "human": 96.0,
    }
}
"""Test accuracies in % by data set: Greydanus and Kobak, ICML 2024."""


@dataclass(frozen=True)
class HeldOut:
    """A network of a row, a recipe, and the mean held-out accuracy in percent with it."""

    row: str
    model: str
    parameters: int
    recipe: Recipe
    accuracy: float


def candidates(models: Sequence[str] = ()) -> dict[str, list[str]]:
    """The candidates of each row: those in `models`, or all.

    Raises:
        ValueError: if a model is not among `CANDIDATES`.
    """
    known = [model for names in CANDIDATES.values() for model in names]
    for model in models:
        if model not in known:
            sentence = unknown("candidate", model, known)
            raise ValueError(f"{sentence}; the candidates are {', '.join(known)}.")
    chosen = {
        row: [model for model in names if not models or model in models]
        for row, names in CANDIDATES.items()
    }
    return {row: names for row, names in chosen.items() if names}


def held_out_jobs(models: Sequence[str], recipe: Recipe, settings: Settings) -> list[Job]:
    """`SEARCH_SEEDS` jobs for each model, evaluated on held-out signals of the training set."""
    number = RECIPES.index(recipe)
    return [
        Job(
            settings.config(model, seed=seed, **SHARED, **recipe),
            settings.folder / "signals" / f"search-{number}" / model / f"{seed}.safetensors",
            held_out=True,
        )
        for model in models
        for seed in range(SEARCH_SEEDS)
    ]


def choose(
    row: str, models: Sequence[str], recipes: Sequence[Recipe], settings: Settings
) -> list[HeldOut]:
    """Held-out accuracies of models and recipes whose trainings finished, the highest first."""
    choices = []
    for model in models:
        for recipe in recipes:
            if members := finished(held_out_jobs([model], recipe, settings)):
                accuracy = 100 - mean(error_rates(members))
                choices.append(HeldOut(row, model, members[0].parameters, recipe, accuracy))
    return sorted(choices, key=lambda choice: choice.accuracy, reverse=True)


def screened(settings: Settings) -> list[HeldOut]:
    """All candidates with the first recipe, the best of each row first."""
    return [
        choice
        for row, models in candidates(settings.rows).items()
        for choice in choose(row, models, RECIPES[:1], settings)
    ]


def tried(settings: Settings) -> list[HeldOut]:
    """All recipes for the best candidate of each row, the best of each row first."""
    best: dict[str, HeldOut] = {}
    for choice in screened(settings):
        best.setdefault(choice.row, choice)
    return [
        choice
        for row, first in best.items()
        for choice in choose(row, [first.model], RECIPES, settings)
    ]


def finalists(settings: Settings) -> list[HeldOut]:
    """The network and recipe of each row."""
    best: dict[str, HeldOut] = {}
    for choice in tried(settings):
        best.setdefault(choice.row, choice)
    return list(best.values())


def final_jobs(choice: HeldOut, settings: Settings) -> list[Job]:
    """A job for each seed of a chosen network, on all training signals."""
    folder = settings.folder / "signals" / "final"
    return settings.jobs([choice.model], folder, **SHARED, **choice.recipe)


def in_words(recipe: Recipe) -> str:
    """The settings of a recipe, separated by commas.

    >>> in_words({"epochs": 100, "learning_rate": 0.02})
    'epochs 100, learning_rate 0.02'
    """
    return ", ".join(
        f"{name} {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in recipe.items()
    )


def accuracy(row: Mapping[str, Any]) -> str:
    """The test accuracy of a row in percent, with its standard deviation over several seeds."""
    return plus_minus({**row, "mean": 100 - row["mean"]})


RESULTS: Columns = {
    "row": "{row}",
    "model": "{model}",
    "parameters": "{parameters:,}",
    "test accuracy %": accuracy,
    "held out %": "{accuracy:.2f}",
    "seconds per training": "{seconds:.1f}",
}
"""The columns of the table of results."""


def finding(report: Report) -> str:
    """The accuracy of stages with densities beside that of a plain CNN of the same size."""
    rows = {row["row"]: row for row in report["rows"]}
    sentences = []
    for name, row in rows.items():
        kind, _, limit = name.partition(", ")
        if kind != "stages":
            continue
        text = (
            f"Test accuracy with {limit}: **{accuracy(row)} %** ({describe(row['model'])}, "
            f"{row['parameters']:,})"
        )
        if plain := rows.get(f"plain CNN, {limit}"):
            text += f"; a plain CNN: {accuracy(plain)} %"
        sentences.append(text + ".")
    alone = [
        f"{name}: {accuracy(rows[name])} %" for name in ("mNN", "fixed densities") if name in rows
    ]
    if alone:
        sentences.append(f"Densities on the signal itself, without stages: {', '.join(alone)}.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


class Signals(Experiment):
    """Test accuracy and parameters of networks for signals, beside published accuracies."""

    name, dataset = "signals", "mnist1d"

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        models = [model for names in candidates(settings.rows).values() for model in names]
        yield held_out_jobs(models, RECIPES[0], settings)
        best = list(dict.fromkeys(choice.model for choice in tried(settings)))
        yield [job for recipe in RECIPES[1:] for job in held_out_jobs(best, recipe, settings)]
        yield [job for choice in finalists(settings) for job in final_jobs(choice, settings)]

    def report(self, settings: Settings) -> Report:
        rows = []
        for choice in finalists(settings):
            if members := all_finished(final_jobs(choice, settings), choice.model):
                seconds = [sum(epoch.seconds for epoch in one.header.epochs) for one in members]
                rows.append(
                    {
                        **asdict(choice),
                        **summary(error_rates(members)),
                        "seconds": round(mean(seconds), 1),
                        "device": members[0].header.provenance.device,
                    }
                )
        return {
            "dataset": settings.title,
            "shared": SHARED,
            "seeds": settings.seeds,
            "search_seeds": SEARCH_SEEDS,
            "screened": [asdict(choice) for choice in screened(settings)],
            "tried": [asdict(choice) for choice in tried(settings)],
            "rows": rows,
            "published": PUBLISHED.get(settings.dataset, {}),
        }

    def markdown(self, report: Report) -> str:
        first = in_words(RECIPES[0])
        screened = {name: RESULTS[name] for name in ("row", "model", "parameters", "held out %")}
        parts = [
            f"### Signals of {for_markdown(report['dataset'])}",
            markdown_table(RESULTS, report["rows"]),
        ]
        if found := finding(report):
            parts.append(found)
        if report["published"]:
            listed = ", ".join(f"{name} {value:g} %" for name, value in report["published"].items())
            parts.append(f"Published (Greydanus and Kobak, ICML 2024): {listed}.")
        parts += [
            f"{counted(report['seeds'], 'seed')} per row, one thread each. All recipes share "
            f"{in_words(report['shared'])}. For each row, the best candidate with {first}, "
            "and then its best recipe, were chosen on held-out training signals, with "
            f"{counted(report['search_seeds'], 'seed')} each. The recipes of these candidates, the "
            "chosen one of each row first:",
            markdown_table(
                {
                    "model": "{model}",
                    "recipe": lambda row: in_words(row["recipe"]),
                    "held out %": "{accuracy:.2f}",
                },
                report["tried"],
            ),
            f"All candidates with {first}:",
            markdown_table(screened, report["screened"]),
        ]
        return "\n\n".join(parts) + "\n"
