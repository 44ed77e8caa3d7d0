"""A run is a folder. What is in it is all there is to know; its state is derived, never stored.

config.json             the RunConfig, written before anything else
events.jsonl            what happened, a whole line at a time
checkpoint.safetensors  the last good checkpoint, replaced atomically
lock                    held by the process that trains: "running" means just that
control                 what a person asked for ("stop")
log.txt                 the traceback of a failure, for who wants to know
"""

import json
import os
import re
import secrets
import shutil
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import filelock
from pydantic import ValidationError

from densembed.checkpoint import Checkpoint, CheckpointError, Recorder, replace_file
from densembed.config import RunConfig
from densembed.data import DataError, load_dataset
from densembed.training import Diverged, Epoch, Event, Progress, Snapshot, train

IDENTIFIER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
MAX_EVENTS_BYTES = 64 * 2**20
SAVE_EVERY = 1.0
"""Seconds between checkpoints while snapshots and epochs come fast; the end always writes one."""
ENDS = ("done", "stopped", "diverged", "failed")
PROBES, PROBE_PAUSE = 3, 0.01
DISK_ADVICE = "Free some disk space and start it again; the last checkpoint is kept."


def runs_folder() -> Path:
    """`DENSEMBED_RUNS` where it is set, else checkpoints/runs in the working directory."""
    return Path(os.environ.get("DENSEMBED_RUNS", "checkpoints/runs")).absolute()


