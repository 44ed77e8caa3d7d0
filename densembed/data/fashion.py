"""Fashion-MNIST through torchvision: ten kinds of clothing, of MNIST's form and size."""

import contextlib
from pathlib import Path

import torch

from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.download import advice, download

TITLE = "Fashion-MNIST"
FILES = "the four unpacked files into FashionMNIST/raw"
DOWNLOAD = "some 30 MB"
RAW = Path("FashionMNIST/raw")
LOCK = "fashion-mnist.lock"
COUNTS = {"train": 60_000, "t10k": 10_000}
SIZES = {
    f"{part}-{kind}": head + count * each
    for part, count in COUNTS.items()
    for kind, head, each in (("images-idx3-ubyte", 16, 28 * 28), ("labels-idx1-ubyte", 8, 1))
}
"""Bytes of the unpacked files: one that was only half written is found. torchvision has checked
the sums of what it downloaded."""


def _intact(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == SIZES[path.name]


def available(data_dir: Path) -> bool:
    return all(_intact(data_dir / RAW / name) for name in SIZES)


def load(data_dir: Path) -> Dataset:
    """The 60,000 and 10,000 images, fetched once into FashionMNIST/raw of `data_dir`.

    Raises DataError where they cannot be had or are damaged.
    """
    from torchvision.datasets import FashionMNIST

    def fetch() -> None:
        for name in SIZES:  # torchvision takes a file that is there for a whole one
            if not _intact(data_dir / RAW / name):
                (data_dir / RAW / name).unlink(missing_ok=True)
        with contextlib.redirect_stdout(None):
            FashionMNIST(data_dir, download=True)

    if not available(data_dir):
        download(TITLE, data_dir / LOCK, fetch, FILES)

    def split(train: bool) -> Split:
        source = FashionMNIST(data_dir, train=train, download=False)
        return Split(source.data.unsqueeze(1), source.targets.to(torch.int64))

    try:
        parts = split(True), split(False)
    except Exception as error:  # a file of the right length with other bytes in it
        raise DataError(f"{TITLE} in {data_dir / RAW} is damaged. {advice(FILES)}") from error
    return Dataset("fashion-mnist", TITLE, tuple(FashionMNIST.classes), *parts)
