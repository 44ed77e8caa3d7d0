"""The folder of a training, which any process can read: its config, events, state and requests."""

import contextlib
import os
import re
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import filelock
from pydantic import ValidationError

from densembed.files import replace_file
from densembed.paths import runs_folder
from densembed.runs import events
from densembed.runs.events import ENDS, end_state
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError

IDENTIFIER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
MAX_NAME = 60
MAX_LOG = 20_000
LOCK_SECONDS = 1.0
LEAVING = 10
"""How many times `LOCK_SECONDS` a process may take to leave after it has recorded the end."""
PROBES, PROBE_PAUSE = 3, 0.01


def read_only() -> bool:
    """Whether this server neither trains nor deletes, as a public demo does."""
    return os.environ.get("DENSEMBED_READ_ONLY", "") not in ("", "0")


def new_identifier() -> str:
    """The current date and time, followed by random digits."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_identifier(text: str) -> bool:
    """Whether the text has the form of a run's or a sweep's identifier."""
    try:
        return bool(IDENTIFIER.fullmatch(text) and creation_time(text))
    except ValueError:  # the digits are not a date
        return False


def creation_time(identifier: str) -> datetime:
    """When a run or sweep was created, in the time zone of the machine that created it."""
    return datetime.strptime(identifier[:15], "%Y%m%d-%H%M%S")


def read_request(folder: Path) -> str:
    """The request in a folder: stop, pause or step; otherwise ""."""
    try:
        with open(folder / "control", "rb") as file:
            word = file.read(16).decode(errors="replace")
    except OSError:
        return ""
    return word if word in ("stop", "pause", "step") else ""


@dataclass(frozen=True)
class NamedFolder:
    """The folder of a run or a sweep, named by its identifier."""

    path: Path

    @property
    def identifier(self) -> str:
        return self.path.name

    @property
    def started(self) -> datetime:
        """When it was created; see `creation_time`."""
        return creation_time(self.identifier)

    def delete(self) -> None:
        """Delete the folder permanently.

        It is renamed first: a process that still writes to the old path cannot put a file back
        between two deletions.
        """
        hidden = self.path.with_name(f".{self.path.name}.deleted")
        with contextlib.suppress(OSError):
            self.path.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


@dataclass(frozen=True)
class TrainingFolder(NamedFolder, ABC):
    """A folder in which one process at a time trains: events, lock and requests."""

    @property
    def log(self) -> str:
        """The end of the traceback of a failure, or ""."""
        try:
            with open(self.path / "log.txt", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LOG))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    @property
    @abstractmethod
    def saved(self) -> str:
        """A sentence about what an unfinished training has saved, or ""."""

    @property
    @abstractmethod
    def next_step(self) -> str:
        """How to go on once the cause of a failure is gone, as the end of a sentence."""

    def events(self) -> list[dict]:
        """All events, oldest first; see `events.read`."""
        return events.read(self._events)

    def events_since(self, offset: int) -> tuple[list[dict], int]:
        """The events after `offset` bytes of the file, and the offset for the next call."""
        return events.since(self._events, offset)

    @property
    def last(self) -> dict | None:
        """The last event."""
        return events.last(self._events)

    def append(self, kind: str, /, **values) -> None:
        """Record an event. Only the process that trains or queues the run does so."""
        events.append(self._events, kind, **values)

    @property
    def _events(self) -> Path:
        return self.path / "events.jsonl"

    def running(self) -> bool:
        """Whether a process, on this machine or another one, holds the lock."""
        if not (self.path / "lock").is_file():
            return False
        for _ in range(PROBES):  # a probe by another process holds the lock for a moment
            try:
                with filelock.FileLock(self.path / "lock", blocking=False):
                    return False
            except filelock.Timeout:
                time.sleep(PROBE_PAUSE)
            except OSError:
                return False
        return True

    def state(self) -> str:
        """queued, running, paused, done, stopped, diverged, failed or interrupted."""
        last = self.last
        if (state := end_state(last)) in ENDS:
            return state
        if self.running():
            return "running"
        if last:  # it may have ended between the two reads
            last = self.last
            if (state := end_state(last)) in ENDS:
                return state
        request = self.request()
        if request == "stop":
            return "stopped"
        if request == "pause" or state == "paused":
            return "paused"
        return "interrupted" if last and last["kind"] != "queue" else "queued"

    def request(self) -> str:
        """The user's request: stop, pause or step; otherwise ""."""
        return read_request(self.path)

    def give_up(self, reason: str) -> None:
        """Record a failure if no process could train it."""
        with contextlib.suppress(OSError):
            if self.path.is_dir():
                self._append_idle(("", "paused"), "end", state="failed", reason=reason)

    def _append_idle(self, states: tuple[str, ...], kind: str, **values) -> None:
        """Record an event if no process trains and the end state is one of `states`.

        A process that has recorded the end holds the lock until it leaves, and is waited for.
        """
        for _ in range(LEAVING):
            with (
                contextlib.suppress(filelock.Timeout),
                filelock.FileLock(self.path / "lock", timeout=LOCK_SECONDS),
            ):
                if end_state(self.last) in states:
                    self.append(kind, **values)
                return
            if not end_state(self.last):
                return


