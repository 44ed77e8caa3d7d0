"""A tour for a first visit: five texts, one at a time, each pointing at a part of the page."""

import streamlit as st

from densembed.fields.measures import on_pixels
from densembed.training.checkpoint import Checkpoint
from pages.widgets.common.callbacks import callback
from pages.widgets.common.component import component, last_message, order
from pages.widgets.common.parameter import Numbers, Parameter, turned_back

STOPS = 5


def stops_of(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """The parts of the view that the tour points at, as CSS selectors below `.live`, and its texts.

    Each sentence is true for the model.
    """
    _, height, width = checkpoint.header.input_shape
    network = checkpoint.network()
    densities, moves = checkpoint.has_densities, network.adaptive
    others = (
        ", upload a photograph, or draw a digit"
        if checkpoint.reads_digits
        else " or upload a photograph"
    )
    cell, mean = ("pixel", "ink") if on_pixels(network) else ("cell of its maps", "of a map")
    return [
        (
            ".left .part.stills, .left .part.draw_pad",
            f"This is the input of the network, {height} × {width} pixels. Drag it and see the "
            f"{'field move' if moves else 'prediction change'}. Or choose another picture{others}.",
        ),
        (
            ".part.pair",
            "The network looks where the field is bright: many of its densities lie there, and "
            f"each reads the mean {mean} under it. They "
            + ("move when the picture changes." if moves else "are the same for every picture.")
            if densities
            else f"This model has no densities: it reads each {cell} on its own, so its field is "
            "the same everywhere. Choose a model with EL in its name to see where such a network "
            "looks.",
        ),
        (
            ".part.pair",
            "Training changed "
            + (
                "where the densities lie, how wide they are, and how much each of them counts for "
                "each class"
                if densities
                else "the weights"
            )
            + ". Press Play to see it. The bars are the probability of each class; “Why this "
            "answer?” shows how they come about.",
        ),
        (
            ".ways",
            "The same field in other ways: as single densities, as the difference that training "
            "made, or by the weight of each place for a class."
            if densities
            else "The same field in other ways: over the input, or as the difference that training "
            "made.",
        ),
        (
            ".details",
            "“In five steps” explains the idea from the beginning, in three minutes. “Why this "
            "answer?” follows this picture through the network, with the real numbers.",
        ),
    ]


TOUR = Parameter("tour", "Tour", Numbers(0, STOPS), instead="the tour on a first visit")
_tour = component("pages/explore/tour")


def tour(checkpoint: Checkpoint) -> None:
    """The tour, at the stop in the link (0 for none); without a stop, on a first visit only."""
    if st.session_state["arrived"] or turned_back():
        st.session_state.pop(TOUR.key, None)  # then the link alone counts
    TOUR.check()
    stop = TOUR.value()
    # Again, as a request that the browser sent before it heard of the stop has the link of before.
    TOUR.write(stop)
    if stop is None and "hide" in st.query_params:
        stop = 0  # a teacher hid parts of the page, which the tour would point at
    with st.container(key="tour"):
        _tour(
            data={
                "stop": stop,
                "stops": stops_of(checkpoint),
                "order": order("tour-card"),
            },
            key="tour-card",
            on_stop_change=callback(_keep),
        )


def _keep() -> None:
    st.session_state[TOUR.key] = last_message("tour-card", "stop")
