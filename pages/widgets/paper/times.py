"""Training time per epoch."""

import streamlit as st

from densembed.figures.paper import times_figure
from densembed.runs import gallery
from pages.widgets.common.page import CHART


def show() -> None:
    times = gallery.result("times-mnist")
    if not times:
        return
    st.header("Training time per epoch", anchor="times")
    st.plotly_chart(
        times_figure(times["rows"]),
        key="times",
        config=CHART,
        alt="Seconds per epoch for each model",
    )
    st.caption(
        f"Mean and standard deviation of {times['runs']} epochs of MNIST, 60,000 images, on "
        f"{times['machine']['device']}, with {times['machine']['threads']} CPU threads. Reproduce "
        "with `python -m densembed reproduce times`. The paper shows times on a GeForce GTX 1050 "
        "in a figure without numbers, so they are not repeated here."
    )
