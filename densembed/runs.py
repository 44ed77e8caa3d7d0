"""A run is a folder. What is in it is all there is to know; its state is derived, never stored.

config.json             the RunConfig, written before anything else
name                    what a person calls it, where somebody did
events.jsonl            what happened, a whole line at a time
checkpoint.safetensors  the last good checkpoint, replaced atomically
resume.safetensors      what going on takes, while there is something to go on with
lock                    held by the process that trains: "running" means just that
control                 what a person asked for, a word: stop, pause, or step (an epoch, then pause)
log.txt                 the traceback of a failure, for who wants to know
"""

import contextlib
import json
import math
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
import torch
from pydantic import ValidationError

from densembed.checkpoint import Checkpoint, CheckpointError, Recorder, replace_file
from densembed.config import RunConfig
from densembed.data import DataError, load_dataset
from densembed.resume import code_path, differences, load_resume, save_resume
from densembed.training import Diverged, Epoch, Event, Progress, Resume, Snapshot, train

IDENTIFIER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
MAX_EVENTS_BYTES = 64 * 2**20
SAVE_EVERY = 1.0
"""Seconds between checkpoints while snapshots and epochs come fast; the end always writes one."""
KEEP_EVERY = 1.0
"""Seconds between resume states: so much is trained again after a kill, at most."""
ENDS = ("done", "stopped", "diverged", "failed")
RESTARTS = 3
"""How often a run whose process died goes on by itself."""
MAX_NAME = 60
MAX_LOG = 20_000
PATIENCE = 1.0
PROBES, PROBE_PAUSE = 3, 0.01
DISK_ADVICE = "The last checkpoint is kept: free some disk space, and resume it."


