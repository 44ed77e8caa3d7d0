"""Where runs execute: a Dask worker process of our own, started on first use.

The worker only calls `runs.execute`; what it does is read from the run's folder, by anyone.
Where the worker dies, Dask's nanny starts another one, and it is given the same run again.
"""

import asyncio
import atexit
import itertools
import os
import threading

from densembed.process import settle
from densembed.runs import Run, execute

PATIENCE = {
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.deploy.lost-worker-timeout": "1000 days",
}
"""`runs.execute` counts deaths itself. And Dask would close a nanny for good whose worker, some
seconds after one death, happens to be absent because of another."""
NICENESS = 10
"""Training yields to the server, so that a page answers while both share two cores."""


class Cluster:
    """A local cluster of one worker process that takes runs in order."""

    def __init__(self):
        self._lock = threading.Lock()
        self._client = None
        self._tasks = {}
        self._count = itertools.count()

    def submit(self, run: Run, data_dir: str | None = None) -> None:
        """Queue a run. Returns at once; the run goes on whatever becomes of the caller.

        Twice does no harm: whoever comes second finds nothing to do.
        """
        with self._lock:
            client = self._start()
            # The future is kept: a Dask task that nobody holds is forgotten.
            self._forget()
            key = f"densembed-{run.identifier}-{next(self._count)}"
            self._tasks[key] = (
                run,
                client.submit(_execute_politely, str(run.path), data_dir, key=key, pure=False),
            )

    def place(self, run: Run) -> int | None:
        """How many runs are before this one; 0 for the one that has the worker, or will again.

        None for a run that is not here: of another server, or of one that has ended.
        """
        with self._lock:
            self._forget()
            waiting = list(dict.fromkeys(run for run, _ in self._tasks.values()))
        return waiting.index(run) if run in waiting else None

    def _forget(self) -> None:
        self._tasks = {
            key: (run, task) for key, (run, task) in self._tasks.items() if not task.done()
        }

    def _start(self):
        if self._client is None:
            import dask
            from distributed import Client, LocalCluster

            dask.config.set(PATIENCE)
            cluster = LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
            )
            self._client = Client(cluster)
            atexit.register(self.close)
        return self._client

    def close(self) -> None:
        """End the worker; runs that it trained are then interrupted."""
        if self._client is not None:
            client, self._client = self._client, None
            self._tasks = {}
            cluster = client.cluster
            client.close(timeout=2)
            # Else Dask waits for a training to end. It can be cut off: its folder is always whole.
            cluster.sync(_end_workers, list(cluster.workers.values()))
            cluster.close(timeout=3)


async def _end_workers(nannies) -> None:
    await asyncio.gather(*(nanny.close(timeout=0.5) for nanny in nannies))


def _execute_politely(path: str, data_dir: str | None) -> str:
    if os.name == "posix" and os.nice(0) < NICENESS:
        os.nice(NICENESS - os.nice(0))
    settle()
    return execute(path, data_dir)
