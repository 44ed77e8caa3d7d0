"""A folder of pictures as a data set: a class a subfolder, any sizes, any formats.

    photos/cats/1.jpg                    photos/train/cats/1.jpg
    photos/dogs/2.png                    photos/test/dogs/2.png

Where there are `train` and `test` folders, they are the two parts. Else every file whose name's
hash says so, a fifth of them, is for testing: the same ones on every machine, and as files come
and go. Decoded pictures are kept in the data folder under a fingerprint of the files' names,
sizes and times, so that a large folder is decoded once.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from PIL import ImageOps

from densembed.data import cifar
from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.decode import FORMATS, ImageError, decode, open_picture
from densembed.data.download import stoppable
from densembed.data.images import whole

PREFIX = "folder:"
SIZE, MOST_SIDE = 32, 64
"""Pictures are 32 × 32 unless all have one size of at most 64 × 64, or a shape is asked for."""
MOST_ASKED = 256
TEST_SHARE = 5
"""One file in so many is for testing where no folder says which."""
CACHE = "folders"
MOST_CACHES = 8
GREY_MODES = ("1", "L", "LA", "I", "F")
MOST_NAME = 200
EXAMPLE = "folder:photos, or folder:photos@3x48x48 for a shape of channels, height and width"

Look = tuple[str, tuple[int, int], bool]
"""Format, (width, height) and whether it is grey."""


@dataclass(frozen=True)
class Folder:
    """The data set `folder:PATH` or `folder:PATH@CxHxW`.

    A PATH that is not absolute is looked for in the working directory and then in the data
    folder, so that a checkpoint can name its data without a person's own folders.
    """

    name: str
    path: Path
    shape: tuple[int, int, int] | None

    @classmethod
    def parse(cls, name: str) -> "Folder":
        """Raises DataError for a name that is none, or a shape out of range."""
        place, _, asked = name.removeprefix(PREFIX).rpartition("@")
        shape = None
        if place:
            match = re.fullmatch(r"(\d{1,4})x(\d{1,4})x(\d{1,4})", asked, re.ASCII)
            if not match:
                raise DataError(f"The shape after @ is none in {name[:80]!r}; write {EXAMPLE}.")
            shape = tuple(map(int, match.groups()))
            if shape[0] not in (1, 3) or not all(1 <= side <= MOST_ASKED for side in shape[1:]):
                raise DataError(
                    f"Pictures have 1 or 3 channels and sides of at most {MOST_ASKED} pixels; "
                    f"got {asked}."
                )
        place = place or asked
        if not place.strip():
            raise DataError(f"A folder of pictures needs its path; write {EXAMPLE}.")
        return cls(name, Path(place).expanduser(), shape)

    def root(self, data_dir: Path) -> Path:
        """Where the folder is, or would be."""
        inside = data_dir / self.path
        return inside if not self.path.is_dir() and inside.is_dir() else self.path

    def available(self, data_dir: Path) -> bool:
        return self.root(data_dir).is_dir()

    def title(self, data_dir: Path) -> str:
        """What it is called, by a look at its first picture: never where it lies."""
        try:
            return _title(self.root(data_dir), *_first_look(self.root(data_dir)))
        except OSError:
            return _own_name(self.path)

    def load(self, data_dir: Path) -> Dataset:
        """Its pictures, decoded once for each version of the folder.

        Raises DataError where the folder is gone, has fewer than two classes, or no pictures.
        """
        root = self.root(data_dir)
        if not root.is_dir():
            raise DataError(
                f"There is no folder {str(self.path)!r} any more or yet: put it back, or name "
                f"another one, like {EXAMPLE}."
            )
        return _load(self.name, root.absolute(), self.shape, data_dir, _stamp(root))


def _own_name(path: Path) -> str:
    return (path.name or path.absolute().name or "pictures")[:MOST_NAME]


def _title(root: Path, classes: Sequence[str], looks: Sequence[Look | None]) -> str:
    """The folder's own name, and for one that was made from CIFAR-10 just that."""
    made = ("JPEG", (SIZE, SIZE), False)
    if tuple(classes) == cifar.CLASSES and looks and all(look == made for look in looks):
        return f"{cifar.TITLE} (JPEG)"
    return _own_name(root)


