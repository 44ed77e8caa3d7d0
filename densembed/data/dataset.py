"""Images or signals and their labels as tensors, which are moved to a device as a whole."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b, sha256

import torch
from torch import Tensor

from densembed.data.names import DataError
from densembed.data.scaling import LARGEST, Scaling
from densembed.text import counted


@dataclass(frozen=True)
class Split:
    """Inputs and labels (N,) as int64.

    `images` are images (N, C, H, W) as uint8, or signals (N, C, L) as float32 after the scaling of
    their data set. Raises ValueError unless there is one label per input, and TypeError for arrays
    of NumPy or lists, which `torch.as_tensor` converts.

    >>> len(Split(torch.zeros(20, 1, 28, 28, dtype=torch.uint8), torch.arange(20)))
    20
    """

    images: Tensor
    labels: Tensor

    def __post_init__(self):
        for name, values, wanted in (
            ("images", self.images, "(N, C, H, W) of torch.uint8, or (N, C, L) of torch.float32"),
            ("labels", self.labels, "(N,) of torch.int64"),
        ):
            if not isinstance(values, Tensor):
                raise TypeError(
                    f"Expected {name} as a torch.Tensor {wanted}; got {type(values).__name__}. "
                    f"torch.as_tensor({name}) converts an array."
                )
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"Expected one label per input as int64, {tuple(self.images.shape[:1])}; got "
                f"{tuple(self.labels.shape)} of {self.labels.dtype}."
                + (" labels.long() converts them." if self.labels.dtype != torch.int64 else "")
            )

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "Split":
        return Split(self.images.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Dataset:
    """Training and test images or signals. Checkpoints record the `name`.

    Raises ValueError if the classes, the inputs and the labels do not fit each other, and TypeError
    if a part is not a `Split`.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    left_out: tuple[str, ...] = ()
    """Paths of files that are no images, relative to the folder of the data set."""
    notes: tuple[str, ...] = ()
    """Sentences about files and folders that are not used, with the reason."""
    scaling: Scaling | None = None
    """How the values of signals became the inputs; None for images."""

    def __post_init__(self):
        count = len(self.classes)
        if len(set(self.classes)) < count or not all(isinstance(c, str) for c in self.classes):
            raise ValueError(f"Expected classes of different names; got {self.classes}.")
        if blank := [name for name in self.classes if not name.strip()]:
            raise ValueError(f"Expected a name for each class; got {blank[0]!r}.")
        for name, split in (("training", self.train), ("test", self.test)):
            if not isinstance(split, Split):
                raise TypeError(
                    f"Expected the {name} part as Split(images, labels), with tensors; got "
                    f"{type(split).__name__}."
                )
            if not len(split):
                raise ValueError(f"Expected {name} inputs; got none.")
            low, high = split.labels.aminmax()
            if not low.is_meta and (low < 0 or high >= count):
                raise ValueError(
                    f"Expected {name} labels from 0 to {count - 1:,}, the indices of the classes; "
                    f"got {low} to {high}."
                )
            if split.images.dim() == 4 and split.images.dtype != torch.uint8:
                raise ValueError(
                    f"Expected {name} images as uint8 from 0 to 255; got {split.images.dtype}."
                )
        shape, other = self.input_shape, tuple(self.test.images.shape[1:])
        if shape != other or len(shape) not in (2, 3):
            raise ValueError(
                "Expected training and test images (N, C, H, W), or signals (N, C, L), of one "
                f"size; got {tuple(self.train.images.shape)} and {tuple(self.test.images.shape)}."
            )
        if len(shape) == 2:
            self._check_signals()

    def _check_signals(self) -> None:
        if self.train.images.dtype == torch.uint8:
            raise ValueError(
                "Expected images (N, C, H, W) with an axis of channels; got "
                f"{tuple(self.train.images.shape)} of torch.uint8. images[:, None] adds one."
            )
        if self.scaling is None:
            raise ValueError(
                "Expected a scaling for signals, which says how measured values became the "
                "inputs; got None."
            )
        for name, images in (("training", self.train.images), ("test", self.test.images)):
            if images.dtype != torch.float32:
                raise ValueError(f"Expected {name} signals as float32; got {images.dtype}.")
            finite = images.isfinite().flatten(1).all(1)
            if not images.is_meta and not finite.all():
                raise ValueError(
                    f"Expected {name} signals of finite values; signal {int(finite.int().argmin())}"
                    " has others."
                )

    @cached_property
    def digest(self) -> str:
        """Hash of the classes, inputs, labels and their order."""
        digest = sha256(json.dumps([self.classes, self.input_shape, len(self.train)]).encode())
        for split in (self.train, self.test):
            for part in (split.images, split.labels):
                digest.update(part.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(channels, height, width) of images, (channels, length) of signals."""
        return tuple(self.train.images.shape[1:])

    @property
    def noun(self) -> str:
        """What an input is called in sentences."""
        return noun(self.input_shape)

    @property
    def tested(self) -> tuple[str, ...]:
        """The classes that have test images."""
        counts = self.test.labels.bincount(minlength=len(self.classes)).tolist()
        return tuple(name for name, count in zip(self.classes, counts, strict=True) if count)

    def in_order(self, classes: Sequence[str]) -> "Dataset | None":
        """The same inputs with the classes in the given order, None if the classes differ.

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

    def scaled_by(self, scaling: Scaling | None) -> "Dataset":
        """The same signals with the scaling of a checkpoint in place of their own.

        Raises DataError for values that are too large in it.
        """
        if scaling is None or self.scaling is None or scaling == self.scaling:
            return self
        own = self.scaling
        train, test = (
            replace(part, images=scaling(own.measured(part.images.double())).float())
            for part in (self.train, self.test)
        )
        if not all((part.images.abs() <= LARGEST).all() for part in (train, test)):
            raise DataError(
                f"{self.title} has values that are too large, compared with the training signals "
                "of the model: check their unit."
            )
        return replace(self, train=train, test=test, scaling=scaling)

    def to(self, device: torch.device | str) -> "Dataset":
        return replace(self, train=self.train.to(device), test=self.test.to(device))


def known_notes(train: Tensor, test: Tensor) -> list[str]:
    """A sentence about test inputs that are equal to a training input, if there are any."""

    def digests(inputs: Tensor) -> list[bytes]:
        return [blake2b(one.tobytes(), digest_size=16).digest() for one in inputs.numpy()]

    trained = set(digests(train))
    if not (known := sum(one in trained for one in digests(test))):
        return []
    what = noun(test.shape[1:])
    return [
        f"Of {counted(len(test), f'test {what}')}, {known:,} {'are' if known > 1 else 'is'} the "
        f"same as a training {what}: the test error is not one of new {what}s alone."
    ]


def full_scale(values: Tensor) -> int:
    """The value that becomes 1 in an input: 255 for pixels; signals are scaled already.

    Raises ValueError for values that are neither uint8 pixels nor floating-point numbers.
    """
    if values.dtype.is_floating_point:
        return 1
    if values.dtype != torch.uint8:
        raise ValueError(
            f"Expected pixels in torch.uint8, or floating-point values; got {values.dtype}."
        )
    return 255


def as_input(values: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Scale uint8 pixels to [0, 1], the only preprocessing of all models.

    Floating-point values stay as they are. Raises ValueError for other types.
    """
    return values.to(dtype) / full_scale(values)


def noun(input_shape: Sequence[int]) -> str:
    """What an input of that shape is called in sentences."""
    return "image" if len(input_shape) == 3 else "signal"
