"""Waits that follow what happens, not the clock: a busy machine makes them longer, not fail.

A wait gives up after `SILENCE` looks between which nothing has happened. They are looks, not
seconds, since a machine that is too busy for this process gives it fewer of them, too.
"""

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

import psutil

PAUSE = 0.05
"""Seconds between two looks."""
SILENCE = 1200
EVERY = 20
"""Looks between two looks at the signs, which cost more than the condition."""
T = TypeVar("T")


def work() -> Hashable:
    """Whole seconds of processor time that each process which this one has started has used.

    A process that only waits, and now and then looks around, uses less than one in `SILENCE`.
    """
    used = []
    for process in psutil.Process().children(recursive=True):
        try:
            used.append((process.pid, int(sum(process.cpu_times()[:2]))))
        except psutil.Error:  # it has ended
            continue
    return tuple(used)


def wait_for(
    condition: Callable[[], T], signs: Callable[[], Hashable] = work, silence: int = SILENCE
) -> T:
    """What the condition is once it is true; an AssertionError where the signs stay the same.

    A condition that stays false while something trains is waited for until that training ends.
    """
    last, quiet = signs(), 0
    while not (found := condition()):
        time.sleep(PAUSE)
        quiet += 1
        if quiet % EVERY == 0 and (now := signs()) != last:
            last, quiet = now, 0
        assert quiet < silence, f"Nothing has happened for {quiet} looks: {last}"
    return found
