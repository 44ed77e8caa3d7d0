"""A folder of pictures as a data set: one subfolder per class, any sizes, any formats.

    photos/cats/1.jpg                    photos/train/cats/1.jpg
    photos/dogs/2.png                    photos/test/dogs/2.png

Where there are folders `train` and `test`, in upper or lower case, they are the two parts. Else the
hash of a file's name decides whether it is for testing, as a fifth of them are: the same ones on
every machine, and as files come and go. In a small class these may by chance be too few or too
many, which `_for_testing` corrects. Decoded pictures are kept in the data folder under a
fingerprint of the files' names, sizes and times, so that a large folder is decoded once.
"""

import contextlib
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from PIL import Image, ImageOps

from densembed.data import cifar
from densembed.data.dataset import DataError, Dataset, Split
from densembed.data.decode import FORMATS, ImageError, decode, open_picture
from densembed.data.download import stoppable
from densembed.data.images import centre_crop
from densembed.text import natural, printable

PREFIX = "folder:"
SIZE, MOST_SIDE = 32, 64
"""Pictures are 32 × 32 unless all have one size of at most 64 × 64, or a shape is asked for."""
MOST_ASKED = 256
TEST_SHARE = 5
"""One file in so many is for testing where no folder says which."""
LEAST_TESTED, MOST_TESTED = 10, 3
"""But at least a tenth of a class and at most a third; and one in a class of two or more."""
RULES = 2
"""Counts up when the same files are to give other tensors: what was kept is then decoded again."""
PARTS = ("train", "test")
MEANT = {
    "training": "train", "testing": "test", "val": "test", "valid": "test", "validation": "test",
    "dev": "test",
}  # fmt: skip
"""Names of folders that are likely parts, and what to rename them to where that part is missing."""
MOST_COUNTED = 10_000
"""Files that are counted at most in a folder that is not used: it may be a whole disk."""
NAMED = 5
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
    def parse(cls, name: str, data_dir: Path | None = None) -> "Folder":
        """The folder of that name.

        An `@` may belong to the path: what follows the last one is a shape only where it looks
        like one, and the folder before it exists or that of the whole name does not. A path that
        ends in a slash is never cut.

        Raises DataError for a name without a path, or a shape out of range.
        """
        whole_path = name.removeprefix(PREFIX)
        place, _, asked = whole_path.rpartition("@")
        match = re.fullmatch(r"(\d{1,4})x(\d{1,4})x(\d{1,4})", asked, re.ASCII)
        plain = cls(name, Path(os.path.expanduser(whole_path)), None)
        if not whole_path.strip() or "\0" in whole_path or (match and not place.strip()):
            raise DataError(f"A folder of pictures needs its path; write {EXAMPLE}.")
        if not match:
            return plain
        shape = tuple(map(int, match.groups()))
        folder = cls(name, Path(os.path.expanduser(place)), shape)
        if plain.available(data_dir) and not folder.available(data_dir):
            return plain
        if shape[0] not in (1, 3) or not all(1 <= side <= MOST_ASKED for side in shape[1:]):
            raise DataError(
                f"Pictures have 1 or 3 channels and sides of at most {MOST_ASKED} pixels; "
                f"got {asked}."
            )
        return folder

    @staticmethod
    def named(path: str, shape: str = "") -> str:
        """The name for a path, which is never parsed, and a shape; undone by `parse`."""
        if shape:
            exact = f"{PREFIX}{path}@{shape}"
            # A whole name that exists, too, cannot do so within a folder that does not.
            return f"{PREFIX}{path}/@{shape}" if Folder._of(exact) != path else exact
        exact = PREFIX + path
        return exact + "/" if Folder._of(exact) != path else exact

    @staticmethod
    def _of(name: str) -> str:
        """The path within a name, as it is written there."""
        whole_path = name.removeprefix(PREFIX)
        try:
            cut = Folder.parse(name).shape
        except DataError:  # a shape out of range
            cut = True
        return whole_path.rpartition("@")[0] if cut else whole_path

    def root(self, data_dir: Path) -> Path:
        """Where the folder is, or would be."""
        inside = data_dir / self.path
        return inside if not os.path.isdir(self.path) and os.path.isdir(inside) else self.path

    def available(self, data_dir: Path | None) -> bool:
        return os.path.isdir(self.path if data_dir is None else self.root(data_dir))

    def title(self, data_dir: Path) -> str:
        """What it is called, by a look at its first picture: never where it lies."""
        try:
            return _title(self.root(data_dir), *_first_look(self.root(data_dir)))
        except (OSError, DataError):
            return _own_name(self.path)

    def load(self, data_dir: Path) -> Dataset:
        """Its pictures, decoded once for each version of the folder.

        Raises DataError where the folder is gone, has fewer than two classes, or no pictures.
        """
        root = self.root(data_dir)
        if not os.path.isdir(root):
            raise DataError(
                f"The folder {_shown(self.path)} {_trouble(root)}: check the path, or name another "
                f"folder, like {EXAMPLE}."
            )
        return _load(self.name, root.absolute(), self.shape, data_dir, _stamp(root))


