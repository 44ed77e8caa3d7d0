"""The paper's tables, figure and times, and the search for a better recipe.

Work is split into jobs, one member of one row each, that a Dask cluster runs: one process with
one thread for each core of this machine, or the machines behind a scheduler's address. A job
leaves its checkpoint in the output folder and is not run again while that one has the same
config; all that is reported is read from those files.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev

import plotly.graph_objects as go
import torch

from densembed.checkpoint import Checkpoint, CheckpointError, Recorder
from densembed.config import RunConfig
from densembed.data import Dataset, Split, load_dataset
from densembed.fields import view
from densembed.models import describe
from densembed.paper import Row
from densembed.paper_figures import figure1
from densembed.process import settle
from densembed.scheduler import SchedulerError, connect, explain_failure, resources
from densembed.training import Epoch, train

RECIPES: dict[str, dict] = {
    "paper": {},
    "tuned": {
        "learning_rate": 0.01,
        "density_rate": 3.0,
        "scale_start": -2.3,
        "location_start": "grid",
    },
}
"""What each recipe changes in a `RunConfig`; `paper` is its defaults (20 epochs of Section 4)."""

SEARCH: tuple[dict[str, tuple], ...] = (
    {
        "learning_rate": (0.005, 0.01, 0.02),
        "density_rate": (1.0, 3.0),
        "scale_start": (-3.0, -2.3),
        "location_start": ("grid",),
    },
    {
        "learning_rate": (0.01,),
        "density_rate": (3.0,),
        "scale_start": (-3.0, -2.3),
        "location_start": ("grid",),
        "weight_decay": (0.03, 0.1),
    },
)
"""Candidates for `tuned`, every combination of each grid; the second one came after the first."""
SEARCH_ROWS = ("logistic-el-3", "logistic-el-15", "logistic-el-mnn-6-3", "logistic-el-mnn-10-5")
HELD_OUT = 10_000


@dataclass(frozen=True)
class Job:
    """One member to train. `held_out`: judged on images split off the training set."""

    config: RunConfig
    path: Path
    held_out: bool = False

    def checkpoint(self) -> Checkpoint | None:
        """What an earlier call left, if it was of the same config and went to its end."""
        try:
            found = Checkpoint.open(self.path)
        except CheckpointError:
            return None
        same = found.config == self.config and found.header.outcome == "done"
        return found if same else None


def table_jobs(rows: Sequence[str], dataset: str, recipe: str, seeds: int, out: Path) -> list[Job]:
    """A job for each seed of each row."""
    folder = out / dataset / recipe
    return [
        Job(
            RunConfig(model=model, dataset=dataset, seed=seed, **RECIPES[recipe]),
            folder / model / f"{seed}.safetensors",
        )
        for model in rows
        for seed in range(seeds)
    ]


def search_jobs(rows: Sequence[str], dataset: str, seeds: int, out: Path) -> list[Job]:
    """A job for each combination of each grid of `SEARCH`, row and seed."""
    jobs = []
    for grid in SEARCH:
        for values in product(*grid.values()):
            change = dict(zip(grid, values, strict=True))
            name = "_".join(str(value) for value in values)
            for model in rows:
                for seed in range(seeds):
                    config = RunConfig(model=model, dataset=dataset, seed=seed, **change)
                    path = out / dataset / "search" / name / model / f"{seed}.safetensors"
                    jobs.append(Job(config, path, held_out=True))
    return jobs


def hold_out(dataset: Dataset, count: int = HELD_OUT) -> Dataset:
    """The last `count` training images (a fifth, where there are few) in place of the test set."""
    count = min(count, len(dataset.train) // 5)
    images, labels = dataset.train.images, dataset.train.labels
    return replace(
        dataset,
        train=Split(images[:-count], labels[:-count]),
        test=Split(images[-count:], labels[-count:]),
    )


def do(job: Job, data_dir: str | None = None) -> str:
    """Train one job in this process, with one thread, and leave its checkpoint; its outcome."""
    settle()
    dataset = load_dataset(job.config.dataset, data_dir)
    if job.held_out:
        dataset = hold_out(dataset)
    recorder = Recorder(job.config, dataset)
    for event in train(job.config, dataset):
        recorder.add(event)
    complete = len(recorder.header.epochs) == job.config.epochs
    outcome = "done" if complete else "diverged"
    job.path.parent.mkdir(parents=True, exist_ok=True)
    recorder.checkpoint(outcome).save(job.path)
    return outcome


@contextmanager
def workers(scheduler: str | None = None) -> Iterator:
    """A Dask client: of a scheduler's address, or of a process for each core of this machine."""
    from distributed import Client, LocalCluster

    if scheduler:
        with connect(scheduler) as client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=os.cpu_count() or 1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def run(
    jobs: Iterable[Job],
    data_dir: str | None = None,
    scheduler: str | None = None,
    finished: Callable[[Job], None] = lambda job: None,
) -> None:
    """Run the jobs that have not been run, and call `finished` for each of all of them."""
    todo = []
    for job in jobs:
        if job.checkpoint():
            finished(job)
        else:
            todo.append(job)
    if not todo:
        return
    from distributed import as_completed

    with workers(scheduler) as client:
        tasks = {
            client.submit(
                do, job, data_dir, pure=False, retries=3,
                resources=resources(job.config) if scheduler else None,
            ): job
            for job in todo
        }  # fmt: skip
        for task in as_completed(tasks, loop=client.loop):
            if task.status != "finished":
                raise SchedulerError(explain_failure(task))
            finished(tasks[task])


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


