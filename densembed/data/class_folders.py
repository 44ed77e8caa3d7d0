"""The files of a folder with one subfolder per class, and what is not used of it."""

import hashlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from PIL import Image

from densembed.data.decode import FORMATS
from densembed.data.names import DataError
from densembed.text import counted, listed, natural, printable, quoted

PARTS = ("train", "test")
MEANT = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing", "val", "valid", "validation"), "test"),
    **dict.fromkeys(("dev", "eval", "evaluation"), "test"),
}
"""Words in likely names for the folders of training and test images, in order of preference."""
FILLERS = "set|data|dataset|images|imgs|pictures|photos|split"
MOST_COUNTED = 10_000
"""Limit for counting the files of an unused folder, which may be a whole disk."""


def folder_name(root: Path) -> str:
    """The name of a folder; the root of the file system has none."""
    return root.name or str(root)


def subfolders(root: Path) -> list[os.DirEntry[str]]:
    with os.scandir(root) as entries:
        return sorted(
            (entry for entry in entries if _is(entry.is_dir) and not _is_hidden(entry.name)),
            key=lambda entry: natural(printable(entry.name)),
        )


def _is(kind: Callable[[], bool]) -> bool:
    """Whether an entry is of a kind, a method of it. A link to itself is of none."""
    try:
        return kind()
    except OSError:
        return False


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def part_word(name: str) -> str:
    """The word in a name that tells a part of the data, or "": `train` for `Train_set`."""
    words = re.findall("[a-z]+", name.casefold())
    words = [re.sub(f"(?<=.)({FILLERS})$", "", word) for word in words]
    words = [word for word in words if not re.fullmatch(FILLERS, word)]
    return words[0] if len(words) == 1 and words[0] in MEANT else ""


def find_parts(root: Path) -> dict[str, str]:
    """The names of the folders `train` and `test`, empty unless both exist."""
    parts = defaultdict(list)
    for entry in subfolders(root):
        if (part := entry.name.strip().casefold()) in PARTS:
            parts[part].append(entry.name)
    if len(parts) < len(PARTS):
        return {}
    for names in parts.values():
        if len(names) > 1:
            raise DataError(
                f"The folder {shown_from(root, root)} has {' and '.join(map(quoted, names))}: keep "
                "one of them, or rename the other."
            )
    return {part: parts[part][0] for part in PARTS}


def folder_stamp(root: Path) -> tuple[int, ...]:
    """A key that changes when a file is added, removed or renamed. Reads the folders only.

    An image that is overwritten in place is noticed after `folder.reread`.
    """
    try:
        inner = subfolders(root)
        deeper = [entry for folder in inner for entry in subfolders(Path(folder.path))]
        entries = [*inner, *deeper]
        return root.stat().st_mtime_ns, *(entry.stat().st_mtime_ns for entry in entries)
    except OSError as error:
        raise unreadable(root, error) from error


def unreadable(root: Path, error: OSError) -> DataError:
    place = shown_from(root, Path(os.fsdecode(error.filename or root)))
    return DataError(f"The folder {place} cannot be read: {error.strerror}.")


def shown_from(root: Path, path: Path) -> str:
    """A path for messages, which begins with the folder and hides its parents."""
    inside = path.relative_to(root) if path.is_relative_to(root) else path.name
    return quoted(Path(folder_name(root)) / inside)


@dataclass(frozen=True)
class ClassFile:
    """A file of a class: its path relative to the root, and the part, "" if there are no parts."""

    path: str
    label: str
    part: str

    @property
    def digest(self) -> int:
        name = unicodedata.normalize("NFC", self.path.rpartition("/")[2])
        digest = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
        return int.from_bytes(digest[:8], "big")


@dataclass
class Listing:
    """The content of a folder.

    `classes` maps the names of classes, without spaces around them, to the names of their folders
    in each part, `hidden` lists hidden entries with images, and `notes` are sentences about what is
    not used.
    """

    files: list[ClassFile] = field(default_factory=list)
    classes: dict[str, dict[str, str]] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def list_files(root: Path) -> Listing:
    """List the files of all classes, in the same order on every machine."""
    listing, parts = Listing(), find_parts(root)
    for folder in subfolders(root) if parts else []:
        if folder.name not in parts.values():
            used = " and ".join(map(quoted, parts.values()))
            listing.notes.append(
                f"The folder {quoted(folder.name)} ({count_images(folder.path)}) is not used: only "
                f"{used} are."
            )
    places = {part: root / name for part, name in parts.items()} or {"": root}
    for place in dict.fromkeys((root, *places.values())):
        _note_loose(root, place, listing)
    for part, place in places.items():
        for folder in subfolders(place):
            _add_class(root, listing, folder, part)
    if listing.hidden:
        listing.notes.append(hidden_note(listing.hidden))
    return listing


