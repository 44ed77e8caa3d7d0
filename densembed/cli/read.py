"""The command read: predictions for image files, and for signals in CSV files."""

import argparse
import sys
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from densembed.cli.common import UsageError, named, print_json, warn
from densembed.cli.data import note_member, on_grid, read_signals
from densembed.data import DataError, as_input, is_outside
from densembed.data.decode import read_bytes
from densembed.data.frames import frames_note
from densembed.data.images import Content, ImageError, ModelInput, read_picture
from densembed.data.photograph import WHOLE, read_photograph
from densembed.data.table import split_rows, without_mark
from densembed.data.transform import scaled_images
from densembed.fields.doubt import Doubt, close_classes, doubts
from densembed.fields.field import logits
from densembed.fields.novelty import unlike_training
from densembed.files import read_regular
from densembed.text import listed, natural, printable, quoted
from densembed.training.checkpoint import Checkpoint

KEYS = (
    "file",
    "label",
    "seen",
    "polarity",
    "class",
    "probability",
    "unlike",
    "digits",
    "remark",
    "error",
)
"""Keys of each object that `--json` prints. `file` is the file's own name, which a script can open.
`digits` lists every digit in reading order; `class` is all of them, `probability` that of the least
certain one, `remark` a sentence about frames of the file that were not read."""
SIGNAL_KEYS = ("file", "line", "label", "class", "probability", "error")
"""Keys of each object that `--json` prints for a signal."""
BATCH = 1000
"""Signals that are classified at once."""
UNREADABLE = "nothing"
"""Value of `seen` for a file that cannot be decoded; other files have a value of `Content`."""


def read(options: argparse.Namespace) -> int:
    """Print the prediction for each image or signal."""
    checkpoint = Checkpoint.open(options.checkpoint)
    note_member(checkpoint)
    if checkpoint.header.scaling:
        return _read_signals(checkpoint, options)
    if is_outside(checkpoint.config.dataset, options.data_dir):
        checkpoint = checkpoint.without_data()
    name = printable(options.checkpoint.name)
    model = on_grid(checkpoint.model(), options.grid, name)
    size = options.grid or checkpoint.header.input_shape[1:]
    labels = _labels_of(options.image, options.labels) if options.labels else {}
    results = [
        _predict(checkpoint, model, size, path, labels.get(path), options.data_dir)
        | {"file": named(path, options.image)}
        for path in options.image
    ]
    _note_unknown(results, checkpoint)
    status = 2 if any(result["error"] for result in results) else 0
    if options.json:
        print_json(results)
        return status
    for result in results:
        print(_line(result), file=sys.stderr if result["error"] else sys.stdout)
        if result["remark"]:
            warn(result["remark"])
    labelled = [result for result in results if result["label"]]
    if labelled:
        correct = sum(result["class"] == result["label"] for result in labelled)
        print(f"{correct} of {len(labelled)} correct")
    return status


def _predict(
    checkpoint: Checkpoint,
    model: nn.Module,
    size: tuple[int, ...],
    path: Path,
    label: str | None,
    data_dir: Path | None,
) -> dict[str, Any]:
    """The object that `--json` prints for an image, with None for missing values.

    Args:
        size: of the images that the model takes, (H, W).
    """
    name = printable(path.name or path)
    result: dict[str, Any] = dict.fromkeys(KEYS)
    result["label"] = label
    channels = checkpoint.header.input_shape[0]
    try:
        data = read_bytes(path)
        if checkpoint.reads_digits and channels == 1:
            photograph = read_photograph(data, (size[0], size[1]))
            result |= {"seen": photograph.content, "polarity": photograph.polarity}
            images = [
                (ModelInput(each.pixels, Content.DIGIT, photograph.clean), each.box, each.cut_off)
                for each in photograph.digits
            ]
        else:
            image = read_picture(data, (channels, *size), digit=False)
            result["seen"] = image.content
            images = [(image, WHOLE, False)]
        remarks = [frames_note(name, data), *(image.faint for image, _, _ in images)]
        result["remark"] = " ".join(filter(None, remarks)) or None
    except ImageError as error:
        return result | {"seen": UNREADABLE, "error": str(error)}
    result["digits"] = [
        _digit(checkpoint, model, image, data_dir, cut_off)
        | {"box": [round(edge, 4) for edge in box]}
        for image, box, cut_off in images
    ]
    if digits := result["digits"]:
        result["class"] = "".join(digit["class"] for digit in digits)
        result["probability"] = min(digit["probability"] for digit in digits)
        marks = [digit["unlike"] for digit in digits if digit["unlike"] is not None]
        result["unlike"] = any(marks) if marks else None
    return result


def _digit(
    checkpoint: Checkpoint,
    model: nn.Module,
    image: ModelInput,
    data_dir: Path | None,
    cut_off: bool,
) -> dict[str, Any]:
    classes = checkpoint.header.classes
    probabilities = logits(model, as_input(image.pixels[None]))[0].softmax(0).tolist()
    best = max(range(len(classes)), key=probabilities.__getitem__)
    own = checkpoint.header.input_shape[1:]
    if image.pixels.shape[1:] != own:
        image = replace(image, pixels=scaled_images(image.pixels, own))
    unlike = unlike_training(image, checkpoint, data_dir)
    reasons = doubts(probabilities, unlike=unlike, cut_off=cut_off)
    return {
        "class": classes[best],
        "probability": round(probabilities[best], 4),
        "unlike": unlike,
        "doubts": reasons,
        "close": close_classes(probabilities, classes) if Doubt.CLOSE in reasons else None,
    }


