"""What differs between these models?"""

import streamlit as st

from densembed.fields import view
from densembed.figures import (
    AFTER,
    BEFORE,
    difference_figure,
    field_figure,
    opinion_figure,
    picture_figure,
)
from densembed.models import describe
from pages.widgets.inputs import pick_input, remark
from pages.widgets.models import pick_checkpoint
from pages.widgets.page import CHART, begin, panel

begin(
    "What differs between these models?",
    "Two models, one input, one colour scale: where each of them looks, and what it says.",
)
choices = st.columns(2, gap="large")
with choices[0]:
    first = pick_checkpoint("First model", "first")
with choices[1]:
    second = pick_checkpoint("Second model", "second", "logistic-el-15")
given = pick_input(first)
if first.header.input_shape != second.header.input_shape:
    st.info("These two models take pictures of different shapes: choose two of the same.")
    st.stop()
for checkpoint in {first.config.dataset: first, second.config.dataset: second}.values():
    remark(checkpoint, given)

views = [view(checkpoint, given.pixels, [0, -1]) for checkpoint in (first, second)]
top = max(seen.top for seen in views)
pair = list(zip(("first", "second"), (first, second), views, strict=True))
moments = {"after": -1, "before": 0}
changes = {
    moment: (views[1].fields[k].sum(0) - views[0].fields[k].sum(0))[None]
    for moment, k in moments.items()
}
bound = max(float(abs(change).max()) for change in changes.values())

for moment, k in moments.items():
    left, *columns, right = st.columns(4, gap="small")
    for column, (side, checkpoint, seen) in zip(columns, pair, strict=True):
        with column:
            panel(describe(checkpoint.config.model), f"{moment} training")
            st.plotly_chart(
                field_figure(seen.fields[k], seen.x, seen.y, top),
                key=f"{side}-{moment}", config=CHART,
                alt=f"Receptive field of the {side} model {moment} training",
            )  # fmt: skip
    with right:
        panel("second − first", f"{moment} training")
        st.plotly_chart(
            difference_figure(changes[moment], views[0].x, views[0].y, bound),
            key=f"difference-{moment}", config=CHART,
            alt=f"Difference of the two receptive fields {moment} training",
        )  # fmt: skip
    with left:
        if moment == "before":
            panel("the input")
            st.plotly_chart(
                picture_figure(given.pixels.numpy()), key="picture", config=CHART,
                alt="The picture that both models get",
            )  # fmt: skip
        elif first.header.classes != second.header.classes:
            st.caption("The two models know different classes.")
        elif given.seen != "no ink":
            panel("what they say")
            bars = [
                (side, seen.probabilities[-1], colour)
                for (side, _, seen), colour in zip(pair, (AFTER, BEFORE), strict=True)
            ]
            st.plotly_chart(
                opinion_figure(bars, first.header.classes, given.label), key="opinion",
                config=CHART, alt="Probability of each class according to both models",
            )  # fmt: skip
