"""A tour for a first visit: five texts, one at a time, each pointing at a part of the page."""

import streamlit as st

from pages.widgets.common.component import component
from pages.widgets.common.parameter import Numbers, Parameter

STOPS = [
    (
        ".left .part.stills, .left .part.draw_pad",
        "This is the input of the network, 28 × 28 "
        "pixels. Drag it and see the field move. Or choose another picture, upload a "
        "photograph, or draw a digit.",
    ),
    (
        ".part.pair",
        "The network looks where it is bright: many of its densities lie there, and each reads "
        "the mean ink under it. A micro network moves them when the picture changes.",
    ),
    (
        ".part.pair",
        "Training changed where the densities lie, how wide they are, and how much each of them "
        "counts for each digit. Press Play to see it. The bars are the probability of each digit; "
        "“Why this answer?” shows how they come about.",
    ),
    (
        ".ways",
        "The same field in other ways: as single densities, as the difference that training made, "
        "or by the weight of each place for a class.",
    ),
    (
        ".details",
        "“In five steps” explains the idea from the beginning, in three minutes. “Why this "
        "answer?” follows this picture through the network, with the real numbers.",
    ),
]
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
            key="tour-card",
            on_stop_change=_keep,
        )


def _keep() -> None:
    TOUR.write(st.session_state["tour-card"].stop)
