"""The command line's experiments: reproduce and benchmark."""

import argparse
import json
import os
from pathlib import Path
from statistics import mean, stdev

from densembed.data import is_folder, load_dataset, slug, title
from densembed.experiments import benchmark, families, frontier, reproduce, robustness, search
from densembed.experiments.benchmark import machine
from densembed.experiments.paper import TABLES, Row
from densembed.experiments.reproduce import RECIPES
from densembed.figures import paper as figures
from densembed.files import replace_file
from densembed.runs import gallery
from densembed.runs import jobs as work
from densembed.runs.jobs import Job
from densembed.text import printable, unknown
from densembed.training.device import pick_device
from densembed.workers.executors import Executor, SchedulerWorkers, local_executor
from densembed.workers.scheduler import scheduler_address

DEFAULT_OUT = Path("checkpoints/reproduction")
TABLE_DATA = {"table1": "mnist", "table2": "cifar10"}


def add_reproduce(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=[*TABLE_DATA, *COMMANDS])
    command.add_argument("--recipe", choices=RECIPES, default="paper")
    command.add_argument("--seeds", type=int, help="runs per row (default 5; families: 3)")
    command.add_argument("--rows", help="models, separated by commas (default: all of the table)")
    command.add_argument("--dataset", help="another data set than the table's")
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder for the results")
    command.add_argument("--gallery", type=Path, help="copy each row's typical member to a folder")
    command.add_argument(
        "--device", choices=("auto", "cpu", "cuda", "mps"), default="",
        help="where to train (default auto); on a GPU all seeds of a row train in one step",
    )  # fmt: skip
    command.add_argument(
        "--processes", type=int,
        help="trainings side by side (default one a core; one on a GPU, where 4 to 8 fill it)",
    )  # fmt: skip
    add_scheduler(command)


def add_scheduler(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--scheduler", default=scheduler_address(), metavar="ADDRESS",
        help="train on the workers of a Dask scheduler, tcp://host:8786 "
        "(default: what DENSEMBED_SCHEDULER says, else this machine)",
    )  # fmt: skip


def reproduce_command(options: argparse.Namespace) -> None:
    if options.seeds is None:
        options.seeds = SEEDS.get(options.what, USUAL_SEEDS)
    if options.seeds < 1:
        raise ValueError("--seeds is a number of runs, 1 or more.")
    if options.processes is not None and options.processes < 1:
        raise ValueError("--processes is a number of processes, 1 or more.")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.gallery:
        options.gallery.mkdir(parents=True, exist_ok=True)
    COMMANDS.get(options.what, _table)(options)


def _rows(options: argparse.Namespace, all_rows: tuple[Row, ...]) -> list[Row]:
    known = {row.model: row for row in all_rows}
    wanted = options.rows.split(",") if options.rows else list(known)
    for model in wanted:
        if model not in known:
            sentence = unknown("row of the table", model, known)
            raise ValueError(f"{sentence}; it has {', '.join(known)}.")
    return [known[model] for model in wanted]


def _table(options: argparse.Namespace) -> None:
    dataset = options.dataset or TABLE_DATA[options.what]
    rows = _rows(options, TABLES[TABLE_DATA[options.what]])
    models = [row.model for row in rows]
    jobs = reproduce.table_jobs(
        models, dataset, options.recipe, options.seeds, options.out, options.device
    )
    _run(jobs, options)
    found = reproduce.results(rows, dataset, options.recipe, options.seeds, options.out)
    table = reproduce.as_json(found, _called(dataset, options), options.recipe)
    name = f"{options.what}-{slug(dataset, options.data_dir)}-{options.recipe}"
    _write(name, table, reproduce.as_markdown(table), options)
    if options.gallery:
        for result in found:
            _ship([job for job in jobs if job.config.model == result.row.model], options)
    for model in sorted(set(models) - {result.row.model for result in found}):
        print(f"{model}: a member diverged, so the row is left out")


