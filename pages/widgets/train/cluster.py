"""The cluster that all tabs share, and functions for the widgets about training."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import streamlit as st

from densembed.data import DataError, is_available, load_dataset
from densembed.models.names import check_name, describe
from densembed.runs import Run, execute, read_only
from densembed.runs.recovery import recover
from densembed.runs.speed import ALIKE, expected_seconds, recorded
from densembed.runs.sweep_plan import Plan
from densembed.runs.time_left import seconds_left, waiting_seconds
from densembed.training.config import RunConfig
from densembed.training.loop import estimate_seconds
from densembed.workers.cluster import Cluster
from pages.widgets.common.callbacks import run_callbacks
from pages.widgets.common.link import plain

LIVE = ("queued", "running")
ONE_PRESS = 2.0
"""Seconds in which the same training is not started again."""
ELSEWHERE = "Queued, but not on this server: the server that queued this may have stopped."
WORDS = {
    "queued": "waiting to start",
    "running": "training",
    "paused": "paused",
    "done": "done",
    "stopped": "stopped",
    "diverged": "diverged",
    "failed": "failed",
    "interrupted": "interrupted",
}
TROUBLE = "trouble"
LOOK_EVERY = 2.0
"""Seconds between two checks of a run or sweep that is not live."""


RESUME = "DENSEMBED_RESUME"


@st.cache_resource
def cluster() -> Cluster:
    """The cluster of this server. With `DENSEMBED_RESUME` set, it resumes unfinished runs."""
    server = Cluster()
    if os.environ.get(RESUME, "") not in ("", "0") and not read_only():
        with reporting_errors():
            recover(server)
    return server


def estimate(config: RunConfig) -> float:
    """Estimated seconds of a training on this machine. Raises ValueError for an invalid config."""
    data = load_dataset(config.dataset)
    _timed(_only(config))  # raises the error of an invalid config
    steps = config.epochs * math.ceil(len(data.train) / config.batch_size)
    tested = len(data.test) / len(data.train)
    return expected_seconds(config, steps, tested, recorded(), _time_per_step)


def _time_per_step(config: RunConfig) -> float | None:
    try:
        return _timed(_only(config)) if is_available(config.dataset) else None
    except (DataError, ValueError):  # data of an earlier run that have changed
        return None


def _only(config: RunConfig) -> RunConfig:
    """Of a config only what determines the time per step, so that few configs are timed."""
    alike = {name: getattr(config, name) for name in ALIKE}
    return RunConfig(epochs=1, **alike)


@st.cache_data(show_spinner=False, max_entries=1000)
def _timed(config: RunConfig) -> float:
    """Seconds per step of a few steps."""
    data = load_dataset(config.dataset)
    return estimate_seconds(config, data) / math.ceil(len(data.train) / config.batch_size)


def estimate_wait(run: Run) -> float | None:
    """Estimated seconds until a queued run may start, None without an estimate."""
    ahead = cluster().ahead(run) or []
    try:
        lefts = [seconds_left(one, _estimate_here) for one in ahead]
    except (DataError, ValueError):  # a device of a worker, or damaged data
        return None
    return waiting_seconds(lefts, max(1, cluster().at_once(run)))


def _estimate_here(config: RunConfig) -> float:
    if not is_available(config.dataset):
        raise DataError("The data are not downloaded yet.")
    return estimate(config)


def is_live(run: Run, state: str) -> bool:
    """Whether the state of a run may change by itself."""
    return state in LIVE or (state == "interrupted" and cluster().place(run) is not None)


@contextlib.contextmanager
def reporting_errors() -> Iterator[None]:
    """Keep an error as a sentence for `show_error`, also from within a callback."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or "it was deleted"
        st.session_state[TROUBLE] = f"The folder of the run cannot be written: {reason}."
    except (DataError, ValueError) as error:  # no scheduler, or an invalid setting
        st.session_state[TROUBLE] = str(error)


def show_error() -> None:
    """Show the error that `reporting_errors` kept."""
    if sentence := st.session_state.pop(TROUBLE, ""):
        st.error(plain(sentence))


def start(config: RunConfig) -> Callable[[], None] | None:
    """Queue a new run; returns the action that shows it, or None if it was not possible."""

    def make() -> dict[str, str]:
        run = Run.create(config)
        cluster().submit(run, execute)
        return {"run": run.identifier}

    return start_once(config, make)


def start_once(
    wanted: RunConfig | Plan, make: Callable[[], dict[str, str]]
) -> Callable[[], None] | None:
    """As `make` returns a link, the action that follows it; None if it was not possible.

    The second click of a double click, which comes while the page still has its button, follows the
    link of the first one.
    """
    recent = st.session_state.setdefault("recent-start", {})  # nothing of Streamlit after `make`
    double = recent.get("wanted") == wanted and time.monotonic() - recent["time"] < ONE_PRESS
    if not double:
        recent.clear()
        with reporting_errors():
            recent.update(link=make(), wanted=wanted, time=time.monotonic())
    return partial(follow, **recent["link"]) if recent else None


def watch(look: Callable[[], object], before: object) -> None:
    """Rerun the whole page when the result of `look` changes, for example by another tab.

    Args:
        before: the result of `look` before anything that depends on it was drawn: a change while
            the page was being drawn counts, too.
    """
    st.fragment(_watch, run_every=LOOK_EVERY)(look, before)


def _watch(look: Callable[[], object], before: object) -> None:
    # Nothing else runs by itself in a page at rest, where a noted action would wait for a click.
    run_callbacks()
    if look() != before:
        st.rerun()


def follow(**link: str) -> None:
    """Link to one run or sweep and no other; the rest of the page's link stays."""
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
