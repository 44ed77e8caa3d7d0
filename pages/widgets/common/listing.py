"""A list of runs or sweeps in pages, newest first; only the current page is read."""

import math

import streamlit as st

SHOWN = 20


def on_page(items: list, key: str) -> list:
    """The items of the current page of the `pager` with the same key."""
    pages = _pages(items)
    if st.session_state.get(key, 1) > pages:  # the only item of the last page was deleted
        st.session_state[key] = pages
    first = (st.session_state.get(key, 1) - 1) * SHOWN
    return items[first : first + SHOWN]


def pager(items: list, key: str) -> None:
    """Buttons for the pages if there are several; to be called below the list."""
    if (pages := _pages(items)) > 1:
        st.pagination(pages, key=key)


def line(name: str, status: str, shown: bool, link: dict[str, str]) -> None:
    """One item: its name as Markdown, its status and time, and a link unless it is shown."""
    left, right = st.columns([5, 3], vertical_alignment="center")
    left.markdown(name)
    right = right.container(horizontal=True, vertical_alignment="center")
    right.caption(status)
    if shown:
        right.caption("shown above", width="content")
    else:
        right.page_link("pages/train.py", label="Show", query_params=link, width="content")


def _pages(items: list) -> int:
    return max(1, math.ceil(len(items) / SHOWN))
