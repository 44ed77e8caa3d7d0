"""How long runs take from here, from what they have said or from an estimate of the whole."""

import heapq
from collections.abc import Callable, Iterable

from densembed.runs.folder import Run
from densembed.training.config import RunConfig


def seconds_left(run: Run, estimate: Callable[[RunConfig], float]) -> float:
    """Seconds until it ends, at the speed of its last report; `estimate` where there is none."""
    reports = [event for event in run.events() if event["kind"] == "progress"]
    config = run.config
    if config is None:
        return 0.0
    if not reports or not reports[-1]["images_per_second"]:
        return estimate(config)
    return seconds_after(reports[-1], config)


def seconds_after(report: dict, config: RunConfig) -> float:
    """Seconds that the steps after a report of progress take at its speed."""
    images = (report["steps"] - report["step"]) * config.batch_size * config.seeds
    return images / report["images_per_second"] if report["images_per_second"] else 0.0


def waiting_seconds(lefts: Iterable[float], at_once: int) -> float:
    """Seconds until one more run may start.

    Args:
        lefts: how long those before it take, in their order.
        at_once: how many run beside each other, 1 or more.
    """
    ends = [0.0] * at_once
    for left in lefts:
        heapq.heapreplace(ends, ends[0] + left)
    return ends[0]