def _called(dataset: str, options: argparse.Namespace) -> str:
    """A data set in a report: its name, and of a folder of pictures the title, not the place."""
    return title(dataset, options.data_dir) if is_folder(dataset) else dataset


def _write(name: str, table: dict, text: str, options: argparse.Namespace) -> None:
    """Results as JSON and Markdown in the output folder, and the JSON beside the gallery."""
    content = (json.dumps(table, indent=1) + "\n").encode()
    replace_file(options.out / f"{name}.json", content)
    replace_file(options.out / f"{name}.md", text.encode())
    if options.gallery:
        replace_file(options.gallery / f"{name}.json", content)
    print(text)


def _ship(jobs: list[Job], options: argparse.Namespace, prefix: str = "") -> None:
    """Copy the member nearest the mean, not the best, under the model's name.

    Of another data set than the gallery's MNIST, its name follows, so that both have a place.
    """
    nearest = work.typical([kept for job in jobs if (kept := job.checkpoint())])
    config = nearest.config
    data = "" if config.dataset == "mnist" else f"-{slug(config.dataset, options.data_dir)}"
    nearest.save(options.gallery / f"{prefix}{config.model}{data}.safetensors")


def _figure1(options: argparse.Namespace) -> None:
    dataset = options.dataset or "mnist"
    rows = {
        model: reproduce.table_jobs(
            [model], dataset, options.recipe, options.seeds, options.out.absolute(), options.device
        )
        for model in figures.FIGURE1
    }
    _run([job for jobs in rows.values() for job in jobs], options)
    checkpoints = {model: work.merge(jobs) for model, jobs in rows.items()}
    pictures = load_dataset(dataset, options.data_dir).test.images[: figures.FIGURE1_INPUTS]
    path = options.out / f"figure1-{slug(dataset, options.data_dir)}-{options.recipe}.html"
    page = figures.figure1_page(figures.figure1_of(checkpoints, pictures))
    replace_file(path, page.encode())
    print(f"saved: {printable(path)}")


TIMED_EPOCHS = 10


def _times(options: argparse.Namespace) -> None:
    dataset = load_dataset(options.dataset or "mnist", options.data_dir)
    rows = []
    for row in _rows(options, TABLES["mnist"]):
        seconds = reproduce.epoch_times(row.model, dataset, TIMED_EPOCHS)
        rows.append({"model": row.model, "mean": mean(seconds), "deviation": stdev(seconds)})
        print(f"{row.model:<24} {mean(seconds):7.3f} ± {stdev(seconds):.3f} s an epoch", flush=True)
    report = {"machine": machine(), "dataset": dataset.name, "runs": TIMED_EPOCHS, "rows": rows}
    lines = [f"| {row['model']} | {row['mean']:.3f} ± {row['deviation']:.3f} |" for row in rows]
    text = "\n".join(["| model | seconds an epoch |", "| --- | ---: |", *lines, ""])
    _write(f"times-{slug(dataset.name)}", report, text, options)


def _search(options: argparse.Namespace) -> None:
    dataset = options.dataset or "mnist"
    rows = options.rows.split(",") if options.rows else list(search.ROWS)
    channels = load_dataset(dataset, options.data_dir).input_shape[0]
    searched = search.jobs(rows, dataset, channels, options.seeds, options.out, options.device)
    _run([job for _, own in searched for job in own], options)
    text = search.as_markdown(rows, searched)
    replace_file(options.out / f"search-{slug(dataset, options.data_dir)}.md", text.encode())
    print(text)


