"""A folder of images of any sizes and formats as a data set, with one subfolder per class.

    photos/cats/1.jpg                    photos/train/cats/1.jpg
    photos/dogs/2.png                    photos/test/dogs/2.png

Folders `train` and `test`, in upper or lower case, are the training and the test set. Without them,
a hash of its name decides whether a file belongs to the test set, as a fifth of the files do. The
split is then the same on every machine and stable when files are added or removed. In a small class
it may by chance be too uneven, which `_choose_test_files` corrects. Decoded images are cached in
the data folder under a fingerprint of the files' names, sizes and times, so that a large folder is
decoded only once.
"""

import contextlib
import hashlib
import json
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from PIL import Image

from densembed.data import cifar
from densembed.data.dataset import Dataset, Split
from densembed.data.decode import FORMATS, ImageError, open_picture, read_bytes
from densembed.data.download import stoppable
from densembed.data.frames import count_frames, unused_note
from densembed.data.images import to_shape
from densembed.data.names import PREFIX, DataError
from densembed.text import MOST_LISTED, listed, natural, printable, quoted

SIZE, MOST_SIDE = 32, 64
"""Images are resized to 32 × 32, unless all have the same size of at most 64 × 64 or the name of
the data set contains a shape."""
MAX_SIDE = 256
TEST_SHARE = 5
"""One file in so many is a test image if there is no folder `test`."""
LEAST_TESTED, MOST_TESTED = 10, 3
"""At least a tenth and at most a third of a class are test images, but one in a class of two or
more."""
RULES = 4
"""Version of the decoding. A new version invalidates the cache."""
PARTS = ("train", "test")
MEANT = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing", "val", "valid", "validation"), "test"),
    **dict.fromkeys(("dev", "eval", "evaluation"), "test"),
}
"""Words in likely names for the folders of training and test images, in order of preference."""
FILLERS = "set|data|dataset|images|imgs|pictures|photos|split"
DEEPEST = 3
"""Folders that could be meant are looked for in at most so many levels."""
MOST_COUNTED = 10_000
"""Limit for counting the files of an unused folder, which may be a whole disk."""
CACHE = "folders"
MAX_CACHES = 8
GREY_MODES = ("1", "L", "LA", "I", "F")
MAX_NAME = 200
EXAMPLE = "folder:photos, or folder:photos@3x48x48 for a shape of channels, height and width"

Head = tuple[str, tuple[int, int], bool, int]
"""Format of an image file, (width, height), whether it is grey, and the number of frames."""
Shape = tuple[int, int, int]
"""Channels, height and width."""
Summary = dict[str, Any]
"""Classes, title, notes and paths of files that could not be decoded, as JSON in a cache file."""


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
            folders = _folders(root / _parts(root).get("train", ""))
            files = sorted(Path(folders[0].path).glob("[!.]*"))[:1] if folders else []
            return _title(root, [printable(one.name) for one in folders], map(_read_head, files))
        except (OSError, DataError):
            return _own_name(self.path)

    def load(self, data_dir: Path) -> Dataset:
        """Load the images, which are decoded once for each version of the folder.

        Raises DataError if the folder does not exist, has fewer than two classes, or no images.
        """
        root = self.root(data_dir)
        if not os.path.isdir(root):
            raise DataError(
                f"The folder {quoted(self.path)} {_trouble(root)}: check the path, or name another "
                f"folder, like {EXAMPLE}."
            )
        return _load(self.name, root.absolute(), self.shape, data_dir, _stamp(root))


def _name(root: Path) -> str:
    """The name of a folder; the root of the file system has none."""
    return root.name or str(root)


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


def _title(root: Path, classes: Sequence[str], heads: Iterable[Head | None]) -> str:
    """The name of the folder, or that of CIFAR-10 for a folder with its classes and format."""
    if tuple(classes) == cifar.CLASSES and set(heads) == {("JPEG", (SIZE, SIZE), False, 1)}:
        return f"{cifar.DATA.title} (JPEG)"
    return _own_name(root)


