"""The command train."""

import argparse
import os
import time
from pathlib import Path

from densembed.cli.common import (
    INTERRUPTED,
    Command,
    UsageError,
    add_data_dir,
    as_path,
    load,
    warn,
)
from densembed.cli.progress import Bar, Interrupt
from densembed.cli.reproduce import add_scheduler
from densembed.data import DATASETS
from densembed.runs import Run, execute
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.loop import Diverged, train
from densembed.training.recorder import Recorder
from densembed.training.threads import limit_threads
from densembed.workers.cluster import Cluster

POLL = 0.2
"""Seconds between two checks of a run on a scheduler's worker."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every field of RunConfig; the model is the first argument."""
    for name, field in RunConfig.model_fields.items():
        text = f"{field.description} (default {field.default})"
        if name == "dataset":
            text = f"{', '.join(DATASETS)} or folder:PATH (default {field.default})"
        if name == "model":
            parser.add_argument(name, help="name of the model: see below")
        else:
            parser.add_argument("--" + name.replace("_", "-"), default=field.default, help=text)
    add_data_dir(parser)
    parser.add_argument("--out", type=as_path, help="write one file instead of a run folder")
    add_scheduler(parser)


def _run(options: argparse.Namespace) -> int:
    config = RunConfig(**{name: getattr(options, name) for name in RunConfig.model_fields})
    limit_threads()
    if options.out is None:
        return _train_in_folder(config, options)
    return _train_to_file(config, options.out, options)


def _train_to_file(config: RunConfig, out: Path, options: argparse.Namespace) -> int:
    free = out.is_file() or not out.exists()  # not a folder, a device or a named pipe
    if not (free and out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise UsageError(
            f"--out {printable(out)} cannot be written: choose a file in a folder that exists "
            "and is writable."
        )
    dataset = load(config.dataset, options)
    recorder = Recorder(config, dataset)
    diverged: Diverged | None = None
    with Interrupt() as interrupt, Bar(config.epochs) as bar:
        try:
            for event in train(config, dataset, stop=lambda: interrupt.requested):
                recorder.add(event)
                bar.show(type(event).__name__.lower(), vars(event))
                if isinstance(event, Diverged):
                    diverged = event
        except KeyboardInterrupt:  # the second Ctrl-C: save what there is
            pass
    if not recorder.snapshots:
        raise UsageError("Interrupted before the first snapshot, so nothing was saved.")
    stopped = not diverged and len(recorder.header.epochs) < config.epochs
    checkpoint = recorder.checkpoint("diverged" if diverged else "stopped" if stopped else "done")
    checkpoint.save(out)
    _report(checkpoint, out)
    if diverged:
        raise UsageError(
            f"Training diverged at step {diverged.step:,}: lower the learning rate. Saved the "
            f"last good snapshot to {printable(out)}."
        )
    return _interrupted(out) if stopped else 0


def _train_in_folder(config: RunConfig, options: argparse.Namespace) -> int:
    load(config.dataset, options)
    run = Run.create(config)
    print(f"run {run.identifier} in {printable(run.path)}", flush=True)
    try:
        with Interrupt(run.stop), Bar(config.epochs) as bar, bar.following(run):
            if options.scheduler:
                state = _train_on_worker(run, options.scheduler, options.data_dir)
            else:
                state = execute(str(run.path), options.data_dir)
    except KeyboardInterrupt:  # the second Ctrl-C
        state = "stopped"
    checkpoint = run.checkpoint()
    if state not in ("done", "stopped"):
        raise UsageError(run.events()[-1].get("reason") or f"The run was {state}.")
    if checkpoint is None:
        raise KeyboardInterrupt
    _report(checkpoint, run.checkpoint_path)
    return _interrupted(run.checkpoint_path) if state == "stopped" else 0


def _train_on_worker(run: Run, scheduler: str, data_dir: Path | None) -> str:
    """Train a run on a scheduler's worker; returns the run's final state."""
    cluster = Cluster(scheduler)
    cluster.submit(run, execute, str(data_dir.absolute()) if data_dir else None)
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
        error = Errors(checkpoint.errors).text(checkpoint.header.provenance.test_images)
        print(f"test error: {error}  (trained in {seconds:.1f} s)")
    print(f"saved: {printable(path)}")


def _interrupted(path: Path) -> int:
    warn(f"Interrupted. Saved the latest snapshot to {printable(path)}.")
    return INTERRUPTED


TRAIN = Command(
    name="train",
    text="train a model and save its checkpoint",
    add_arguments=_add_arguments,
    run=_run,
    examples=(
        "train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors",
        "train gaussian-el-5 --dataset mnist --epochs 5 --seeds 3",
    ),
    lists_names=True,
    interrupted="Interrupted. Nothing was saved.",
)
