"""The command line: python -m densembed COMMAND."""

import argparse
import csv
import io
import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from densembed.cli.progress import Bar, Interrupt
from densembed.cli.reproduce import (
    add_benchmark,
    add_reproduce,
    add_scheduler,
    benchmark_command,
    reproduce_command,
)
from densembed.cli.sweep import add_sweep, sweep_command
from densembed.data import DATASETS, DataError, Dataset, Split, as_input, load_dataset
from densembed.data.images import ImageError, read_picture
from densembed.fields.field import logits, view
from densembed.fields.novelty import unlike_training
from densembed.figures.export import write_html, write_npz, write_printed
from densembed.functional.densities import FAMILIES
from densembed.models import plugins
from densembed.models.names import templates
from densembed.runs import Run, execute
from densembed.text import closest, printable, unknown
from densembed.training.checkpoint import Checkpoint, CheckpointError, Recorder, error_text
from densembed.training.config import RunConfig, explain
from densembed.training.loop import Diverged, test_error, train
from densembed.training.threads import settle
from densembed.version import __version__
from densembed.workers.cluster import Cluster

ABOUT = "Density-embedding layers: receptive fields that adapt."


INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 and the signal's number."""


class UsageError(Exception):
    """One sentence for stderr; the exit status is 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        options.parser.refuse(rest)
    try:
        plugins.load(options.plugin)
        return options.run(options) or 0
    except (UsageError, CheckpointError, DataError, ImageError, ValueError) as error:
        sentence = explain(error) if isinstance(error, ValidationError) else str(error)
        print(f"densembed: {sentence}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"densembed: {printable(error.filename or '')}: {error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"densembed: {options.interrupted}", file=sys.stderr)
        return INTERRUPTED


class _Parser(argparse.ArgumentParser):
    """A parser whose errors name the choices, and the one that may have been meant."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = ", ".join(action.choices)
            kind = {"COMMAND": "command", "what": "experiment"}.get(action.metavar or action.dest)
            sentence = unknown(kind or "value", str(value), action.choices)
            raise argparse.ArgumentError(action, f"{sentence}; choose from {known}.")

    def refuse(self, arguments: Sequence[str]) -> None:
        """Exit with a sentence on the first of the arguments that nothing takes."""
        flag = arguments[0].partition("=")[0]
        meant = closest(flag, self._option_string_actions) if flag.startswith("-") else None
        guess = f" (did you mean {meant}?)" if meant else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}{guess}")


