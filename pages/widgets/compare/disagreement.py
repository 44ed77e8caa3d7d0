"""Confusion matrices, and the inputs that only one of two models classifies correctly."""

import base64

import numpy as np
import streamlit as st

from densembed.data import Dataset, noun
from densembed.data.codec import to_png
from densembed.fields.agreement import confusion_matrix, disagreement, verdict
from densembed.figures.confusion import confusion_difference_figure, confusion_figure
from densembed.text import counted
from densembed.training.header import Header
from densembed.web.site import INPUT
from pages.widgets.common.cache import predictions_of
from pages.widgets.common.callbacks import callback
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART, panel
from pages.widgets.common.parameter import Numbers, Parameter, Slugs
from pages.widgets.compare.models import BESIDE, TYPICAL, ComparedModel
from pages.widgets.inputs.test_images import test_images
from pages.widgets.inputs.thumbnails import small_pictures
from pages.widgets.live.live import follow_link

THUMBNAILS = 12
STYLE = """
<style>
.st-key-disagreements button {padding: 2px; min-height: 0;}
.st-key-disagreements button p {display: flex; flex-direction: column; align-items: center;}
.st-key-disagreements button img {
  width: 64px !important; height: 64px !important; max-height: none !important;
  max-width: none !important; object-fit: fill; margin: 0;
  image-rendering: pixelated; border-radius: 4px;
}
</style>
"""


def _predict(
    compared: list[ComparedModel], chosen: list[int]
) -> tuple[Dataset, dict[str, np.ndarray]] | None:
    """The first model's test images, and the predictions of the models that can read them."""
    dataset = test_images(compared[0].checkpoint)
    if dataset is None or list(dataset.classes) != compared[0].checkpoint.header.classes:
        st.info(
            f"No test {_nouns(compared[0].checkpoint.header)} of the first model's classes are "
            "available, so there is nothing to predict."
        )
        return None
    able, others = [], []
    for entry, index in zip(compared, chosen, strict=True):
        header = entry.checkpoint.header
        same = header.input_shape == dataset.input_shape
        same = same and sorted(header.classes) == sorted(dataset.classes)
        (able if same else others).append((entry, index))
    for entry, _ in others:
        own = _nouns(entry.checkpoint.header)
        differs = (
            f"takes other {own} or has other classes than the first"
            if own == f"{dataset.noun}s"
            else f"takes {own}, the first takes {dataset.noun}s"
        )
        st.info(f"The {entry.name} model {differs}, so its predictions cannot be compared.")
    for entry, _ in able:
        own = entry.checkpoint.header.provenance
        if own.dataset_title == dataset.title and own.test_images != len(dataset.test):
            st.info(
                f"The error of the {entry.name} model is that of "
                f"{counted(own.test_images, f'test {dataset.noun}')}: its data have changed since."
            )
    if any(entry.checkpoint.members > 1 for entry, _ in able):
        st.caption(TYPICAL)
    with st.spinner(f"Predicting {len(dataset.test):,} test {dataset.noun}s …"):
        predictions = {entry.name: _answers(entry, dataset, index) for entry, index in able}
    return dataset, predictions


def _answers(entry: ComparedModel, dataset: Dataset, index: int) -> np.ndarray:
    """Predictions for all test inputs, as indices into the classes of the data set."""
    header = entry.checkpoint.header
    number = [dataset.classes.index(name) for name in header.classes]
    scaled = dataset.scaled_by(header.scaling)
    return np.array(number)[predictions_of(entry.checkpoint, scaled, index)]


def _nouns(header: Header) -> str:
    """What the inputs of a model are called in sentences."""
    return f"{noun(header.input_shape)}s"


def _tested(dataset: Dataset) -> str:
    return f"{counted(len(dataset.test), f'test {dataset.noun}')} of {plain(dataset.title)}"


