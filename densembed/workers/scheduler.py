"""Connects to a Dask scheduler and its workers.

The workers need this package and the same folders under the same paths:

    dask scheduler
    dask worker tcp://host:8786 --nthreads 1 --resources "GPU=1"
"""

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from densembed.data import DataError
from densembed.models.plugins import PluginError, load
from densembed.text import quoted
from densembed.training.config import RunConfig

Result = TypeVar("Result")
VARIABLE = "DENSEMBED_SCHEDULER"
PATIENCE = 5
"""Seconds to wait for an answer of the scheduler."""


class SchedulerError(ValueError):
    """A scheduler or its workers cannot be used; the message is one sentence."""


def scheduler_address() -> str | None:
    """The address in `DENSEMBED_SCHEDULER`, e.g. tcp://host:8786, or None."""
    return os.environ.get(VARIABLE) or None


def connect(address: str):
    """A Dask client of the scheduler at an address. Raises SchedulerError if none answers."""
    from distributed import Client

    with contextlib.suppress(OSError, ValueError):  # no answer; not an address
        # A client alone would wait forever for a scheduler that accepts and stays silent.
        # The caller's thread may have a running event loop, for example in a notebook.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, asyncio.wait_for(_greet(address), PATIENCE)).result()
        return Client(address, timeout=PATIENCE, set_as_default=False)
    # Close the unconnected client now. If the garbage collector closed it while another client
    # starts, it would wait forever for a lock that the starting client holds.
    gc.collect()
    raise SchedulerError(
        f"No Dask scheduler answers at {quoted(address[:80])}. Start one with `dask scheduler`, or "
        "omit the address to train on this machine."
    )


async def _greet(address: str) -> None:
    """Exchange the first messages with a scheduler."""
    from distributed.comm import connect as open_connection

    (await open_connection(address, timeout=PATIENCE)).abort()


def resources(config: RunConfig) -> dict[str, float]:
    """The Dask resources that a run needs: workers for CUDA have `--resources "GPU=1"`."""
    return {"GPU": 1} if config.device == "cuda" else {}


def places(client, wanted: dict[str, float]) -> int:
    """How many tasks with these resources the current workers run at the same time."""
    total = 0
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        shares = [worker["resources"].get(name, 0) // amount for name, amount in wanted.items()]
        total += int(min([worker["nthreads"], *shares]))
    return total


def missing(wanted: dict[str, float]) -> str:
    """What to do if there is no suitable worker for a task."""
    flag = ' --resources "GPU=1"' if wanted else ""
    return f"There is no suitable worker yet. Start one with `dask worker ADDRESS{flag}`."


def with_plugins(plugins: Sequence[str], function: Callable[..., Result], *arguments) -> Result:
    """Call a function in a worker, after it has loaded the plugins of the process that asks.

    Raises:
        SchedulerError: for an error with a known cause, with the sentence about it.
    """
    try:
        load(plugins)
        return function(*arguments)
    except Exception as error:
        if sentence := _explain(error):
            raise SchedulerError(sentence) from None
        raise


def explain_failure(future) -> str:
    """One sentence about a Dask task that failed."""
    lost = "The connection to the scheduler was lost. Start the training again."
    if future.status != "error":
        return lost
    try:
        error = future.exception(timeout=PATIENCE)
    except TimeoutError:
        return lost
    if type(error).__name__ == "KilledWorker":
        return "Several workers died during the training, possibly for lack of memory."
    return _explain(error) or (
        f"The worker failed ({type(error).__name__}). It needs the same version of densembed, the "
        "same plugins, and the same folders under the same paths."
    )


def _explain(error: BaseException) -> str:
    """One sentence about an error in a worker, "" if its cause is unknown."""
    if isinstance(error, OSError):
        named = isinstance(error.filename, str | bytes | os.PathLike)
        place = quoted(error.filename) if named else "a file"
        return f"The worker could not read or write {place}: {error.strerror or 'unknown error'}."
    if isinstance(error, PluginError):
        return f"The worker cannot load a plugin. {error}"
    if isinstance(error, DataError | ValueError):
        return str(error)
    return ""
