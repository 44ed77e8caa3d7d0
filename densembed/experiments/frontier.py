"""How few errors so many parameters can make: networks of the framework's layers, by budget.

Candidates and recipes are declared here. All is chosen on 10,000 images held out of the training
set: after a few epochs by one recipe the best candidate of each budget, then the best recipe of
each of those. Only they, and the plain networks beside them, are trained on all images and judged
on the test set, once. No picture is augmented.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from densembed.data import load_dataset, slug
from densembed.experiments.paper import TABLES
from densembed.markup import for_markdown
from densembed.models.names import build, describe, parameter_count
from densembed.runs.jobs import Job
from densembed.text import unknown
from densembed.training.config import RunConfig
from densembed.training.errors import Errors

BUDGETS = (136, 360, 906, 3160, 6510)
"""Parameters of the paper's rows: three fixed ones, and its largest two."""

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
"""What is tried, by kind; a network belongs to the smallest budget that holds it."""
KINDS = {
    "densities": "density layers",
    "cnn": "plain CNN",
    "mlp": "MLP",
}

SEARCH = {
    "learning_rate": (0.02, 0.04),
    "density_rate": (3.0, 0.5),
}
"""Recipes tried, every combination. The first value of each makes the recipe by which candidates
are chosen; where there are no densities, only the learning rate makes a difference."""
SHARED = {
    "batch_size": 256, "location_start": "grid", "scale_start": -2.0, "locator_rate": 0.2,
}  # fmt: skip
"""The same for all."""
SCREEN_EPOCHS, SEARCH_EPOCHS, EPOCHS = 3, 8, 20


def budget_of(parameters: int) -> int | None:
    """The smallest budget that holds so many parameters."""
    return next((budget for budget in BUDGETS if parameters <= budget), None)


@dataclass(frozen=True)
class Candidate:
    """A network that is tried: its kind, its parameters and the budget it belongs to."""

    kind: str
    model: str
    parameters: int
    budget: int


def candidates(dataset: str, data_dir=None, only: Sequence[str] = ()) -> list[Candidate]:
    """Those of `CANDIDATES`, or of them the ones named in `only`.

    Raises ValueError for a name that is not declared.
    """
    data = load_dataset(dataset, data_dir)
    declared = {model: kind for kind, models in CANDIDATES.items() for model in models}
    for model in only:
        if model not in declared:
            sentence = unknown("candidate", model, declared)
            raise ValueError(f"{sentence}; the candidates are {', '.join(declared)}.")
    found = []
    for model in only or declared:
        size = parameter_count(build(model, data.input_shape, len(data.classes)))
        if budget := budget_of(size):
            found.append(Candidate(declared[model], model, size, budget))
    return found


def _config(model: str, dataset: str, epochs: int, device: str, **change) -> RunConfig:
    place = {"device": device} if device else {}
    return RunConfig(model=model, dataset=dataset, epochs=epochs, **{**SHARED, **change, **place})


def screen_jobs(found: Sequence[Candidate], dataset: str, out: Path, device: str = "") -> list[Job]:
    """A job for each candidate, by the first recipe, judged on held-out images."""
    folder = out / slug(dataset) / "frontier" / "screen"
    first = {name: values[0] for name, values in SEARCH.items()}
    return [
        Job(
            _config(candidate.model, dataset, SCREEN_EPOCHS, device, **first),
            folder / f"{candidate.model}.safetensors",
            held_out=True,
        )
        for candidate in found
    ]


def search_jobs(found: Sequence[Candidate], dataset: str, out: Path, device: str = "") -> list[Job]:
    """A job for each recipe of each candidate, judged on held-out images."""
    folder = out / slug(dataset) / "frontier" / "search"
    jobs = []
    for candidate in found:
        grid = SEARCH
        if candidate.kind != "densities":
            grid = {n: v if n == "learning_rate" else v[:1] for n, v in SEARCH.items()}
        for values in product(*grid.values()):
            change = dict(zip(SEARCH, values, strict=True))
            config = _config(candidate.model, dataset, SEARCH_EPOCHS, device, **change)
            name = "_".join(map(str, values))
            path = folder / name / f"{candidate.model}.safetensors"
            jobs.append(Job(config, path, held_out=True))
    return jobs


@dataclass(frozen=True)
class Choice:
    """A candidate with the recipe that was best for it on held-out images, and its error there."""

    candidate: Candidate
    recipe: dict
    error: float


def choose(found: Sequence[Candidate], jobs: Sequence[Job]) -> list[Choice]:
    """The best recipe of each candidate of which one was trained to its end."""
    chosen = []
    for candidate in found:
        own = [job for job in jobs if job.config.model == candidate.model]
        kept = [(job, checkpoint) for job in own if (checkpoint := job.checkpoint())]
        if not kept:
            continue
        job, best = min(kept, key=lambda pair: pair[1].errors[0])
        recipe = {name: getattr(job.config, name) for name in SEARCH}
        chosen.append(Choice(candidate, recipe, best.errors[0]))
    return chosen


