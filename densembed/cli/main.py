"""The command line: python -m densembed COMMAND."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from pydantic import ValidationError

from densembed.cli.common import INTERRUPTED, STATUSES, Command, UsageError, names, warn
from densembed.cli.evaluate import EVALUATE, INFO
from densembed.cli.read import READ
from densembed.cli.render import RENDER
from densembed.cli.reproduce import (
    add_benchmark,
    add_reproduce,
    benchmark_command,
    reproduce_command,
)
from densembed.cli.site import SITE
from densembed.cli.sweep import add_sweep, sweep_command
from densembed.cli.train import TRAIN
from densembed.data import DataError
from densembed.data.images import ImageError
from densembed.models import plugins
from densembed.text import closest, printable, unknown
from densembed.training.checkpoint import CheckpointError
from densembed.training.config import explain
from densembed.version import __version__

ABOUT = "Density-embedding layers: receptive fields that adapt."
EXAMPLES = """examples:
  densembed train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors
  densembed read a.safetensors photo.jpg
  densembed COMMAND --help"""

COMMANDS = (
    TRAIN,
    EVALUATE,
    INFO,
    READ,
    RENDER,
    SITE,
    Command(
        name="reproduce",
        text="reproduce the paper's results",
        add_arguments=add_reproduce,
        run=reproduce_command,
        examples=(
            "reproduce table1 --recipe tuned",
            "reproduce table1 --rows logistic-el-5,linear --dataset digits --seeds 3",
        ),
        interrupted="Interrupted. Finished trainings are kept; run the same command to continue.",
    ),
    Command(
        name="sweep",
        text="train every combination of several settings",
        add_arguments=add_sweep,
        run=sweep_command,
        examples=(
            "sweep logistic-el-3,logistic-el-5 --learning-rate 0.002,0.01 --seeds 3 --out first",
        ),
        lists_names=True,
        interrupted="Interrupted. Finished trainings are kept; run the same command with --out "
        "and the sweep's folder to continue.",
    ),
    Command(
        name="benchmark",
        text="measure the speed of layers and models",
        add_arguments=add_benchmark,
        run=benchmark_command,
        examples=("benchmark --quick --json speed.json",),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options, rest = build_parser().parse_known_args(arguments)
    if rest:
        options.parser.reject(rest)
    try:
        plugins.load(options.plugin)
        status = options.run(options) or 0
        sys.stdout.flush()  # here, a closed pipe or a full disk is an error with a sentence
        return status
    except (UsageError, CheckpointError, DataError, ImageError, ValueError) as error:
        warn(explain(error) if isinstance(error, ValidationError) else error)
        return 2
    except OSError as error:
        place = error.filename and printable(error.filename)
        warn(f"{place or 'The output cannot be written'}: {error.strerror}.")
        return 2
    except KeyboardInterrupt:
        warn(options.interrupted)
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

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            kinds = {"COMMAND": "command", "what": "experiment"}
            kind = kinds.get(str(action.metavar or action.dest), "value")
            choices = ", ".join(action.choices)
            sentence = unknown(kind, str(value), action.choices)
            raise argparse.ArgumentError(action, f"{sentence}; choose from {choices}.")

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def reject(self, arguments: Sequence[str]) -> None:
        """Exit with an error about the first unrecognized argument."""
        flag = arguments[0].partition("=")[0]
        meant = closest(flag, self._option_string_actions) if flag.startswith("-") else None
        guess = f" (did you mean {meant}?)" if meant else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}{guess}")