def _own_name(path: Path) -> str:
    return printable(path.name or path.absolute().name or "pictures")[:MOST_NAME]


def _shown(path: str | os.PathLike) -> str:
    return f"'{printable(path)}'"


def _trouble(path: Path) -> str:
    """Why a path is no folder, by the operating system's reason."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return "was not found"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "is a file, not a folder"


def _title(root: Path, classes: Sequence[str], looks: Sequence[Look | None]) -> str:
    """The folder's own name, and for one that was made from CIFAR-10 just that."""
    made = ("JPEG", (SIZE, SIZE), False)
    if tuple(classes) == cifar.CLASSES and looks and all(look == made for look in looks):
        return f"{cifar.TITLE} (JPEG)"
    return _own_name(root)


def _first_look(root: Path) -> tuple[list[str], list[Look | None]]:
    """The classes, and what their first file is."""
    part = root / _parts(root).get("train", "")
    classes = [folder.name for folder in _folders(part)]
    files = sorted(path for path in (part / classes[0]).iterdir()) if classes else []
    return [printable(name) for name in classes], [_look(path) for path in files[:1]]


def _folders(root: str | os.PathLike) -> list[os.DirEntry]:
    with os.scandir(root) as found:
        return sorted(
            (entry for entry in found if entry.is_dir() and not entry.name.startswith(".")),
            key=lambda entry: natural(printable(entry.name)),
        )


def _parts(root: Path) -> dict[str, str]:
    """The names of the folders for training and for testing; empty where there are not both."""
    found = defaultdict(list)
    for entry in _folders(root):
        if entry.name.casefold() in PARTS:
            found[entry.name.casefold()].append(entry.name)
    if len(found) < len(PARTS):
        return {}
    for names in found.values():
        if len(names) > 1:
            raise DataError(
                f"The folder {_shown(root.name)} has {' and '.join(map(_shown, names))}: keep one "
                "of them, or rename the other."
            )
    return {part: found[part][0] for part in PARTS}


def _stamp(root: Path) -> tuple[int, ...]:
    """Changes when a file is added, removed or renamed; costs a look at the folders alone.

    A picture that is overwritten in place is noticed by the next process.
    """
    try:
        inner = _folders(root)
        deeper = [entry for folder in inner for entry in _folders(Path(folder.path))]
        return tuple(each.stat().st_mtime_ns for each in [root, *inner, *deeper])
    except OSError as error:
        raise _unreadable(root, error) from error


def _unreadable(root: Path, error: OSError) -> DataError:
    place = _from(root, Path(os.fsdecode(error.filename or root)))
    return DataError(f"The folder {place} cannot be read: {error.strerror}.")


def _from(root: Path, place: Path) -> str:
    """A place within a folder, beginning with its own name: never where it lies."""
    inside = place.relative_to(root) if place.is_relative_to(root) else place.name
    return _shown(Path(root.name) / inside)


@dataclass(frozen=True)
class _File:
    """A file of a class, its place relative to the root, and the part that its folder is of."""

    place: str
    label: str
    size: int
    time: int
    part: str

    @property
    def digest(self) -> int:
        name = self.place.rpartition("/")[2]
        found = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
        return int.from_bytes(found[:8], "big")


@dataclass
class _Found:
    """What is in a folder: the files and names of its classes, and what is not used."""

    files: list[_File] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _look_through(root: Path) -> _Found:
    """All files of all classes, in an order that is the same everywhere."""
    found, parts = _Found(), _parts(root)
    _note_loose(root, root, found)
    if parts:
        used = " and ".join(map(_shown, parts.values()))
        for folder in _folders(root):
            if folder.name not in parts.values():
                found.notes.append(
                    f"The folder {_shown(folder.name)} ({_count(folder.path)}) is not used: only "
                    f"{used} are."
                )
    for part in parts or ("",):
        inner = root / parts.get(part, "")
        if parts:
            _note_loose(root, inner, found)
        for folder in _folders(inner):
            _add_class(found, folder, part, parts.get(part, ""))
    return found


def _note_loose(root: Path, folder: Path, found: _Found) -> None:
    """Count the pictures beside the folders of the classes."""
    if count := sum(_is_named_as_picture(name) for name in _plain_files(folder)):
        found.notes.append(
            f"{_pictures(count)} directly in {_from(root, folder)}, outside the folders of the "
            f"classes, {'is' if count == 1 else 'are'} not used."
        )


