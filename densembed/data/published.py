"""The files of a published data set: looked for in the data folder, verified, or downloaded."""

import gzip
import hashlib
import io
import os
import re
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from densembed.data import download
from densembed.data.dataset import Dataset
from densembed.data.names import DataError
from densembed.files import replace_file

DEEPEST, MOST_ENTRIES = 4, 10_000
"""Misplaced files are looked for in at most so many levels and entries of the data folder."""


GZIP = b"\x1f\x8b"
"""First bytes of a gzip file. Some browsers unpack a file without changing its name."""


@dataclass(frozen=True)
class Archive:
    """A published archive: its path in the data folder, the names of its files, and its source."""

    path: Path
    names: Collection[str]
    md5: str
    addresses: Collection[str]

    def is_intact(self, path: Path) -> bool:
        return hashlib.md5(_read(path), usedforsecurity=False).hexdigest() == self.md5


class Published(ABC):
    """A published data set, with the folder of its files relative to the data folder."""

    name: str
    title: str
    download_size: str
    folder: Path
    manual: str
    """What a user can put into the data folder instead of a download, and where."""
    hint = ""
    """Word in the paths of misplaced files, needed if `is_right` accepts other data sets."""
    unread: Collection[str] = ()
    """Names of files in other formats of the data set."""

    @abstractmethod
    def names(self) -> Collection[str]:
        """Names of the unpacked files."""

    @abstractmethod
    def is_right(self, name: str, data: bytes) -> bool:
        """Whether an unpacked file has the right content."""

    @abstractmethod
    def archives(self) -> Collection[Archive]:
        """The archives with the files. One that is in the data folder is not downloaded."""

    @abstractmethod
    def unpack(self, data: bytes, names: Iterable[str]) -> dict[str, bytes]:
        """The files in an archive without its compression, as far as it has them, by name."""

    @abstractmethod
    def read(self, data_dir: Path) -> Dataset:
        """Read the files, which exist and are right."""

    def available(self, data_dir: Path) -> bool:
        return not self._absent(data_dir, self.names())

    def load(self, data_dir: Path) -> Dataset:
        """Read the data set, after downloading missing files and verifying all of them.

        Raises:
            DataError: files are damaged or misplaced, or missing and cannot be downloaded.
            Cancelled: loading was stopped.
        """
        folder, lock = data_dir / self.folder, data_dir / f"{self.name}.lock"
        with download.reading(self.title, folder):
            if not self.available(data_dir):
                self._check_places(data_dir)
                self._download(data_dir, lock)
            damaged = self._damaged(folder)
            if damaged and lock.exists():
                # Another process may still be writing one of the files, but not in a folder that
                # is read-only.
                with suppress(OSError), download.locked(lock, self.title):
                    damaged = self._damaged(folder)
            if damaged:
                raise self.damage(folder / damaged[0])
            return self.read(data_dir)

    def damage(self, path: Path) -> DataError:
        return self._error(
            f"cannot be read: {path.name} in {path.parent} is damaged or belongs to another data "
            "set. Delete it, so that it is downloaded again, or replace it with an intact copy"
        )

    def _error(self, fault: str) -> DataError:
        return DataError(f"{self.title} {fault}. {download.ELSEWHERE}")

    def _absent(self, data_dir: Path, names: Iterable[str]) -> list[str]:
        return [name for name in names if not (data_dir / self.folder / name).is_file()]

    def _damaged(self, folder: Path) -> list[str]:
        files = ((name, _read(folder / name)) for name in download.stoppable(self.names()))
        return [name for name, data in files if not self.is_right(name, data)]

    def _check_places(self, data_dir: Path) -> None:
        """Raise DataError if missing files are in other places or have other names."""
        archives = [one for one in self.archives() if not (data_dir / one.path).is_file()]
        files = sorted(_files_below(data_dir)) if archives else []
        for archive in archives:
            absent = [self.folder / name for name in self._absent(data_dir, archive.names)]
            for wanted in [*absent, archive.path] if absent else []:
                expected = data_dir / wanted
                # Meanwhile another process may write it, or delete an archive that it has unpacked.
                if os.path.lexists(expected):
                    if expected.is_file():
                        continue
                    raise self._error(
                        f"needs the file {expected}, but a folder, a named pipe or a broken link "
                        "has its name: move that away"
                    )
                for path in files:
                    if (
                        path != expected
                        and _letters(path.name) == _letters(wanted.name)
                        and (
                            path.parent == expected.parent
                            or self._is_ours(path, wanted, archive, data_dir)
                        )
                    ):
                        raise self._error(
                            f"needs the file {expected}: move {path} there, and the other files "
                            "likewise"
                        )
        for path in files:
            if path.name.lower() in self.unread:
                raise self._error(
                    f"is not read from {path}, which has another format: put {self.manual} under "
                    f"{data_dir}, or move that file away, so that the right ones are downloaded"
                )

    def _is_ours(self, path: Path, wanted: Path, archive: Archive, data_dir: Path) -> bool:
        """Whether a file in another folder has the content of the wanted one."""
        hinted = self.hint in _letters(str(path.relative_to(data_dir)))
        with suppress(OSError):  # a file that others may not read is none that they misplaced
            if wanted != archive.path:
                return hinted and self.is_right(wanted.name, _read(path))
            return archive.is_intact(path) or (
                hinted and self._contents(path, archive.names) is not None
            )
        return False

    def _download(self, data_dir: Path, lock: Path) -> None:
        folder = data_dir / self.folder
        absent = self._absent(data_dir, self.names())
        try:
            download.make_folder(folder)
            with download.locked(lock, self.title) as deadline:
                self._fetch(data_dir, deadline)
        except download.NetworkFault as fault:
            lacking = f"is incomplete: {folder} lacks {', '.join(absent)}. It "
            raise self._error(
                (lacking if len(absent) < len(self.names()) else "")
                + f"could not be downloaded ({fault}). Check the network, or put {self.manual} "
                f"under {data_dir}"
            ) from fault
        except OSError as error:
            raise download.refused(f"{self.title} cannot be saved in", data_dir, error) from error

    def _fetch(self, data_dir: Path, deadline: float) -> None:
        """Unpack the missing files, those in archives in the data folder first."""
        folder = data_dir / self.folder
        for archive in sorted(self.archives(), key=lambda one: not (data_dir / one.path).is_file()):
            if not (absent := self._absent(data_dir, archive.names)):
                continue  # another process may have downloaded them
            local = data_dir / archive.path
            if local.is_file():
                contents = self._contents(local, absent)
                if contents is None:
                    raise self.damage(local)
            else:
                right = archive.is_intact
                with download.fetched(archive.addresses, folder, right, deadline) as part:
                    contents = self._contents(part, absent)
                if contents is None:
                    raise download.NetworkFault(f"{local.name} cannot be unpacked")
            for name, data in contents.items():
                replace_file(folder / name, data)

    def _contents(self, archive: Path, names: Collection[str]) -> dict[str, bytes] | None:
        """The files in an archive by name, or None unless all are right."""
        data = _read(archive)
        try:
            if data.startswith(GZIP):
                data = download.content(gzip.GzipFile(fileobj=io.BytesIO(data)).read)
            contents = self.unpack(data, names)
        except (EOFError, OverflowError, gzip.BadGzipFile, tarfile.TarError, zlib.error):
            return None
        right = all(name in contents and self.is_right(name, contents[name]) for name in names)
        return contents if right else None


def _read(path: Path) -> bytes:
    """The content of a file, or nothing of one that is larger than any published file."""
    return path.read_bytes() if path.stat().st_size <= download.LARGEST else b""


def _files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder and the folders in it, but not of those that are another user's."""
    entries = 0
    for place, folders, names in os.walk(folder):
        entries += len(folders) + len(names)
        if entries > MOST_ENTRIES or len(Path(place).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        # Unlike Path.is_file, this is False for a file in a folder that may not be entered.
        yield from (path for name in names if os.path.isfile(path := Path(place, name)))


def _letters(text: str) -> str:
    """The letters and digits of a name such as `train-images.idx3-ubyte`, in lower case."""
    return re.sub(r"[\W_]", "", text.lower())
