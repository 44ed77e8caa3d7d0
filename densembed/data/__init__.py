"""Data sets as tensors.

A new one is a module with `TITLE`, `load(data_dir)` and `available(data_dir)` (and `DOWNLOAD`, how
much that is, where it is fetched), and a line in `DATASETS`. Beside those any folder of pictures
is one, as `folder:PATH`: see `densembed.data.folder`.
"""

import os
import re
from functools import lru_cache
from pathlib import Path

from densembed.data import cifar, digits, fashion, mnist
from densembed.data.dataset import DataError, Dataset, Split, as_input
from densembed.data.download import reading
from densembed.data.folder import PREFIX, Folder
from densembed.text import printable, unknown

__all__ = [
    "DATASETS",
    "DataError",
    "Dataset",
    "Split",
    "as_input",
    "check_name",
    "default_data_dir",
    "is_available",
    "is_folder",
    "load_dataset",
    "slug",
    "title",
]

DATASETS = {"digits": digits, "mnist": mnist, "fashion-mnist": fashion, "cifar10": cifar}


def default_data_dir() -> Path:
    """`DENSEMBED_DATA` where it is set, else the user's cache directory."""
    if folder := os.environ.get("DENSEMBED_DATA"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "densembed"


def is_folder(name: str) -> bool:
    """Whether a data set's name is one of a folder of pictures, there or not."""
    return name.startswith(PREFIX)


def load_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """The data set of that name, kept in memory once it was read.

    Args:
        name: a key of `DATASETS`, or `folder:PATH` for a folder of pictures.
        data_dir: where its files are or go; `default_data_dir()` if None.
    Raises:
        DataError: an unknown name, or data that cannot be had.
    """
    place = Path(data_dir) if data_dir else default_data_dir()
    if is_folder(name):
        with reading(f"The data set {name[:80]!r}", place):
            return Folder.parse(name, place).load(place)
    check_name(name)
    return _load(name, place)


def check_name(name: str) -> None:
    """Raises DataError where the name is neither a key of `DATASETS` nor one of a folder."""
    if not is_folder(name) and name not in DATASETS:
        raise DataError(
            f"{unknown('data set', name, DATASETS)}; the known ones are {', '.join(DATASETS)}, and "
            "folder:PATH for a folder of pictures with one subfolder per class."
        )


def is_available(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a data set can be loaded without a network."""
    try:
        place = Path(data_dir) if data_dir else default_data_dir()
        if is_folder(name):
            return Folder.parse(name, place).available(place)
        return name in DATASETS and DATASETS[name].available(place)
    except (DataError, OSError):  # a folder that only its owner may look into, a wild name
        return False


def title(name: str, data_dir: str | Path | None = None) -> str:
    """What a data set is called, without reading it; the name itself for an unknown one."""
    if is_folder(name):
        try:
            place = Path(data_dir) if data_dir else default_data_dir()
            return Folder.parse(name, place).title(place)
        except DataError:
            return printable(name)
    return DATASETS[name].TITLE if name in DATASETS else name


def slug(name: str, data_dir: str | Path | None = None) -> str:
    """The name for a file or a folder: of a folder of pictures its title's letters and digits.

    The title itself, which reports have, gives the same.
    """
    if name in DATASETS:
        return name
    text = title(name, data_dir) if is_folder(name) else name
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "pictures"


@lru_cache(maxsize=4)
def _load(name: str, data_dir: Path) -> Dataset:
    return DATASETS[name].load(data_dir)
