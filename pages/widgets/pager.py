"""A list in pages, newest first: only what is shown is read."""

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


def _pages(items: list) -> int:
    return max(1, math.ceil(len(items) / SHOWN))
