"""How long an epoch of training takes."""

import streamlit as st

from densembed.figures.paper import times_figure
from densembed.runs import gallery
from pages.widgets.common.page import CHART


def show() -> None:
    times = gallery.result("times-mnist")
    if not times:
        return
    st.subheader("How long an epoch takes", anchor="times")
    st.plotly_chart(
        times_figure(times["rows"]), key="times", config=CHART,
        alt="Seconds of training an epoch for each model",
    )  # fmt: skip
    st.caption(
        f"Mean and standard deviation of {times['runs']} epochs of MNIST, 60,000 images, on "
        f"{times['machine']['device']}, with {times['machine']['threads']} CPU threads. Made by "
        "`python -m densembed reproduce times`. The paper's figure shows times on a GeForce GTX "
        "1050 without numbers in the text, so it is not repeated here."
    )
