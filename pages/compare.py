"""What differs between these models?"""

from bisect import bisect_right

import streamlit as st

from densembed.checkpoint import Checkpoint
from densembed.fields import view
from densembed.figures import (
    AFTER,
    BEFORE,
    difference_figure,
    field_figure,
    opinion_figure,
)
from densembed.models import describe
from pages.widgets.differences import DISAGREE, TABLE, disagree, table
from pages.widgets.inputs import pick_input, remark, show_input
from pages.widgets.models import pick_checkpoint
from pages.widgets.page import CHART, begin, name_wrong_link, panel
from pages.widgets.take import copy_link

begin(
    "What differs between these models?",
    "Two models, one input, one colour scale: where each of them looks, and what it says.",
)
choices = st.columns(2, gap="medium")
with choices[0]:
    first = pick_checkpoint("First model", "first")
with choices[1]:
    own = "" if first.config.dataset == "mnist" else f"-{first.config.dataset}"
    second = pick_checkpoint("Second model", "second", f"logistic-el-15{own}")
given = pick_input(first)
if first.header.input_shape != second.header.input_shape:
    st.info("These two models take pictures of different shapes: choose two of the same.")
    st.stop()
remark(given, first, second)

pair = (("first", first), ("second", second))
steps = sorted({*first.steps, *second.steps})
above = st.container()
name_wrong_link("step", steps)
step = st.select_slider(
    "Step of training", steps, steps[-1], key="step", bind="query-params",
    help="It moves both models: each shows the last step that it kept up to here.",
)  # fmt: skip
below = st.container()
views = [view(checkpoint, given.pixels) for _, checkpoint in pair]
top = max(seen.top for seen in views)
chosen = [bisect_right(checkpoint.steps, step) - 1 for _, checkpoint in pair]


def moment(checkpoint: Checkpoint, index: int) -> str:
    if index == len(checkpoint.steps) - 1 and checkpoint.header.outcome == "done":
        return "after training"
    return f"after {checkpoint.steps[index]:,} steps" if index else "before training"


def row(name: str, columns, indices: list[int]) -> None:
    """Both fields at their snapshots, and the difference, all three up to the same density."""
    fields = [seen.fields[k].sum(0, keepdims=True) for seen, k in zip(views, indices, strict=True)]
    for n, (side, checkpoint) in enumerate(pair):
        with columns[n]:
            when = moment(checkpoint, indices[n])
            panel(describe(checkpoint.config.model), when)
            st.plotly_chart(
                field_figure(fields[n], views[0].x, views[0].y, top), key=f"{side}-{name}",
                config=CHART, alt=f"Receptive field of the {side} model {when}",
            )  # fmt: skip
    with columns[2]:
        panel("second − first", "red: more in the second")
        st.plotly_chart(
            difference_figure(fields[1] - fields[0], views[0].x, views[0].y, top),
            key=f"difference-{name}", config=CHART,
            alt="Difference of the two receptive fields beside it",
        )  # fmt: skip


with above:
    picture, *columns = st.columns(4, gap="small")
    row("chosen", columns, chosen)
with picture:
    show_input(given, first)
with below:
    opinion, *columns = st.columns(4, gap="small")
    row("before", columns, [0, 0])
with opinion:
    if given.seen == "no ink":
        panel("what they say", "nothing: there is no ink")
    elif first.header.classes != second.header.classes:
        panel("what they say", "nothing to compare: different classes")
    else:
        panel("what they say", f"at step {step:,}")
        bars = [
            (side, seen.probabilities[k], colour)
            for (side, _), seen, k, colour in zip(pair, views, chosen, (AFTER, BEFORE), strict=True)
        ]
        st.plotly_chart(
            opinion_figure(bars, first.header.classes, given.label), key="opinion", config=CHART,
            alt="Probability of each class according to both models at the chosen step",
        )  # fmt: skip

options = [TABLE, DISAGREE]
name_wrong_link("open", options)
with st.container(horizontal=True, horizontal_alignment="distribute"):
    opened = st.pills(
        "More", options, key="open", bind="query-params", label_visibility="collapsed"
    )  # fmt: skip
    copy_link()
if opened == TABLE:
    table(first, second)
elif opened == DISAGREE:
    disagree(first, second, chosen)
