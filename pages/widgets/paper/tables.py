"""A table of the paper beside what came of training it anew: the plot, a finding, the numbers."""

import streamlit as st

from densembed.data import slug
from densembed.figures.paper import table_figure
from densembed.models.names import describe
from densembed.runs import gallery
from densembed.training.checkpoint import CheckpointError
from pages.widgets.common.page import CHART
from pages.widgets.common.parameter import Choice, Parameter

ARXIV = "https://arxiv.org/abs/2006.12779"
RECIPES = {
    "colour": "Our training: one recipe for all rows, tuned on held-out images of these pictures.",
    "tuned": "Our training: one recipe for all rows, tuned on held-out training images of MNIST.",
    "paper": "Our training: the paper's recipe, as far as it is printed.",
}
NEAREST = "the run nearest the mean"
SHOWN = (
    "learning_rate", "density_rate", "scale_start", "location_start", "epochs", "batch_size",
    "weight_decay", "locator_rate", "locator_decay",
)  # fmt: skip


def show_table(table: str, dataset: str, key: str = "recipe") -> None:
    """All of one table.

    Args:
        table: its name for `reproduce`, as `table1`.
        dataset: the data set that its results file names.
        key: of the choice of the recipe, in the link as well.
    """
    found = {recipe: gallery.result(f"{table}-{dataset}-{recipe}") for recipe in RECIPES}
    found = {recipe: results for recipe, results in found.items() if results}
    if not found:
        st.info(f"There are no results yet. Make them: `{_command(table, dataset, 'paper')}`.")
        return
    recipe = Parameter(key, "Training", Choice(found.keys()), next(iter(found))).draw(
        st.segmented_control, required=True
    )
    st.caption(RECIPES[recipe])
    results = found[recipe]
    rows = results["rows"]
    figure = table_figure(rows)
    st.plotly_chart(
        figure, key=table, config=CHART,
        alt="Test error of each model, ours and the paper's, with error bars",
    )  # fmt: skip
    st.caption(
        f"Each mark of ours is the mean of {_runs(rows)} trainings; each bar is ± one standard "
        "deviation."
        + (
            " The axis is logarithmic: equal distances are equal factors."
            if figure.layout.xaxis.type == "log"
            else ""
        )
    )
    st.markdown(_finding(rows) + _by_other_recipes(rows, found))
    with st.expander("The numbers, and where each comes from"):
        _numbers(table, results, recipe)


def _runs(rows: list[dict]) -> str:
    """Over how many trainings a mean is."""
    counts = {len(row["errors"]) for row in rows}
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)}))


def _command(table: str, dataset: str, recipe: str) -> str:
    data = " --dataset folder:PATH" if "jpeg" in slug(dataset) else ""
    return f"python -m densembed reproduce {table}{data} --recipe {recipe}"


def _finding(rows: list[dict]) -> str:
    below = [row for row in rows if row["mean"] < row["paper_mean"]]
    others = ", ".join(describe(row["model"]) for row in rows if row not in below)
    text = f"**{len(below)} of {len(rows)}** models have a lower error than in the paper"
    if len(below) == len(rows):
        text = f"All **{len(rows)}** models have a lower error than in the paper"
    if all(row["parameters"] == row["paper_parameters"] for row in rows):
        text += ", with the same number of parameters"
    text += "."
    if others:
        text += f" Not lower: {others}."
    return text + _by_parameters(rows)


def _by_parameters(rows: list[dict]) -> str:
    """The paper's point, where our rows bear it out: as good with far fewer parameters."""
    by_name = {row["model"]: row for row in rows}
    dense = by_name.get("mlp-50")
    moving = [row for row in rows if "-mnn-" in row["model"]]
    bar = min(dense["mean"], dense["paper_mean"]) if dense else 0.0
    better = [row for row in moving if row["mean"] < bar]
    if not better:
        return ""
    least = min(better, key=lambda row: row["parameters"])
    return (
        f" {describe(least['model'])} makes fewer mistakes than the {describe('mlp-50')} "
        f"({least['mean']:.2f} % against {bar:.2f} %), with {least['parameters']:,} "
        f"parameters in place of {dense['parameters']:,}."
    )


def _by_other_recipes(rows: list[dict], found: dict[str, dict]) -> str:
    """What networks without densities reach where another recipe suits them better."""
    text = ""
    for row in rows:
        if "-el-" in row["model"] or row["mean"] <= row["paper_mean"]:
            continue
        others = {
            recipe: other["mean"]
            for recipe, results in found.items()
            for other in results["rows"]
            if other["model"] == row["model"]
        }
        best = min(others, key=others.get)
        if others[best] < row["mean"]:
            text += (
                f" {describe(row['model'])} has no densities: by recipe {best} it ends at "
                f"{others[best]:.2f} %."
            )
    return text


def shipped_link(row: dict, results: dict) -> str | None:
    """The link to the checkpoint that a row's number comes from, None where it does not ship."""
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
        return None  # of the other recipe
    errors = checkpoint.errors or []
    if not any(abs(own - error) < 1e-3 for own in errors for error in row["errors"]):
        return None
    return f"/?model={key}"


def _numbers(table: str, results: dict, recipe: str) -> None:
    rows, config = results["rows"], results["config"]
    command = _command(table, results["dataset"], recipe)
    links = {row["model"]: shipped_link(row, results) for row in rows}
    # A column of nothing would read "None" in each row.
    linked = any(links.values())
    st.dataframe(
        [
            {
                "model": describe(row["model"]),
                "parameters": row["parameters"],
                "ours, %": f"{row['mean']:.2f} ± {row['deviation']:.2f}",
                "paper, %": f"{row['paper_mean']:.2f} ± {row['paper_deviation']:.2f}",
                "difference": round(row["mean"] - row["paper_mean"], 2),
                "our runs, %": ", ".join(f"{error:.2f}" for error in row["errors"]),
                **({NEAREST: links[row["model"]]} if linked else {}),
                "made by": f"{command} --rows {row['model']}",
            }
            for row in rows
        ],
        hide_index=True,
        column_config={
            NEAREST: st.column_config.LinkColumn(display_text="in Explore"),
            "difference": st.column_config.NumberColumn(format="%+.2f"),
            "parameters": st.column_config.NumberColumn(format="localized"),
        },
    )
    settings = ", ".join(
        f"{name.replace('_', ' ')} {config[name]}" for name in SHOWN if name in config
    )
    absent = "" if linked else (
        " The checkpoints of this training do not ship; the command makes them."
    )  # fmt: skip
    st.caption(
        f"Ours: mean ± standard deviation over {_runs(rows)} seeds from 0, made by "
        f"`{command}`, with {settings}.{absent} The paper's: as printed in its "
        f"[{table.replace('table', 'Table ')}]({ARXIV})."
    )
