"""Pictures that a user uploads, stored as a folder of images in the data folder.

A zip archive has one folder per class, as `densembed.data.folder` reads it. The class of a picture
without a folder is the beginning of its name: `cat` for `cat-1.jpg`. Nothing in an archive is
trusted: files are unpacked one by one up to fixed limits, and no path of an archive is written to
as it is. Large photographs are reduced, and thus lose their metadata, such as the place.
"""

import contextlib
import errno
import hashlib
import io
import os
import re
import secrets
import shutil
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from densembed.data.class_folders import (
    PARTS,
    empty_note,
    fault_notes,
    has_image_suffix,
    hidden_note,
)
from densembed.data.dataset import Dataset
from densembed.data.decode import MAX_BYTES, ImageError, decode, open_picture, reading_pixels
from densembed.data.folder import Folder
from densembed.data.frames import count_frames, unused_note
from densembed.data.names import DataError
from densembed.text import listed, natural, printable, quoted

PLACE = "uploads"
"""The folder for uploads within the data folder."""
MAX_FILES = 20_000
MAX_UNPACKED = 512 * 2**20
LARGEST = 256
"""The shorter side of a stored picture is at most this long; training uses at most 64 pixels."""
MAX_NAME, MAX_NAME_BYTES = 80, 200
"""Characters and bytes of the name of a stored picture, of whose name the end is kept."""
ENTRY_BYTES = 512
"""Bytes per file in an archive's table of contents, beyond which the table is refused."""
UTF8 = 0x800
"""The flag of a file in an archive whose name is UTF-8."""
DOS = 0
"""The number of the system on which a file was added, in an archive."""
UNICODE_PATH = 0x7075
"""The kind of an extra field that has the name of a file in UTF-8."""
RESERVED = r'[<>:"|?*\\/]' if os.name == "nt" else r"[\\/]"
INVERTED = "-inverted"
BRIGHT, CLEARLY, MOST = 0.6, 0.1, 0.75
"""Pictures are dark on light if in `MOST` of them the border is brighter than `BRIGHT`, and by
`CLEARLY` brighter than the darkest part."""
INSTEAD = (
    "put the pictures into a folder on the server and choose “A folder on the server” as the data"
)

File = tuple[str, bytes]
"""Path or name, and content."""
Folders = tuple[str, ...]
"""The names of folders, each in the one before it."""


