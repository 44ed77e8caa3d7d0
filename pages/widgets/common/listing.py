"""A list of runs or sweeps in pages, newest first: only what is shown is read."""

import math

import streamlit as st

SHOWN = 20


def on_page(items: list, key: str) -> list:
    """Those of the page that `pager` with the same key is at."""
    pages = _pages(items)
    if st.session_state.get(key, 1) > pages:  # the last page's only one was deleted
        st.session_state[key] = pages
    first = (st.session_state.get(key, 1) - 1) * SHOWN
    return items[first : first + SHOWN]


def pager(items: list, key: str) -> None:
    """The pages to choose from, where there are several; to be called below the list."""
    if (pages := _pages(items)) > 1:
        st.pagination(pages, key=key)


def line(name: str, said: str, shown: bool, link: dict[str, str]) -> None:
    """One of them: its name as Markdown, how and when, and the way to it unless it is shown."""
    left, right = st.columns([5, 3], vertical_alignment="center")
    left.markdown(name)
    right = right.container(horizontal=True, vertical_alignment="center")
    right.caption(said)
    if shown:
        right.caption("shown above", width="content")
    else:
        right.page_link("pages/train.py", label="Show", query_params=link, width="content")


def _pages(items: list) -> int:
    return max(1, math.ceil(len(items) / SHOWN))
