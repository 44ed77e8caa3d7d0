"""What the commands share: their description, their errors, and the names that they accept."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from densembed.data import DATASETS, Dataset, check_name, is_available, load_dataset
from densembed.functional.densities import FAMILIES
from densembed.models.names import templates

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 plus the number of the signal, as in shells."""

MOST_WARNINGS = 20
"""Most warnings of a kind that are printed."""

STATUSES = (
    "exit status: 0 on success, 2 if an argument, a file or the training failed,\n"
    f"  {INTERRUPTED} after Ctrl-C"
)
STATUSES_OF_FILES = f"""If a file fails, the error names it and the other files are still processed.
exit status: 0 on success, 2 if any file failed, {INTERRUPTED} after Ctrl-C"""


class UsageError(Exception):
    """A wrong argument. The message is one sentence; the exit status is 2."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the program.

    Args:
        name: name on the command line.
        text: one line for the help, in lower case and without a full stop.
        add_arguments: adds the command's arguments to its parser.
        run: runs the command with the parsed arguments and returns the exit status (None: 0).
        examples: argument lists for the help.
        lists_names: whether the help lists the models, families and data sets.
        several_files: whether the command continues after a file that fails.
        interrupted: message after Ctrl-C.
    """

    name: str
    text: str
    add_arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int | None]
    examples: Sequence[str]
    lists_names: bool = False
    several_files: bool = False
    interrupted: str = "Interrupted."

    def add_to(self, commands: argparse._SubParsersAction) -> None:
        parts = [names()] if self.lists_names else []
        parts += ["\n  ".join(["examples:", *(f"densembed {line}" for line in self.examples)])]
        parts += [STATUSES_OF_FILES if self.several_files else STATUSES]
        parser = commands.add_parser(
            self.name,
            help=self.text,
            description=f"{self.text[0].upper()}{self.text[1:]}.",
            epilog="\n\n".join(parts),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(run=self.run, parser=parser, interrupted=self.interrupted, shown=set())
        parser.add_argument(
            "--plugin",
            action="append",
            default=[],
            metavar="MODULE",
            help="Python module that registers densities or models (may be repeated)",
        )
        self.add_arguments(parser)


def names() -> str:
    """The forms of model names, the families of densities and the data sets, for the help."""
    lines = {
        "models": f"{templates()}; for example linear, mlp-50, logistic-el-5, logistic-el-mnn-10-5",
        "families": ", ".join(FAMILIES),
        "data sets": f"{', '.join(DATASETS)}, or folder:PATH with one subfolder per class",
    }
    return "\n".join(
        textwrap.fill(
            f"{title}: {text}",
            79,
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for title, text in lines.items()
    )


def as_path(text: str) -> Path:
    """The type of arguments that are paths. An empty one would be the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", type=as_path, help="folder with the files of the data sets")


def warn(message: object) -> None:
    """Print an error or a warning on stderr."""
    print(f"densembed: {message}", file=sys.stderr)


def prepare(name: str, options: argparse.Namespace) -> None:
    """Load a data set once before processes start. A scheduler's workers download it themselves."""
    check_name(name)
    if not options.scheduler or is_available(name, options.data_dir):
        load(name, options)


def load(name: str, options: argparse.Namespace) -> Dataset:
    """Load a data set. The first time in a command, name what is not used of a folder."""
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
