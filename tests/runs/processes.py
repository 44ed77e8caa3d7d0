"""Starts processes that train a run. Their imports are done once, for all of them."""

import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Callable

from densembed.runs import Run, execute, execution

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.runs.processes", "sklearn.datasets"])


def start(run: Run, target: Callable[..., object] = execute, *arguments: object):
    process = context.Process(target=target, args=(str(run.path), *arguments), daemon=True)
    process.start()
    return process


def die(path: str) -> None:
    """Train until this process kills itself: at a random moment, after at least one step."""
    append = Run.append

    def armed(run: Run, kind: str, **values: object) -> None:
        append(run, kind, **values)
        if kind in ("progress", "epoch"):
            moment = random.uniform(0, 0.3)
            threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL)).start()

    Run.append = armed
    execution.KEEP_EVERY = 0.05
    execute(path)


def with_quota(path: str, size: int) -> None:
    """Train where no file may grow beyond that size."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    execution.SAVE_EVERY = 0.0
    execute(path)
