"""Choosing a checkpoint."""

import streamlit as st

from densembed import gallery
from densembed.checkpoint import Checkpoint, CheckpointError
from densembed.data import is_available
from pages.widgets.page import linked_select


def titles() -> dict[str, str]:
    """Every checkpoint that opens: its key and its one line."""
    found = {}
    for entry in gallery.entries():
        try:
            found[entry.key] = entry.title
        except CheckpointError:
            continue  # a run's file that is just being removed, or a stranger's file in the folder
    return found


def first_choice(options: dict[str, str]) -> str:
    """The mNN of the best data that is here: MNIST's where MNIST is, else the embedded digits'."""
    mnn = "logistic-el-mnn-10-5"
    wanted = [mnn] if is_available("mnist") else [f"{mnn}-digits", mnn]
    return next((key for key in wanted if key in options), next(iter(options)))


def pick_checkpoint(label: str, key: str, default: str | None = None) -> Checkpoint:
    """A select box over the gallery and the runs; ends the script where there is none."""
    options = titles()
    if not options:
        st.info("There is no trained model yet. Train one: it takes some seconds.")
        st.page_link("pages/train.py", label="Train a model")
        st.stop()
    if default not in options:
        default = first_choice(options)
    chosen = linked_select(label, options, key, default)
    if story := gallery.STORIES.get(chosen):
        st.caption(story)
    try:
        return gallery.find(chosen).open()
    except CheckpointError as error:  # damage that the list did not see
        st.error(str(error))
        st.stop()


def mark(checkpoint: Checkpoint) -> str:
    """Tells checkpoints apart in a cache."""
    header = checkpoint.header
    return f"{header.config} {header.provenance.created} {header.steps} {checkpoint.errors}"
