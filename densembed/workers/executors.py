"""Executors for independent tasks: this process, processes of this machine, or a Dask scheduler."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from densembed.workers.local_workers import start_workers
from densembed.workers.scheduler import SchedulerError, connect, explain_failure

RETRIES = 3


class Executor(Protocol):
    """Calls a function for many tasks, in any order."""

    def run(
        self,
        function: Callable[..., None],
        tasks: Sequence[tuple],
        resources: dict[str, float] | None = None,
    ) -> Iterator[int]:
        """Call `function(*task)` for each task and yield the task's index when it has finished.

        Args:
            function: a function of a module, so that it can be pickled.
            tasks: the arguments of each call.
            resources: what a worker of a scheduler needs for one task, e.g. `{"GPU": 1}`.
        """
        ...


@dataclass(frozen=True)
class InProcess:
    """Calls the function in this process, one task after the other."""

    def run(
        self,
        function: Callable[..., None],
        tasks: Sequence[tuple],
        resources: dict[str, float] | None = None,
    ) -> Iterator[int]:
        for index, task in enumerate(tasks):
            function(*task)
            yield index


@dataclass(frozen=True)
class LocalProcesses:
    """Starts at most `count` processes of one thread on this machine."""

    count: int

    def run(
        self,
        function: Callable[..., None],
        tasks: Sequence[tuple],
        resources: dict[str, float] | None = None,
    ) -> Iterator[int]:
        from distributed import Client

        places = range(min(self.count, len(tasks)))
        workers = start_workers({f"process-{place}": ("cpu", {}) for place in places})
        with workers, Client(workers) as client:
            yield from _run(client, function, tasks, None)


@dataclass(frozen=True)
class SchedulerWorkers:
    """Sends tasks to the workers of the Dask scheduler at `address`, e.g. tcp://host:8786."""

    address: str

    def run(
        self,
        function: Callable[..., None],
        tasks: Sequence[tuple],
        resources: dict[str, float] | None = None,
    ) -> Iterator[int]:
        with connect(self.address) as client:
            yield from _run(client, function, tasks, resources)


def local_executor(processes: int) -> Executor:
    """This process if `processes` is 1, otherwise so many processes on this machine."""
    return InProcess() if processes == 1 else LocalProcesses(processes)


def _run(
    client: Any,
    function: Callable[..., None],
    tasks: Sequence[tuple],
    resources: dict[str, float] | None,
) -> Iterator[int]:
    from distributed import as_completed

    futures = {
        client.submit(function, *task, pure=False, retries=RETRIES, resources=resources): index
        for index, task in enumerate(tasks)
    }
    # No time limit: Ctrl-C ends a training that takes too long.
    for future in as_completed(futures, loop=client.loop):
        if future.status != "finished":
            raise SchedulerError(explain_failure(future))
        yield futures[future]
