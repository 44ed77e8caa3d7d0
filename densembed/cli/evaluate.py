"""The commands evaluate and info, which describe checkpoints."""

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

from torch import nn

from densembed.cli.common import Command, UsageError, add_data_dir, as_path, load, warn
from densembed.data import DATASETS, DataError, Split, as_input, is_outside
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.training.errors import Errors
from densembed.training.loop import error_rate

PIPE_WIDTH = 200
"""Columns of the table of `info` in a pipe, where no cell may be cut off."""


def _open_all(paths: list[Path], failed: list[Path]) -> Iterator[tuple[Path, Checkpoint]]:
    """Open checkpoints. Those that cannot be opened are reported and added to `failed`."""
    for path in paths:
        try:
            yield path, Checkpoint.open(path)
        except CheckpointError as error:
            warn(error)
            failed.append(path)


def _add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_path, nargs="+")
    parser.add_argument(
        "--dataset",
        help=f"{', '.join(DATASETS)} or folder:PATH (default: the one it was trained on, "
        "if this is no folder outside of the data folder)",
    )
    add_data_dir(parser)


def _evaluate(options: argparse.Namespace) -> int:
    failed: list[Path] = []
    for path, checkpoint in _open_all(options.checkpoint, failed):
        name = printable(path.name)
        prefix = f"{name}: " if len(options.checkpoint) > 1 else ""
        try:
            errors, images = _errors(name, checkpoint, options)
        except (UsageError, DataError) as error:
            warn(f"{prefix}{error}")
            failed.append(path)
        else:
            print(f"{prefix}test error: {Errors(errors).text(images)}")
    return 2 if failed else 0


def _errors(
    name: str, checkpoint: Checkpoint, options: argparse.Namespace
) -> tuple[list[float], int]:
    """The test error of each member in percent, and the number of test images."""
    own = checkpoint.config.dataset
    if not options.dataset and is_outside(own, options.data_dir):
        raise UsageError(
            f"{name} names a folder outside of the data folder: to have it read, add "
            f"--dataset {shlex.quote(printable(own))}."
        )
    dataset = load(options.dataset or own, options)
    if dataset.input_shape != checkpoint.header.input_shape:
        raise UsageError(
            f"{name} takes images of shape {checkpoint.header.input_shape}, but {dataset.title} "
            f"has images of shape {dataset.input_shape}."
        )
    classes = checkpoint.header.classes
    if len(classes) != len(dataset.classes):
        raise UsageError(
            f"{name} has {len(classes):,} classes, but {dataset.title} has "
            f"{len(dataset.classes):,}: evaluate it on data with the same classes."
        )
    test = (dataset.in_order(classes) or dataset).test
    models = [checkpoint.model(member=member) for member in range(checkpoint.members)]
    return [error_rate(_widened(model, test), test) for model in models], len(test)


def _widened(model: nn.Module, split: Split) -> nn.Module:
    """The model, in float64 if its scores overflow float32."""
    finite = model(as_input(split.images[:64])).isfinite().all()
    return model if finite else model.double()


def _info(options: argparse.Namespace) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    for title in ("file", "model", "parameters", "dataset", "test error", "steps", "snapshots"):
        table.add_column(title, justify="right" if title in ("parameters", "steps") else "left")
    failed: list[Path] = []
    for path, checkpoint in _open_all(options.checkpoint, failed):
        errors = checkpoint.errors
        cells = (
            printable(path.name),
            checkpoint.config.model,
            str(checkpoint.parameters),
            checkpoint.header.provenance.dataset_title,
            Errors(errors).text(checkpoint.header.provenance.test_images) if errors else "unknown",
            str(checkpoint.steps[-1]),
            str(len(checkpoint.steps)),
        )
        table.add_row(*map(Text, cells))  # Text, so that brackets in a name are not markup
    if table.row_count:
        console = Console()
        Console(width=None if console.is_terminal else PIPE_WIDTH).print(table)
    return 2 if failed else 0


EVALUATE = Command(
    name="evaluate",
    text="print the test error of checkpoints",
    add_arguments=_add_evaluate_arguments,
    run=_evaluate,
    examples=(
        "evaluate a.safetensors",
        "evaluate checkpoints/paper/logistic-el-5.safetensors --dataset mnist",
    ),
    several_files=True,
)
INFO = Command(
    name="info",
    text="print a summary of checkpoints",
    add_arguments=lambda parser: parser.add_argument("checkpoint", type=as_path, nargs="+"),
    run=_info,
    examples=("info checkpoints/paper/*.safetensors",),
    several_files=True,
)
