"""The commands `reproduce` and `benchmark`."""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from densembed.data import load_dataset, slug
from densembed.experiments import benchmark
from densembed.experiments.families import Families
from densembed.experiments.frontier import Frontier
from densembed.experiments.report import Experiment, Report, Settings, finished
from densembed.experiments.reproduce import RECIPES, Table, Times, table_jobs
from densembed.experiments.robustness import Robustness
from densembed.experiments.search import Search
from densembed.figures.paper import FIGURE1, FIGURE1_INPUTS, figure1_of, figure1_page
from densembed.files import replace_file
from densembed.markup import for_markdown
from densembed.runs import jobs as work
from densembed.runs.jobs import Job
from densembed.text import printable
from densembed.training.device import pick_device
from densembed.workers.executors import Executor, SchedulerWorkers, local_executor
from densembed.workers.scheduler import scheduler_address

DEFAULT_OUT = Path("checkpoints/reproduction")


class Figure1(Experiment):
    """Figure 1 of the paper as an HTML page: fields before and after training."""

    name, uses_recipe = "figure1", True

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        yield table_jobs(FIGURE1, settings)

    def report(self, settings: Settings) -> Report:
        checkpoints = {model: work.merge(table_jobs([model], settings)) for model in FIGURE1}
        images = settings.load().test.images[:FIGURE1_INPUTS]
        page = figure1_page(figure1_of(checkpoints, images))
        return {"dataset": settings.title, "recipe": settings.recipe, "page": page}

    def markdown(self, report: Report) -> str:
        return f"### Figure 1 on {for_markdown(report['dataset'])}, recipe {report['recipe']}\n"

    def files(self, report: Report) -> dict[str, str]:
        return {"html": report["page"]}


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Table("table1", "mnist"),
        Table("table2", "cifar10"),
        Search(),
        Figure1(),
        Times(),
        Families(),
        Robustness(),
        Frontier(),
    )
}


def add_reproduce(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=EXPERIMENTS)
    command.add_argument("--recipe", choices=RECIPES, default="paper")
    command.add_argument("--seeds", type=int, help="runs per model (default 5; families: 3)")
    command.add_argument("--rows", help="models, separated by commas (default: all)")
    command.add_argument("--dataset", help="data set, if not the experiment's default")
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder for the results")
    command.add_argument(
        "--gallery", type=Path, help="copy the typical run of each model to this folder"
    )
    command.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="",
        help="where to train (default auto); on a GPU all seeds of a model are trained together",
    )
    command.add_argument(
        "--processes",
        type=int,
        help="trainings in parallel (default: one per core; one on a GPU, which 4 to 8 fill)",
    )
    add_scheduler(command)


def add_scheduler(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--scheduler",
        default=scheduler_address(),
        metavar="ADDRESS",
        help="train on the workers of a Dask scheduler, tcp://host:8786 "
        "(default: $DENSEMBED_SCHEDULER, otherwise this machine)",
    )


def reproduce_command(options: argparse.Namespace) -> None:
    """Train what the experiment needs, then write and print its report."""
    experiment = EXPERIMENTS[options.what]
    seeds = experiment.seeds if options.seeds is None else options.seeds
    if seeds < 1:
        raise ValueError("--seeds is a number of runs, 1 or more.")
    if options.processes is not None and options.processes < 1:
        raise ValueError("--processes is a number of processes, 1 or more.")
    settings = Settings(
        dataset=options.dataset or experiment.dataset,
        recipe=options.recipe,
        seeds=seeds,
        rows=tuple(options.rows.split(",")) if options.rows else (),
        out=options.out.absolute(),
        data_dir=options.data_dir,
        device=options.device,
    )
    for folder in filter(None, (options.out, options.gallery)):
        folder.mkdir(parents=True, exist_ok=True)
    for jobs in experiment.jobs(settings):
        _train(jobs, options)
        for job in jobs:
            if job.checkpoint() is None:
                print(f"{job.config.model}: the training with seed {job.config.seed} diverged")
    report = experiment.report(settings)
    print(experiment.markdown(report))
    stem = experiment.stem(settings)
    for extension, text in experiment.files(report).items():
        path = options.out / f"{stem}.{extension}"
        replace_file(path, text.encode())
        print(f"saved: {printable(path)}")
        if options.gallery and extension == "json":
            replace_file(options.gallery / path.name, text.encode())
    if options.gallery:
        for name, own in experiment.gallery(settings, report).items():
            _ship(name, own, options)


def _train(jobs: Sequence[Job], options: argparse.Namespace) -> None:
    """Run jobs with a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    data_dir = str(options.data_dir.absolute()) if options.data_dir else None
    if jobs and not options.scheduler:
        # Downloads or decodes the data once, or reports a problem, before processes start.
        load_dataset(jobs[0].config.dataset, data_dir)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed()
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("members", total=len(jobs))

        def advance(job: Job) -> None:
            bar.update(task, advance=1, description=job.config.model)

        work.run(jobs, data_dir, executor=_executor(options), finished=advance)


def _executor(options: argparse.Namespace) -> Executor | None:
    if options.scheduler:
        return SchedulerWorkers(options.scheduler)
    return local_executor(options.processes) if options.processes else None


def _ship(name: str, jobs: Sequence[Job], options: argparse.Namespace) -> None:
    """Copy the checkpoint whose error is nearest the mean, not the best one.

    Its name ends in that of the data set, except for MNIST, the gallery's usual one.
    """
    typical = work.typical(finished(jobs))
    dataset = typical.config.dataset
    suffix = "" if dataset == "mnist" else f"-{slug(dataset, options.data_dir)}"
    typical.save(options.gallery / f"{name}{suffix}.safetensors")


def add_benchmark(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--quick", action="store_true", help="one minute: eager mode, batch size 128"
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    command.add_argument("--json", type=Path, help="also write the measurements to this file")
    command.add_argument("--markdown", type=Path, help="also write them as Markdown tables")


def benchmark_command(options: argparse.Namespace) -> None:
    for path in filter(None, (options.json, options.markdown)):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise ValueError(f"{path} cannot be written: choose another path.")
    device = pick_device(options.device).type
    print("  ".join(f"{key}: {value}" for key, value in benchmark.machine(device).items()))
    cases = []
    for case in benchmark.run(options.quick, device):
        cases.append(case)
        print(
            f"{case.case:<48} {case.value:>12.3f} {case.unit:<14} ± {case.spread:.3f}  n={case.n}",
            flush=True,
        )
    report = benchmark.report(cases, device)
    if options.markdown:
        options.markdown.write_text(benchmark.markdown(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
