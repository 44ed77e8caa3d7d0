"""What is computed once for all visitors, as long as the cache has room for it."""

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
"""Test images of a class over which its fields are averaged, as far as there are so many."""
kept = SizedCache(64 * 2**20)
"""All that the pages compute of checkpoints and pictures."""


def averaged_images(dataset: Dataset) -> str:
    """Over how many test images of each class fields are averaged: "100", or "21 to 52"."""
    counts = torch.bincount(dataset.test.labels)
    counts = counts[counts > 0].clamp(max=ATLAS_INPUTS)
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


def seen_by(checkpoint: Checkpoint, pixels: Tensor) -> View:
    """Field and opinion of a checkpoint at all its snapshots, for one picture (C, H, W) uint8."""
    key = "view", checkpoint.digest, tuple(pixels.shape), pixels.numpy().tobytes()
    return kept.get(key, lambda: view(checkpoint, pixels))


def answers_of(checkpoint: Checkpoint, dataset: Dataset, index: int) -> np.ndarray:
    """What a snapshot says of each test image."""
    key = "answers", checkpoint.digest, *_known_by(dataset), index
    return kept.get(key, lambda: predict(checkpoint, dataset.test.images, index))


def _known_by(dataset: Dataset) -> tuple:
    """What tells a data set apart: a folder's pictures change, and models order its classes."""
    return dataset.name, dataset.classes, len(dataset.test)


def class_fields(
    checkpoint: Checkpoint, dataset: Dataset, index: int, label: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of a snapshot's field over test images of one class, which has some."""
    key = "class fields", checkpoint.digest, *_known_by(dataset), index, label

    def make() -> tuple[np.ndarray, np.ndarray]:
        test = dataset.test
        images = test.images[(test.labels == label).nonzero()[:ATLAS_INPUTS, 0]]
        mean, deviation = field_statistics(checkpoint.model(index), as_input(images))
        return finite(mean), finite(deviation)

    return kept.get(key, make)
