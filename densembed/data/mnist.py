"""MNIST, from files in the data folder or downloaded through torchvision."""

import hashlib
from pathlib import Path

import torch

from densembed.data import idx
from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.download import ELSEWHERE, check_places, locked, reading

TITLE = "MNIST"
RAW = Path("MNIST/raw")
LOCK = "mnist.lock"
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""SHA-256 of the unpacked files, which detects files that were only partly written."""
FILES = "the four unpacked files into MNIST/raw"


def available(data_dir: Path) -> bool:
    return all((data_dir / RAW / name).is_file() for name in SHA256)


def load(data_dir: Path) -> Dataset:
    """Load the 60,000 training and 10,000 test images.

    Args:
        data_dir: parent of the folder MNIST/raw, into which missing files are downloaded.

    Raises:
        DataError: files are damaged, or missing and cannot be downloaded.
    """
    from torchvision.datasets import MNIST

    raw = data_dir / RAW
    with reading(TITLE, raw):
        if not available(data_dir):
            _look_elsewhere(data_dir, raw)
            idx.fetch(TITLE, MNIST, data_dir, raw, LOCK, _intact, FILES)
        damaged = [name for name in SHA256 if not _intact(raw / name)]
        if damaged and (data_dir / LOCK).exists():
            # Another process may still be writing one of the files.
            damaged = _still_damaged(data_dir, raw, damaged)
    if damaged:
        raise DataError(
            f"{damaged[0]} in {raw} is damaged: delete it, so that it is downloaded again, or "
            f"replace it with an intact copy. {ELSEWHERE}"
        )

    def split(train: bool) -> Split:
        source = MNIST(data_dir, train=train, download=False)
        return Split(source.data.unsqueeze(1), source.targets.to(torch.int64))

    with reading(TITLE, raw):
        return Dataset("mnist", TITLE, tuple("0123456789"), split(True), split(False))


def _intact(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[path.name]


def _still_damaged(data_dir: Path, raw: Path, damaged: list[str]) -> list[str]:
    try:
        with locked(data_dir / LOCK, TITLE):
            return [name for name in damaged if not _intact(raw / name)]
    except OSError:  # a read-only folder, in which no process writes
        return damaged


def _look_elsewhere(data_dir: Path, raw: Path) -> None:
    places = (data_dir, data_dir / "raw", raw.parent, raw / "raw", data_dir / "MNIST/MNIST/raw")
    check_places(TITLE, raw, SHA256, places, _intact)
