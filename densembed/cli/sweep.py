"""The command `sweep`: train all combinations of settings. The same command resumes a sweep."""

import argparse
import os
import time
from contextlib import suppress

from densembed.cli.common import check_kept, creating
from densembed.cli.data import prepare
from densembed.data import files_of
from densembed.figures.sweep import label, sweep_figure
from densembed.figures.web import Panel, html_page
from densembed.files import replace_file
from densembed.runs.same_data import check_same_data
from densembed.runs.sweep import Row, Sweep
from densembed.text import printable
from densembed.workers.cluster import Cluster

TABLE = "sweep.csv"
"""The file of the results."""


def run(options: argparse.Namespace) -> int:
    """Train every combination of the settings."""
    plan = options.plan
    names = plan.grid.get("dataset", [plan.base.dataset])
    if options.out:
        check_kept(options.out / TABLE, [files_of(name, options.data_dir) for name in names])
    datasets = [prepare(name, options) for name in names]
    if options.out:
        sweep = Sweep.create(plan, options.out.absolute())
    else:
        with creating("choose one with --out"):
            sweep = Sweep.create(plan)
    for dataset in filter(None, datasets):
        check_same_data(sweep.path, dataset)
    print(f"sweep {printable(os.path.realpath(sweep.path))}")
    print(f"trainings: {len(sweep.jobs()):,}, trained together in groups: {len(sweep.groups()):,}")
    cluster = Cluster(options.scheduler, options.processes)
    try:
        data_dir = str(options.data_dir.absolute()) if options.data_dir else None
        sweep.submit(cluster, data_dir)
        _follow(sweep, cluster)
    except BaseException:
        with suppress(OSError):  # what ended the sweep says more
            _save_table(sweep)
        raise
    finally:
        cluster.close()
    wrong = ""
    if sweep.state() == "running":
        wrong = (
            "Another process is training this sweep. Wait until it ends; the same command then "
            "shows all results."
        )
    elif sweep.state() != "done":
        wrong = sweep.reason() or (
            "The sweep is not complete. Run the same command again to resume it."
        )
    try:
        _save_table(sweep)
        page = html_page("Test error of a sweep", [[Panel("", sweep_figure(sweep.rows()))]])
        replace_file(sweep.path / "sweep.html", page.encode())
        print(f"saved: {printable(sweep.path / TABLE)} and sweep.html")
    except OSError:
        if not wrong:
            raise
    if wrong:
        raise ValueError(wrong)
    return 0


def _save_table(sweep: Sweep) -> None:
    replace_file(sweep.path / TABLE, sweep.as_csv().encode())


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
        deviation = f" ± {row.errors.deviation:.2f}" if len(row.errors) > 1 else ""
        parts.append(f"{row.errors.mean:6.2f}{deviation} %")
    if row.diverged:
        parts.append(f"{row.diverged} diverged")
    return "  ".join(parts)
