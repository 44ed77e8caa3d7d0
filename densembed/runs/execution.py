"""Training the run in a folder to its end, whatever happens on the way."""

import contextlib
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import filelock
import torch
from pydantic import ValidationError

from densembed.data import DataError, load_dataset
from densembed.data.download import Cancelled, watching
from densembed.runs.events import accepted_data, end_state, starts
from densembed.runs.folder import Run
from densembed.training.config import explain
from densembed.training.loop import Diverged, Epoch, Event, Progress, Resume, Snapshot, train
from densembed.training.recorder import Recorder
from densembed.training.resume import (
    Data,
    carry_over,
    code_path,
    differences,
    load_resume,
    save_resume,
)

SAVE_EVERY = 1.0
"""Seconds between checkpoints while snapshots and epochs come fast; the end always writes one."""
KEEP_EVERY = 1.0
"""Seconds between resume states: so much is trained again after a kill, at most."""
TELL_EVERY = 1.0
"""Seconds between reports of a download."""
RESTARTS = 3
"""How often a run whose process died goes on by itself."""
FULL = "The last checkpoint is kept: free some disk space, and resume it."
MEMORY = (
    "The memory ran out: choose a smaller batch size, a smaller model or another device. "
    "What it had is kept."
)


class DataChanged(Exception):
    """The data are not those that the run has learned from; the message is for a person."""

    def __init__(self, reason: str, digest: str):
        super().__init__(reason)
        self.digest = digest


def execute(path: str, data_dir: str | None = None) -> str:
    """Train the run in a folder to its end, in this process; returns the state it ended in.

    Whoever comes second finds the lock taken and leaves. A run whose process died goes on from
    what it kept, `RESTARTS` times. Nothing is raised: a failure is a state with a sentence.
    """
    run = Run(Path(path))
    if not run.path.is_dir():  # deleted in the queue; taking the lock would make it anew
        return "failed"
    try:
        with filelock.FileLock(run.path / "lock", timeout=2):
            return _execute_locked(run, data_dir)
    except filelock.Timeout:
        return "running"
    except OSError:  # the folder is gone or not writable; there is no place to say more
        return "failed"


def _execute_locked(run: Run, data_dir: str | None) -> str:
    if state := end_state(run.last):
        return state
    if state := {"stop": "stopped", "pause": "paused"}.get(run.wish()):
        return end(run, state)
    if (deaths := starts(run.events())) > RESTARTS:
        return end(run, "failed", died(deaths))
    try:
        ended = _train(run, data_dir)
        while ended[0] == "paused" and not run.wish():  # taken back while it was being obeyed
            ended = _train(run, data_dir)
        return end(run, *ended)
    except DataChanged as change:
        run.append("end", state="paused", reason=str(change), data=change.digest)
        return "paused"
    except Exception as error:
        return fail(run, error)


def fail(run: Run, error: Exception) -> str:
    """Say why first, while a full disk may have room for that, and then log the exception."""
    end(run, "failed", _reason(error))
    if not isinstance(error, (DataError, ValueError)):
        with contextlib.suppress(OSError):
            (run.path / "log.txt").write_text("".join(traceback.format_exception(error)))
    return "failed"


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return explain(error)
    if isinstance(error, (DataError, ValueError)):
        return str(error)
    if isinstance(error, OSError):
        return f"What it learned could not be saved: {error.strerror}. {FULL}"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return MEMORY
    return f"Training failed ({type(error).__name__}); the log says more."


def died(deaths: int) -> str:
    return (
        f"The process that trained it died {deaths} times, perhaps for want of memory. "
        "What it had is kept."
    )


def end(run: Run, state: str, reason: str = "") -> str:
    run.append("end", state=state, reason=reason)
    if state in ("done", "stopped", "diverged"):
        run.resume_path.unlink(missing_ok=True)
    return state


