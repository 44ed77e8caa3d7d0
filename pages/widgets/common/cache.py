"""Cached results of checkpoints, shared by all visitors."""

import numpy as np
from torch import Tensor

from densembed.cache import SizedCache
from densembed.data import Dataset
from densembed.fields.agreement import predict
from densembed.fields.field import View, view
from densembed.training.checkpoint import Checkpoint

kept = SizedCache(64 * 2**20)
"""The cache of all pages."""


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
