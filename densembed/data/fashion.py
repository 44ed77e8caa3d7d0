"""Fashion-MNIST through torchvision: ten kinds of clothing, in the file format of MNIST."""

import hashlib
from pathlib import Path

import torch

from densembed.data import idx, mnist
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
"""Bytes of the unpacked files, which detect files that were only partly written. The checksums
of the archives are verified before they are unpacked."""


MNIST_LABELS = mnist.SHA256["train-labels-idx1-ubyte"]


def _intact(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == SIZES[path.name]


def available(data_dir: Path) -> bool:
    return all(_intact(data_dir / RAW / name) for name in SIZES)


def load(data_dir: Path) -> Dataset:
    """Load the 60,000 training and 10,000 test images, downloaded once to FashionMNIST/raw.

    Raises:
        DataError: files are damaged, or missing and cannot be downloaded.
    """
    from torchvision.datasets import FashionMNIST

    raw = data_dir / RAW
    with reading(TITLE, raw):
        if not available(data_dir):
            # No other folders: files with these names and sizes could belong to MNIST.
            check_places(TITLE, raw, SIZES, (raw.parent, raw / "raw"))
            idx.fetch(TITLE, FashionMNIST, data_dir, raw, LOCK, _intact, FILES)

    def split(train: bool) -> Split:
        source = FashionMNIST(data_dir, train=train, download=False)
        return Split(source.data.unsqueeze(1), source.targets.to(torch.int64))

    labels = raw / "train-labels-idx1-ubyte"
    if hashlib.sha256(labels.read_bytes()).hexdigest() == MNIST_LABELS:
        raise DataError(
            f"The files in {raw} are those of MNIST: move them to MNIST/raw, so that {TITLE} can "
            "be downloaded."
        )
    try:
        with reading(TITLE, raw):
            parts = split(True), split(False)
    except (ValueError, TypeError, RuntimeError, AssertionError, LookupError) as error:
        if isinstance(error, DataError):
            raise
        # A file with the right length but the wrong content.
        raise DataError(
            f"{TITLE} in {raw} is damaged: delete that folder, so that it is downloaded again. "
            f"{ELSEWHERE}"
        ) from error
    return Dataset("fashion-mnist", TITLE, tuple(FashionMNIST.classes), *parts)
