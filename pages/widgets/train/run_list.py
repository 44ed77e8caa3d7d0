"""The runs in the folder, newest first."""

import streamlit as st

from densembed.data import title
from densembed.models.names import describe
from densembed.runs import Run, all_runs, read_only
from densembed.text import counted
from pages.widgets.common.link import plain
from pages.widgets.common.listing import line, on_page, pager
from pages.widgets.train.cluster import LIVE, WORDS, watch
from pages.widgets.train.form import SOURCES
from pages.widgets.train.pictures import source_of

PAGE = "runs-page"
FEW = 5
"""Number of runs up to which a list needs no search."""


def run_list(shown: str) -> None:
    runs = all_runs()
    st.header("Runs", anchor=False)
    if not runs:
        hint = "" if read_only() else " They appear here as soon as you start one."
        st.caption(f"No runs yet.{hint}")
    if len(runs) > FEW and (words := _searched()):
        runs = [run for run in runs if all(word in _text(run).casefold() for word in words)]
        if not runs:
            st.caption("No run has all of these words in its name, model or data.")
    rows = on_page(runs, PAGE)
    states = _states(rows)
    for run, state in zip(rows, states, strict=True):
        if not (text := _text(run)):
            continue
        line(
            plain(text),
            f"{WORDS[state]} · {run.started.day} {run.started:%B, %H:%M}",
            run.identifier == shown,
            {"run": run.identifier},
        )
    pager(runs, PAGE)
    live = [(run, state) for run, state in zip(rows, states, strict=True) if state in LIVE]
    # The run that is shown has a view of its own, which follows it.
    if others := [each for each in live if each[0].identifier != shown]:
        watch(lambda: _states([run for run, _ in others]), [state for _, state in others])


def _states(runs: list[Run]) -> list[str]:
    """What another tab or the runs themselves may change in the list."""
    return [run.state() for run in runs]


def _searched() -> list[str]:
    """The words that the visitor looks for."""
    words = st.text_input("Search the runs by name, model or data", key="runs-search")
    return words.casefold().split()


def _text(run: Run) -> str:
    """What the list shows of a run: its name, model, data and epochs; "" for a damaged one."""
    config = run.config
    if config is None:
        return ""
    parts = [run.name, describe(config.model)]
    if source_of(config.dataset) in SOURCES:
        parts += [title(config.dataset), counted(config.epochs, "epoch")]
    return " · ".join(filter(None, parts))
