"""What the tests of runs share: queued runs of a tiny model, and workers."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from torchvision.datasets import MNIST

from densembed.runs import Run, all_runs, execute
from densembed.training.config import RunConfig
from tests import waiting
from tests.runs import processes
from tests.waiting import work

ENDLESS = 10_000


SHORT = {"model": "logistic-el-2", "epochs": 2, "batch_size": 100, "device": "cpu"}


@pytest.fixture
def new(runs_root):
    """Creates queued runs of a tiny model."""
    return lambda **values: Run.create(RunConfig(**SHORT | values))


class InThisProcess:
    """Has the methods of a `Cluster` that a command calls, and trains in the process of the test.

    For a command of which a test checks anything but its worker processes: each takes seconds to
    start.
    """

    def __init__(self, scheduler: str | None, processes: int | None):
        assert scheduler is None

    def submit(self, run, train, data_dir: str | None = None) -> None:
        train(str(run.path), data_dir)

    def ahead(self, run) -> None:
        return None

    def wanting(self, run) -> str:
        return ""

    def close(self) -> None:
        pass


@contextmanager
def silent_mirror(monkeypatch: pytest.MonkeyPatch, asked: Callable[[], None]) -> Iterator[None]:
    """The only address of MNIST accepts one connection, calls `asked`, and stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def answer():
            connection, _ = server.accept()
            with connection:
                asked()
                over.wait()

        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{server.getsockname()[1]}/"])
        threading.Thread(target=answer, daemon=True).start()
        try:
            yield
        finally:
            over.set()


def signs() -> tuple:
    """The number of events of each run, and the processor time of our processes."""
    sizes = [(run.identifier, len(run.events())) for run in all_runs()]
    return tuple(sizes), work()


def wait_for(condition):
    return waiting.wait_for(condition, signs)


def ended(thread: threading.Thread) -> None:
    wait_for(lambda: not thread.is_alive())


def kinds(run) -> list[str]:
    return [event["kind"] for event in run.events()]


class InThread:
    """Executes a run beside the test; the worker is one thread of this process."""

    def __init__(self, run):
        self.run, self.state = run, None
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        self.state = execute(str(self.run.path))

    def __enter__(self):
        self.thread.start()
        wait_for(lambda: "progress" in kinds(self.run))
        return self

    def __exit__(self, *_):
        self.run.stop()
        ended(self.thread)


def end_of(run) -> dict:
    last = run.events()[-1]
    assert last["kind"] == "end"
    assert last["state"] == run.state()
    return last


def begin(run):
    """A process that trains a run, once the first epoch has ended."""
    process = processes.start(run)
    wait_for(lambda: "epoch" in kinds(run))
    return process


def kill(process) -> None:
    process.kill()
    process.join()  # SIGKILL cannot be refused


def learnt(run) -> tuple:
    """All that a run has to show, but for its times."""
    kept = run.checkpoint()
    epochs = [epoch.model_dump(exclude={"seconds"}) for epoch in kept.header.epochs]
    said = [
        {name: value for name, value in event.items() if name not in ("seconds", "time")}
        for event in run.events()
        if event["kind"] == "epoch"
    ]
    tensors = {name: tensor.tolist() for name, tensor in kept.tensors.items()}
    return kept.steps, kept.header.outcome, epochs, said, tensors
