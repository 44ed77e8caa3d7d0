"""The command train."""

import argparse
import time
from pathlib import Path
from tempfile import mkdtemp

from densembed.cli.common import INTERRUPTED, UsageError, creating, warn
from densembed.cli.data import check_data_kept, load
from densembed.cli.progress import Bar
from densembed.data import Dataset, noun
from densembed.interrupt import ENDS, Interrupt
from densembed.runs import Run, execute
from densembed.text import in_seconds, printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.errors import Errors
from densembed.training.header import Outcome
from densembed.training.loop import Diverged, check_data, check_size, train, without_effect
from densembed.training.recorder import Recorder
from densembed.training.threads import limit_threads
from densembed.training.trainable import check_model
from densembed.workers.cluster import Cluster
from densembed.workers.scheduler import SchedulerError, connect

POLL = 0.2
"""Seconds between two checks of a run on a scheduler's worker."""


def run(options: argparse.Namespace) -> int:
    """Train a model and save its checkpoint."""
    config = RunConfig(**{name: getattr(options, name) for name in RunConfig.model_fields})
    limit_threads()
    if not options.scheduler:
        pick_device(config.device)  # before there is a run
    if options.out is None:
        return _train_in_folder(config, options)
    return _train_to_file(config, options.out, options)


def _train_to_file(config: RunConfig, out: Path, options: argparse.Namespace) -> int:
    check_data_kept(out, config.dataset, options)
    if out.suffix.lower() != ".safetensors":
        raise UsageError("--out must end in .safetensors, as it is a checkpoint.")
    dataset = load(config.dataset, options)
    recorder = Recorder(config, dataset)
    _warn_of_unused(config, dataset)
    diverged: Diverged | None = None
    with Interrupt(signals=ENDS) as interrupt:
        try:
            with Bar(config.epochs) as bar:
                for event in train(config, dataset, stop=lambda: interrupt.requested):
                    recorder.add(event)
                    bar.show(type(event).__name__.lower(), vars(event))
                    if isinstance(event, Diverged):
                        diverged = event
            interrupt.finishing = True
        except KeyboardInterrupt:  # the second Ctrl-C: save what there is
            interrupt.finishing = True
        if not recorder.snapshots:
            raise KeyboardInterrupt
        stopped = not diverged and len(recorder.header.epochs) < config.epochs
        outcome: Outcome = "diverged" if diverged else "stopped" if stopped else "done"
        checkpoint = recorder.checkpoint(outcome)
        _save(checkpoint, out)
    _report(checkpoint, out)
    if diverged:
        raise UsageError(
            f"Training diverged at step {diverged.step:,}: lower the learning rate. Saved the "
            f"last good snapshot to {printable(out)}."
        )
    return _interrupted(out) if stopped else 0


def _warn_of_unused(config: RunConfig, dataset: Dataset) -> None:
    if unused := without_effect(config, dataset):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        warn(f"{config.model} has no part that these settings concern: {flags}.")


def _save(checkpoint: Checkpoint, out: Path) -> None:
    """Save the result. If its place is gone or full by now, save it in a temporary folder."""
    try:
        checkpoint.save(out)
    except OSError as error:
        instead = Path(mkdtemp(prefix="densembed-")) / out.name
        try:
            checkpoint.save(instead)
        except OSError:
            instead.parent.rmdir()
            raise error from None
        raise UsageError(
            f"{printable(out)} cannot be written: {error.strerror}. The checkpoint was saved to "
            f"{printable(instead)}."
        ) from error


def _train_in_folder(config: RunConfig, options: argparse.Namespace) -> int:
    dataset = load(config.dataset, options)
    check_data(config, dataset)
    check_size(config, dataset)
    check_model(config, dataset)
    _warn_of_unused(config, dataset)
    if options.scheduler:  # before a run is announced that nothing would start
        connect(options.scheduler).close()
    with creating("save one file with --out"):
        run = Run.create(config)
    try:
        print(f"run {run.identifier} in {printable(run.path)}", flush=True)
    except OSError:  # the output cannot be written
        run.delete()  # nothing would ever start it
        raise
    try:
        with Interrupt(run.stop, ENDS), Bar(config.epochs) as bar, bar.following(run):
            if options.scheduler:
                state = _train_on_worker(run, options.scheduler, options.data_dir)
            else:
                state = execute(str(run.path), options.data_dir)
    except KeyboardInterrupt:  # the second Ctrl-C
        state = "stopped"
    if not run.path.is_dir():
        raise UsageError(
            f"{printable(run.path)} was deleted during the training, so nothing was saved."
        )
    checkpoint = run.checkpoint()
    if state in ("queued", "running"):  # of a worker that is not heard of any more
        raise UsageError(
            f"The scheduler no longer answers. What was trained is kept in {printable(run.path)}; "
            "the page Train of the app can resume it."
        )
    if state not in ("done", "stopped"):
        raise UsageError((run.last or {}).get("reason") or f"The run was {state}.")
    if checkpoint is None:
        raise KeyboardInterrupt
    _report(checkpoint, run.checkpoint_path)
    return _interrupted(run.checkpoint_path) if state == "stopped" else 0


def _train_on_worker(run: Run, scheduler: str, data_dir: Path | None) -> str:
    """Train a run on a scheduler's worker; returns the run's final state."""
    cluster = Cluster(scheduler)
    try:
        cluster.submit(run, execute, str(data_dir.absolute()) if data_dir else None)
    except SchedulerError:
        run.delete()  # nothing would ever start it
        raise
    if wanting := cluster.wanting(run):
        print(wanting)
    # A run that was stopped before a worker took it is over, too.
    while cluster.ahead(run) is not None and run.state() != "stopped":
        time.sleep(POLL)
    cluster.close()
    return run.state()


def _report(checkpoint: Checkpoint, path: Path) -> None:
    if checkpoint.errors:
        seconds = sum(epoch.seconds for epoch in checkpoint.header.epochs)
        header = checkpoint.header
        errors = Errors(checkpoint.errors)
        error = errors.text(header.provenance.test_images, noun(header.input_shape))
        print(f"test error: {error}  (trained in {in_seconds(seconds)})")
    print(f"saved: {printable(path)}")


def _interrupted(path: Path) -> int:
    warn(f"Interrupted. Saved the latest snapshot to {printable(path)}.")
    return INTERRUPTED
