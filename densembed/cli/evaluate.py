"""The command evaluate."""

import argparse
import shlex
from pathlib import Path

from torch import nn

from densembed.cli.common import UsageError, shown, warn
from densembed.cli.data import load, on_grid
from densembed.cli.info import read_all
from densembed.data import DataError, Split, as_input, is_outside, noun
from densembed.data.grids import for_axes
from densembed.data.transform import scaled
from densembed.text import counted, listed, printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.errors import Errors
from densembed.training.loop import error_rate


def evaluate(options: argparse.Namespace) -> int:
    """Print the test error of each checkpoint."""
    failed: list[Path] = []
    for path, checkpoint in read_all(Checkpoint.open, options.checkpoint, failed):
        name = shown(path, options.checkpoint)
        prefix = f"{name}: " if len(options.checkpoint) > 1 else ""
        try:
            errors, images = _errors(name, checkpoint, options)
            text = Errors(errors).text(images, noun(checkpoint.header.input_shape))
        except (UsageError, DataError) as error:
            warn(f"{prefix}{error}")
            failed.append(path)
        else:
            print(f"{prefix}test error: {text}")
    return 2 if failed else 0


def _errors(
    name: str, checkpoint: Checkpoint, options: argparse.Namespace
) -> tuple[list[float], int]:
    """The test error of each member in percent, and the number of test images or signals."""
    own = checkpoint.config.dataset
    if not options.dataset and is_outside(own, options.data_dir):
        raise UsageError(
            "The model was trained on data outside of the data folder. To use them, add "
            f"--dataset {shlex.quote(printable(own))}."
        )
    dataset = load(options.dataset or own, options)
    trained = checkpoint.header.provenance.dataset_title
    if not options.dataset and dataset.title != trained:
        warn(f"{name} was trained on {trained}, but this is its error on {dataset.title}.")
    if dataset.input_shape != checkpoint.header.input_shape:
        raise UsageError(
            f"The model takes {noun(checkpoint.header.input_shape)}s of shape "
            f"{checkpoint.header.input_shape}, but {dataset.title} has {dataset.noun}s of shape "
            f"{dataset.input_shape}."
        )
    classes = checkpoint.header.classes
    if len(classes) != len(dataset.classes):
        raise UsageError(
            f"The model has {counted(len(classes), 'class')}, but {dataset.title} has "
            f"{len(dataset.classes):,}: evaluate it on data with the same classes."
        )
    ordered = dataset.in_order(classes)
    if ordered is None:
        warn(
            f"{name} has the classes {listed(classes)}, but {dataset.title} has "
            f"{listed(dataset.classes)}: they are compared in this order."
        )
    test = (ordered or dataset).scaled_by(checkpoint.header.scaling).test
    try:
        grid = options.grid and for_axes(options.grid, len(dataset.input_shape) - 1)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if grid:
        test = scaled(test, grid)
    models = [
        on_grid(checkpoint.model(member=member), grid, "The model")
        for member in range(checkpoint.members)
    ]
    return [error_rate(_widened(model, test), test) for model in models], len(test)


def _widened(model: nn.Module, split: Split) -> nn.Module:
    """The model, in float64 if its scores overflow float32."""
    finite = model(as_input(split.images[:64])).isfinite().all()
    return model if finite else model.double()
