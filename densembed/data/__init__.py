"""Data sets as tensors.

A new data set is an entry in `DATASETS`. In addition, `folder:PATH` names any folder of images:
see `densembed.data.folder`.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from densembed.data import cifar, digits, fashion, mnist
from densembed.data.dataset import DataError, Dataset, Split, as_input
from densembed.data.download import reading
from densembed.data.folder import PREFIX, Folder
from densembed.data.published import Published
from densembed.text import printable, quoted, unknown

__all__ = [
    "DATASETS",
    "DataError",
    "Dataset",
    "Source",
    "Split",
    "as_input",
    "check_name",
    "default_data_dir",
    "is_available",
    "is_folder",
    "is_outside",
    "load_dataset",
    "slug",
    "title",
]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a data set comes from.

    Args:
        title: display name.
        load: reads the data set, after downloading what a data folder lacks.
        available: whether a data folder has all files, so that no download is needed.
        download_size: size of the download, None for a data set that needs none.
    """

    title: str
    load: Callable[[Path], Dataset]
    available: Callable[[Path], bool]
    download_size: str | None = None


DATASETS: dict[str, Source | Published] = {
    "digits": Source(title=digits.TITLE, load=digits.load, available=digits.available),
    **{data.name: data for data in (mnist.DATA, fashion.DATA, cifar.DATA)},
}
"""The built-in data sets by name."""


def default_data_dir() -> Path:
    """The folder in `DENSEMBED_DATA`, by default a folder in the user's cache directory."""
    if folder := os.environ.get("DENSEMBED_DATA"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "densembed"


def is_folder(name: str) -> bool:
    """Whether a name refers to a folder of images. The folder need not exist."""
    return name.startswith(PREFIX)


def is_outside(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a name refers to a folder of images outside of the data folder.

    A checkpoint may be a file of another author, so it must not select such a folder.
    """
    if not is_folder(name):
        return False
    place = Path(data_dir) if data_dir else default_data_dir()
    try:
        root = Folder.parse(name, place).root(place)
        return not root.resolve().is_relative_to(place.resolve())
    except (DataError, OSError, RuntimeError):  # an invalid name, or a loop of links
        return True


def load_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """Load a data set. It is cached in memory.

    Args:
        name: a key of `DATASETS`, or `folder:PATH` for a folder of images.
        data_dir: folder of the data files (default: `default_data_dir()`). A download goes there.

    Raises:
        DataError: the name is unknown, or the data cannot be read or downloaded.

    >>> load_dataset("digits").input_shape
    (1, 28, 28)
    """
    place = Path(data_dir) if data_dir else default_data_dir()
    if is_folder(name):
        with reading(f"The data set {quoted(name[:80])}", place):
            return Folder.parse(name, place).load(place)
    check_name(name)
    return _load(name, place)


def check_name(name: str) -> None:
    """Raise DataError unless the name is a key of `DATASETS` or refers to a folder."""
    if not is_folder(name) and name not in DATASETS:
        raise DataError(
            f"{unknown('data set', name, DATASETS)}; choose from {', '.join(DATASETS)}, or "
            "folder:PATH for a folder of images with one subfolder per class."
        )


def is_available(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a data set can be loaded without a download."""
    try:
        place = Path(data_dir) if data_dir else default_data_dir()
        if is_folder(name):
            return Folder.parse(name, place).available(place)
        return name in DATASETS and DATASETS[name].available(place)
    except (DataError, OSError):  # a folder without read permission, or an invalid name
        return False


def title(name: str, data_dir: str | Path | None = None) -> str:
    """The display name of a data set, or `name` itself if it is unknown. Reads no images."""
    if is_folder(name):
        try:
            place = Path(data_dir) if data_dir else default_data_dir()
            return Folder.parse(name, place).title(place)
        except DataError:
            return printable(name)
    return DATASETS[name].title if name in DATASETS else name


def slug(name: str, data_dir: str | Path | None = None) -> str:
    """A data set's name for use in file names. For a folder of images, it is made from the title.

    Reports record the title of a folder; `slug(title)` gives the same result.
    """
    if name in DATASETS:
        return name
    text = title(name, data_dir) if is_folder(name) else name
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "pictures"


@lru_cache(maxsize=4)
def _load(name: str, data_dir: Path) -> Dataset:
    return DATASETS[name].load(data_dir)