def _parser() -> _Parser:
    parser = _Parser(
        "densembed",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"{_names()}\n\n{EXAMPLES}\n\n{STATUSES}",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"densembed {__version__}",
        help="print the version and exit",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(
        commands, "train", _train, "train a model and save its checkpoint",
        examples=(
            "train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors",
            "train gaussian-el-5 --dataset mnist --epochs 5 --seeds 3",
        ),
        names=True, interrupted="Interrupted. Nothing was saved.",
    )  # fmt: skip
    _config_flags(command)
    command.add_argument("--data-dir", type=Path, help="folder with the data set's files")
    command.add_argument("--out", type=Path, help="write this one file instead of a run's folder")
    add_scheduler(command)

    command = _command(
        commands, "evaluate", _evaluate, "print the test error of checkpoints",
        examples=(
            "evaluate a.safetensors",
            "evaluate checkpoints/paper/logistic-el-5.safetensors --dataset mnist",
        ),
        several=True,
    )  # fmt: skip
    command.add_argument("checkpoint", type=Path, nargs="+")
    command.add_argument(
        "--dataset",
        help=f"{', '.join(DATASETS)} or folder:PATH (default: the one that it was trained on)",
    )
    command.add_argument("--data-dir", type=Path, help="folder with the data set's files")

    command = _command(
        commands, "info", _info, "print what checkpoints hold",
        examples=("info checkpoints/paper/*.safetensors",), several=True,
    )  # fmt: skip
    command.add_argument("checkpoint", type=Path, nargs="+")

    command = _command(
        commands, "read", _read, "read digits from pictures",
        examples=(
            "read a.safetensors photo.jpg scan.png",
            "read a.safetensors *.png --labels labels.tsv --json",
        ),
        several=True,
    )  # fmt: skip
    command.add_argument("checkpoint", type=Path)
    command.add_argument("image", type=Path, nargs="+")
    command.add_argument("--labels", type=Path, help="table (tab-separated) with file and digit")
    command.add_argument(
        "--data-dir", type=Path,
        help="folder with the data that the model learned from: where they are there, pictures "
        "that are unlike them are named",
    )  # fmt: skip
    command.add_argument(
        "--json", action="store_true",
        help="an object per picture: file, label, seen (digit, several digits, no ink, picture, "
        "nothing), class, probability, unlike (true, false; null: not judged), error",
    )  # fmt: skip

    command = _command(
        commands, "render", _render, "save the receptive fields of one picture",
        examples=("render a.safetensors --image photo.jpg --out field.pdf",),
    )  # fmt: skip
    command.add_argument("checkpoint", type=Path)
    command.add_argument("--image", type=Path, required=True)
    command.add_argument(
        "--out", type=Path, required=True, help="FILE.html, or .svg, .pdf, .png for print, or .npz"
    )
    command.add_argument("--resolution", type=int, default=4, help="cells per pixel (1 to 32)")

    command = _command(
        commands, "reproduce", reproduce_command, "run the paper's experiments again",
        examples=(
            "reproduce table1 --recipe tuned",
            "reproduce table1 --rows logistic-el-5,linear --dataset digits --seeds 3",
        ),
        interrupted="Interrupted. The members that are done are kept; the same command goes on.",
    )  # fmt: skip
    add_reproduce(command)

    command = _command(
        commands, "sweep", sweep_command, "train a grid over fields of a config",
        examples=(
            "sweep logistic-el-3,logistic-el-5 --learning-rate 0.002,0.01 --seeds 3 --out first",
        ),
        names=True,
        interrupted="Interrupted. The trainings that are done are kept; the same command goes on "
        "where --out names the sweep's folder.",
    )  # fmt: skip
    add_sweep(command)

    command = _command(
        commands, "benchmark", benchmark_command, "measure every speed claim",
        examples=("benchmark --quick --json speed.json",),
    )  # fmt: skip
    add_benchmark(command)
    return parser


STATUSES = (
    "exit status: 0 where all went well, 2 where an argument, a file or the training\n"
    f"  failed, {INTERRUPTED} after Ctrl-C"
)
SEVERAL = """A file that fails is named, and the others are done.
exit status: 0 where all files went well, 2 where any failed, 130 after Ctrl-C"""
EXAMPLES = """examples:
  densembed train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors
  densembed read a.safetensors photo.jpg
  densembed COMMAND --help"""


def _names() -> str:
    """What the names of models and data sets look like, with those that are known."""
    lines = {
        "models": f"{templates()}; for example linear, mlp-50, logistic-el-5, logistic-el-mnn-10-5",
        "families": ", ".join(FAMILIES),
        "data sets": f"{', '.join(DATASETS)}, or folder:PATH with one subfolder per class",
    }
    return "\n".join(
        textwrap.fill(
            f"{title}: {text}", 79, subsequent_indent="  ",
            break_on_hyphens=False, break_long_words=False,
        )
        for title, text in lines.items()
    )  # fmt: skip


def _command(
    commands,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    text: str,
    examples: Sequence[str],
    names: bool = False,
    several: bool = False,
    interrupted: str = "Interrupted.",
) -> _Parser:
    """Add a command.

    Args:
        names: whether its help lists the models and data sets.
        several: whether it goes on after a file that fails.
        interrupted: what it says after Ctrl-C.
    """
    parts = [_names()] if names else []
    parts += ["\n  ".join(["examples:", *(f"densembed {example}" for example in examples)])]
    parts += [SEVERAL] if several else [STATUSES]
    command = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog="\n\n".join(parts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.set_defaults(run=run, parser=command, interrupted=interrupted)
    command.add_argument(
        "--plugin", action="append", default=[], metavar="MODULE",
        help="Python module with densities or models of your own (may be repeated)",
    )  # fmt: skip
    return command


def _config_flags(command: argparse.ArgumentParser) -> None:
    """A flag for every field of RunConfig; the model is the first argument."""
    for name, field in RunConfig.model_fields.items():
        text = f"{field.description} (default {field.default})"
        if name == "dataset":
            text = f"{', '.join(DATASETS)} or folder:PATH (default {field.default})"
        if name == "model":
            command.add_argument(name, help="network, by name: see below")
        else:
            command.add_argument("--" + name.replace("_", "-"), default=field.default, help=text)


def _config(options: argparse.Namespace) -> RunConfig:
    return RunConfig(**{name: getattr(options, name) for name in RunConfig.model_fields})


def _train(options: argparse.Namespace) -> int:
    config = _config(options)
    settle()
    if options.out is None:
        return _train_in_folder(config, options)
    folder = options.out.parent
    if options.out.is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise UsageError(f"--out {printable(options.out)} is not a file that can be written.")
    dataset = load_dataset(config.dataset, options.data_dir)
    _name_left_out(dataset)
    recorder = Recorder(config, dataset)
    outcome = "done"
    with Interrupt() as interrupt, Bar(config.epochs) as bar:
        try:
            for event in train(config, dataset, lambda: interrupt.heard):
                recorder.add(event)
                bar.show(type(event).__name__.lower(), vars(event))
                if isinstance(event, Diverged):
                    outcome = "diverged"
                    sentence = f"The loss left all bounds at step {event.step:,}; lower the rate."
        except KeyboardInterrupt:  # the second one: what there is
            pass
    if outcome == "done" and len(recorder.header.epochs) < config.epochs:
        outcome = "stopped"
    if not recorder.snapshots:
        raise UsageError("Stopped before there was anything to keep.")
    checkpoint = recorder.checkpoint(outcome)
    checkpoint.save(options.out)
    _report(checkpoint, options.out)
    if outcome == "stopped":
        return _interrupted(options.out)
    if outcome != "done":
        raise UsageError(f"{sentence} The last good snapshot is in {printable(options.out)}.")
    return 0


def _train_in_folder(config: RunConfig, options: argparse.Namespace) -> int:
    _name_left_out(load_dataset(config.dataset, options.data_dir))
    run = Run.create(config)
    print(f"run {run.identifier} in {printable(run.path)}", flush=True)
    try:
        with Interrupt(run.stop), Bar(config.epochs) as bar:
            if options.scheduler:
                state = _on_workers(run, options, bar)
            else:
                with bar.following(run):
                    state = execute(str(run.path), options.data_dir)
    except KeyboardInterrupt:  # the second one
        state = "stopped"
    if state == "stopped":
        checkpoint = run.checkpoint()
        if checkpoint is None:
            raise KeyboardInterrupt
        _report(checkpoint, run.checkpoint_path)
        return _interrupted(run.checkpoint_path)
    if state != "done":
        raise UsageError(run.events()[-1].get("reason") or f"The run was {state}.")
    _report(run.checkpoint(), run.checkpoint_path)
    return 0


def _interrupted(path: Path) -> int:
    print(
        f"densembed: Interrupted. Saved the latest snapshot to {printable(path)}.", file=sys.stderr
    )
    return INTERRUPTED


def _on_workers(run: Run, options: argparse.Namespace, bar: Bar) -> str:
    """Hand it to a scheduler and wait; Ctrl-C stops it as it would here."""
    cluster = Cluster(options.scheduler)
    cluster.submit(run, execute, str(options.data_dir.absolute()) if options.data_dir else None)
    if wanting := cluster.wanting(run):
        print(wanting)
    with bar.following(run):
        # However long it trains; a stopped run needs no worker to be over.
        while cluster.ahead(run) is not None and run.state() != "stopped":
            time.sleep(0.2)
    cluster.close()
    return run.state()


NAMED = 20


def _name_left_out(dataset: Dataset) -> None:
    """Say what of a folder is not used: files that are no pictures, and all else by kind."""
    for note in dataset.notes[:NAMED]:
        print(f"densembed: {note}", file=sys.stderr)
    if (more := len(dataset.notes) - NAMED) > 0:
        print(f"densembed: and {more:,} more of the kind.", file=sys.stderr)
    for place in dataset.left_out[:NAMED]:
        print(f"densembed: left out, as it is no picture: {place}", file=sys.stderr)
    if (more := len(dataset.left_out) - NAMED) > 0:
        print(f"densembed: and {more:,} more.", file=sys.stderr)


def _report(checkpoint: Checkpoint, path: Path) -> None:
    if checkpoint.errors:
        seconds = sum(epoch.seconds for epoch in checkpoint.header.epochs)
        error = error_text(checkpoint.errors, checkpoint.header.provenance.test_images)
        print(f"test error: {error}  (trained in {seconds:.1f} s)")
    print(f"saved: {printable(path)}")


def _opened(paths: list[Path], failed: list[Path]) -> Iterator[tuple[Path, Checkpoint]]:
    """The checkpoints that open; the others are named on stderr and added to `failed`."""
    for path in paths:
        try:
            yield path, Checkpoint.open(path)
        except CheckpointError as error:
            print(f"densembed: {error}", file=sys.stderr)
            failed.append(path)


def _status(failed: list[Path]) -> int:
    return 2 if failed else 0


def _evaluate(options: argparse.Namespace) -> int:
    failed: list[Path] = []
    for path, checkpoint in _opened(options.checkpoint, failed):
        name = printable(path.name)
        prefix = f"{name}: " if len(options.checkpoint) > 1 else ""
        try:
            errors, images = _errors(name, checkpoint, options)
        except (UsageError, DataError) as error:
            print(f"densembed: {prefix}{error}", file=sys.stderr)
            failed.append(path)
        else:
            print(f"{prefix}test error: {error_text(errors, images)}")
    return _status(failed)


def _errors(
    name: str, checkpoint: Checkpoint, options: argparse.Namespace
) -> tuple[list[float], int]:
    """The test error of each member in percent, and the number of test images."""
    dataset = load_dataset(options.dataset or checkpoint.config.dataset, options.data_dir)
    if dataset.input_shape != checkpoint.header.input_shape:
        raise UsageError(
            f"{name} takes pictures of {checkpoint.header.input_shape} and "
            f"{dataset.title} has {dataset.input_shape}."
        )
    classes = checkpoint.header.classes
    if len(classes) != len(dataset.classes):
        raise UsageError(
            f"{name} knows {len(classes):,} classes and {dataset.title} has "
            f"{len(dataset.classes):,}: evaluate it on data with the same classes."
        )
    test = (dataset.in_order(classes) or dataset).test
    models = [checkpoint.model(member=member) for member in range(checkpoint.members)]
    return [test_error(_widened(model, test), test) for model in models], len(test)


def _widened(model, split: Split):
    """The model, in float64 where its scores overflow float32."""
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
    failed = []
    for path, checkpoint in _opened(options.checkpoint, failed):
        errors = checkpoint.errors
        cells = (
            printable(path.name),
            checkpoint.config.model,
            str(checkpoint.parameters),
            checkpoint.header.provenance.dataset_title,
            error_text(errors, checkpoint.header.provenance.test_images) if errors else "not known",
            str(checkpoint.steps[-1]),
            str(len(checkpoint.steps)),
        )
        table.add_row(*map(Text, cells))  # brackets in a name are no markup
    if not table.row_count:
        return _status(failed)
    console = Console()
    # In a pipe nothing is cut: a table is for reading by programs there, too.
    Console(width=None if console.is_terminal else 200).print(table)
    return _status(failed)


def _read(options: argparse.Namespace) -> int:
    checkpoint = Checkpoint.open(options.checkpoint)
    model = checkpoint.model()
    labels = _labels(options.labels) if options.labels else {}
    results = [
        _read_one(checkpoint, model, path, labels, options.data_dir) for path in options.image
    ]
    status = 2 if any(result["error"] for result in results) else 0
    if options.json:
        print(json.dumps(results, indent=1, ensure_ascii=False))
        return status
    for result in results:
        print(_sentence(result), file=sys.stderr if result["error"] else sys.stdout)
    judged = [result for result in results if result["label"]]
    if judged:
        right = sum(result["class"] == result["label"] for result in judged)
        print(f"{right} of {len(judged)} right")
    return status


def _read_one(
    checkpoint: Checkpoint, model, path: Path, labels: dict[str, str], data_dir: Path | None
) -> dict:
    """What `--json` says of a picture: the same keys for each, None where there is nothing."""
    keys = ("file", "label", "seen", "class", "probability", "unlike", "error")
    name = printable(path.name)
    result = dict.fromkeys(keys) | {"file": name, "label": labels.get(name)}
    try:
        picture = read_picture(path, checkpoint.header.input_shape, checkpoint.reads_digits)
    except ImageError as error:
        return result | {"seen": "nothing", "error": str(error)}
    result["seen"] = picture.seen
    if picture.has_ink:
        probabilities = logits(model, as_input(picture.pixels[None]))[0].softmax(0)
        best = int(probabilities.argmax())
        result["class"] = checkpoint.header.classes[best]
        result["probability"] = round(probabilities[best].item(), 4)
        result["unlike"] = unlike_training(picture, checkpoint, data_dir)
    return result


def _sentence(result: dict) -> str:
    if result["error"]:
        return f"{result['file']}: {result['error']}"
    if result["class"] is None:
        return f"{result['file']}: no digit was found"
    text = f"{result['file']}: {result['class']}  {result['probability']:.2f}"
    if result["seen"] == "several digits":
        text += "  (several digits)"
    elif result["unlike"]:
        text += "  (unlike what the model learned from)"
    if result["label"] not in (None, result["class"]):
        text += f"  (it is {result['label']})"
    return text


def _labels(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(path.name)} is not a text in UTF-8.") from error
    with io.StringIO(text, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        if not {"file", "digit"} <= set(rows.fieldnames or ()):
            raise UsageError(
                f"{printable(path.name)} needs the columns file and digit, separated by tabs."
            )
        # A dash, or nothing, is a picture of which no digit is known.
        known = {row["file"]: row["digit"] for row in rows}
        return {file: digit for file, digit in known.items() if digit not in (None, "", "-")}


def _render(options: argparse.Namespace) -> int:
    writers = {".html": write_html, ".npz": write_npz}
    writers |= dict.fromkeys((".svg", ".pdf", ".png"), write_printed)
    ending = options.out.suffix.lower()
    if ending not in writers:
        raise UsageError("--out is a file that ends in .html, .svg, .pdf, .png or .npz.")
    if not 1 <= options.resolution <= 32:
        raise UsageError("--resolution is a number of cells a pixel between 1 and 32.")
    checkpoint = Checkpoint.open(options.checkpoint)
    shape = checkpoint.header.input_shape
    picture = read_picture(options.image, shape, checkpoint.reads_digits)
    if picture.seen == "no ink":
        print(
            "densembed: no digit was found; the field is that of a blank picture.", file=sys.stderr
        )
    # A page has a slider over all steps; what is printed has the first and the last.
    snapshots = None if ending == ".html" else [0, -1]
    seen = view(checkpoint, picture.pixels, snapshots, resolution=options.resolution)
    writers[ending](options.out, checkpoint, picture.pixels, seen)
    print(f"saved: {printable(options.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