def _folders(root: Path) -> list[os.DirEntry[str]]:
    with os.scandir(root) as entries:
        return sorted(
            (entry for entry in entries if entry.is_dir() and not _is_hidden(entry.name)),
            key=lambda entry: natural(printable(entry.name)),
        )


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _word(name: str) -> str:
    """The word in a name that tells a part of the data, or "": `train` for `Train_set`."""
    words = re.findall("[a-z]+", name.casefold())
    words = [re.sub(f"(?<=.)({FILLERS})$", "", word) for word in words]
    words = [word for word in words if not re.fullmatch(FILLERS, word)]
    return words[0] if len(words) == 1 and words[0] in MEANT else ""


def _parts(root: Path) -> dict[str, str]:
    """The names of the folders `train` and `test`, empty unless both exist."""
    parts = defaultdict(list)
    for entry in _folders(root):
        if (part := entry.name.strip().casefold()) in PARTS:
            parts[part].append(entry.name)
    if len(parts) < len(PARTS):
        return {}
    for names in parts.values():
        if len(names) > 1:
            raise DataError(
                f"The folder {quoted(_name(root))} has {' and '.join(map(quoted, names))}: keep "
                "one of them, or rename the other."
            )
    return {part: parts[part][0] for part in PARTS}


def _stamp(root: Path) -> tuple[int, ...]:
    """A key that changes when a file is added, removed or renamed. Reads the folders only.

    An image that is overwritten in place is noticed by the next process.
    """
    try:
        inner = _folders(root)
        deeper = [entry for folder in inner for entry in _folders(Path(folder.path))]
        entries = [*inner, *deeper]
        return root.stat().st_mtime_ns, *(entry.stat().st_mtime_ns for entry in entries)
    except OSError as error:
        raise _unreadable(root, error) from error


def _unreadable(root: Path, error: OSError) -> DataError:
    place = _shown_from(root, Path(os.fsdecode(error.filename or root)))
    return DataError(f"The folder {place} cannot be read: {error.strerror}.")


def _shown_from(root: Path, path: Path) -> str:
    """A path for messages, which begins with the folder and hides its parents."""
    inside = path.relative_to(root) if path.is_relative_to(root) else path.name
    return quoted(Path(_name(root)) / inside)


@dataclass(frozen=True)
class _File:
    """A file of a class: its path relative to the root, and the part, "" if there are no parts."""

    path: str
    label: str
    size: int
    time: int
    part: str

    @property
    def digest(self) -> int:
        name = unicodedata.normalize("NFC", self.path.rpartition("/")[2])
        digest = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
        return int.from_bytes(digest[:8], "big")


@dataclass
class _Listing:
    """The content of a folder.

    `classes` maps the names of classes, without spaces around them, to the names of their folders
    in each part, `hidden` lists hidden entries with images, and `notes` are sentences about what is
    not used.
    """

    files: list[_File] = field(default_factory=list)
    classes: dict[str, dict[str, str]] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _list_files(root: Path) -> _Listing:
    """List the files of all classes, in the same order on every machine."""
    listing, parts = _Listing(), _parts(root)
    for folder in _folders(root) if parts else []:
        if folder.name not in parts.values():
            used = " and ".join(map(quoted, parts.values()))
            listing.notes.append(
                f"The folder {quoted(folder.name)} ({_count(folder.path)}) is not used: only "
                f"{used} are."
            )
    places = {part: root / name for part, name in parts.items()} or {"": root}
    for place in dict.fromkeys((root, *places.values())):
        _note_loose(root, place, listing)
    for part, place in places.items():
        for folder in _folders(place):
            _add_class(root, listing, folder, part)
    if listing.hidden:
        listing.notes.append(hidden_note(listing.hidden))
    return listing


