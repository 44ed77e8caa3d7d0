"""A table of the paper next to our results: a plot, a summary, the numbers."""

from collections.abc import Mapping, Sequence

import streamlit as st

from densembed.cli.reproduce import EXPERIMENTS
from densembed.data import slug, title
from densembed.experiments.report import plus_minus
from densembed.figures.paper import table_figure
from densembed.models.names import describe
from densembed.runs import gallery
from densembed.training.header import CheckpointError
from pages.widgets.common.link import base_path
from pages.widgets.common.page import CHART
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.common.table import data_table

ARXIV = "https://arxiv.org/abs/2006.12779"
OWN = "paper"
"""The paper's own recipe."""
TUNED = ("colour", "tuned")
"""The recipes that were tuned, of which the first available one is shown beside the paper's."""
RECIPES = {
    OWN: "follows the paper where it gives details",
    "tuned": "one recipe for all rows, tuned on held-out images of MNIST",
    "colour": "one recipe for all rows, tuned on held-out images of this data set",
}
NEAREST = "typical run"
SHOWN = (
    "learning_rate",
    "density_rate",
    "scale_start",
    "location_start",
    "epochs",
    "batch_size",
    "weight_decay",
    "locator_rate",
    "locator_decay",
)


def results_of(table: str, dataset: str) -> dict[str, dict]:
    """The available results of a table by recipe, the paper's own first."""
    reports = {recipe: gallery.result(f"{table}-{dataset}-{recipe}") for recipe in RECIPES}
    return {recipe: results for recipe, results in reports.items() if results}


def papers_data(table: str) -> str:
    """The data set of a table of the paper."""
    return EXPERIMENTS[table].dataset


def is_papers_data(table: str, dataset: str) -> bool:
    """Whether errors on a data set can stand beside the paper's.

    CIFAR-10 from JPEGs counts as Table 2's, whose section says how far the pictures differ.
    """
    own = papers_data(table)
    return dataset in (own, f"{title(own)} (JPEG)")


def compared(by_recipe: Mapping[str, dict]) -> dict[str, dict]:
    """The results that are shown side by side: of the paper's recipe and of a tuned one."""
    tuned = [recipe for recipe in TUNED if recipe in by_recipe][:1]
    return {recipe: by_recipe[recipe] for recipe in (OWN, *tuned) if recipe in by_recipe}


def show_table(table: str, dataset: str, key: str = "recipe") -> None:
    """All of one table.

    Args:
        table: its name for `reproduce`, as `table1`.
        dataset: the data set that its results file names.
        key: of the choice of the recipe, in the link as well.
    """
    by_recipe = results_of(table, dataset)
    if not by_recipe:
        st.info(
            f"There are no results of {title(dataset)} yet. Run `{_command(table, dataset, OWN)}`."
        )
        return
    shown = compared(by_recipe) or by_recipe
    figure = table_figure({recipe: results["rows"] for recipe, results in shown.items()})
    st.plotly_chart(
        figure,
        key=table,
        config=CHART,
        alt="Test error of each model, ours and the paper's, with error bars",
    )
    st.caption(
        "Lower (further left) is better. "
        + _marks([row for results in shown.values() for row in results["rows"]])
        + (" The axis is logarithmic." if figure.layout.xaxis.type == "log" else ""),
        help=NAMES,
    )
    st.markdown(
        "\n".join(
            f"- **Recipe {recipe}** ({RECIPES[recipe]}): {finding(results['rows'])}"
            + _by_other_recipes(results["rows"], by_recipe)
            + _did_not_learn(results["rows"])
            for recipe, results in shown.items()
        )
    )
    choice = Parameter(key, "Recipe", Slugs(list(by_recipe)), next(iter(by_recipe)))
    with st.expander(
        "The numbers, and how to reproduce them", expanded=choice.linked() is not None
    ):
        recipe = choice.draw(st.segmented_control, required=True)
        _numbers(table, by_recipe[recipe], recipe)


NAMES = (
    "**EL**: an embedding layer, which reads the mean ink under each of its B × B densities. The "
    "word before EL is the shape of the densities. **mNN**: a micro network, which places these "
    "densities for each picture and has B₀ × B₀ densities itself."
)
"""The parts of the models' names."""


def trainings(rows: list[dict]) -> list[int]:
    """The numbers of trainings per row, without repetitions, the smallest first."""
    return sorted({len(row["errors"]) for row in rows})


def _range(rows: list[dict]) -> str:
    """The number of trainings per row, as "5" or "3 to 5"."""
    counts = trainings(rows)
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _marks(rows: list[dict]) -> str:
    """What the marks and bars of the figure are."""
    if trainings(rows) == [1]:
        return (
            "Each of our marks is a single training; the paper's bars are ± one standard deviation."
        )
    text = f"Our marks are means of {_range(rows)} trainings; bars are ± one standard deviation."
    return text + (" A single training has no bar." if 1 in trainings(rows) else "")


def _command(table: str, dataset: str, recipe: str, rows: Sequence[dict] = ()) -> str:
    """The command that makes these results, with its number of seeds if not the default."""
    data = " --dataset folder:PATH" if "jpeg" in slug(dataset) else ""
    seeds = max((len(row["errors"]) for row in rows), default=EXPERIMENTS[table].seeds)
    number = "" if seeds == EXPERIMENTS[table].seeds else f" --seeds {seeds}"
    return f"python -m densembed reproduce {table}{data} --recipe {recipe}{number}"


