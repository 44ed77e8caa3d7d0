"""The command line: python -m densembed COMMAND."""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import ValidationError

from densembed.cli.commands import COMMANDS
from densembed.cli.common import CLOSED, INTERRUPTED, STATUSES, UsageError, names, warn
from densembed.data.names import DataError
from densembed.interrupt import as_ctrl_c
from densembed.models import plugins
from densembed.text import closest, printable, unknown
from densembed.training.config import explain
from densembed.version import __version__

ABOUT = "Density-embedding layers: receptive fields that adapt."
FIRST = f"""densembed {__version__}. {ABOUT}

  densembed app                                      open the pages in a browser
  densembed train logistic-el-5 --out a.safetensors  train a model on the built-in digits
  densembed read a.safetensors photo.jpg             predict the digit in a photograph

`densembed --help` lists all commands."""
EXAMPLES = """examples:
  densembed app
  densembed train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors
  densembed read a.safetensors photo.jpg
  densembed COMMAND --help"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # as Python itself does for stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = _run(arguments)
        if sys.stdout:  # None if it is closed
            sys.stdout.flush()  # here, a full disk is an error with a sentence
        return status
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich ends the program with status 1
            return CLOSED
        raise
    except BrokenPipeError:
        _discard_output()
        return CLOSED
    except OSError as error:
        place = error.filename and printable(error.filename)
        warn(f"{place or 'The output cannot be written'}: {error.strerror}.")
        return 2


def _discard_output() -> None:
    """Discard the text that has no reader, as Python would report it when the program ends."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    if not (sys.argv[1:] if arguments is None else arguments):
        print(FIRST)
        return 0
    try:
        os.getcwd()  # without it, libraries end the process or name no cause
    except FileNotFoundError:
        warn("The working folder has been deleted: change to one that exists.")
        return 2
    options, rest = build_parser().parse_known_args(arguments)
    if rest:
        options.parser.reject(rest)
    try:
        with as_ctrl_c(options.command.signals):
            plugins.load(options.plugin)
            return options.command(options)
    except (UsageError, DataError, ValueError) as error:
        warn(explain(error) if isinstance(error, ValidationError) else error)
        return 2
    except KeyboardInterrupt:
        warn(options.command.interrupted)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "densembed",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"{names()}\n\n{EXAMPLES}\n\n{STATUSES}",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"densembed {__version__}",
        help="print the version and exit",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser whose errors list the choices and suggest the nearest one."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._within = False
        # No flag begins with a digit, so these are values: -1e0, or -3,-2 of a sweep.
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Also take files after options that stand between them, as in `site OUT --x y FILE`."""
        if self._subparsers or self._within:
            return super().parse_known_args(args, namespace)
        self._within = True  # what is called parses the options and then the rest with this method
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            kinds = {"COMMAND": "command", "what": "experiment"}
            kind = kinds.get(str(action.metavar or action.dest), "value")
            choices = ", ".join(action.choices)
            sentence = unknown(kind, str(value), action.choices)
            raise argparse.ArgumentError(action, f"{sentence}; choose from {choices}.")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help or an error, without argparse's silence if that fails."""
        if file:  # None if it is closed
            print(message, end="", file=file, flush=True)

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def reject(self, arguments: Sequence[str]) -> None:
        """Exit with an error about the first unrecognized argument."""
        flag = arguments[0].partition("=")[0]
        meant = closest(flag, self._option_string_actions) if flag.startswith("-") else None
        guess = f" (did you mean {meant}?)" if meant else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}{guess}")