@dataclass(frozen=True)
class Stored:
    """A stored upload: the name of its data set, and what is left out of it.

    `left_out` are the files that are no pictures, `hidden` those in an archive whose name, or that
    of a folder above them, begins with a dot, `frames` the number of frames of each picture that
    has several, `faults` the `ImageError.which` of each picture that cannot be used, `empty` the
    folders of archives that would be classes but have no picture, and `unclear` the archives with
    names in an unknown encoding.
    """

    name: str
    left_out: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    frames: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Sentences about pictures that are not used, or not all of them."""
        notes = fault_notes(self.faults)
        if self.unclear:
            notes.append(
                f"The names in {listed(self.unclear)} are not marked as Unicode, so letters with "
                "accents and of other scripts may be wrong. If the classes are not shown as you "
                "wrote them, rename the folders with plain letters a to z, or pack them again with "
                "a current program."
            )
        notes += [empty_note(self.empty)] if self.empty else []
        notes += [hidden_note(self.hidden)] if self.hidden else []
        return notes + ([unused_note(self.frames)] if self.frames else [])


@dataclass(frozen=True)
class _Place:
    """Where a file is.

    `archive` is the name of its archive, "" for an uploaded picture, and `written` are the folders
    and the name of the file in it. `unclear` is the archive if these may be in any encoding.
    """

    archive: str
    written: tuple[str, ...]
    unclear: str = ""

    @classmethod
    def of(cls, path: str, archive: str = "", unclear: str = "") -> "_Place":
        """The place for a path, without folders like `..`."""
        *folders, name = path.replace("\\", "/").split("/")
        return cls(archive, (*filter(_clean, folders), name), unclear)

    @cached_property
    def parts(self) -> list[str]:
        """The folders and the name without characters that have a meaning."""
        *folders, name = map(_clean, self.written)
        return [*folders, name or "picture"]

    @property
    def shown(self) -> str:
        return printable("/".join(self.parts))


def store(files: Sequence[File], data_dir: Path) -> Stored:
    """Store uploaded pictures as a data set. The same files are stored once.

    Args:
        files: names and contents of zip archives and pictures.

    Raises:
        DataError: an archive is damaged or too large, or the pictures are no data set.
    """
    pictures: list[tuple[_Place, bytes]] = []
    left_out: list[str] = []
    hidden: list[str] = []
    folders: set[Folders] = set()
    frames: dict[str, int] = {}
    faults: dict[str, str] = {}
    for place, data in _unpacked(files, hidden, folders):
        shown = place.shown
        try:
            picture = _reduced(data)
        except ImageError as error:
            if error.which:
                faults[shown] = error.which
            else:
                left_out.append(shown)
            continue
        pictures.append((place, picture.data))
        if picture.frames > 1:
            frames[shown] = picture.frames
    if not pictures:
        reasons = Stored("", hidden=tuple(hidden), faults=faults).notes
        raise DataError(
            "There is no picture that can be used among the files: upload pictures, or a zip "
            "archive with one folder of pictures per class." + "".join(f" {one}" for one in reasons)
        )
    _check_apart([place for place, _ in pictures])
    parts = _parts_by_archive([place for place, _ in pictures])
    around, placed = _unwrapped(sorted(_with_classes(pictures, parts, len(files))))
    outer = [within for _, within in parts.values()] or [around]
    empty = _without_pictures(folders, outer, [path for path, _ in placed])
    _check_files([path for path, _ in placed])
    digest = hashlib.sha256()
    for name, data in placed:
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    title = _shortened(_clean(PurePosixPath(files[0][0]).stem)) if len(files) == 1 else ""
    title = title.replace("@", "_").lstrip(".")  # which would begin a shape, or hide the folder
    folder = f"{digest.hexdigest()[:16]}/{title or 'pictures'}"
    try:
        name = _write(folder, placed, data_dir)
    except DataError as error:
        raise DataError(f"{error} {empty_note(empty)}" if empty else str(error)) from error
    unclear = tuple(dict.fromkeys(place.unclear for place, _ in pictures if place.unclear))
    return Stored(name, tuple(left_out), tuple(hidden), frames, faults, empty, unclear)


def inverted(name: str, data_dir: Path) -> str:
    """Store the negatives of stored pictures; returns the name of their data set."""
    root = Folder.parse(name, data_dir).root(data_dir)
    digest, title = root.parts[-2:]
    paths = (path for path in sorted(root.rglob("*")) if path.is_file())
    negatives = (
        (path.relative_to(root).as_posix(), _negative(path.read_bytes())) for path in paths
    )
    return _write(f"{digest}{INVERTED}/{title}", negatives, data_dir)


def is_upload(name: str) -> bool:
    """Whether the name of a data set is one of `store` or `inverted`."""
    return bool(re.fullmatch(rf"folder:{PLACE}/[0-9a-f]{{16}}({INVERTED})?/[^/]+", name))


def is_dark_on_light(dataset: Dataset) -> bool:
    """Whether grey pictures show something dark on a light ground, unlike MNIST's digits."""
    images = dataset.train.images.numpy()
    if images.shape[1] > 1:
        return False
    grey = images[:, 0] / np.float32(255)
    border = np.concatenate([grey[:, 0], grey[:, -1], grey[:, :, 0], grey[:, :, -1]], axis=1)
    light, darkest = np.median(border, axis=1), grey.min((1, 2))
    return bool(np.mean((light > BRIGHT) & (light - darkest > CLEARLY)) >= MOST)


