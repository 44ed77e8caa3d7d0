"""Data sets in the file format of MNIST, through torchvision."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from densembed.data.dataset import Dataset, Split
from densembed.data.published import Archive, Published


class Idx(Published):
    """A data set of four files; `source` is the name of its class in torchvision."""

    source: str
    classes: Sequence[str]

    def __init__(self) -> None:
        self.manual = f"the four unpacked files into {self.folder}"

    @property
    def _source(self) -> Any:
        from torchvision import datasets

        return getattr(datasets, self.source)

    def archives(self) -> list[Archive]:
        return [
            Archive(
                self.folder / name,
                [name.removesuffix(".gz")],
                md5,
                [mirror + name for mirror in self._source.mirrors],
            )
            for name, md5 in self._source.resources
        ]

    def unpack(self, data: bytes, names: Iterable[str]) -> dict[str, bytes]:
        return dict.fromkeys(names, data)

    def read(self, data_dir: Path) -> Dataset:
        def split(train: bool) -> Split:
            source = self._source(data_dir, train=train, download=False)
            images, labels = source.data.unsqueeze(1), source.targets.to(torch.int64)
            if images.shape[1:] != (1, 28, 28) or len(images) != len(labels):
                raise ValueError("another shape")
            if labels.min() < 0 or labels.max() >= len(self.classes):
                raise ValueError("a label without a class")
            return Split(images, labels)

        try:
            return Dataset(self.name, self.title, tuple(self.classes), split(True), split(False))
        except (ValueError, TypeError, RuntimeError, AssertionError, LookupError) as error:
            # A file with the right length but the wrong content.
            raise self.damage(data_dir / self.folder) from error
