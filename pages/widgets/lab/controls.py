"""What the controls of the Lab have in common."""

import streamlit as st

from pages.widgets.common.parameter import Numbers, Parameter

KEPT = {"persist_state": "session"}
"""A control keeps its value while another layer, which does not have it, is shown."""


def number(
    key: str, label: str, low: float, high: float, default: float, step: float, caption: str
) -> float:
    """A slider over real numbers; its default is moved to the nearest step within the bounds."""
    steps = round((min(max(default, low), high) - low) / step)
    parameter = Parameter(key, label, Numbers(low, high), round(low + steps * step, 6))
    return parameter.draw(st.slider, step=step, format="%.2f", caption=caption, **KEPT)
