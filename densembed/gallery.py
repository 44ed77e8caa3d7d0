"""The checkpoints that a visitor can pick: the ones that ship and those of finished runs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from densembed.checkpoint import Checkpoint, CheckpointError, error_text
from densembed.models import describe
from densembed.runs import all_runs


def gallery_folder() -> Path:
    """`DENSEMBED_GALLERY` where it is set, else checkpoints/paper in the working directory."""
    return Path(os.environ.get("DENSEMBED_GALLERY", "checkpoints/paper")).absolute()


@dataclass(frozen=True)
class Entry:
    """A checkpoint under a key that fits into a link: a name in the gallery or a run's."""

    key: str
    path: Path

    def open(self) -> Checkpoint:
        """The checkpoint, read once for each version of the file. Raises CheckpointError."""
        return _open(self.path, self._version())

    @property
    def title(self) -> str:
        """One line: model, parameters, error, source of the data."""
        return _title(self.path, self._version())

    def _version(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except OSError as error:
            raise CheckpointError(f"{self.key} is gone.") from error


@lru_cache(maxsize=16)
def _open(path: Path, version: int) -> Checkpoint:
    return Checkpoint.open(path)


@lru_cache(maxsize=1024)  # a list of many runs must not read them all again on each click
def _title(path: Path, version: int) -> str:
    checkpoint = _open(path, version)
    parts = [describe(checkpoint.config.model), f"{checkpoint.parameters:,} parameters"]
    if checkpoint.errors:
        parts.append(f"{error_text(checkpoint.errors)} error")
    parts.append(checkpoint.header.provenance.dataset_title)
    return " · ".join(parts)


def entries() -> Iterator[Entry]:
    """Everything that opens, the shipped ones first, then runs, newest first."""
    for path in sorted(gallery_folder().glob("*.safetensors")):
        yield Entry(path.stem, path)
    for run in all_runs():
        if run.checkpoint_path.is_file():
            yield Entry(run.identifier, run.checkpoint_path)


def find(key: str) -> Entry | None:
    """The entry of that key. A key is looked up in what is there; it is never a path."""
    return next((entry for entry in entries() if entry.key == key), None)