def _visible(root: Path, folder: str | Path, listing: _Listing) -> list[os.DirEntry]:
    """The entries of a folder by name. Hidden ones with images are listed."""
    with os.scandir(folder) as inside:
        entries = sorted(inside, key=lambda entry: entry.name)
    for entry in entries:
        if _is_hidden(entry.name) and any(map(has_image_suffix, _names_below(entry.path))):
            listing.hidden.append(os.path.relpath(entry.path, root))
    return [entry for entry in entries if not _is_hidden(entry.name)]


def _note_loose(root: Path, folder: Path, listing: _Listing) -> None:
    """Note the images outside of the folders of the classes."""
    entries = _visible(root, folder, listing)
    if count := sum(not entry.is_dir() and has_image_suffix(entry.name) for entry in entries):
        place = f"directly in {_shown_from(root, folder)}, outside the folders of the classes"
        listing.notes.append(f"Not used: {_images(count)} {place}.")


def _label(name: str) -> str:
    """The class of a folder. macOS may write é as two characters, which look the same as one."""
    return unicodedata.normalize("NFC", printable(name))


def _add_class(root: Path, listing: _Listing, folder: os.DirEntry, part: str) -> None:
    """Add the files of a class."""
    label = _label(folder.name)
    folders = listing.classes.setdefault(label.strip(), {})
    for other_part, other in folders.items():
        if part == other_part or label != _label(other):
            raise DataError(
                f"Two folders have the same displayed name, {quoted(other)} and "
                f"{quoted(folder.name)}: rename one of them."
            )
    folders[part] = folder.name
    for entry in _visible(root, folder.path, listing):
        path = Path(entry.path).relative_to(root).as_posix()
        if entry.is_dir():
            listing.notes.append(
                f"The folder {quoted(path)} ({_count(entry.path)}) is not used: images of a "
                "class must be directly in the folder of the class."
            )
        else:
            stat = entry.stat(follow_symlinks=entry.is_file())  # a link may be broken
            # Archives store times in whole seconds.
            listing.files.append(_File(path, label, stat.st_size, int(stat.st_mtime), part))


def hidden_note(paths: Sequence[str]) -> str:
    """The sentence about images that are not used because a name in their paths is hidden."""
    return f"Hidden images are not used: {listed(paths)}."


def has_image_suffix(name: str) -> bool:
    """Whether a file is an image, by its name."""
    ending = os.path.splitext(name)[1].lower()
    is_metadata = name.startswith("._")  # of macOS, beside an image of the same name
    return not is_metadata and Image.registered_extensions().get(ending) in FORMATS


def _names_below(path: str) -> Iterator[str]:
    """The name of a file, or of those in a folder and all below it, with "" for each folder."""
    if os.path.isfile(path):
        yield os.path.basename(path)
    for _, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (*names, *("" for _ in folders))


def _count(folder: str | Path) -> str:
    """The number of images in a folder and all below it, by their suffixes, in words."""
    names = list(islice(_names_below(os.fspath(folder)), MOST_COUNTED + 1))
    images = sum(map(has_image_suffix, names))
    return f"{images:,} images or more" if len(names) > MOST_COUNTED else _images(images)


def _images(count: int) -> str:
    return f"{count:,} image{'' if count == 1 else 's'}" if count else "no images"


def _choose_test_files(files: Iterable[_File]) -> set[_File]:
    """The test files of a folder without parts.

    In each class, these are the files whose hash is divisible by `TEST_SHARE`. If they are fewer
    than a tenth of the class, further files follow in the order of their hashes; if they are more
    than a third, the last ones are left out.
    """
    chosen: set[_File] = set()
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


def _fingerprint(root: Path, files: list[_File], shape: Shape | None) -> str:
    paths = [(file.path, file.size, file.time) for file in files]
    text = json.dumps([RULES, FORMATS, _name(root), shape, paths])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


@lru_cache(maxsize=2)
def _load(
    name: str, root: Path, shape: Shape | None, data_dir: Path, stamp: tuple[int, ...]
) -> Dataset:
    try:
        listing = _list_files(root)
        cache = data_dir / CACHE / f"{_fingerprint(root, listing.files, shape)}.safetensors"
        decoded = _read_cache(cache)
        if decoded is None:
            decoded = _decode_all(root, listing, shape)
            _write_cache(cache, *decoded)
    except OSError as error:
        raise _unreadable(root, error) from error
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
    notes = (*_notes(dataset, folders), *summary["notes"], *listing.notes)
    return replace(dataset, notes=notes)


