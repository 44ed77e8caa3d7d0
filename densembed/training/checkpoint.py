"""One safetensors file that holds a whole training: every snapshot, config, metrics, provenance.

Layout (version 1): each parameter of the model is one float32 tensor of shape
(snapshots, members, *shape) under the parameter's name. Tensors of other floating-point types
are converted if float32 represents their values exactly. The metadata has `format: densembed`,
`version: 1` and `header`, the JSON of `Header`. Nothing in a file is executed, and its tensors are
checked against the shapes of the model that the header names.
"""

import contextlib
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from densembed.cache import SizedCache
from densembed.data.names import is_path
from densembed.files import replace_file
from densembed.models.defaults import float32_on_cpu
from densembed.models.initialisation import is_density
from densembed.models.registry import build
from densembed.paths import checkpoint_path, unknown_model
from densembed.text import counted, index_of, printable
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.header import (
    FORMAT,
    MAX_BYTES,
    MAX_EPOCHS,
    MAX_HEADER,
    MAX_SNAPSHOTS,
    VERSION,
    CheckpointError,
    Header,
    check_course,
    check_file,
    read_header,
    summarise,
)
from densembed.training.novelty import Novelty

ELSEWHERE = "elsewhere"
"""Name of the data set of a model whose data are not on this machine."""

_networks = SizedCache(32 * 2**20)
"""Networks of all open checkpoints, which have up to a thousand snapshots each."""


NOVELTY = "novelty"
"""Name of the statistics of the training images in the metadata; older files have none."""


def novelty_file(path: Path) -> Path:
    """The file beside a checkpoint without such statistics that contains them."""
    return path.with_suffix(f".{NOVELTY}.json")


def _read_novelty(text: str, header: Header) -> Novelty:
    return Novelty.from_json(text, len(header.classes), header.input_shape)


@dataclass
class Checkpoint:
    """Snapshots of a training with its config and metrics.

    `tensors` maps each parameter to (snapshots, members, *shape). `header.steps` has the step of
    each snapshot, from before the training to its end.
    """

    header: Header
    tensors: dict[str, Tensor] = field(repr=False)
    novelty: Novelty | None = field(default=None, repr=False)

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
        """Whether it reads images of digits, which are located in uploaded pictures."""
        images = len(self.header.input_shape) == 3
        return images and self.header.classes == list("0123456789")

    def state(self, snapshot: int = -1, member: int | None = None) -> dict[str, Tensor]:
        """The state dict of one snapshot (0 before training, −1 after) and member.

        Raises ValueError if there is no such snapshot or member.
        """
        snapshot = index_of(snapshot, len(self.steps), "snapshot")
        member = self.typical if member is None else index_of(member, self.members, "member")
        return {name: tensor[snapshot, member] for name, tensor in self.tensors.items()}

    def model(self, snapshot: int = -1, member: int | None = None) -> nn.Module:
        """The network at one snapshot, in float32 on the CPU, in evaluation mode.

        Its parameters are frozen: call `.requires_grad_()` on the network to train it further.
        """
        with float32_on_cpu():
            model = _empty_model(self.header)
        model.load_state_dict(self.state(snapshot, member))
        return model.eval().requires_grad_(False)

    def network(self, snapshot: int = -1, member: int | None = None) -> nn.Module:
        """As `model`, but cached and shared, so it must not be modified."""
        key = self.digest, index_of(snapshot, len(self.steps), "snapshot"), member

        def make() -> nn.Module:
            with torch.inference_mode(False):  # other callers may need gradients
                return self.model(snapshot, member)

        return _networks.get(key, make)

    def without_data(self) -> "Checkpoint":
        """The same without the name of its data set, for files that name a folder elsewhere."""
        config = self.config.model_copy(update={"dataset": ELSEWHERE})
        header = self.header.model_copy(update={"config": config})
        return Checkpoint(header, self.tensors, self.novelty)

    def without_path(self) -> "Checkpoint":
        """The same without the place of its data on this machine, for files that others read."""
        return self.without_data() if is_path(self.config.dataset) else self

    def epoch_of(self, step: int) -> float:
        return step / self.header.steps_per_epoch

    def epoch_text(self, step: int) -> str:
        """The epoch of a snapshot, e.g. "epoch 0.25" or "epoch 1,234"."""
        epoch = self.epoch_of(step)
        return f"epoch {epoch:,.0f}" if epoch >= 100 else f"epoch {epoch:.3g}"

    def moment(self, step: int) -> str:
        """When a snapshot was taken, e.g. "after 1,000 steps"."""
        if step == self.steps[0]:
            return "before training"
        if step == self.steps[-1] and self.header.outcome == "done":
            return "after training"
        return f"after {counted(step, 'step')}"

    def to_bytes(self) -> bytes:
        """The content of a file, as `from_bytes` reads it."""
        header = self.header.model_dump_json(warnings=False)  # `save` reads and checks it
        metadata = {"format": FORMAT, "version": VERSION, "header": header}
        if self.novelty:
            metadata[NOVELTY] = self.novelty.to_json()
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors.items()}
        return safetensors.torch.save(tensors, metadata)

    def save(self, path: str | os.PathLike) -> None:
        """Write the file atomically: readers see the old file or the new one.

        Statistics beside an old file, which are not those of this checkpoint, are deleted.
        Raises CheckpointError for tensors or a header that `open` would refuse.
        """
        path = Path(path)
        name = printable(path.name)
        data = self.to_bytes()
        _check_counts(self.header, data, name)
        _check_tensors(read_header(data, name), dict(self.tensors), name)
        replace_file(path, data)
        with contextlib.suppress(OSError):
            novelty_file(path).unlink()

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Checkpoint":
        """Read a file. Raises CheckpointError if it is not a complete checkpoint."""
        path = Path(path)
        name = printable(path.name)
        try:
            check_file(path, name)
            data = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{printable(path)} cannot be read: {error.strerror}.") from error
        checkpoint = cls.from_bytes(data, name)
        if checkpoint.novelty is None:
            with contextlib.suppress(OSError, ValueError):  # without it, novelty is unknown
                text = novelty_file(path).read_text(encoding="utf-8")
                checkpoint.novelty = _read_novelty(text, checkpoint.header)
        return checkpoint

    @classmethod
    def peek(cls, path: str | os.PathLike) -> Header:
        """The header without the tensors, for lists of many files.

        Raises CheckpointError as `open` does, but only `open` checks the tensors.
        """
        return summarise(path).header

    @classmethod
    @float32_on_cpu()
    def from_bytes(cls, data: bytes, name: str = "The file") -> "Checkpoint":
        """Read the content of a file, e.g. of an upload; see `open`."""
        header = read_header(data, name)
        try:
            tensors = safetensors.torch.load(data)
        except Exception as error:  # safetensors raises several types
            raise CheckpointError(f"{name} is damaged or incomplete.") from error
        _check_tensors(header, tensors, name)
        length = 8 + int.from_bytes(data[:8], "little")
        text = json.loads(data[8:length])["__metadata__"].get(NOVELTY)
        try:
            novelty = None if text is None else _read_novelty(text, header)
        except ValueError as error:
            raise CheckpointError(
                f"{name} has damaged statistics of its training images."
            ) from error
        return cls(header, tensors, novelty)


