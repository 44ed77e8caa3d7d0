"""Statistics of the training images by which a checkpoint recognises inputs that are unlike them.

An input is unlike the training images if the model's largest logit is lower, or if the input's
distance to the nearest prototype of the predicted class is larger, than those of 98.8 % of training
images that the prototypes were not made from. The prototypes are the centres of clusters of each
class. Distances are 1 − cosine between images that are blurred and halved in size, so that
brightness and shifts by a pixel matter little. All of it takes some 15 kB in a file.

The largest logit is the score of Vaze et al. (2022, arXiv 2110.06207), Equation (2).
"""

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from scipy import ndimage
from torch import Tensor, nn

from densembed.data import Dataset, as_input

SIGMA = 1.0  # pixels of the blur
POOL = 2
PER_CLASS = 12
REFERENCES = 20_000
"""Number of training images that the prototypes are made from, at most."""
HELD_OUT = 5_000
"""Number of other training images from which the limits are computed."""
LEAST_IMAGES = 10_000
"""With fewer training images, no image has a near neighbour."""
QUANTILE = 0.988
CHUNK = 500
"""Images processed at once, which limits the memory."""

Limit = Annotated[float, Field(allow_inf_nan=False)]


class _Stored(BaseModel):
    """The JSON in a file."""

    model_config = ConfigDict(extra="forbid")
    prototypes: str = Field(max_length=2**20)
    shape: tuple[int, int, int]
    distance_limit: Limit
    logit_limit: Limit


@dataclass(frozen=True)
class Novelty:
    """What a checkpoint knows of its training images.

    Attributes:
        prototypes: uint8 (classes, prototypes, features).
        distance_limit: 1 − cosine to the nearest prototype of the predicted class.
        logit_limit: the largest logit.
    """

    prototypes: np.ndarray
    distance_limit: float
    logit_limit: float

    @classmethod
    def fit(cls, model: nn.Module, dataset: Dataset) -> "Novelty | None":
        """The statistics of a model and its data.

        None if there are too few images, or if logits overflow float32.
        """
        from sklearn.cluster import MiniBatchKMeans  # only this needs it, and importing takes long

        train = dataset.train
        if not has_enough_images(dataset):
            return None
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
        rest, held = order[HELD_OUT:][:REFERENCES], order[:HELD_OUT]
        logits = logits_of(model, train.images[held])
        if not np.isfinite(logits).all():
            return None
        features, labels = image_features(train.images[rest]), train.labels[rest].numpy()
        centres = np.zeros((len(dataset.classes), PER_CLASS, features.shape[1]))
        for label in np.unique(labels):
            own = features[labels == label]
            count = min(PER_CLASS, len(own))
            means = MiniBatchKMeans(count, random_state=0, n_init=1, batch_size=2048).fit(own)
            centres[label, :count] = means.cluster_centers_
        prototypes = np.rint(255 * np.clip(centres / centres.max(), 0, 1)).astype(np.uint8)
        unbounded = cls(prototypes, np.inf, -np.inf)
        distances = unbounded.distances(train.images[held], logits.argmax(1))
        return cls(
            prototypes,
            round(float(np.quantile(distances, QUANTILE)), 5),
            round(float(np.quantile(logits.max(1), 1 - QUANTILE)), 5),
        )

    @cached_property
    def _directions(self) -> np.ndarray:
        return _unit(self.prototypes.astype(np.float32))

    def distances(self, pixels: Tensor, classes: np.ndarray) -> np.ndarray:
        """1 − cosine to the nearest prototype of a class for each image.

        Args:
            pixels: uint8 (N, C, H, W).
            classes: an index for each image.
        """
        parts = []
        for start in range(0, len(pixels), CHUNK):
            features = image_features(pixels[start : start + CHUNK])
            own = self._directions[classes[start : start + CHUNK]]
            parts.append(1 - np.einsum("nf,npf->np", features, own).max(1))
        return np.concatenate(parts)

    def is_novel(self, pixels: Tensor, logits: np.ndarray) -> np.ndarray:
        """Whether each image is unlike the training images.

        Args:
            pixels: uint8 (N, C, H, W).
            logits: of the trained model for them, (N, classes).
        """
        far = self.distances(pixels, logits.argmax(1)) > self.distance_limit
        return far | (logits.max(1) < self.logit_limit)

    def to_json(self) -> str:
        packed = base64.b64encode(zlib.compress(self.prototypes.tobytes(), 9)).decode()
        return json.dumps(
            {
                "prototypes": packed,
                "shape": self.prototypes.shape,
                "distance_limit": self.distance_limit,
                "logit_limit": self.logit_limit,
            }
        )

    @classmethod
    def from_json(cls, text: str, classes: int, input_shape: tuple[int, ...]) -> "Novelty":
        """Raises ValueError if the text is not what `to_json` wrote for such a model."""
        stored = _Stored.model_validate_json(text)
        channels, height, width = input_shape
        features = channels * -(-height // POOL) * -(-width // POOL)
        if stored.shape != (classes, PER_CLASS, features):
            raise ValueError("the prototypes have another shape")
        size = classes * PER_CLASS * features
        try:
            values = zlib.decompressobj().decompress(base64.b64decode(stored.prototypes), size + 1)
        except zlib.error as error:
            raise ValueError("the prototypes are damaged") from error
        if len(values) != size:
            raise ValueError("the prototypes are damaged")
        prototypes = np.frombuffer(values, np.uint8).reshape(stored.shape)
        return cls(prototypes, stored.distance_limit, stored.logit_limit)


def has_enough_images(dataset: Dataset) -> bool:
    return len(dataset.train) >= LEAST_IMAGES


def image_features(pixels: Tensor) -> np.ndarray:
    """Blurred, halved images (N, C, H, W) uint8 as vectors of length 1, (N, features)."""
    images = pixels.numpy().astype(np.float32)
    images = ndimage.gaussian_filter(images, (0, 0, SIGMA, SIGMA))[:, :, ::POOL, ::POOL]
    return _unit(images.reshape(len(images), -1))


def logits_of(model: nn.Module, pixels: Tensor) -> np.ndarray:
    """Logits (N, classes) for images (N, C, H, W) uint8."""
    with torch.no_grad():
        return torch.cat([model(as_input(part)) for part in pixels.split(CHUNK)]).float().numpy()


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6)
