"""Why a folder is not a data set of images, and what to change."""

import os
from pathlib import Path

from densembed.data.class_folders import (
    MEANT,
    MOST_COUNTED,
    PARTS,
    ClassFile,
    class_label,
    count_images,
    find_parts,
    has_image_suffix,
    hidden_note,
    part_word,
    shown_from,
    subfolders,
)
from densembed.data.names import MAX_CLASSES, MAX_NAME, DataError
from densembed.text import MOST_LISTED, counted, listed, natural, printable, quoted

DEEPEST = 3
"""Folders that could be meant are looked for in at most so many levels."""


def check_classes(
    root: Path,
    classes: list[str],
    tested: set[ClassFile],
    unread: int,
    notes: list[str],
    hidden: list[str],
) -> None:
    """Raise DataError if the images are no data set.

    Args:
        classes: those with training images.
        tested: the files of test images.
        unread: number of files that are no images or cannot be decoded.
        notes: sentences about images that are not used.
        hidden: entries with images that are hidden.
    """
    parts, shown = find_parts(root), shown_from(root, root)
    if len(classes) < 2 or (not parts and all(part_word(entry.name) for entry in subfolders(root))):
        raise DataError(
            f"The folder {shown} needs at least two subfolders with images, one for each class. "
            f"{_content_of(root)} "
            + (f"Files that are no images or cannot be decoded: {unread:,}. " if unread else "")
            + "".join(f"{note} " for note in notes)
            + (f"{hidden_note(hidden)} " if hidden else "")
            + (_unusable(root, classes) or _advice(root))
        )
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"The folder {shown} has {len(classes):,} classes, more than {MAX_CLASSES:,}: choose a "
            "folder with fewer subfolders."
        )
    if long := [name for name in classes if len(name) > MAX_NAME]:
        raise DataError(
            f"The name of the class {quoted(long[0][:40] + '…')} is longer than {MAX_NAME} "
            "characters: rename its folder."
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
            f"use only its folder {quoted(parts['train'])}, of whose images about a fifth is then "
            "used for testing."
            if parts
            else f"The folder {shown} has one image per class, so none can be used for testing: "
            "add more."
        )


def _unusable(root: Path, classes: list[str]) -> str:
    """A sentence about folders with files that should be images, none of which can be decoded."""
    names = [
        entry.name
        for entry in subfolders(root)
        if class_label(entry.name).strip() not in classes
        and any(has_image_suffix(file.name) for file in os.scandir(entry.path))
    ]
    if find_parts(root) or not names:
        return ""
    return f"No image in {listed(names)} can be decoded: replace the files."


def _content_of(root: Path) -> str:
    """A sentence about the folders and the number of images in each."""
    names = list(find_parts(root).values()) or [entry.name for entry in subfolders(root)]
    if not names:
        return f"It has {count_images(root)} and no subfolders."
    counts = []
    for name in names[:MOST_LISTED]:
        inner = len(subfolders(root / name))
        within = f" in {counted(inner, 'subfolder')}" if inner else ""
        counts.append(f"{quoted(name)} ({count_images(root / name)}{within})")
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return f"It has {', '.join(counts)}{more}."


def _advice(root: Path) -> str:
    """How to make a data set of the folder, in a sentence."""
    parts, names = find_parts(root), [entry.name for entry in subfolders(root)]
    if not parts and _has_likely_parts(root):
        renames = []
        for part in PARTS:  # one folder for each: prefer "test" to "testing", and that to "val"
            likely = [name for name in names if MEANT.get(part_word(name)) == part]
            name = min(likely, key=lambda name: list(MEANT).index(part_word(name)))
            if name.strip().casefold() != part:
                renames.append(f"{quoted(name)} to '{part}'")
        return f"Rename {' and '.join(renames)}."
    inside = [quoted(folder.relative_to(root)) for folder in _data_sets_below(root)]
    if len(inside) == 1:
        return f"Use only its folder {inside[0]}."
    choice = f", or use only one of its folders {', '.join(inside[:MOST_LISTED])}" if inside else ""
    classes = [label for name in parts.values() or ("",) for label in subfolders(root / name)]
    if inside or any(subfolders(Path(label.path)) for label in classes):
        return f"Images must be directly in the folder of their class: move them up{choice}."
    if parts:
        return f"Create a folder for each class in {' and in '.join(map(quoted, parts.values()))}."
    return "Put the images of each class into a subfolder named after the class."


def _has_likely_parts(folder: Path) -> bool:
    return {MEANT.get(part_word(entry.name)) for entry in subfolders(folder)} >= set(PARTS)


def _data_sets_below(root: Path) -> list[Path]:
    """The folders of the first level with parts, or with images in two or more subfolders."""
    level = [root]
    for _ in range(DEEPEST):
        level = [Path(inner.path) for folder in level for inner in subfolders(folder)]
        if folders := [folder for folder in level[:MOST_COUNTED] if _is_data_set(folder)]:
            return folders
    return []


def _is_data_set(folder: Path) -> bool:
    with_images = (
        any(has_image_suffix(entry.name) for entry in os.scandir(inner.path))
        for inner in subfolders(folder)
    )
    return _has_likely_parts(folder) or sum(with_images) > 1
