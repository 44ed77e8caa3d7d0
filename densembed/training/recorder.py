"""Collects the events of a training into a checkpoint."""

import operator
import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import get_args

import torch
from pydantic import ValidationError

import densembed.kernels as kernels
from densembed.data import Dataset
from densembed.models import plugins
from densembed.models.defaults import float32_on_cpu
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig, explain
from densembed.training.device import device_name, pick_device
from densembed.training.header import (
    MAX_EPOCHS,
    MAX_SIZE,
    MAX_SNAPSHOTS,
    MAX_STEP,
    EpochMetrics,
    Header,
    Outcome,
    Provenance,
)
from densembed.training.loop import (
    Diverged,
    Epoch,
    Event,
    Resume,
    Snapshot,
    check_data,
    snapshot_steps,
)
from densembed.training.novelty import Novelty
from densembed.version import __version__


class Recorder:
    """Collects the events of a training into a checkpoint."""

    def __init__(self, config: RunConfig, dataset: Dataset):
        check_data(config, dataset)
        shape = dataset.input_shape
        if dataset.scaling is None and max(shape) > MAX_SIZE:
            raise ValueError(
                f"Expected images of at most {MAX_SIZE} channels, rows and columns, the limit of a "
                f"checkpoint; got {' × '.join(map(str, shape))}."
            )
        self.header = Header(
            config=config,
            input_shape=dataset.input_shape,
            classes=list(dataset.classes),
            steps_per_epoch=-(-len(dataset.train) // config.batch_size),
            steps=[0],
            epochs=[],
            outcome="running",
            provenance=_provenance(config, dataset),
            plugins=plugins.needed(config.model),
            scaling=dataset.scaling,
        )
        if plugins.MAIN in self.header.plugins:
            warnings.warn(
                f"{config.model} is registered in a notebook, or in a script whose name is no "
                "module's: other programs cannot open its checkpoint. Register it in a module file "
                "of its own, and import that.",
                stacklevel=2,
            )
        self.dataset = dataset
        self.snapshots: list[Snapshot] = []
        self.position: Resume | None = None
        self.diverged = False

    def add(self, event: Event) -> None:
        """Add an event.

        Raises:
            TypeError: it is none of those that `train` yields.
            ValueError: the first snapshot is not from before training, a snapshot or an epoch
                does not follow the last one, or a checkpoint cannot contain it.
        """
        if not isinstance(event, Event):
            raise TypeError(f"Expected an event of train; got {type(event).__name__}.")
        if isinstance(event, Snapshot):
            event = replace(event, step=_whole(event.step))
            if len(self.snapshots) >= MAX_SNAPSHOTS:
                raise ValueError(
                    f"A checkpoint has at most {MAX_SNAPSHOTS:,} snapshots, and the recorder has "
                    "as many already: add fewer of them."
                )
            if event.step and not self.snapshots:
                raise ValueError(
                    "Expected a first snapshot of step 0, from before training; got one of step "
                    f"{event.step:,}."
                )
            if self.snapshots:
                _check_order("snapshot", "step", event.step, self.snapshots[-1].step)
            # Copies: the values of a network change with its training.
            state = {name: values.detach().clone() for name, values in event.state.items()}
            self.snapshots.append(replace(event, state=state))
        elif isinstance(event, Resume):
            self.position = event
        elif isinstance(event, Diverged):
            self.diverged = True
        elif isinstance(event, Epoch):
            if epochs := self.header.epochs:
                _check_order("epoch", "number", event.epoch, epochs[-1].epoch)
            if len(self.header.epochs) >= MAX_EPOCHS:
                raise ValueError(
                    f"A checkpoint has at most {MAX_EPOCHS:,} epochs, and the recorder has as many "
                    "already: add fewer of them."
                )
            try:
                self.header.epochs.append(EpochMetrics(**asdict(event)))
            except ValidationError as error:
                raise ValueError(f"The epoch does not fit a checkpoint: {explain(error)}") from None

    def resume(self, checkpoint: Checkpoint | None, step: int, since: int = 0) -> None:
        """Copy from a checkpoint what an uninterrupted training has after `step` steps.

        Args:
            checkpoint: the last one of the training, or None if it could not be read.
            step: number of steps that are done.
            since: the step from which it trains on changed data. The snapshots before it lie at
                other steps, so all of them are copied.
        Raises:
            ValueError: if the checkpoint lacks a snapshot or has another config.
        """
        header = self.header
        if checkpoint and checkpoint.config != header.config:
            now, then = header.config.model_dump(), checkpoint.config.model_dump()
            changed = [f"{key} ({then[key]} before)" for key in now if now[key] != then[key]]
            raise ValueError(
                f"The settings differ from those of the checkpoint: {', '.join(changed)}. Restore "
                "them to resume, or start again."
            )
        steps = snapshot_steps(header.config.epochs, header.steps_per_epoch)
        planned = {one for one in steps if one == 0 or since < one <= step}
        if checkpoint is None or not planned <= set(checkpoint.steps):
            raise ValueError("The checkpoint to resume from is missing or damaged. Start again.")
        before = checkpoint.header
        counts = {"train_images", "test_images"}
        header.provenance = before.provenance.model_copy(
            update=header.provenance.model_dump(include=counts)
        )
        header.data_changes[:] = before.data_changes
        header.epochs[:] = [epoch for epoch in before.epochs if epoch.step <= step]
        for index, saved in enumerate(before.steps):
            if saved in planned or saved <= since:
                state = {name: tensor[index] for name, tensor in checkpoint.tensors.items()}
                self.snapshots.append(Snapshot(saved, state))

    @float32_on_cpu()
    def checkpoint(self, outcome: Outcome = "running") -> Checkpoint:
        """The checkpoint so far.

        Raises ValueError without any snapshot, for another outcome, or if two snapshots differ in
        the names or shapes of their parameters.

        After a `Diverged` event, the outcome is "diverged" also for "done" and "stopped".

        While the training runs, the current parameters follow the planned snapshots, which lie far
        apart in a long training.
        """
        if not self.snapshots:
            raise ValueError("Expected at least one snapshot; add one with `add`.")
        if outcome not in get_args(Outcome):
            raise ValueError(
                f"Expected an outcome of {', '.join(get_args(Outcome))}; got {outcome!r:.40}."
            )
        if self.diverged and outcome in ("done", "stopped"):
            outcome = "diverged"
        snapshots = [*self.snapshots, *(self._current() if outcome == "running" else [])]
        _check_alike(snapshots)
        steps = [snapshot.step for snapshot in snapshots]
        header = self.header.model_copy(update={"steps": steps, "outcome": outcome})
        tensors = {
            name: torch.stack([snapshot.state[name] for snapshot in snapshots])
            for name in snapshots[0].state
        }
        checkpoint = Checkpoint(header, tensors)
        if outcome in ("done", "stopped") and checkpoint.reads_digits:
            checkpoint.novelty = Novelty.fit(checkpoint.model(), self.dataset)
        return checkpoint

    def _current(self) -> list[Snapshot]:
        last = self.snapshots[-1]
        if self.position is None or self.position.step <= last.step:
            return []
        state = self.position.parameters(last.state)
        finite = all(part.isfinite().all() for part in state.values())
        return [Snapshot(self.position.step, state)] if finite else []


def _whole(step: int) -> int:
    """The step as an int. Raises ValueError for a number that a checkpoint cannot contain."""
    try:
        whole = operator.index(step)
    except TypeError:
        whole = -1
    if not 0 <= whole <= MAX_STEP:
        raise ValueError(
            f"Expected the step of a snapshot as a whole number from 0 to {MAX_STEP:,}; got "
            f"{step!r:.40}."
        )
    return whole


def _check_alike(snapshots: Sequence[Snapshot]) -> None:
    first, *others = (
        {name: tuple(values.shape) for name, values in snapshot.state.items()}
        for snapshot in snapshots
    )
    for snapshot, shapes in zip(snapshots[1:], others, strict=True):
        for name in [*first, *shapes]:
            if (one := first.get(name)) != (other := shapes.get(name)):
                raise ValueError(
                    "Expected the same parameters in all snapshots; that of step "
                    f"{snapshot.step:,} has {name} {_shape(other)}, and the first one "
                    f"{_shape(one)}."
                )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "not at all" if shape is None else f"of shape {shape}"


def _check_order(what: str, of: str, number: int, last: int) -> None:
    if number <= last:
        raise ValueError(f"Expected the {of} of the next {what} above {last:,}; got {number:,}.")


def _provenance(config: RunConfig, dataset: Dataset) -> Provenance:
    """The software, machine and data of a training that begins now."""
    device = pick_device(config.device)
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        densembed=__version__,
        torch=torch.__version__,
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}",
        device=device_name(device),
        threads=torch.get_num_threads(),
        kernels=kernels.described(torch.get_num_threads()) if device.type == "cpu" else "",
        dataset_title=dataset.title,
        train_images=len(dataset.train),
        test_images=len(dataset.test),
    )
