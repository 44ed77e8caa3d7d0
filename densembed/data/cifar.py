"""CIFAR-10 through torchvision: small colour photographs of ten classes."""

import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.download import (
    ELSEWHERE,
    NetworkFault,
    check_places,
    download,
    fetched,
    reading,
)
from densembed.files import replace_file

TITLE = "CIFAR-10"
FILES = "the folder cifar-10-batches-py"
FOLDER = "cifar-10-batches-py"
LOCK = "cifar10.lock"
CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def available(data_dir: Path) -> bool:
    return not _absent(data_dir / FOLDER)


def load(data_dir: Path) -> Dataset:
    """Load the 50,000 training and 10,000 test images, downloaded once to cifar-10-batches-py.

    All files are verified by their published checksums before they are read.

    Raises:
        DataError: files are damaged, or missing and cannot be downloaded.
    """
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import check_integrity

    folder = data_dir / FOLDER
    with reading(TITLE, folder):
        if not available(data_dir):
            _look_elsewhere(data_dir, folder)
            _fetch(data_dir, folder)
        sums = _sums()
        damaged = [name for name in sums if not check_integrity(folder / name, sums[name])]
        if damaged:
            raise DataError(
                f"{damaged[0]} in {folder} is damaged: delete it, so that it is downloaded again, "
                f"or replace it with an intact copy. {ELSEWHERE}"
            )
        sources = [CIFAR10(data_dir, train=train) for train in (True, False)]
    train, test = (
        Split(
            torch.from_numpy(np.ascontiguousarray(np.moveaxis(source.data, -1, 1))),
            torch.tensor(source.targets, dtype=torch.int64),
        )
        for source in sources
    )
    return Dataset("cifar10", TITLE, CLASSES, train, test)


def _sums() -> dict[str, str]:
    """The published MD5 of each file, from torchvision."""
    from torchvision.datasets import CIFAR10

    listed = dict(CIFAR10.train_list + CIFAR10.test_list)
    return listed | {CIFAR10.meta["filename"]: CIFAR10.meta["md5"]}


def _absent(folder: Path) -> list[str]:
    return [name for name in _sums() if not (folder / name).is_file()]


def _look_elsewhere(data_dir: Path, folder: Path) -> None:
    inside = (
        sorted(path for path in data_dir.iterdir() if path.is_dir()) if data_dir.is_dir() else ()
    )
    check_places(TITLE, folder, _sums(), (data_dir, *(path / FOLDER for path in inside)))


def _fetch(data_dir: Path, folder: Path) -> None:
    """Extract the missing files from the archive, after downloading it if necessary."""
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import check_integrity

    def right(path: Path) -> bool:
        return check_integrity(path, CIFAR10.tgz_md5)

    def work(deadline: float) -> None:
        absent = _absent(folder)
        if not absent:  # another process has downloaded them
            return
        archive = data_dir / CIFAR10.filename
        if right(archive):
            _unpack(archive, folder, absent)
            return
        with fetched([CIFAR10.url], data_dir, right, deadline) as part:
            _unpack(part, folder, absent)

    absent = _absent(folder)
    lacking = f"{folder} lacks {', '.join(absent)}" if len(absent) < len(_sums()) else ""
    download(TITLE, data_dir, LOCK, work, FILES, lacking)


def _unpack(archive: Path, folder: Path, names: Iterable[str]) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        replace_file(folder / name, _member(archive, f"{FOLDER}/{name}"))


def _member(archive: Path, name: str) -> bytes:
    try:
        with tarfile.open(archive, "r:gz") as files:
            member = files.extractfile(name)
            if member is None:
                raise KeyError(name)
            return member.read()
    except (tarfile.TarError, EOFError, zlib.error, KeyError) as error:
        raise NetworkFault(f"{archive.name} cannot be unpacked") from error
