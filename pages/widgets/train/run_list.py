"""The runs in the folder, newest first."""

import streamlit as st

from densembed.data import DATASETS, title
from densembed.models.names import describe
from densembed.runs import all_runs
from pages.widgets.common.link import plain
from pages.widgets.common.listing import line, on_page, pager
from pages.widgets.train.cluster import WORDS
from pages.widgets.train.folder import FOLDER
from pages.widgets.train.form import source_of

PAGE = "runs-page"


def run_list(shown: str) -> None:
    runs = all_runs()
    st.subheader("Runs", anchor=False)
    if not runs:
        st.caption("No runs yet. They appear here as soon as you start one.")
    for run in on_page(runs, PAGE):
        config = run.config
        if config is None:
            continue
        parts = [plain(run.name), describe(config.model)]
        if source_of(config) in (*DATASETS, FOLDER):
            parts += [plain(title(config.dataset)), f"{config.epochs} epochs"]
        line(
            " · ".join(filter(None, parts)),
            f"{WORDS[run.state()]} · {run.started.day} {run.started:%B, %H:%M}",
            run.identifier == shown, {"run": run.identifier},
        )  # fmt: skip
    pager(runs, PAGE)
