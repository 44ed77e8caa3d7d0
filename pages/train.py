"""How does a receptive field learn?"""

import contextlib
import re
from collections.abc import Iterator

import streamlit as st
import torch
from pydantic import ValidationError

from densembed import gallery
from densembed.checkpoint import Checkpoint, error_text
from densembed.cluster import Cluster
from densembed.config import RunConfig, explain
from densembed.data import DATASETS, is_available, load_dataset
from densembed.fields import view
from densembed.figures import curves_figure, field_figure, picture_figure
from densembed.models import check_name, describe
from densembed.runs import MAX_NAME, Run, all_runs, read_only
from densembed.training import estimate_seconds, pick_device
from pages.widgets.models import first_choice, titles
from pages.widgets.page import CHART, begin, panel

MODELS = (
    "logistic-el-mnn-10-5", "logistic-el-mnn-8-4", "logistic-el-mnn-6-3", "logistic-el-15",
    "logistic-el-8", "logistic-el-5", "logistic-el-3", "linear", "mlp-50",
)  # fmt: skip
DEFAULTS = {"new-rate": 0.002, "new-batch": 128, "new-seed": 0, "new-device": "auto"}
LIVE = ("queued", "running")
WORDS = {
    "queued": "waiting to start", "running": "training", "paused": "paused", "done": "done",
    "stopped": "stopped", "diverged": "diverged", "failed": "failed", "interrupted": "interrupted",
}  # fmt: skip
INTERRUPTED = (
    "It ended without a word: the server was stopped, or the disk is full. What it had is kept."
)
SHOWN_RUNS = 20


@st.cache_resource
def cluster() -> Cluster:
    return Cluster()


@st.cache_data(show_spinner=False)
def estimate(config: RunConfig) -> float:
    return estimate_seconds(config, load_dataset(config.dataset))


def main() -> None:
    begin(
        "How does a receptive field learn?",
        "Start a training and watch the densities find their places. It goes on when you leave.",
    )
    if read_only():
        st.info("This is a public demonstration: nothing is trained or deleted here.")
    else:
        _form()
    identifier = st.query_params.get("run", "")
    run = Run.find(identifier)
    if run:
        live = _is_live(run, run.state())
        st.fragment(_follow, run_every=1.0 if live else None)(run, live)
    else:
        if identifier:
            st.warning(f"The link asks for “{identifier[:40]}”, which is not here any more.")
        _example()
    _list(identifier)


def _is_live(run: Run, state: str) -> bool:
    """Whether something may happen to it by itself."""
    return state in LIVE or (state == "interrupted" and cluster().place(run) is not None)


def _form() -> None:
    for key, value in DEFAULTS.items():
        st.session_state.setdefault(key, value)
    columns = st.columns([3, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        model = st.selectbox(
            "Model", MODELS, format_func=_name, accept_new_options=True, key="new-model",
            help="Choose one, or type a name such as logistic-el-7 or logistic-el-mnn-12-6.",
        )  # fmt: skip
    with columns[1]:
        dataset = st.selectbox(
            "Data", list(DATASETS), format_func=lambda name: DATASETS[name].TITLE, key="new-data"
        )
    with columns[2]:
        st.session_state.setdefault(f"new-epochs-{dataset}", 60 if dataset == "digits" else 5)
        epochs = st.number_input(
            "Epochs", 1, 10_000, key=f"new-epochs-{dataset}",
            help="Passes over the training images.",
        )  # fmt: skip
    with st.expander("More"):
        more = st.columns(4)
        rate = more[0].number_input(
            "Learning rate", 1e-6, 1e6, step=0.001, format="%g", key="new-rate",
            help="Maximum of the one-cycle schedule; the paper's is 0.002.",
        )  # fmt: skip
        batch = more[1].number_input(
            "Batch size", 1, 100_000, key="new-batch", help="Images in a step."
        )
        seed = more[2].number_input(
            "Seed", 0, 2**31 - 1, key="new-seed", help="The same seed, the same result."
        )
        device = more[3].selectbox("Device", ["auto", "cpu", "cuda", "mps"], key="new-device")
        other = _others()
    try:
        config = RunConfig(
            model=model, dataset=dataset, epochs=epochs, learning_rate=rate, batch_size=batch,
            seed=seed, device=device, **other,
        )  # fmt: skip
        pick_device(device)
    except (ValidationError, ValueError) as error:
        st.error(explain(error) if isinstance(error, ValidationError) else str(error))
        return
    bar = st.container(horizontal=True, vertical_alignment="center")
    if bar.button("Start training", type="primary"):
        st.session_state.pop("new-other", None)
        with bar, st.spinner("Starting …"):
            _start(config)
    if is_available(dataset):
        bar.caption(f"About {_duration(estimate(config))} on this machine.")
    else:
        bar.caption(f"{DATASETS[dataset].TITLE} is downloaded first (some 12 MB).")


def _others() -> dict:
    """What a duplicated run was told beyond the form's fields: kept, and said."""
    other = st.session_state.get("new-other", {})
    if other:
        said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in other.items())
        st.caption(f"As in the run that was duplicated: {said}.")
    return other


def _start(config: RunConfig) -> None:
    with _telling():
        run = Run.create(config)
        cluster().submit(run)
        st.query_params["run"] = run.identifier
        st.rerun()


def _duplicate(config: RunConfig) -> None:
    """Fill in the form with what a run was told."""
    fields = {
        "new-model": config.model, "new-data": config.dataset,
        f"new-epochs-{config.dataset}": config.epochs, "new-rate": config.learning_rate,
        "new-batch": config.batch_size, "new-seed": config.seed, "new-device": config.device,
    }  # fmt: skip
    named = {"model", "dataset", "epochs", "learning_rate", "batch_size", "seed", "device"}
    st.session_state.update(fields)
    st.session_state["new-other"] = config.model_dump(exclude=named, exclude_defaults=True)


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """A folder that cannot be written is a sentence."""
    try:
        yield
    except OSError as error:
        st.error(f"The run's folder cannot be written: {error.strerror or 'it is gone'}.")


def _plain(text: str) -> str:
    """A name as text where Streamlit would read Markdown."""
    return re.sub(r"([^\w\s])", r"\\\1", text)


def _name(model: str) -> str:
    try:
        return describe(check_name(model))
    except ValueError:
        return model


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} minutes"


