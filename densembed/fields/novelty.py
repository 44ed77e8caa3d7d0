"""Whether an input is like what a model learned from.

The rule: an input is unlike the training images if its angle to the nearest of them is larger than
that of 97 in 100 of these images to their own nearest. Angles are between images that were blurred
and halved in size, so that neither brightness nor a pixel's shift counts for much.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import ndimage
from torch import Tensor

from densembed.data import DataError, Dataset, is_available, load_dataset
from densembed.data.images import Content, ModelInput
from densembed.training.checkpoint import Checkpoint

SIGMA = 1.0  # pixels of the blur
POOL = 2
REFERENCES = 5000
"""Training images that are looked at, from the first: more cost time and change little."""
JUDGED = 1400
"""Of these, how many tell what distance is usual."""
USUAL = 0.97
CHUNK = 500
"""Inputs compared at once: bounds the memory."""


@dataclass(frozen=True)
class Familiar:
    """`references` (N, features) of length one, and the usual `limit` of 1 − cosine."""

    references: np.ndarray
    limit: float

    @classmethod
    def of(cls, dataset: Dataset) -> "Familiar":
        references = _features(dataset.train.images[:REFERENCES])
        alike = references[:JUDGED] @ references.T
        np.fill_diagonal(alike, -1)
        return cls(references, float(np.quantile(1 - alike.max(1), USUAL)))

    def distances(self, pixels: Tensor) -> np.ndarray:
        """1 − cosine of the angle to the nearest training image, for (N, C, H, W) uint8."""
        parts = [_features(part) @ self.references.T for part in pixels.split(CHUNK)]
        return 1 - np.concatenate([part.max(1) for part in parts])

    def knows(self, pixels: Tensor) -> np.ndarray:
        """Whether each of (N, C, H, W) uint8 is like the training images."""
        return self.distances(pixels) <= self.limit


def unlike(dataset: Dataset, pixels: Tensor) -> np.ndarray:
    """Whether each of (N, C, H, W) uint8 is unlike a data set, as far as it can be told.

    None is where the training images are few: then even a like one has no near neighbour.
    """
    if len(dataset.train) < REFERENCES:
        return np.zeros(len(pixels), bool)
    return ~familiar(dataset).knows(pixels)


def unlike_training(
    picture: ModelInput, checkpoint: Checkpoint, data_dir: str | Path | None = None
) -> bool | None:
    """Whether a picture is unlike what a model learned from.

    None where that cannot be judged: no single digit was found, the data are not on this machine
    or no longer what they were, or the training images are too few.
    """
    if not picture.clean:
        return True
    name = checkpoint.config.dataset
    if picture.content != Content.DIGIT or not is_available(name, data_dir):
        return None
    try:
        dataset = load_dataset(name, data_dir)
    except DataError:
        return None
    fits = dataset.input_shape == checkpoint.header.input_shape
    if not fits or len(dataset.train) < REFERENCES:
        return None
    return bool(unlike(dataset, picture.pixels[None])[0])


@lru_cache(maxsize=4)
def familiar(dataset: Dataset) -> Familiar:
    """`Familiar.of`, computed once for each data set."""
    return Familiar.of(dataset)


def _features(pixels: Tensor) -> np.ndarray:
    images = pixels.numpy().astype(np.float32)
    images = ndimage.gaussian_filter(images, (0, 0, SIGMA, SIGMA))[:, :, ::POOL, ::POOL]
    features = images.reshape(len(images), -1)
    return features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-6)
