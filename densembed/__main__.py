"""The command line: python -m densembed COMMAND."""

import argparse
import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from densembed import plugins
from densembed.checkpoint import Checkpoint, CheckpointError, Recorder, error_text
from densembed.cluster import Cluster
from densembed.config import RunConfig, explain
from densembed.data import DataError, Dataset, as_input, load_dataset
from densembed.data.images import ImageError, read_picture
from densembed.experiments import (
    add_benchmark,
    add_reproduce,
    add_scheduler,
    benchmark_command,
    reproduce_command,
)
from densembed.process import settle
from densembed.runs import Run, execute
from densembed.sweep_command import add_sweep, sweep_command
from densembed.training import Diverged, Epoch, Progress, test_error, train

ABOUT = "Density-embedding layers: receptive fields that adapt."


class UsageError(Exception):
    """One sentence for stderr; the exit status is 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        plugins.load(options.plugin)
        return options.run(options) or 0
    except (UsageError, CheckpointError, DataError, ImageError, ValueError) as error:
        sentence = explain(error) if isinstance(error, ValidationError) else str(error)
        print(f"densembed: {sentence}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"densembed: {error.filename}: {error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("densembed: stopped.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("densembed", description=ABOUT)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(commands, "train", _train, "train a model and keep its checkpoint")
    _config_flags(command)
    command.add_argument("--data-dir", type=Path, help="folder with the data set's files")
    command.add_argument("--out", type=Path, help="write this one file instead of a run's folder")
    add_scheduler(command)

    command = _command(commands, "evaluate", _evaluate, "test error of checkpoints")
    command.add_argument("checkpoint", type=Path, nargs="+")
    command.add_argument("--dataset", help="another one than it learned from")
    command.add_argument("--data-dir", type=Path)

    command = _command(commands, "info", _info, "what checkpoints hold")
    command.add_argument("checkpoint", type=Path, nargs="+")

    command = _command(commands, "read", _read, "read digits from pictures")
    command.add_argument("checkpoint", type=Path)
    command.add_argument("image", type=Path, nargs="+")
    command.add_argument("--labels", type=Path, help="table (tab-separated) with file and digit")
    command.add_argument("--json", action="store_true")

    command = _command(commands, "render", _render, "receptive fields of one picture")
    command.add_argument("checkpoint", type=Path)
    command.add_argument("--image", type=Path, required=True)
    command.add_argument(
        "--out", type=Path, required=True, help="FILE.html, or .svg, .pdf, .png for print, or .npz"
    )
    command.add_argument("--resolution", type=int, default=4, help="cells a pixel (1 to 32)")

    command = _command(commands, "reproduce", reproduce_command, "the paper's results, made anew")
    add_reproduce(command)

    command = _command(commands, "sweep", sweep_command, "train a grid over fields of a config")
    add_sweep(command)

    command = _command(commands, "benchmark", benchmark_command, "measure every speed claim")
    add_benchmark(command)
    return parser


def _command(commands, name, run, text):
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    command.add_argument(
        "--plugin", action="append", default=[], metavar="MODULE",
        help="Python module with densities or models of your own (may be repeated)",
    )  # fmt: skip
    return command


def _config_flags(command: argparse.ArgumentParser) -> None:
    """A flag for every field of RunConfig; the model is the first argument."""
    for name, field in RunConfig.model_fields.items():
        text = f"{field.description} (default {field.default})"
        if name == "model":
            command.add_argument(name, help=field.description)
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
        raise UsageError(f"--out {options.out} is not a file that can be written.")
    dataset = load_dataset(config.dataset, options.data_dir)
    _name_left_out(dataset)
    recorder = Recorder(config, dataset)
    outcome = "done"
    with _Bar() as bar:
        try:
            for event in train(config, dataset):
                recorder.add(event)
                bar.show(event)
                if isinstance(event, Diverged):
                    outcome = "diverged"
                    sentence = f"The loss left all bounds at step {event.step:,}; lower the rate."
        except KeyboardInterrupt:
            outcome, sentence = "stopped", "Stopped before the end."
    if not recorder.snapshots:
        raise UsageError("Stopped before there was anything to keep.")
    checkpoint = recorder.checkpoint(outcome)
    checkpoint.save(options.out)
    _report(checkpoint, options.out)
    if outcome != "done":
        raise UsageError(f"{sentence} The last good snapshot is in {options.out}.")
    return 0


def _train_in_folder(config: RunConfig, options: argparse.Namespace) -> int:
    _name_left_out(load_dataset(config.dataset, options.data_dir))
    run = Run.create(config)
    print(f"run {run.identifier} in {run.path}")
    if options.scheduler:
        state = _on_workers(run, options)
    else:
        state = execute(str(run.path), options.data_dir)
    if state == "stopped":
        print(f"stopped; the last snapshot is in {run.checkpoint_path}", file=sys.stderr)
        return 130
    if state != "done":
        raise UsageError(run.events()[-1].get("reason") or f"The run was {state}.")
    _report(run.checkpoint(), run.checkpoint_path)
    return 0


def _on_workers(run: Run, options: argparse.Namespace) -> str:
    """Hand it to a scheduler and wait; Ctrl-C stops it as it would here."""
    cluster = Cluster(options.scheduler)
    cluster.submit(run, str(options.data_dir.absolute()) if options.data_dir else None)
    if wanting := cluster.wanting(run):
        print(wanting)
    try:
        _wait(cluster, run)
    except KeyboardInterrupt:
        run.stop()
        _wait(cluster, run)
    cluster.close()
    return run.state()


def _wait(cluster: Cluster, run: Run) -> None:
    while cluster.ahead(run) is not None:
        time.sleep(0.2)


NAMED = 20


def _name_left_out(dataset: Dataset) -> None:
    """Say which files of a folder are no pictures."""
    for place in dataset.left_out[:NAMED]:
        print(f"densembed: left out, as it is no picture: {place}", file=sys.stderr)
    if (more := len(dataset.left_out) - NAMED) > 0:
        print(f"densembed: and {more:,} more.", file=sys.stderr)


def _report(checkpoint: Checkpoint, path: Path) -> None:
    if checkpoint.errors:
        seconds = sum(epoch.seconds for epoch in checkpoint.header.epochs)
        print(f"test error: {error_text(checkpoint.errors)}  (trained in {seconds:.1f} s)")
    print(f"saved: {path}")


class _Bar:
    """A progress bar that follows the events of a training."""

    def __enter__(self):
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), transient=True
        )
        self.task = self.bar.add_task("training", total=None)
        self.bar.start()
        return self

    def __exit__(self, *error):
        self.bar.stop()

    def show(self, event) -> None:
        if isinstance(event, Progress):
            self.bar.update(self.task, completed=event.step, total=event.steps)
        if isinstance(event, Epoch):
            self.bar.update(self.task, description=f"test error {error_text(event.test_error)}")


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
        dataset = load_dataset(options.dataset or checkpoint.config.dataset, options.data_dir)
        if dataset.input_shape != checkpoint.header.input_shape:
            raise UsageError(
                f"{path.name} takes pictures of {checkpoint.header.input_shape} and "
                f"{dataset.title} has {dataset.input_shape}."
            )
        prefix = f"{path.name}: " if len(options.checkpoint) > 1 else ""
        models = [checkpoint.model(member=member) for member in range(checkpoint.members)]
        if not all(_finite_scores(model, dataset) for model in models):
            print(
                f"densembed: {path.name}: its scores are not finite numbers, so its test error "
                "means nothing: its weights are too large.",
                file=sys.stderr,
            )
            failed.append(path)
            continue
        print(f"{prefix}test error: {error_text([test_error(m, dataset.test) for m in models])}")
    return _status(failed)


def _finite_scores(model, dataset: Dataset) -> bool:
    """Whether a model answers the first test images by numbers."""
    return bool(model(as_input(dataset.test.images[:64])).isfinite().all())


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
            path.name,
            checkpoint.config.model,
            str(checkpoint.parameters),
            checkpoint.header.provenance.dataset_title,
            error_text(errors) if errors else "not known",
            str(checkpoint.steps[-1]),
            str(len(checkpoint.steps)),
        )
        table.add_row(*map(Text, cells))  # brackets in a name are no markup
    console = Console()
    # In a pipe nothing is cut: a table is for reading by programs there, too.
    Console(width=None if console.is_terminal else 200).print(table)
    return _status(failed)


def _read(options: argparse.Namespace) -> int:
    checkpoint = Checkpoint.open(options.checkpoint)
    model = checkpoint.model()
    labels = _labels(options.labels) if options.labels else {}
    results = [_read_one(checkpoint, model, path, labels) for path in options.image]
    # A stray file among many is named and passed over; when nothing can be read, that is an error.
    status = 2 if all("error" in result for result in results) else 0
    if options.json:
        print(json.dumps(results, indent=1, ensure_ascii=False))
        return status
    for result in results:
        print(_sentence(result), file=sys.stderr if "error" in result else sys.stdout)
    judged = [result for result in results if result.get("label", "-") != "-"]
    if judged:
        right = sum(result.get("class") == result["label"] for result in judged)
        print(f"{right} of {len(judged)} right")
    return status


UNANSWERED = (
    "The model's scores for this picture are not finite numbers, so it gives no answer: its "
    "weights are too large."
)


def _read_one(checkpoint: Checkpoint, model, path: Path, labels: dict[str, str]) -> dict:
    result = {"file": path.name}
    if path.name in labels:
        result["label"] = labels[path.name]
    try:
        picture = read_picture(path, checkpoint.header.input_shape, checkpoint.reads_digits)
    except ImageError as error:
        return result | {"seen": "nothing", "error": str(error)}
    result["seen"] = picture.seen
    if picture.seen != "no ink":
        probabilities = model(as_input(picture.pixels[None]))[0].softmax(0)
        if not probabilities.isfinite().all():
            return result | {"error": UNANSWERED}
        best = int(probabilities.argmax())
        result["class"] = checkpoint.header.classes[best]
        result["probability"] = round(probabilities[best].item(), 4)
    return result


def _sentence(result: dict) -> str:
    label = result.get("label", "-")
    if "error" in result:
        return f"{result['file']}: {result['error']}"
    if "class" not in result:
        return f"{result['file']}: {result['seen']}"
    text = f"{result['file']}: {result['class']}  {result['probability']:.2f}"
    if result["seen"] == "several digits":
        text += "  (several digits)"
    if label != "-" and label != result["class"]:
        text += f"  (it is {label})"
    return text


def _labels(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not a text in UTF-8.") from error
    with io.StringIO(text, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        if not {"file", "digit"} <= set(rows.fieldnames or ()):
            raise UsageError(f"{path.name} needs the columns file and digit, separated by tabs.")
        return {row["file"]: row["digit"] or "-" for row in rows}


def _render(options: argparse.Namespace) -> int:
    from densembed.export import write_html, write_npz, write_printed
    from densembed.fields import view

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
        print("densembed: no ink was found; the field is that of an empty page.", file=sys.stderr)
    seen = view(checkpoint, picture.pixels, [0, -1], resolution=options.resolution)
    if seen.remark:
        print(f"densembed: {seen.remark}", file=sys.stderr)
    writers[ending](options.out, checkpoint, picture.pixels, seen)
    print(f"saved: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
