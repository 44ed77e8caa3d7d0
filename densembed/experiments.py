"""The command line's experiments: reproduce and benchmark."""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

from densembed import reproduce
from densembed.benchmark import machine
from densembed.checkpoint import replace_file
from densembed.data import load_dataset
from densembed.paper import TABLES, Row
from densembed.reproduce import RECIPES, Job
from densembed.scheduler import scheduler_address

DEFAULT_OUT = Path("checkpoints/reproduction")
TABLE_DATA = {"table1": "mnist"}


def add_reproduce(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=[*TABLE_DATA, "figure1", "times", "search"])
    command.add_argument("--recipe", choices=RECIPES, default="paper")
    command.add_argument("--seeds", type=int, default=5, help="runs a row (default 5)")
    command.add_argument("--rows", help="models, separated by commas (default: all of the table)")
    command.add_argument("--dataset", help="another data set than the table's")
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder for the results")
    command.add_argument("--gallery", type=Path, help="copy each row's typical member to a folder")
    add_scheduler(command)


def add_scheduler(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--scheduler", default=scheduler_address(), metavar="ADDRESS",
        help="train on the workers of a Dask scheduler, tcp://host:8786 "
        "(default: what DENSEMBED_SCHEDULER says, else this machine)",
    )  # fmt: skip


def reproduce_command(options: argparse.Namespace) -> None:
    if options.seeds < 1:
        raise ValueError("--seeds is a number of runs, 1 or more.")
    commands = {"search": _search, "figure1": _figure1, "times": _times}
    commands.get(options.what, _table)(options)


def _rows(options: argparse.Namespace, all_rows: tuple[Row, ...]) -> list[Row]:
    known = {row.model: row for row in all_rows}
    wanted = options.rows.split(",") if options.rows else list(known)
    if unknown := [model for model in wanted if model not in known]:
        raise ValueError(f"The table has no row {unknown[0]!r}; it has {', '.join(known)}.")
    return [known[model] for model in wanted]


def _table(options: argparse.Namespace) -> None:
    dataset = options.dataset or TABLE_DATA[options.what]
    rows = _rows(options, TABLES[TABLE_DATA[options.what]])
    models = [row.model for row in rows]
    jobs = reproduce.table_jobs(models, dataset, options.recipe, options.seeds, options.out)
    _run(jobs, options)
    found = reproduce.results(rows, dataset, options.recipe, options.seeds, options.out)
    table = reproduce.as_json(found, dataset, options.recipe)
    name = f"{options.what}-{dataset}-{options.recipe}"
    (options.out / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n")
    text = reproduce.as_markdown(table)
    (options.out / f"{name}.md").write_text(text)
    print(text)
    if options.gallery:
        for result in found:
            _ship(result, jobs, options.gallery)
        replace_file(
            options.gallery / f"{name}.json", (json.dumps(table, indent=1) + "\n").encode()
        )
    for model in sorted(set(models) - {result.row.model for result in found}):
        print(f"{model}: a member diverged, so the row is left out")


def _ship(result: reproduce.Result, jobs: list[Job], folder: Path) -> None:
    """Copy the member nearest the mean, not the best, under the model's name."""
    nearest = min(
        (job for job in jobs if job.config.model == result.row.model),
        key=lambda job: abs(job.checkpoint().errors[0] - result.mean),
    )
    nearest.checkpoint().save(folder / f"{result.row.model}.safetensors")


def _figure1(options: argparse.Namespace) -> None:
    dataset = options.dataset or "mnist"
    rows = {
        model: reproduce.table_jobs(
            [model], dataset, options.recipe, options.seeds, options.out.absolute()
        )
        for model in reproduce.FIGURE1
    }
    _run([job for jobs in rows.values() for job in jobs], options)
    checkpoints = {model: reproduce.merge(jobs) for model, jobs in rows.items()}
    pictures = load_dataset(dataset, options.data_dir).test.images[: reproduce.FIGURE1_INPUTS]
    path = options.out / f"figure1-{dataset}-{options.recipe}.html"
    figure = reproduce.figure1_of(checkpoints, pictures)
    replace_file(path, figure.to_html(include_plotlyjs=True).encode())
    print(f"saved: {path}")


TIMED_EPOCHS = 10


def _times(options: argparse.Namespace) -> None:
    dataset = load_dataset(options.dataset or "mnist", options.data_dir)
    rows = []
    for row in _rows(options, TABLES["mnist"]):
        seconds = reproduce.epoch_times(row.model, dataset, TIMED_EPOCHS)
        rows.append({"model": row.model, "mean": mean(seconds), "deviation": stdev(seconds)})
        print(f"{row.model:<24} {mean(seconds):7.3f} ± {stdev(seconds):.3f} s an epoch", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    report = {"machine": machine(), "dataset": dataset.name, "runs": TIMED_EPOCHS, "rows": rows}
    (options.out / f"times-{dataset.name}.json").write_text(json.dumps(report, indent=1) + "\n")


def _search(options: argparse.Namespace) -> None:
    dataset = options.dataset or "mnist"
    rows = options.rows.split(",") if options.rows else list(reproduce.SEARCH_ROWS)
    jobs = reproduce.search_jobs(rows, dataset, options.seeds, options.out)
    _run(jobs, options)
    errors = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        kept = job.checkpoint()
        candidate = job.path.parent.parent.name
        errors[candidate][job.config.model].append(kept.errors[0] if kept else 100.0)
    lines = [
        f"Candidates ({', '.join(reproduce.SEARCH[-1])}), mean error % on held-out training images",
        "",
        f"| candidate | {' | '.join(rows)} |",
        "| --- " * (len(rows) + 1) + "|",
    ]
    order = sorted(errors, key=lambda name: sum(mean(errors[name][row]) for row in rows))
    for name in order:
        cells = " | ".join(f"{mean(errors[name][row]):.2f}" for row in rows)
        lines.append(f"| {name.replace('_', ', ')} | {cells} |")
    text = "\n".join(lines) + "\n"
    (options.out / f"search-{dataset}.md").write_text(text)
    print(text)


def _run(jobs: list[Job], options: argparse.Namespace) -> None:
    """Run the jobs behind a progress bar over members."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    options.out.mkdir(parents=True, exist_ok=True)
    data_dir = str(options.data_dir.absolute()) if options.data_dir else None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed()
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("members", total=len(jobs))

        def finished(job: Job) -> None:
            bar.update(task, advance=1, description=job.config.model)

        absolute = [Job(job.config, job.path.absolute(), job.held_out) for job in jobs]
        reproduce.run(absolute, data_dir, options.scheduler, finished)


def add_benchmark(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quick", action="store_true", help="one minute, eager, batch 128")
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    command.add_argument("--json", type=Path, help="write the figures to this file, too")
    command.add_argument("--markdown", type=Path, help="the same as tables for people")


def benchmark_command(options: argparse.Namespace) -> None:
    from densembed import benchmark
    from densembed.training import pick_device

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
