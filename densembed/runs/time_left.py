"""Remaining time of runs, from their events or from an estimate."""

import heapq
from collections.abc import Callable, Iterable, Sequence

from densembed.runs.folder import Run
from densembed.training.config import RunConfig

MEASURED = 2.0
"""Seconds of training from which the time per step is measured; before, the last report is used."""
RECENT = 60.0
"""Seconds of training that are measured: the machine may have other work, which begins and ends."""


def seconds_left(run: Run, estimate: Callable[[RunConfig], float]) -> float:
    """Seconds until a run ends, as measured since its last start, or else by `estimate`."""
    config = run.config
    if config is None:
        return 0.0
    left = seconds_after(run.events(), config)
    return estimate(config) if left is None else left


def seconds_after(events: Sequence[dict], config: RunConfig) -> float | None:
    """Seconds for the steps after the last report; None if nothing was measured yet.

    Evaluations at the end of epochs, and saving, are part of the time per step.
    """
    points = [event for event in since_start(events) if event["kind"] in ("progress", "epoch")]
    reports = [event for event in points if event["kind"] == "progress"]
    if not reports:
        return None
    last, report = points[-1], reports[-1]
    left = report["steps"] - last["step"]
    first = next(point for point in points if point["time"] >= last["time"] - RECENT)
    seconds, steps = last["time"] - first["time"], last["step"] - first["step"]
    if seconds >= MEASURED and steps > 0:
        return left * seconds / steps
    if not report["images_per_second"]:
        return None
    return left * config.batch_size * config.seeds / report["images_per_second"]


def since_start(events: Sequence[dict]) -> Sequence[dict]:
    """The events of the process that trained last, from its start."""
    starts = [k for k, event in enumerate(events) if event["kind"] == "start"]
    return events[starts[-1] if starts else 0 :]


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
