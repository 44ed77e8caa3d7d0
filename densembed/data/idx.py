"""Downloads of data sets in the file format of MNIST, through torchvision."""

import gzip
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from densembed.data.download import NetworkFault, download, fetched
from densembed.files import replace_file


class Published(Protocol):
    """The attributes of torchvision's data sets that list their files."""

    mirrors: list[str]
    resources: list[tuple[str, str]]


def fetch(
    title: str,
    source: Published,
    data_dir: Path,
    raw: Path,
    lock: str,
    intact: Callable[[Path], bool],
    files: str,
) -> None:
    """Download those of the four files that are not intact. Raises the errors of `download`.

    Args:
        title: display name of the data set.
        source: torchvision's class for the data set.
        data_dir: the data folder.
        raw: folder of the unpacked files. An archive in it is unpacked instead of downloaded.
        lock: name of the lock file in `data_dir`.
        intact: whether an unpacked file is complete.
        files: the files that a user can put into `data_dir` instead, for the error message.
    """
    from torchvision.datasets.utils import check_integrity

    def work(deadline: float) -> None:
        raw.mkdir(parents=True, exist_ok=True)
        for archive, md5 in source.resources:
            target = raw / archive.removesuffix(".gz")
            if intact(target):
                continue
            if check_integrity(raw / archive, md5):
                replace_file(target, _unpacked(raw / archive))
                continue
            addresses = [mirror + archive for mirror in source.mirrors]
            verify = partial(check_integrity, md5=md5)
            with fetched(addresses, raw, verify, deadline) as part:
                replace_file(target, _unpacked(part))

    names = [archive.removesuffix(".gz") for archive, _ in source.resources]
    absent = [name for name in names if not (raw / name).is_file()]
    partly = 0 < len(absent) < len(names)
    download(
        title, data_dir, lock, work, files, f"{raw} lacks {', '.join(absent)}" if partly else ""
    )


def _unpacked(archive: Path) -> bytes:
    packed = archive.read_bytes()
    try:
        return gzip.decompress(packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise NetworkFault(f"{archive.name} cannot be unpacked") from error
