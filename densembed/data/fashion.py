"""Fashion-MNIST through torchvision: ten kinds of clothing, of MNIST's form and size."""

from pathlib import Path

import torch

from densembed.data import idx
from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.download import ELSEWHERE, check_places, reading

TITLE = "Fashion-MNIST"
FILES = "the four unpacked files into FashionMNIST/raw"
RAW = Path("FashionMNIST/raw")
LOCK = "fashion-mnist.lock"
COUNTS = {"train": 60_000, "t10k": 10_000}
SIZES = {
    f"{part}-{kind}": head + count * each
    for part, count in COUNTS.items()
    for kind, head, each in (("images-idx3-ubyte", 16, 28 * 28), ("labels-idx1-ubyte", 8, 1))
}
"""Bytes of the unpacked files: one that was only half written is found. The sums of
what is downloaded are checked before it is unpacked."""


def _intact(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == SIZES[path.name]


def available(data_dir: Path) -> bool:
    return all(_intact(data_dir / RAW / name) for name in SIZES)


def load(data_dir: Path) -> Dataset:
    """The 60,000 and 10,000 images, fetched once into FashionMNIST/raw of `data_dir`.

    Raises DataError where they cannot be had or are damaged.
    """
    from torchvision.datasets import FashionMNIST

    raw = data_dir / RAW
    with reading(TITLE, raw):
        if not available(data_dir):
            # Nowhere else: by their names and sizes, files there may be MNIST's.
            check_places(TITLE, raw, SIZES, (raw.parent, raw / "raw"))
            idx.fetch(TITLE, FashionMNIST, data_dir, raw, LOCK, _intact, FILES)

    def split(train: bool) -> Split:
        source = FashionMNIST(data_dir, train=train, download=False)
        return Split(source.data.unsqueeze(1), source.targets.to(torch.int64))

    try:
        with reading(TITLE, raw):
            parts = split(True), split(False)
    except (ValueError, TypeError, RuntimeError, AssertionError, LookupError) as error:
        if isinstance(error, DataError):
            raise
        # A file of the right length with other bytes in it.
        raise DataError(
            f"{TITLE} in {raw} is damaged: delete that folder, so that it is downloaded again. "
            f"{ELSEWHERE}"
        ) from error
    return Dataset("fashion-mnist", TITLE, tuple(FashionMNIST.classes), *parts)