def _plain_files(folder: Path) -> list[str]:
    with os.scandir(folder) as inside:
        return [entry.name for entry in inside if not entry.is_dir()]


def _add_class(found: _Found, folder: os.DirEntry, part: str, name: str) -> None:
    """Add the files of a class, in one part or in all."""
    label = printable(folder.name)
    if found.classes.setdefault(label, folder.name) != folder.name:
        raise DataError(f"Two folders both read as {label!r}: rename one of them.")
    with os.scandir(folder.path) as inside:
        entries = [entry for entry in inside if not entry.name.startswith(".")]
    for entry in sorted(entries, key=lambda entry: entry.name):
        place = "/".join(filter(None, (name, folder.name, entry.name)))
        if entry.is_file():
            told = entry.stat()
            # Whole seconds: what an archive keeps of a file's time.
            found.files.append(_File(place, label, told.st_size, int(told.st_mtime), part))
        elif entry.is_dir():
            found.notes.append(
                f"The folder {_shown(place)} ({_count(entry.path)}) is not used: pictures of a "
                f"class lie directly in the folder of the class."
            )
        else:
            found.strange.append(place)  # a broken link, for example


def _is_named_as_picture(name: str) -> bool:
    ending = os.path.splitext(name)[1].lower()
    return not name.startswith(".") and Image.registered_extensions().get(ending) in FORMATS


def _count(folder: str | os.PathLike) -> str:
    """How many pictures lie in a folder and in all below it, by the endings of their names."""
    pictures = looked = 0
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        pictures += sum(map(_is_named_as_picture, names))
        looked += len(names) + len(folders)
        if looked > MOST_COUNTED:
            return f"{pictures:,} pictures or more"
    return _pictures(pictures)


def _pictures(count: int) -> str:
    return f"{count:,} picture{'' if count == 1 else 's'}" if count else "no pictures"


def _for_testing(files: Iterable[_File]) -> set[_File]:
    """The files for testing of one folder without parts, class by class.

    Those whose hash says so; the next ones in the order of the hashes where they are fewer than a
    tenth of the class, and only the first ones where they are more than a third.
    """
    chosen: set[_File] = set()
    classes = defaultdict(list)
    for file in files:
        classes[file.label].append(file)
    for own in classes.values():
        if len(own) < 2:
            continue
        own.sort(key=lambda file: (file.digest % TEST_SHARE != 0, file.digest))
        count = sum(file.digest % TEST_SHARE == 0 for file in own)
        least, most = len(own) // LEAST_TESTED, len(own) // MOST_TESTED
        chosen.update(own[: min(max(count, least, 1), max(most, 1))])
    return chosen


def _fingerprint(root: Path, files: list[_File], shape) -> str:
    places = [(file.place, file.size, file.time) for file in files]
    told = json.dumps([RULES, FORMATS, root.name, shape, places])
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:32]


@lru_cache(maxsize=2)
def _load(name: str, root: Path, shape, data_dir: Path, stamp: tuple) -> Dataset:
    try:
        found = _look_through(root)
        kept = data_dir / CACHE / f"{_fingerprint(root, found.files, shape)}.safetensors"
        decoded = _read_cache(kept)
        if decoded is None:
            decoded = _decode_all(root, found, shape)
            _write_cache(kept, *decoded)
    except OSError as error:
        raise _unreadable(root, error) from error
    told, tensors = decoded
    dataset = Dataset(
        name,
        told["title"],
        tuple(told["classes"]),
        Split(tensors["train_images"], tensors["train_labels"]),
        Split(tensors["test_images"], tensors["test_labels"]),
        tuple(sorted([*told["left_out"], *map(printable, found.strange)], key=natural)),
    )
    return replace(dataset, notes=(*_notes(dataset, found.classes), *found.notes))


def _notes(dataset: Dataset, names: dict[str, str]) -> list[str]:
    """What is to be said of the classes, by their folders' names."""
    notes = [
        f"The name of a class's folder is not valid UTF-8: the class is called '{label}'."
        for label, name in names.items()
        if label in dataset.classes and not _is_unicode(name)
    ]
    if empty := [label for label in names if label not in dataset.classes]:
        notes.append(f"Without pictures, and so no classes: {_listed(empty)}.")
    if untested := [label for label in dataset.classes if label not in dataset.tested]:
        notes.append(
            f"Without test pictures: {_listed(untested)}. The test error does not cover "
            f"{'this class' if len(untested) == 1 else 'these classes'}."
        )
    return notes


