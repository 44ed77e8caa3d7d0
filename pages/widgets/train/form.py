"""The form of a new training: the network, the data and the epochs, and further settings."""

from collections.abc import Callable

import streamlit as st
from pydantic import ValidationError

from densembed.data import DATASETS, DataError, is_available, load_dataset
from densembed.data.grids import OWN as OWN_GRID
from densembed.models.registry import build, parameter_count
from densembed.training.config import RunConfig, explain
from densembed.training.device import pick_device
from pages.widgets.common.callbacks import callback, forget_press, pressed
from pages.widgets.common.link import plain
from pages.widgets.train.cluster import cluster, duration, estimate, start
from pages.widgets.train.network import network_fields, pick_network
from pages.widgets.train.pictures import (
    FOLDER,
    KEPT,
    OWN,
    SIGNALS,
    UPLOADED,
    pick_pictures,
    picture_fields,
    show_pictures,
    source_of,
)

INCLUDED = {name: source.title for name, source in DATASETS.items()}
"""The data sets with names of their own, and their titles."""
SOURCES = INCLUDED | OWN
"""The choices of data, with their texts."""
EPOCHS = {"digits": 60, FOLDER: 20, UPLOADED: 20}
DEFAULTS = {
    "new-rate": 0.002,
    "new-batch": 128,
    "new-seed": 0,
    "new-device": "auto",
    "new-grid": OWN_GRID,
}
OTHERS = "new-other"
"""In the session: settings of the run whose settings are edited, without fields in the form."""


def train_form() -> None:
    for key, value in DEFAULTS.items():
        st.session_state.setdefault(key, value)
    model = pick_network()
    source = st.selectbox(
        "Data", list(SOURCES), key="new-data", **KEPT, format_func=SOURCES.get, help=SIGNALS
    )
    dataset = pick_pictures(source) if source in OWN else source
    readable = source not in OWN or (dataset is not None and show_pictures(dataset))
    bottom = st.columns(2, vertical_alignment="bottom")
    st.session_state.setdefault(f"new-epochs-{source}", EPOCHS.get(source, 5))
    # Streamlit would keep the value before one that is out of range: the config checks the range.
    epochs = bottom[0].number_input(
        "Epochs",
        step=1,
        key=f"new-epochs-{source}",
        **KEPT,
        help="Passes over the training data.",
    )
    settings = _more_settings() | _others()
    try:
        config = RunConfig(model=model, dataset=dataset or FOLDER, epochs=epochs, **settings)
        if not cluster().scheduler:
            pick_device(config.device)
    except (ValidationError, ValueError) as error:
        st.error(plain(explain(error) if isinstance(error, ValidationError) else str(error)))
        return
    if not readable:
        return
    try:
        note = _duration(config)
        size = _size(config)
    except DataError as error:  # damaged data
        note, size = f"No time estimate: {plain(str(error))}", ""
    except ValueError as error:  # pictures too small for the model
        st.error(plain(str(error)))
        return
    if pressed(bottom[1], "Start training", "start-training", type="primary", width="stretch"):
        callback(_start, config, anywhere=True)()
        st.rerun()
    st.caption(note)
    st.caption(f"`{model}`{size}")


def _start(config: RunConfig) -> Callable[[], None] | None:
    """Queue a run; returns the action that shows it and forgets the settings of an earlier run."""
    forget_press()
    show = start(config)

    def follow() -> None:
        st.session_state.pop(OTHERS, None)
        show()

    return show and follow


def _more_settings() -> dict:
    """Widgets for the settings that usually stay as they are."""
    with st.expander("More settings"):
        columns = st.columns(2)
        rate = columns[0].number_input(
            "Learning rate",
            step=0.001,
            format="%g",
            key="new-rate",
            **KEPT,
            help="Maximum of the one-cycle schedule. The paper uses 0.002.",
        )
        batch = columns[1].number_input(
            "Batch size", step=1, key="new-batch", **KEPT, help="Inputs per step."
        )
        seed = columns[0].number_input(
            "Seed",
            step=1,
            key="new-seed",
            **KEPT,
            help="Runs with the same seed give the same result.",
        )
        device = columns[1].selectbox(
            "Device", ["auto", "cpu", "cuda", "mps"], key="new-device", **KEPT
        )
        grid = st.text_input(
            "Grid",
            key="new-grid",
            **KEPT,
            help=f"Pixels or samples to train on: those of the data ({OWN_GRID}), or others, as in "
            f"14 or 28x20; with several, as in 14,{OWN_GRID},56, each step takes one of them.",
        )
    settings = {"learning_rate": rate, "batch_size": batch, "seed": seed, "device": device}
    return settings | {"grid": grid.strip() or OWN_GRID}


def _duration(config: RunConfig) -> str:
    """How long the training will take, or what happens first."""
    if not is_available(config.dataset):
        source = DATASETS[config.dataset]
        return f"{source.title} will be downloaded first ({source.download_size})."
    if cluster().scheduler:
        return "The training runs on the machines of the scheduler."
    return f"About {duration(estimate(config))} on this machine."


def _size(config: RunConfig) -> str:
    """The number of parameters, if the data are available."""
    if not is_available(config.dataset):
        return ""
    data = load_dataset(config.dataset)
    return f" · {_parameters(config.model, data.input_shape, len(data.classes)):,} parameters"


@st.cache_data(show_spinner=False, max_entries=1000)
def _parameters(model: str, shape: tuple[int, ...], classes: int) -> int:
    return parameter_count(build(model, shape, classes=classes))


def _others() -> dict:
    """Settings of a run to repeat that the form has no fields for, which can be left out."""
    other = st.session_state.get(OTHERS, {})
    if other:
        text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in other.items())
        st.caption(f"As in the run whose settings you edit: {plain(text)}.")
        st.button(
            "Use the usual values",
            key="usual-values",
            on_click=callback(st.session_state.pop, OTHERS, None),
        )
    return other


def fill_in(config: RunConfig) -> None:
    """Fill in the form with the settings of a run."""
    source = source_of(config.dataset)
    fields = {
        **network_fields(config.model),
        "new-data": source,
        **picture_fields(config.dataset),
        f"new-epochs-{source}": config.epochs,
        "new-rate": config.learning_rate,
        "new-batch": config.batch_size,
        "new-seed": config.seed,
        "new-device": config.device,
        "new-grid": config.grid,
    }
    named = {"model", "dataset", "epochs", "learning_rate", "batch_size", "seed", "device", "grid"}
    st.session_state.update(fields)
    st.session_state[OTHERS] = config.model_dump(exclude=named, exclude_defaults=True)
