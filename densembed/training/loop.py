"""The training loop: a generator of events from configs and a data set.

The caller decides which events to save, and closes the generator to stop the training. On a CPU,
the same config gives exactly the same weights with the same number of threads and code path.

Several members (seeds, learning rates or initialisations of one shape) train in one step along a
leading axis. Each has its own data order, and its result equals that of training it alone, up to
rounding. The values of an event are lists over members or have a leading member axis.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

import torch
from torch import Tensor, nn

from densembed.data import Dataset, Split, as_input
from densembed.data.grids import read_grids
from densembed.data.names import NAMES
from densembed.data.transform import shifted
from densembed.functional.modes import evaluating
from densembed.models.defaults import each_for_training, float32_on_cpu, for_training
from densembed.models.initialisation import initialise, is_density, is_initialised, is_locator
from densembed.models.registry import build, parameter_count
from densembed.text import counted
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.header import MAX_BYTES, MAX_HEADER
from densembed.training.optimiser import Adam
from densembed.training.step import StackedParameters, Step, stepper
from densembed.training.trainable import check_model

MAX_SNAPSHOTS = 32
REPORT_EVERY = 0.5
"""Least seconds between progress reports; the host reads the loss only for these."""
DIVERGED_STEPS = 100
EVALUATION_BATCH = 1000
ESTIMATE_STEPS = 7
EPOCH_BYTES, MEMBER_BYTES = 180, 42
"""Most bytes of an epoch in the header of a checkpoint, and of a member's loss and error in it."""
MAY_DIFFER = {
    "seed",
    "seeds",
    "learning_rate",
    "density_rate",
    "weight_decay",
    "locator_rate",
    "locator_decay",
    "location_start",
    "scale_start",
}
"""Fields in which the configs of members that train together may differ."""


@dataclass(frozen=True)
class Snapshot:
    """The parameters of all members (members, *shape) after `step` steps, on the CPU."""

    step: int
    state: dict[str, Tensor]


@dataclass(frozen=True)
class Progress:
    """Progress, at most twice per second. `loss` is the members' mean since the last report."""

    step: int
    steps: int
    loss: float
    learning_rate: float
    images_per_second: float


@dataclass(frozen=True)
class Epoch:
    """The end of an epoch, with each member's mean training loss and test error in percent.

    `seconds` is the training time of all members, without the evaluation.
    """

    epoch: int
    step: int
    train_loss: list[float]
    test_error: list[float]
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class Diverged:
    """Training diverged at `step`: the loss of a member is too large. This is the last event."""

    step: int


