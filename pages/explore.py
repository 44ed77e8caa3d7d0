"""What does this network look at?"""

import streamlit as st

from densembed.figures.printed import WIDTHS
from pages.widgets.common.downloads import copy_link, take_away
from pages.widgets.common.link import Numbers, check_link, close_link
from pages.widgets.common.page import begin, hide
from pages.widgets.explore.details import (
    ATLAS,
    COMPUTES,
    ONE,
    TAKE,
    WHAT,
    atlas,
    computes,
    one,
    what,
)
from pages.widgets.explore.stage import chosen_step, show_stage
from pages.widgets.explore.tour import tour
from pages.widgets.explore.views import pick_show, see
from pages.widgets.inputs.changes import change_input
from pages.widgets.inputs.checkpoints import pick_checkpoint
from pages.widgets.inputs.choose import pick_input, remark, show_input

begin(
    "What does this network look at?",
    "The bright area is its **receptive field**: the sum of its densities over the picture. "
    "With a micro network (mNN) it moves with the input.",
)
hidden = hide()
tour()
with st.container(key="choices"):
    choices = st.columns([5, 8], gap="medium")
with choices[0]:
    checkpoint = pick_checkpoint("Model", "model")
with choices[1]:
    given = pick_input(checkpoint)
remark(given, {"this model": checkpoint})

index = chosen_step(checkpoint.steps)
scene = st.container(key="scene")
picture, moving = scene.columns([20, 61], gap="small")  # four pictures of one size
with picture:
    shown = st.container()
    given = change_input(given)
with shown:
    show_input(given, checkpoint)

deeper = [WHAT, *([ONE] if checkpoint.has_densities else []), COMPUTES, ATLAS, TAKE]
usual = None if checkpoint.has_densities else WHAT
check_link("more", "More", deeper, usual or "none of them")
if st.session_state.get("more", usual) not in (*deeper, None):  # of another model
    st.session_state["more"] = usual
showing = scene.container(key="showing")
with st.container(horizontal=True, horizontal_alignment="distribute"):
    opened = st.pills(
        "More", deeper, default=usual, key="more", bind="query-params",
        label_visibility="collapsed", wrap=True,
    )  # fmt: skip
    copy_link()

known = see(checkpoint, given.pixels)
seen = known.view
count = len(known.densities[0].loc) if known.densities else 0
if count:
    check_link("density", "Density", Numbers(1, count), 1)
else:
    check_link("density", "Density", (), "its pixels", "what a network without densities has")
with showing:
    answer = int(seen.probabilities[-1].argmax())
    show = pick_show(checkpoint, answer, asks_class=opened == COMPUTES)
with moving:
    show_stage(checkpoint, given, known, show, index, hidden)

check_link("printed", "Printed figure", WIDTHS, "two columns")
if opened != ONE:
    st.query_params.pop("density", None)
if opened == WHAT:
    what(checkpoint)
elif opened == ONE:
    one(checkpoint, given.pixels, seen, index)
elif opened == COMPUTES:
    computes(checkpoint, given.pixels, seen, index, show)
elif opened == ATLAS:
    atlas(checkpoint, index)
elif opened == TAKE:
    take_away(checkpoint, given.pixels, seen, index, show)
close_link()