def _line(result: dict[str, Any]) -> str:
    name = printable(result["file"])
    if result["error"]:
        return f"{name}: {result['error']}"
    if result["class"] is None:
        return f"{name}: no digit found"
    digits = result["digits"]
    text = f"{name}: {' '.join(digit['class'] for digit in digits)}"
    text += f"  {' '.join(format(digit['probability'], '.2f') for digit in digits)}"
    for number, digit in enumerate(digits, start=1):
        reasons = [digit["close"] if doubt == Doubt.CLOSE else doubt for doubt in digit["doubts"]]
        if reasons:
            which = f"digit {number}: " if len(digits) > 1 else ""
            text += f"  ({which}{', '.join(reasons)})"
    if result["label"] not in (None, result["class"]):
        text += f"  (label: {result['label']})"
    return text


def _read_signals(checkpoint: Checkpoint, options: argparse.Namespace) -> int:
    """Print the prediction for each signal of CSV files, and the share of correct ones."""
    if options.labels or options.grid:
        raise UsageError(
            "--labels is for images. The class of a signal is in its own row."
            if options.labels
            else "--grid is for images. Leave it out for signals."
        )
    results = [
        each | {"file": named(path, options.image)}
        for path in options.image
        for each in _signals(checkpoint, path)
    ]
    _note_unknown(results, checkpoint)
    if options.json:
        print_json(results)
    for result in [] if options.json else results:
        where = printable(result["file"]) + (f", line {result['line']}" if result["line"] else "")
        if result["error"]:
            print(f"{where}: {result['error']}", file=sys.stderr)
            continue
        text = f"{where}: {result['class']}  {result['probability']:.2f}"
        if result["label"] not in (None, result["class"]):
            text += f"  (label: {result['label']})"
        print(text)
    labelled = [result for result in results if result["label"] is not None]
    if labelled and not options.json:
        correct = sum(result["class"] == result["label"] for result in labelled)
        print(f"{correct:,} of {len(labelled):,} correct")
    return 2 if any(result["error"] for result in results) else 0


def _signals(checkpoint: Checkpoint, path: Path) -> list[dict[str, Any]]:
    """The objects that `--json` prints for the signals of a file."""
    blank: dict[str, Any] = dict.fromkeys(SIGNAL_KEYS) | {"file": ""}
    try:
        inputs, rows = read_signals(checkpoint, path)
    except (DataError, UsageError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return [blank | {"error": f"The file cannot be read: {reason}." if reason else str(error)}]
    model, classes = checkpoint.model(), checkpoint.header.classes
    scores = torch.cat([logits(model, part) for part in inputs.split(BATCH)])
    best = scores.softmax(1).max(1)
    return [
        blank
        | {
            "line": line,
            "label": rows.classes[k] if rows.classes else None,
            "class": classes[best.indices[k]],
            "probability": round(best.values[k].item(), 4),
        }
        for k, line in enumerate(rows.lines)
    ]


def _note_unknown(results: list[dict[str, Any]], checkpoint: Checkpoint) -> None:
    """Name the labels that are no classes of the model."""
    classes = set(checkpoint.header.classes)
    # A photograph of several digits has the label of all of them.
    wrong = {
        label
        for label in (result["label"] for result in results)
        if label and label not in classes and not (checkpoint.reads_digits and {*label} <= classes)
    }
    if wrong:
        warn(f"No class of the model, so counted as wrong: {listed(sorted(wrong, key=natural))}.")


def _key(name: str) -> str:
    """A file name as a key: macOS may write é as two characters."""
    return unicodedata.normalize("NFC", name)


def _labels_of(paths: Sequence[Path], table: Path) -> dict[Path, str | None]:
    """The label of each file, by its path as in the table, else by its name without folders.

    Raises UsageError if one row would stand for several files.
    """
    labels, title = _read_labels(table), printable(table.name)
    rows = {path: _row_of(path, labels) for path in dict.fromkeys(paths)}
    files: dict[str, Path] = {}
    for path, row in rows.items():
        if row is not None and files.setdefault(row, path) is not path:
            raise UsageError(
                f"The row of {quoted(row)} in {title} stands for {printable(files[row])} and "
                f"{printable(path)}: write the paths of both in the column file, as you give them."
            )
    missing = [printable(path.name or path) for path, row in rows.items() if row is None]
    if len(missing) == len(rows):
        warn(
            f"{title} has no row for any of the files. Its column file must contain their names, "
            "or their paths as you give them."
        )
    elif missing:
        warn(f"{title} has no row for {listed(missing)}.")
    return {path: (row and labels[row]) or None for path, row in rows.items()}


def _row_of(path: Path, rows: Collection[str]) -> str | None:
    keys = (_key(printable(path)), _key(printable(path.name or path)))
    return next((key for key in keys if key in rows), None)


def _read_labels(path: Path) -> dict[str, str]:
    """The label of each file, "" for an unknown one: a dash or an empty cell."""
    try:
        text = read_regular(path).decode("utf-8-sig")  # spreadsheets begin with a mark
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(path.name or path)} is not UTF-8 text.") from error
    title = printable(path.name)
    text, separator = without_mark(text)
    table = split_rows(text, separator or "\t", title)
    headings = next((row for _, row in table if row), [])
    if not {"file", "digit"} <= set(headings):
        raise UsageError(f"{title} needs the columns file and digit, separated by tabs.")
    labels: dict[str, str] = {}
    for _, row in table:
        cells = dict(zip(headings, row, strict=False))  # a row may be cut
        name, label = _key(cells.get("file", "")), _key(printable(cells.get("digit", "").strip()))
        label = "" if label == "-" else label
        before = labels.get(name, "")
        if before and label not in ("", before):
            raise UsageError(
                f"{title} has two labels for {quoted(name)}, {quoted(before)} and "
                f"{quoted(label)}: delete the wrong one."
            )
        labels[name] = before or label
    return labels
