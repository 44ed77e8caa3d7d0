"""What is computed once for all visitors, as long as the cache has room for it."""

import numpy as np
from torch import Tensor

from densembed.checkpoint import Checkpoint
from densembed.comparison import answers
from densembed.data import Dataset, as_input
from densembed.fields import View, finite, view
from densembed.kept import Kept
from densembed.meaning import spread_of_fields

ATLAS_INPUTS = 100
kept = Kept(96 * 2**20)
"""All that the pages compute of checkpoints and pictures."""


def seen_by(checkpoint: Checkpoint, pixels: Tensor) -> View:
    """Field and opinion of a checkpoint at all its snapshots, for one picture (C, H, W) uint8."""
    key = "view", checkpoint.digest, tuple(pixels.shape), pixels.numpy().tobytes()
    return kept.get(key, lambda: view(checkpoint, pixels))


def answers_of(checkpoint: Checkpoint, dataset: Dataset, index: int) -> np.ndarray:
    """What a snapshot says of each test image."""
    key = "answers", checkpoint.digest, dataset.name, index
    return kept.get(key, lambda: answers(checkpoint, dataset.test.images, index))


def class_fields(
    checkpoint: Checkpoint, dataset: Dataset, index: int, label: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of a snapshot's field over test images of one class."""
    key = "class fields", checkpoint.digest, dataset.name, index, label

    def make() -> tuple[np.ndarray, np.ndarray]:
        test = dataset.test
        images = test.images[(test.labels == label).nonzero()[:ATLAS_INPUTS, 0]]
        mean, deviation = spread_of_fields(checkpoint.model(index), as_input(images))
        return finite(mean), finite(deviation)

    return kept.get(key, make)
