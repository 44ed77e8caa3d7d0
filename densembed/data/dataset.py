"""A data set is two pairs of tensors that stay on the device where they are used."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import torch
from torch import Tensor


class DataError(RuntimeError):
    """A data set that cannot be had; the message is one sentence for a person."""


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
    """Training and test images of one source, under the name that checkpoints keep."""

    name: str
    title: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    left_out: tuple[str, ...] = ()
    """Files of a folder that are no pictures, by their places in it."""
    notes: tuple[str, ...] = ()
    """What else a person should know of a folder, in sentences: what is not used, and why."""

    @cached_property
    def digest(self) -> str:
        """Tells classes, pictures, labels and their order apart from all others."""
        found = sha256(json.dumps([self.classes, self.input_shape, len(self.train)]).encode())
        for split in (self.train, self.test):
            for part in (split.images, split.labels):
                found.update(part.cpu().contiguous().numpy())
        return found.hexdigest()

    @property
    def input_shape(self) -> tuple[int, int, int]:
        return tuple(self.train.images.shape[1:])

    @property
    def tested(self) -> tuple[str, ...]:
        """The classes that have test images."""
        counts = self.test.labels.bincount(minlength=len(self.classes)).tolist()
        return tuple(name for name, count in zip(self.classes, counts, strict=True) if count)

    def in_order(self, classes: Sequence[str]) -> "Dataset | None":
        """The same images with the classes numbered in that order, None for other classes.

        A checkpoint numbers its classes as the data set did when it was trained.
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
    """uint8 pixels to the [0, 1] that every model takes; nothing else is done to them."""
    return images.to(dtype) / 255
