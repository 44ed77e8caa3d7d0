"""How does a receptive field learn?"""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from densembed.figures.curves import Course
from densembed.models.names import describe
from densembed.runs import Run, gallery, read_only
from densembed.runs.folder import creation_time, is_identifier
from densembed.runs.sweep import Sweep
from densembed.training.header import CheckpointError
from pages.widgets.common.callbacks import forget_press
from pages.widgets.common.link import close_link, in_link, notice, quoted
from pages.widgets.common.page import begin
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.inputs.checkpoints import first_choice
from pages.widgets.train.cluster import show_error
from pages.widgets.train.form import train_form
from pages.widgets.train.run_list import run_list
from pages.widgets.train.run_view import pictures, run_view
from pages.widgets.train.sweep_form import sweep_form
from pages.widgets.train.sweep_view import sweep_list, sweep_view

STYLE = """
<style>
/* The form beside the run, so that both are seen at once; below each other on a narrow screen. */
.st-key-with-run, .st-key-without-run {gap: 2rem;}
:has(> .st-key-train-form) {flex: 0 0 300px !important; width: 300px; min-width: 0;}
:has(> .st-key-train-run) {flex: 1 1 620px !important; width: auto; min-width: 0;}
.st-key-train-form [data-testid="stColumn"] {min-width: 0 !important; flex: 1 1 0 !important;}
/* A browser does not send a number that it refuses: the training would have the one before. */
:is(.st-key-train-form, .st-key-sweep-form):has([aria-invalid="true"])
  :is(.st-key-start-training, .st-key-start-sweep) {display: none;}
@media (max-width: 1150px) {
  :has(> .st-key-train-form), :has(> .st-key-train-run) {flex: 1 1 100% !important;}
  .st-key-with-run > :has(> .st-key-train-run) {order: -1;}
  .st-key-train-form {max-width: 640px;}
}
@media print {
  :has(> .st-key-train-form), .st-key-sweep-form {display: none;}
}
</style>
"""
ONE, SEVERAL = "One model", "A sweep"
TAB = Parameter("training", "Training", Slugs({"run": ONE, "sweep": SEVERAL}), "run")
SHOWN = "shown-training"  # in the session: the identifier of the run or sweep shown last


def main() -> None:
    begin(
        "How does a receptive field learn?",
        "During a training, the densities move to their places."
        if read_only()
        else "Start a training and watch the densities move to their places. Training continues if "
        "you close the page.",
    )
    _follow_link()
    one, several = st.tabs([ONE, SEVERAL], key="kind", on_change="rerun")
    replace(TAB, instead=ONE if one.open else SEVERAL).check()
    with one if one.open else several:
        if read_only():
            st.info("This is a public demonstration, where you cannot train or delete models.")
        (_one if one.open else _several)()
    forget_press()
    # A run or sweep in the link tells the tab, too.
    TAB.write("sweep" if several.open and "sweep" not in st.query_params else TAB.default)
    close_link()


def _follow_link() -> None:
    """Open the tab that a new link is for, or that of a page to which the visitor comes back."""
    link = {name: in_link(name, "") for name in ("run", "sweep")}
    arrived, tab = st.session_state["arrived"], TAB.linked()
    if any(link.values()) and (arrived or link != st.session_state.get("kind-link")):
        st.session_state["kind"] = SEVERAL if link["sweep"] else ONE
    elif arrived and tab:
        st.session_state["kind"] = TAB.options.text(tab)
    st.session_state["kind-link"] = link


def _one() -> None:
    _report_missing("sweep", Sweep.find)
    identifier = _chosen("run", other="sweep")
    run = Run.find(identifier)
    st.html(STYLE)
    with st.container(horizontal=True, key="with-run" if run else "without-run"):
        if not read_only():
            with st.container(key="train-form"):
                train_form()
                show_error()
        with st.container(key="train-run"):
            if run:
                st.query_params["run"] = identifier  # a page link's does not reach the address
                st.session_state[SHOWN] = identifier
                run_view(run)
            else:
                _report_missing("run", Run.find)
                _example()
    run_list(identifier)


def _several() -> None:
    _report_missing("run", Run.find)
    st.html(STYLE)
    if not read_only():
        with st.container(key="sweep-form"):
            sweep_form()
            show_error()
    identifier = _chosen("sweep", other="run")
    if sweep := Sweep.find(identifier):
        st.query_params["sweep"] = identifier
        st.session_state[SHOWN] = identifier
        sweep_view(sweep)
    else:
        _report_missing("sweep", Sweep.find)
    sweep_list(identifier)


def _chosen(key: str, other: str) -> str:
    """The run or sweep in the link, or the one of before the visitor opened the other tab.

    The link names what this tab shows, and nothing of the other tab.
    """
    if text := in_link(other):
        st.session_state[f"left-{other}"] = text
        del st.query_params[other]
    if text := in_link(key):
        st.session_state.pop(f"left-{key}", None)
        return text
    return st.session_state.get(f"left-{key}", "")


def _report_missing(key: str, find: Callable[[str], object]) -> None:
    """Report a run or sweep in the link that was deleted or does not exist."""
    text = in_link(key)
    if text is None or find(text):
        return
    del st.query_params[key]
    if st.session_state.get(SHOWN) == text:
        start = creation_time(text)
        notice(f"The {key} of {start.day} {start:%B, %H:%M} was deleted. Showing the others.")
        return
    hint = "; it may have been deleted" if is_identifier(text) else ""
    notice(
        f"The link sets “{key.capitalize()}” to {quoted(text)}, which was not found{hint}. "
        "Showing the others."
    )


def _example() -> None:
    """The training of a shipped model, as an example before the first click."""
    try:
        shipped = {entry.key: entry for entry in gallery.shipped()}
        checkpoint = shipped[first_choice(shipped)].open()
    except (CheckpointError, StopIteration):  # an empty gallery
        return
    st.header(f"For example: {describe(checkpoint.config.model)}", anchor=False)
    pictures(checkpoint, Course.of_epochs(checkpoint.header.epochs))


main()