def _first_look(root: Path) -> tuple[list[str], list[Look | None]]:
    """The classes, and what their first file is."""
    part = root / "train" if (root / "train").is_dir() and (root / "test").is_dir() else root
    classes = [folder.name for folder in _folders(part)]
    files = sorted(path for path in (part / classes[0]).iterdir()) if classes else []
    return classes, [_look(path) for path in files[:1]]


def _folders(root: Path) -> list[os.DirEntry]:
    with os.scandir(root) as found:
        return sorted(
            (entry for entry in found if entry.is_dir() and not entry.name.startswith(".")),
            key=lambda entry: entry.name,
        )


def _stamp(root: Path) -> tuple[int, ...]:
    """Changes when a file is added, removed or renamed; costs a look at the folders alone.

    A picture that is overwritten in place is noticed by the next process.
    """
    try:
        inner = _folders(root)
        deeper = [entry for folder in inner for entry in _folders(Path(folder.path))]
        return tuple(entry.stat().st_mtime_ns for entry in [*inner, *deeper])
    except OSError as error:
        raise DataError(f"The folder {root.name!r} cannot be read: {error.strerror}.") from error


@dataclass(frozen=True)
class _File:
    """A file of a class, its place relative to the root, and whether it is for testing."""

    place: str
    label: str
    size: int
    time: int
    test: bool


def _files(root: Path) -> list[_File]:
    """All files of all classes, in an order that is the same everywhere."""
    names = {entry.name for entry in _folders(root)}
    parts = ("train", "test") if {"train", "test"} <= names else ("",)
    found = []
    for part in parts:
        for folder in _folders(root / part):
            with os.scandir(folder.path) as inside:
                entries = [e for e in inside if e.is_file() and not e.name.startswith(".")]
            for entry in sorted(entries, key=lambda entry: entry.name):
                told = entry.stat()
                test = part == "test" if part else _for_testing(entry.name)
                place = "/".join(filter(None, (part, folder.name, entry.name)))
                # Whole seconds: what an archive keeps of a file's time.
                found.append(_File(place, folder.name, told.st_size, int(told.st_mtime), test))
    return found


def _for_testing(name: str) -> bool:
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % TEST_SHARE == 0


def _fingerprint(root: Path, files: list[_File], shape) -> str:
    told = json.dumps([FORMATS, root.name, shape, [(f.place, f.size, f.time) for f in files]])
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:32]


@lru_cache(maxsize=2)
def _load(name: str, root: Path, shape, data_dir: Path, stamp: tuple) -> Dataset:
    try:
        files = _files(root)
    except OSError as error:
        raise DataError(f"The folder {root.name!r} cannot be read: {error.strerror}.") from error
    kept = data_dir / CACHE / f"{_fingerprint(root, files, shape)}.safetensors"
    found = _read_cache(kept)
    if found is None:
        found = _decode_all(root, files, shape)
        _write_cache(kept, *found)
    told, tensors = found
    return Dataset(
        name,
        told["title"],
        tuple(told["classes"]),
        Split(tensors["train_images"], tensors["train_labels"]),
        Split(tensors["test_images"], tensors["test_labels"]),
        tuple(told["left_out"]),
    )