def confused(compared: list[ComparedModel], chosen: list[int]) -> None:
    """A confusion matrix per model on one scale, and the differences from the first."""
    if not (result := _predict(compared, chosen)):
        return
    dataset, predictions = result
    labels, classes = dataset.test.labels.numpy(), dataset.classes
    counts = {
        name: confusion_matrix(answers, labels, len(classes))
        for name, answers in predictions.items()
    }
    mistakes = [count - np.diag(np.diag(count)) for count in counts.values()]
    top = float(max(count.max() for count in mistakes)) or 1.0
    names = {entry.name: entry.model for entry in compared}
    for column, (name, count) in zip(st.columns(len(counts)), counts.items(), strict=True):
        with column:
            panel(names[name], f"{name}: {counted(count.sum() - np.trace(count), 'mistake')}")
            st.plotly_chart(
                confusion_figure(count, classes, top),
                key=f"{name}-confusion",
                config=CHART,
                alt=f"Confusion matrix of the {name} model",
            )
    for column, (name, count) in zip(st.columns(len(counts)), counts.items(), strict=True):
        with column:
            if name == "first":
                st.caption(
                    "Rows are the true class, columns the predicted class of "
                    f"{_tested(dataset)}. The diagonal holds the correct answers, without colour. "
                    "All matrices share one scale."
                )
                continue
            panel(f"{name} − first", f"red: the {name} model makes this mistake more often")
            st.plotly_chart(
                confusion_difference_figure(count - counts["first"], classes, top),
                key=f"{name}-confusion-change",
                config=CHART,
                alt=f"Confusion matrix of the {name} model minus that of the first",
            )


def disagree(compared: list[ComparedModel], chosen: list[int]) -> None:
    """Counts, McNemar's test, and the inputs that only one of two models predicts correctly."""
    if not (result := _predict(compared, chosen)):
        return
    dataset, predictions = result
    others = [name for name in predictions if name != "first"]
    if not others:
        return
    other = others[0]
    if len(others) > 1:
        other = Parameter("beside", BESIDE, Slugs(others), other).draw(
            st.segmented_control, required=True
        )
    pair = {"first": predictions["first"], other: predictions[other]}
    labels = dataset.test.labels.numpy()
    counts = disagreement(*pair.values(), labels)
    one, two = len(counts.first_only), len(counts.second_only)
    st.markdown(
        f"{_tested(dataset)}: **{one:,}** {'is' if one == 1 else 'are'} "
        f"predicted correctly only by the first model and **{two:,}** only by the {other}, "
        f"{counts.both:,} by both and {counts.neither:,} by neither. {verdict(counts)}"
    )
    if one + two:
        st.caption(
            f"Answer of the first model | answer of the {other}. Click one to make it the input."
        )
    begin = THUMBNAILS * (_page(max(one, two)) - 1)
    st.html(STYLE)
    kinds = (
        ("only the first is right", counts.first_only),
        (f"only the {other} is right", counts.second_only),
    )
    with st.container(key="disagreements"):
        for column, (title, which) in zip(st.columns(2, gap="medium"), kinds, strict=True):
            with column:
                st.markdown(f"**{title}**, {len(which):,}")
                _thumbnails(which[begin : begin + THUMBNAILS], pair, dataset)


def _page(most: int) -> int:
    """The page of pictures that is shown, from 1; a widget if there are several."""
    pages = max(1, -(-most // THUMBNAILS))
    return Parameter("handful", "Page", Numbers(1, pages), 1).draw(
        st.number_input, text=f"Page (1 to {pages:,})", width=150, persist_state="session"
    )


def _thumbnails(which: np.ndarray, pair: dict[str, np.ndarray], dataset: Dataset) -> None:
    tiles = small_pictures(dataset.test.images[which])
    with st.container(horizontal=True, gap="small"):
        for index, tile in zip(map(int, which), tiles, strict=True):
            true = plain(dataset.classes[dataset.test.labels[index]])
            one, two = (plain(dataset.classes[answers[index]]) for answers in pair.values())
            picture = base64.b64encode(to_png(tile)).decode()
            words = "; ".join(
                f"the {name} model predicts {plain(dataset.classes[answers[index]])}"
                for name, answers in pair.items()
            )
            st.button(
                f"![a {true}](data:image/png;base64,{picture}) {one} | {two}",
                key=f"open-{index}",
                type="tertiary",
                on_click=callback(_open, dataset, index),
                help=f"True class {true}; {words}.",
            )


def _open(dataset: Dataset, index: int) -> None:
    """Make a test image the page's input."""
    label = dataset.test.labels[index]
    same = (dataset.test.labels == label).nonzero()[:, 0].tolist()
    example = str(same.index(index) + 1)
    shown = {"class": dataset.classes[label], "example": example}
    follow_link(lambda link: {k: v for k, v in link.items() if k not in INPUT} | shown)
