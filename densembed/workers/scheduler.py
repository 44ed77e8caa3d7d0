"""A Dask scheduler by its address, and what a run asks of the workers behind it.

The workers see the same folders under the same paths, and have this package:

    dask scheduler
    dask worker tcp://host:8786 --nthreads 1 --resources "GPU=1"
"""

import contextlib
import gc
import os

from densembed.data import DataError
from densembed.training.config import RunConfig

VARIABLE = "DENSEMBED_SCHEDULER"
PATIENCE = 5
"""Seconds that a scheduler has to answer."""


class SchedulerError(ValueError):
    """A scheduler or its workers that cannot be used; the message is one sentence."""


def scheduler_address() -> str | None:
    """What `DENSEMBED_SCHEDULER` says, e.g. tcp://host:8786; None where it says nothing."""
    return os.environ.get(VARIABLE) or None


def connect(address: str):
    """A Dask client of the scheduler there. Raises SchedulerError where none answers."""
    from distributed import Client

    with contextlib.suppress(OSError, ValueError):  # nobody there; no address at all
        return Client(address, timeout=PATIENCE, set_as_default=False)
    # What never connected is closed now. Where the garbage collector came upon it while another one
    # starts, its closing would wait for ever for a lock that the starting one holds.
    gc.collect()
    raise SchedulerError(
        f"No Dask scheduler answers at {address[:80]!r}: start one with `dask scheduler`, or "
        "leave its address out to train on this machine."
    )


def resources(config: RunConfig) -> dict[str, float]:
    """What a worker must have been started with: `--resources "GPU=1"` for CUDA."""
    return {"GPU": 1} if config.device == "cuda" else {}


def places(client, wanted: dict[str, float]) -> int:
    """How many tasks with those resources the workers that are there now take at once."""
    total = 0
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        shares = [worker["resources"].get(name, 0) // amount for name, amount in wanted.items()]
        total += int(min([worker["nthreads"], *shares]))
    return total


def missing(wanted: dict[str, float]) -> str:
    """What to do where no worker is there for a task."""
    flag = ' --resources "GPU=1"' if wanted else ""
    return f"No worker is there for it yet: start one with `dask worker ADDRESS{flag}`."


def explain_failure(future) -> str:
    """One sentence about a task of Dask's that has no result."""
    lost = "The connection to the scheduler was lost. What is finished is kept: start it again."
    if future.status != "error":
        return lost
    try:
        error = future.exception(timeout=PATIENCE)
    except TimeoutError:
        return lost
    if type(error).__name__ == "KilledWorker":
        return "The workers that took it died, one after the other, perhaps for want of memory."
    if isinstance(error, OSError):
        return f"The worker could not read or write a file: {error.strerror or 'it is gone'}."
    if isinstance(error, DataError | ValueError):
        return str(error)
    return (
        f"The worker could not do it ({type(error).__name__}): it needs the same version of "
        "densembed, its plugins and the same folders under the same paths."
    )