def _is_unicode(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(map(_shown, names[:NAMED])) + (f" and {more:,} more" if more > 0 else "")


def _decode_all(root: Path, found: _Found, shape) -> tuple[dict, dict[str, torch.Tensor]]:
    """All pictures as tensors, and what is told of them."""
    files = found.files
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
    whole_folder = not any(file.part for file in files)
    tested = _for_testing(file for file, _ in sound) if whole_folder else set()
    tested |= {file for file, _ in sound if file.part == "test"}
    classes = sorted({file.label for file, _ in sound if file not in tested}, key=natural)
    _check(root, classes, tested, len(files) - len(sound))
    index = {name: k for k, name in enumerate(classes)}
    tensors = {}
    for part, test in (("train", False), ("test", True)):
        chosen = [(file, picture) for file, picture in sound if (file in tested) == test]
        tensors[f"{part}_images"] = torch.from_numpy(np.stack([picture for _, picture in chosen]))
        tensors[f"{part}_labels"] = torch.tensor([index[file.label] for file, _ in chosen])
    kept = {file.place for file, _ in sound}
    told = {
        "classes": classes,
        "left_out": [printable(file.place) for file in files if file.place not in kept],
        "title": _title(root, classes, looks),
    }
    return told, tensors


def _check(root: Path, classes: list[str], tested: set[_File], unread: int) -> None:
    parts = _parts(root)
    likely = [entry.name.casefold() in (*PARTS, *MEANT) for entry in _folders(root)]
    if len(classes) < 2 or (not parts and all(likely)):
        raise DataError(
            f"The folder {_shown(root.name)} needs at least two subfolders with pictures, one for "
            f"each class. {_seen(root)} "
            + (f"Files that cannot be read as pictures: {unread:,}. " if unread else "")
            + _advice(root)
        )
    if any(len(name) > MOST_NAME for name in classes) or len(classes) > 1000:
        raise DataError(
            f"The folder {_shown(root.name)} has more than 1,000 classes, or one with a name of "
            f"more than {MOST_NAME} characters."
        )
    if unknown := sorted({file.label for file in tested} - set(classes), key=natural):
        raise DataError(
            f"The class {_shown(unknown[0])} has pictures to test and none to train on: put some "
            f"into '{printable(parts['train'])}/{unknown[0]}'."
        )
    if not tested:
        raise DataError(
            f"There is nothing to test on. {_seen(root)} Put pictures into "
            f"'{printable(parts['test'])}/{classes[0]}' and the like."
            if parts
            else f"The folder {_shown(root.name)} has one picture for each class, so none can be "
            "kept for testing: add more."
        )


def _seen(root: Path) -> str:
    """Which folders there are, and how many pictures are in each."""
    parts = _parts(root).values()
    places = [(name, root / name) for name in parts] or [
        (entry.name, Path(entry.path)) for entry in _folders(root)
    ]
    if not places:
        return f"It has no subfolders, and {_count(root)} of its own."
    told = []
    for name, place in places[:NAMED]:
        inner = len(_folders(place))
        within = f" in {inner:,} subfolder{'' if inner == 1 else 's'}" if inner else ""
        told.append(f"{_shown(name)} ({_count(place)}{within})")
    more = f" and {len(places) - NAMED:,} more" if len(places) > NAMED else ""
    return f"It has {', '.join(told)}{more}."


def _advice(root: Path) -> str:
    """What to rename, move or name instead, so that a folder becomes a data set."""
    if parts := _parts(root):
        used = " and in ".join(map(_shown, parts.values()))
        return f"Make a folder for each class in {used}."
    names = [entry.name for entry in _folders(root)]
    if not names:
        return "Put the pictures of each class into a subfolder named after the class."
    meant = {name: MEANT.get(name.casefold(), name.casefold()) for name in names}
    likely = {name: part for name, part in meant.items() if part in PARTS}
    if set(likely.values()) == set(PARTS):
        # One folder for each part: "test" itself before "testing", and that before "val".
        order = ["train", "training", "test", "testing", *MEANT]
        chosen = {
            part: min((name for name in likely if likely[name] == part),
                      key=lambda name: order.index(name.casefold()))
            for part in PARTS
        }  # fmt: skip
        renames = [
            f"{_shown(name)} to '{part}'"
            for part, name in chosen.items()
            if name.casefold() != part
        ]
        return f"Rename {' and '.join(renames)}."
    if len(names) == 1 or likely:
        inner = root / next(iter(likely or names))
        while len(deeper := _folders(inner)) == 1:
            inner = Path(deeper[0].path)
        if deeper:
            return f"If the classes are in {_from(root, inner)}, name that folder instead."
    if any(_folders(root / name) for name in names):
        return "Pictures must lie directly in the folder of their class: move them up."
    return "Put the pictures of each class into a subfolder named after the class."


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
        return centre_crop(decode(data), channels, (height, width)).numpy()
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
