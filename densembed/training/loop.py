"""The training loop: configs and a data set in, events out.

It knows nothing of run folders, Dask or pages. Whoever iterates decides what to keep, and stops
it by closing the generator. On a CPU the same config gives the same weights, bit for bit, with
the same number of threads and the same code path.

Several members (seeds, learning rates, initialisations of one shape) train in one step along a
leading axis; each has its own order of the data, and ends where it would have ended alone, up to
rounding. All that an event says of the members is a list or has a leading axis.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from densembed.data import Dataset, Split, as_input
from densembed.models.initialisation import initialise, is_density, is_locator
from densembed.models.names import build
from densembed.training.config import RunConfig
from densembed.training.optimiser import Adam
from densembed.training.step import Flat, stepper

MAX_SNAPSHOTS = 32
REPORT_EVERY = 0.5
"""Seconds between reports of progress, and so between looks at the loss on the host."""
DIVERGED_STEPS = 100
EVALUATION_BATCH = 1000
ESTIMATE_STEPS = 7
MAY_DIFFER = {
    "seed", "seeds", "learning_rate", "density_rate", "weight_decay", "locator_rate",
    "locator_decay", "location_start", "scale_start",
}  # fmt: skip
"""Fields of a config in which members that train together may differ."""


@dataclass(frozen=True)
class Snapshot:
    """The parameters of all members (members, *shape) after `step` steps, on the CPU."""

    step: int
    state: dict[str, Tensor]


@dataclass(frozen=True)
class Progress:
    """How far it is, at most twice a second. `loss` is the members' mean since the last report."""

    step: int
    steps: int
    loss: float
    learning_rate: float
    images_per_second: float


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to, for each member: mean training loss, test error in percent.

    `seconds` is the time of training all of them, without the evaluation.
    """

    epoch: int
    step: int
    train_loss: list[float]
    test_error: list[float]
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class Diverged:
    """The loss of a member left all bounds at `step`; nothing follows."""

    step: int


@dataclass(frozen=True)
class Resume:
    """All that going on after `step` steps takes, on the CPU: it ends as if never interrupted.

    `state` has parameters, moments, the generators as they were when the epoch began (they draw
    its order anew), and the running sums.
    """

    step: int
    state: dict[str, Tensor]

    def parameters(self, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """The parameters among it, (members, *shape) each, as a `Snapshot`'s state has them.

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


def pick_device(name: str) -> torch.device:
    """The device of a config: `auto` takes CUDA, then MPS, then the CPU.

    Raises ValueError where the machine has no such device.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(device for device, there in available.items() if there))
    if not available[name]:
        raise ValueError(f"This machine has no {name} device; choose cpu or auto.")
    return torch.device(name)


def snapshot_steps(epochs: int, steps_per_epoch: int, most: int = MAX_SNAPSHOTS) -> list[int]:
    """Steps 0, 1, 2, 4, 8, … of the first epoch and the end of every epoch.

    Where those are more than `most`, they are thinned evenly, the first and last always kept.
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
    """The config's model for a data set, initialised by the config alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = build(config.model, dataset.input_shape, len(dataset.classes))
        initialise(model, location=config.location_start, scale=config.scale_start)
        return model


@torch.inference_mode()
def test_error(model: nn.Module, split: Split) -> float:
    """Percentage of a split's images that the model gets wrong."""
    training = model.training
    model.eval()
    dtype = next(model.parameters()).dtype
    wrong = torch.zeros((), dtype=torch.int64, device=split.labels.device)
    for images, labels in zip(
        split.images.split(EVALUATION_BATCH), split.labels.split(EVALUATION_BATCH), strict=True
    ):
        wrong += (model(as_input(images, dtype)).argmax(1) != labels).sum()
    model.train(training)
    return 100 * wrong.item() / len(split)


def train(
    config: RunConfig,
    dataset: Dataset,
    stop: Callable[[], bool] = lambda: False,
    resume: Resume | None = None,
) -> Iterator[Event]:
    """Train as Section 4 does, with `config.seeds` members; see `train_members`."""
    yield from train_members(members(config), dataset, stop, resume)