def _notes(dataset: Dataset, folders: Iterable[str]) -> list[str]:
    """Sentences about the classes, given the names of their folders."""
    names = {_label(folder): folder for folder in folders}
    notes = [
        f"The name of a folder is not valid UTF-8: its class is called '{label}'."
        for label, name in names.items()
        if label in dataset.classes and re.search("[\ud800-\udfff]", name)
    ]
    if empty := [label for label in names if label not in dataset.classes]:
        notes.append(f"Folders without images, which are no classes: {listed(empty)}.")
    if parts := [label for label in dataset.classes if _word(label)]:
        notes.append(
            f"Folders whose names suggest a part of the data are used as classes: {listed(parts)}."
        )
    if untested := [label for label in dataset.classes if label not in dataset.tested]:
        notes.append(
            f"The test error does not cover classes without test images: {listed(untested)}."
        )
    return notes


def _decode_all(
    root: Path, listing: _Listing, shape: Shape | None
) -> tuple[Summary, dict[str, torch.Tensor]]:
    """Decode all images; returns their summary and tensors."""
    files = listing.files
    threads = min(32, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        read = pool.map(lambda file: _read_head(root / file.path), files, chunksize=256)
        pairs = [(file, head) for file, head in zip(files, stoppable(read), strict=True) if head]
        readable, heads = [file for file, _ in pairs], [head for _, head in pairs]
        common = shape or _common_shape(heads)
        decoded = pool.map(lambda file: to_shape(root / file.path, common), readable, chunksize=256)
        images = list(stoppable(decoded))
    valid = [
        (file, image) for file, image in zip(readable, images, strict=True) if image is not None
    ]
    has_parts = any(file.part for file in files)
    tested = set() if has_parts else _choose_test_files(file for file, _ in valid)
    tested |= {file for file, _ in valid if file.part == "test"}
    classes = sorted({file.label for file, _ in valid if file not in tested}, key=natural)
    _check(root, classes, tested, len(files) - len(valid), listing.hidden)
    index = {name: k for k, name in enumerate(classes)}
    tensors = {}
    for part, test in (("train", False), ("test", True)):
        chosen = [(file, image) for file, image in valid if (file in tested) == test]
        tensors[f"{part}_images"] = torch.from_numpy(np.stack([image for _, image in chosen]))
        tensors[f"{part}_labels"] = torch.tensor([index[file.label] for file, _ in chosen])
    decodable = {file.path for file, _ in valid}
    summary: Summary = {
        "classes": classes,
        "left_out": [printable(file.path) for file in files if file.path not in decodable],
        "title": _title(root, classes, heads),
        "notes": [],
    }
    if frames := {file.path: head[3] for file, head in pairs if head[3] > 1}:
        summary["notes"] = [unused_note(frames)]
    return summary, tensors


def _check(
    root: Path, classes: list[str], tested: set[_File], unread: int, hidden: list[str]
) -> None:
    parts = _parts(root)
    if len(classes) < 2 or (not parts and all(_word(entry.name) for entry in _folders(root))):
        raise DataError(
            f"The folder {quoted(_name(root))} needs at least two subfolders with images, one for "
            f"each class. {_content_of(root)} "
            + (f"Files that cannot be decoded: {unread:,}. " if unread else "")
            + (f"{hidden_note(hidden)} " if hidden else "")
            + _advice(root)
        )
    if any(len(name) > MAX_NAME for name in classes) or len(classes) > 1000:
        raise DataError(
            f"The folder {quoted(_name(root))} has more than 1,000 classes, or one with a name of "
            f"more than {MAX_NAME} characters."
        )
    if unknown := sorted({file.label for file in tested} - set(classes), key=natural):
        raise DataError(
            f"The class {quoted(unknown[0])} has test images but no training images: put some "
            f"into '{printable(parts['train'])}/{unknown[0]}'."
        )
    if not tested:
        raise DataError(
            f"There are no test images. {_content_of(root)} Put images into "
            f"{quoted(Path(parts['test'], classes[0]))} and the folders of the other classes, or "
            f"choose the folder {_shown_from(root, root / parts['train'])}, of whose images about "
            "a fifth is then used for testing."
            if parts
            else f"The folder {quoted(_name(root))} has one image per class, so none can be used "
            "for testing: add more."
        )


def _content_of(root: Path) -> str:
    """A sentence about the folders and the number of images in each."""
    names = list(_parts(root).values()) or [entry.name for entry in _folders(root)]
    if not names:
        return f"It has {_count(root)} and no subfolders."
    counts = []
    for name in names[:MOST_LISTED]:
        inner = len(_folders(root / name))
        within = f" in {inner:,} subfolder{'' if inner == 1 else 's'}" if inner else ""
        counts.append(f"{quoted(name)} ({_count(root / name)}{within})")
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return f"It has {', '.join(counts)}{more}."


def _advice(root: Path) -> str:
    """How to make a data set of the folder, in a sentence."""
    parts, names = _parts(root), [entry.name for entry in _folders(root)]
    if not parts and _has_likely_parts(root):
        renames = []
        for part in PARTS:  # one folder for each: prefer "test" to "testing", and that to "val"
            likely = [name for name in names if MEANT.get(_word(name)) == part]
            name = min(likely, key=lambda name: list(MEANT).index(_word(name)))
            if name.strip().casefold() != part:
                renames.append(f"{quoted(name)} to '{part}'")
        return f"Rename {' and '.join(renames)}."
    inside = [_shown_from(root, folder) for folder in _data_sets_below(root)]
    if len(inside) == 1:
        return f"Choose the folder {inside[0]} instead."
    choice = f", or choose one of {', '.join(inside[:MOST_LISTED])}" if inside else ""
    classes = [label for name in parts.values() or ("",) for label in _folders(root / name)]
    if inside or any(_folders(Path(label.path)) for label in classes):
        return f"Images must be directly in the folder of their class: move them up{choice}."
    if parts:
        return f"Create a folder for each class in {' and in '.join(map(quoted, parts.values()))}."
    return "Put the images of each class into a subfolder named after the class."


def _has_likely_parts(folder: Path) -> bool:
    return {MEANT.get(_word(entry.name)) for entry in _folders(folder)} >= set(PARTS)


def _data_sets_below(root: Path) -> list[Path]:
    """The folders of the first level with parts, or with images in two or more subfolders."""
    level = [root]
    for _ in range(DEEPEST):
        level = [Path(inner.path) for folder in level for inner in _folders(folder)]
        if folders := [folder for folder in level[:MOST_COUNTED] if _is_data_set(folder)]:
            return folders
    return []


def _is_data_set(folder: Path) -> bool:
    with_images = (
        any(has_image_suffix(entry.name) for entry in os.scandir(inner.path))
        for inner in _folders(folder)
    )
    return _has_likely_parts(folder) or sum(with_images) > 1


def _read_head(path: Path) -> Head | None:
    """Read the head of an image file; None if it is not an image."""
    try:
        data = read_bytes(path)
        image = open_picture(data)
    except ImageError:
        return None
    grey = image.mode in GREY_MODES or image.mode.startswith("I;16")
    return str(image.format), image.size, grey, count_frames(image, data)


def _common_shape(heads: Sequence[Head]) -> Shape:
    """One channel if all images are grey, and their size if it is small and the same for all."""
    sizes = {size for _, size, _, _ in heads}
    width, height = sizes.pop() if len(sizes) == 1 else (SIZE, SIZE)
    if max(width, height) > MOST_SIDE:
        width, height = SIZE, SIZE
    return 1 if heads and all(grey for _, _, grey, _ in heads) else 3, height, width


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