def _follow(run: Run, was_live: bool) -> None:
    events = run.events()
    state = run.state()
    if was_live and not _is_live(run, state):
        st.rerun()  # the whole page: the polling ends and the list says how it went
    config = run.config
    if config is None:
        st.warning("This run is gone, or needs a plugin that is not loaded here.")
        return
    st.subheader(_plain(run.name) or describe(config.model), anchor=False)
    _status(run, state, events, config)
    if not read_only():
        _actions(run, state, config)
    if log := run.log:
        with st.expander("Log"):
            st.code(log, language=None)
    _pictures(
        run.checkpoint(),
        [(event["epoch"], event["test_error"]) for event in events if event["kind"] == "epoch"],
    )


def _status(run: Run, state: str, events: list[dict], config: RunConfig) -> None:
    last = next((event for event in reversed(events) if event["kind"] == "progress"), None)
    epochs = [event for event in events if event["kind"] == "epoch"]
    error = f"test error {error_text(epochs[-1]['test_error'])}" if epochs else ""
    place = cluster().place(run) if state in ("queued", "interrupted") else None
    if state == "queued" and place is None:
        st.info("Waiting to start, but not on this server: the one that queued it may have ended.")
        return
    if state in LIVE or place is not None:
        if state == "interrupted":
            st.progress(0.0, "its process died; going on from what was kept …")
        elif state == "queued":
            waits = f"{WORDS[state]} · {place:,} before it" if place else WORDS[state]
            st.progress(0.0, waits + " …")
        elif last:
            share = last["step"] / last["steps"]
            line = f"{WORDS[state]} · step {last['step']:,} of {last['steps']:,}"
            rate = f"{last['images_per_second']:,.0f} images a second"
            st.progress(share, " · ".join(filter(None, (line, error, rate, _left(last, config)))))
        else:
            st.progress(0.0, "starting …")
        return
    reason = events[-1].get("reason", "") if events else ""
    text = " · ".join(filter(None, (WORDS[state], error)))
    if state == "interrupted":
        reason = INTERRUPTED
    if reason:
        st.warning(f"{text.capitalize()}: {reason}")
    else:
        (st.success if state == "done" else st.info)(f"{text.capitalize()}.")
    if run.checkpoint_path.is_file():
        st.page_link(
            "pages/explore.py", label="Show it in Explore", icon=":material/arrow_forward:",
            query_params={"model": run.identifier},
        )  # fmt: skip


def _left(last: dict, config: RunConfig) -> str:
    """The time that the rest of the steps takes at the last speed, in words."""
    images = (last["steps"] - last["step"]) * config.batch_size * config.seeds
    if not images or not last["images_per_second"]:
        return ""
    return f"{_duration(images / last['images_per_second'])} left"


