"""Waits that depend on progress instead of time, so that a busy machine does not make them fail.

A wait gives up after `SILENCE` checks without progress. These are checks, not seconds: on a machine
that is too busy for this process, it makes fewer checks, too.
"""

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

import psutil

PAUSE = 0.05
"""Seconds between two checks."""
SILENCE = 1200
EVERY = 20
"""Checks between two looks at the signs of progress, which take longer than the condition."""
T = TypeVar("T")


def work() -> Hashable:
    """Whole seconds of processor time of each child process.

    A process that only waits and polls uses less than one second per `SILENCE` checks.
    """
    used = []
    for process in psutil.Process().children(recursive=True):
        try:
            used.append((process.pid, int(sum(process.cpu_times()[:2]))))
        except psutil.Error:  # the process has ended
            continue
    return tuple(used)


def wait_for(
    condition: Callable[[], T], signs: Callable[[], Hashable] = work, silence: int = SILENCE
) -> T:
    """Wait for the condition and return its value.

    Raises AssertionError if the signs of progress do not change. While something trains, the wait
    continues until that training ends.
    """
    last, quiet = signs(), 0
    while not (value := condition()):
        time.sleep(PAUSE)
        quiet += 1
        if quiet % EVERY == 0 and (now := signs()) != last:
            last, quiet = now, 0
        assert quiet < silence, f"No progress for {quiet} checks: {last}"
    return value
