"""The training loop: a config and a data set in, events out.

It knows nothing of run folders, Dask or pages. Whoever iterates decides what to keep, and stops
it by closing the generator. On a CPU the same config gives the same weights, bit for bit, with
the same number of threads.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from densembed.config import RunConfig
from densembed.data import Dataset, Split, as_input
from densembed.models import build

MAX_SNAPSHOTS = 32
REPORT_EVERY = 0.5
"""Seconds between reports of progress, and so between looks at the loss on the host."""
DIVERGED_STEPS = 100
EVALUATION_BATCH = 1000
ESTIMATE_STEPS = 7


@dataclass(frozen=True)
class Snapshot:
    """The parameters after `step` steps, copied to the CPU."""

    step: int
    state: dict[str, Tensor]


@dataclass(frozen=True)
class Progress:
    """How far it is, at most twice a second. `loss` is the mean since the last report."""

    step: int
    steps: int
    loss: float
    learning_rate: float
    images_per_second: float


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to: mean training loss, test error in percent, seconds of training."""

    epoch: int
    step: int
    train_loss: float
    test_error: float
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class Diverged:
    """The loss left all bounds at `step`; nothing follows."""

    step: int


Event = Snapshot | Progress | Epoch | Diverged


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


def build_seeded(config: RunConfig, dataset: Dataset) -> nn.Module:
    """The config's model for a data set, initialised by the config's seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return build(config.model, dataset.input_shape, len(dataset.classes))


@torch.inference_mode()
def test_error(model: nn.Module, split: Split) -> float:
    """Percentage of a split's images that the model gets wrong."""
    training = model.training
    model.eval()
    dtype = next(model.parameters()).dtype
    wrong = torch.zeros((), dtype=torch.int64, device=split.labels.device)
    for start in range(0, len(split), EVALUATION_BATCH):
        part = slice(start, start + EVALUATION_BATCH)
        prediction = model(as_input(split.images[part], dtype)).argmax(1)
        wrong += (prediction != split.labels[part]).sum()
    model.train(training)
    return 100 * wrong.item() / len(split)


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}


def train(config: RunConfig, dataset: Dataset) -> Iterator[Event]:
    """Train as Section 4 does: Adam, cross-entropy, one cycle up to the learning rate.

    Yields `Snapshot`s at `snapshot_steps`, a `Progress` at most every `REPORT_EVERY` seconds, an
    `Epoch` at the end of each, and `Diverged` as the last event where the loss is not finite or
    stays above 10 · ln(classes) for `DIVERGED_STEPS` steps.
    """
    device = pick_device(config.device)
    data = dataset.to(device)
    model = build_seeded(config, dataset).to(device)
    count = len(data.train)
    per_epoch = math.ceil(count / config.batch_size)
    total = config.epochs * per_epoch
    keep = set(snapshot_steps(config.epochs, per_epoch))
    optimiser = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=config.learning_rate, total_steps=total
    )
    order = torch.Generator().manual_seed(config.seed)
    watch = _Watch(10 * math.log(len(dataset.classes)), device)

    yield Snapshot(0, _copy(model))
    step = 0
    for epoch in range(1, config.epochs + 1):
        started = time.perf_counter()
        epoch_loss = torch.zeros((), device=device)
        permutation = torch.randperm(count, generator=order).to(device)
        for index in permutation.split(config.batch_size):
            loss = cross_entropy(
                model(as_input(data.train.images[index])), data.train.labels[index]
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate = optimiser.param_groups[0]["lr"]
            if step + 1 < total:
                schedule.step()
            step += 1
            loss = loss.detach()
            epoch_loss += loss * (len(index) / count)
            watch.add(loss, len(index))
            if step in keep or step % per_epoch == 0 or watch.due():
                # Only here does the host wait for the device.
                if watch.diverged():
                    yield Diverged(step)
                    return
                yield watch.progress(step, total, rate)
                if step in keep:
                    yield Snapshot(step, _copy(model))
        seconds = time.perf_counter() - started
        yield Epoch(epoch, step, epoch_loss.item(), test_error(model, data.test), rate, seconds)


def estimate_seconds(config: RunConfig, dataset: Dataset) -> float:
    """How long the config would train on this machine, from a few steps that are timed here."""
    device = pick_device(config.device)
    model = build_seeded(config, dataset).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    count = min(config.batch_size, len(dataset.train))
    images, labels = (
        dataset.train.images[:count].to(device),
        dataset.train.labels[:count].to(device),
    )
    times = []
    for _ in range(ESTIMATE_STEPS):
        started = time.perf_counter()
        loss = cross_entropy(model(as_input(images)), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        loss.item()  # waits for the device
        times.append(time.perf_counter() - started)
    steps = config.epochs * math.ceil(len(dataset.train) / config.batch_size)
    return steps * sorted(times)[len(times) // 2]


class _Watch:
    """Sums on the device what the host looks at now and then."""

    def __init__(self, bound: float, device: torch.device):
        self.bound = bound
        self.high = torch.zeros((), dtype=torch.int64, device=device)
        self.longest = torch.zeros_like(self.high)
        self.loss = torch.zeros((), device=device)
        self._reset()

    def _reset(self) -> None:
        self.loss.zero_()
        self.steps = self.images = 0
        self.since = time.perf_counter()

    def add(self, loss: Tensor, images: int) -> None:
        self.high = torch.where(loss > self.bound, self.high + 1, 0)
        self.longest = torch.maximum(self.longest, self.high)
        self.loss += loss
        self.steps += 1
        self.images += images

    def due(self) -> bool:
        return time.perf_counter() - self.since >= REPORT_EVERY

    def diverged(self) -> bool:
        return not torch.isfinite(self.loss).item() or self.longest.item() >= DIVERGED_STEPS

    def progress(self, step: int, steps: int, rate: float) -> Progress:
        elapsed = max(time.perf_counter() - self.since, 1e-9)
        report = Progress(step, steps, self.loss.item() / self.steps, rate, self.images / elapsed)
        self._reset()
        return report
