"""Worker processes of our own: a slot for each run that may train at once on this machine."""

import asyncio
import contextlib
import logging
import os

import torch

VARIABLE = "DENSEMBED_RUNS_PER_DEVICE"
MOST = 64
END_SECONDS = 10
"""That the workers have to end; they end with this process anyway."""
PATIENCE = {
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.deploy.lost-worker-timeout": "1000 days",
}
"""`runs.execute` counts deaths itself. And Dask would close a nanny for good whose worker, some
seconds after one death, happens to be absent because of another."""


def runs_per_device() -> int:
    """What `DENSEMBED_RUNS_PER_DEVICE` says, else 1. Raises ValueError for what is no number."""
    text = os.environ.get(VARIABLE) or "1"
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST):
        raise ValueError(f"{VARIABLE} is a number from 1 to {MOST}; got {text[:20]!r}.")
    return int(text)


def local_workers(per_device: int) -> dict[str, tuple[str, dict[str, str]]]:
    """The slots of this machine: name → (type of device, environment of its process)."""
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
    """A Dask cluster of one process with one thread for each slot.

    The slot is a resource of its worker: a worker that is started again after a death has it, too.
    """
    import dask
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    dask.config.set(PATIENCE)
    local = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = local | {
        "nthreads": 1, "memory_limit": MEMORY_LIMIT, "silence_logs": logging.WARNING
    }  # fmt: skip
    workers = {
        name: {"cls": Nanny, "options": options | {"resources": {name: 1}, "env": environment}}
        for name, (_, environment) in names.items()
    }
    scheduler = {"cls": Scheduler, "options": {"port": 0, **local}}
    return SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.WARNING)


def end_workers(cluster) -> None:
    """End the processes now. Else Dask waits for a training; its folder is whole at any time."""
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)  # it would say that it does so
    with contextlib.suppress(TimeoutError):
        cluster.sync(_close, list(cluster.workers.values()), callback_timeout=END_SECONDS)
    cluster.close(timeout=3)


async def _close(nannies) -> None:
    """Each is killed after the time; on a busy machine its death may be noticed only later."""
    closing = (nanny.close(timeout=0.5) for nanny in nannies)
    await asyncio.gather(*closing, return_exceptions=True)