def _train(run: Run, data_dir: str | None) -> tuple[str, str]:
    config = run.config
    if config is None:
        raise ValueError("The run's configuration is gone or damaged. Start a new run.")
    for left in run.path.glob(".*.safetensors.*.tmp"):  # what a process that died was writing
        left.unlink(missing_ok=True)
    code = code_path(config)
    kept = load_resume(run.resume_path)
    resume, before, old_data = kept or (None, code, None)
    run.append(
        "start", process=os.getpid(), step=resume.step if resume else 0,
        path=code, changed=differences(before, code),
    )  # fmt: skip
    wishes: list[str] = []

    def leave() -> bool:
        if (word := run.wish()) in ("stop", "pause"):
            wishes.append(word)
        return bool(wishes)

    try:
        with watching(leave, _teller(run)):
            dataset = load_dataset(config.dataset, data_dir)
    except Cancelled:
        return ("stopped" if wishes[-1] == "stop" else "paused"), ""
    checkpoint = run.checkpoint() if resume else None
    if checkpoint:  # an older version may have numbered the classes in another order
        dataset = dataset.in_order(checkpoint.header.classes) or dataset
    recorder, data = Recorder(config, dataset), Data.of(dataset)
    if resume:
        if old_data and old_data.digest != data.digest:
            _check_accepted(run, old_data, data)
            if checkpoint:
                resume, checkpoint, data = carry_over(resume, checkpoint, old_data, data)
        elif old_data:
            data = old_data
        recorder.go_on(checkpoint, resume.step, data.since)
    event = None

    def wished() -> bool:
        if run.wish() == "step" and isinstance(event, Epoch):
            wishes.append("step")
        return leave()

    saved = placed = -math.inf
    stale = False
    for event in _interruptible(train(config, dataset, wished, resume)):
        recorder.add(event)
        now = time.monotonic()
        if isinstance(event, Progress | Epoch):
            run.append(type(event).__name__.lower(), **asdict(event))
        if isinstance(event, Diverged):
            recorder.checkpoint("diverged").save(run.checkpoint_path)
            reason = (
                f"The loss left all bounds at step {event.step:,}. "
                "Choose a lower learning rate; the last good snapshot is kept."
            )
            return "diverged", reason
        if isinstance(event, Resume):
            resume = event
        stale = stale or isinstance(event, Snapshot | Epoch)
        placing = isinstance(event, Resume) and now - placed > KEEP_EVERY
        # The first snapshot, and then not more than one file a second: early ones come fast. And
        # before the place, which is of no use without what was learnt on the way there.
        if stale and (placing or now - saved > SAVE_EVERY):
            recorder.checkpoint().save(run.checkpoint_path)
            saved, stale = now, False
        if placing:
            save_resume(run.resume_path, resume, code, data)
            placed = now
    if wishes and wishes[-1] != "stop" and not _complete(recorder):
        recorder.checkpoint().save(run.checkpoint_path)
        save_resume(run.resume_path, resume, code, data)
        return "paused", ""
    outcome = "done" if _complete(recorder) else "stopped"
    recorder.checkpoint(outcome).save(run.checkpoint_path)
    return outcome, ""


def _check_accepted(run: Run, before: Data, now: Data) -> None:
    """Raise DataChanged unless a person has said to go on with just these data."""
    changes = f"The data have changed since this run began: {before.changes(now)}."
    if not before.compatible(now):
        # Nothing to agree to: the model has other inputs or outputs.
        raise DataChanged(
            f"{changes} Its model does not fit them. What was learned is kept: restore the data "
            "and resume, or start a new run.",
            "",
        )
    if accepted_data(run.events()) != now.digest:
        raise DataChanged(
            f"{changes} What was learned is kept: restore the data and resume, or go on with the "
            "changed data.",
            now.digest,
        )


def _teller(run: Run) -> Callable[[int, int], None]:
    """What says in the run's folder how far a download is."""
    told = -math.inf

    def tell(received: int, size: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_EVERY:
            told = time.monotonic()
            run.append("download", received=received, size=size)

    return tell


def _interruptible(events: Iterator[Event]) -> Iterator[Event]:
    """Ctrl-C stops a run like the button does: what it has is kept."""
    try:
        yield from events
    except KeyboardInterrupt:
        return


def _complete(recorder: Recorder) -> bool:
    return len(recorder.header.epochs) == recorder.header.config.epochs
