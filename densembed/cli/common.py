"""What the commands share: their description, their errors, and the names that they accept.

Nothing here imports torch, so that help and errors appear at once.
"""

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from signal import Signals
from tempfile import TemporaryFile

from densembed.data.grids import read_grid
from densembed.data.names import NAMES
from densembed.files import in_home, is_protected, is_same_file
from densembed.functional.families import WORDS
from densembed.interrupt import postponed
from densembed.models.names import templates
from densembed.paths import checkpoint_path, runs_folder, unknown_model
from densembed.text import printable, quoted

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 plus the number of the signal, as in shells."""
CLOSED = 141
"""Exit status if the reader of the output has ended, as with `| head`. It too is that of shells."""

_ENDS = (
    f"{INTERRUPTED} after Ctrl-C,\n  {CLOSED} if the reader of the output, such as head, has ended"
)
STATUSES = f"exit status: 0 on success, 2 if an argument, a file or the training failed,\n  {_ENDS}"
STATUSES_OF_FILES = f"""If a file fails, the error names it and the other files are still processed.
exit status: 0 on success, 2 if any file failed, {_ENDS}"""


class UsageError(Exception):
    """A wrong argument. The message is one sentence; the exit status is 2."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the program.

    Args:
        name: name on the command line.
        text: one line for the help, in lower case and without a full stop.
        add_arguments: adds the command's arguments to its parser.
        run: the function that runs the command, as "module:function" of this package. Its module,
            and with it torch, is imported when the command runs. It is called with the parsed
            arguments and returns the exit status (None: 0).
        check: raises UsageError or ValueError for wrong arguments, before that import.
        examples: argument lists for the help.
        lists_names: whether the help lists the models, families and data sets.
        several_files: whether the command continues after a file that fails.
        interrupted: message after Ctrl-C.
        signals: those that end the command as Ctrl-C does.
    """

    name: str
    text: str
    add_arguments: Callable[[argparse.ArgumentParser], object]
    run: str
    examples: Sequence[str]
    check: Callable[[argparse.Namespace], object] = lambda options: None
    lists_names: bool = False
    several_files: bool = False
    interrupted: str = "Interrupted."
    signals: Sequence[Signals] = ()

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
        parser.set_defaults(command=self, parser=parser, shown=set())
        parser.add_argument(
            "--plugin",
            action="append",
            default=[],
            metavar="MODULE",
            help="Python module that registers densities or models (may be repeated)",
        )
        self.add_arguments(parser)

    def __call__(self, options: argparse.Namespace) -> int:
        """Run the command, and return the exit status."""
        self.check(options)
        module, _, name = self.run.partition(":")
        with postponed(self.signals):
            imported = import_module(f"{__package__}.{module}")
        return getattr(imported, name)(options) or 0


def names() -> str:
    """The forms of model names, the families of densities and the data sets, for the help."""
    lines = {
        "models": f"{templates()}; for example linear, mlp-50, logistic-el-5, logistic-el-mnn-10-5",
        "families": ", ".join(WORDS),
        "data sets": f"{', '.join(NAMES)}, folder:PATH with one subfolder per class, "
        "or csv:PATH with one signal per row",
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


@contextmanager
def creating(instead: str) -> Iterator[None]:
    """Say what to do `instead` if the folder of the runs cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"The folder of the runs, {printable(runs_folder())}, cannot be written: "
            f"{error.strerror}. Set DENSEMBED_RUNS to another folder, or {instead}."
        ) from error


def as_path(text: str) -> Path:
    """The type of arguments that are paths. An empty one would be the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    if "\0" in text:  # not from a shell, but from a program that calls `main`
        raise argparse.ArgumentTypeError(f"no file can have the name {quoted(text)}")
    return in_home(text)


def as_folder(text: str) -> Path:
    """The type of arguments that are folders, which need not exist yet."""
    path = as_path(text)
    if os.path.exists(path) and not os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"{printable(path)} is a file; name a folder")
    return path


def as_text(text: str) -> str:
    """The type of arguments whose empty text would mean that they are not given."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the text is empty")
    return text


