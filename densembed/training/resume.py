"""The file from which a run resumes: the state of the training and the machine's code path.

Layout: the tensors of `Resume` as safetensors, and in the metadata `format`, `version`, `step`, and
`path` and `data` as JSON. Files of older versions have no `data`. On a CPU, a run that resumes with
the same code path has exactly the same result as an uninterrupted run.
"""

import json
import platform
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

import densembed.kernels as kernels
from densembed.data import Dataset, noun
from densembed.files import replace_file
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.device import device_name, pick_device
from densembed.training.header import MAX_BYTES
from densembed.training.loop import Resume
from densembed.version import __version__

FORMAT, VERSION = "densembed-resume", "1"
INVALID = (SafetensorError, LookupError, AttributeError, TypeError, ValueError, RecursionError)
"""Errors that reading a damaged file may raise."""
DAMAGED = "The saved training state is damaged. Start the run again with the same seed."


def code_path(config: RunConfig) -> dict[str, str]:
    """Everything besides the config that affects the exact result.

    The number of threads of the kernels does not.
    """
    device = pick_device(config.device)
    return {
        "device": device_name(device),
        "threads": str(torch.get_num_threads()),
        "instructions": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "kernels": kernels.name() if device.type == "cpu" else "none",
        "torch": torch.__version__,
        "densembed": __version__,
    }


def differences(before: dict[str, str], now: dict[str, str]) -> str:
    """What changed between two code paths, e.g. "threads 1 → 2"; empty if nothing did."""
    return ", ".join(
        f"{name} {before.get(name, '?')} → {value}"
        for name, value in now.items()
        if before.get(name) != value
    )


@dataclass(frozen=True)
class Data:
    """A summary of a run's data set. `since` is the step from which it was used."""

    digest: str
    classes: list[str]
    shape: list[int]
    train: int
    test: int
    since: int = 0

    @classmethod
    def of(cls, dataset: Dataset) -> "Data":
        classes, shape = list(dataset.classes), list(dataset.input_shape)
        return cls(dataset.digest, classes, shape, len(dataset.train), len(dataset.test))

    def compatible(self, other: "Data") -> bool:
        """Whether a model for this data set also fits the other one."""
        return (len(self.classes), self.shape) == (len(other.classes), other.shape)

    def changes(self, now: "Data") -> str:
        """The differences of the new data set, in words."""
        changes = []
        if added := [name for name in now.classes if name not in self.classes]:
            changes.append(f"new classes {_listed(added)}")
        if missing := [name for name in self.classes if name not in now.classes]:
            changes.append(f"missing classes {_listed(missing)}")
        if not changes and now.classes != self.classes:
            changes.append("the order of the classes")
        old, new = f"{noun(self.shape)}s", f"{noun(now.shape)}s"
        if now.shape != self.shape:
            other = "" if new == old else f"{new} "
            changes.append(f"{old} of {_size(self.shape)} before, {other}of {_size(now.shape)} now")
        inputs = old if new == old else "inputs"
        counts = ("training", self.train, now.train), ("test", self.test, now.test)
        for part, before, after in counts:
            if before != after:
                changes.append(f"{before:,} {part} {inputs} before, {after:,} now")
        values = "pixels" if inputs == "images" else "values"
        return "; ".join(changes) or (
            f"the same number of {inputs}, but other {values}, labels or order"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(repr(name[:40]) for name in names[:5]) + more


def _size(shape: list[int]) -> str:
    return " × ".join(map(str, shape))


def carry_over(
    resume: Resume, checkpoint: Checkpoint, before: Data, now: Data
) -> tuple[Resume, Checkpoint, Data]:
    """Convert the saved state to the steps of a training on the new data set.

    An epoch may have more or fewer steps now. The number of completed epochs stays the same, so all
    steps so far are rescaled to the new number of steps per epoch. The checkpoint may be converted
    already: it is saved before the state, and the process may have died between the two.
    """
    size, header = checkpoint.config.batch_size, checkpoint.header
    old, new = (-(-data.train // size) for data in (before, now))

    def rescaled(step: int) -> int:
        return step * new // header.steps_per_epoch

    # If two snapshots have the same new step, the later one is used.
    rows_by_step = {rescaled(step): index for index, step in enumerate(header.steps)}
    epochs = [epoch.model_copy(update={"step": rescaled(epoch.step)}) for epoch in header.epochs]
    step = max(1, resume.step * new // old)
    completed = sum(epoch.step <= step for epoch in epochs)
    change = f"after epoch {completed:,}: {before.changes(now)}"
    update = {
        "steps": list(rows_by_step),
        "epochs": epochs,
        "steps_per_epoch": new,
        "data_changes": list(dict.fromkeys((*header.data_changes, change))),
    }
    header = header.model_copy(update=update)
    rows = list(rows_by_step.values())
    tensors = {name: tensor[rows] for name, tensor in checkpoint.tensors.items()}
    return replace(resume, step=step), Checkpoint(header, tensors), replace(now, since=step)


def save_resume(path: Path, resume: Resume, code: dict[str, str], data: Data) -> None:
    """Replace the file atomically."""
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "step": str(resume.step),
        "path": json.dumps(code),
        "data": json.dumps(asdict(data)),
    }
    replace_file(path, save(resume.state, metadata))


def load_resume(path: Path) -> tuple[Resume, dict[str, str], Data | None] | None:
    """The state, code path and data summary in a file, or None if there is no file.

    The data summary is None in files of older versions. Raises ValueError for a damaged file.
    """
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(DAMAGED)
    try:
        content = path.read_bytes()  # safetensors itself opens no path that is not UTF-8
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
            raise ValueError(DAMAGED)
        step, code = int(metadata["step"]), json.loads(metadata["path"])
        data = _data(metadata["data"]) if "data" in metadata else None
        state = load(content)
    except INVALID as error:
        raise ValueError(DAMAGED) from error
    if step < 1 or not isinstance(code, dict):
        raise ValueError(DAMAGED)
    code = {str(key)[:40]: str(value)[:80] for key, value in code.items()}
    return Resume(step, state), code, data


def _data(text: str) -> Data:
    """Parse a data summary. Raises ValueError or TypeError if it is invalid."""
    data = Data(**json.loads(text))
    counts = (data.train, data.test, data.since, *data.shape)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    named = all(isinstance(name, str) for name in (data.digest, *data.classes))
    if not (whole and named and data.train and len(data.shape) in (2, 3)):
        raise ValueError(DAMAGED)
    return data
