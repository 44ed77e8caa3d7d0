"""Novelty detection: is an input unlike the training images?

A checkpoint has statistics of its training images (`training.novelty`). For older files, and those
of few images, an input is compared with the training images themselves if they are available: it
is novel if its angle to the nearest training image is larger than that of 97 % of the
training images to their nearest neighbours. Angles are between images that are blurred and halved
in size, so that brightness and shifts by a pixel matter little.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from torch import Tensor

from densembed.data import DataError, Dataset, is_available, load_dataset
from densembed.data.images import Content, ModelInput
from densembed.training.checkpoint import Checkpoint
from densembed.training.novelty import image_features, logits_of

REFERENCES = 5000
"""Number of training images to compare with. More take longer and change little."""
CALIBRATION = 1400
"""Number of these from which the limit is computed."""
QUANTILE = 0.97
CHUNK = 500
"""Inputs compared at once, which limits the memory."""


@dataclass(frozen=True)
class NoveltyDetector:
    """Features of the training images (N, features), of length 1, and the `limit` of 1 − cosine."""

    references: np.ndarray
    limit: float

    @classmethod
    def fit(cls, dataset: Dataset) -> "NoveltyDetector":
        references = image_features(dataset.train.images[:REFERENCES])
        alike = references[:CALIBRATION] @ references.T
        np.fill_diagonal(alike, -1)
        return cls(references, float(np.quantile(1 - alike.max(1), QUANTILE)))

    def distances(self, pixels: Tensor) -> np.ndarray:
        """1 − cosine of the angle between images (N, C, H, W) uint8 and their nearest reference."""
        parts = [image_features(part) @ self.references.T for part in pixels.split(CHUNK)]
        return 1 - np.concatenate([part.max(1) for part in parts])

    def is_novel(self, pixels: Tensor) -> np.ndarray:
        """Whether each image (N, C, H, W) uint8 is unlike the training images."""
        return self.distances(pixels) > self.limit


def unlike(dataset: Dataset, pixels: Tensor) -> np.ndarray:
    """Whether each image (N, C, H, W) uint8 is unlike the training images of a data set.

    All are False if there are too few training images, as then no image has a near neighbour.
    """
    if len(dataset.train) < REFERENCES:
        return np.zeros(len(pixels), bool)
    return detector(dataset).is_novel(pixels)


def unlike_training(
    image: ModelInput, checkpoint: Checkpoint, data_dir: str | Path | None = None
) -> bool | None:
    """Whether an image is unlike the training images of a model.

    None if this is unknown: the image is not of a single digit, or the checkpoint has no statistics
    and the training data are not available, have changed, or are too few.
    """
    if not image.clean:
        return True
    if checkpoint.novelty and image.content == Content.DIGIT:
        pixels = image.pixels[None]
        if tuple(pixels.shape[1:]) == checkpoint.header.input_shape:
            logits = logits_of(checkpoint.network(), pixels)
            return bool(checkpoint.novelty.is_novel(pixels, logits)[0])
    name = checkpoint.config.dataset
    if image.content != Content.DIGIT or not is_available(name, data_dir):
        return None
    try:
        dataset = load_dataset(name, data_dir)
    except DataError:
        return None
    header = checkpoint.header
    fits = dataset.input_shape == header.input_shape and dataset.in_order(header.classes)
    if not fits or len(dataset.train) < REFERENCES:
        return None
    return bool(unlike(dataset, image.pixels[None])[0])


@lru_cache(maxsize=4)
def detector(dataset: Dataset) -> NoveltyDetector:
    """The detector of a data set, fitted only once."""
    return NoveltyDetector.fit(dataset)
