"""Compare's second look: both models in a table, and the inputs on which they disagree."""

from html import escape

import numpy as np
import streamlit as st

from densembed.checkpoint import Checkpoint
from densembed.comparison import answers, disagreement, facts
from densembed.data import Dataset
from densembed.data.compact import to_png
from pages.widgets.inputs import test_images
from pages.widgets.models import mark

TABLE, DISAGREE = "Model and recipe", "Where they disagree"
THUMBNAILS = 12
STYLE = """
<style>
.facts {border-collapse: collapse; width: 100%; font-size: 0.95rem;}
.facts th {text-align: left; font-weight: 400; opacity: 0.7;}
.facts thead th {font-weight: 600; opacity: 1;}
.facts th, .facts td {padding: 5px 12px 5px 6px; border-bottom: 1px solid #8883;}
.facts tr.differs td {font-weight: 600;}
.facts tr.differs th::before {content: "≠ "; color: #d1892b; font-weight: 600;}
</style>
"""


def table(first: Checkpoint, second: Checkpoint) -> None:
    """What both models are; what differs is marked."""
    one, two = facts(first), facts(second)
    rows = "".join(
        f'<tr class="{"differs" if one[name] != two[name] else ""}"><th scope="row">{escape(name)}'
        f"</th><td>{escape(one[name])}</td><td>{escape(two[name])}</td></tr>"
        for name in one
    )
    st.html(
        f'{STYLE}<table class="facts"><thead><tr><th></th><th>first</th><th>second</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )
    st.caption("≠ marks what differs. Test error: mean ± standard deviation of the members.")


def disagree(first: Checkpoint, second: Checkpoint, indices: list[int]) -> None:
    """Counts, McNemar's test, and the inputs that only one of them gets right."""
    dataset = test_images(first)
    if dataset is None or list(dataset.classes) != first.header.classes:
        st.info("No test images of these models' classes are here, so there is nothing to ask.")
        return
    if first.header.classes != second.header.classes:
        st.info("These two models know different classes: their answers cannot be compared.")
        return
    with st.spinner(f"Both read {len(dataset.test):,} test images …"):
        said = [
            _answers(mark(checkpoint), dataset.name, index, checkpoint, dataset)
            for checkpoint, index in zip((first, second), indices, strict=True)
        ]
    found = disagreement(*said, dataset.test.labels.numpy())
    one, two = len(found.first_only), len(found.second_only)
    verdict = (
        "they differ by more than chance explains"
        if found.p < 0.05
        else "chance alone explains this difference"
    )
    p = f"p = {found.p:.2g}" if found.p >= 0.0001 else "p < 0.0001"
    st.markdown(
        f"Of {len(dataset.test):,} test images of {dataset.title}, **{one:,}** only the first gets "
        f"right and **{two:,}** only the second; {found.both:,} both and {found.neither:,} neither."
        f" McNemar's exact test: {p}, so {verdict}."
    )
    if one + two:
        st.caption("The first of them: true class, what each says. Open one to see both fields.")
    kinds = (("only the first is right", found.first_only), ("only the second", found.second_only))
    for column, (name, which) in zip(st.columns(2, gap="medium"), kinds, strict=True):
        with column:
            _thumbnails(name, which, said, dataset)


def _thumbnails(name: str, which: np.ndarray, said: list[np.ndarray], dataset: Dataset) -> None:
    st.markdown(f"**{name}**, {len(which):,}")
    labels = dataset.test.labels
    with st.container(horizontal=True, gap="small"):
        for index in map(int, which[:THUMBNAILS]):
            true, one, two = (dataset.classes[k[index]] for k in (labels, *said))
            with st.container(width=84, gap="xxsmall"):
                st.image(to_png(dataset.test.images[index]), width=72)
                st.button(
                    f"{true}: {one}, {two}", key=f"open-{index}", type="tertiary",
                    on_click=_open, args=(dataset, index),
                    help=f"It is {true}; the first says {one}, the second {two}.",
                )  # fmt: skip


def _open(dataset: Dataset, index: int) -> None:
    """Make a test image the page's input."""
    label = dataset.test.labels[index]
    same = (dataset.test.labels == label).nonzero()[:, 0].tolist()
    st.session_state["from"] = "Samples"
    st.session_state["class"] = dataset.classes[label]
    st.session_state["example"] = same.index(index) + 1


@st.cache_data(max_entries=64, show_spinner=False)
def _answers(
    kept: str, data: str, index: int, _checkpoint: Checkpoint, _dataset: Dataset
) -> np.ndarray:
    return answers(_checkpoint, _dataset.test.images, index)
