"""One safetensors file that holds a whole training: every snapshot, config, metrics, provenance.

Layout (version 1): each parameter of the model is one float32 tensor of shape
(snapshots, members, *shape) under the parameter's name. Tensors of other floating-point types
are converted if float32 represents their values exactly. The metadata has `format: densembed`,
`version: 1` and `header`, the JSON of `Header`. Nothing in a file is executed, and its tensors are
checked against the shapes of the model that the header names.
"""

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

import safetensors.torch
import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from torch import Tensor, nn

from densembed.cache import SizedCache
from densembed.data import Dataset
from densembed.files import check_regular, replace_file
from densembed.models import plugins
from densembed.models.initialisation import is_density
from densembed.models.names import build
from densembed.text import printable
from densembed.training.config import RunConfig, explain
from densembed.training.device import device_name, pick_device
from densembed.training.errors import Errors
from densembed.version import __version__

FORMAT = "densembed"
VERSION = "1"
MAX_BYTES = 256 * 2**20
MAX_HEADER = 4 * 2**20
MAX_SIZE = 256
"""Largest number of channels, rows or columns, as larger fields exhaust the memory."""

ELSEWHERE = "elsewhere"
"""Name of the data set of a model whose data are not on this machine."""

UNTITLED = "untitled data"
"""Stands in sentences for an empty title of the data."""
ShortText = Annotated[str, Field(max_length=200), AfterValidator(printable)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, le=10**12)]
Outcome = Literal["running", "done", "stopped", "diverged", "failed"]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE)]


class CheckpointError(ValueError):
    """A file that is not a valid checkpoint; the message is one sentence."""


def _check_file(path: Path, name: str) -> None:
    """Raise OSError for a named pipe or a device, CheckpointError for a file that is too large."""
    check_regular(path)
    if path.stat().st_size > MAX_BYTES:
        raise CheckpointError(f"{name} is too large for a checkpoint.")


class EpochMetrics(BaseModel):
    """One epoch; lists have one entry per member. Errors in percent, time in seconds."""

    model_config = ConfigDict(extra="forbid")
    epoch: int = Field(ge=1, le=10**12)
    step: int = Field(ge=1, le=10**12)
    train_loss: list[Number]
    test_error: list[Percent]
    learning_rate: Number = Field(ge=0)
    seconds: Number = Field(ge=0)


class Provenance(BaseModel):
    """Software, machine and data of a training, without personal data or paths."""

    model_config = ConfigDict(extra="forbid")
    created: ShortText
    densembed: ShortText
    torch: ShortText
    python: ShortText
    machine: ShortText
    device: ShortText
    threads: int
    dataset_title: Annotated[ShortText, AfterValidator(lambda title: title.strip() or UNTITLED)]
    train_images: Count
    test_images: Count

    @classmethod
    def now(cls, config: RunConfig, dataset: Dataset) -> "Provenance":
        return cls(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            densembed=__version__,
            torch=torch.__version__,
            python=platform.python_version(),
            machine=f"{platform.system()} {platform.machine()}",
            device=device_name(pick_device(config.device)),
            threads=torch.get_num_threads(),
            dataset_title=dataset.title,
            train_images=len(dataset.train),
            test_images=len(dataset.test),
        )


class Header(BaseModel):
    """The JSON beside the tensors."""

    model_config = ConfigDict(extra="forbid")
    config: RunConfig
    input_shape: tuple[Size, Size, Size]
    classes: list[ShortText] = Field(min_length=1, max_length=1000)
    steps_per_epoch: int = Field(ge=1, le=10**12)
    steps: list[Count] = Field(min_length=1, max_length=1000)
    epochs: list[EpochMetrics] = Field(max_length=10_000)
    outcome: Outcome
    provenance: Provenance
    plugins: list[ShortText] = Field([], max_length=20)
    """Names of the plugin modules that the model needs. They are never imported from here."""

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
        return classes


_networks = SizedCache(32 * 2**20)
"""Networks of all open checkpoints, which have up to a thousand snapshots each."""


