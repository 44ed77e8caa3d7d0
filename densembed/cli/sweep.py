"""The command `sweep`: train all combinations of settings. The same command resumes a sweep."""

import argparse
import os
import time
from pathlib import Path

from densembed.cli.reproduce import add_scheduler
from densembed.data import check_name
from densembed.figures.sweep import label, sweep_figure
from densembed.figures.web import Panel, html_page
from densembed.files import replace_file
from densembed.runs.sweep import Row, Sweep
from densembed.runs.sweep_plan import FIXED, make_plan, read_values
from densembed.text import printable
from densembed.training.config import RunConfig
from densembed.workers.cluster import Cluster


def add_sweep(command: argparse.ArgumentParser) -> None:
    """Add an option for every setting; several values, separated by commas, form a grid."""
    for name, field in RunConfig.model_fields.items():
        values = "" if name in FIXED else "; one or more, separated by commas"
        text = f"{field.description} (default {field.default}{values})"
        if name == "model":
            text = f"networks, by name: see below{values}"
        flag = name if name == "model" else "--" + name.replace("_", "-")
        command.add_argument(flag, default=None if name == "model" else field.default, help=text)
    command.add_argument("--data-dir", type=Path, help="folder with the data set's files")
    command.add_argument("--out", type=Path, help="folder of the sweep (default: a new folder)")
    command.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="groups in parallel on each device of this machine (default: one per core)",
    )
    add_scheduler(command)


def sweep_command(options: argparse.Namespace) -> int:
    base, grid = {}, {}
    for name in RunConfig.model_fields:
        value = getattr(options, name)
        values = read_values(name, value) if isinstance(value, str) else [value]
        if name not in FIXED and len(values) > 1:
            grid[name] = values
        else:
            base[name] = value
    for name in grid.get("dataset", [base.get("dataset")]):
        check_name(name)
    if options.processes < 1:
        raise ValueError("--processes is a number of processes, 1 or more.")
    plan = make_plan(base, grid or {"model": [base["model"]]})
    sweep = Sweep.create(plan, options.out.absolute() if options.out else None)
    print(f"sweep {printable(sweep.path.resolve())}")
    print(f"trainings: {len(sweep.jobs()):,}, trained together in groups: {len(sweep.groups()):,}")
    cluster = Cluster(options.scheduler, options.processes)
    try:
        data_dir = str(options.data_dir.absolute()) if options.data_dir else None
        sweep.submit(cluster, data_dir)
        _follow(sweep, cluster)
    finally:
        replace_file(sweep.path / "sweep.csv", sweep.as_csv().encode())
        cluster.close()
    page = html_page("Test error of a sweep", [[Panel("", sweep_figure(sweep.rows()))]])
    replace_file(sweep.path / "sweep.html", page.encode())
    print(f"saved: {printable(sweep.path / 'sweep.csv')} and sweep.html")
    if sweep.state() != "done":
        raise ValueError(
            sweep.reason() or "The sweep is not complete. Run the same command again to resume it."
        )
    return 0


def _follow(sweep: Sweep, cluster: Cluster) -> None:
    """Print each combination as soon as all its seeds have ended.

    Groups that were stopped by the user count as ended.
    """
    printed: set[int] = set()
    groups, waiting = sweep.groups(), True
    for wanting in {cluster.wanting(group) for group in groups} - {""}:
        print(wanting)
    while waiting:
        waiting = any(
            cluster.ahead(group) is not None and group.state() != "stopped" for group in groups
        )
        for k, row in enumerate(sweep.rows()):
            if k not in printed and len(row.errors) + row.diverged == row.seeds:
                printed.add(k)
                print(_line(row), flush=True)
        if waiting:
            time.sleep(0.5)


def _line(row: Row) -> str:
    parts = [f"{label(row.change):<44} {row.parameters:>8,} parameters"]
    if row.errors:
        parts.append(f"{row.errors.mean:6.2f} ± {row.errors.deviation:.2f} %")
    if row.diverged:
        parts.append(f"{row.diverged} diverged")
    return "  ".join(parts)
