"""Trains the run in a folder and records every outcome there, failures included."""

import contextlib
import errno
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
from densembed.data.folder import reread
from densembed.runs.events import accepted_data, end_state, starts
from densembed.runs.folder import Run, TrainingFolder
from densembed.runs.jobs import download_reporter
from densembed.runs.speed import record
from densembed.training.config import explain
from densembed.training.header import Outcome
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
"""Least seconds between two checkpoints; the last one is always written."""
KEEP_EVERY = 1.0
"""Seconds between two resume states, and thus the most training that a kill can lose."""
RESTARTS = 3
"""How often a run whose process died resumes without a request."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MEMORY = "Out of memory. Choose a smaller batch size, a smaller model or another device."


class DataChanged(Exception):
    """The data set differs from the one that the run was trained on so far."""

    def __init__(self, reason: str, digest: str):
        super().__init__(reason)
        self.digest = digest


def execute(path: str, data_dir: str | None = None) -> str:
    """Train the run in a folder in this process; returns its final state.

    If another process holds the lock, nothing is done. A run whose process died resumes from its
    last saved state, at most `RESTARTS` times. No exception is raised: a failure is recorded as a
    state with a reason.
    """
    run = Run(Path(path))
    if not run.path.is_dir():  # deleted while queued; taking the lock would create it again
        return "failed"
    return locked(run, lambda: _execute_locked(run, data_dir))


def locked(folder: TrainingFolder, train: Callable[[], str]) -> str:
    """Call `train` with the folder's lock and return its state, or that of the other process."""
    try:
        with filelock.FileLock(folder.path / "lock", timeout=2):
            return train()
    except filelock.Timeout:
        return "running"
    except OSError:  # the folder is missing or not writable, so nothing can be recorded
        return "failed"


def _execute_locked(run: Run, data_dir: str | None) -> str:
    if state := end_state(run.last):
        return state
    if (request := run.request()) in ("stop", "pause"):
        return _end(run, "stopped" if request == "stop" else "paused")
    if (deaths := starts(run.events())) > RESTARTS:
        return end(run, "failed", died(run, deaths))
    try:
        ended = _train(run, data_dir)
        while ended[0] == "paused" and not run.request():  # the request was withdrawn meanwhile
            ended = _train(run, data_dir)
        return _end(run, *ended)
    except DataChanged as change:
        run.append("end", state="paused", reason=str(change), data=change.digest)
        return "paused"
    except Exception as error:
        return fail(run, error)


def fail(run: TrainingFolder, error: Exception) -> str:
    """Record the reason first, for which a full disk may still have room, then the traceback."""
    end(run, "failed", _reason(run, error))
    if not isinstance(error, (DataError, ValueError)):
        log = "".join(traceback.format_exception(error))
        with contextlib.suppress(OSError):
            (run.path / "log.txt").write_bytes(log.encode(errors="backslashreplace"))
    return "failed"


def _reason(run: TrainingFolder, error: Exception) -> str:
    if isinstance(error, ValidationError):
        return explain(error)
    if isinstance(error, (DataError, ValueError)):
        return str(error)
    if isinstance(error, OSError):
        return _about_file(run, error)
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return f"{MEMORY} {run.saved}".strip()
    return f"Training failed ({type(error).__name__}). See the log for details."


def _about_file(run: TrainingFolder, error: OSError) -> str:
    """A sentence about a file that could not be written or read, and what to do."""
    reason = error.strerror or type(error).__name__
    if error.errno in NO_ROOM:
        fault, remedy = "The checkpoint could not be saved", "Free some disk space"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        fault, remedy = "A file could not be used", "Allow the app to write to the folder of runs"
    else:
        fault, remedy = "A file could not be used", "Remove the cause"
    place = f" {Path(os.fsdecode(error.filename)).name!r}" if error.filename else ""
    fault = fault.replace("A file", f"The file{place}") if place else fault
    saved = f" {run.saved}" if run.saved else ""
    return f"{fault}: {reason}.{saved} {remedy} and {run.next_step}."


def died(run: TrainingFolder, deaths: int) -> str:
    text = f"The training process died {deaths} times, possibly for lack of memory."
    return f"{text} {run.saved}".strip()


def end(run: TrainingFolder, state: str, reason: str = "") -> str:
    run.append("end", state=state, reason=reason)
    return state


def _end(run: Run, state: str, reason: str = "") -> str:
    record(run)
    end(run, state, reason)
    if state in ("done", "stopped", "diverged"):
        run.resume_path.unlink(missing_ok=True)
    return state


