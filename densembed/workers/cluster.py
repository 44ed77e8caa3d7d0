"""A queue of trainings for worker processes: local ones, started on first use, or a scheduler's.

A worker calls one function with the path of a folder, and whoever wants to know its progress reads
that folder. If a worker dies, Dask gives its folder to the next one, which resumes the training.
"""

import atexit
import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.threads import limit_threads
from densembed.workers.local_workers import (
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
)

NICENESS = 10
"""Training yields to the server, so that a page answers while both share two cores."""
LOOK_EVERY = 0.1
"""Seconds between looks at what Dask has finished."""
UNSEEN = "unseen"
UNSEEN_REASON = (
    "The worker does not see the run's folder: the machines must share it, under the same path."
)


class Trainable(Protocol, Hashable):
    """What the queue needs of a run: a folder, the config, and a place for a reason."""

    @property
    def path(self) -> Path: ...
    @property
    def identifier(self) -> str: ...
    @property
    def config(self) -> RunConfig | None: ...
    def give_up(self, reason: str) -> None: ...


Train = Callable[[str, str | None], str]
"""Trains what is in a folder, given its path and the data folder; returns the final state."""


@dataclass(eq=False)
class _Task:
    """A run on its way through Dask; `future` is None while it waits for a slot."""

    run: Trainable
    data_dir: str | None
    train: Train
    device: str
    """The type of device here, or "" where a scheduler's workers have it."""
    wanted: dict[str, float]
    slot: str = ""
    future: object = None

    @property
    def over(self) -> bool:
        return self.future is not None and self.future.done()

    @property
    def queue(self) -> tuple:
        """Equal for those that wait for one another."""
        return self.device, tuple(self.wanted)


class Cluster:
    """Takes runs in order, as many at once on each device as it has slots.

    Behind a scheduler's address the runs are handed over at once and go on without this process;
    their order is Dask's.
    """

    def __init__(self, scheduler: str | None = None, per_device: int | None = None):
        self.scheduler = scheduler or scheduler_address()
        self._per_device = per_device
        self._lock = threading.RLock()
        self._client = None
        self._closed = threading.Event()
        self._slots: dict[str, tuple[str, dict]] = {}
        self._tasks: list[_Task] = []

    def submit(self, run: Trainable, train: Train, data_dir: str | None = None) -> None:
        """Queue a run. Returns at once; the run goes on whatever becomes of the caller.

        Queueing a run twice does no harm, as the second worker finds it trained.

        Args:
            run: what to train.
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
        """The runs before this one on its device, those that train included, oldest first.

        None for a run that is not here: of another server, or of one that has ended.
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
        """How many runs its device takes at once; 0 where no worker is there for it."""
        with self._lock:
            mine = self._task(run)
            if mine is None or self._client is None:
                return 0
            if self.scheduler:
                return places(self._client, mine.wanted)
            return sum(device == mine.device for device, _ in self._slots.values())

    def place(self, run: Trainable) -> int | None:
        """How many runs must end before this one; 0 for one that has a worker, or will again."""
        ahead = self.ahead(run)
        return None if ahead is None else max(0, len(ahead) - max(1, self.at_once(run)) + 1)

    def wanting(self, run: Trainable) -> str:
        """What is to be done where no worker is there for a run, else ""."""
        if not self.scheduler or self.ahead(run) is None or self.at_once(run):
            return ""
        config = run.config
        return missing(resources(config) if config else {})

    def _task(self, run: Trainable) -> _Task | None:
        return next((task for task in self._tasks if task.run == run), None)

    def _start(self) -> None:
        if self._client is not None and self._client.status == "closed":
            self._client, self._tasks = None, []  # its scheduler has gone away
            self._closed.set()
        if self._client is not None:
            return
        if self.scheduler:
            self._client = connect(self.scheduler)
        else:
            from distributed import Client

            self._slots = local_workers(self._per_device or runs_per_device())
            self._client = Client(start_workers(self._slots), set_as_default=False)
        self._closed = threading.Event()
        threading.Thread(target=self._watch, args=(self._closed,), daemon=True).start()
        atexit.register(self.close)

    def _hand_out(self) -> None:
        """Send each run that waits to a slot while there are free ones; to a scheduler, all."""
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

        # The future is kept: a Dask task that nobody holds is forgotten.
        task.future = self._client.submit(
            _politely, task.train, str(task.run.path), task.data_dir, resources=wanted,
            key=f"densembed-{task.run.identifier}-{secrets.token_hex(4)}", pure=False,
        )  # fmt: skip
        if self.scheduler:
            fire_and_forget(task.future)

    def _watch(self, closed: threading.Event) -> None:
        """Hand out the next run where one has ended; in a thread of its own.

        Dask's own callbacks need threads that a server which is shutting down has no more.
        """
        while not closed.wait(LOOK_EVERY):
            self._clear(closed)

    def _clear(self, closed: threading.Event) -> None:
        """Let go of what has ended. Dask does anew what somebody still holds when a worker dies."""
        with self._lock:
            ended = [task for task in self._tasks if task.over]
        for task in ended:
            with contextlib.suppress(TimeoutError):  # its worker has gone away with the answer
                _explain(task)
        with self._lock:
            if ended and not closed.is_set():
                self._tasks = [task for task in self._tasks if task not in ended]
                self._hand_out()

    def close(self) -> None:
        """End our workers; runs that they trained are then interrupted. A scheduler's go on."""
        with self._lock:
            client, self._client, self._tasks = self._client, None, []
            self._closed.set()
        if client is not None:
            cluster = client.cluster
            client.close(timeout=2)
            if cluster is not None:
                end_workers(cluster)


def _explain(task: _Task) -> None:
    """Say in the run's folder why Dask could not have it trained, where that is so."""
    if task.future.status == "error":
        task.run.give_up(explain_failure(task.future))
    elif task.future.status == "finished" and task.future.result(timeout=PATIENCE) == UNSEEN:
        task.run.give_up(UNSEEN_REASON)


def _device(config: RunConfig | None) -> str:
    """The type of device that a run takes here; one that cannot be had is for `execute` to name."""
    try:
        return pick_device(config.device).type if config else "cpu"
    except ValueError:
        return "cpu"


def _politely(train: Train, path: str, data_dir: str | None) -> str:
    if not Path(path).is_dir():
        return UNSEEN
    if os.name == "posix" and os.nice(0) < NICENESS:
        os.nice(NICENESS - os.nice(0))
    limit_threads()
    return train(path, data_dir)
