"""A folder of images of any sizes and formats as a data set, with one subfolder per class.

    photos/cats/1.jpg                    photos/train/cats/1.jpg
    photos/dogs/2.png                    photos/test/dogs/2.png

Folders `train` and `test`, in upper or lower case, are the training and the test set. Without them,
a hash of its name decides whether a file belongs to the test set, as a fifth of the files do. The
split is then the same on every machine and stable when files are added or removed. In a small class
it may by chance be too uneven, which `_choose_test_files` corrects. Decoded images are cached in
the data folder under a fingerprint of the files' names and contents, so that a large folder is
decoded only once.
"""

import contextlib
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from PIL import ExifTags, Image

from densembed.data import cifar
from densembed.data.class_folders import (
    ClassFile,
    Listing,
    class_label,
    empty_note,
    fault_notes,
    find_parts,
    folder_name,
    folder_stamp,
    list_files,
    part_word,
    subfolders,
    unreadable,
)
from densembed.data.dataset import Dataset, Split, known_notes
from densembed.data.decode import (
    FORMATS,
    ImageError,
    UnreadableError,
    open_picture,
    read_bytes,
    reading_pixels,
)
from densembed.data.download import stoppable
from densembed.data.folder_advice import check_classes
from densembed.data.frames import count_frames, unused_note
from densembed.data.images import to_shape
from densembed.data.levels import faint_note, levels
from densembed.data.names import MAX_NAME, PREFIX, DataError
from densembed.text import counted, listed, natural, printable, quoted

SIZE, MOST_SIDE = 32, 64
"""Images are resized to 32 × 32, unless all have the same size of at most 64 × 64 or the name of
the data set contains a shape."""
MAX_SIDE = 256
TEST_SHARE = 5
"""One file in so many is a test image if there is no folder `test`."""
LEAST_TESTED, MOST_TESTED = 10, 3
"""At least a tenth and at most a third of a class are test images, but one in a class of two or
more."""
RULES = 10
"""Version of the decoding. A new version invalidates the cache."""
CACHE = "folders"
MAX_CACHES = 8
GREY_MODES = ("1", "L", "LA", "I", "F")
EXAMPLE = "folder:photos, or folder:photos@3x48x48 for a shape of channels, height and width"

Shape = tuple[int, int, int]
"""Channels, height and width."""
Summary = dict[str, Any]
"""Classes, title, notes and paths of files that are no images, as JSON in a cache file."""
T = TypeVar("T")


class Head(NamedTuple):
    """What is known of an image file before its pixels are decoded."""

    format: str
    size: tuple[int, int]
    """Width and height."""
    grey: bool
    frames: int
    deep: bool
    """Whether its brightness has `levels`."""


OF_CIFAR = Head("JPEG", (SIZE, SIZE), grey=False, frames=1, deep=False)
"""The head of every file in a folder that was made from CIFAR-10."""


