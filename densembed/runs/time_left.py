"""Remaining time of runs, from their progress reports or from an estimate."""

import heapq
from collections.abc import Callable, Iterable

from densembed.runs.folder import Run
from densembed.training.config import RunConfig


def seconds_left(run: Run, estimate: Callable[[RunConfig], float]) -> float:
    """Seconds until a run ends, at the speed of its last report, or else by `estimate`."""
    reports = [event for event in run.events() if event["kind"] == "progress"]
    config = run.config
    if config is None:
        return 0.0
    if not reports or not reports[-1]["images_per_second"]:
        return estimate(config)
    return seconds_after(reports[-1], config)


def seconds_after(report: dict, config: RunConfig) -> float:
    """Seconds for the steps after a progress report, at the speed of that report."""
    images = (report["steps"] - report["step"]) * config.batch_size * config.seeds
    return images / report["images_per_second"] if report["images_per_second"] else 0.0


def waiting_seconds(lefts: Iterable[float], at_once: int) -> float:
    """Seconds until one more run may start.

    Args:
        lefts: remaining seconds of the runs before it, in the order of the queue.
        at_once: number of runs that train at the same time, 1 or more.

    >>> waiting_seconds([5, 7, 1], at_once=2)
    6.0
    """
    ends = [0.0] * at_once
    for left in lefts:
        heapq.heapreplace(ends, ends[0] + left)
    return ends[0]
