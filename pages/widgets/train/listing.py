"""A list of runs or sweeps in pages, newest first; only the current page is read."""

import math
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from densembed.runs import Run
from densembed.runs.sweep import Sweep
from pages.widgets.train.cluster import WORDS, watch

SHOWN = 20
Item = TypeVar("Item", Run, Sweep)


def show_list(
    kind: str, find: Callable[[], list[Item]], name: Callable[[Item], str], shown: str
) -> int:
    """Show what `find` returns, and follow what another tab or a training changes in it.

    Args:
        kind: "run" or "sweep", the parameter of its links.
        name: returns an item's name as Markdown; "" for a damaged one, which is left out.
        shown: identifier of the item that is shown above the list.

    Returns:
        The number of items found.
    """
    items = find()
    rows = _on_page(items, key := f"{kind}s-page")

    def read() -> list[tuple[str, str]]:
        return [(name(row), row.state()) for row in rows]

    before = read()
    for row, (text, state) in zip(rows, before, strict=True):
        if text:
            status = f"{WORDS[state]} · {row.started.day} {row.started:%B, %H:%M}"
            _line(text, status, row.identifier == shown, {kind: row.identifier})
    if (pages := _pages(items)) > 1:
        st.pagination(pages, key=key)
    watch(lambda: (find(), read()), (items, before))
    return len(items)


def _on_page(items: list[Item], key: str) -> list[Item]:
    pages = _pages(items)
    if st.session_state.get(key, 1) > pages:  # the only item of the last page was deleted
        st.session_state[key] = pages
    first = (st.session_state.get(key, 1) - 1) * SHOWN
    return items[first : first + SHOWN]


def _pages(items: list) -> int:
    return max(1, math.ceil(len(items) / SHOWN))


def _line(name: str, status: str, shown: bool, link: dict[str, str]) -> None:
    """One item: its name as Markdown, its status and time, and a link unless it is shown."""
    left, right = st.columns([5, 3], vertical_alignment="center")
    left.markdown(name)
    right = right.container(horizontal=True, vertical_alignment="center")
    right.caption(status)
    if shown:
        right.caption("shown above", width="content")
    else:
        right.page_link("pages/train.py", label="Show", query_params=link, width="content")
