"""What does this network look at?"""

import streamlit as st

from pages.widgets.common.downloads import PRINTED, copy_link, export_explored
from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin, hide
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.explore.details import (
    ABOUT,
    CLASSES,
    DENSITY,
    DETAILS,
    EFFECT,
    EXPORT,
    OLD_DETAILS,
    show_about,
    show_class_averages,
    show_density,
    show_effect,
)
from pages.widgets.explore.stage import chosen_step, show_stage
from pages.widgets.explore.tour import tour
from pages.widgets.explore.views import density_parameter, pick_show, respond
from pages.widgets.inputs.changes import change_input
from pages.widgets.inputs.checkpoints import pick_checkpoint
from pages.widgets.inputs.choose import pick_input, remark, show_input

begin(
    "What does this network look at?",
    "The network looks where it is bright: its **receptive field** is the sum of its densities "
    "over "
    "the picture. With a micro network (mNN) the field moves with the input.",
)
hidden = hide()
tour()
with st.container(key="choices"):
    choices = st.columns([5, 8], gap="medium")
with choices[0]:
    checkpoint = pick_checkpoint("Model", "model")
with choices[1]:
    image = pick_input(checkpoint)
remark(image, {"this model": checkpoint})

index = chosen_step(checkpoint.steps)
scene = st.container(key="scene")
picture, moving = scene.columns([20, 61], gap="small")  # four pictures of one size
with picture:
    shown = st.container()
    image = change_input(image)
with shown:
    show_input(image, checkpoint)

details = {
    slug: text for slug, text in DETAILS.items() if slug != DENSITY or checkpoint.has_densities
}
usual = None if checkpoint.has_densities else ABOUT
showing = scene.container(key="showing")
with st.container(horizontal=True, horizontal_alignment="distribute"):
    opened = Parameter("more", "More", Slugs(details, OLD_DETAILS), usual).draw(
        st.pills, label_visibility="collapsed", wrap=True
    )
    copy_link()

response = respond(checkpoint, image.pixels)
count = len(response.densities[0].loc) if response.densities else 0
if opened != DENSITY:
    density_parameter(count).drop()
with showing:
    answer = int(response.view.probabilities[-1].argmax())
    show = pick_show(checkpoint, answer, asks_class=opened == EFFECT)
with moving:
    show_stage(checkpoint, image, response, show, index, hidden)

if opened != EXPORT:
    PRINTED.drop()
if opened == ABOUT:
    show_about(checkpoint)
elif opened == DENSITY:
    show_density(checkpoint, image.pixels, response.view, index)
elif opened == EFFECT:
    show_effect(checkpoint, image.pixels, response.view, index, show)
elif opened == CLASSES:
    show_class_averages(checkpoint, index)
elif opened == EXPORT:
    export_explored(checkpoint, image.pixels, response.view, index, show)
close_link()
