"""Executors for independent tasks: this process, processes of this machine, or a Dask scheduler."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from densembed.models.plugins import selected
from densembed.workers.local_workers import end_workers, start_workers
from densembed.workers.scheduler import SchedulerError, connect, explain_failure, with_plugins

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


class _DaskExecutor(ABC):
    """Sends tasks to the workers of a Dask client."""

    @abstractmethod
    def _client(self, tasks: int) -> AbstractContextManager:
        """The client for a number of tasks."""

    def run(
        self,
        function: Callable[..., None],
        tasks: Sequence[tuple],
        resources: dict[str, float] | None = None,
    ) -> Iterator[int]:
        from distributed import as_completed

        plugins = selected()
        options = {"pure": False, "retries": RETRIES, "resources": resources}
        with self._client(len(tasks)) as client:
            futures = {
                client.submit(with_plugins, plugins, function, *task, **options): index
                for index, task in enumerate(tasks)
            }
            # No time limit: Ctrl-C ends a training that takes too long.
            for future in as_completed(futures, loop=client.loop):
                if future.status != "finished":
                    raise SchedulerError(explain_failure(future))
                yield futures[future]


@dataclass(frozen=True)
class LocalProcesses(_DaskExecutor):
    """Starts at most `count` processes of one thread on this machine."""

    count: int

    @contextmanager
    def _client(self, tasks: int) -> Iterator[Any]:
        from distributed import Client

        names = [f"process-{place}" for place in range(min(self.count, tasks))]
        workers = start_workers(dict.fromkeys(names, ("cpu", {})))
        try:
            with Client(workers) as client:
                yield client
        finally:
            end_workers(workers)


@dataclass(frozen=True)
class SchedulerWorkers(_DaskExecutor):
    """Sends tasks to the workers of the Dask scheduler at `address`, e.g. tcp://host:8786."""

    address: str

    def _client(self, tasks: int) -> AbstractContextManager:
        return connect(self.address)


def local_executor(processes: int) -> Executor:
    """This process if `processes` is 1, otherwise so many processes on this machine."""
    return InProcess() if processes == 1 else LocalProcesses(processes)
