"""Sliders that transform the input, to see how the field follows."""

from dataclasses import asdict, replace

import streamlit as st

from densembed.data.images import Content
from densembed.data.transform import Transform
from pages.widgets.common.parameter import Numbers, Parameter
from pages.widgets.inputs.choose import Input

SLIDERS = {
    "right": ("Move to the right", -8.0, 8.0, 0.5, "%.1f pixels"),
    "down": ("Move down", -8.0, 8.0, 0.5, "%.1f pixels"),
    "size": ("Size", 0.5, 1.5, 0.05, "× %.2f"),
    "turn": ("Turn clockwise", -90.0, 90.0, 5.0, "%.0f°"),
    "blur": ("Blur", 0.0, 3.0, 0.25, "%.2f pixels"),
    "noise": ("Noise", 0.0, 0.5, 0.05, "%.2f of full ink"),
}
"""Label, minimum, maximum, step and format per field of `Transform`, by its key in the link."""


def change_input(image: Input) -> Input:
    """Sliders below the picture; the transformed input."""
    usual = asdict(Transform())
    with st.container(key="change"), st.expander("Move, turn, blur …"):
        places = [column for _ in range(0, len(SLIDERS), 2) for column in st.columns(2)]
        values = {
            key: Parameter(key, label, Numbers(low, high), usual[key]).draw(
                column.slider, step=step, format=form, persist_state="session"
            )
            for column, (key, (label, low, high, step, form)) in zip(
                places, SLIDERS.items(), strict=True
            )
        }
        st.button("Reset", on_click=_reset, disabled=values == usual, width="stretch")
    if values == usual or image.content == Content.BLANK:
        return image
    return replace(image, pixels=Transform(**values)(image.pixels), changed=True)


def _reset() -> None:
    for key, value in asdict(Transform()).items():
        st.session_state[key] = value
