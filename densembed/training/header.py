"""The header of a checkpoint: config, metrics and provenance, read without torch."""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from densembed.data.scaling import Scaling
from densembed.files import check_regular
from densembed.models import plugins
from densembed.text import printable
from densembed.training.config import RunConfig, explain

FORMAT = "densembed"
VERSION = "1"
MAX_BYTES = 256 * 2**20
MAX_HEADER = 4 * 2**20
MAX_SNAPSHOTS, MAX_EPOCHS = 1000, 10_000
MAX_STEP = 10**12
MAX_SIZE = 256
"""Largest number of channels, rows or columns, as larger fields exhaust the memory."""
MAX_LENGTH = 16_384
"""Largest number of samples of a signal."""

UNTITLED = "untitled data"
"""Stands in sentences for an empty title of the data."""
ShortText = Annotated[str, Field(max_length=200), AfterValidator(printable)]
LongText = Annotated[str, Field(max_length=2000), AfterValidator(printable)]
LARGEST = 1e39
"""Above the largest number in float32, in which a training computes. Charts of far larger numbers
overflow."""
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, le=MAX_STEP)]
Outcome = Literal["running", "done", "stopped", "diverged", "failed"]
Length = Annotated[int, Field(ge=1, le=MAX_LENGTH)]


class CheckpointError(ValueError):
    """A file that is not a valid checkpoint; the message is one sentence."""


def check_file(path: Path, name: str) -> None:
    """Raise OSError for a named pipe or a device, CheckpointError for a file that is too large."""
    check_regular(path)
    if path.stat().st_size > MAX_BYTES:
        raise CheckpointError(f"{name} is too large for a checkpoint.")


