"""Where a run was, in one file: what going on takes, and how the machine computed.

Layout: the tensors of `training.Resume` as safetensors, and in the metadata `format`, `version`,
`step`, and `path` and `data` as JSON; files of older versions have no `data`. On a CPU, a run that
goes on along the same path ends bit for bit as one that nothing has disturbed.
"""

import json
import platform
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from densembed.data import Dataset
from densembed.files import replace_file
from densembed.training.checkpoint import MAX_BYTES, Checkpoint
from densembed.training.config import RunConfig
from densembed.training.device import device_name, pick_device
from densembed.training.loop import Resume
from densembed.version import __version__

FORMAT, VERSION = "densembed-resume", "1"
DAMAGED = "What was kept to go on from is damaged. Start it again with the same seed."


def code_path(config: RunConfig) -> dict[str, str]:
    """What decides the last bit of a result, beside the config."""
    return {
        "device": device_name(pick_device(config.device)),
        "threads": str(torch.get_num_threads()),
        "instructions": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
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
    """What a run remembers of its data. `since`: the step from which it trains on these."""

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
        """Whether a model for these takes and names the others."""
        return (len(self.classes), self.shape) == (len(other.classes), other.shape)

    def changes(self, now: "Data") -> str:
        """What is different now, for a person."""
        found = []
        if added := [name for name in now.classes if name not in self.classes]:
            found.append(f"new classes {_listed(added)}")
        if gone := [name for name in self.classes if name not in now.classes]:
            found.append(f"missing classes {_listed(gone)}")
        if not found and now.classes != self.classes:
            found.append("the order of the classes")
        if now.shape != self.shape:
            found.append(f"images of {_size(self.shape)} before, of {_size(now.shape)} now")
        counts = ("training", self.train, now.train), ("test", self.test, now.test)
        for part, before, after in counts:
            if before != after:
                found.append(f"{before:,} {part} images before, {after:,} now")
        return "; ".join(found) or "the same number of images, with other pixels, labels or order"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(repr(name[:40]) for name in names[:5]) + more


def _size(shape: list[int]) -> str:
    return " × ".join(map(str, shape))


def carry_over(
    resume: Resume, checkpoint: Checkpoint, before: Data, now: Data
) -> tuple[Resume, Checkpoint, Data]:
    """What was kept, in the steps of a training on other data; both have the same batch size.

    An epoch may have more or fewer steps now. What is kept is how many epochs are behind it, so
    that all steps so far are counted in the new ones.
    """
    size, header = checkpoint.config.batch_size, checkpoint.header
    old, new = (-(-data.train // size) for data in (before, now))

    def moved(step: int) -> int:
        return step * new // old

    # Of two snapshots that fall on one step, the later one.
    kept = {moved(step): index for index, step in enumerate(header.steps)}
    epochs = [epoch.model_copy(update={"step": moved(epoch.step)}) for epoch in header.epochs]
    header = header.model_copy(
        update={"steps": list(kept), "epochs": epochs, "steps_per_epoch": new}
    )
    rows = list(kept.values())
    tensors = {name: tensor[rows] for name, tensor in checkpoint.tensors.items()}
    step = max(1, moved(resume.step))
    return (
        replace(resume, step=step),
        Checkpoint(header, tensors),
        replace(now, since=step),
    )


def save_resume(path: Path, resume: Resume, code: dict[str, str], data: Data) -> None:
    """Replace the file at once."""
    metadata = {
        "format": FORMAT, "version": VERSION, "step": str(resume.step), "path": json.dumps(code),
        "data": json.dumps(asdict(data)),
    }  # fmt: skip
    replace_file(path, save(resume.state, metadata))


def load_resume(path: Path) -> tuple[Resume, dict[str, str], Data | None] | None:
    """What the file holds, or None where there is none. Raises ValueError for a damaged one.

    The data are None in a file of an older version.
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
    except (
        SafetensorError,
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ValueError(DAMAGED) from error
    if step < 1 or not isinstance(code, dict):
        raise ValueError(DAMAGED)
    code = {str(key)[:40]: str(value)[:80] for key, value in code.items()}
    return Resume(step, state), code, data


def _data(text: str) -> Data:
    """Raises ValueError or TypeError for what is none."""
    data = Data(**json.loads(text))
    counts = (data.train, data.test, data.since, *data.shape)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    named = all(isinstance(name, str) for name in (data.digest, *data.classes))
    if not (whole and named and data.train and len(data.shape) == 3):
        raise ValueError(DAMAGED)
    return data
