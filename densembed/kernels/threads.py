"""Threads for kernels, which run without the interpreter's lock.

A call is cut into more pieces than there are threads, and each thread takes the next one when it
has a core. So a training that is alone uses all idle cores, several share them, and nobody waits
in a loop, as the threads of OpenMP do. The result does not depend on the number of threads.
"""

import os
import threading
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue

VARIABLE = "DENSEMBED_THREADS"
"""Takes precedence over OMP_NUM_THREADS, which Dask sets to 1 in its workers."""
LEAST_WORK = 100_000
"""Nanoseconds of work per thread below which waking another one takes longer than it saves."""
PARTS = 4
"""Pieces per thread, so that a thread without a core holds up the others for one only."""
_queue: "SimpleQueue[Callable[[], None]]" = SimpleQueue()
_lock = threading.Lock()
_started = 0
_limit: int | None = None


def use(threads: int | None) -> None:
    """Number of threads that the kernels of this process use; None for that of each call."""
    global _limit
    _limit = threads


def limit(otherwise: int) -> int:
    """The number set by `use`, or the given one."""
    return otherwise if _limit is None else _limit


def allowed() -> int:
    """Number of threads for a training: from the environment, or one per core of this process.

    Raises ValueError if `DENSEMBED_THREADS` is no number. OMP_NUM_THREADS may be a list.
    """
    for name in (VARIABLE, "OMP_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isascii() and text.isdecimal() and int(text):
            return int(text)
        if text and name == VARIABLE:
            raise ValueError(f"{VARIABLE} must be a number of threads, at least 1; got {text!r}.")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share(pieces: int, work: int, threads: int, run: Callable[[int, int], None]) -> None:
    """Call run(first, end) so that all `pieces` are covered.

    Args:
        work: estimated nanoseconds of all pieces; other threads are woken only if it pays.
        threads: number to use if `use` has set none.
    """
    threads = min(limit(threads), pieces, work // LEAST_WORK)
    if threads < 2:
        run(0, pieces)
        return
    parts = min(pieces, PARTS * threads)
    upcoming, ended, done = count(), count(1), threading.Event()
    failures: list[BaseException] = []

    def take() -> None:
        while (part := next(upcoming)) < parts:  # one instruction, so no part is taken twice
            try:
                run(part * pieces // parts, (part + 1) * pieces // parts)
            except BaseException as error:
                failures.append(error)
            if next(ended) == parts:
                done.set()

    _start(threads - 1)
    for _ in range(threads - 1):
        _queue.put(take)
    take()
    done.wait()
    if failures:
        raise failures[0]


def _start(helpers: int) -> None:
    """Start daemon threads up to a number; a process that was forked starts its own."""
    global _started
    if _started >= helpers:
        return
    with _lock:
        while _started < helpers:
            threading.Thread(target=_serve, name="densembed-kernel", daemon=True).start()
            _started += 1


def _serve() -> None:
    while True:
        _queue.get()()


def _forget() -> None:
    global _started, _queue, _lock
    _started, _queue, _lock = 0, SimpleQueue(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
