"""The checkpoints that a visitor can pick: those that ship, and those of runs and of sweeps."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from densembed.cache import SizedCache
from densembed.models.names import describe
from densembed.runs import Run, all_runs
from densembed.runs.sweep import find_member
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint, CheckpointError, Header
from densembed.training.errors import Errors

FEW_IMAGES = 100
"""An error on fewer test images than that is never shown without their number."""


def gallery_folder() -> Path:
    """`DENSEMBED_GALLERY` where it is set, else checkpoints/paper in the working directory."""
    return Path(os.environ.get("DENSEMBED_GALLERY", "checkpoints/paper")).absolute()


_opened = SizedCache(64 * 2**20)


@dataclass(frozen=True)
class Entry:
    """A checkpoint under a key that fits into a link: a gallery's name, a run's or a member's."""

    key: str
    path: Path
    name: str = ""

    def open(self) -> Checkpoint:
        """The checkpoint, read once for each version of the file. Raises CheckpointError."""
        version = self._version()
        return _opened.get((self.path, version), lambda: Checkpoint.open(self.path))

    @property
    def title(self) -> str:
        """One line: a run's name where it has one, model, source of the data, error."""
        return " · ".join(filter(None, (self.name, _title(self.path, self._version()))))

    def _version(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except OSError as error:
            raise CheckpointError(f"{self.key} is gone.") from error


@lru_cache(maxsize=1024)  # a list of many runs must not read them all again on each click
def _title(path: Path, version: int) -> str:
    return one_line(Checkpoint.peek(path))


def one_line(header: Header) -> str:
    """Model, source of the data, error: what tells them apart first."""
    parts = [describe(header.config.model), header.provenance.dataset_title]
    if header.errors:
        images = header.provenance.test_images
        few = f" on {images} test image{'' if images == 1 else 's'}" if images < FEW_IMAGES else ""
        parts.append(f"{Errors(header.errors).text()} error{few}")
    return " · ".join(parts)


def shipped() -> list[Entry]:
    """The checkpoints of the gallery's folder, in the order of their names."""
    paths = sorted(gallery_folder().glob("*.safetensors"))
    return [Entry(printable(path.stem), path) for path in paths]


def entries() -> Iterator[Entry]:
    """What there is to choose from, the shipped ones first, then runs, newest first.

    Not the members of sweeps: there may be a thousand. `find` finds them.
    """
    yield from shipped()
    for run in all_runs():
        if run.checkpoint_path.is_file():
            yield Entry(run.identifier, run.checkpoint_path, run.name)


def find(key: str) -> Entry | None:
    """The entry of that key. A key is looked up in what is there; it is never a path."""
    if found := next((entry for entry in shipped() if entry.key == key), None):
        return found
    if (run := Run.find(key)) and run.checkpoint_path.is_file():
        return Entry(key, run.checkpoint_path, run.name)
    member = find_member(key)
    return Entry(key, member) if member else None


def result(name: str) -> dict | None:
    """The content of a results file that ships beside the checkpoints, None where it is not."""
    try:
        return json.loads((gallery_folder() / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None


def results(prefix: str) -> list[dict]:
    """All results files whose names begin so, in the order of their names."""
    found = (result(path.stem) for path in sorted(gallery_folder().glob(f"{prefix}*.json")))
    return [table for table in found if table]


STORIES = {
    "linear": "One weight for each pixel and class: the yardstick for the fixed densities.",
    "mlp-50": "One hidden layer of 50: the yardstick for the moving densities.",
    "logistic-el-3": "Nine densities see the whole digit; watch how far they travel to do it.",
    "logistic-el-5": "Twenty-five densities in 360 parameters, a twentieth of the linear one.",
    "logistic-el-8": "Sixty-four densities: nine digits in ten with 906 parameters.",
    "logistic-el-15": "225 densities on less than half of the linear classifier’s parameters.",
    "logistic-el-mnn-6-3": "The smallest with a micro network: its field leans with the digit.",
    "logistic-el-mnn-8-4": "Change the input and watch sixty-four densities move.",
    "logistic-el-mnn-10-5": "The paper's best: a hundred densities, placed anew for each input.",
    "frontier-stages-2-logistic-el-2": "The best within 136 parameters: two maps.",
    "frontier-stages-6-logistic-el-2": "The best within 360 parameters: six maps.",
    "frontier-stages-4-5-7-logistic-el-2": "The best within 906 parameters: three stages.",
    "frontier-stages-8-10-12-logistic-el-3": "The best within 3,160 parameters: three stages.",
    "frontier-stages-10-16-24-logistic-el-2": "The best within 6,510 parameters: three stages.",
    "logistic-el-15-digits": "Fixed densities, taught by the embedded digits: no download.",
    "logistic-el-mnn-10-5-digits": "A hundred densities, placed anew for each input; no download.",
}
"""A line for each checkpoint that ships, by its key."""
