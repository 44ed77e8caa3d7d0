"""What is computed once for all visitors, as long as the cache has room for it."""

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from densembed.checkpoint import Checkpoint
from densembed.comparison import answers
from densembed.data import Dataset, as_input
from densembed.fields import View, view
from densembed.meaning import spread_of_fields

ATLAS_INPUTS = 100
"""Test images of a class over which its fields are averaged, as far as there are so many."""


def averaged_images(dataset: Dataset) -> str:
    """Over how many test images of each class fields are averaged: "100", or "21 to 52"."""
    counts = torch.bincount(dataset.test.labels, minlength=len(dataset.classes))
    low, high = (min(ATLAS_INPUTS, int(count)) for count in (counts.min(), counts.max()))
    return f"{low}" if low == high else f"{low} to {high}"


def seen_by(checkpoint: Checkpoint, pixels: Tensor) -> View:
    """Field and opinion of a checkpoint at all its snapshots, for one picture (C, H, W) uint8."""
    shape = tuple(pixels.shape)
    return _view(checkpoint.digest, pixels.numpy().tobytes(), shape, checkpoint)


@st.cache_data(max_entries=16, show_spinner=False)
def _view(digest: str, picture: bytes, shape: tuple, _checkpoint: Checkpoint) -> View:
    pixels = torch.frombuffer(bytearray(picture), dtype=torch.uint8).reshape(shape)
    return view(_checkpoint, pixels)


def answers_of(checkpoint: Checkpoint, dataset: Dataset, index: int) -> np.ndarray:
    """What a snapshot says of each test image."""
    return _answers(checkpoint.digest, _known_by(dataset), index, checkpoint, dataset)


def _known_by(dataset: Dataset) -> tuple:
    """What tells a data set apart: a folder's pictures change, and models order its classes."""
    return dataset.name, dataset.classes, len(dataset.test)


@st.cache_data(max_entries=64, show_spinner=False)
def _answers(
    digest: str, data: tuple, index: int, _checkpoint: Checkpoint, _dataset: Dataset
) -> np.ndarray:
    return answers(_checkpoint, _dataset.test.images, index)


def class_fields(
    checkpoint: Checkpoint, dataset: Dataset, index: int, label: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of a snapshot's field over test images of one class, which has some."""
    key = _known_by(dataset)
    return _class_fields(checkpoint.digest, key, index, label, checkpoint, dataset)


@st.cache_data(max_entries=400, show_spinner=False)
def _class_fields(
    digest: str, data: tuple, index: int, label: int, _checkpoint: Checkpoint, _dataset: Dataset
) -> tuple[np.ndarray, np.ndarray]:
    test = _dataset.test
    images = test.images[(test.labels == label).nonzero()[:ATLAS_INPUTS, 0]]
    return spread_of_fields(_checkpoint.model(index), as_input(images))