@dataclass
class Checkpoint:
    """Snapshots of a training with its config and metrics.

    `tensors` maps each parameter to (snapshots, members, *shape). `header.steps` has the step of
    each snapshot, from before the training to its end.
    """

    header: Header
    tensors: dict[str, Tensor] = field(repr=False)

    @property
    def config(self) -> RunConfig:
        return self.header.config

    @property
    def steps(self) -> list[int]:
        return self.header.steps

    @property
    def members(self) -> int:
        return next(iter(self.tensors.values())).shape[1]

    @property
    def errors(self) -> list[float] | None:
        """Test error of each member in percent at the last snapshot, None in the first epoch."""
        return self.header.errors

    @property
    def typical(self) -> int:
        """The member whose error is closest to the mean, which is shown by default."""
        return Errors(self.errors).typical if self.errors else 0

    @property
    def parameters(self) -> int:
        return sum(tensor[0, 0].numel() for tensor in self.tensors.values())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of header and tensors, as 64 hexadecimal digits."""
        digest = sha256(self.header.model_dump_json().encode())
        for name in sorted(self.tensors):
            digest.update(self.tensors[name].contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def has_densities(self) -> bool:
        """Whether the model has densities."""
        return any(is_density(name) for name in self.tensors)

    @property
    def reads_digits(self) -> bool:
        """Whether the classes are the digits, which are located in uploaded pictures."""
        return self.header.classes == list("0123456789")

    def state(self, snapshot: int = -1, member: int | None = None) -> dict[str, Tensor]:
        """The state dict of one snapshot (0 before training, −1 after) and member."""
        member = self.typical if member is None else member
        return {name: tensor[snapshot, member] for name, tensor in self.tensors.items()}

    def model(self, snapshot: int = -1, member: int | None = None) -> nn.Module:
        """The network at one snapshot, on the CPU, in evaluation mode."""
        model = _empty_model(self.header)
        model.load_state_dict(self.state(snapshot, member))
        return model.eval().requires_grad_(False)

    def network(self, snapshot: int = -1, member: int | None = None) -> nn.Module:
        """As `model`, but cached and shared, so it must not be modified."""
        key = self.digest, snapshot % len(self.steps), member

        def make() -> nn.Module:
            with torch.inference_mode(False):  # other callers may need gradients
                return self.model(snapshot, member)

        return _networks.get(key, make)

    def without_data(self) -> "Checkpoint":
        """The same without the name of its data set, for files that name a folder elsewhere."""
        config = self.config.model_copy(update={"dataset": ELSEWHERE})
        return Checkpoint(self.header.model_copy(update={"config": config}), self.tensors)

    def epoch_of(self, step: int) -> float:
        return step / self.header.steps_per_epoch

    def moment(self, step: int) -> str:
        """When a snapshot was taken, e.g. "after 1,000 steps"."""
        if step == self.steps[0]:
            return "before training"
        if step == self.steps[-1] and self.header.outcome == "done":
            return "after training"
        return f"after {step:,} steps"

    def to_bytes(self) -> bytes:
        """The content of a file, as `from_bytes` reads it."""
        metadata = {"format": FORMAT, "version": VERSION, "header": self.header.model_dump_json()}
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors.items()}
        return safetensors.torch.save(tensors, metadata)

    def save(self, path: str | os.PathLike) -> None:
        """Write the file atomically: readers see the old file or the new one."""
        replace_file(Path(path), self.to_bytes())

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Checkpoint":
        """Read a file. Raises CheckpointError if it is not a complete checkpoint."""
        path = Path(path)
        name = printable(path.name)
        try:
            _check_file(path, name)
            data = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{printable(path)} cannot be read: {error.strerror}.") from error
        return cls.from_bytes(data, name)

    @classmethod
    def peek(cls, path: str | os.PathLike) -> Header:
        """The header without the tensors, for lists of many files.

        Raises CheckpointError as `open` does, but only `open` checks the tensors.
        """
        path = Path(path)
        name = printable(path.name)
        try:
            _check_file(path, name)
            with open(path, "rb") as file:
                start = file.read(8)
                start += file.read(min(int.from_bytes(start, "little"), MAX_HEADER))
                header = _read_header(start, name)
                if not _is_whole(start, os.fstat(file.fileno()).st_size):
                    raise CheckpointError(f"{name} is damaged or incomplete.")
        except OSError as error:
            raise CheckpointError(f"{printable(path)} cannot be read: {error.strerror}.") from error
        return header

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "The file") -> "Checkpoint":
        """Read the content of a file, e.g. of an upload; see `open`."""
        header = _read_header(data, name)
        try:
            tensors = safetensors.torch.load(data)
        except Exception as error:  # safetensors raises several types
            raise CheckpointError(f"{name} is damaged or incomplete.") from error
        _check_tensors(header, tensors, name)
        return cls(header, tensors)


def _is_whole(start: bytes, size: int) -> bool:
    """Whether a file of that size ends with the last of its tensors."""
    entries = json.loads(start[8:])
    entries.pop("__metadata__")
    try:
        ends = [entry["data_offsets"][1] for entry in entries.values()]
        return size == len(start) + max(ends, default=0)
    except (TypeError, LookupError):  # not the description of a tensor
        return False


def _read_header(data: bytes, name: str) -> Header:
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
        content = json.loads(metadata.get("header", ""))
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name} has a damaged header, which is not JSON.") from error
    if isinstance(content, dict) and (absent := plugins.missing(content.get("plugins"))):
        raise CheckpointError(
            f"{name} needs the plugin {absent}, which is not loaded. Add it with --plugin "
            f"or in {plugins.VARIABLE}."
        )
    try:
        return Header.model_validate(content)  # as JSON, it would not name a text that is invalid
    except ValidationError as error:
        raise CheckpointError(f"{name} has a damaged header: {explain(error)}") from error


def _empty_model(header: Header) -> nn.Module:
    return build(header.config.model, header.input_shape, classes=len(header.classes))


def _check_tensors(header: Header, tensors: dict[str, Tensor], name: str) -> None:
    try:
        with torch.device("meta"):  # shapes only: a damaged header may need any memory
            model = _empty_model(header)
    except ValueError as error:
        raise CheckpointError(f"{name} has a damaged header: {error}") from error
    expected = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    if missing := sorted(set(expected) - set(tensors)):
        raise CheckpointError(f"{name} lacks the tensor {missing[0]} of {header.config.model}.")
    if unknown := sorted(set(tensors) - set(expected)):
        raise CheckpointError(
            f"{name} has a tensor {unknown[0][:60]!r} that its model does not have."
        )
    snapshots = len(header.steps)
    members = {tensor.shape[1] if tensor.dim() > 1 else 0 for tensor in tensors.values()}
    for key, shape in expected.items():
        tensor = tensors[key]
        wanted = (snapshots, *sorted(members)[:1], *shape)
        if tuple(tensor.shape) != wanted or 0 in wanted:
            raise CheckpointError(
                f"{name} has a tensor {key} of the wrong shape: expected {wanted}, "
                f"got {tuple(tensor.shape)}."
            )
        tensor = tensors[key] = _as_float32(tensor, key, name)
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{name} has values in {key} that are not finite.")
    count = members.pop()
    for epoch in header.epochs:
        if not len(epoch.test_error) == len(epoch.train_loss) == count:
            raise CheckpointError(f"{name} has metrics for another number of members.")
    for what, numbers in (
        ("snapshots", header.steps),
        ("epochs", [epoch.epoch for epoch in header.epochs]),
        ("epochs", [epoch.step for epoch in header.epochs]),
    ):
        if numbers != sorted(set(numbers)):
            raise CheckpointError(f"{name} has {what} that are not in order.")


def _as_float32(tensor: Tensor, key: str, name: str) -> Tensor:
    """The values as float32. Raises CheckpointError if float32 cannot represent them exactly."""
    if tensor.dtype == torch.float32:
        return tensor
    if tensor.dtype.is_floating_point:
        converted = tensor.float()
        same = tensor.itemsize < 4 or torch.equal(converted.to(tensor.dtype), tensor)
        if same or not tensor.isfinite().all():  # values that are not finite are reported later
            return converted
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype.is_floating_point:
        wrong, convert = " that are not exact in float32", "with .float()"
    else:
        wrong = ", where a model has floating-point numbers"
        convert = "with .float(), and multiply quantised ones by their scale,"
    raise CheckpointError(
        f"{name} has {dtype} values in {key}{wrong}. Convert its tensors {convert} and save "
        "them with the file's metadata by safetensors.torch.save_file."
    )


def load(path: str | os.PathLike) -> nn.Module:
    """The trained network of a checkpoint file, on the CPU, in evaluation mode."""
    return Checkpoint.open(path).model()
