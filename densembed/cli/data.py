"""Data sets for the commands."""

import argparse
import os
from pathlib import Path
from typing import Any

from torch import Tensor

from densembed.cli.common import UsageError, check_kept, warn
from densembed.data import (
    DataError,
    Dataset,
    check_name,
    files_of,
    is_available,
    load_dataset,
    title,
)
from densembed.data.class_folders import has_image_suffix
from densembed.data.decode import read_bytes
from densembed.data.frames import frames_note
from densembed.data.images import read_picture
from densembed.data.names import TABLE
from densembed.data.table import ColumnError, Rows, SignalTable, as_inputs, read_rows
from densembed.models.registry import at_grid
from densembed.text import counted, printable, quoted
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError, summarise

MOST_WARNINGS = 20
"""Most warnings of a kind that are printed."""


def prepare(name: str, options: argparse.Namespace) -> Dataset | None:
    """Load a data set once before processes start. A scheduler's workers download it themselves."""
    check_name(name)
    if options.scheduler and not is_available(name, options.data_dir):
        return None
    return load(name, options)


def check_data_kept(path: Path, name: str, options: argparse.Namespace) -> None:
    """Raise UsageError if a checkpoint would replace the table or a file of the data set."""
    source = files_of(name, options.data_dir)
    check_kept(path, [source])
    if path.exists() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source)):
        try:
            summarise(path)  # an earlier result, which may lie among the data
        except CheckpointError as error:
            raise UsageError(
                f"--out {printable(path)} would replace a file among the data of "
                f"{title(name, options.data_dir)}, and it is no checkpoint: choose another path."
            ) from error


def on_grid(model: Any, grid: tuple[int, ...] | None, name: str) -> Any:
    """The model for inputs of a size. Raises UsageError for models that are made for one grid."""
    if grid is None:
        return model
    try:
        return at_grid(model, grid)
    except ValueError as error:
        raise UsageError(f"{name} cannot be used with --grid. {error}") from error


def load(name: str, options: argparse.Namespace) -> Dataset:
    """Load a data set. The first time in a command, name what is not used of its files."""
    dataset = load_dataset(name, options.data_dir)
    if name not in options.shown:
        options.shown.add(name)
        skipped = [f"not an image, skipped: {path}" for path in dataset.left_out]
        for messages in (dataset.notes, skipped):
            for message in messages[:MOST_WARNINGS]:
                warn(message)
            if (more := len(messages) - MOST_WARNINGS) > 0:
                warn(f"and {more:,} more of this kind.")
    return dataset


def note_member(checkpoint: Checkpoint) -> None:
    """Say which of several members is used."""
    if (count := checkpoint.members) > 1:
        warn(
            f"Of {count} members, the one whose error is nearest to the mean is used: member "
            f"{checkpoint.typical + 1}."
        )


def read_image(path: Path, checkpoint: Checkpoint, shape: tuple[int, ...]) -> Tensor:
    """An image file as the pixels that a model takes, with a warning for what is not read of it.

    Args:
        shape: of the pixels, (C, H, W).

    Raises:
        ImageError: the file cannot be decoded.
    """
    data = read_bytes(path)
    image = read_picture(data, shape, checkpoint.reads_digits)
    for note in (frames_note(printable(path.name or path), data), image.note):
        if note:
            warn(note)
    return image.pixels


def read_signals(checkpoint: Checkpoint, path: Path) -> tuple[Tensor, Rows]:
    """The signals of a CSV file as inputs of a model, (N, C, L), and the rows that they are from.

    Rows may end in a class, or have one in the column of the model's own data.

    Raises:
        DataError: the file is not a table of signals, or has values that overflow float32.
        UsageError: the signals have another length, or the model takes several channels.
    """
    if has_image_suffix(path.name):
        raise UsageError(f"{printable(path.name)} is an image, but the model takes signals.")
    channels, length = checkpoint.header.input_shape
    if channels > 1:
        raise UsageError(f"The model takes {channels} channels, but a CSV file has one.")
    own = checkpoint.config.dataset
    try:
        column = SignalTable.parse(own).column if own.startswith(TABLE) else ""
    except DataError:  # a checkpoint may have any text there
        column = ""
    try:
        rows = read_rows(path, column or None, length)
    except ColumnError as error:
        raise DataError(
            f"{error} The model's own data have their class in the column {quoted(column)}."
        ) from error
    if (width := rows.values.shape[1]) != length:
        has = f"{counted(width, 'value')}{' beside the class' if rows.classes else ''}"
        if rows.has_numbers_as_classes and not column:
            has = f"{width + 1:,} values, or of {width:,} and a class"
        raise UsageError(
            f"{printable(path.name)} has signals of {has}, but the model takes {length:,}."
        )
    scaling = checkpoint.header.scaling
    assert scaling is not None  # for mypy: a header of signals has one
    return as_inputs(rows, scaling, printable(path.name)), rows