def train_members(
    configs: Sequence[RunConfig],
    dataset: Dataset,
    stop: Callable[[], bool] = lambda: False,
    resume: Resume | None = None,
) -> Iterator[Event]:
    """Train members of one shape together: Adam, cross-entropy, one cycle up to the rate.

    Args:
        configs: one for each member; they may differ in seed, rates and initialisation.
        stop: asked at each report and after each epoch; when it says yes, a last `Snapshot` and
            `Resume` of that step end it all.
        resume: where an earlier training of the same configs and data was; events follow from
            there on. Raises ValueError where it does not fit.

    Yields `Snapshot`s at `snapshot_steps`, a `Progress` at most every `REPORT_EVERY` seconds, an
    `Epoch` at the end of each, a `Resume` after what was yielded of a step while steps are left,
    and `Diverged` as the last event where a loss is not finite or stays above 10 · ln(classes)
    for `DIVERGED_STEPS` steps.
    """
    config = configs[0]
    _check_alike(configs)
    device = pick_device(config.device)
    data = dataset.to(device)
    count = len(data.train)
    per_epoch = math.ceil(count / config.batch_size)
    total = config.epochs * per_epoch
    keep = set(snapshot_steps(config.epochs, per_epoch))
    flat = Flat([build_seeded(member, dataset).to(device) for member in configs])
    adam = _optimiser(configs, flat, total)
    take = stepper(flat, adam, data.train, config.batch_size, config.compile)
    orders = [torch.Generator().manual_seed(member.seed) for member in configs]
    watch = _Watch(10 * math.log(len(dataset.classes)), len(configs), device)
    epoch_loss = torch.zeros(len(configs), device=device)
    spent = torch.zeros((), dtype=torch.float64)
    begun = torch.stack([order.get_state() for order in orders])
    state = {
        "values": flat.values.detach(), "first": adam.first, "second": adam.second,
        "high": watch.high, "longest": watch.longest,
        "loss": epoch_loss, "seconds": spent, "generators": begun,
    }  # fmt: skip

    done = 0
    if resume is None:
        yield Snapshot(0, flat.state())
    else:
        _restore(state, resume, total)
        done = resume.step
        for order, kept in zip(orders, begun, strict=True):
            order.set_state(kept.clone())  # a view of a later row crashes torch 2.x
    for epoch in range(done // per_epoch + 1, config.epochs + 1):
        if done % per_epoch == 0:
            epoch_loss.zero_()
            spent.zero_()
        started = time.perf_counter() - spent.item()
        order = torch.stack([torch.randperm(count, generator=order) for order in orders])
        for index in order.to(device).split(config.batch_size, 1)[done % per_epoch :]:
            loss = take(index, adam.table[done])
            rate = config.learning_rate * adam.shares[done]
            done += 1
            ended = done % per_epoch == 0
            epoch_loss += loss * (index.shape[1] / count)
            watch.add(loss, index.numel())
            if done in keep or ended or watch.due():
                # Only here does the host wait for the device.
                if watch.diverged() or (done in keep and not _answers(flat, data.test)):
                    yield Diverged(done)
                    return
                yield watch.progress(done, total, rate)
                stopping = not ended and stop()
                if done in keep or (stopping and _answers(flat, data.test)):
                    yield Snapshot(done, flat.state())
                if not ended:
                    spent.fill_(time.perf_counter() - started)
                    yield _resume(done, state)
                if stopping:
                    return
        losses, seconds = epoch_loss.tolist(), time.perf_counter() - started
        errors = [test_error(flat.member(k), data.test) for k in range(len(configs))]
        yield Epoch(epoch, done, losses, errors, rate, seconds)
        if done < total:
            stopping = stop()
            if stopping and done not in keep and _answers(flat, data.test):
                yield Snapshot(done, flat.state())
            begun.copy_(torch.stack([order.get_state() for order in orders]))
            yield _resume(done, state)
            if stopping:
                return


def _resume(step: int, state: dict[str, Tensor]) -> Resume:
    return Resume(step, {name: value.to("cpu", copy=True) for name, value in state.items()})


def _restore(state: dict[str, Tensor], resume: Resume, total: int) -> None:
    """Copy what was kept into the tensors that the loop works on."""
    kept = resume.state
    fits = 0 < resume.step < total and kept.keys() == state.keys()
    if not fits or any(
        (kept[name].shape, kept[name].dtype) != (value.shape, value.dtype)
        for name, value in state.items()
    ):
        raise ValueError("What was kept to go on from does not fit this training.")
    for name, value in state.items():
        value.copy_(kept[name])


def _check_alike(configs: Sequence[RunConfig]) -> None:
    shared = [config.model_dump(exclude=MAY_DIFFER) for config in configs]
    if any(other != shared[0] for other in shared):
        listed = ", ".join(sorted(MAY_DIFFER))
        raise ValueError(f"Members that train together may differ in {listed}.")


def _optimiser(configs: Sequence[RunConfig], flat: Flat, total: int) -> Adam:
    """Adam with each member's rates and decays for densities, micro network and other weights."""

    def column(field: str) -> Tensor:
        return flat.values.new_tensor([[getattr(config, field)] for config in configs])

    rate, weight_decay = column("learning_rate"), column("weight_decay")
    rates, decays = [], []
    for name, size in zip(flat.names, flat.sizes, strict=True):
        if is_density(name):
            rates.append((rate * column("density_rate")).expand(-1, size))
            decays.append(torch.zeros_like(rate).expand(-1, size))
        elif is_locator(name):
            rates.append((rate * column("locator_rate")).expand(-1, size))
            decays.append((weight_decay + column("locator_decay")).expand(-1, size))
        else:
            rates.append(rate.expand(-1, size))
            decays.append(weight_decay.expand(-1, size))
    decay = torch.cat(decays, 1)
    return Adam(flat.values, torch.cat(rates, 1), total, decay if decay.any() else None)


@torch.no_grad()
def _answers(flat: Flat, split: Split) -> bool:
    """Whether all members still give numbers: a loss is of the weights before a step."""
    image = as_input(split.images[:1], flat.values.dtype)
    return all(flat.member(k)(image).isfinite().all().item() for k in range(len(flat)))


def estimate_seconds(config: RunConfig, dataset: Dataset) -> float:
    """How long the config would train on this machine, from a few steps that are timed here."""
    device = pick_device(config.device)
    flat = Flat([build_seeded(member, dataset).to(device) for member in members(config)])
    adam = Adam(flat.values, torch.zeros(len(flat), 1, device=device), ESTIMATE_STEPS)
    count = min(config.batch_size, len(dataset.train))
    batch = Split(dataset.train.images[:count], dataset.train.labels[:count]).to(device)
    take = stepper(flat, adam, batch, count)
    index = torch.arange(count, device=device).expand(len(flat), count)
    times = []
    for row in adam.table:
        started = time.perf_counter()
        take(index, row).tolist()  # waits for the device
        times.append(time.perf_counter() - started)
    steps = config.epochs * math.ceil(len(dataset.train) / config.batch_size)
    return steps * sorted(times)[len(times) // 2]


class _Watch:
    """Sums on the device what the host looks at now and then."""

    def __init__(self, bound: float, members: int, device: torch.device):
        self.bound = bound
        self.high = torch.zeros(members, dtype=torch.int64, device=device)
        self.longest = torch.zeros_like(self.high)
        self.loss = torch.zeros(members, device=device)
        self._reset()

    def _reset(self) -> None:
        self.loss.zero_()
        self.steps = self.images = 0
        self.since = time.perf_counter()

    def add(self, loss: Tensor, images: int) -> None:
        self.high.add_(1).mul_(loss > self.bound)
        torch.maximum(self.longest, self.high, out=self.longest)
        self.loss += loss
        self.steps += 1
        self.images += images

    def due(self) -> bool:
        return time.perf_counter() - self.since >= REPORT_EVERY

    def diverged(self) -> bool:
        return not self.loss.isfinite().all().item() or self.longest.max().item() >= DIVERGED_STEPS

    def progress(self, step: int, steps: int, rate: float) -> Progress:
        elapsed = max(time.perf_counter() - self.since, 1e-9)
        loss = self.loss.mean().item() / self.steps
        report = Progress(step, steps, loss, rate, self.images / elapsed)
        self._reset()
        return report
