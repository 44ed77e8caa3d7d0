"""Cached results of checkpoints, shared by all visitors."""

import numpy as np
import torch
from torch import Tensor

from densembed.cache import SizedCache
from densembed.data import Dataset, as_input
from densembed.fields.agreement import predict
from densembed.fields.field import View, finite, view
from densembed.fields.measures import field_statistics
from densembed.training.checkpoint import Checkpoint

ATLAS_INPUTS = 100
"""Maximum number of test images per class over which fields are averaged."""
kept = SizedCache(64 * 2**20)
"""The cache of all pages."""


def averaged_images(dataset: Dataset) -> str:
    """The number of test images per class over which fields are averaged: "100", or "21 to 52"."""
    counts = torch.bincount(dataset.test.labels)
    counts = counts[counts > 0].clamp(max=ATLAS_INPUTS)
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


def response_of(checkpoint: Checkpoint, pixels: Tensor) -> View:
    """Fields and predictions of all snapshots of a checkpoint for a picture (C, H, W) uint8."""
    key = "view", checkpoint.digest, tuple(pixels.shape), pixels.numpy().tobytes()
    return kept.get(key, lambda: view(checkpoint, pixels))


def predictions_of(checkpoint: Checkpoint, dataset: Dataset, index: int) -> np.ndarray:
    """The predictions of a snapshot for all test images."""
    key = "answers", checkpoint.digest, *_identity(dataset), index
    return kept.get(key, lambda: predict(checkpoint, dataset.test.images, index))


def _identity(dataset: Dataset) -> tuple:
    """The identity of a data set: the pictures of a folder may change, and classes be reordered."""
    return dataset.name, dataset.classes, len(dataset.test)


def class_fields(
    checkpoint: Checkpoint, dataset: Dataset, index: int, label: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of a snapshot's field over test images of a class, which has some."""
    key = "class fields", checkpoint.digest, *_identity(dataset), index, label

    def make() -> tuple[np.ndarray, np.ndarray]:
        test = dataset.test
        images = test.images[(test.labels == label).nonzero()[:ATLAS_INPUTS, 0]]
        mean, deviation = field_statistics(checkpoint.model(index), as_input(images))
        return finite(mean), finite(deviation)

    return kept.get(key, make)