@dataclass(frozen=True)
class Run:
    """One run's folder, seen from any process."""

    path: Path

    @classmethod
    def create(cls, config: RunConfig, root: Path | None = None) -> "Run":
        """Make the folder of a new run, queued: nothing trains until `execute` is called on it."""
        name = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        path = (root or runs_folder()) / name
        path.mkdir(parents=True)
        replace_file(path / "config.json", config.model_dump_json(indent=1).encode())
        return cls(path)

    @classmethod
    def find(cls, identifier: str, root: Path | None = None) -> "Run | None":
        """The run of that identifier, or None. An identifier is data: it is never a path."""
        if not IDENTIFIER.fullmatch(identifier):
            return None
        try:
            _time(identifier)
        except ValueError:  # digits that are no date
            return None
        path = (root or runs_folder()) / identifier
        return cls(path) if (path / "config.json").is_file() else None

    @property
    def identifier(self) -> str:
        return self.path.name

    @property
    def started(self) -> datetime:
        """When it was asked for, in this machine's time."""
        return _time(self.identifier)

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def config(self) -> RunConfig | None:
        """What it was told, or None where the file is gone or damaged."""
        try:
            return RunConfig.model_validate_json((self.path / "config.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def events(self) -> list[dict]:
        """Everything that happened, oldest first. A line still being written is left out."""
        path = self.path / "events.jsonl"
        try:
            if path.stat().st_size > MAX_EVENTS_BYTES:
                return []
            lines = path.read_bytes().split(b"\n")[:-1]
        except OSError:
            return []
        events = []
        for line in lines:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _understood(event):
                events.append(event)
        return events

    def running(self) -> bool:
        """Whether some process, on this machine or another one, holds the lock."""
        if not (self.path / "lock").is_file():
            return False
        for _ in range(PROBES):  # another page's look holds the lock for a moment, too
            try:
                with filelock.FileLock(self.path / "lock", blocking=False):
                    return False
            except filelock.Timeout:
                time.sleep(PROBE_PAUSE)
            except OSError:
                return False
        return True

    def state(self, events: list[dict] | None = None) -> str:
        """queued, running, done, stopped, diverged, failed or interrupted."""
        events = self.events() if events is None else events
        if events and events[-1]["kind"] == "end":
            return events[-1]["state"]
        if self.running():
            return "running"
        if not events:
            return "stopped" if self.stop_requested() else "queued"
        # It may have ended between the two looks.
        last = self.events()[-1:]
        return last[0]["state"] if last and last[0]["kind"] == "end" else "interrupted"

    def checkpoint(self) -> Checkpoint | None:
        """The last good checkpoint, or None while there is none."""
        try:
            return Checkpoint.open(self.checkpoint_path)
        except CheckpointError:
            return None

    def stop(self) -> None:
        """Ask for the end: obeyed at the next report of progress, within a second."""
        replace_file(self.path / "control", b"stop")

    def stop_requested(self) -> bool:
        return (self.path / "control").is_file()

    def delete(self) -> None:
        """Remove the folder for good."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _append(self, kind: str, **values) -> None:
        line = json.dumps({"kind": kind, "time": time.time(), **values}) + "\n"
        with open(self.path / "events.jsonl", "ab") as file:
            file.write(line.encode())


def _time(identifier: str) -> datetime:
    return datetime.strptime(identifier[:15], "%Y%m%d-%H%M%S")


def _understood(event: object) -> bool:
    """Whether a line is an event as this version writes them; all others are passed over."""
    if not isinstance(event, dict):
        return False

    def numbers(*names: str) -> bool:
        values = [event.get(name) for name in names]
        return all(isinstance(value, int | float) and value >= 0 for value in values)

    match event.get("kind"):
        case "start":
            return True
        case "progress":
            return numbers("step", "steps", "images_per_second") and event["steps"] > 0
        case "epoch":
            errors = event.get("test_error")
            listed = isinstance(errors, list) and len(errors) > 0
            return (
                numbers("epoch", "step")
                and listed
                and all(isinstance(error, int | float) for error in errors)
            )
        case "end":
            return event.get("state") in ENDS and isinstance(event.get("reason", ""), str)
    return False


def all_runs(root: Path | None = None) -> list[Run]:
    """Every run in the folder, newest first."""
    root = root or runs_folder()
    if not root.is_dir():
        return []
    names = sorted((entry.name for entry in os.scandir(root)), reverse=True)
    return [run for name in names if (run := Run.find(name, root))]


def execute(path: str, data_dir: str | None = None) -> str:
    """Train the run in a folder to its end, in this process; returns the state it ended in.

    Whoever comes second finds the lock taken and leaves. Nothing is raised: a failure is a state
    with a sentence.
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
    if (state := run.state(run.events())) in ENDS:
        return state
    if run.events():
        return _end(run, "failed", "The worker process died while training. Start it again.")
    if run.stop_requested():
        return _end(run, "stopped")
    try:
        return _end(run, *_train(run, data_dir))
    except (DataError, ValueError) as error:
        return _end(run, "failed", str(error))
    except OSError as error:
        _log(run)
        return _end(run, "failed", f"The run could not be saved: {error.strerror}. {DISK_ADVICE}")
    except MemoryError:
        return _end(run, "failed", "The memory ran out. Choose a smaller model or batch size.")
    except Exception as error:
        _log(run)
        return _end(run, "failed", f"Training failed ({type(error).__name__}); the log says more.")


def _end(run: Run, state: str, reason: str = "") -> str:
    run._append("end", state=state, reason=reason)
    return state


def _log(run: Run) -> None:
    (run.path / "log.txt").write_text(traceback.format_exc())


def _train(run: Run, data_dir: str | None) -> tuple[str, str]:
    config = run.config
    if config is None:
        raise ValueError("The run's configuration is gone or damaged. Start a new run.")
    run._append("start", process=os.getpid())
    dataset = load_dataset(config.dataset, data_dir)
    recorder = Recorder(config, dataset)
    saved = 0.0
    for event in _interruptible(train(config, dataset, run.stop_requested)):
        recorder.add(event)
        if isinstance(event, Progress | Epoch):
            run._append(type(event).__name__.lower(), **asdict(event))
        if isinstance(event, Diverged):
            recorder.checkpoint("diverged").save(run.checkpoint_path)
            reason = (
                f"The loss left all bounds at step {event.step:,}. "
                "Choose a lower learning rate; the last good snapshot is kept."
            )
            return "diverged", reason
        # The first snapshot, and then not more than one file a second: early ones come fast.
        if isinstance(event, Snapshot | Epoch) and time.monotonic() - saved > SAVE_EVERY:
            recorder.checkpoint().save(run.checkpoint_path)
            saved = time.monotonic()
    outcome = "done" if _complete(recorder) else "stopped"
    recorder.checkpoint(outcome).save(run.checkpoint_path)
    return outcome, ""


def _interruptible(events: Iterator[Event]) -> Iterator[Event]:
    """Ctrl-C stops a run like the button does: what it has is kept."""
    try:
        yield from events
    except KeyboardInterrupt:
        return


def _complete(recorder: Recorder) -> bool:
    return len(recorder.header.epochs) == recorder.header.config.epochs
