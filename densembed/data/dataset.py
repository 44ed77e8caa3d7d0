"""Images and labels as tensors, which are moved to a device as a whole."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import torch
from torch import Tensor


class DataError(RuntimeError):
    """A data set that cannot be loaded. The message is one sentence for the user."""


@dataclass(frozen=True)
class Split:
    """Images (N, C, H, W) as uint8, labels (N,) as int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "Split":
        return Split(self.images.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Dataset:
    """Training and test images. Checkpoints record the `name`."""

    name: str
    title: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    left_out: tuple[str, ...] = ()
    """Paths of files that could not be decoded, relative to the folder of the data set."""
    notes: tuple[str, ...] = ()
    """Sentences about files and folders that are not used, with the reason."""

    @cached_property
    def digest(self) -> str:
        """Hash of the classes, images, labels and their order."""
        digest = sha256(json.dumps([self.classes, self.input_shape, len(self.train)]).encode())
        for split in (self.train, self.test):
            for part in (split.images, split.labels):
                digest.update(part.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def input_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def tested(self) -> tuple[str, ...]:
        """The classes that have test images."""
        counts = self.test.labels.bincount(minlength=len(self.classes)).tolist()
        return tuple(name for name, count in zip(self.classes, counts, strict=True) if count)

    def in_order(self, classes: Sequence[str]) -> "Dataset | None":
        """The same images with the classes in the given order, None if the classes differ.

        A checkpoint has the order of its training data, which an older version may have sorted
        in another way.
        """
        if tuple(classes) == self.classes:
            return self
        if sorted(classes) != sorted(self.classes):
            return None
        number = torch.tensor(
            [list(classes).index(name) for name in self.classes], device=self.train.labels.device
        )
        train, test = (
            replace(part, labels=number[part.labels]) for part in (self.train, self.test)
        )
        return replace(self, classes=tuple(classes), train=train, test=test)

    def to(self, device: torch.device | str) -> "Dataset":
        return replace(self, train=self.train.to(device), test=self.test.to(device))


def as_input(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Scale uint8 pixels to [0, 1], the only preprocessing of all models."""
    return images.to(dtype) / 255
