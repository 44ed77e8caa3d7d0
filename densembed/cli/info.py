"""The command info, which reads no more of a checkpoint than its header."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from densembed.cli.common import shown, warn
from densembed.text import printable
from densembed.training.errors import Errors
from densembed.training.header import CheckpointError, summarise

T = TypeVar("T")


def read_all(
    read: Callable[[Path], T], paths: Sequence[Path], failed: list[Path]
) -> Iterator[tuple[Path, T]]:
    """Read checkpoints. Those that cannot be read are reported and added to `failed`."""
    for path in paths:
        try:
            yield path, read(path)
        except CheckpointError as error:
            name = shown(path, paths)
            warn(error if name == printable(path.name) else f"{name}: {error}")
            failed.append(path)


def info(options: argparse.Namespace) -> int:
    """Print a table of checkpoints."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    for title in ("file", "model", "parameters", "dataset", "test error", "steps", "snapshots"):
        right = title in ("parameters", "steps")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    failed: list[Path] = []
    for path, summary in read_all(summarise, options.checkpoint, failed):
        header = summary.header
        cells = (
            shown(path, options.checkpoint),
            header.config.model,
            str(summary.parameters),
            "; changed ".join((header.provenance.dataset_title, *header.data_changes)),
            Errors(header.errors).text(
                header.provenance.test_images, "signal" if header.scaling else "image"
            )
            if header.errors
            else "unknown",
            str(header.steps[-1]) + ("" if header.outcome == "done" else f", {header.outcome}"),
            str(len(header.steps)),
        )
        table.add_row(*map(Text, cells))  # Text, so that brackets in a name are not markup
    if table.row_count:
        console = Console()
        if not console.is_terminal:  # a pipe is as wide as the table, so no cell is folded
            wide = console.options.update(max_width=sys.maxsize)
            console = Console(width=console.measure(table, options=wide).maximum)
        console.print(table)
    return 2 if failed else 0
