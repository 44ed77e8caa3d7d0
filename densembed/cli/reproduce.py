"""The commands `reproduce` and `benchmark`."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from torch import Tensor

from densembed.cli.data import prepare
from densembed.data import is_path
from densembed.experiments import benchmark
from densembed.experiments.families import Families
from densembed.experiments.frames import Frames
from densembed.experiments.frontier import Frontier
from densembed.experiments.report import (
    Experiment,
    Report,
    Settings,
    finished,
    models_of,
    seeds_of,
)
from densembed.experiments.reproduce import Table, Times, table_jobs
from densembed.experiments.resolution import Resolution
from densembed.experiments.robustness import Robustness
from densembed.experiments.search import Search
from densembed.experiments.signals import Signals
from densembed.figures.paper import (
    FIGURE1,
    check_inputs,
    figure1_of,
    figure1_page,
    first_images,
    usual_inputs,
)
from densembed.files import read_regular, replace_file
from densembed.markup import for_markdown
from densembed.runs import gallery
from densembed.runs import jobs as work
from densembed.runs.jobs import Job
from densembed.runs.same_data import check_same_data, check_same_name
from densembed.text import listed, printable, quoted
from densembed.training.checkpoint import Checkpoint
from densembed.training.device import pick_device
from densembed.workers.executors import Executor, SchedulerWorkers, local_executor


class Figure1(Experiment):
    """Figure 1 of the paper as an HTML page: fields before and after training."""

    name, uses_recipe = "figure1", True

    def jobs(self, settings: Settings) -> Iterator[Sequence[Job]]:
        if settings.inputs:  # errors in them are found before the download and the trainings
            check_inputs(settings.inputs)
            self._images(settings)
        if settings.included:
            self._check_channels(settings)
        else:
            yield table_jobs(FIGURE1, settings)

    def report(self, settings: Settings) -> Report:
        checkpoints = {model: self._checkpoint(model, settings) for model in FIGURE1}
        title = (
            f"Figure 1 of the included models with inputs from {settings.title}"
            if settings.included
            else f"Figure 1 on {settings.title} with recipe {settings.recipe}"
        )
        page = figure1_page(title, figure1_of(checkpoints, self._images(settings)))
        return {"title": title, "page": page}

    def _check_channels(self, settings: Settings) -> None:
        """Raise ValueError if the included models cannot take the data, whatever the grid."""
        dataset = settings.load()
        channels, height, width = self._checkpoint(FIGURE1[0], settings).header.input_shape
        if dataset.input_shape[0] != channels:
            kinds = {1: "grey", 3: "colour"}
            raise ValueError(
                f"The included models take {kinds[channels]} images of {height} × {width} pixels, "
                f"but {dataset.title} has {kinds[dataset.input_shape[0]]} images. Leave out "
                "--included to train models for them, or write "
                f"folder:PATH@{channels}x{height}x{width} to convert the images of a folder."
            )

    @staticmethod
    def _images(settings: Settings) -> Tensor:
        dataset = settings.load()
        return first_images(dataset, settings.inputs or usual_inputs(dataset.tested))

    @staticmethod
    def _checkpoint(model: str, settings: Settings) -> Checkpoint:
        if not settings.included:
            return work.merge(table_jobs([model], settings))
        if (entry := gallery.find(model)) is None:
            raise ValueError(f"The gallery {gallery.gallery_folder()} has no model {model}.")
        return entry.open()

    def markdown(self, report: Report) -> str:
        return f"### {for_markdown(report['title'])}\n"

    def stem(self, settings: Settings) -> str:
        if settings.included:  # they have recipes of their own
            return f"{self.name}-{settings.slug}-included"
        return super().stem(settings)

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
        Frames(),
        Resolution(),
        Frontier(),
        Signals(),
    )
}


def reproduce_command(options: argparse.Namespace) -> None:
    """Train what the experiment needs, then write and print its report."""
    experiment = EXPERIMENTS[options.what]
    seeds = experiment.seeds if options.seeds is None else options.seeds
    settings = Settings(
        dataset=options.dataset or experiment.dataset,
        recipe=options.recipe,
        seeds=seeds,
        rows=options.rows,
        out=options.out.absolute(),
        data_dir=options.data_dir,
        device=options.device,
        included=options.included,
        inputs=tuple(map(str.strip, options.inputs.split(","))) if options.inputs else (),
    )
    _check_same_name(settings)
    for jobs in experiment.jobs(settings):
        _check_nothing_lost(experiment, settings, options)
        _train(jobs, settings, options)
        for job in jobs:
            if job.checkpoint() is None:
                print(f"{job.config.model}: the training with seed {job.config.seed} diverged")
    _check_nothing_lost(experiment, settings, options)  # of an experiment without jobs
    report = experiment.report(settings)
    print(experiment.markdown(report))
    stem = experiment.stem(settings)
    _check_same_name(settings, record=True)
    for folder in filter(None, (options.out, options.gallery)):
        folder.mkdir(parents=True, exist_ok=True)
    for extension, text in experiment.files(report).items():
        path = options.out / f"{stem}.{extension}"
        replace_file(path, text.encode())
        print(f"saved: {printable(path)}")
        if options.gallery and extension == "json":
            replace_file(options.gallery / path.name, text.encode())
    if options.gallery:
        for name, own in experiment.gallery(settings, report).items():
            _ship(name, own, settings, options.gallery)


def _check_nothing_lost(
    experiment: Experiment, settings: Settings, options: argparse.Namespace
) -> None:
    """Raise ValueError if earlier results, which ours would replace, have more rows or seeds."""
    for option, folder in (("--out", options.out), ("--gallery", options.gallery)):
        if folder is None:
            continue
        path = folder / f"{experiment.stem(settings)}.json"
        try:
            earlier = json.loads(read_regular(path))
        except (OSError, ValueError, RecursionError):
            continue  # missing or damaged
        rows = list(dict.fromkeys(map(experiment.row_of, models_of(earlier))))
        own, seeds = experiment.selected(settings), seeds_of(earlier)
        more, change = [], []
        if lost := [row for row in rows if own and row not in own]:
            more.append(f"the row{'s' if len(lost) > 1 else ''} {listed(lost)}")
            change.append(f"--rows {','.join(map(printable, dict.fromkeys([*rows, *own])))}")
        if seeds > settings.seeds:
            more.append(f"{seeds:,} seeds per row")
            change.append(f"--seeds {seeds}")
        if more:
            raise ValueError(
                f"The results in {quoted(path)} have {' and '.join(more)}, which this run would "
                f"remove. Nothing was changed. Use {' '.join(change)}, or another folder for "
                f"{option}."
            )


def _check_same_name(settings: Settings, record: bool = False) -> None:
    if is_path(settings.dataset):
        check_same_name(settings.out, settings.slug, settings.dataset, record)


def _train(jobs: Sequence[Job], settings: Settings, options: argparse.Namespace) -> None:
    """Run jobs with a progress bar in a terminal, and one line per training elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    if jobs and (dataset := prepare(jobs[0].config.dataset, options)):
        check_same_data(options.out, dataset)
    if jobs:
        _check_same_name(settings, record=True)
    data_dir = str(options.data_dir.absolute()) if options.data_dir else None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed()
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("members", total=len(jobs))

        def advance(job: Job) -> None:
            bar.update(task, advance=1, description=job.config.model)
            if not bar.console.is_terminal:
                done = f"{bar.tasks[task].completed:,.0f}/{len(jobs):,}"
                with suppress(OSError):  # a closed pipe does not end the trainings
                    line = f"done {done}: {job.config.model}, seed {job.config.seed}"
                    print(line, file=sys.stderr, flush=True)

        work.run(jobs, data_dir, executor=_executor(options), finished=advance)


def _executor(options: argparse.Namespace) -> Executor | None:
    if options.scheduler:
        return SchedulerWorkers(options.scheduler)
    return local_executor(options.processes) if options.processes else None


def _ship(name: str, jobs: Sequence[Job], settings: Settings, gallery: Path) -> None:
    """Copy the checkpoint whose error is nearest the mean, not the best one.

    Its name ends in that of the data set, except for MNIST, the gallery's usual one.
    """
    suffix = "" if settings.dataset == "mnist" else f"-{settings.slug}"
    work.typical(finished(jobs)).save(gallery / f"{name}{suffix}.safetensors")


def benchmark_command(options: argparse.Namespace) -> None:
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
        replace_file(options.markdown, benchmark.markdown(report).encode())
    if options.json:
        replace_file(options.json, (json.dumps(report, indent=1) + "\n").encode())