def _run(jobs: list[Job], options: argparse.Namespace) -> None:
    """Run the jobs behind a progress bar over members."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    data_dir = str(options.data_dir.absolute()) if options.data_dir else None
    if jobs and not options.scheduler:
        # Fetched or decoded once, and missing data said, before processes start that need it.
        load_dataset(jobs[0].config.dataset, data_dir)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed()
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("members", total=len(jobs))

        def finished(job: Job) -> None:
            bar.update(task, advance=1, description=job.config.model)

        absolute = [Job(job.config, job.path.absolute(), job.held_out) for job in jobs]
        work.run(absolute, data_dir, executor=_executor(options), finished=finished)


def _executor(options: argparse.Namespace) -> Executor | None:
    if options.scheduler:
        return SchedulerWorkers(options.scheduler)
    return local_executor(options.processes) if options.processes else None


def _families(options: argparse.Namespace) -> None:
    name = options.dataset or "mnist"
    jobs = families.family_jobs(name, options.recipe, options.seeds, options.out, options.device)
    _run(jobs, options)
    dataset = load_dataset(name, options.data_dir)
    called = _called(name, options)
    table = families.report(jobs, dataset, called, options.recipe, options.device)
    stem = f"families-{slug(name, options.data_dir)}-{options.recipe}"
    _write(stem, table, families.as_markdown(table), options)


def _robustness(options: argparse.Namespace) -> None:
    name = options.dataset or "mnist"
    checkpoints = {}
    for model in robustness.MODELS:
        # The shipped ones, or those that table1 left where another data set is asked for.
        entry = gallery.find(model) if name == "mnist" else None
        if entry is not None:
            checkpoints[model] = entry.open()
            continue
        jobs = reproduce.table_jobs(
            [model], name, options.recipe, options.seeds, options.out, options.device
        )
        _run(jobs, options)
        kept = [found for job in jobs if (found := job.checkpoint())]
        if not kept:
            raise ValueError(f"Every member of {model} diverged, so there is nothing to look at.")
        checkpoints[model] = work.typical(kept)
    dataset = load_dataset(name, options.data_dir)
    table = robustness.report(checkpoints, dataset, _called(name, options))
    stem = f"robustness-{slug(name, options.data_dir)}"
    _write(stem, table, robustness.as_markdown(table), options)


def _frontier(options: argparse.Namespace) -> None:
    name, device = options.dataset or "mnist", options.device
    only = options.rows.split(",") if options.rows else ()
    found = frontier.candidates(name, options.data_dir, only)
    jobs = frontier.screen_jobs(found, name, options.out, device)
    _run(jobs, options)
    screened = frontier.choose(found, jobs)
    chosen = [choice.candidate for choice in frontier.finalists(screened)]
    jobs = frontier.search_jobs(chosen, name, options.out, device)
    _run(jobs, options)
    finals = frontier.choose(chosen, jobs)
    jobs = frontier.final_jobs(finals, name, options.seeds, options.out, device)
    _run(jobs, options)
    table = frontier.report(screened, finals, jobs, _called(name, options))
    stem = f"frontier-{slug(name, options.data_dir)}"
    _write(stem, table, frontier.as_markdown(table), options)
    if options.gallery:
        winners = [frontier.best(table, budget) for budget in frontier.BUDGETS]
        for model in sorted({winner["model"] for winner in winners if winner}):
            own = [job for job in jobs if job.config.model == model]
            _ship(own, options, "frontier-")  # not to be taken for a row of the paper's table


COMMANDS = {
    "search": _search, "figure1": _figure1, "times": _times, "families": _families,
    "robustness": _robustness, "frontier": _frontier,
}  # fmt: skip
USUAL_SEEDS = 5
SEEDS = {"families": 3}
"""Runs of each row where nothing is asked for."""


def add_benchmark(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quick", action="store_true", help="one minute, eager, batch 128")
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    command.add_argument("--json", type=Path, help="write the figures to this file, too")
    command.add_argument("--markdown", type=Path, help="the same as tables for people")


def benchmark_command(options: argparse.Namespace) -> None:
    for path in filter(None, (options.json, options.markdown)):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise ValueError(f"{path} is not a file that can be written: choose another place.")
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
        options.markdown.write_text(benchmark.as_markdown(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
