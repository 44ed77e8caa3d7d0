"""A tour for a first visit: five texts, one at a time, each pointing at a part of the page."""

import streamlit as st

from pages.widgets.common.component import component
from pages.widgets.common.parameter import Numbers, Parameter

STOPS = [
    (".left .part.stills, .left .part.draw_pad", "This is the input of the network, 28 × 28 "
     "pixels. Choose another picture above, upload a photograph, or draw a digit."),
    (".part.pair", "The network looks where it is bright. This is its receptive field, the sum of "
     "its densities, before and after training on one colour scale."),
    (".part.pair", "Play shows how training moved the field, with the prediction of the network at "
     "each step."),
    (".ways", "Switch to densities and click one, or show the difference or the evidence for a "
     "class."),
    (".details", "To go further, look at one density, the effect of each pixel or all classes, or "
     "export files. Copy link saves this view. The page Compare shows models side by side."),
]  # fmt: skip
"""The part of the view that a stop points at, as a CSS selector below `.live`, and its text."""
TOUR = Parameter("tour", "Tour", Numbers(0, len(STOPS)), instead="the tour on a first visit")
_tour = component("pages/explore/tour")


def tour() -> None:
    """The tour, at the stop in the link (0 for none); without a stop, on a first visit only."""
    TOUR.check()
    stop = TOUR.value()
    if stop is None and "hide" in st.query_params:
        stop = 0  # a teacher hid parts of the page, which the tour would point at
    with st.container(key="tour"):
        _tour(
            data={"stop": stop, "stops": STOPS},
            key="tour-card", on_stop_change=_keep,
        )  # fmt: skip


def _keep() -> None:
    TOUR.write(st.session_state["tour-card"].stop)
