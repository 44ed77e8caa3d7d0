"""A row of small test images of a class to choose from, which can be shuffled."""

import base64

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from densembed.data import Dataset
from densembed.data.codec import to_png
from pages.widgets.common.parameter import Numbers, Parameter

COUNT = 16
SEEDS = 10**6
SHUFFLE = Parameter("shuffle", "Shuffle", Numbers(0, SEEDS), instead="the first examples")
HTML = '<div class="row"></div>'
CSS = """
.row {display: flex; gap: 4px; overflow-x: auto; padding: 2px;}
@media (min-width: 700px) {.row {flex-wrap: wrap;}}
button {
  flex: none; width: 34px; height: 34px; padding: 0; border: 2px solid transparent;
  border-radius: 4px; cursor: pointer; background: #000; image-rendering: pixelated;
}
button[aria-pressed=true] {border-color: var(--st-primary-color);}
button:hover, button:focus-visible {outline: 2px solid var(--st-primary-color);}
.shuffle {
  width: auto; padding: 0 10px; color: var(--st-text-color); background: none;
  font: 14px var(--st-font, sans-serif); border: 1px solid var(--st-border-color, #8884);
}
"""
JS = """
export default function({ parentElement, data, setTriggerValue }) {
  const row = parentElement.querySelector(".row");
  const made = data.numbers.map((number, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.ariaLabel = button.title = `Example ${number}`;
    button.ariaPressed = number === data.chosen;
    button.style.background = `url(${data.sprite}) ${-30 * k}px 0 / ${30 * data.numbers.length}px
      padding-box #000`;
    button.onclick = () => setTriggerValue("pick", number);
    return button;
  });
  const shuffle = document.createElement("button");
  shuffle.type = "button";
  shuffle.className = "shuffle";
  shuffle.textContent = "Shuffle";
  shuffle.onclick = () => setTriggerValue("shuffle", Math.floor(data.seeds * Math.random()));
  const had = [...row.children].indexOf(row.getRootNode().activeElement);
  row.replaceChildren(...made, shuffle);
  row.children[had]?.focus();
}
"""
_row = st.components.v2.component("thumbnails", html=HTML, css=CSS, js=JS)


def row(dataset: Dataset, choices: Tensor, number: int, place) -> None:
    """Thumbnails of some of the test images `choices`; a click selects one as the example.

    Args:
        choices: indices into the test images, the first one being example 1.
        number: the example that is shown now.
        place: the container to draw in.
    """
    shown = _numbers(len(choices))
    images = dataset.test.images[choices[[each - 1 for each in shown]]]
    sprite = to_png(torch.cat(list(images), 2))
    url = "data:image/png;base64," + base64.b64encode(sprite).decode()
    with place:
        _row(
            data={"sprite": url, "numbers": shown, "chosen": number, "seeds": SEEDS},
            key="thumbnails",
            on_pick_change=_pick, on_shuffle_change=_shuffle,
        )  # fmt: skip


def _numbers(count: int) -> list[int]:
    """Numbers of the thumbnails: the first examples until shuffled, here or in the link."""
    SHUFFLE.check()
    seed = st.session_state.setdefault("shuffled", SHUFFLE.value())
    SHUFFLE.write(seed)
    if seed is None:
        return list(range(1, min(count, COUNT) + 1))
    return (np.random.default_rng(seed).permutation(count)[:COUNT] + 1).tolist()


def _pick() -> None:
    st.session_state["example"] = st.session_state["thumbnails"].pick


def _shuffle() -> None:
    """Show other examples."""
    st.session_state["shuffled"] = int(st.session_state["thumbnails"].shuffle) % SEEDS
