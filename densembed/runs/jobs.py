"""Members to train, and what came of them: the work behind every table and search.

A job is one member, one seed of one network. It leaves its checkpoint at a path of its own and is
not run again while that one has the same config; all that is reported is read from those files.
On a GPU members of one shape train in one step; on CPUs a Dask cluster runs them, one process with
one thread for each core of this machine, or the machines behind a scheduler's address.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import torch

from densembed.data import Dataset, Split, load_dataset
from densembed.data.download import Cancelled, watching
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.errors import Errors
from densembed.training.loop import MAY_DIFFER, train_members
from densembed.training.recorder import Recorder
from densembed.training.threads import limit_threads
from densembed.workers.executors import Executor, SchedulerWorkers, local_executor
from densembed.workers.scheduler import resources

HELD_OUT = 10_000
MOST_TOGETHER = 16
"""Members that train in one step at most: beyond it a GPU is busy, and its memory fills."""


@dataclass(frozen=True)
class Job:
    """One member to train. `held_out`: judged on images split off the training set."""

    config: RunConfig
    path: Path
    held_out: bool = False

    def checkpoint(self) -> Checkpoint | None:
        """What an earlier call left, if it was of the same config and went to its end.

        Where it was trained makes no difference.
        """
        try:
            found = Checkpoint.open(self.path)
        except CheckpointError:
            return None
        place = {"device", "compile"}
        same = found.config.model_dump(exclude=place) == self.config.model_dump(exclude=place)
        return found if same and found.header.outcome == "done" else None


def hold_out(dataset: Dataset, count: int = HELD_OUT) -> Dataset:
    """The last `count` training images (a fifth, where there are few) in place of the test set.

    Where the images lie in the order of their classes, as in a folder, they are shuffled first,
    the same way every time.
    """
    count = max(1, min(count, len(dataset.train) // 5))
    images, labels = dataset.train.images, dataset.train.labels
    if (labels.diff() >= 0).all():
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        images, labels = images[order], labels[order]
    return replace(
        dataset,
        train=Split(images[:-count], labels[:-count]),
        test=Split(images[-count:], labels[-count:]),
    )


def together(
    jobs: Sequence[Job], data_dir: str | None = None, stop: Callable[[], bool] = lambda: False
) -> None:
    """Train jobs of one shape in this process, in one step, and leave the checkpoint of each.

    Where one of them diverges, each is trained again alone, so that it takes none with it. Where
    `stop` says yes, nothing is left.
    """
    limit_threads()
    torch.backends.cudnn.deterministic = True  # the same numbers from the same command
    first = jobs[0]
    try:
        with watching(stop):
            dataset = load_dataset(first.config.dataset, data_dir)
    except Cancelled:
        return
    if first.held_out:
        dataset = hold_out(dataset)
    configs = [job.config for job in jobs]
    recorder = Recorder(first.config, dataset)
    for event in train_members(configs, dataset, stop):
        recorder.add(event)
    complete = len(recorder.header.epochs) == first.config.epochs
    if not complete and stop():
        return
    if not complete and len(jobs) > 1:
        for job in jobs:
            together([job], data_dir, stop)
        return
    whole = recorder.checkpoint("done" if complete else "diverged")
    for job, part in zip(jobs, split(whole, configs), strict=True):
        job.path.parent.mkdir(parents=True, exist_ok=True)
        part.save(job.path)


def split(whole: Checkpoint, configs: Sequence[RunConfig]) -> list[Checkpoint]:
    """The members of a checkpoint, each as one of its own, with its share of the time."""
    parts = []
    for k, config in enumerate(configs):
        epochs = [
            epoch.model_copy(
                update={
                    "train_loss": epoch.train_loss[k : k + 1],
                    "test_error": epoch.test_error[k : k + 1],
                    "learning_rate": epoch.learning_rate
                    * (config.learning_rate / configs[0].learning_rate),
                    "seconds": epoch.seconds / len(configs),
                }
            )
            for epoch in whole.header.epochs
        ]
        header = whole.header.model_copy(update={"config": config, "epochs": epochs})
        tensors = {name: value[:, k : k + 1].clone() for name, value in whole.tensors.items()}
        parts.append(Checkpoint(header, tensors))
    return parts


def merge(jobs: Sequence[Job]) -> Checkpoint:
    """The members of a row, trained apart, as one checkpoint with a leading member axis."""
    parts = [job.checkpoint() for job in jobs]
    first = parts[0].header
    epochs = [
        epoch.model_copy(
            update={
                "train_loss": [part.header.epochs[k].train_loss[0] for part in parts],
                "test_error": [part.header.epochs[k].test_error[0] for part in parts],
                "seconds": mean(part.header.epochs[k].seconds for part in parts),
            }
        )
        for k, epoch in enumerate(first.epochs)
    ]
    config = first.config.model_copy(update={"seeds": len(parts)})
    tensors = {
        name: torch.cat([part.tensors[name] for part in parts], 1) for name in parts[0].tensors
    }
    return Checkpoint(first.model_copy(update={"config": config, "epochs": epochs}), tensors)


def typical(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """Of the members of a row the one nearest their mean error: not the best."""
    return checkpoints[Errors([checkpoint.errors[0] for checkpoint in checkpoints]).typical]


def groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that can train in one step, at most `MOST_TOGETHER` in each group."""
    alike: dict[tuple, list[Job]] = {}
    for job in jobs:
        key = job.held_out, job.config.model_dump_json(exclude=MAY_DIFFER)
        alike.setdefault(key, []).append(job)
    return [
        members[start : start + MOST_TOGETHER]
        for members in alike.values()
        for start in range(0, len(members), MOST_TOGETHER)
    ]


def _on_gpu(jobs: Sequence[Job]) -> bool:
    return pick_device(jobs[0].config.device).type != "cpu"


def run(
    jobs: Sequence[Job],
    data_dir: str | None = None,
    *,
    executor: Executor | None = None,
    finished: Callable[[Job], None] = lambda job: None,
) -> None:
    """Train the jobs that have no checkpoint yet, and call `finished` for each job.

    Args:
        jobs: all with the same device.
        executor: where to train; by default one process per core, or this process on a GPU.
    """
    todo = []
    for job in jobs:
        if job.checkpoint():
            finished(job)
        else:
            todo.append(job)
    if not todo:
        return
    in_groups = not isinstance(executor, SchedulerWorkers) and _on_gpu(todo)
    executor = executor or local_executor(1 if in_groups else os.cpu_count() or 1)
    work = groups(todo) if in_groups else [[job] for job in todo]
    needed = resources(todo[0].config)
    for index in executor.run(together, [(members, data_dir) for members in work], needed):
        for job in work[index]:
            finished(job)
