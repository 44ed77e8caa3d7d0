"""CIFAR-10 through torchvision: small colour photographs of ten classes."""

import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import Dataset, Split
from densembed.data.download import stoppable
from densembed.data.published import Archive, Published

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


class Cifar10(Published):
    """50,000 training and 10,000 test images, which are verified by the published checksums."""

    name, title, download_size = "cifar10", "CIFAR-10", "about 170 MB"
    folder = Path("cifar-10-batches-py")
    manual = f"the folder {folder}"
    unread = (
        *("cifar-10-binary.tar.gz", "cifar-10-matlab.tar.gz"),
        *("cifar-10-python.tar", "cifar-10-python.zip"),
        *("data_batch_1.bin", "data_batch_1.mat"),
    )

    def names(self) -> dict[str, str]:
        """The files with their published MD5, from torchvision."""
        from torchvision.datasets import CIFAR10

        listed = dict(CIFAR10.train_list + CIFAR10.test_list)
        return listed | {CIFAR10.meta["filename"]: CIFAR10.meta["md5"]}

    def is_right(self, name: str, data: bytes) -> bool:
        return hashlib.md5(data, usedforsecurity=False).hexdigest() == self.names()[name]

    def archives(self) -> list[Archive]:
        from torchvision.datasets import CIFAR10

        return [Archive(Path(CIFAR10.filename), self.names(), CIFAR10.tgz_md5, [CIFAR10.url])]

    def unpack(self, data: bytes, names: Iterable[str]) -> dict[str, bytes]:
        wanted = {f"{self.folder}/{name}": name for name in names}
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
            return {
                wanted[member.name]: data[member.offset_data : member.offset_data + member.size]
                for member in stoppable(files)
                if member.name in wanted
            }

    def read(self, data_dir: Path) -> Dataset:
        from torchvision.datasets import CIFAR10

        train, test = (
            Split(
                torch.from_numpy(np.ascontiguousarray(np.moveaxis(source.data, -1, 1))),
                torch.tensor(source.targets, dtype=torch.int64),
            )
            for source in (CIFAR10(data_dir, train=train) for train in (True, False))
        )
        return Dataset(self.name, self.title, CLASSES, train, test)


DATA = Cifar10()