def _visible(root: Path, folder: str | Path, listing: Listing) -> list[os.DirEntry]:
    """The entries of a folder by name. Hidden ones with images are listed."""
    with os.scandir(folder) as inside:
        entries = sorted(inside, key=lambda entry: entry.name)
    for entry in filter(lambda entry: _is_hidden(entry.name), entries):
        unread: list[OSError] = []
        path = os.path.relpath(entry.path, root)
        if any(map(has_image_suffix, _names_below(entry.path, unread))):
            listing.hidden.append(path)
        elif unread:
            listing.notes.append(
                f"The hidden folder {quoted(path)} cannot be read ({unread[0].strerror}): images "
                "in it are not used."
            )
    return [entry for entry in entries if not _is_hidden(entry.name)]


def _note_loose(root: Path, folder: Path, listing: Listing) -> None:
    """Note the images outside of the folders of the classes."""
    entries = _visible(root, folder, listing)
    if count := sum(not _is(entry.is_dir) and has_image_suffix(entry.name) for entry in entries):
        place = f"directly in {shown_from(root, folder)}, outside the folders of the classes"
        listing.notes.append(f"Not used: {_images(count)} {place}.")


def class_label(name: str) -> str:
    """The class of a folder. macOS may write é as two characters, which look the same as one."""
    return unicodedata.normalize("NFC", printable(name))


def _add_class(root: Path, listing: Listing, folder: os.DirEntry, part: str) -> None:
    """Add the files of a class."""
    label = class_label(folder.name)
    if not label.strip():
        raise DataError(f"The name of the folder {quoted(folder.name)} is blank: rename it.")
    folders = listing.classes.setdefault(label.strip(), {})
    for other_part, other in folders.items():
        if part == other_part or label != class_label(other):
            alike = label == class_label(other) and printable(other) != printable(folder.name)
            show = ascii if alike else quoted  # é as one character or two
            raise DataError(
                f"Two folders have the same displayed name, {show(other)} and "
                f"{show(folder.name)}: rename one of them."
            )
    folders[part] = folder.name
    for entry in _visible(root, folder.path, listing):
        path = Path(entry.path).relative_to(root).as_posix()
        if _is(entry.is_dir):
            listing.notes.append(
                f"The folder {quoted(path)} ({count_images(entry.path)}) is not used: images of a "
                "class must be directly in the folder of the class."
            )
        else:
            listing.files.append(ClassFile(path, label, part))


def hidden_note(paths: Sequence[str]) -> str:
    """The sentence about images that are not used because a name in their paths is hidden."""
    return f"Hidden images and folders are not used: {listed(paths)}."


def empty_note(labels: Sequence[str]) -> str:
    """The sentence about folders of classes that have no image."""
    return f"Folders without a usable image directly in them are not used: {listed(labels)}."


def fault_notes(faults: Mapping[str, str]) -> list[str]:
    """Sentences about images that are not used, given the `ImageError.which` of each path."""
    alike = defaultdict(list)
    for path in sorted(faults, key=natural):
        alike[faults[path]].append(path)
    return [f"Files {which} are not used: {listed(alike[which])}." for which in sorted(alike)]


def has_image_suffix(name: str) -> bool:
    """Whether a file is an image, by its name."""
    ending = os.path.splitext(name)[1].lower()
    is_metadata = name.startswith("._")  # of macOS, beside an image of the same name
    return not is_metadata and Image.registered_extensions().get(ending) in FORMATS


def _names_below(path: str, unread: list[OSError]) -> Iterator[str]:
    """The name of a file, or of those in a folder and all below it, with "" for each folder.

    Errors of folders that cannot be read are added to `unread`.
    """
    if not os.path.isdir(path):
        yield os.path.basename(path) if os.path.isfile(path) else ""
    else:
        for _, folders, names in os.walk(path, onerror=unread.append):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            yield from (*names, *("" for _ in folders))


def count_images(folder: str | Path) -> str:
    """The number of images in a folder and all below it, by their suffixes, in words."""
    unread: list[OSError] = []
    names = list(islice(_names_below(os.fspath(folder), unread), MOST_COUNTED + 1))
    images = sum(map(has_image_suffix, names))
    count = f"{images:,} images or more" if len(names) > MOST_COUNTED else _images(images)
    if not unread:
        return count
    closed = f"{counted(len(unread), 'folder')} that cannot be read: {unread[0].strerror}"
    return f"{count} and {closed}" if names else f"cannot be read: {unread[0].strerror}"


def _images(count: int) -> str:
    return counted(count, "image") if count else "no images"
