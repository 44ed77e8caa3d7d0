"""What a person can do with a run: a row of verbs, those that its state allows.

They are callbacks. A page that follows a run draws itself anew every second, and what is asked in
a script, after the widget, is lost where that script is cut short by the page's own redraw.
"""

import contextlib
from functools import partial

import streamlit as st

from densembed.data import DATASETS
from densembed.runs import MAX_NAME, Run, execute
from densembed.training.config import RunConfig
from pages.widgets.train.cluster import LIVE, cluster, start, telling
from pages.widgets.train.folder import FOLDER
from pages.widgets.train.form import fill_in, source_of

CHANGED = "run-changed"
"""Set by a verb: the whole page is to be drawn anew, not only the part that follows the run."""


def run_verbs(run: Run, state: str, config: RunConfig) -> None:
    row = st.container(horizontal=True, vertical_alignment="center")
    wish = run.request()
    waits = state == "queued" and cluster().place(run) is None
    if state in LIVE and not waits:
        verb(row, "Pause", run.pause, disabled=wish in ("pause", "stop"))
    if waits:
        verb(row, "Start here", cluster().submit, run)
    if state in ("paused", "interrupted") or (state == "failed" and run.resume_path.is_file()):
        verb(row, "Resume", _resume, run)
        verb(row, "One epoch", _resume, run, 1, help="Go on to the epoch's end, and pause.")
        if changed := run.changed_data:
            verb(
                row, "Resume with the changed data", _resume, run, None, changed,
                help="The rest of the epochs uses the data as they are now.",
            )  # fmt: skip
    if state in (*LIVE, "paused", "interrupted"):
        verb(row, "Stop", run.stop, disabled=wish == "stop")
    if state in LIVE:
        return
    verb(row, "Start again", start, config, help="With the same seed: the same result.")
    if source_of(config) in (*DATASETS, FOLDER):
        verb(row, "Change and start", fill_in, config, help="Fills in the form above.")
    with contextlib.suppress(OSError):
        row.download_button(
            "Download", run.checkpoint_path.read_bytes(), f"{run.identifier}.safetensors",
            key="download", on_click="ignore",
        )  # fmt: skip
    with row.popover("Rename"):
        key = f"name-{run.identifier}"
        rename = partial(_rename, run, key)
        # Enter saves the name as the button does; who clicks the button saves it twice.
        st.text_input("Name", run.name, MAX_NAME, key=key, on_change=_do, args=(CHANGED, rename))
        verb(st, "Rename", rename)
    with row.popover("Delete"):
        st.write("What it learned is lost for good.")
        verb(st, "Delete for good", _delete, run)


def verb(row, name: str, action, *args, changed: str = CHANGED, key: str = "", **kwargs) -> None:
    """A button that does something, says what went wrong, and has the whole page drawn anew."""
    row.button(
        name, key=key or name.lower().replace(" ", "-"), on_click=_do,
        args=(changed, action, *args), **kwargs,
    )  # fmt: skip


def _do(changed: str, action, *args) -> None:
    st.session_state[changed] = True
    with telling():
        action(*args)


def _resume(run: Run, epochs: int | None = None, data: str = "") -> None:
    run.resume(epochs, data)
    cluster().submit(run, execute)


def _rename(run: Run, key: str) -> None:
    run.rename(st.session_state[key])


def _delete(run: Run) -> None:
    run.delete()
    st.query_params.pop("run", None)
