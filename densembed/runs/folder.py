"""A run's folder, seen from any process: what it was told, how it stands, what it is asked."""

import contextlib
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import filelock
from pydantic import ValidationError

from densembed.files import replace_file
from densembed.runs import events
from densembed.runs.events import ENDS, end_state
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.training.config import RunConfig

IDENTIFIER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
MAX_NAME = 60
MAX_LOG = 20_000
PATIENCE = 1.0
PROBES, PROBE_PAUSE = 3, 0.01


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
        if not is_identifier(identifier):
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
        """Everything that happened, oldest first; see `events.read`."""
        return events.read(self._events)

    def events_since(self, offset: int) -> tuple[list[dict], int]:
        """What happened after `offset` bytes of the record, and the offset for the next call."""
        return events.since(self._events, offset)

    @property
    def last(self) -> dict | None:
        """The last event."""
        return events.last(self._events)

    def append(self, kind: str, /, **values) -> None:
        """Say what happened: for the process that trains it, or queues it."""
        events.append(self._events, kind, **values)

    @property
    def _events(self) -> Path:
        return self.path / "events.jsonl"

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

    def state(self) -> str:
        """queued, running, paused, done, stopped, diverged, failed or interrupted."""
        last = self.last
        if (state := end_state(last)) in ENDS:
            return state
        if self.running():
            return "running"
        if last:  # it may have ended between the two looks
            last = self.last
            if (state := end_state(last)) in ENDS:
                return state
        word = self.wish()
        if word == "stop":
            return "stopped"
        if word == "pause" or state == "paused":
            return "paused"
        return "interrupted" if last and last["kind"] != "queue" else "queued"

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

    @property
    def changed_data(self) -> str:
        """The digest of the data for whose sake it paused, as they had changed; else ""."""
        last = self.last or {}
        return last.get("data", "") if end_state(last) == "paused" else ""

    def resume(self, epochs: int | None = None, data: str = "") -> None:
        """Queue it again where it is paused, interrupted or failed; `execute` goes on with it.

        Args:
            epochs: 1 to pause again at the end of the epoch; None to go on to the end.
            data: the digest of changed data to go on with, as `changed_data` has it.
        """
        if epochs:
            replace_file(self.path / "control", b"step")
        else:
            (self.path / "control").unlink(missing_ok=True)
        # Where it still trains, it was just told to go on; or it may be about to pause.
        self._append_idle(("", "paused", "failed"), "queue", **({"data": data} if data else {}))

    def give_up(self, reason: str) -> None:
        """Say that it failed where no process could train it."""
        with contextlib.suppress(OSError):
            if self.path.is_dir():
                self._append_idle(("", "paused"), "end", state="failed", reason=reason)

    def _append_idle(self, ends: tuple[str, ...], kind: str, **values) -> None:
        """Say it unless a process trains the run, or it ended otherwise than these."""
        with (
            contextlib.suppress(filelock.Timeout),
            filelock.FileLock(self.path / "lock", timeout=PATIENCE),
        ):
            if end_state(self.last) in ends:
                self.append(kind, **values)

    def delete(self) -> None:
        """Remove the folder for good.

        It goes out of sight first: a process that still writes into it finds nothing there,
        instead of putting a file back between two of ours that are removed.
        """
        gone = self.path.with_name(f".{self.identifier}.deleted")
        with contextlib.suppress(OSError):
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def is_identifier(text: str) -> bool:
    """Whether it may name a run or a sweep: a date, a time, and some digits of chance."""
    try:
        return bool(IDENTIFIER.fullmatch(text) and _time(text))
    except ValueError:  # digits that are no date
        return False


def _time(identifier: str) -> datetime:
    return datetime.strptime(identifier[:15], "%Y%m%d-%H%M%S")


def _one_line(text: str) -> str:
    """Printable text on one line, not too long for a list."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MAX_NAME]


def all_runs(root: Path | None = None) -> list[Run]:
    """Every run in the folder, newest first."""
    root = root or runs_folder()
    if not root.is_dir():
        return []
    names = sorted((entry.name for entry in os.scandir(root)), reverse=True)
    return [run for name in names if (run := Run.find(name, root))]
