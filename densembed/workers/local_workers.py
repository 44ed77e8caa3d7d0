"""Worker processes on this machine: one per run that may train at the same time."""

import asyncio
import contextlib
import logging
import os

import torch

from densembed.interrupt import Interrupt, blocked
from densembed.kernels import threads

VARIABLE = "DENSEMBED_RUNS_PER_DEVICE"
MOST = 64
END_SECONDS = 10
"""Seconds for the workers to end; they end with this process at the latest."""
RESTART_DEAD = {
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.deploy.lost-worker-timeout": "1000 days",
}
"""Dask's configuration for a `Cluster`, as `runs.execute` counts the deaths of workers itself. With
its usual timeout, Dask would close the nanny of a worker that dies twice within a few seconds."""


def runs_per_device() -> int:
    """The number in `DENSEMBED_RUNS_PER_DEVICE`, by default 1.

    Raises:
        ValueError: if it is not a number from 1 to `MOST`.
    """
    text = os.environ.get(VARIABLE) or "1"
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST):
        raise ValueError(f"{VARIABLE} takes a number from 1 to {MOST}; got {text[:20]!r}.")
    return int(text)


def local_workers(per_device: int) -> dict[str, tuple[str, dict[str, str]]]:
    """The workers of this machine: name → (type of device, environment of the process)."""
    devices: list[tuple[str, dict[str, str]]] = [("cpu", {})]
    if torch.cuda.is_available():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else map(str, range(torch.cuda.device_count()))
        devices += [("cuda", {"CUDA_VISIBLE_DEVICES": name}) for name in names]
    if torch.backends.mps.is_available():
        devices.append(("mps", {}))
    return {
        f"slot-{number}-{place}": device
        for number, device in enumerate(devices)
        for place in range(per_device)
    }


def start_workers(names: dict[str, tuple[str, dict[str, str]]]):
    """A Dask cluster with one process of one thread per name.

    The name is a resource of its worker, which a worker that replaces a dead one has, too.
    """
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    local = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {**local, "nthreads": 1, "memory_limit": MEMORY_LIMIT}
    options |= {"silence_logs": logging.WARNING, "preload": "densembed.workers.preload"}
    kernels = {threads.VARIABLE: str(threads.allowed())}
    workers = {
        name: {
            "cls": Nanny,
            "options": options | {"resources": {name: 1}, "env": environment | kernels},
        }
        for name, (_, environment) in names.items()
    }
    scheduler = {"cls": Scheduler, "options": {"port": 0, **local}}
    with Interrupt() as interrupt, blocked():  # Dask cannot close workers that are starting
        cluster = SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.WARNING)
    if interrupt.requested:
        end_workers(cluster)
        raise KeyboardInterrupt
    return cluster


def end_workers(cluster) -> None:
    """End the processes now. Dask would wait for a training, whose folder is always complete."""
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)  # do not log the kill
    with contextlib.suppress(TimeoutError):
        cluster.sync(_close, list(cluster.workers.values()), callback_timeout=END_SECONDS)
    cluster.close(timeout=3)


async def _close(nannies) -> None:
    """Close the nannies, which kill workers that do not end in time."""
    closing = (nanny.close(timeout=0.5) for nanny in nannies)
    await asyncio.gather(*closing, return_exceptions=True)
