"""Trains the members of tables, searches and sweeps, and reads their checkpoints.

A job is one member: one seed of one network. Its checkpoint has its own path, and a job whose
checkpoint has the same config is not trained again. All reports are read from these files. On a
GPU, members of one shape train in one step; an executor decides where each step runs.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor

from densembed.data import Dataset, Split, load_dataset
from densembed.data.download import Cancelled, watching
from densembed.data.folder import reread
from densembed.runs.same_data import check_same_data
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.errors import Errors
from densembed.training.header import CheckpointError
from densembed.training.loop import MAY_DIFFER, Progress, train_members
from densembed.training.recorder import Recorder
from densembed.training.threads import limit_threads
from densembed.workers.executors import Executor, SchedulerWorkers, local_executor
from densembed.workers.scheduler import resources

DOWNLOAD_EVERY = 1.0
"""Seconds between two reports of a download."""
HELD_OUT = 10_000
MOST_TOGETHER = 16
"""Most members that train in one step: more do not make a GPU faster, but need its memory."""


@dataclass(frozen=True)
class Job:
    """One member to train; with `held_out`, it is tested on images of the training set."""

    config: RunConfig
    path: Path
    held_out: bool = False

    def checkpoint(self) -> Checkpoint | None:
        """The finished checkpoint of the same config, if any; the device may differ."""
        try:
            checkpoint = Checkpoint.open(self.path)
        except CheckpointError:
            return None
        ignored = {"device", "compile"}
        wanted = self.config.model_dump(exclude=ignored)
        same = checkpoint.config.model_dump(exclude=ignored) == wanted
        return checkpoint if same and checkpoint.header.outcome == "done" else None


def hold_out(dataset: Dataset, count: int = HELD_OUT) -> Dataset:
    """Replace the test set by the last `count` training images, at most a fifth of them.

    Images that are sorted by class, as those of a folder, are shuffled first with a fixed seed. If
    the last ones still are no sample of all classes, as for a table in blocks, a share of each
    class is held out.
    """
    count = max(1, min(count, len(dataset.train) // 5))
    images, labels = dataset.train.images, dataset.train.labels
    if (labels.diff() >= 0).all():
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        images, labels = images[order], labels[order]
    share, held = labels.bincount() * count / len(labels), labels[-count:].bincount()
    held = torch.nn.functional.pad(held, (0, len(share) - len(held)))
    if ((held < share / 2) | (held > share * 2)).any():
        order = _spread(labels)
        images, labels = images[order], labels[order]
    return replace(
        dataset,
        train=Split(images[:-count], labels[:-count]),
        test=Split(images[-count:], labels[-count:]),
    )


def _spread(labels: Tensor) -> Tensor:
    """A random order, with a fixed seed, whose every part has all classes in proportion."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    places = torch.empty(len(labels), dtype=torch.float64)
    for label in labels.unique():
        own = order[labels[order] == label]
        places[own] = (torch.arange(len(own), dtype=torch.float64) + 0.5) / len(own)
    return order[places[order].argsort(stable=True)]


def together(
    jobs: Sequence[Job],
    data_dir: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    results: Path | None = None,
    report: Callable[..., object] = lambda kind, /, **values: None,
) -> None:
    """Train jobs of one shape in this process, in one step, and save the checkpoint of each.

    If one of them diverges, each is trained again on its own, so that the others finish. If `stop`
    returns True, nothing is saved.

    Args:
        results: folder of which all jobs must have the same data.
        report: called with the kind and values of each event that tells how far the work is, a
            "download" or "progress".
    Raises:
        DataError: the data cannot be loaded, or differ from those of earlier jobs in `results`.
    """
    limit_threads()
    torch.backends.cudnn.deterministic = True  # reproducible results
    first = jobs[0]
    reread()
    try:
        with watching(stop, download_reporter(report)):
            dataset = load_dataset(first.config.dataset, data_dir)
    except Cancelled:
        return
    if results:
        check_same_data(results, dataset)
    if first.held_out:
        dataset = hold_out(dataset)
    configs = [job.config for job in jobs]
    recorder = Recorder(first.config, dataset)
    for event in train_members(configs, dataset, stop=stop):
        recorder.add(event)
        if isinstance(event, Progress):
            report("progress", **asdict(event))
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


def download_reporter(report: Callable[..., object]) -> Callable[[int, int], None]:
    """A callback for `watching` that reports the progress of a download as events."""
    reported = -math.inf

    def progress(received: int, size: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= DOWNLOAD_EVERY:
            reported = time.monotonic()
            report("download", received=received, size=size)

    return progress


def split(whole: Checkpoint, configs: Sequence[RunConfig]) -> list[Checkpoint]:
    """One checkpoint per member, each with an equal share of the training time."""
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
    """One checkpoint of members that were trained separately.

    Raises:
        ValueError: if one of them has no finished checkpoint.
    """
    parts = []
    for job in jobs:
        if (part := job.checkpoint()) is None:
            raise ValueError(f"{job.config.model} with seed {job.config.seed} was not trained.")
        parts.append(part)
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
    """The member whose error is closest to the mean, of checkpoints with one member each."""
    errors = [error for checkpoint in checkpoints for error in checkpoint.errors or ()]
    return checkpoints[Errors(errors).typical]


def groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Groups of jobs that can train in one step, at most `MOST_TOGETHER` jobs per group."""
    alike: dict[tuple, list[Job]] = {}
    for job in jobs:
        key = job.held_out, job.config.model_dump_json(exclude=MAY_DIFFER)
        alike.setdefault(key, []).append(job)
    return [
        members[start : start + MOST_TOGETHER]
        for members in alike.values()
        for start in range(0, len(members), MOST_TOGETHER)
    ]


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
    scheduled, config = isinstance(executor, SchedulerWorkers), todo[0].config
    in_groups = not scheduled and pick_device(config.device).type != "cpu"
    executor = executor or local_executor(1 if in_groups else os.cpu_count() or 1)
    work = groups(todo) if in_groups else [[job] for job in todo]
    needed = resources(config) if scheduled else None
    for index in executor.run(together, [(members, data_dir) for members in work], needed):
        for job in work[index]:
            finished(job)
