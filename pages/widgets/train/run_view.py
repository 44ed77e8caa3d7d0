"""One run: its progress, its actions, its receptive field and its curves."""

import time

import streamlit as st
import torch
from torch import Tensor

from densembed.data import is_signals
from densembed.fields.field import view
from densembed.figures.curves import Course, course_figure
from densembed.figures.theme import AFTER, BEFORE
from densembed.models.names import describe
from densembed.runs import Run, read_only
from densembed.runs.log_lines import data_line, log_lines
from densembed.runs.time_left import seconds_after
from densembed.text import counted
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from pages.widgets.canvas.data import colours
from pages.widgets.canvas.stills import (
    NAME,
    SIGNAL_NAME,
    SIGNAL_UNIT,
    UNIT,
    show_stills,
    still,
)
from pages.widgets.common.callbacks import run_callbacks
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART, panel
from pages.widgets.common.zoom import DOUBLE_CLICK, keep_zoom
from pages.widgets.inputs.choose import pick_sample, show_picture, show_signal
from pages.widgets.inputs.compare_with import compare_with
from pages.widgets.inputs.download import download_progress
from pages.widgets.inputs.test_images import test_images
from pages.widgets.train.cluster import (
    ELSEWHERE,
    LIVE,
    WORDS,
    cluster,
    duration,
    estimate_wait,
    is_live,
    watch,
)
from pages.widgets.train.run_actions import CHANGED, run_buttons

INTERRUPTED = (
    "The process ended unexpectedly: the server was stopped, the disk is full, or the folder of "
    "the run cannot be written. The run can be resumed from its last saved state, if there is one."
)
CURVES_EVERY = 3.0


def run_view(run: Run) -> None:
    """Show a run, updated while it is live."""
    st.session_state.pop(CHANGED, None)  # the whole page is being redrawn anyway
    before = _changeable(run)
    live = is_live(run, before[0])
    st.fragment(_follow, run_every=1.0 if live else None)(run, before[0], live)
    if not live:
        watch(lambda: _changeable(run), before)


def _changeable(run: Run) -> tuple[str, str, bool]:
    """What another tab or the run itself may change on the page."""
    return run.state(), run.name, run.path.is_dir()


def _follow(run: Run, before: str, was_live: bool) -> None:
    run_callbacks()
    events = run.events()
    state = run.state()
    changed = st.session_state.pop(CHANGED, False) or not run.path.is_dir()
    if changed or state != before or (was_live and not is_live(run, state)):
        st.rerun()  # the whole page, to end the polling and update the list
    config = run.config
    if config is None:
        st.warning("This run needs a plugin that is not loaded, or its settings are damaged.")
        return
    st.header(plain(run.name) or describe(config.model), anchor=False)
    # In containers, so that each part keeps its place: where the lines above change while the page
    # and this fragment are drawn at once, the browser may look for a row within a line of text.
    course = _now_and_then(run, events, state == "running")
    checkpoint = _own(run.checkpoint(), config)
    with st.container():
        _status(run, state, events, config, course, checkpoint)
        # A process that died before it saved its state reports the same change once more.
        for line in dict.fromkeys(data_line(event) for event in events if event["kind"] == "data"):
            st.caption(plain(f"{line[0].upper()}{line[1:]}."))
    with st.container():
        if not read_only():
            run_buttons(run, state, config)
    ended = state != "paused" and not is_live(run, state)
    saved = state == "done" or run.checkpoint_path.is_file()
    damaged = ended and saved and not checkpoint
    pictures(checkpoint, course, run.identifier, ended, damaged)
    if events:
        with st.expander("Log"):
            st.code("\n".join([*log_lines(events), run.log]).strip(), language=None)


def _own(checkpoint: Checkpoint | None, config: RunConfig) -> Checkpoint | None:
    """The checkpoint, unless it is one of another model or other data."""
    if checkpoint is None:
        return None
    own = checkpoint.config
    return checkpoint if (own.model, own.dataset) == (config.model, config.dataset) else None


def _status(
    run: Run,
    state: str,
    events: list[dict],
    config: RunConfig,
    course: Course,
    checkpoint: Checkpoint | None,
) -> None:
    last = next((event for event in reversed(events) if event["kind"] == "progress"), None)
    noun = "signal" if is_signals(config.dataset) else "image"
    # While it trains, the last point of the curve, which is updated less often than the events.
    errors = course.errors[-1] if course.errors else None
    if checkpoint and checkpoint.errors and state not in LIVE:
        errors = checkpoint.errors  # the snapshot of a diverged run is older than the last point
    images = checkpoint.header.provenance.test_images if checkpoint else None
    error = f"test error {Errors(errors).text(images, noun)}" if errors else ""
    place = cluster().place(run) if state in ("queued", "interrupted") else None
    if state == "queued" and place is None:
        st.info(ELSEWHERE)
        return
    if state in LIVE or place is not None:
        if wanting := cluster().wanting(run):
            st.info(plain(wanting))
        elif state == "interrupted":
            st.progress(0.0, "the process ended; resuming from the last saved state …")
        elif state == "queued":
            st.progress(0.0, _waiting(run, place) + " …")
        elif last:
            share = last["step"] / last["steps"]
            line = f"{WORDS[state]} · step {last['step']:,} of {last['steps']:,}"
            latest = next(e for e in reversed(events) if e["kind"] in ("progress", "start"))
            measured = latest is last  # not before a pause
            rate = f"{last['images_per_second']:,.0f} {noun}s per second" if measured else ""
            left = seconds_after(events, config)
            rest = f"about {duration(left)} left" if left else ""
            st.progress(share, " · ".join(filter(None, (line, error, rate, rest))))
        else:
            st.progress(*_starting(events, config))
        return
    reason = events[-1].get("reason", "") if events else ""
    text = " · ".join(filter(None, (WORDS[state], error)))
    if state == "interrupted":
        reason = INTERRUPTED
    if reason:
        st.warning(f"{text.capitalize()}: {plain(reason)}")
    else:
        (st.success if state == "done" else st.info)(f"{text.capitalize()}.")
    if checkpoint:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link(
                "pages/explore.py",
                label="Show in Explore",
                icon=":material/arrow_forward:",
                query_params={"model": run.identifier},
                width="content",
            )
            compare_with(run.identifier)