@dataclass(frozen=True)
class Folder:
    """The data set `folder:PATH` or `folder:PATH@CxHxW`.

    A relative PATH refers to the working directory or, if it does not exist there, to the data
    folder. A checkpoint can then name its data independently of the machine.
    """

    name: str
    path: Path
    shape: Shape | None

    @classmethod
    def parse(cls, name: str, data_dir: Path | None = None) -> "Folder":
        """The folder for the name of a data set.

        The path may contain an `@`. The text after the last one is a shape if it has the form of
        a shape and either the path before it exists or the path with it does not. A path that
        ends in a slash has no shape.

        Raises DataError if the path is missing or the shape is out of range.
        """
        whole_path = name.removeprefix(PREFIX)
        path, _, suffix = whole_path.rpartition("@")
        match = re.fullmatch(r"(\d{1,4})x(\d{1,4})x(\d{1,4})", suffix, re.ASCII)
        plain = cls(name, Path(os.path.expanduser(whole_path)), None)
        if not whole_path.strip() or "\0" in whole_path or (match and not path.strip()):
            raise DataError(f"The path of the folder is missing: write {EXAMPLE}.")
        if not match:
            return plain
        channels, height, width = map(int, match.groups())
        shape = (channels, height, width)
        folder = cls(name, Path(os.path.expanduser(path)), shape)
        if plain.available(data_dir) and not folder.available(data_dir):
            return plain
        if shape[0] not in (1, 3) or not all(1 <= side <= MAX_SIDE for side in shape[1:]):
            raise DataError(
                f"A shape has 1 or 3 channels and sides of at most {MAX_SIDE} pixels; got {suffix}."
            )
        return folder

    @staticmethod
    def named(path: str, shape: str = "") -> str:
        """The name of the data set for a path and a shape, such that `parse` returns both."""
        suffix = f"@{shape}" if shape else ""
        exact = f"{PREFIX}{path}{suffix}"
        try:
            has_shape = Folder.parse(exact).shape is not None
        except DataError:  # a shape out of range
            has_shape = True
        parsed = exact.rpartition("@")[0] if has_shape else exact
        # With the slash, `parse` returns both even if another folder has the whole name.
        return exact if parsed == PREFIX + path else f"{PREFIX}{path}/{suffix}"

    def root(self, data_dir: Path) -> Path:
        """The path of the folder, which need not exist."""
        inside = data_dir / self.path
        return inside if not os.path.isdir(self.path) and os.path.isdir(inside) else self.path

    def available(self, data_dir: Path | None) -> bool:
        return os.path.isdir(self.path if data_dir is None else self.root(data_dir))

    def title(self, data_dir: Path) -> str:
        """The display name, which never contains the parent folders. Reads one image at most."""
        root = self.root(data_dir)
        try:
            folders = subfolders(root / find_parts(root).get("train", ""))
            files = sorted(Path(folders[0].path).glob("[!.]*"))[:1] if folders else []
            return _title(root, [printable(one.name) for one in folders], map(_read_head, files))
        except (OSError, DataError, ImageError):
            return _own_name(self.path)

    def load(self, data_dir: Path) -> Dataset:
        """Load the images, which are decoded once for each version of the folder.

        Raises DataError if the folder does not exist, has fewer than two classes, or no images.
        """
        root = self.root(data_dir)
        if not os.path.isdir(root):
            before, at, suffix = os.fspath(self.path).rpartition("@")
            if (
                at
                and "/" not in suffix
                and os.path.isdir(replace(self, path=Path(before)).root(data_dir))
            ):
                raise DataError(
                    f"The folder {quoted(before)} exists, but {quoted(suffix)} is not a shape of "
                    "channels, height and width, such as 3x48x48."
                )
            raise DataError(f"The folder {quoted(self.path)} {_trouble(root)}: check the path.")
        return _load(self.name, root.absolute(), self.shape, data_dir, folder_stamp(root))


def reread() -> None:
    """Let the next `Folder.load` look at every file, since images may be overwritten in place."""
    _load.cache_clear()


def _own_name(path: Path) -> str:
    return printable(path.name or path.absolute().name or "pictures")[:MAX_NAME]


def _trouble(path: Path) -> str:
    """The reason why a path cannot be used as a folder."""
    try:
        os.stat(path)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        return "was not found" if missing else f"cannot be read ({error.strerror})"
    return "is not a folder"


def _title(root: Path, classes: Sequence[str], heads: Iterable[Head]) -> str:
    """The name of the folder, or that of CIFAR-10 for a folder with its classes and format."""
    if tuple(classes) == cifar.CLASSES and set(heads) == {OF_CIFAR}:
        return f"{cifar.DATA.title} (JPEG)"
    return _own_name(root)


def _choose_test_files(files: Iterable[ClassFile]) -> set[ClassFile]:
    """The test files of a folder without parts.

    In each class, these are the files whose hash is divisible by `TEST_SHARE`. If they are fewer
    than a tenth of the class, further files follow in the order of their hashes; if they are more
    than a third, the last ones are left out.
    """
    chosen: set[ClassFile] = set()
    classes = defaultdict(list)
    for file in files:
        classes[file.label].append(file)
    for members in classes.values():
        if len(members) < 2:
            continue
        members.sort(key=lambda file: (file.digest % TEST_SHARE != 0, file.digest))
        count = sum(file.digest % TEST_SHARE == 0 for file in members)
        least, most = len(members) // LEAST_TESTED, len(members) // MOST_TESTED
        chosen.update(members[: min(max(count, least, 1), max(most, 1))])
    return chosen