def _empty_model(header: Header) -> nn.Module:
    with torch.random.fork_rng(devices=[]):  # its initial values are not used
        return build(header.config.model, header.input_shape, classes=len(header.classes))


def _check_counts(header: Header, data: bytes, name: str) -> None:
    """Raise CheckpointError for content with too much in it to be opened."""
    for what, part, most in (
        ("snapshots", header.steps, MAX_SNAPSHOTS),
        ("epochs", header.epochs, MAX_EPOCHS),
    ):
        if len(part) > most:
            raise CheckpointError(
                f"{name} has {len(part):,} {what}, but a checkpoint has at most {most:,}. Keep "
                "fewer of them."
            )
    if len(data) > MAX_BYTES:
        raise CheckpointError(f"{name} is too large for a checkpoint. Keep fewer snapshots.")
    if int.from_bytes(data[:8], "little") > MAX_HEADER:
        raise CheckpointError(
            f"{name} has too many numbers in its {len(header.epochs):,} epochs of "
            f"{counted(len(header.epochs[-1].test_error), 'member')}. Keep fewer of the epochs."
        )


def _check_tensors(header: Header, tensors: dict[str, Tensor], name: str) -> None:
    try:
        with torch.device("meta"):  # shapes only: a damaged header may need any memory
            model = _empty_model(header)
    except ValueError as error:
        raise CheckpointError(f"{name} has a damaged header: {error}") from error
    state = model.state_dict()
    expected = {key: tuple(value.shape) for key, value in state.items()}
    integers = {key for key, value in state.items() if not value.is_floating_point()}
    if not expected:
        raise CheckpointError(f"{name} has a model without parameters, {header.config.model}.")
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
        tensor = tensors[key] = _as_float32(tensor, key, name, key in integers)
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{name} has values in {key} that are not finite.")
    check_course(header, members.pop(), name)


def _as_float32(tensor: Tensor, key: str, name: str, integers: bool = False) -> Tensor:
    """The values as float32. Raises CheckpointError if float32 cannot represent them exactly.

    Args:
        integers: whether the model has integers there, such as the number of batches of BatchNorm.
    """
    if tensor.dtype == torch.float32:
        return tensor
    if tensor.dtype.is_floating_point or integers:
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
    """The trained network of a checkpoint file, in float32 on the CPU, in evaluation mode.

    Its parameters are frozen: call `.requires_grad_().train()` on the network to train it further.

    Args:
        path: of the file, or the name of an included model such as "logistic-el-5".
    """
    if fault := unknown_model(os.fspath(path)):
        raise CheckpointError(f"{fault}.")
    return Checkpoint.open(checkpoint_path(os.fspath(path))).model()