def _starting(events: list[dict], config: RunConfig) -> tuple[float, str]:
    """Share and text for a progress bar before the first step, for example of a download."""
    if not events or events[-1]["kind"] != "download":
        return 0.0, "starting …"
    return download_progress(config.dataset, events[-1]["received"], events[-1]["size"])


def _waiting(run: Run, place: int) -> str:
    if not place:
        return WORDS["queued"]
    text = f"{WORDS['queued']} · {place:,} ahead in the queue"
    seconds = estimate_wait(run)
    return text if seconds is None else f"{text} · about {duration(seconds)}"


def pictures(
    checkpoint: Checkpoint | None,
    course: Course,
    name: str = "",
    ended: bool = False,
    damaged: bool = False,
) -> None:
    """A test image, its receptive field before training and now, and the curves.

    A signal and its fields lie one above the other, on the same axis.

    Args:
        ended: whether the run is over.
        damaged: whether a checkpoint was saved that is missing now or cannot be read.
    """
    signals = checkpoint is not None and checkpoint.header.scaling is not None
    if signals:
        fields, curve = st.columns([31, 13], gap="small")
        picture = fields
    else:
        picture, fields, curve = st.columns([10, 21, 13], gap="small")
    with curve:
        _curves(course, name, ended, trained=checkpoint is not None and checkpoint.steps[-1] > 0)
    if checkpoint is None:
        fields.caption(
            "The checkpoint of this run is missing, damaged or that of another run."
            if damaged
            else "The run ended before its first checkpoint, so there is no receptive field."
            if ended
            else "The receptive field appears after the first steps."
        )
        return
    if not checkpoint.has_densities:
        picture.caption("This model has no densities, so its field is the same everywhere.")
    with picture:
        pinned, what = _pin(checkpoint)
    shown = view(checkpoint, pinned, [0, -1])
    last = checkpoint.steps[-1]
    titles = ("before training", f"after {counted(last, 'step')}")
    notes = ("epoch 0", checkpoint.epoch_text(last))
    summed = [values.sum(0) for values in shown.fields]
    if signals:
        top = max(float(values.max()) for values in summed)  # all of a curve is seen
        scale = colours(0, top, SIGNAL_NAME, SIGNAL_UNIT) | {"open": False}
        summed, size, drawn = [values[None] for values in summed], (pinned.shape[1], 1), "curve"
    else:
        scale, size, drawn = colours(0, shown.top, NAME, UNIT), shown.size, "heatmap"
    alt = f"Receptive field, a {drawn}, for {what},"
    lines = (BEFORE, AFTER) if signals else (None, None)
    with fields:
        show_stills(
            [
                still(values, size, scale, title, note, alt, line)
                for values, title, note, line in zip(summed, titles, notes, lines, strict=True)
            ],
            "run-fields",
        )


def _pin(checkpoint: Checkpoint) -> tuple[Tensor, str]:
    """The input whose field is shown, and its description; a popover selects another one."""
    shown = st.container()
    shape, scaling = checkpoint.header.input_shape, checkpoint.header.scaling
    own = test_images(checkpoint)
    if own is None or own.name != checkpoint.config.dataset:
        pixels = torch.zeros(shape, dtype=torch.float32 if scaling else torch.uint8)
        what, among = f"a blank {'signal' if scaling else 'picture'}", None
    else:
        own = own.scaled_by(scaling)
        deeper = st.popover(f"Another {own.noun}", width="stretch")
        image = pick_sample(own, deeper.container(horizontal=True), deeper)
        pixels, among = image.pixels, own.test.images
        what = f"a test {own.noun} of class {own.classes[image.label]}"
    with shown:
        if scaling:
            show_signal(pixels, scaling, among, what)
        else:
            show_picture(pixels, what)
    return pixels, what


def _curves(course: Course, name: str, ended: bool, trained: bool) -> None:
    panel("progress", "error at the end of each epoch")
    if not course.steps and not course.errors:
        st.caption(
            "The log of this run (events.jsonl) is missing or damaged, so there are no curves."
            if ended and trained
            else "The run ended before its first steps, so there are no curves."
            if ended
            else "The curves appear after the first steps."
        )
        return
    log = st.session_state.get("log-scale", False)
    figure = course_figure(course, log=log)
    keep_zoom(figure, "curve", f"{name} {log}")
    st.plotly_chart(
        figure,
        key="curve",
        config=CHART | DOUBLE_CLICK,
        alt="Test error, loss and learning rate over the steps",
    )
    st.toggle("Logarithmic scale", key="log-scale")


def _now_and_then(run: Run, events: list[dict], live: bool) -> Course:
    """The curves, updated every few seconds: each new chart would end a drag within it."""
    name, drawn, course = st.session_state.get("course", ("", 0.0, None))
    kept = name == run.identifier and course.steps
    if not live or not kept or time.monotonic() - drawn >= CURVES_EVERY:
        course = Course.of_events(events)
        st.session_state["course"] = (run.identifier, time.monotonic(), course)
    return course