@dataclass(frozen=True)
class Resume:
    """The complete state after `step` steps, on the CPU, from which a training can resume.

    `state` has parameters, moments, running sums, and the random generators at the start of the
    epoch, which draw its data order again.
    """

    step: int
    state: dict[str, Tensor]

    def parameters(self, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """The parameters, (members, *shape) each, as in the state of a `Snapshot`.

        Args:
            like: the state of a snapshot of the same training.
        """
        sizes = [part[0].numel() for part in like.values()]
        parts = self.state["values"].split(sizes, 1)
        return {
            name: part.reshape(other.shape)
            for part, (name, other) in zip(parts, like.items(), strict=True)
        }


Event = Snapshot | Progress | Epoch | Diverged | Resume


def snapshot_steps(epochs: int, steps_per_epoch: int, most: int = MAX_SNAPSHOTS) -> list[int]:
    """Steps 0, 1, 2, 4, 8, … of the first epoch and the end of every epoch.

    If there are more than `most`, an evenly spaced subset that includes the first and last.
    """
    steps = {0, epochs * steps_per_epoch}
    steps |= {2**k for k in range(64) if 2**k < steps_per_epoch}
    steps |= {epoch * steps_per_epoch for epoch in range(1, epochs + 1)}
    ordered = sorted(steps)
    if len(ordered) <= most:
        return ordered
    picks = {round(k * (len(ordered) - 1) / (most - 1)) for k in range(most)}
    return [ordered[pick] for pick in sorted(picks)]


def members(config: RunConfig) -> list[RunConfig]:
    """One config for each of `config.seeds` members: seed, seed + 1, …"""
    return [
        config.model_copy(update={"seed": config.seed + member, "seeds": 1})
        for member in range(config.seeds)
    ]


def build_seeded(config: RunConfig, dataset: Dataset) -> nn.Module:
    """The config's model for a data set, initialised with the config's seed, in float32."""
    with float32_on_cpu(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = build(config.model, dataset.input_shape, classes=len(dataset.classes))
        initialise(model, location=config.location_start, scale=config.scale_start)
        return model


def without_effect(config: RunConfig, dataset: Dataset) -> list[str]:
    """The settings that differ from their defaults, but concern no part of the model."""
    model = build_seeded(config, dataset)
    names = [name for name, _ in model.named_parameters()]
    concerned = {
        "density_rate": any(map(is_density, names)),
        "locator_rate": any(map(is_locator, names)),
        "locator_decay": any(map(is_locator, names)),
        "location_start": any(map(is_initialised, model.modules())),
        "scale_start": any(map(is_initialised, model.modules())),
    }
    changed = config.model_dump(exclude_defaults=True)
    return [name for name, concerns in concerned.items() if name in changed and not concerns]


@torch.inference_mode()
def error_rate(model: nn.Module, split: Split) -> float:
    """Percentage of a split's images that the model misclassifies, in evaluation mode.

    Raises ValueError without images.
    """
    if not len(split):
        raise ValueError("Expected a split with inputs, as the error is a share of them; got none.")
    dtype = next((part.dtype for part in model.parameters()), torch.float32)
    wrong = torch.zeros((), dtype=torch.int64, device=split.labels.device)
    with evaluating(model):
        for images, labels in zip(
            split.images.split(EVALUATION_BATCH), split.labels.split(EVALUATION_BATCH), strict=True
        ):
            wrong += (model(as_input(images, dtype)).argmax(1) != labels).sum()
    return 100 * wrong.item() / len(split)


def train(
    config: RunConfig,
    dataset: Dataset,
    *,
    stop: Callable[[], bool] = lambda: False,
    resume: Resume | None = None,
) -> Iterator[Event]:
    """Train `config.seeds` members as in Section 4; see `train_members`.

    Raises ValueError also if the checkpoint would be too large.
    """
    check_data(config, dataset)
    check_size(config, dataset)
    yield from train_members(members(config), dataset, stop=stop, resume=resume)


def train_members(
    configs: Sequence[RunConfig],
    dataset: Dataset,
    *,
    stop: Callable[[], bool] = lambda: False,
    resume: Resume | None = None,
) -> Iterator[Event]:
    """Train members of one shape together by Adam with cross-entropy and a one-cycle schedule.

    Args:
        configs: one per member; they may differ in the fields `MAY_DIFFER`.
        stop: called at each progress report and after each epoch. When it returns True, the
            training ends with a `Snapshot` and a `Resume` of that step.
        resume: the state of an earlier training of the same configs and data, to continue from.

    Yields:
        `Snapshot`s at `snapshot_steps`, a `Progress` at most every `REPORT_EVERY` seconds, an
        `Epoch` at the end of each epoch, and a `Resume` after the events of a step that is not the
        last. `Diverged` is the last event if a loss is not finite, or exceeds 10 · ln(classes) for
        `DIVERGED_STEPS` consecutive steps.

    Raises:
        ValueError: if `resume` does not fit, the configs differ in other fields, they name another
            built-in data set, some of their grids get no step, or a plugin's model cannot be
            trained.
    """
    clock = _Clock()
    return clock.stopped_between(each_for_training(_train(configs, dataset, stop, resume, clock)))


def _train(
    configs: Sequence[RunConfig],
    dataset: Dataset,
    stop: Callable[[], bool],
    resume: Resume | None,
    clock: "_Clock",
) -> Generator[Event, None, None]:
    config = configs[0]
    _check_alike(configs)
    device = pick_device(config.device)
    check_data(config, dataset)
    check_model(config.model_copy(update={"seeds": len(configs)}), dataset)
    data = dataset.to(device)
    count = len(data.train)
    per_epoch = math.ceil(count / config.batch_size)
    total = config.epochs * per_epoch
    keep = set(snapshot_steps(config.epochs, per_epoch))
    stacked = StackedParameters([build_seeded(member, dataset).to(device) for member in configs])
    adam = _optimiser(configs, stacked, total)
    copies = shifted(data.train, config.shift)
    take_on = _steppers(config, stacked, adam, copies, config.batch_size)
    orders = [torch.Generator().manual_seed(member.seed) for member in configs]
    watch = _Watch(10 * math.log(len(dataset.classes)), len(configs), device, clock)
    epoch_loss = torch.zeros(len(configs), device=device)
    spent = torch.zeros((), dtype=torch.float64)
    begun = torch.stack([order.get_state() for order in orders])
    state = {
        "values": stacked.values.detach(),
        "first": adam.first,
        "second": adam.second,
        "high": watch.high,
        "longest": watch.longest,
        "loss": epoch_loss,
        "seconds": spent,
        "generators": begun,
    }

    done = 0
    if resume is None:
        yield Snapshot(0, stacked.state())
    else:
        _restore(state, resume, total)
        done = resume.step
        for order, saved in zip(orders, begun, strict=True):
            order.set_state(saved.clone())  # a view of a later row crashes torch 2.x
    for epoch in range(done // per_epoch + 1, config.epochs + 1):
        if done % per_epoch == 0:
            epoch_loss.zero_()
            spent.zero_()
        started = clock.now() - spent.item()
        shuffled = torch.stack(
            [_data_order(count, len(copies) // count, order) for order in orders]
        )
        grids = grid_order(epoch, per_epoch, len(take_on))[done % per_epoch :]
        batches = shuffled.to(device).split(config.batch_size, 1)[done % per_epoch :]
        for index, grid in zip(batches, grids, strict=True):
            loss = take_on[grid](index, adam.table[done])
            rate = config.learning_rate * adam.shares[done]
            done += 1
            ended = done % per_epoch == 0
            epoch_loss += loss * (index.shape[1] / count)
            watch.add(loss, index.numel())
            if done in keep or ended or watch.due():
                # The host waits for the device only here.
                if watch.diverged() or (done in keep and not _is_finite(stacked, data.test)):
                    yield Diverged(done)
                    return
                yield watch.progress(done, total, rate)
                stopping = not ended and stop()
                if done in keep or (stopping and _is_finite(stacked, data.test)):
                    yield Snapshot(done, stacked.state())
                if not ended:
                    spent.fill_(clock.now() - started)
                    yield _resume(done, state)
                if stopping:
                    return
        losses, seconds = epoch_loss.tolist(), clock.now() - started
        errors = [error_rate(stacked.member(k), data.test) for k in range(len(configs))]
        yield Epoch(epoch, done, losses, errors, rate, seconds)
        if done < total:
            stopping = stop()
            if stopping and done not in keep and _is_finite(stacked, data.test):
                yield Snapshot(done, stacked.state())
            begun.copy_(torch.stack([order.get_state() for order in orders]))
            yield _resume(done, state)
            if stopping:
                return


def _resume(step: int, state: dict[str, Tensor]) -> Resume:
    return Resume(step, {name: value.to("cpu", copy=True) for name, value in state.items()})


def _restore(state: dict[str, Tensor], resume: Resume, total: int) -> None:
    """Copy the saved state into the tensors of the loop."""
    saved = resume.state
    fits = 0 < resume.step < total and saved.keys() == state.keys()
    if not fits or any(
        (saved[name].shape, saved[name].dtype) != (value.shape, value.dtype)
        for name, value in state.items()
    ):
        raise ValueError("The saved training state does not fit this training.")
    for name, value in state.items():
        value.copy_(saved[name])


def grid_order(epoch: int, steps: int, grids: int) -> list[int]:
    """The index of the grid of each step of an epoch: in random order, and equally often.

    The order only depends on the epoch, so members of different seeds can train together.
    """
    turns = (torch.arange(steps) + (epoch - 1) * steps) % grids
    return turns[torch.randperm(steps, generator=torch.Generator().manual_seed(epoch))].tolist()


def _data_order(count: int, copies: int, generator: torch.Generator) -> Tensor:
    """The order of the inputs in an epoch: indices of `shifted`, one copy of each input."""
    order = torch.randperm(count, generator=generator)
    if copies > 1:
        order += count * torch.randint(copies, (count,), generator=generator)
    return order


def _steppers(
    config: RunConfig, stacked: StackedParameters, adam: Adam, split: Split, batch: int
) -> list[Step]:
    """A step on each grid of the config. Raises ValueError for a model that has only one."""
    own = tuple(split.images.shape[2:])
    steps = {}
    grids = read_grids(config.grid, own)
    for grid in set(grids):
        other = None if grid == own else grid
        if other:
            stacked.add_grid(other)
        steps[grid] = stepper(stacked, adam, split, batch, config.compile, other)
    return [steps[grid] for grid in grids]


def check_data(config: RunConfig, dataset: Dataset) -> None:
    """Raise an error unless a config can be trained on a data set.

    Raises:
        TypeError: for other arguments.
        ValueError: if the data set or that of the config is built in and is not the other one,
            since the checkpoint would name the one, and its error would be that on the other; or if
            some grids get no step.
    """
    if not isinstance(config, RunConfig) or not isinstance(dataset, Dataset):
        raise TypeError(
            "Expected a RunConfig and a data set, in this order; got "
            f"{type(config).__name__} and {type(dataset).__name__}."
        )
    if dataset.name != config.dataset and (dataset.name in NAMES or config.dataset in NAMES):
        raise ValueError(
            f"The config is for the data set {config.dataset!r}, but the data are those of "
            f"{dataset.name!r}: write RunConfig(dataset={dataset.name!r})."
        )
    steps = config.epochs * math.ceil(len(dataset.train) / config.batch_size)
    grids = read_grids(config.grid, dataset.input_shape[1:])
    if not set(grids) <= set(grids[:steps]):
        raise ValueError(
            f"The training has {counted(steps, 'step')}, so that some of its grids are never used: "
            "choose fewer grids, more epochs or a smaller batch size."
        )


def check_size(config: RunConfig, dataset: Dataset) -> None:
    """Raise ValueError if the checkpoint of a training would be too large to be opened."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = build(config.model, dataset.input_shape, classes=len(dataset.classes))
    per_epoch = math.ceil(len(dataset.train) / config.batch_size)
    snapshots = len(snapshot_steps(config.epochs, per_epoch))
    size = 4 * parameter_count(model) * config.seeds * snapshots
    if size > MAX_BYTES:
        raise ValueError(
            f"The checkpoint of this training would have {size / 1e6:,.0f} MB, and at most "
            f"{MAX_BYTES / 1e6:,.0f} MB can be opened: choose a smaller model, fewer seeds or "
            "fewer epochs."
        )
    if config.epochs * (EPOCH_BYTES + MEMBER_BYTES * config.seeds) > MAX_HEADER:
        raise ValueError(
            f"The losses and errors of {config.epochs:,} epochs of {config.seeds} seeds are too "
            "many for a checkpoint: choose fewer epochs or fewer seeds."
        )


def _check_alike(configs: Sequence[RunConfig]) -> None:
    shared = [config.model_dump(exclude=MAY_DIFFER) for config in configs]
    if any(other != shared[0] for other in shared):
        listed = ", ".join(sorted(MAY_DIFFER))
        raise ValueError(f"Members that train together may differ in {listed}.")


def _optimiser(configs: Sequence[RunConfig], stacked: StackedParameters, total: int) -> Adam:
    """Adam with each member's rates and decays for densities, micro network and other weights."""

    def column(field: str) -> Tensor:
        return stacked.values.new_tensor([[getattr(config, field)] for config in configs])

    rate, weight_decay = column("learning_rate"), column("weight_decay")
    rates, decays = [], []
    for name, size in zip(stacked.names, stacked.sizes, strict=True):
        own, decay = rate, weight_decay
        if is_density(name):
            own, decay = rate * column("density_rate"), torch.zeros_like(rate)
        elif is_locator(name):
            own, decay = rate * column("locator_rate"), weight_decay + column("locator_decay")
        rates.append(own.expand(-1, size))
        decays.append(decay.expand(-1, size))
    decay = torch.cat(decays, 1)
    return Adam(stacked.values, torch.cat(rates, 1), total, decay if decay.any() else None)


@torch.no_grad()
def _is_finite(stacked: StackedParameters, split: Split) -> bool:
    """Whether the logits of all members are finite: a loss is from before its step's update."""
    image = as_input(split.images[:1], stacked.values.dtype)
    return all(stacked.member(k)(image).isfinite().all().item() for k in range(len(stacked)))


@for_training()
def estimate_seconds(config: RunConfig, dataset: Dataset) -> float:
    """Estimated training time of a config on this machine, from a few timed steps."""
    device = pick_device(config.device)
    stacked = StackedParameters(
        [build_seeded(member, dataset).to(device) for member in members(config)]
    )
    adam = Adam(stacked.values, torch.zeros(len(stacked), 1, device=device), ESTIMATE_STEPS)
    count = min(config.batch_size, len(dataset.train))
    batch = Split(dataset.train.images[:count], dataset.train.labels[:count]).to(device)
    index = torch.arange(count, device=device).expand(len(stacked), count)
    eager, typical = config.model_copy(update={"compile": False}), []
    for take in _steppers(eager, stacked, adam, batch, count):
        times = []
        for row in adam.table:
            started = time.perf_counter()
            take(index, row).tolist()  # waits for the device
            times.append(time.perf_counter() - started)
        typical.append(median(times))
    return config.epochs * math.ceil(len(dataset.train) / config.batch_size) * mean(typical)


class _Clock:
    """Measures the time of a training without what its caller does between two events."""

    def __init__(self) -> None:
        self.away = 0.0

    def now(self) -> float:
        return time.perf_counter() - self.away

    def stopped_between(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            left = time.perf_counter()
            yield event
            self.away += time.perf_counter() - left


class _Watch:
    """Accumulates losses on the device for the host's occasional checks."""

    def __init__(self, bound: float, members: int, device: torch.device, clock: _Clock):
        self.bound = bound
        self.clock = clock
        self.high = torch.zeros(members, dtype=torch.int64, device=device)
        self.longest = torch.zeros_like(self.high)
        self.loss = torch.zeros(members, device=device)
        self._reset()

    def _reset(self) -> None:
        self.loss.zero_()
        self.steps = self.images = 0
        self.since = self.clock.now()

    def add(self, loss: Tensor, images: int) -> None:
        self.high.add_(1).mul_(loss > self.bound)
        torch.maximum(self.longest, self.high, out=self.longest)
        self.loss += loss
        self.steps += 1
        self.images += images

    def due(self) -> bool:
        return self.clock.now() - self.since >= REPORT_EVERY

    def diverged(self) -> bool:
        return not self.loss.isfinite().all().item() or self.longest.max().item() >= DIVERGED_STEPS

    def progress(self, step: int, steps: int, rate: float) -> Progress:
        elapsed = max(self.clock.now() - self.since, 1e-9)
        loss = self.loss.mean().item() / self.steps
        report = Progress(step, steps, loss, rate, self.images / elapsed)
        self._reset()
        return report