@dataclass(frozen=True)
class Result:
    """A row of a table as it came out, beside the one that is printed."""

    row: Row
    errors: list[float]
    parameters: int
    seconds: float
    """Of training all members, on one thread each."""

    @property
    def mean(self) -> float:
        return mean(self.errors)

    @property
    def deviation(self) -> float:
        return stdev(self.errors) if len(self.errors) > 1 else 0.0


def results(rows: Sequence[Row], dataset: str, recipe: str, seeds: int, out: Path) -> list[Result]:
    """The rows whose members are all there."""
    found = []
    for row in rows:
        jobs = table_jobs([row.model], dataset, recipe, seeds, out)
        parts = [job.checkpoint() for job in jobs]
        if all(parts):
            seconds = sum(epoch.seconds for part in parts for epoch in part.header.epochs)
            errors = [part.errors[0] for part in parts]
            found.append(Result(row, errors, parts[0].parameters, seconds))
    return found


def as_json(found: Sequence[Result], dataset: str, recipe: str) -> dict:
    """What the Paper page reads: every number of the table, ours and theirs."""
    return {
        "dataset": dataset,
        "recipe": recipe,
        "config": RunConfig(dataset=dataset, **RECIPES[recipe]).model_dump(
            exclude={"model", "seed", "seeds", "device"}
        ),
        "rows": [
            {
                "model": result.row.model,
                "parameters": result.parameters,
                "errors": [round(error, 4) for error in result.errors],
                "mean": round(result.mean, 4),
                "deviation": round(result.deviation, 4),
                "seconds": round(result.seconds, 1),
                "paper_mean": result.row.error,
                "paper_deviation": result.row.deviation,
                "paper_parameters": result.row.parameters,
            }
            for result in found
        ],
    }


def as_markdown(table: dict) -> str:
    """The table of `as_json` for people."""
    lines = [
        f"### {table['dataset']}, recipe {table['recipe']}",
        "",
        "| model | parameters | ours, test error % | paper, test error % | difference |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in table["rows"]:
        lines.append(
            f"| {row['model']} | {row['parameters']:,} "
            f"| {row['mean']:.2f} ± {row['deviation']:.2f} "
            f"| {row['paper_mean']:.2f} ± {row['paper_deviation']:.2f} "
            f"| {row['mean'] - row['paper_mean']:+.2f} |"
        )
    members = len(table["rows"][0]["errors"]) if table["rows"] else 0
    seconds = sum(row["seconds"] for row in table["rows"])
    lines += [
        "",
        f"{members} seeds a row; {seconds:,.0f} s of training in all, one thread each.",
        "",
    ]
    return "\n".join(lines)


FIGURE1 = ("logistic-el-mnn-10-5", "logistic-el-5", "logistic-el-15")
FIGURE1_INPUTS = 3


def figure1_of(checkpoints: dict[str, Checkpoint], pictures: torch.Tensor) -> go.Figure:
    """Figure 1 from the checkpoints of its three models.

    Args:
        pictures: (3, C, H, W) uint8, the inputs of its part (a).
    """
    moving = checkpoints[FIGURE1[0]]
    views = [view(moving, picture, [0, -1]) for picture in pictures]
    fixed = [(name, view(checkpoints[name], pictures[0], [0, -1])) for name in FIGURE1[1:]]
    return figure1(
        list(pictures.numpy()),
        [(seen.fields[0], seen.fields[-1]) for seen in views],
        [(describe(name), seen.fields[0], seen.fields[-1]) for name, seen in fixed],
        (max(seen.top for seen in views), max(seen.top for _, seen in fixed)),
    )


def epoch_times(model: str, dataset: Dataset, runs: int) -> list[float]:
    """Seconds of training an epoch, for `runs` epochs after one to warm up."""
    config = RunConfig(model=model, dataset=dataset.name, epochs=runs + 1)
    epochs = [event for event in train(config, dataset) if isinstance(event, Epoch)]
    return [epoch.seconds for epoch in epochs[1:]]
