"""CIFAR-10 through torchvision: small colour photographs of ten kinds of things."""

import contextlib
from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.download import advice, download

TITLE = "CIFAR-10"
FILES = "the folder cifar-10-batches-py"
DOWNLOAD = "some 170 MB"
FOLDER = "cifar-10-batches-py"
LOCK = "cifar10.lock"
CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def available(data_dir: Path) -> bool:
    from torchvision.datasets import CIFAR10

    names = [name for name, _ in CIFAR10.train_list + CIFAR10.test_list]
    return all((data_dir / FOLDER / name).is_file() for name in names)


def load(data_dir: Path) -> Dataset:
    """The 50,000 and 10,000 images, fetched once into cifar-10-batches-py of `data_dir`.

    torchvision compares all files with their published sums before it reads one.
    Raises DataError where they cannot be had or are damaged.
    """
    from torchvision.datasets import CIFAR10

    def fetch() -> None:
        with contextlib.redirect_stdout(None):
            CIFAR10(data_dir, download=True)

    if not available(data_dir):
        download(TITLE, data_dir / LOCK, fetch, FILES)
    try:
        sources = [CIFAR10(data_dir, train=train) for train in (True, False)]
    except Exception as error:
        raise DataError(
            f"{TITLE} in {data_dir / FOLDER} is damaged: delete that folder, so that it can be "
            f"fetched anew. {advice(FILES)}"
        ) from error
    parts = [
        Split(
            torch.from_numpy(np.ascontiguousarray(np.moveaxis(source.data, -1, 1))),
            torch.tensor(source.targets, dtype=torch.int64),
        )
        for source in sources
    ]
    return Dataset("cifar10", TITLE, CLASSES, *parts)
