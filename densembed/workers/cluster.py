"""A queue of trainings for worker processes: local ones, started on first use, or a scheduler's.

A worker calls one function with the path of a folder, and any process can read the progress from
that folder. If a worker dies, Dask passes the folder to another one, which resumes the training.
"""

import atexit
import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from densembed.models.plugins import selected
from densembed.text import printable
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.threads import limit_threads
from densembed.workers.local_workers import (
    RESTART_DEAD,
    end_workers,
    local_workers,
    runs_per_device,
    start_workers,
)
from densembed.workers.scheduler import (
    PATIENCE,
    connect,
    explain_failure,
    missing,
    places,
    resources,
    scheduler_address,
    with_plugins,
)

NICENESS = 10
"""Trainings have a lower priority than the server, so that pages stay responsive."""
POLL_SECONDS = 0.1
"""Seconds between checks for finished tasks."""
NO_FOLDER = "no folder"
NO_FOLDER_REASON = (
    "The worker cannot find the run's folder. The machines must share it under the same path."
)


class Trainable(Protocol, Hashable):
    """What can be queued: a run or a group of a sweep."""

    @property
    def path(self) -> Path: ...
    @property
    def identifier(self) -> str: ...
    @property
    def config(self) -> RunConfig | None: ...
    def give_up(self, reason: str) -> None: ...


Train = Callable[[str, str | None], str]
"""Trains the run in a folder, given its path and the data folder; returns the final state."""


@dataclass(eq=False)
class _Task:
    """A queued run; `future` is None while it waits for a slot."""

    run: Trainable
    data_dir: str | None
    train: Train
    device: str
    """The type of device on this machine, or "" for the workers of a scheduler."""
    wanted: dict[str, float]
    slot: str = ""
    future: Any = None

    @property
    def over(self) -> bool:
        return self.future is not None and self.future.done()

    @property
    def queue(self) -> tuple:
        """Tasks with the same value wait for the same workers."""
        return self.device, tuple(self.wanted)