def _actions(run: Run, state: str, config: RunConfig) -> None:
    """A row of verbs: those that the run's state allows."""
    row = st.container(horizontal=True, vertical_alignment="center")
    wish = run.wish()
    waits = state == "queued" and cluster().place(run) is None
    if state in LIVE and not waits:
        _do(row, "Pause", run.pause, disabled=wish in ("pause", "stop"))
    if waits:
        _do(row, "Start here", lambda: cluster().submit(run))
    if state in ("paused", "interrupted") or (state == "failed" and run.resume_path.is_file()):
        _do(row, "Resume", lambda: _resume(run))
        _do(row, "One epoch", lambda: _resume(run, 1), help="Go on to the epoch's end, and pause.")
    if state in (*LIVE, "paused", "interrupted"):
        _do(row, "Stop", run.stop, disabled=wish == "stop")
    if state in LIVE:
        return
    if row.button("Start again", key="again", help="With the same seed: the same result."):
        _start(config)
    if config.dataset in DATASETS:
        changing = row.button(
            "Change and start", key="duplicate", on_click=_duplicate, args=(config,),
            help="Fills in the form above.",
        )  # fmt: skip
        if changing:
            st.rerun()  # the whole page: the form is not a part of what follows the run
    with contextlib.suppress(OSError):
        row.download_button(
            "Download", run.checkpoint_path.read_bytes(), f"{run.identifier}.safetensors",
            key="download", on_click="ignore",
        )  # fmt: skip
    with row.popover("Rename"):
        name = st.text_input("Name", run.name, MAX_NAME, key=f"name-{run.identifier}")
        if st.button("Rename", key="rename"):
            with _telling():
                run.rename(name)
                st.rerun()
    with row.popover("Delete"):
        st.write("What it learned is lost for good.")
        if st.button("Delete for good", key="delete"):
            run.delete()
            st.query_params.pop("run", None)
            st.rerun()


def _do(row, verb: str, action, **kwargs) -> None:
    if row.button(verb, key=verb.lower().replace(" ", "-"), **kwargs):
        with _telling():
            action()
            st.rerun()


def _resume(run: Run, epochs: int | None = None) -> None:
    run.resume(epochs)
    cluster().submit(run)


def _pictures(checkpoint: Checkpoint | None, errors: list[tuple[int, float]]) -> None:
    """One pinned test image, its receptive field before training and now, and the test error."""
    picture, *fields, curve = st.columns(4, gap="small")
    with curve:
        _curve(errors)
    if checkpoint is None:
        fields[0].caption("The receptive field appears with the first steps.")
        return
    if not checkpoint.has_densities:
        picture.caption("Fully connected: one density a pixel, their sum is 1 everywhere.")
    if is_available(checkpoint.config.dataset):
        pinned = load_dataset(checkpoint.config.dataset).test.images[0]
    else:
        pinned = torch.zeros(checkpoint.header.input_shape, dtype=torch.uint8)
    with picture:
        panel("the input", "the first test image" if pinned.any() else "blank")
        st.plotly_chart(
            picture_figure(pinned.numpy()), key="pinned", config=CHART,
            alt="The picture that the receptive fields are for",
        )  # fmt: skip
    seen = view(checkpoint, pinned, [0, -1])
    last = checkpoint.steps[-1]
    titles = ("before training", f"after {last:,} steps")
    notes = ("epoch 0", f"epoch {checkpoint.epoch_of(last):.3g}")
    for index, column in enumerate(fields):
        with column:
            panel(titles[index], notes[index])
            st.plotly_chart(
                field_figure(seen.fields[index], seen.x, seen.y, seen.top),
                key=f"field-{index}", config=CHART,
                alt=f"Receptive field {titles[index]}, for the first test image",
            )  # fmt: skip


def _curve(points: list[tuple[int, float]]) -> None:
    panel("test error")
    if not points:
        st.caption("A point appears at the end of each epoch.")
        return
    epochs, errors = zip(*points, strict=True)
    st.plotly_chart(
        curves_figure([("test error", epochs, errors)], "epoch", "test error, %"),
        key="curve", config=CHART, alt="Test error after each epoch",
    )  # fmt: skip


def _example() -> None:
    """A training that ships, so that the page shows what it is about before the first click."""
    options = titles()
    if not options:
        return
    checkpoint = gallery.find(first_choice(options)).open()
    st.subheader(f"For example: {describe(checkpoint.config.model)}", anchor=False)
    _pictures(checkpoint, [(epoch.epoch, epoch.test_error) for epoch in checkpoint.header.epochs])


def _list(shown: str) -> None:
    runs = all_runs()
    st.subheader("Runs", anchor=False)
    if not runs:
        st.caption("None yet. The first one appears here as soon as you start it.")
    for run in runs[:SHOWN_RUNS]:
        config = run.config
        if config is None:
            continue
        name, state, link = st.columns([5, 2, 1], vertical_alignment="center")
        parts = [_plain(run.name), describe(config.model)]
        if config.dataset in DATASETS:
            parts += [DATASETS[config.dataset].TITLE, f"{config.epochs} epochs"]
        name.markdown(" · ".join(filter(None, parts)))
        state.caption(f"{WORDS[run.state()]} · {run.started.day} {run.started:%B, %H:%M}")
        if run.identifier == shown:
            link.caption("shown above")
        else:
            link.page_link("pages/train.py", label="Show", query_params={"run": run.identifier})
    if len(runs) > SHOWN_RUNS:
        st.caption(f"… and {len(runs) - SHOWN_RUNS:,} older ones.")


main()