def finalists(chosen: Sequence[Choice]) -> list[Choice]:
    """Of each budget and kind the one with the lowest held-out error."""
    best: dict[tuple[int, str], Choice] = {}
    for choice in sorted(chosen, key=lambda choice: choice.error):
        best.setdefault((choice.candidate.budget, choice.candidate.kind), choice)
    return [best[key] for key in sorted(best)]


def final_jobs(
    chosen: Sequence[Choice], dataset: str, seeds: int, out: Path, device: str = ""
) -> list[Job]:
    """A job for each seed of each finalist, on all training images."""
    folder = out / slug(dataset) / "frontier" / "final"
    return [
        Job(
            _config(choice.candidate.model, dataset, EPOCHS, device, seed=seed, **choice.recipe),
            folder / choice.candidate.model / f"{seed}.safetensors",
        )
        for choice in chosen
        for seed in range(seeds)
    ]


def report(
    screened: Sequence[Choice], finals: Sequence[Choice], jobs: Sequence[Job], called: str
) -> dict:
    """The candidates' errors on held-out images and the finalists' on the test set, as JSON."""
    entries = []
    for choice in finals:
        own = [job for job in jobs if job.config.model == choice.candidate.model]
        kept = [job.checkpoint() for job in own]
        if not own or not all(kept):
            continue
        errors = [checkpoint.errors[0] for checkpoint in kept]
        entries.append(
            {
                **_told(choice),
                "errors": [round(error, 4) for error in errors],
                "mean": round(Errors(errors).mean, 4),
                "deviation": round(Errors(errors).deviation, 4),
            }
        )
    return {
        "dataset": called,
        "budgets": list(BUDGETS),
        "shared": SHARED,
        "search": {name: list(values) for name, values in SEARCH.items()},
        "screen_epochs": SCREEN_EPOCHS,
        "search_epochs": SEARCH_EPOCHS,
        "epochs": EPOCHS,
        "candidates": [_told(choice) for choice in screened],
        "entries": entries,
        "paper": [
            {"model": row.model, "parameters": row.parameters, "mean": row.error,
             "deviation": row.deviation}
            for row in TABLES.get(called, ())
        ],
    }  # fmt: skip


def _told(choice: Choice) -> dict:
    return {
        "budget": choice.candidate.budget,
        "kind": choice.candidate.kind,
        "model": choice.candidate.model,
        "parameters": choice.candidate.parameters,
        "recipe": choice.recipe,
        "held_out": round(choice.error, 4),
    }


def best(table: dict, budget: int, kind: str = "densities") -> dict | None:
    """The finalist of a kind with the lowest test error among those within a budget."""
    within = [
        entry
        for entry in table["entries"]
        if entry["kind"] == kind and entry["parameters"] <= budget
    ]
    return min(within, key=lambda entry: entry["mean"], default=None)


def finding(table: dict) -> str:
    """What each budget came to, beside the paper's row of that size and the plain CNN."""
    said = []
    for budget in table["budgets"]:
        own = best(table, budget)
        if own is None:
            continue
        text = (
            f"With at most {budget:,} parameters: **{own['mean']:.2f} ± {own['deviation']:.2f} %** "
            f"({describe(own['model'])}, {own['parameters']:,})"
        )
        rows = [row for row in table["paper"] if row["parameters"] <= budget]
        others = []
        if rows:
            theirs = min(rows, key=lambda row: row["mean"])
            others.append(f"the paper's best {theirs['mean']:.2f} %")
        if plain := best(table, budget, "cnn"):
            others.append(f"a plain CNN {plain['mean']:.2f} ± {plain['deviation']:.2f} %")
        said.append("; ".join([text, *others]) + ".")
    return "\n".join(f"- {text}" for text in said)


def as_markdown(table: dict) -> str:
    """The report for people."""
    lines = [
        f"### Errors by parameters on {for_markdown(table['dataset'])}",
        "",
        "| at most | kind | model | parameters | test error % | held out % |",
        "| ---: | --- | --- | ---: | ---: | ---: |",
        *(
            f"| {entry['budget']:,} | {KINDS[entry['kind']]} | {entry['model']} "
            f"| {entry['parameters']:,} | {entry['mean']:.2f} ± {entry['deviation']:.2f} "
            f"| {entry['held_out']:.2f} |"
            for entry in table["entries"]
        ),
        "",
        finding(table),
        "",
        "Recipes of these, each the best on held-out training images after "
        f"{table['search_epochs']} epochs of "
        + "; ".join(
            f"{name} {', '.join(map(str, values))}" for name, values in table["search"].items()
        )
        + ":",
        "",
        "| model | " + " | ".join(table["search"]) + " |",
        "| --- |" + " ---: |" * len(table["search"]),
        *(
            f"| {one['model']} | " + " | ".join(f"{v:g}" for v in one["recipe"].values()) + " |"
            for one in table["entries"]
        ),
        "",
        f"All candidates after {table['screen_epochs']} epochs by the first of these recipes; of "
        "each budget and kind the best went on:",
        "",
        "| model | parameters | held out % |",
        "| --- | ---: | ---: |",
        *(
            f"| {one['model']} | {one['parameters']:,} | {one['held_out']:.2f} |"
            for one in sorted(table["candidates"], key=lambda c: (c["budget"], c["held_out"]))
        ),
        "",
    ]
    return "\n".join(lines)