class Cluster:
    """Trains runs in order, at most one per slot of their device at the same time.

    With a scheduler's address, all runs are submitted to Dask immediately. They continue without
    this process, in the order that Dask chooses.
    """

    def __init__(self, scheduler: str | None = None, per_device: int | None = None):
        self.scheduler = scheduler or scheduler_address()
        self._per_device = per_device
        self._lock = threading.RLock()
        self._client: Any = None
        self._closed = threading.Event()
        self._slots: dict[str, tuple[str, dict]] = {}
        self._tasks: list[_Task] = []

    def submit(self, run: Trainable, train: Train, data_dir: str | None = None) -> None:
        """Queue a run and return immediately.

        Queueing a run twice does no harm, as the second worker finds that it has ended.

        Args:
            run: the run or group to train.
            train: called in the worker with the run's path and `data_dir`; a function of a module,
                so that it can be pickled.
            data_dir: folder with the files of the data sets.
        Raises:
            SchedulerError: if no scheduler answers.
        """
        with self._lock:
            self._start()
            config = run.config
            device = "" if self.scheduler else _device(config)
            wanted = resources(config) if self.scheduler and config else {}
            self._tasks.append(_Task(run, data_dir, train, device, wanted))
            self._hand_out()

    def ahead(self, run: Trainable) -> list[Trainable] | None:
        """The runs before this one on its device, including those that train, oldest first.

        None for a run that is not in this queue.
        """
        with self._lock:
            mine = self._task(run)
            if mine is None:
                return None
            tasks = [task for task in self._tasks if task is mine or not task.over]
            rivals = [task.run for task in tasks if task.queue == mine.queue]
        rivals = list(dict.fromkeys(rivals))
        return rivals[: rivals.index(run)]

    def at_once(self, run: Trainable) -> int:
        """How many runs train on its device at the same time; 0 without a suitable worker."""
        with self._lock:
            mine = self._task(run)
            if mine is None or self._client is None:
                return 0
            if self.scheduler:
                return places(self._client, mine.wanted)
            return sum(device == mine.device for device, _ in self._slots.values())

    def place(self, run: Trainable) -> int | None:
        """How many runs must end before this one starts; 0 if it has a worker."""
        ahead = self.ahead(run)
        return None if ahead is None else max(0, len(ahead) - max(1, self.at_once(run)) + 1)

    def wanting(self, run: Trainable) -> str:
        """What to do if there is no suitable worker for a run, otherwise ""."""
        if not self.scheduler or self.ahead(run) is None or self.at_once(run):
            return ""
        config = run.config
        return missing(resources(config) if config else {})

    def _task(self, run: Trainable) -> _Task | None:
        return next((task for task in self._tasks if task.run == run), None)

    def _start(self) -> None:
        if self._client is not None and self._client.status == "closed":
            self._client, self._tasks = None, []  # the scheduler is gone
            self._closed.set()
        if self._client is not None:
            return
        if self.scheduler:
            self._client = connect(self.scheduler)
        else:
            import dask
            from distributed import Client

            dask.config.set(RESTART_DEAD)
            self._slots = local_workers(self._per_device or runs_per_device())
            self._client = Client(start_workers(self._slots), set_as_default=False)
        self._closed = threading.Event()
        threading.Thread(target=self._watch, args=(self._closed,), daemon=True).start()
        atexit.register(self.close)

    def _hand_out(self) -> None:
        """Submit waiting runs to free slots, or all of them to a scheduler."""
        for task in [task for task in self._tasks if task.future is None]:
            if self.scheduler:
                self._send(task, task.wanted)
            elif slot := self._free_slot(task.device):
                task.slot = slot
                self._send(task, {slot: 1})

    def _free_slot(self, device: str) -> str | None:
        taken = {task.slot for task in self._tasks}
        free = (name for name, (has, _) in self._slots.items() if has == device)
        return next((name for name in free if name not in taken), None)

    def _send(self, task: _Task, wanted: dict[str, float]) -> None:
        from distributed import fire_and_forget

        # Dask cancels a task when the last reference to its future is gone.
        task.future = self._client.submit(
            with_plugins,
            selected(),
            _train,
            task.train,
            str(task.run.path),
            task.data_dir,
            resources=wanted,
            key=f"densembed-{printable(task.run.identifier)}-{secrets.token_hex(4)}",
            pure=False,
        )
        if self.scheduler:
            fire_and_forget(task.future)

    def _watch(self, closed: threading.Event) -> None:
        """Submit the next run when one has ended; runs in a separate thread.

        Dask's own callbacks need threads, which a server cannot start while it shuts down.
        """
        while not closed.wait(POLL_SECONDS):
            self._clear(closed)

    def _clear(self, closed: threading.Event) -> None:
        """Drop ended tasks: Dask repeats a task that is still referenced when its worker dies."""
        with self._lock:
            ended = [task for task in self._tasks if task.over]
        for task in ended:
            # Its worker died before sending the result, or the client was closed meanwhile.
            with contextlib.suppress(TimeoutError, CancelledError):
                _explain(task)
        with self._lock:
            if ended and not closed.is_set():
                self._tasks = [task for task in self._tasks if task not in ended]
                self._hand_out()

    def close(self) -> None:
        """End the local workers and thus interrupt their runs. Runs on a scheduler continue."""
        with self._lock:
            client, self._client, self._tasks = self._client, None, []
            self._closed.set()
        if client is not None:
            cluster = client.cluster
            client.close(timeout=2)
            if cluster is not None:
                end_workers(cluster)


def _explain(task: _Task) -> None:
    """Record in the run's folder why no worker could train it, if so."""
    if task.future.status == "error":
        task.run.give_up(explain_failure(task.future))
    elif task.future.status == "finished" and task.future.result(timeout=PATIENCE) == NO_FOLDER:
        task.run.give_up(NO_FOLDER_REASON)


def _device(config: RunConfig | None) -> str:
    """The type of device for a run; `execute` reports a device that is not available."""
    try:
        return pick_device(config.device).type if config else "cpu"
    except ValueError:
        return "cpu"


def _train(train: Train, path: str, data_dir: str | None) -> str:
    if not Path(path).is_dir():
        return NO_FOLDER
    if os.name == "posix" and os.nice(0) < NICENESS:
        os.nice(NICENESS - os.nice(0))
    limit_threads()
    return train(path, data_dir)
