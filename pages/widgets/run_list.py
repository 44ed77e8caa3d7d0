"""The runs in the folder, newest first."""

import streamlit as st

from densembed.data import DATASETS, title
from densembed.models import describe
from densembed.runs import all_runs
from pages.widgets.folder import FOLDER
from pages.widgets.link import plain
from pages.widgets.train_form import source_of
from pages.widgets.trainer import WORDS

SHOWN = 20


def run_list(shown: str) -> None:
    runs = all_runs()
    st.subheader("Runs", anchor=False)
    if not runs:
        st.caption("None yet. The first one appears here as soon as you start it.")
    for run in runs[:SHOWN]:
        config = run.config
        if config is None:
            continue
        name, state, link = st.columns([5, 2, 1], vertical_alignment="center")
        parts = [plain(run.name), describe(config.model)]
        if source_of(config) in (*DATASETS, FOLDER):
            parts += [plain(title(config.dataset)), f"{config.epochs} epochs"]
        name.markdown(" · ".join(filter(None, parts)))
        state.caption(f"{WORDS[run.state()]} · {run.started.day} {run.started:%B, %H:%M}")
        if run.identifier == shown:
            link.caption("shown above")
        else:
            link.page_link("pages/train.py", label="Show", query_params={"run": run.identifier})
    if len(runs) > SHOWN:
        st.caption(f"… and {len(runs) - SHOWN:,} older ones.")