@dataclass(frozen=True)
class Run(TrainingFolder):
    """The folder of one run."""

    @classmethod
    def create(cls, config: RunConfig, root: Path | None = None) -> "Run":
        """Create the folder of a new run. It stays queued until `execute` is called on it."""
        path = (root or runs_folder()) / new_identifier()
        path.mkdir(parents=True)
        try:
            replace_file(path / "config.json", config.model_dump_json(indent=1).encode())
        except OSError:
            path.rmdir()
            raise
        return cls(path)

    @classmethod
    def find(cls, identifier: str, root: Path | None = None) -> "Run | None":
        """The run with that identifier, or None. An identifier is never used as a path."""
        if not is_identifier(identifier):
            return None
        path = (root or runs_folder()) / identifier
        return cls(path) if (path / "config.json").is_file() else None

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def resume_path(self) -> Path:
        return self.path / "resume.safetensors"

    @property
    def saved(self) -> str:
        return "The last checkpoint was saved." if self.checkpoint_path.is_file() else ""

    @property
    def next_step(self) -> str:
        return "resume the run" if self.resume_path.is_file() else "run it again"

    @property
    def name(self) -> str:
        """The user's name for it, or "". Only for display."""
        try:
            with open(self.path / "name", "rb") as file:
                return _one_line(file.read(8 * MAX_NAME).decode(errors="replace"))[:MAX_NAME]
        except OSError:
            return ""

    def rename(self, name: str) -> None:
        """Give it another name, on one line. Raises ValueError for a long one."""
        if (length := len(line := _one_line(name))) > MAX_NAME:
            raise ValueError(f"A name has at most {MAX_NAME} characters; this one has {length:,}.")
        replace_file(self.path / "name", line.encode())

    @property
    def config(self) -> RunConfig | None:
        """Its config, or None if the file is missing or damaged."""
        try:
            return RunConfig.model_validate_json((self.path / "config.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def checkpoint(self) -> Checkpoint | None:
        """The last good checkpoint, or None if there is none yet."""
        try:
            return Checkpoint.open(self.checkpoint_path)
        except CheckpointError:
            return None

    def stop(self) -> None:
        """Request the end. The training obeys at its next progress report, within a second."""
        replace_file(self.path / "control", b"stop")

    def pause(self) -> None:
        """Request a pause. After `resume` the result is the same as without a pause."""
        replace_file(self.path / "control", b"pause")

    @property
    def changed_data(self) -> str:
        """The digest of the changed data because of which the run paused, otherwise ""."""
        last = self.last or {}
        return last.get("data", "") if end_state(last) == "paused" else ""

    def resume(self, epochs: int | None = None, data: str = "") -> None:
        """Queue a paused, interrupted or failed run again; `execute` continues it.

        Args:
            epochs: 1 to pause again at the end of the epoch; None to train to the end.
            data: digest of the changed data to continue with, from `changed_data`.
        """
        if epochs:
            replace_file(self.path / "control", b"step")
        else:
            (self.path / "control").unlink(missing_ok=True)
        # A process that still trains, or is about to pause, reads the control file itself.
        self._append_idle(("", "paused", "failed"), "queue", **({"data": data} if data else {}))


def _one_line(text: str) -> str:
    """Printable text on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def all_runs(root: Path | None = None) -> list[Run]:
    """Every run in the folder, newest first."""
    root = root or runs_folder()
    if not root.is_dir():
        return []
    names = sorted((entry.name for entry in os.scandir(root)), reverse=True)
    return [run for name in names if (run := Run.find(name, root))]
