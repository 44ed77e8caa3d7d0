"""The checkpoints that a user can choose: those that ship, and those of runs and sweeps."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from densembed.cache import SizedCache
from densembed.data import is_outside, noun
from densembed.models.names import describe
from densembed.paths import gallery_folder
from densembed.runs import Run, all_runs
from densembed.runs.folder import is_identifier
from densembed.runs.sweep import find_member
from densembed.text import counted, printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.errors import Errors
from densembed.training.header import CheckpointError, Header

FEW_IMAGES = 100
"""With fewer test images, their number is shown with the error."""


_opened = SizedCache(32 * 2**20)


@dataclass(frozen=True)
class Entry:
    """A checkpoint with its key in links: a name in the gallery, a run or a member of a sweep."""

    key: str
    path: Path
    name: str = ""
    own: bool = True
    """Whether it was trained here, by a run or a sweep."""

    def open(self) -> Checkpoint:
        """The checkpoint, cached per version of the file. Raises CheckpointError."""
        version = self._version()
        return _opened.get((self.path, version), self._read)

    def _read(self) -> Checkpoint:
        checkpoint = Checkpoint.open(self.path)
        # The user named the folder of a run, but a file in the gallery may have another author.
        strange = not self.own and is_outside(checkpoint.config.dataset)
        return checkpoint.without_data() if strange else checkpoint

    @property
    def title(self) -> str:
        """One line: name of the run (if any), model, data set and error."""
        return " · ".join(filter(None, (self.name, one_line(self.header))))

    @property
    def header(self) -> Header:
        """The header of the file, cached per version of the file. Raises CheckpointError."""
        return _header(self.path, self._version())

    def _version(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except OSError as error:
            raise CheckpointError(f"{self.key} no longer exists.") from error


@lru_cache(maxsize=1024)  # a list of many runs is drawn again on each click
def _header(path: Path, version: int) -> Header:
    return Checkpoint.peek(path)


def one_line(header: Header) -> str:
    """Model, data set and error in one line."""
    parts = [describe(header.config.model), header.provenance.dataset_title]
    if header.errors:
        images = header.provenance.test_images
        tested = counted(images, f"test {noun(header.input_shape)}")
        few = f" on {tested}" if images < FEW_IMAGES else ""
        parts.append(f"{Errors(header.errors).text()} error{few}")
    return " · ".join(parts)


def key_of(path: Path) -> str:
    """The key in links of a file: its name, for most names without the ending.

    JavaScript would place keys that are whole numbers before all others, and takes "__proto__" for
    something else.

    >>> key_of(Path("best.safetensors")), key_of(Path("20.safetensors"))
    ('best', '20.safetensors')
    """
    stem = printable(path.stem)
    return f"{stem}.safetensors" if stem.isdecimal() or stem == "__proto__" else stem


def shipped() -> list[Entry]:
    """The checkpoints of the gallery's folder, sorted by name."""
    paths = sorted(gallery_folder().glob("*.safetensors"))
    return [Entry(key_of(path), path, own=False) for path in paths]


def entries() -> Iterator[Entry]:
    """The shipped checkpoints, then those of runs, newest first.

    Members of sweeps are left out, as there may be a thousand; `find` finds them, too.
    """
    yield from shipped()
    for run in all_runs():
        if run.checkpoint_path.is_file():
            yield Entry(run.identifier, run.checkpoint_path, run.name)


def find(key: str) -> Entry | None:
    """The entry with that key, or None. A key is never used as a path."""
    if entry := next((entry for entry in shipped() if entry.key == key), None):
        return entry
    if (run := Run.find(key)) and run.checkpoint_path.is_file():
        return Entry(key, run.checkpoint_path, run.name)
    member = find_member(key)
    return Entry(key, member) if member else None


def is_own(key: str) -> bool:
    """Whether a key is that of a run or of a member of a sweep, and not of a shipped model."""
    return is_identifier(key) or is_identifier(key.rpartition("-")[0])


def result(name: str) -> dict | None:
    """The content of a results file in the gallery's folder, or None.

    It has no rows if all its trainings diverged.
    """
    try:
        content = json.loads((gallery_folder() / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and content.get("rows") != [] else None


def results(prefix: str) -> list[dict]:
    """All results files whose names start with the prefix, sorted by name."""
    tables = (result(path.stem) for path in sorted(gallery_folder().glob(f"{prefix}*.json")))
    return [table for table in tables if table]


DESCRIPTIONS = {
    "linear": "One weight per pixel and class: baseline for the fixed densities.",
    "mlp-50": "One hidden layer of 50 units: baseline for models with a micro network.",
    "logistic-el-3": "Nine densities cover the digit. They move far during training.",
    "logistic-el-5": "25 densities and 360 parameters, 1/20 of the linear classifier's.",
    "logistic-el-8": "64 densities and 906 parameters classify 92 % of the digits correctly.",
    "logistic-el-15": "225 densities with less than half of the linear classifier's parameters.",
    "logistic-el-mnn-6-3": "The smallest model with a micro network. Its field follows the digit.",
    "logistic-el-mnn-mass-6-3": (
        "36 densities in a box around the ink: shifting or scaling a digit changes little."
    ),
    "logistic-el-mnn-mass-10-5": (
        "100 densities that move in a box around the ink: the lowest error without convolution."
    ),
    "logistic-el-mnn-8-4": "64 densities that move with the input.",
    "logistic-el-mnn-10-5": "The paper's best model: 100 densities that move with the input.",
    "frontier-stages-2-logistic-el-2": "Lowest error with at most 136 parameters. Two maps.",
    "frontier-stages-6-logistic-el-2": "Lowest error with at most 360 parameters. Six maps.",
    "frontier-stages-4-5-7-logistic-el-2": (
        "Lowest error with at most 906 parameters. Three convolution stages."
    ),
    "frontier-stages-8-10-12-logistic-el-3": (
        "Lowest error with at most 3,160 parameters. Three convolution stages."
    ),
    "frontier-stages-10-16-24-logistic-el-2": (
        "Lowest error with at most 6,510 parameters. Three convolution stages."
    ),
    "logistic-el-15-digits": "Fixed densities, trained on the built-in digits. Uses built-in data.",
    "logistic-el-mnn-10-5-digits": "100 densities that move with the input. Uses built-in data.",
    "logistic-el-mnn-scale-20-8-mnist1d": (
        "Reads signals: 20 densities whose places and widths follow the input. Uses built-in data."
    ),
    "stages-16-24-32-logistic-el-mnn-3-3-mnist1d": (
        "Reads signals: three convolution stages, at most 5,000 parameters. Uses built-in data."
    ),
}
"""One line about each shipped checkpoint, by its key."""