def _write(place: str, pictures: Iterable[File], data_dir: Path) -> str:
    """Write the pictures unless they are there, and check that they are a data set."""
    name = f"folder:{PLACE}/{place}"
    root = data_dir / PLACE / place
    if root.is_dir():
        return name
    unfinished = root.parent.with_name(f".{root.parent.name}-{secrets.token_hex(4)}")
    path = ""
    try:
        for path, data in pictures:
            target = _free(unfinished / root.name / path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            # The cache of decoded folders tells files apart by their times, in whole seconds.
            stamp = int.from_bytes(hashlib.sha256(data).digest()[:4], "big") % 10**9
            os.utime(target, (stamp, stamp))
        Folder.parse(Folder.named(str(unfinished / root.name))).load(data_dir)
        root.parent.mkdir(exist_ok=True)  # there may be the same pictures with another title
        (unfinished / root.name).rename(root)
    except OSError as error:
        if not root.is_dir():  # stored by another tab in this moment
            if error.errno == errno.ENAMETOOLONG:
                longest = max(path.split("/"), key=lambda part: len(part.encode()))
                raise DataError(
                    f"The name {quoted(longest[:40] + '…')} of a folder is too long to be stored: "
                    "shorten it."
                ) from error
            raise DataError(f"The pictures cannot be stored: {error.strerror}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return name


def _free(path: Path) -> Path:
    """The path, with a number if another picture has it, also on a disk that ignores case."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}~{number}")
    return free


def _unpacked(
    files: Sequence[File], hidden: list[str], folders: set[Folders]
) -> Iterator[tuple[_Place, bytes]]:
    """Every file that is uploaded or in an archive, up to the limits.

    The paths of hidden images are added to `hidden`, and the folders of archives to `folders`.
    """
    left = MAX_UNPACKED
    for count, (place, read) in enumerate(_members(files, hidden, folders), 1):
        if count > MAX_FILES:
            raise DataError(f"There are more than {MAX_FILES:,} files: upload fewer, or {INSTEAD}.")
        data = read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise DataError(
                f"The file {quoted(place.parts[-1])} has more than {MAX_BYTES >> 20} MiB: make the "
                "picture smaller."
            )
        left -= len(data)
        if left < 0:
            raise DataError(
                f"The files have more than {MAX_UNPACKED >> 20} MiB in all: make the pictures "
                f"smaller, or {INSTEAD}."
            )
        yield place, data


def _members(
    files: Sequence[File], hidden: list[str], folders: set[Folders]
) -> Iterator[tuple[_Place, Callable[[int], bytes]]]:
    """Every file with its path, and a function that reads at most so many bytes of it."""
    for name, data in files:
        if not data.startswith(b"PK\x03\x04") and not name.lower().endswith(".zip"):
            yield _Place("", _Place.of(name).written[-1:]), partial(_first, data)
            continue
        shown = quoted(name[-MAX_NAME:])
        _check_table(shown, data)
        own = re.sub(r"\.zip$", "", name, flags=re.IGNORECASE)
        with _reading(shown):
            archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
        for entry, (path, known) in zip(entries, _paths_in(entries), strict=True):
            place = _Place.of(path, own, "" if known else name)
            if not any(map(_is_hidden, place.parts[:-1])):
                folders.add(tuple(place.parts[:-1]))
            if entry.is_dir():
                continue
            if any(map(_is_hidden, place.parts)):
                if has_image_suffix(place.parts[-1]):
                    hidden.append(place.shown)
            else:
                yield place, partial(_read, archive, entry, shown)


def _paths_in(entries: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, bool]]:
    """The path of each file of an archive, and whether its encoding is known.

    macOS and Info-ZIP write UTF-8 without the flag that says so. A short name in another encoding
    may be UTF-8 by chance, as 猫 in GBK, but hardly all names are, and DOS has no UTF-8.
    """
    unmarked = [_written(entry) for entry in entries]
    try:
        decoded = [name.partition(b"\0")[0].decode() for name in unmarked]
    except UnicodeError:
        decoded = []
    for k, (entry, name) in enumerate(zip(entries, unmarked, strict=True)):
        if not name:
            yield entry.filename, True
        elif beside := _unicode_path(entry.extra, name):
            yield beside, True
        elif decoded:
            yield decoded[k], entry.create_system != DOS
        else:
            yield entry.filename, False


def _written(entry: zipfile.ZipInfo) -> bytes:
    """The bytes of a path that is neither ASCII nor marked as UTF-8, else none."""
    if entry.flag_bits & UTF8 or entry.orig_filename.isascii():
        return b""
    return entry.orig_filename.encode("cp437")  # as which Python reads it


def _unicode_path(extra: bytes, written: bytes) -> str:
    """The path in UTF-8 that some programs add to one in the encoding of their system, or ""."""
    while len(extra) >= 9:
        kind, size, version, check = struct.unpack_from("<HHBL", extra)
        if (kind, version, check) == (UNICODE_PATH, 1, zlib.crc32(written)):
            with contextlib.suppress(UnicodeError):
                return extra[9 : 4 + size].partition(b"\0")[0].decode()
        extra = extra[4 + size :]
    return ""


@contextlib.contextmanager
def _reading(shown: str) -> Iterator[None]:
    """Report a damaged archive in one sentence."""
    try:
        yield
    except NotImplementedError as error:
        raise DataError(
            f"The archive {shown} is compressed by a method that cannot be read: pack it again as "
            "an ordinary zip archive."
        ) from error
    except Exception as error:  # zipfile raises many kinds of exceptions on damaged data
        raise DataError(
            f"The archive {shown} is damaged or not a zip archive: pack it again."
        ) from error


def _check_table(shown: str, data: bytes) -> None:
    """Refuse a table of contents that would exhaust the memory."""
    end = data.rfind(b"PK\x05\x06")
    size = int.from_bytes(data[end + 12 : end + 16], "little") if end >= 0 else 0
    if size > MAX_FILES * ENTRY_BYTES:
        raise DataError(
            f"The archive {shown} has more than {MAX_FILES:,} files: upload fewer, or {INSTEAD}."
        )


def _first(data: bytes, size: int) -> bytes:
    return data[:size]


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, shown: str, size: int) -> bytes:
    if entry.flag_bits & 1:
        raise DataError(f"The archive {shown} is protected by a password: pack it without one.")
    with _reading(shown), archive.open(entry) as file:
        return file.read(size)


def _is_hidden(part: str) -> bool:
    return part.startswith((".", "__MACOSX"))


def _check_apart(places: Sequence[_Place]) -> None:
    """Raise DataError if two names of folders or archives would be stored as one, as ` cat`."""
    first: dict[tuple[str, ...], str] = {}
    for place in places:
        levels = [
            ("folders", tuple(place.parts[:depth]), place.written[depth - 1])
            for depth in range(1, len(place.parts))
        ]
        for noun, key, name in [*levels, ("archives", ("", _clean(place.archive)), place.archive)]:
            if (other := first.setdefault(key, name)) != name:
                raise DataError(
                    f"Two {noun} have the same displayed name, {quoted(other)} and {quoted(name)}: "
                    "rename one of them."
                )


def _check_files(paths: Sequence[str]) -> None:
    """Raise DataError if a picture has the path of a folder."""
    folders = {parent.as_posix() for path in paths for parent in PurePosixPath(path).parents}
    if both := next(filter(folders.__contains__, paths), None):
        raise DataError(
            f"A picture and a folder have the same name, {quoted(both)}: rename one of them."
        )


def _with_classes(
    pictures: Sequence[tuple[_Place, bytes]], parts: Mapping[str, tuple[str, Folders]], uploads: int
) -> Iterator[File]:
    """The pictures with paths within the data set, which are safe to write."""
    with_folders = {place.archive for place, _ in pictures if len(place.parts) > 1}
    for place, data in pictures:
        *folders, name = place.parts
        if place.archive not in with_folders:
            own = _clean(place.archive) if uploads > 1 and not parts else ""
            folders = [own or _clean(_class_in(name)) or "picture"]
        if parts:
            part, around = parts[place.archive]
            folders = [part, *folders[len(around) :]]
        yield "/".join([*folders, _shortened(name)]), data


def _parts_by_archive(places: Sequence[_Place]) -> dict[str, tuple[str, Folders]]:
    """The part that each archive is, and the folders around its classes.

    Empty unless there are a `train.zip` and a `test.zip` with classes.
    """
    paths = defaultdict(list)
    for place in places:
        paths[place.archive].append(("/".join(place.parts), b""))
    found = {}
    for archive, files in paths.items():
        ends = re.fullmatch(f"(?:.*[\\W_])?({'|'.join(PARTS)})", archive.casefold())
        around, files = _unwrapped(files)
        if not ends or any(
            path.count("/") > 1 or path.partition("/")[0].strip().casefold() in PARTS
            for path, _ in files
        ):
            return {}
        found[archive] = ends[1], around
    return found if sorted(part for part, _ in found.values()) == sorted(PARTS) else {}


def _unwrapped(files: list[File]) -> tuple[Folders, list[File]]:
    """The folders around all files, which are no classes, and the files without them."""
    around: Folders = ()
    while all(path.count("/") > 1 for path, _ in files) and (
        len({path.partition("/")[0] for path, _ in files}) == 1
    ):
        around = (*around, files[0][0].partition("/")[0])
        files = [(path.partition("/")[2], data) for path, data in files]
    return around, files


def _without_pictures(
    folders: Iterable[Folders], outer: Sequence[Folders], paths: Sequence[str]
) -> tuple[str, ...]:
    """The names of folders that are no classes, as none of the pictures is below them.

    Args:
        folders: those in the archives.
        outer: those around all pictures, or around those of each archive.
        paths: of the pictures within them.
    """
    split = [path.split("/") for path in paths]
    parts = {top for top, *_ in split if top.strip().casefold() in PARTS}
    depth = 1 if {part.strip().casefold() for part in parts} == set(PARTS) else 0
    used = {part for path in split for part in path[: depth + 1]}
    found: set[str] = set()
    for folder in folders:
        shared, whole = max(
            (_shared(folder, around), folder[: len(around)] == around) for around in outer
        )
        rest = folder[shared:]
        if whole and rest and rest[0] in parts:
            rest = rest[depth:]
        found.update(rest[:1])
    return tuple(sorted(found - used, key=natural))


def _shared(folder: Folders, around: Folders) -> int:
    """The number of folders at the beginning of both paths."""
    pairs = zip(folder, around, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _clean(part: str) -> str:
    """A part of a path as the name of a file or a folder."""
    text = re.sub(RESERVED, "_", printable(part)).strip()
    text = text.rstrip(". ") if os.name == "nt" else text
    return text if text.strip(". ") else ""


def _shortened(name: str) -> str:
    """The end of a name that every disk takes, which no folder of a class needs to be."""
    end = name[-MAX_NAME:]
    while len(end.encode()) > MAX_NAME_BYTES:
        end = end[1:]
    return end if end == name else end.lstrip(". ") or "picture"


def _class_in(name: str) -> str:
    """The class in the name of a picture.

    >>> [_class_in(name) for name in ("cat_01.jpg", "7-3.png", "dog (2).png", "5.png")]
    ['cat', '7', 'dog', '5']
    """
    stem = name.rpartition(".")[0] or name
    return re.sub(r"[\s_.~-]*\(?\d+\)?$", "", stem) or stem


@dataclass(frozen=True)
class _Picture:
    """A picture as it is stored, and the number of frames of its file."""

    data: bytes
    frames: int


def _reduced(data: bytes) -> _Picture:
    """A picture of one frame and at most `LARGEST` pixels. Raises the ImageErrors of `decode`."""
    image = open_picture(data)
    with reading_pixels():
        frames = count_frames(image, data)
        if frames == 1 and min(image.size) <= LARGEST and max(image.size) <= 4 * LARGEST:
            image.load()
            return _Picture(data, frames)
        return _Picture(_as_png(decode(data)), frames)


def _as_png(rgba: np.ndarray) -> bytes:
    """Colours (height, width, 4) in [0, 1] as a reduced PNG file."""
    image = Image.fromarray(np.rint(255 * rgba).astype(np.uint8), "RGBA")
    if rgba[..., 3].min() == 1:
        image = image.convert("RGB")
        red, green, blue = (np.asarray(plane) for plane in image.split())
        if (red == green).all() and (green == blue).all():
            image = image.convert("L")
    scale = LARGEST / min(image.size)
    if scale < 1:
        width, height = (max(1, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BOX)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _negative(data: bytes) -> bytes:
    rgba = decode(data)
    alpha = rgba[..., 3:]
    page = rgba[..., :3] * alpha + (1 - alpha)  # transparent is white, as for training
    return _as_png(np.concatenate([1 - page, np.ones_like(alpha)], axis=2))
