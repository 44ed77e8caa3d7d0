"""Collects the events of a training into a checkpoint."""

from dataclasses import asdict

import torch

from densembed.data import Dataset
from densembed.models import plugins
from densembed.training.checkpoint import Checkpoint, EpochMetrics, Header, Provenance
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, Event, Resume, Snapshot, snapshot_steps


class Recorder:
    """Collects the events of a training into a checkpoint."""

    def __init__(self, config: RunConfig, dataset: Dataset):
        self.header = Header(
            config=config,
            input_shape=dataset.input_shape,
            classes=list(dataset.classes),
            steps_per_epoch=-(-len(dataset.train) // config.batch_size),
            steps=[0],
            epochs=[],
            outcome="running",
            provenance=Provenance.now(config, dataset),
            plugins=plugins.needed(config.model),
        )
        self.snapshots: list[Snapshot] = []
        self.place: Resume | None = None

    def add(self, event: Event) -> None:
        if isinstance(event, Snapshot):
            self.snapshots.append(event)
        elif isinstance(event, Resume):
            self.place = event
        elif isinstance(event, Epoch):
            self.header.epochs.append(EpochMetrics(**asdict(event)))

    def go_on(self, checkpoint: Checkpoint | None, step: int, since: int = 0) -> None:
        """Take over what an undisturbed training would have had after `step` steps.

        Args:
            since: the step until which it trained on other data, in whose epochs snapshots lie at
                other steps: all of them are taken over.
        Raises:
            ValueError: where the checkpoint has not got it.
        """
        header = self.header
        steps = snapshot_steps(header.config.epochs, header.steps_per_epoch)
        planned = {one for one in steps if one == 0 or since < one <= step}
        known = checkpoint.header if checkpoint else None
        if known is None or known.config != header.config or not planned <= set(known.steps):
            raise ValueError("The checkpoint to go on from is gone or damaged. Start it again.")
        counts = {"train_images", "test_images"}
        header.provenance = known.provenance.model_copy(
            update=header.provenance.model_dump(include=counts)
        )
        header.epochs[:] = [epoch for epoch in known.epochs if epoch.step <= step]
        for index, kept in enumerate(known.steps):
            if kept in planned or kept <= since:
                state = {name: tensor[index] for name, tensor in checkpoint.tensors.items()}
                self.snapshots.append(Snapshot(kept, state))

    def checkpoint(self, outcome: str = "running") -> Checkpoint:
        """What is known so far as a checkpoint; needs one snapshot at least.

        Of a training that goes on the last snapshot is where it is now: those that are kept of a
        long one lie far apart.
        """
        kept = [*self.snapshots, *(self._now() if outcome == "running" else [])]
        steps = [snapshot.step for snapshot in kept]
        header = self.header.model_copy(update={"steps": steps, "outcome": outcome})
        tensors = {
            name: torch.stack([snapshot.state[name] for snapshot in kept]) for name in kept[0].state
        }
        return Checkpoint(header, tensors)

    def _now(self) -> list[Snapshot]:
        last = self.snapshots[-1]
        if self.place is None or self.place.step <= last.step:
            return []
        state = self.place.parameters(last.state)
        finite = all(part.isfinite().all() for part in state.values())
        return [Snapshot(self.place.step, state)] if finite else []