def finding(rows: list[dict]) -> str:
    below = [row for row in rows if row["mean"] < row["paper_mean"]]
    others = [describe(row["model"]) for row in rows if row not in below]
    have = "has" if len(below) == 1 else "have"
    text = f"**{len(below)} of {len(rows)}** models {have} a lower error than in the paper"
    if len(rows) == 1:
        has = "has a lower error" if below else "does not have a lower error"
        text = f"{describe(rows[0]['model'])} {has} than in the paper"
    elif len(below) == len(rows):
        text = f"All **{len(rows)}** models have a lower error than in the paper"
    if all(row["parameters"] == row["paper_parameters"] for row in rows):
        text += ", with the same number of parameters"
    text += "."
    if others and len(rows) > 1:
        are = "exception is" if len(others) == 1 else "exceptions are"
        text += f" The {are} {'; '.join(others)}." if below else ""
    return text + _by_parameters(rows)


def _by_parameters(rows: list[dict]) -> str:
    """A model with a micro network that beats the dense network with fewer parameters."""
    by_name = {row["model"]: row for row in rows}
    dense = by_name.get("mlp-50")
    moving = [row for row in rows if "-mnn-" in row["model"]]
    ours = bool(dense) and dense["mean"] <= dense["paper_mean"]
    bar = dense["mean" if ours else "paper_mean"] if dense else 0.0
    better = [row for row in moving if row["mean"] < bar]
    if not better:
        return ""
    least = min(better, key=lambda row: row["parameters"])
    return (
        f" {describe(least['model'])} has a lower error than {'our' if ours else 'the paper’s'} "
        f"{describe('mlp-50')} ({least['mean']:.2f} % against {bar:.2f} %), with "
        f"{least['parameters']:,} instead of {dense['parameters']:,} parameters."
    )


CHANCE = 90.0
"""Test error in percent of a model that always predicts one of the ten classes of each table."""


def _did_not_learn(rows: list[dict]) -> str:
    """The models of which some trainings, which are part of the mean, ended where they began."""
    text = ""
    for row in rows:
        failed = sum(error >= CHANCE for error in row["errors"])
        if failed and len(row["errors"]) == 1:
            text += (
                f" {describe(row['model'])} did not learn: its error is that of guessing, "
                f"{CHANCE:g} %."
            )
        elif failed:
            text += (
                f" {failed} of the {len(row['errors'])} trainings of {describe(row['model'])} did "
                f"not learn: {'its' if failed == 1 else 'their'} error is that of guessing, "
                f"{CHANCE:g} %, and is included in the mean."
            )
    return text


def _by_other_recipes(rows: list[dict], by_recipe: dict[str, dict]) -> str:
    """The errors of networks without densities with a recipe that suits them better."""
    text = ""
    for row in rows:
        if "-el-" in row["model"] or row["mean"] <= row["paper_mean"]:
            continue
        others = {
            recipe: other["mean"]
            for recipe, results in by_recipe.items()
            for other in results["rows"]
            if other["model"] == row["model"]
        }
        best = min(others, key=others.get)
        if others[best] < row["mean"]:
            text += (
                " The settings were tuned for density layers and do not suit "
                f"{describe(row['model'])}: "
                f"with recipe {best} its error is {others[best]:.2f} %."
            )
    return text


def shipped_link(row: dict, results: dict) -> str | None:
    """The link to the shipped checkpoint of a row, None without one."""
    config = results["config"]
    data = "" if results["dataset"] == "mnist" else f"-{slug(results['dataset'])}"
    key = f"{row['model']}{data}"
    entry = gallery.find(key)
    if entry is None:
        return None
    try:
        checkpoint = entry.open()
    except CheckpointError:
        return None
    own = checkpoint.config.model_dump()
    if any(own.get(name) != value for name, value in config.items()):
        return None  # trained with another recipe
    errors = checkpoint.errors or []
    if not any(abs(own - error) < 1e-3 for own in errors for error in row["errors"]):
        return None
    return f"{base_path()}/?model={key}"


def _numbers(table: str, results: dict, recipe: str) -> None:
    rows, config = results["rows"], results["config"]
    command = _command(table, results["dataset"], recipe, rows)
    links = {row["model"]: shipped_link(row, results) for row in rows}
    # Without links, the column would contain "None" in each row.
    linked = any(links.values())
    data_table(
        [
            {
                "model": describe(row["model"]),
                "parameters": row["parameters"],
                "ours, %": plus_minus(row),
                "paper, %": plus_minus(row, "paper_"),
                "difference": round(row["mean"] - row["paper_mean"], 2),
                "our runs, %": ", ".join(f"{error:.2f}" for error in row["errors"]),
                **({NEAREST: links[row["model"]]} if linked else {}),
                "command": _command(table, results["dataset"], recipe, [row])
                + f" --rows {row['model']}",
            }
            for row in rows
        ],
        columns={
            NEAREST: st.column_config.LinkColumn(display_text="in Explore"),
            "difference": st.column_config.NumberColumn(format="%+.2f"),
            "parameters": st.column_config.NumberColumn(format="localized"),
        },
    )
    settings = ", ".join(
        f"{name.replace('_', ' ')} {config[name]}" for name in SHOWN if name in config
    )
    absent = (
        ""
        if linked
        else (" The checkpoints of this training are not shipped; the command creates them.")
    )
    ours = (
        "Each of our errors is that of a single training, with seed 0."
        if trainings(rows) == [1]
        else f"Our errors are the mean ± standard deviation over {_range(rows)} seeds, starting at "
        "0."
    )
    st.caption(
        f"{ours} The paper's errors are those of its "
        f"[{table.replace('table', 'Table ')}]({ARXIV}). "
        f"Reproduce ours with `{command}`. The settings are {settings}.{absent}"
    )
