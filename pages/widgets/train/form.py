"""The form of a new training: model, data and epochs, and further settings."""

import streamlit as st
from pydantic import ValidationError

from densembed.data import DATASETS, DataError, is_available, is_folder
from densembed.training.config import RunConfig, explain
from densembed.training.device import pick_device
from pages.widgets.common.link import plain
from pages.widgets.train.cluster import cluster, duration, estimate, model_name, start
from pages.widgets.train.folder import FOLDER, KEPT, folder_fields, pick_folder, show_folder

MODELS = (
    "logistic-el-mnn-10-5", "logistic-el-mnn-8-4", "logistic-el-mnn-6-3", "logistic-el-15",
    "logistic-el-8", "logistic-el-5", "logistic-el-3", "linear", "mlp-50",
)  # fmt: skip
OWN_FOLDER = "A folder of pictures"
EPOCHS = {"digits": 60, FOLDER: 20}
DEFAULTS = {"new-rate": 0.002, "new-batch": 128, "new-seed": 0, "new-device": "auto"}


def train_form() -> None:
    for key, value in DEFAULTS.items():
        st.session_state.setdefault(key, value)
    columns = st.columns([3, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        model = st.selectbox(
            "Model", MODELS, format_func=model_name, accept_new_options=True, key="new-model",
            **KEPT,
            help="Choose one, or type a name such as logistic-el-7 or logistic-el-mnn-12-6.",
        )  # fmt: skip
    with columns[1]:
        source = st.selectbox(
            "Data", [*DATASETS, FOLDER], key="new-data", **KEPT,
            format_func=lambda name: DATASETS[name].title if name in DATASETS else OWN_FOLDER,
        )  # fmt: skip
    with columns[2]:
        st.session_state.setdefault(f"new-epochs-{source}", EPOCHS.get(source, 5))
        epochs = st.number_input(
            "Epochs", 1, 10_000, key=f"new-epochs-{source}", **KEPT,
            help="Passes through the training images.",
        )  # fmt: skip
    dataset = pick_folder() if source == FOLDER else source
    with st.expander("More settings"):
        more = st.columns(4)
        rate = more[0].number_input(
            "Learning rate", 1e-6, 1e6, step=0.001, format="%g", key="new-rate", **KEPT,
            help="Maximum of the one-cycle schedule. The paper uses 0.002.",
        )  # fmt: skip
        batch = more[1].number_input(
            "Batch size", 1, 100_000, key="new-batch", **KEPT, help="Images per step."
        )
        seed = more[2].number_input(
            "Seed",
            0,
            2**31 - 1,
            key="new-seed",
            **KEPT,
            help="Runs with the same seed give the same result.",
        )
        device = more[3].selectbox(
            "Device", ["auto", "cpu", "cuda", "mps"], key="new-device", **KEPT
        )
        other = _others()
    try:
        config = RunConfig(
            model=model, dataset=dataset or FOLDER, epochs=epochs, learning_rate=rate,
            batch_size=batch, seed=seed, device=device, **other,
        )  # fmt: skip
        if not cluster().scheduler:
            pick_device(device)
    except (ValidationError, ValueError) as error:
        st.error(plain(explain(error) if isinstance(error, ValidationError) else str(error)))
        return
    if dataset is None or (is_folder(dataset) and not show_folder(dataset)):
        return
    bar = st.container(horizontal=True, vertical_alignment="center")
    if bar.button("Start training", type="primary"):
        with bar, st.spinner("Starting …"):
            started = start(config)
        if started:
            st.session_state.pop("new-other", None)
            st.rerun()
    _show_duration(bar, config)


def _show_duration(bar, config: RunConfig) -> None:
    if not is_available(config.dataset):
        source = DATASETS[config.dataset]
        bar.caption(f"{source.title} will be downloaded first ({source.download_size}).")
    elif cluster().scheduler:
        bar.caption("The training runs on the machines of the scheduler.")
    else:
        try:
            bar.caption(f"About {duration(estimate(config))} on this machine.")
        except (
            DataError,
            ValueError,
        ) as error:  # damaged data, or pictures too small for the model
            bar.caption(f"No time estimate: {plain(str(error))}")


def source_of(config: RunConfig) -> str:
    """The choice in the form for the data set of a config."""
    return FOLDER if is_folder(config.dataset) else config.dataset


def _others() -> dict:
    """Settings of a duplicated run that the form has no fields for; shown as a caption."""
    other = st.session_state.get("new-other", {})
    if other:
        text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in other.items())
        st.caption(f"Other settings of that run: {plain(text)}.")
    return other


def fill_in(config: RunConfig) -> None:
    """Fill in the form with the settings of a run."""
    fields = {
        "new-model": config.model, "new-data": source_of(config), **folder_fields(config.dataset),
        f"new-epochs-{source_of(config)}": config.epochs, "new-rate": config.learning_rate,
        "new-batch": config.batch_size, "new-seed": config.seed, "new-device": config.device,
    }  # fmt: skip
    named = {"model", "dataset", "epochs", "learning_rate", "batch_size", "seed", "device"}
    st.session_state.update(fields)
    st.session_state["new-other"] = config.model_dump(exclude=named, exclude_defaults=True)