def read_only() -> bool:
    """Whether this is a public demo: explore and compare, no training, no deleting."""
    return os.environ.get("DENSEMBED_READ_ONLY", "") not in ("", "0")


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
    def resume_path(self) -> Path:
        return self.path / "resume.safetensors"

    @property
    def name(self) -> str:
        """What a person calls it, or "". Text to be shown, and nothing else."""
        try:
            with open(self.path / "name", "rb") as file:
                return _one_line(file.read(8 * MAX_NAME).decode(errors="replace"))
        except OSError:
            return ""

    def rename(self, name: str) -> None:
        replace_file(self.path / "name", _one_line(name).encode())

    @property
    def log(self) -> str:
        """The end of what a failure left, or ""."""
        try:
            with open(self.path / "log.txt", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LOG))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    @property
    def config(self) -> RunConfig | None:
        """What it was told, or None where the file is gone or damaged."""
        try:
            return RunConfig.model_validate_json((self.path / "config.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def events(self) -> list[dict]:
        """Everything that happened, oldest first.

        A line still being written is left out, and so is what a process that died had done after
        the step that the next one started from: it was done again.
        """
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
            if not _understood(event):
                continue
            if event["kind"] == "start":
                events = [done for done in events if done.get("step", 0) <= event.get("step", 0)]
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
        """queued, running, paused, done, stopped, diverged, failed or interrupted."""
        events = self.events() if events is None else events
        if (state := _end_state(events)) in ENDS:
            return state
        if self.running():
            return "running"
        if events:  # it may have ended between the two looks
            events = self.events()
            if (state := _end_state(events)) in ENDS:
                return state
        word = self.wish()
        if word == "stop":
            return "stopped"
        if word == "pause" or state == "paused":
            return "paused"
        return "interrupted" if events and events[-1]["kind"] != "queue" else "queued"

    def checkpoint(self) -> Checkpoint | None:
        """The last good checkpoint, or None while there is none."""
        try:
            return Checkpoint.open(self.checkpoint_path)
        except CheckpointError:
            return None

    def wish(self) -> str:
        """What a person asked for: stop, pause or step; else ""."""
        try:
            with open(self.path / "control", "rb") as file:
                word = file.read(16).decode(errors="replace")
        except OSError:
            return ""
        return word if word in ("stop", "pause", "step") else ""

    def stop(self) -> None:
        """Ask for the end: obeyed at the next report of progress, within a second."""
        replace_file(self.path / "control", b"stop")

    def pause(self) -> None:
        """Ask for a rest, obeyed as soon: `resume` goes on as if there had been none."""
        replace_file(self.path / "control", b"pause")

    def resume(self, epochs: int | None = None) -> None:
        """Queue it again where it is paused, interrupted or failed; `execute` goes on with it.

        Args:
            epochs: 1 to pause again at the end of the epoch; None to go on to the end.
        """
        if epochs:
            replace_file(self.path / "control", b"step")
        else:
            (self.path / "control").unlink(missing_ok=True)
        # Where it still trains, it was just told to go on; or it may be about to pause.
        with (
            contextlib.suppress(filelock.Timeout),
            filelock.FileLock(self.path / "lock", timeout=PATIENCE),
        ):
            if _end_state(self.events()) in ("", "paused", "failed"):
                self._append("queue")

    def stop_requested(self) -> bool:
        return self.wish() == "stop"

    def delete(self) -> None:
        """Remove the folder for good.

        It goes out of sight first: a process that still writes into it finds nothing there,
        instead of putting a file back between two of ours that are removed.
        """
        gone = self.path.with_name(f".{self.identifier}.deleted")
        with contextlib.suppress(OSError):
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _append(self, kind: str, **values) -> None:
        line = json.dumps({"kind": kind, "time": time.time(), **values}) + "\n"
        with open(self.path / "events.jsonl", "a+b") as file:
            if file.tell():  # a line that was cut off must not spoil this one
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else "\n" + line
            file.write(line.encode())


def _time(identifier: str) -> datetime:
    return datetime.strptime(identifier[:15], "%Y%m%d-%H%M%S")


def _one_line(text: str) -> str:
    """Printable text on one line, not too long for a list."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MAX_NAME]


def _end_state(events: list[dict]) -> str:
    return events[-1]["state"] if events and events[-1]["kind"] == "end" else ""


def _starts(events: list[dict]) -> int:
    """How often it was started since a person asked for it."""
    asked = [k for k, event in enumerate(events) if event["kind"] == "queue"]
    return sum(event["kind"] == "start" for event in events[asked[-1] if asked else 0 :])


def _understood(event: object) -> bool:
    """Whether a line is an event as this version writes them; all others are passed over."""
    if not isinstance(event, dict):
        return False

    def numbers(*names: str) -> bool:
        values = [event.get(name) for name in names]
        return all(isinstance(value, int | float) and value >= 0 for value in values)

    match event.get("kind"):
        case "start":
            return "step" not in event or numbers("step")
        case "queue":
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
            known = event.get("state") in (*ENDS, "paused")
            return known and isinstance(event.get("reason", ""), str)
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
    events = run.events()
    if state := _end_state(events):
        return state
    if state := {"stop": "stopped", "pause": "paused"}.get(run.wish()):
        return _end(run, state)
    if (starts := _starts(events)) > RESTARTS:
        return _end(
            run, "failed",
            f"The process that trained it died {starts} times, perhaps for want of memory. "
            "What it had is kept.",
        )  # fmt: skip
    try:
        end = _train(run, data_dir)
        while end[0] == "paused" and not run.wish():  # taken back while it was being obeyed
            end = _train(run, data_dir)
        return _end(run, *end)
    except (DataError, ValueError) as error:
        return _end(run, "failed", str(error))
    except OSError as error:
        return _fail(run, f"The run could not be saved: {error.strerror}. {DISK_ADVICE}")
    except (MemoryError, torch.OutOfMemoryError):
        return _end(run, "failed", "The memory ran out. Choose a smaller model or batch size.")
    except Exception as error:
        return _fail(run, f"Training failed ({type(error).__name__}); the log says more.")


def _fail(run: Run, reason: str) -> str:
    """Say so first, while a full disk may have room for that, and then log the exception."""
    _end(run, "failed", reason)
    with contextlib.suppress(OSError):
        (run.path / "log.txt").write_text(traceback.format_exc())
    return "failed"


def _end(run: Run, state: str, reason: str = "") -> str:
    run._append("end", state=state, reason=reason)
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
    resume, before = kept or (None, code)
    run._append(
        "start", process=os.getpid(), step=resume.step if resume else 0,
        path=code, changed=differences(before, code),
    )  # fmt: skip
    dataset = load_dataset(config.dataset, data_dir)
    recorder = Recorder(config, dataset)
    if resume:
        recorder.go_on(run.checkpoint(), resume.step)
    event, wishes = None, []

    def wished() -> bool:
        word = run.wish()
        if word in ("stop", "pause") or (word == "step" and isinstance(event, Epoch)):
            wishes.append(word)
        return bool(wishes)

    saved = placed = -math.inf
    stale = False
    for event in _interruptible(train(config, dataset, wished, resume)):
        recorder.add(event)
        now = time.monotonic()
        if isinstance(event, Progress | Epoch):
            run._append(type(event).__name__.lower(), **asdict(event))
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
            save_resume(run.resume_path, resume, code)
            placed = now
    if wishes and wishes[-1] != "stop" and not _complete(recorder):
        recorder.checkpoint().save(run.checkpoint_path)
        save_resume(run.resume_path, resume, code)
        return "paused", ""
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
