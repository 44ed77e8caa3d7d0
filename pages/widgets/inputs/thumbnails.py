"""A row of small test images of a class to choose from, which can be shuffled."""

import base64

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from densembed.data import Dataset
from densembed.data.codec import to_png
from densembed.figures.signals import signal_tile
from pages.widgets.common.callbacks import callback
from pages.widgets.common.component import component
from pages.widgets.common.parameter import Numbers, Parameter

COUNT = 16
SEEDS = 10**6
SHUFFLE = Parameter("shuffle", "Shuffle", Numbers(0, SEEDS), instead="the first examples")
_row = component("densembed/panels/thumbnails")


def row(dataset: Dataset, choices: Tensor, number: int, place) -> None:
    """Thumbnails of some of the test images `choices`; a click selects one as the example.

    Args:
        choices: indices into the test images, the first one being example 1.
        number: the example that is shown now.
        place: the container to draw in.
    """
    shown = _numbers(len(choices))
    images = dataset.test.images[choices[[each - 1 for each in shown]]]
    sprite = to_png(torch.cat(small_pictures(images), 2))
    url = "data:image/png;base64," + base64.b64encode(sprite).decode()
    with place:
        _row(
            data={
                "sprite": url,
                "numbers": shown,
                "chosen": number,
                "seeds": SEEDS,
                "ground": "var(--st-secondary-background-color)" if dataset.scaling else "#000",
            },
            key="thumbnails",
            on_pick_change=callback(_pick),
            on_shuffle_change=callback(_shuffle),
        )


def small_pictures(inputs: Tensor) -> list[Tensor]:
    """Images as they are; signals as small pictures of their step functions, on one scale."""
    if not inputs.is_floating_point():
        return list(inputs)
    low, high = (float(end) for end in inputs.aminmax()) if inputs.numel() else (0.0, 1.0)
    return [torch.from_numpy(signal_tile(each.numpy(), low, high)) for each in inputs]


def _numbers(count: int) -> list[int]:
    """Numbers of the thumbnails: the first examples until shuffled, here or in the link."""
    SHUFFLE.check()
    seed = st.session_state.setdefault("shuffled", SHUFFLE.value())
    SHUFFLE.write(seed)
    if seed is None:
        return list(range(1, min(count, COUNT) + 1))
    return (np.random.default_rng(seed).permutation(count)[:COUNT] + 1).tolist()


def _pick() -> None:
    number = st.session_state["thumbnails"].pick
    if number is not None:  # a later run does not have it any more
        st.session_state["example"] = number


def _shuffle() -> None:
    """Show other examples."""
    seed = st.session_state["thumbnails"].shuffle
    if seed is not None:
        st.session_state["shuffled"] = int(seed) % SEEDS
