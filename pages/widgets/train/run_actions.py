"""Buttons for the actions that the state of a run allows.

The actions are callbacks. A page that follows a run is redrawn every second; code after a button
would be lost if the redraw interrupts the script.
"""

from collections.abc import Callable
from functools import partial

import streamlit as st

from densembed.runs import Run, execute
from densembed.runs.folder import MAX_NAME
from densembed.training.config import RunConfig
from pages.widgets.common.callbacks import callback
from pages.widgets.train.cluster import LIVE, cluster, reporting_errors, start
from pages.widgets.train.form import SOURCES, fill_in
from pages.widgets.train.pictures import source_of

CHANGED = "run-changed"
"""Set by an action: rerun the whole page, not only the part that follows the run."""


def run_buttons(run: Run, state: str, config: RunConfig) -> None:
    row = st.container(horizontal=True, vertical_alignment="center")
    wish = run.request()
    waits = state == "queued" and cluster().place(run) is None
    if state in LIVE and not waits:
        action_button(row, "Pause", run.pause, disabled=wish in ("pause", "stop"))
    if waits:
        action_button(row, "Start here", cluster().submit, run, execute)
    if state in ("paused", "interrupted") or (state == "failed" and run.resume_path.is_file()):
        action_button(row, "Resume", _resume, run)
        action_button(
            row, "One epoch", _resume, run, 1, help="Continue to the end of the epoch, then pause."
        )
        if changed := run.changed_data:
            action_button(
                row,
                "Resume with the changed data",
                _resume,
                run,
                None,
                changed,
                help="The remaining epochs use the current data.",
            )
    if state in (*LIVE, "paused", "interrupted"):
        action_button(row, "Stop", run.stop, disabled=wish == "stop")
    if state in LIVE:
        return
    action_button(
        row,
        "Run again",
        start,
        config,
        help="Same settings and seed: with the same data, the same result.",
    )
    if source_of(config.dataset) in SOURCES:
        action_button(
            row,
            "Edit settings and rerun",
            fill_in,
            config,
            help="Copies these settings to the form.",
        )
    if run.checkpoint_path.is_file():
        # Read at a click: a browser would ask for a file of the page even after it was deleted.
        row.download_button(
            "Download",
            run.checkpoint_path.read_bytes,
            f"{run.identifier}.safetensors",
            key="download",
            on_click="ignore",
        )
    with row.popover("Rename"):
        key = f"name-{run.identifier}"
        rename = partial(_rename, run, key)
        # Both Enter and the button save the name; a click on the button saves it twice.
        st.text_input(
            "Name",
            run.name,
            key=key,
            max_chars=MAX_NAME,
            on_change=callback(_do, CHANGED, rename),
        )
        action_button(st, "Rename", rename)
    with row.popover("Delete"):
        st.write("The trained model will be deleted.")
        action_button(st, "Delete permanently", _delete, run)


def action_button(
    row, name: str, action, *args, changed: str = CHANGED, key: str = "", **kwargs
) -> None:
    """A button for an action; errors are reported, and the whole page is rerun."""
    row.button(
        name,
        key=key or name.lower().replace(" ", "-"),
        on_click=callback(_do, changed, action, *args, anywhere=True),
        **kwargs,
    )


def _do(changed: str, action, *args):
    """Do the action; returns what is left to do, as `callback` expects it."""
    st.session_state[changed] = True
    with reporting_errors():
        return action(*args)


def _resume(run: Run, epochs: int | None = None, data: str = "") -> None:
    run.resume(epochs, data)
    cluster().submit(run, execute)


def _rename(run: Run, key: str) -> None:
    if key in st.session_state:  # not on another page
        run.rename(st.session_state[key])


def _delete(run: Run) -> Callable[[], object]:
    run.delete()
    return partial(st.query_params.pop, "run", None)