def _train(run: Run, data_dir: str | None) -> tuple[str, str]:
    config = run.config
    if config is None:
        raise ValueError("The run's configuration is missing or damaged. Start a new run.")
    for unfinished in run.path.glob(".*.safetensors.*.tmp"):  # of a process that died
        unfinished.unlink(missing_ok=True)
    code = code_path(config)
    resume, before, old_data = load_resume(run.resume_path) or (None, code, None)
    run.append(
        "start",
        process=os.getpid(),
        step=resume.step if resume else 0,
        path=code,
        changed=differences(before, code),
    )
    requests: list[str] = []

    def leave() -> bool:
        if (request := run.request()) in ("stop", "pause"):
            requests.append(request)
        return bool(requests)

    reread()
    try:
        with watching(leave, download_reporter(run.append)):
            dataset = load_dataset(config.dataset, data_dir)
    except Cancelled:
        return ("stopped" if requests[-1] == "stop" else "paused"), ""
    checkpoint = run.checkpoint() if resume else None
    if checkpoint:  # older versions numbered the classes in another order
        dataset = dataset.in_order(checkpoint.header.classes) or dataset
    recorder, data = Recorder(config, dataset), Data.of(dataset)
    if resume:
        if old_data and old_data.digest != data.digest:
            _check_accepted(run, old_data, data)
            if checkpoint:
                last = checkpoint.header
                resume, checkpoint, data = carry_over(resume, checkpoint, old_data, data)
                run.append(
                    "data",
                    changes=old_data.changes(data),
                    epochs=len(last.epochs),
                    before=last.steps_per_epoch,
                    now=checkpoint.header.steps_per_epoch,
                )
        elif old_data:
            data = old_data
        recorder.resume(checkpoint, resume.step, data.since)
    event: Event | None = None

    def stop() -> bool:
        if run.request() == "step" and isinstance(event, Epoch):
            requests.append("step")
        return leave()

    saved = placed = -math.inf
    stale = False
    for event in _interruptible(train(config, dataset, stop=stop, resume=resume)):
        recorder.add(event)
        now = time.monotonic()
        if isinstance(event, Progress | Epoch):
            run.append(type(event).__name__.lower(), **asdict(event))
        if isinstance(event, Diverged):
            recorder.checkpoint("diverged").save(run.checkpoint_path)
            reason = (
                f"The loss became too large at step {event.step:,}. "
                "Choose a lower learning rate. The last good snapshot was saved."
            )
            return "diverged", reason
        if isinstance(event, Resume):
            resume = event
        stale = stale or isinstance(event, Snapshot | Epoch)
        placing = isinstance(event, Resume) and now - placed > KEEP_EVERY
        # The first snapshot, and then at most one file per second, as the first steps are fast.
        # The checkpoint comes before the resume state, which cannot be used without it.
        if stale and (placing or now - saved > SAVE_EVERY):
            recorder.checkpoint().save(run.checkpoint_path)
            saved, stale = now, False
        if placing and resume:
            save_resume(run.resume_path, resume, code, data)
            placed = now
    if requests and requests[-1] != "stop" and resume and not _complete(recorder):
        recorder.checkpoint().save(run.checkpoint_path)
        save_resume(run.resume_path, resume, code, data)
        return "paused", ""
    outcome: Outcome = "done" if _complete(recorder) else "stopped"
    recorder.checkpoint(outcome).save(run.checkpoint_path)
    return outcome, ""


def _check_accepted(run: Run, before: Data, now: Data) -> None:
    """Raise DataChanged unless the user has agreed to continue with exactly these data."""
    changes = f"The data set has changed since this run began: {before.changes(now)}."
    if not before.compatible(now):
        raise DataChanged(
            f"{changes} The model does not fit the new data. The last checkpoint was saved: "
            "restore the data and resume, or start a new run.",
            "",
        )
    if accepted_data(run.events()) != now.digest:
        raise DataChanged(
            f"{changes} The last checkpoint was saved: restore the data and resume, or continue "
            "with the changed data.",
            now.digest,
        )


def _interruptible(events: Iterator[Event]) -> Iterator[Event]:
    """Let Ctrl-C end the events, so that the run is stopped and saved."""
    try:
        yield from events
    except KeyboardInterrupt:
        return


def _complete(recorder: Recorder) -> bool:
    return len(recorder.header.epochs) == recorder.header.config.epochs