def as_count(most: int) -> Callable[[str], int]:
    """The type of arguments that are numbers from 1 to `most`."""

    def convert(text: str) -> int:
        try:
            count = int(text[:20])
        except ValueError:
            count = 0
        if not 1 <= count <= most:
            raise argparse.ArgumentTypeError(
                f"takes a whole number from 1 to {most:,}; got {printable(text[:20])}"
            )
        return count

    return convert


def check_kept(path: Path, inputs: Iterable[Path], name: str = "--out") -> None:
    """Raise UsageError if a result would replace a file that the command reads."""
    for given in inputs:
        if is_same_file(path, given):
            raise UsageError(
                f"{name} {printable(path)} would replace {printable(given)}, which the command "
                "reads: choose another path."
            )


def check_out(path: Path, name: str = "--out", inputs: Iterable[Path] = ()) -> None:
    """Raise UsageError unless a file can be written, before the work whose result it is for.

    Args:
        inputs: the files that the command reads, which the result must not replace.
    """
    check_kept(path, inputs, name)
    if path.exists() and not path.is_file():  # a folder, a device or a named pipe
        raise UsageError(
            f"{name} {printable(path)} cannot be written, as it is not a regular file: choose "
            "another path."
        )
    if is_protected(path):
        raise UsageError(
            f"{name} {printable(path)} is write-protected and was kept: choose another path, or "
            "permit writing to the file."
        )
    # The folder of the file itself, if this is a link. `Path.resolve` raises for a link to itself.
    if not _is_writable(Path(os.path.realpath(path)).parent):
        raise UsageError(
            f"{name} {printable(path)} cannot be written: choose a file in a folder that exists "
            "and is writable."
        )


def check_out_folder(path: Path, name: str = "--out") -> None:
    """Raise UsageError unless files can be written to a folder, before the work.

    A folder that does not exist is not created yet: a command that fails leaves nothing.
    """
    existing = next(filter(os.path.lexists, (path, *path.parents)), path)
    if not _is_writable(existing):
        fault = "writable" if os.path.isdir(existing) else "a folder"
        raise UsageError(
            f"{name} {printable(path)} cannot be written, as {printable(existing)} is not {fault}: "
            "choose another folder."
        )


def _is_writable(folder: Path) -> bool:
    """Whether a file can be created in a folder. Permissions alone do not tell that."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def named(path: Path, paths: Iterable[Path]) -> str:
    """The name of a file, with its folder if another of the files has the same name."""
    alone = sum(other.name == path.name for other in paths) == 1
    return (path.name if alone else "") or os.fspath(path)


def shown(path: Path, paths: Iterable[Path]) -> str:
    """The name of a file as in `named`, for text: what cannot be printed is escaped."""
    return printable(named(path, paths))


def print_json(values: object) -> None:
    """Print values as JSON, in ASCII if the output cannot take their characters as they are."""
    text = json.dumps(values, indent=1, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(values, indent=1)
    print(text)


def as_checkpoint(text: str) -> Path:
    """The type of arguments that are checkpoints: paths, or names of models that ship."""
    path = checkpoint_path(str(as_path(text)))
    if fault := unknown_model(text):
        raise argparse.ArgumentTypeError(fault)
    return path


def add_data_dir(
    parser: argparse.ArgumentParser, text: str = "folder with the files of the data sets"
) -> None:
    parser.add_argument("--data-dir", type=as_folder, help=text)


def add_grid(parser: argparse.ArgumentParser, signals: bool = False) -> None:
    parser.add_argument(
        "--grid",
        type=as_grid,
        metavar="N or HxW",
        help="scale the images to this many pixels"
        f"{', or the signals to N samples,' if signals else ''} and use the same weights on that "
        "grid (default: the grid of the training)",
    )


def as_grid(text: str) -> tuple[int, int]:
    """The type of arguments that are image sizes: "14", or "14x20" for height and width."""
    try:
        return read_grid(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(error) from error


def warn(message: object) -> None:
    """Print an error or a warning on stderr."""
    print(f"densembed: {message}", file=sys.stderr)
