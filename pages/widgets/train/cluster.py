"""The cluster that all tabs share, and what the widgets about training have in common."""

import contextlib
import os
from collections.abc import Callable, Iterator

import streamlit as st

from densembed.data import DataError, is_available, load_dataset
from densembed.models.names import check_name, describe
from densembed.runs import Run, execute, read_only
from densembed.runs.recovery import recover
from densembed.runs.time_left import seconds_left, waiting_seconds
from densembed.training.config import RunConfig
from densembed.training.loop import estimate_seconds
from densembed.workers.cluster import Cluster
from pages.widgets.common.link import plain

LIVE = ("queued", "running")
WORDS = {
    "queued": "waiting to start", "running": "training", "paused": "paused", "done": "done",
    "stopped": "stopped", "diverged": "diverged", "failed": "failed", "interrupted": "interrupted",
}  # fmt: skip
TROUBLE = "trouble"
LOOK_EVERY = 2.0
"""Seconds between two looks at a run or sweep that is at rest."""


RESUME = "DENSEMBED_RESUME"


@st.cache_resource
def cluster() -> Cluster:
    """The server's one; where `DENSEMBED_RESUME` says so, it goes on with what is half done."""
    found = Cluster()
    if os.environ.get(RESUME, "") not in ("", "0") and not read_only():
        with telling():
            recover(found)
    return found


@st.cache_data(show_spinner=False, max_entries=1000)
def estimate(config: RunConfig) -> float:
    """Seconds that a config trains on this machine. Raises ValueError where it cannot."""
    return estimate_seconds(config, load_dataset(config.dataset))


def estimate_wait(run: Run) -> float | None:
    """Seconds until a run that waits may start, None where that cannot be known here."""
    ahead = cluster().ahead(run) or []
    try:
        lefts = [seconds_left(one, _estimate_here) for one in ahead]
    except (DataError, ValueError):  # a device that only a worker has, or data that is damaged
        return None
    return waiting_seconds(lefts, max(1, cluster().at_once(run)))


def _estimate_here(config: RunConfig) -> float:
    if not is_available(config.dataset):
        raise DataError("The data would have to be downloaded first.")
    return estimate(config)


def is_live(run: Run, state: str) -> bool:
    """Whether something may happen to it by itself."""
    return state in LIVE or (state == "interrupted" and cluster().place(run) is not None)


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """What cannot be done is a sentence: here, or after a callback where `tell` is called."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or "it is gone"
        st.session_state[TROUBLE] = f"The run's folder cannot be written: {reason}."
    except (DataError, ValueError) as error:  # no scheduler, a setting that is no number
        st.session_state[TROUBLE] = str(error)


def tell() -> None:
    if sentence := st.session_state.pop(TROUBLE, ""):
        st.error(plain(sentence))


def start(config: RunConfig) -> bool:
    """Queue a new run and show it; whether that could be done."""
    with telling():
        run = Run.create(config)
        cluster().submit(run, execute)
        follow(run=run.identifier)
        return True
    return False


def watch(look: Callable[[], object]) -> None:
    """Have the whole page drawn anew when what `look` tells changes: another tab may do that."""
    st.fragment(_watch, run_every=LOOK_EVERY)(look, look())


def _watch(look: Callable[[], object], seen: object) -> None:
    if look() != seen:
        st.rerun()


def follow(**link: str) -> None:
    """Show one run or sweep, and no other; what else the page's link says stays."""
    for name in ("run", "sweep"):
        st.query_params.pop(name, None)
    st.query_params.update(link)


def model_name(model: str) -> str:
    try:
        return describe(check_name(model))
    except ValueError:
        return model


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60):,} minutes"
