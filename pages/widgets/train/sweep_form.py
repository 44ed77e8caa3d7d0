"""The form of a new sweep: models, and values of other settings."""

from collections.abc import Callable

import streamlit as st

from densembed.data import DATASETS, is_available
from densembed.runs.sweep import Sweep
from densembed.runs.sweep_plan import FIXED, Plan, make_plan, read_values
from densembed.text import counted
from densembed.training.config import RunConfig
from pages.widgets.common.callbacks import callback, forget_press, pressed
from pages.widgets.common.link import plain
from pages.widgets.train.cluster import cluster, model_name, start_once
from pages.widgets.train.form import INCLUDED
from pages.widgets.train.pictures import KEPT, SIGNALS

MODELS = (
    "logistic-el-mnn-10-5",
    "logistic-el-mnn-8-4",
    "logistic-el-mnn-6-3",
    "logistic-el-15",
    "logistic-el-8",
    "logistic-el-5",
    "logistic-el-3",
    "linear",
    "mlp-50",
)
VARIED = [name for name in RunConfig.model_fields if name not in (*FIXED, "model", "dataset")]
SUGGESTED = {
    "learning_rate": "0.002, 0.01",
    "batch_size": "64, 128",
    "epochs": "10, 20",
    "grid": "data, 14",
    "density_rate": "1, 3",
    "location_start": "normal, grid",
    "scale_start": "-3, -2.3",
    "weight_decay": "0, 0.01",
}


def sweep_form() -> None:
    columns = st.columns([4, 2, 1, 1], vertical_alignment="bottom")
    models = columns[0].multiselect(
        "Models",
        MODELS,
        ["logistic-el-3", "logistic-el-5"],
        format_func=model_name,
        accept_new_options=True,
        key="sweep-models",
        **KEPT,
    )
    dataset = columns[1].selectbox(
        "Data",
        list(INCLUDED),
        format_func=INCLUDED.get,
        key="sweep-data",
        **KEPT,
        help=SIGNALS,
    )
    epochs = columns[2].number_input("Epochs", value=20, step=1, key="sweep-epochs", **KEPT)
    seeds = columns[3].number_input(
        "Seeds", value=3, step=1, key="sweep-seeds", **KEPT, help="Trainings per combination."
    )
    varied = st.multiselect(
        "Settings to vary",
        VARIED,
        ["learning_rate"],
        format_func=_words,
        key="sweep-varied",
        **KEPT,
    )
    texts = {}
    if varied:
        for name, column in zip(varied, st.columns(len(varied)), strict=True):
            texts[name] = column.text_input(
                _words(name).capitalize(),
                SUGGESTED.get(name, ""),
                key=f"sweep-{name}",
                **KEPT,
                help=f"{RunConfig.model_fields[name].description}: values, separated by commas",
            )
    if not models:
        st.caption("Choose at least one model.")
        return
    try:
        grid = {"model": models} | {name: read_values(_words(name), texts[name]) for name in texts}
        plan = make_plan({"dataset": dataset, "epochs": epochs, "seeds": seeds}, grid)
    except ValueError as error:
        st.error(plain(str(error)))
        return
    bar = st.container(horizontal=True, vertical_alignment="center")
    if pressed(bar, "Start sweep", "start-sweep", type="primary"):
        callback(_start, plan, anywhere=True)()
        st.rerun()
    count = len(plan.combinations()) * seeds
    bar.caption(f"{counted(count, 'training')}. Models of the same shape are trained together.")
    if not is_available(dataset):
        bar.caption(
            f"{DATASETS[dataset].title} will be downloaded first "
            f"({DATASETS[dataset].download_size})."
        )


def _start(plan: Plan) -> Callable[[], None] | None:
    """Queue a sweep; returns the action that shows it, or None if it was not possible."""
    forget_press()

    def make() -> dict[str, str]:
        sweep = Sweep.create(plan)
        sweep.submit(cluster())
        return {"sweep": sweep.identifier}

    return start_once(plan, make)


def _words(name: str) -> str:
    return name.replace("_", " ")
