"""A list of models to compare one with, on the pages that show one."""

import streamlit as st

from pages.widgets.inputs.checkpoints import group_of, partners, titles


def compare_with(key: str) -> None:
    """A list of the other models, which opens Compare with the chosen one beside `key`.

    The list is searched by typing, and names of runs are part of it.
    """
    options = titles([key])
    others = partners(key, options)
    if not others:
        return
    groups = {other: group_of(other) for other in others}
    several = len(set(groups.values())) > 1
    name = f"{key}-compare-with"  # shell.js knows the choice by this end
    chosen = st.selectbox(
        "Compare with another model",
        others,
        index=None,
        placeholder="Compare with …",
        key=name,
        label_visibility="collapsed",
        width=320,
        format_func=lambda other: (f"{groups[other]}: " if several else "") + options[other],
    )
    if chosen:
        st.session_state.pop(name)  # the list is empty when one comes back
        st.switch_page(
            "pages/compare.py",
            query_params={"models": "2", "first": key, "second": chosen, "field": "mean"},
        )