class EpochMetrics(BaseModel):
    """One epoch; lists have one entry per member. Errors in percent, time in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True)
    epoch: int = Field(ge=1, le=MAX_STEP)
    step: int = Field(ge=1, le=MAX_STEP)
    train_loss: list[Number]
    test_error: list[Percent]
    learning_rate: Number = Field(ge=0)
    seconds: float = Field(ge=0, le=MAX_STEP, allow_inf_nan=False)


class Provenance(BaseModel):
    """Software, machine and data of a training, without personal data or paths."""

    model_config = ConfigDict(extra="forbid", strict=True)
    created: ShortText
    densembed: ShortText
    torch: ShortText
    python: ShortText
    machine: ShortText
    device: ShortText
    threads: Count
    kernels: ShortText = ""
    """Compiled kernels of a CPU and their threads, such as "Numba 0.68.1, 2 threads"."""
    dataset_title: Annotated[ShortText, AfterValidator(lambda title: title.strip() or UNTITLED)]
    train_images: Count
    test_images: Count


class Header(BaseModel):
    """The JSON beside the tensors."""

    model_config = ConfigDict(extra="forbid", strict=True)
    config: RunConfig
    scaling: Scaling | None = None
    """Of signals. The headers of models of images, which older versions read, lack the field."""
    input_shape: tuple[Length, ...] = Field(strict=False, min_length=2, max_length=3)
    """(channels, height, width), or (channels, length) of signals; a list in JSON."""
    classes: list[ShortText] = Field(min_length=1, max_length=1000)
    steps_per_epoch: int = Field(ge=1, le=MAX_STEP)
    steps: list[Count] = Field(min_length=1, max_length=MAX_SNAPSHOTS)
    epochs: list[EpochMetrics] = Field(max_length=MAX_EPOCHS)
    outcome: Outcome
    provenance: Provenance
    plugins: list[ShortText] = Field([], max_length=20)
    """Names of the plugin modules that the model needs. They are never imported from here."""
    data_changes: list[LongText] = Field([], max_length=1000)
    """Changes of the data set in the course of the training, such as "after epoch 3: 80 training
    images before, 200 now". `provenance` counts the images after the last one. Older versions read
    the headers without changes, which lack the field."""

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = write(self)
        for name in ("scaling", "data_changes"):
            if not fields.get(name):
                fields.pop(name, None)
        return fields

    @property
    def errors(self) -> list[float] | None:
        """Test error of each member in percent at the last snapshot, None in the first epoch."""
        epochs = [epoch for epoch in self.epochs if epoch.step <= self.steps[-1]]
        return epochs[-1].test_error if epochs else None

    @field_validator("classes")
    @classmethod
    def _distinct(cls, classes: list[str]) -> list[str]:
        if len(set(classes)) < len(classes):
            raise ValueError("two classes have the same name")
        if not all(name.strip() for name in classes):
            raise ValueError("a class has an empty name")
        return classes

    @field_validator("input_shape")
    @classmethod
    def _of_images_or_signals(cls, shape: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        sizes = shape[:1] if info.data.get("scaling") else shape
        if len(shape) != (2 if info.data.get("scaling") else 3) or max(sizes) > MAX_SIZE:
            raise PydanticCustomError("shape", "not a shape of images or signals")
        return shape


@dataclass(frozen=True)
class Summary:
    """What a file says about itself before its tensors are read."""

    header: Header
    shapes: dict[str, tuple[int, ...]]
    """(snapshots, members, *shape) of each parameter."""

    @property
    def parameters(self) -> int:
        """Number of parameters of one member."""
        return sum(math.prod(shape[2:]) for shape in self.shapes.values())


def summarise(path: str | os.PathLike) -> Summary:
    """The header and the shapes of the tensors. The values are not read or checked.

    Raises CheckpointError if the file is not a complete checkpoint.
    """
    path = Path(path)
    name = printable(path.name)
    try:
        check_file(path, name)
        with open(path, "rb") as file:
            start = file.read(8)
            start += file.read(min(int.from_bytes(start, "little"), MAX_HEADER))
            header = read_header(start, name)
            shapes = _shapes(start, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise CheckpointError(f"{printable(path)} cannot be read: {error.strerror}.") from error
    counts = {shape[:2] for shape in (shapes or {}).values()}
    count = counts.pop() if len(counts) == 1 else ()
    if shapes is None or len(count) != 2 or count[0] != len(header.steps):
        raise CheckpointError(f"{name} is damaged or incomplete.")
    check_course(header, count[1], name)
    return Summary(header, shapes)


def check_course(header: Header, members: int, name: str) -> None:
    """Raise CheckpointError unless snapshots and metrics are in order and of all members."""
    for epoch in header.epochs:
        if not len(epoch.test_error) == len(epoch.train_loss) == members:
            raise CheckpointError(f"{name} has metrics for another number of members.")
    for what, numbers in (
        ("snapshots", header.steps),
        ("epochs", [epoch.epoch for epoch in header.epochs]),
        ("epochs", [epoch.step for epoch in header.epochs]),
    ):
        if numbers != sorted(set(numbers)):
            raise CheckpointError(f"{name} has {what} that are not in order.")
    if header.steps[0]:
        raise CheckpointError(f"{name} has no snapshot of step 0, from before training.")


def _shapes(start: bytes, size: int) -> dict[str, tuple[int, ...]] | None:
    """The shapes of the tensors of a file of that size, or None if it is not whole."""
    entries: dict[str, Any] = json.loads(start[8:])
    entries.pop("__metadata__")
    try:
        ends = [entry["data_offsets"][1] for entry in entries.values()]
        shapes = {key: tuple(map(int, entry["shape"])) for key, entry in entries.items()}
        return shapes if size == len(start) + max(ends, default=0) else None
    except (TypeError, ValueError, LookupError):  # not the description of a tensor
        return None


def _number(text: str) -> float:
    """A whole number may be written as 4.0, as in JavaScript, which does not tell it from 4."""
    value = float(text)
    return int(value) if value.is_integer() else value


def read_header(data: bytes, name: str) -> Header:
    """The header at the start of a file's content. Raises CheckpointError if there is none."""
    if not data:
        raise CheckpointError(f"{name} is empty (0 bytes). Choose another file.")
    size = int.from_bytes(data[:8], "little") if len(data) > 8 else 0
    invalid = CheckpointError(
        f"{name} is not a densembed checkpoint. Choose a .safetensors file that densembed wrote."
    )
    if not 0 < size <= min(len(data) - 8, MAX_HEADER):
        raise invalid
    try:
        metadata = json.loads(data[8 : 8 + size]).get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise invalid from error
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise invalid
    if metadata.get("version") != VERSION:
        raise CheckpointError(
            f"{name} has version {str(metadata.get('version'))[:20]!r} of the format, but this "
            f"densembed reads version {VERSION}. Update densembed."
        )
    try:
        content = json.loads(metadata.get("header", ""), parse_float=_number)
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name} has a damaged header, which is not JSON.") from error
    listed = content.get("plugins") if isinstance(content, dict) else None
    if plugins.missing(listed) == plugins.MAIN:
        raise CheckpointError(
            f"{name} needs a density or a model that a notebook or a script registered. Register "
            "it again before you open the file in Python. For --plugin, register it in a module "
            "file of its own, and train again."
        )
    if absent := plugins.missing(listed):
        raise CheckpointError(
            f"{name} needs the plugin {absent}, which is not loaded. Add it with --plugin "
            f"or in {plugins.VARIABLE}."
        )
    try:
        return Header.model_validate(content)  # as JSON, it would not name a text that is invalid
    except ValidationError as error:
        raise CheckpointError(f"{name} has a damaged header: {explain(error)}") from error
