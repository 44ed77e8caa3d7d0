"""What does this network look at?"""

import streamlit as st

from densembed.fields import view
from densembed.figures import AFTER, BEFORE, field_figure, opinion_figure
from densembed.models import describe
from pages.widgets.inputs import pick_input, remark, show_input
from pages.widgets.models import pick_checkpoint
from pages.widgets.page import CHART, begin, name_wrong_link, panel

DENSITIES = (
    "Instead of one weight for each pixel it learns densities φᵢ over the picture; a neuron sees "
    "the expected brightness under each of them, Γx, and a linear classifier decides. The heatmaps "
    "show Σᵢ φᵢ per square pixel, on one colour scale, so that brighter means more densities there."
)
PIXELS = (
    "It is fully connected: as a special case of the framework (Section 3.1) it has one uniform "
    "density on each pixel, so their sum is 1 everywhere, before and after training. What it "
    "learns is in its weights alone."
)

begin(
    "What does this network look at?",
    "The bright area is its **receptive field**: the sum of its densities over the picture. "
    "With a micro network (mNN) it moves with the input.",
)
choices = st.columns([5, 6], gap="medium")
with choices[0]:
    checkpoint = pick_checkpoint("Model", "model")
with choices[1]:
    given = pick_input(checkpoint)
remark(given, checkpoint)

steps = checkpoint.steps
with st.container(key="panels"):
    picture, before, after, opinion = st.columns(4, gap="small")
    name_wrong_link("step", steps)
    step = st.select_slider(
        "Step of training", steps, steps[-1], key="step", bind="query-params",
        help="From before training to after it, at every step that was kept.",
    )  # fmt: skip
seen = view(checkpoint, given.pixels)
chosen = steps.index(step)
whole = step == steps[-1] and checkpoint.header.outcome == "done"
name = "after training" if whole else f"after {step:,} steps"

with picture:
    show_input(given, checkpoint)
with before:
    panel("before training", "epoch 0")
    st.plotly_chart(
        field_figure(seen.fields[0], seen.x, seen.y, seen.top), key="before", config=CHART,
        alt="Receptive field before training, a heatmap of the sum of the densities",
    )  # fmt: skip
with after:
    panel(name, f"epoch {checkpoint.epoch_of(step):.3g}")
    st.plotly_chart(
        field_figure(seen.fields[chosen], seen.x, seen.y, seen.top), key="after", config=CHART,
        alt=f"Receptive field {name}, a heatmap of the sum of the densities",
    )  # fmt: skip
with opinion:
    said = seen.probabilities[chosen]
    if given.seen == "no ink":
        panel("what it says", "nothing: there is no ink")
    else:
        answer = checkpoint.header.classes[said.argmax()]
        panel("what it says", f"{answer}, at {100 * said.max():.1f} %")
        bars = [
            ("before", seen.probabilities[0], BEFORE),
            (name.removesuffix(" training"), said, AFTER),
        ]
        st.plotly_chart(
            opinion_figure(bars, checkpoint.header.classes, given.label), key="opinion",
            config=CHART, alt="Probability of each class before training and at the chosen step",
        )  # fmt: skip

with st.expander("What am I looking at?", expanded=not checkpoint.has_densities):
    st.markdown(
        f"**{describe(checkpoint.config.model)}** has {checkpoint.parameters:,} parameters. "
        + (DENSITIES if checkpoint.has_densities else PIXELS)
        + " ◂ marks the right class."
    )