def _fingerprint(root: Path, files: list[ClassFile], shape: Shape | None) -> str:
    """A key of all names and contents."""
    # Sizes and times would not tell two files from each other that were exchanged.
    contents = [(file.path, _content(root / file.path)) for file in stoppable(files)]
    text = json.dumps([RULES, FORMATS, folder_name(root), shape, contents])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _content(path: Path) -> str:
    """A key of the content of a file, or what is wrong with it."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except ImageError as error:
        return error.which


@lru_cache(maxsize=2)
def _load(
    name: str, root: Path, shape: Shape | None, data_dir: Path, stamp: tuple[int, ...]
) -> Dataset:
    try:
        listing = list_files(root)
        cache = data_dir / CACHE / f"{_fingerprint(root, listing.files, shape)}.safetensors"
        decoded = _read_cache(cache)
        if decoded is None:
            decoded, whole = _decode_all(root, listing, shape)
            if whole:  # else the next process tries again
                _write_cache(cache, *decoded)
    except OSError as error:
        raise unreadable(root, error) from error
    summary, tensors = decoded
    dataset = Dataset(
        name,
        summary["title"],
        tuple(summary["classes"]),
        Split(tensors["train_images"], tensors["train_labels"]),
        Split(tensors["test_images"], tensors["test_labels"]),
        tuple(sorted(summary["left_out"], key=natural)),
    )
    folders = [name for parts in listing.classes.values() for name in parts.values()]
    known = known_notes(dataset.train.images, dataset.test.images)
    notes = (*_notes(dataset, folders), *known, *summary["notes"], *listing.notes)
    return replace(dataset, notes=notes)


def _notes(dataset: Dataset, folders: Iterable[str]) -> list[str]:
    """Sentences about the classes, given the names of their folders."""
    names = {class_label(folder): folder for folder in folders}
    notes = [
        f"The name of a folder is not valid UTF-8: its class is called '{label}'."
        for label, name in names.items()
        if label in dataset.classes and re.search("[\ud800-\udfff]", name)
    ]
    if empty := [label for label in names if label not in dataset.classes]:
        notes.append(empty_note(empty))
    if parts := [label for label in dataset.classes if part_word(label)]:
        notes.append(f"Folders with names like train or test are used as classes: {listed(parts)}.")
    if untested := [label for label in dataset.classes if label not in dataset.tested]:
        notes.append(
            f"The test error does not cover classes without test images: {listed(untested)}."
        )
    return notes


def _decode_all(
    root: Path, listing: Listing, shape: Shape | None
) -> tuple[tuple[Summary, dict[str, torch.Tensor]], bool]:
    """Decode all images; returns their summary and tensors, and whether all files were read."""
    files = listing.files
    faults: dict[str, str] = {}
    unread: set[str] = set()

    def tried(read: Callable[[Path], T], file: ClassFile) -> T | None:
        try:
            return read(root / file.path)
        except UnreadableError as error:
            if os.path.isfile(root / file.path):  # a broken link or a pipe is no image
                faults[file.path] = error.which
                unread.add(file.path)
        except ImageError as error:
            if error.which:
                faults[file.path] = error.which
        return None

    threads = min(32, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        read = pool.map(lambda file: tried(_read_head, file), files, chunksize=256)
        pairs = [(file, head) for file, head in zip(files, stoppable(read), strict=True) if head]
        readable, heads = [file for file, _ in pairs], [head for _, head in pairs]
        common = shape or _common_shape(heads)
        decode = partial(to_shape, shape=common)
        decoded = pool.map(lambda file: tried(decode, file), readable, chunksize=256)
        images = list(stoppable(decoded))
    valid = [
        (file, image) for file, image in zip(readable, images, strict=True) if image is not None
    ]
    has_parts = any(file.part for file in files)
    tested = set() if has_parts else _choose_test_files(file for file, _ in valid)
    tested |= {file for file, _ in valid if file.part == "test"}
    classes = sorted({file.label for file, _ in valid if file not in tested}, key=natural)
    used = {file.path for file, _ in valid}
    left_out = [file.path for file in files if file.path not in used and file.path not in faults]
    notes = fault_notes(faults)
    check_classes(root, classes, tested, len(left_out), notes, listing.hidden)
    index = {name: k for k, name in enumerate(classes)}
    tensors = {}
    for part, test in (("train", False), ("test", True)):
        chosen = [(file, image) for file, image in valid if (file in tested) == test]
        tensors[f"{part}_images"] = torch.from_numpy(np.stack([image for _, image in chosen]))
        tensors[f"{part}_labels"] = torch.tensor([index[file.label] for file, _ in chosen])
    sizes = {head.size for head in heads}
    if not shape and sizes != {(common[2], common[1])}:
        reason = (
            "differ in size" if len(sizes) > 1 else f"have a side of more than {MOST_SIDE} pixels"
        )
        notes.append(
            f"The images {reason}, so they are cropped at the centre and scaled to {SIZE} × {SIZE} "
            "unless another shape is set."
        )
    deep = {file.path for file, head in pairs if head.deep}
    if faint := _faint_note([image for file, image in valid if file.path in deep]):
        notes.append(faint)
    summary: Summary = {
        "classes": classes,
        "left_out": [printable(path) for path in left_out],
        "title": _title(root, classes, heads),
        "notes": notes,
    }
    if frames := {file.path: head.frames for file, head in pairs if head.frames > 1}:
        summary["notes"] = [*notes, unused_note(frames)]
    return (summary, tensors), not unread


def _faint_note(images: Sequence[np.ndarray]) -> str | None:
    """The sentence about images whose brightness has `levels`, of all of them together."""
    which = f"{counted(len(images), 'image')} that {'is' if len(images) == 1 else 'are'} not 8-bit"
    return faint_note(which, np.stack(images)) if images else None


SIDEWAYS = range(5, 9)
"""Orientations in EXIF of a picture that is shown with its axes exchanged."""


def _read_head(path: Path) -> Head:
    """Read the head of an image file. Raises the ImageErrors of `decode`."""
    data = read_bytes(path)
    image = open_picture(data)
    grey = image.mode in GREY_MODES or image.mode.startswith("I;16")
    with reading_pixels():
        # Pillow's own method for a PNG decodes the picture first.
        turned = Image.Image.getexif(image).get(ExifTags.Base.Orientation, 1) in SIDEWAYS
        frames = count_frames(image, data)
    size = image.size[::-1] if turned else image.size
    return Head(str(image.format), size, grey, frames, bool(levels(image)))


def _common_shape(heads: Sequence[Head]) -> Shape:
    """One channel if all images are grey, and their size if it is small and the same for all."""
    sizes = {head.size for head in heads}
    width, height = sizes.pop() if len(sizes) == 1 else (SIZE, SIZE)
    if max(width, height) > MOST_SIDE:
        width, height = SIZE, SIZE
    return 1 if heads and all(head.grey for head in heads) else 3, height, width


def _read_cache(path: Path) -> tuple[Summary, dict[str, torch.Tensor]] | None:
    try:
        with safetensors.safe_open(path, "pt") as file:
            summary = json.loads(file.metadata()["told"])
            return summary, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception:  # missing or damaged: the images are decoded again
        return None


def _write_cache(path: Path, summary: Summary, tensors: dict[str, torch.Tensor]) -> None:
    """Write a cache file and delete the oldest beyond `MAX_CACHES`. A full disk is not an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        safetensors.torch.save_file(tensors, temporary, {"told": json.dumps(summary)})
        os.replace(temporary, path)
        ordered = sorted(path.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
        for old in ordered[:-MAX_CACHES]:
            old.unlink(missing_ok=True)
    except (OSError, safetensors.SafetensorError):
        with contextlib.suppress(OSError):
            temporary.unlink()
