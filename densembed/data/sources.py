"""Data sets as tensors.

A new data set is an entry in `DATASETS` and `names.NAMES`. In addition, `folder:PATH` names any
folder of images, see `densembed.data.folder`, and `csv:PATH` any table of signals, see
`densembed.data.table`.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from densembed.data import cifar, digits, fashion, mnist, mnist1d
from densembed.data.dataset import Dataset
from densembed.data.download import reading
from densembed.data.folder import Folder
from densembed.data.names import PREFIX, DataError, check_name, is_path
from densembed.data.published import Published
from densembed.data.table import SignalTable
from densembed.files import in_home
from densembed.text import printable, quoted


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
    "mnist1d": Source(title=mnist1d.TITLE, load=mnist1d.load, available=mnist1d.available),
}
"""The built-in data sets by name."""


def default_data_dir() -> Path:
    """The folder in `DENSEMBED_DATA`, by default a folder in the user's cache directory."""
    if folder := os.environ.get("DENSEMBED_DATA"):
        return in_home(folder)
    return in_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "densembed"


def is_outside(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a name refers to files of the user outside of the data folder.

    A checkpoint may be a file of another author, so it must not select such files. A link in the
    data folder was made by its owner, so that what it leads to counts as inside.
    """
    if not is_path(name):
        return False
    place = Path(data_dir) if data_dir else default_data_dir()
    try:
        files = files_of(name, data_dir)
        if ".." not in files.parts and files.absolute().is_relative_to(place.absolute()):
            return False
        return not Path(os.path.realpath(files)).is_relative_to(os.path.realpath(place))
    except (DataError, OSError, RuntimeError):  # an invalid name, or a loop of links
        return True


def files_of(name: str, data_dir: str | Path | None = None) -> Path:
    """The table, or the folder, that a data set is read from.

    Raises DataError for an invalid name.
    """
    place = Path(data_dir) if data_dir else default_data_dir()
    return _own(name, place).root(place) if is_path(name) else place


def load_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """Load a data set. It is cached in memory.

    Args:
        name: a key of `DATASETS`, `folder:PATH` for a folder of images, or `csv:PATH` for a
            table of signals.
        data_dir: folder of the data files (default: `default_data_dir()`). A download goes there.

    Raises:
        DataError: the name is unknown, or the data cannot be read or downloaded.
        TypeError: the name is not text.

    >>> load_dataset("digits").input_shape
    (1, 28, 28)
    """
    if not isinstance(name, str):
        raise TypeError(
            "Expected the name of a data set, such as 'digits' or 'folder:PATH'; got "
            f"{type(name).__name__}."
        )
    place = in_home(data_dir) if data_dir else default_data_dir()
    if is_path(name):
        with reading(f"The data set {quoted(name[:80])}", place):
            return _own(name, place).load(place)
    check_name(name)
    return _load(name, place)


def _own(name: str, data_dir: Path) -> Folder | SignalTable:
    """The files of the user that a name refers to."""
    return (Folder if name.startswith(PREFIX) else SignalTable).parse(name, data_dir)


def is_available(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a data set can be loaded without a download."""
    try:
        place = Path(data_dir) if data_dir else default_data_dir()
        if is_path(name):
            return _own(name, place).available(place)
        return name in DATASETS and DATASETS[name].available(place)
    except (DataError, OSError):  # a folder without read permission, or an invalid name
        return False


def title(name: str, data_dir: str | Path | None = None) -> str:
    """The display name of a data set, or `name` itself if it is unknown. Reads no whole data."""
    if is_path(name):
        try:
            place = Path(data_dir) if data_dir else default_data_dir()
            return _own(name, place).title(place)
        except DataError:
            return printable(name)
    return DATASETS[name].title if name in DATASETS else name


def slug(name: str, data_dir: str | Path | None = None) -> str:
    """A data set's name for use in file names. For files of the user, it is made from the title.

    Reports record the title; `slug(title)` gives the same result.
    """
    if name in DATASETS:
        return name
    text = title(name, data_dir) if is_path(name) else name
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "pictures"


@lru_cache(maxsize=4)
def _load(name: str, data_dir: Path) -> Dataset:
    return DATASETS[name].load(data_dir)
