"""Data sets as tensors.

A new one is a module with `TITLE`, `load(data_dir)` and `available(data_dir)`, and a line in
`DATASETS`.
"""

import os
from functools import lru_cache
from pathlib import Path

from densembed.data import digits, mnist
from densembed.data.dataset import DataError, Dataset, Split, as_input

__all__ = [
    "DATASETS",
    "DataError",
    "Dataset",
    "Split",
    "as_input",
    "default_data_dir",
    "is_available",
    "load_dataset",
]

DATASETS = {"digits": digits, "mnist": mnist}


def default_data_dir() -> Path:
    """`DENSEMBED_DATA` where it is set, else the user's cache directory."""
    if folder := os.environ.get("DENSEMBED_DATA"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "densembed"


def load_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """The data set of that name, kept in memory once it was read.

    Args:
        name: a key of `DATASETS`.
        data_dir: where its files are or go; `default_data_dir()` if None.
    Raises:
        DataError: an unknown name, or data that cannot be had.
    """
    if name not in DATASETS:
        raise DataError(f"Unknown data set {name!r}; the known ones are {', '.join(DATASETS)}.")
    return _load(name, Path(data_dir) if data_dir else default_data_dir())


def is_available(name: str) -> bool:
    """Whether a data set can be loaded without a network."""
    return name in DATASETS and DATASETS[name].available(default_data_dir())


@lru_cache(maxsize=4)
def _load(name: str, data_dir: Path) -> Dataset:
    return DATASETS[name].load(data_dir)
