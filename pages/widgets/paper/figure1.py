"""Figure 1: where the densities lie, before and after training."""

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from densembed.data import Dataset, is_available, load_dataset
from densembed.data import title as title_of
from densembed.experiments.recipes import recipe_of
from densembed.fields.field import TOP_PERCENTILE
from densembed.figures.paper import FIGURE1, figure1_of, first_images, usual_inputs
from densembed.models.names import describe
from densembed.runs import gallery
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.link import base_path
from pages.widgets.common.page import CHART, panel
from pages.widgets.common.parameter import Parameter, Slugs

STYLE = """
<style>
/* Every cell is square, whatever the width: (a) has three columns, (b) and (c) have two. */
.st-key-figure1 [data-testid="stColumn"] {container-type: inline-size;}
.st-key-figure1-a .stPlotlyChart {height: calc(101cqw + 88px) !important;}
.st-key-figure1-b .stPlotlyChart, .st-key-figure1-c .stPlotlyChart {
  height: calc(50cqw + 88px) !important;
}
</style>
"""
ONE_SCALE = "/compare?models=3&field=mean&" + "&".join(
    f"{side}={model}" for side, model in zip(("first", "second", "third"), FIGURE1, strict=True)
)


def show() -> None:
    st.header("Figure 1: where the densities lie", anchor="figure-1")
    entries = {model: gallery.find(model) for model in FIGURE1}
    if not all(entries.values()):
        st.caption("The gallery does not contain the three models of this figure.")
        return
    checkpoints = {model: entry.open() for model, entry in entries.items()}
    own = checkpoints[FIGURE1[0]].config.dataset
    dataset = load_dataset(own if is_available(own) else "digits")
    st.markdown(
        "The network looks where the field is bright. With a micro network (a) the densities move "
        "with the input. Without one (b, c), the field is the same for every input. Choose other "
        "inputs:"
    )
    tested = dataset.tested
    usual = usual_inputs(tested)
    chosen = []
    with st.container(horizontal=True):
        for k in range(3):
            parameter = Parameter(f"input{k + 1}", f"Input {k + 1}", Slugs(tested), usual[k])
            chosen.append(parameter.draw(st.selectbox, width=110))
    digests = tuple(checkpoint.digest for checkpoint in checkpoints.values())
    figures = _figures(digests, dataset.digest, tuple(chosen), checkpoints, dataset)
    st.html(STYLE)
    with st.container(key="figure1"):
        left, right = st.columns([3, 2], gap="small")
    for part, model, column in zip("abc", FIGURE1, (left, right, right), strict=True):
        with column:
            note = "one field per input" if part == "a" else "the same for every input"
            panel(f"({part}) {describe(model)}", note)
            st.plotly_chart(
                figures[model],
                key=f"figure1-{part}",
                config=CHART,
                height="stretch",
                alt=f"Receptive fields of {describe(model)} before and after training",
            )
    base = base_path()
    shown = ", ".join(f"[{describe(model)}]({base}/?model={model})" for model in FIGURE1)
    st.caption(
        f"All fields of a model share one scale, which ends at the {TOP_PERCENTILE:g}th percentile "
        "of the brightest field. The models have different scales: 25 densities have a smaller sum "
        f"than 225. [All three on one scale, in Compare]({base}{ONE_SCALE}). In Explore: {shown}."
        f" Save this figure as a file: `{_command(dataset, own, chosen)}`."
        + _trained_by(checkpoints)
    )
    if dataset.name != own:
        st.caption(
            f"{title_of(own)} is not on this machine, so the inputs are the built-in digits."
        )


@st.cache_resource(show_spinner=False, max_entries=16)
def _figures(
    digests: tuple[str, ...],
    digest: str,
    chosen: tuple[str, ...],
    _checkpoints: dict[str, Checkpoint],
    _dataset: Dataset,
) -> dict[str, go.Figure]:
    """The panels for these inputs, without a size of their own."""
    figures = figure1_of(_checkpoints, first_images(_dataset, chosen))
    return {name: each.update_layout(width=None, height=None) for name, each in figures.items()}


def _command(dataset: Dataset, own: str, inputs: Sequence[str]) -> str:
    """The command that draws the figure as it is shown."""
    command = "python -m densembed reproduce figure1 --included"
    if dataset.name != own:
        command += f" --dataset {dataset.name}"
    usual = usual_inputs(dataset.tested)
    return command + (f" --inputs {','.join(inputs)}" if tuple(inputs) != usual else "")


def _trained_by(checkpoints: dict[str, Checkpoint]) -> str:
    """The command that trains these models, if all have one recipe."""
    recipes = {recipe_of(checkpoint.config) for checkpoint in checkpoints.values()}
    if len(recipes) > 1 or None in recipes:
        return ""
    return (
        " Train the three models yourself: "
        f"`python -m densembed reproduce table1 --recipe {recipes.pop()} --rows "
        f"{','.join(checkpoints)}`."
    )