def _decode_all(root: Path, files: list[_File], shape) -> tuple[dict, dict[str, torch.Tensor]]:
    """All pictures as tensors, and what is told of them."""
    threads = min(32, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        seen = pool.map(lambda file: _look(root / file.place), files, chunksize=256)
        looks = list(stoppable(seen))
        readable = [file for file, look in zip(files, looks, strict=True) if look]
        looks = [look for look in looks if look]
        shape = shape or _common_shape(looks)
        read = pool.map(lambda file: _pixels(root / file.place, shape), readable, chunksize=256)
        pictures = list(stoppable(read))
    sound = [
        (file, picture)
        for file, picture in zip(readable, pictures, strict=True)
        if picture is not None
    ]
    classes = sorted({file.label for file, _ in sound if not file.test})
    _check(root, classes, [file for file, _ in sound])
    index = {name: k for k, name in enumerate(classes)}
    tensors = {}
    for part, test in (("train", False), ("test", True)):
        chosen = [(file, picture) for file, picture in sound if file.test == test]
        tensors[f"{part}_images"] = torch.from_numpy(np.stack([picture for _, picture in chosen]))
        tensors[f"{part}_labels"] = torch.tensor([index[file.label] for file, _ in chosen])
    kept = {file.place for file, _ in sound}
    told = {
        "classes": classes,
        "left_out": [file.place for file in files if file.place not in kept],
        "title": _title(root, classes, looks),
    }
    return told, tensors


def _check(root: Path, classes: list[str], files: list[_File]) -> None:
    if len(classes) < 2:
        raise DataError(
            f"The folder {root.name!r} needs two subfolders with pictures at least, one for each "
            f"class; it has {len(classes)}."
        )
    if any(len(name) > MOST_NAME for name in classes) or len(classes) > 1000:
        raise DataError(f"The folder {root.name!r} has too many classes or too long names.")
    tested = {file.label for file in files if file.test}
    if unknown := sorted(tested - set(classes)):
        raise DataError(
            f"The class {unknown[0]!r} has no pictures to train on: put some into "
            f"train/{unknown[0]}, or more into its folder."
        )
    if not tested:
        raise DataError(
            f"The folder {root.name!r} has too few pictures to set some aside for testing: add "
            "more, or make the folders train and test."
        )


def _look(path: Path) -> Look | None:
    """Format, size and whether it is grey, from the head of a file; None where it is no picture."""
    try:
        with open(path, "rb") as file:
            image = open_picture(file.read())
            grey = image.mode in GREY_MODES or image.mode.startswith("I;16")
            return image.format, image.size, grey
    except (ImageError, OSError):
        return None


def _common_shape(looks) -> tuple[int, int, int]:
    """One channel where all are grey; their size where it is the same small one for all."""
    sizes = {size for _, size, _ in looks}
    width, height = sizes.pop() if len(sizes) == 1 else (SIZE, SIZE)
    if max(width, height) > MOST_SIDE:
        width, height = SIZE, SIZE
    return 1 if looks and all(grey for _, _, grey in looks) else 3, height, width


def _pixels(path: Path, shape: tuple[int, int, int]) -> np.ndarray | None:
    """(C, H, W) uint8, None for a file that turns out to be damaged.

    A plain picture of the right size and mode is taken as it is, which is what the general way
    would make of it, some ten times faster.
    """
    channels, height, width = shape
    try:
        data = path.read_bytes()
        image = open_picture(data)
        if image.mode == ("L" if channels == 1 else "RGB") and image.size == (width, height):
            array = np.asarray(ImageOps.exif_transpose(image))
            if array.shape[:2] == (height, width):
                planes = array[None] if channels == 1 else array.transpose(2, 0, 1)
                return np.ascontiguousarray(planes)
        return whole(decode(data), channels, (height, width)).numpy()
    except Exception:  # Pillow's decoders raise nearly anything on damaged data
        return None


def _read_cache(path: Path) -> tuple[dict, dict[str, torch.Tensor]] | None:
    try:
        with safetensors.safe_open(path, "pt") as file:
            told = json.loads(file.metadata()["told"])
            return told, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception:  # not there, or half written by an older version: made again
        return None


def _write_cache(path: Path, told: dict, tensors: dict[str, torch.Tensor]) -> None:
    """Keep what was decoded, and at most `MOST_CACHES` of such files. A full disk is no fault."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        safetensors.torch.save_file(tensors, temporary, {"told": json.dumps(told)})
        os.replace(temporary, path)
        ordered = sorted(path.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
        for old in ordered[:-MOST_CACHES]:
            old.unlink(missing_ok=True)
    except (OSError, safetensors.SafetensorError):
        with contextlib.suppress(OSError):
            temporary.unlink()
