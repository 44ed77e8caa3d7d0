"""What does this network look at?"""

import streamlit as st

from densembed.fields import view
from densembed.figures import AFTER, BEFORE, opinion_figure
from pages.widgets.inputs import pick_input, remark, show_input
from pages.widgets.models import pick_checkpoint
from pages.widgets.more import ATLAS, COMPUTES, ONE, TAKE, WHAT, atlas, computes, one, what
from pages.widgets.page import CHART, begin, name_wrong_link, panel
from pages.widgets.take import copy_link, take_away
from pages.widgets.views import DIFFERENCE, draw_field, numbers_line, pick_show

begin(
    "What does this network look at?",
    "The bright area is its **receptive field**: the sum of its densities over the picture. "
    "With a micro network (mNN) it moves with the input.",
)
choices = st.columns([5, 8], gap="medium")
with choices[0]:
    checkpoint = pick_checkpoint("Model", "model")
with choices[1]:
    given = pick_input(checkpoint)
remark(given, checkpoint)

steps = checkpoint.steps
with st.container(key="panels"):
    picture, before, after, opinion = st.columns(4, gap="small")
    numbers = st.container(key="numbers")
    sliding, showing = st.columns([5, 8], gap="medium")
with sliding:
    name_wrong_link("step", steps)
    step = st.select_slider(
        "Step of training", steps, steps[-1], key="step", bind="query-params",
        help="From before training to after it, at every step that was kept.",
    )  # fmt: skip
deeper = [WHAT, *([ONE] if checkpoint.has_densities else []), COMPUTES, ATLAS, TAKE]
name_wrong_link("more", deeper)
with st.container(horizontal=True, horizontal_alignment="distribute"):
    opened = st.pills(
        "More", deeper, default=None if checkpoint.has_densities else WHAT, key="more",
        bind="query-params", label_visibility="collapsed",
    )  # fmt: skip
    copy_link()

seen = view(checkpoint, given.pixels)
chosen = steps.index(step)
said = seen.probabilities[chosen]
whole = step == steps[-1] and checkpoint.header.outcome == "done"
name = "after training" if whole else f"after {step:,} steps"
with showing:
    show = pick_show(checkpoint, int(said.argmax()), asks_class=opened == COMPUTES)

with picture:
    show_input(given, checkpoint)
with before:
    panel("before training", "epoch 0")
    draw_field("before", "before training", show, checkpoint, given.pixels, seen, 0)
with after:
    epoch = f"epoch {checkpoint.epoch_of(step):.3g}"
    panel(name, f"less before training, {epoch}" if show.way == DIFFERENCE else epoch)
    draw_field("after", name, show, checkpoint, given.pixels, seen, chosen)
with opinion:
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
with numbers:
    numbers_line(checkpoint, given.pixels, seen, chosen)

if opened != ONE:
    st.query_params.pop("density", None)
if opened == WHAT:
    what(checkpoint)
elif opened == ONE:
    one(checkpoint, given.pixels, seen, chosen)
elif opened == COMPUTES:
    computes(checkpoint, given.pixels, seen, chosen, show)
elif opened == ATLAS:
    atlas(checkpoint, chosen)
elif opened == TAKE:
    take_away(checkpoint, given.pixels, seen, chosen, show)
