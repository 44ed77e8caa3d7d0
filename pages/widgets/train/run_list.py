"""The runs in the folder, newest first."""

import streamlit as st

from densembed.data import title
from densembed.models.names import describe
from densembed.runs import Run, all_runs, read_only
from densembed.text import counted
from pages.widgets.common.link import plain
from pages.widgets.train.listing import show_list

FEW = 5
"""Number of runs up to which a list needs no search."""


def run_list(shown: str) -> None:
    runs = all_runs()
    st.header("Runs", anchor=False)
    if not runs:
        hint = "" if read_only() else " They appear here as soon as you start one."
        st.caption(f"No runs yet.{hint}")
    words = _searched() if len(runs) > FEW else []

    def find() -> list[Run]:
        return [
            run
            for run in all_runs()
            if not words or all(word in _text(run).casefold() for word in words)
        ]

    if not show_list("run", find, lambda run: plain(_text(run)), shown) and words:
        st.caption("No run has all of these words in its name, model or data.")


def _searched() -> list[str]:
    """The words that the visitor looks for."""
    words = st.text_input("Search the runs by name, model or data", key="runs-search")
    return words.casefold().split()


def _text(run: Run) -> str:
    """What the list shows of a run: its name, model, data and epochs; "" for a damaged one."""
    config = run.config
    if config is None:
        return ""
    parts = [
        run.name,
        describe(config.model),
        title(config.dataset),
        counted(config.epochs, "epoch"),
    ]
    return " · ".join(filter(None, parts))
