"""Resumes the trainings that an earlier server left unfinished."""

from densembed.runs.execution import execute
from densembed.runs.folder import all_runs
from densembed.runs.sweep import all_sweeps
from densembed.workers.cluster import Cluster


def recover(cluster: Cluster) -> None:
    """Queue all interrupted and queued runs and sweeps, oldest first."""
    for run in reversed(all_runs()):
        if (state := run.state()) in ("interrupted", "queued"):
            if state == "interrupted":
                run.resume()
            cluster.submit(run, execute)
    for sweep in reversed(all_sweeps()):
        if sweep.state() in ("interrupted", "queued"):
            sweep.submit(cluster)
