"""A real Dask scheduler and real workers, as the README starts them, on loopback."""

import asyncio
import contextlib
import gc
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from distributed import Client
from distributed.client import FutureCancelledError

from densembed.cli.main import main
from densembed.experiments import reproduce
from densembed.models import plugins
from densembed.runs import Run, all_runs, execute
from densembed.training.config import RunConfig
from densembed.workers import scheduler
from densembed.workers.cluster import Cluster, _Task
from densembed.workers.scheduler import SchedulerError, connect, explain_failure
from tests.conftest import is_sentence
from tests.registry import restored
from tests.waiting import wait_for
from tests.workers.test_cluster import last_start

ROOT = Path(__file__).parents[2]
SHORT = {"model": "logistic-el-2", "epochs": 2, "batch_size": 100, "device": "cpu"}
ENDLESS = SHORT | {"epochs": 10_000}


class Machines:
    """A scheduler, and workers that come and go."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.running: list[subprocess.Popen] = []
        self.plain: list[subprocess.Popen] = []
        """The workers without flags, which stay for the next test."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            self.address.rpartition(":")[2],
            "--no-dashboard",
        )
        wait_for(self._answers)
        self.client = connect(self.address)

    def _answers(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", int(self.address.rpartition(":")[2])), 1),
        ):
            return True
        return False

    def _start(self, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.running.append(process)
        return process

    def join(self, *flags: str) -> subprocess.Popen:
        """One more worker; no nanny, so that what is killed is dead."""
        before = len(self.workers())
        worker = self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *flags
        )
        wait_for(lambda: len(self.workers()) > before)
        return worker

    def have(self, count: int) -> list[subprocess.Popen]:
        """So many workers without flags, and no others; those of the last test if they live."""
        self.end([process for process in self.running[1:] if process not in self.plain[:count]])
        wait_for(lambda: len(self.workers()) == len(self.plain))
        while len(self.plain) < count:
            self.plain.append(self.join())
        return list(self.plain)

    def workers(self) -> dict:
        return self.client.scheduler_info()["workers"]

    def kill(self, process: int) -> None:
        self.end([worker for worker in self.running if worker.pid == process])

    def end(self, processes: list[subprocess.Popen]) -> None:
        for process in processes:
            process.kill()
            process.wait()  # SIGKILL cannot be refused
            self.running.remove(process)
        self.plain = [worker for worker in self.plain if worker in self.running]


@pytest.fixture(scope="module")
def scheduler_process(tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("elsewhere"))
    yield machines
    machines.client.close(timeout=2)
    machines.end(machines.running[::-1])


@pytest.fixture
def machines(scheduler_process, tmp_path):
    """One scheduler for all tests of this file, whose workers are free again after each of them."""
    yield scheduler_process
    for run in all_runs(tmp_path / "runs"):
        run.stop()


@pytest.fixture
def cluster(machines):
    cluster = Cluster(machines.address)
    yield cluster
    cluster.close()


@pytest.fixture
def new(tmp_path):
    return lambda **values: Run.create(RunConfig(**values), tmp_path / "runs")


def starts(run) -> list[dict]:
    return [event for event in run.events() if event["kind"] == "start"]


def test_a_worker_that_does_not_see_the_folder_is_a_sentence(
    machines, cluster, tmp_path, monkeypatch
):
    machines.have(1)
    monkeypatch.chdir(tmp_path)
    run = Run.create(RunConfig(**SHORT), Path("runs"))  # relative: the worker lives elsewhere
    cluster.submit(run, execute)
    wait_for(lambda: run.state() == "failed")
    assert is_sentence(run.last["reason"])
    assert "share it" in run.last["reason"]


def test_train_on_a_scheduler(machines, runs_root, capsys):
    (worker,) = machines.have(1)
    config = [f"--{name.replace('_', '-')}={value}" for name, value in SHORT.items()][1:]
    assert main(["train", SHORT["model"], *config, "--scheduler", machines.address]) == 0
    assert "test error" in capsys.readouterr().out
    (run,) = all_runs()
    assert last_start(run)["process"] == worker.pid


def test_plugins_travel_to_the_workers(machines, runs_root, tmp_path, capsys, monkeypatch):
    """A worker that cannot import one says so."""
    machines.have(1)
    (tmp_path / "travelling.py").write_text(
        "import torch, densembed\n"
        "def net(shape, classes):\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(classes))\n"
        'densembed.register_model("travelling", net)\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(plugins.VARIABLE, "")
    command = ["train", "travelling", "--plugin=travelling", "--dataset=digits", "--epochs=1"]
    with restored():
        assert main([*command, f"--scheduler={machines.address}"]) == 2
        sentence = capsys.readouterr().err
        assert "The worker cannot load a plugin. There is no module travelling" in sentence
        machines.client.run(lambda: sys.path.insert(0, str(tmp_path)))
        assert main([*command, f"--scheduler={machines.address}"]) == 0


def test_a_run_on_cuda_asks_for_a_gpu(machines, cluster, new):
    machines.have(1)
    run, other = new(**SHORT | {"device": "cuda"}), new(**SHORT)
    cluster.submit(run, execute)
    cluster.submit(other, execute)
    wait_for(lambda: other.state() == "done")
    assert run.state() == "queued"
    assert 'resources "GPU=1"' in cluster.wanting(run)
    machines.join("--resources", "GPU=1")
    # That machine claims to have a GPU, and the run fails on it.
    wait_for(lambda: run.state() in ("failed", "done"))
    assert run.state() == "done" or "no cuda device" in run.last["reason"]


def test_a_run_outlives_its_client_and_is_not_started_twice(machines, new):
    machines.have(2)
    first, second = Cluster(machines.address), Cluster(machines.address)
    run = new(**ENDLESS)
    first.submit(run, execute)
    wait_for(lambda: starts(run))  # its lock comes before its start
    first.close()
    step = run.last.get("step", 0)
    wait_for(lambda: run.last.get("step", 0) > step)  # it goes on
    assert run.state() == "running"
    second.submit(run, execute)
    wait_for(lambda: second.place(run) is None)  # the second one finds the lock held and leaves
    assert run.state() == "running"
    assert len(starts(run)) == 1
    run.stop()
    wait_for(lambda: run.state() == "stopped")
    second.close()


def test_reproduce_with_a_worker_killed_half_way(machines, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(reproduce.RECIPES, "paper", {"epochs": 40, "device": "cpu"})
    workers = machines.have(2)
    out = tmp_path / "out"
    done = []

    def kill_one():
        wait_for(lambda: len(list(out.rglob("*.safetensors"))) >= 2)
        done.append(len(list(out.rglob("*.safetensors"))))
        machines.kill(workers[0].pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    rows = "logistic-el-3,logistic-el-5"
    command = ["reproduce", "table1", "--rows", rows, "--dataset", "digits", "--seeds", "3"]
    assert main([*command, "--scheduler", machines.address, "--out", str(out)]) == 0
    killer.join()  # it waits for what main has made
    assert 2 <= done[0] < 6
    assert workers[0].poll() is not None
    assert len(list(out.rglob("*.safetensors"))) == 6
    text = capsys.readouterr().out
    assert "logistic-el-3" in text
    assert "logistic-el-5" in text


def test_runs_are_spread_over_the_workers_and_one_that_dies_is_replaced(machines, cluster, new):
    one, two = machines.have(2)
    long, short, third = new(**ENDLESS), new(**SHORT), new(**SHORT)
    for run in (long, short, third):
        cluster.submit(run, execute)
    wait_for(lambda: third.state() == short.state() == "done")  # beside the one that never ends
    wait_for(lambda: starts(long))  # its worker may have had to end a run of the last test
    assert cluster.place(long) == 0
    first = last_start(long)["process"]
    assert first in (one.pid, two.pid)
    wait_for(long.resume_path.is_file)
    machines.kill(first)
    wait_for(lambda: last_start(long)["process"] != first and long.state() == "running")
    assert last_start(long)["step"] > 0
    assert last_start(long)["process"] in (one.pid, two.pid)
    machines.kill(last_start(long)["process"])
    wait_for(lambda: cluster.at_once(long) == 0)
    assert is_sentence(cluster.wanting(long))
    (third,) = machines.have(1)
    wait_for(lambda: last_start(long)["process"] == third.pid)
    assert cluster.wanting(long) == ""
    long.stop()
    wait_for(lambda: long.state() == "stopped")
    wait_for(lambda: cluster.place(long) is None)


def test_a_run_that_no_worker_takes_is_stopped(machines, runs_root, capsys):
    """Callers that wait for it are released, although it never started."""

    def stop():
        wait_for(lambda: runs_root.is_dir() and all_runs())
        all_runs()[0].stop()

    machines.have(0)
    stopping = threading.Thread(target=stop)
    stopping.start()
    assert main(["train", "logistic-el-3", "--scheduler", machines.address]) == 130
    stopping.join(10)
    said = capsys.readouterr()
    assert "There is no suitable worker" in said.out
    assert "Nothing was saved" in said.err


def clients() -> int:
    return sum(type(each) is Client for each in gc.get_objects())


@pytest.mark.parametrize("address", ["127.0.0.1:9", "http://x", "nonsense", ""])
def test_no_scheduler_is_a_sentence(address, new, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scheduler, "PATIENCE", 0.2)
    if not address:
        monkeypatch.setenv("DENSEMBED_SCHEDULER", "tcp://127.0.0.1:9")
    before = clients()
    with pytest.raises(SchedulerError) as error:
        Cluster(address or None).submit(new(**SHORT), execute)
    assert is_sentence(str(error.value))
    # distributed's own locks stand still for ever where the collector closes one later.
    assert clients() <= before
    if address:
        monkeypatch.setenv("DENSEMBED_SCHEDULER", address)
    rows = ["reproduce", "table1", "--rows", "linear", "--dataset", "digits"]
    assert main([*rows, "--seeds", "1", "--out", str(tmp_path / "out")]) == 2
    assert "No Dask scheduler answers" in capsys.readouterr().err


def test_a_scheduler_that_stays_silent_is_not_waited_for(monkeypatch):
    """A process that is stopped accepts connections, as its system does so for it."""
    monkeypatch.setattr(scheduler, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SchedulerError, match="No Dask scheduler answers at"):
            scheduler.connect(address)


def test_connect_where_a_loop_of_asyncio_runs(machines):
    """As in a notebook."""

    async def status() -> str:
        with connect(machines.address) as client:
            return client.status

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, status()).result() == "running"


def test_a_run_that_no_scheduler_takes_is_not_kept(runs_root, capsys, monkeypatch):
    """It would be listed as queued for ever."""
    monkeypatch.setattr(scheduler, "PATIENCE", 0.2)
    assert main(["train", "linear", "--scheduler", "127.0.0.1:9"]) == 2
    printed = capsys.readouterr()
    assert "No Dask scheduler answers" in printed.err
    assert printed.out == ""
    assert all_runs(runs_root) == []


def test_a_result_lost_with_its_worker_is_not_awaited():
    class Gone:
        status = "error"

        def exception(self, timeout):
            raise TimeoutError

    assert explain_failure(Gone()).startswith("The connection to the scheduler was lost.")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            OSError(28, "No space left on device", "/out/0.safetensors"),
            "The worker could not read or write '/out/0.safetensors': No space left on device.",
        ),
        (
            OSError(28, "No space left on device"),
            "The worker could not read or write a file: No space left on device.",
        ),
        (OSError(), "The worker could not read or write a file: unknown error."),
        (OSError(9, "Bad file descriptor", 7), "The worker could not read or write a file: Bad"),
        (KeyError("x"), "The worker failed (KeyError). It needs the same version of densembed"),
    ],
)
def test_a_failed_task_is_explained(error, sentence):
    class Failed:
        status = "error"

        def exception(self, timeout):
            return error

    assert explain_failure(Failed()).startswith(sentence)


@pytest.mark.parametrize("error", [FutureCancelledError("key", "closed"), TimeoutError()])
def test_a_result_that_cannot_be_fetched_leaves_the_queue(tmp_path, error):
    """The watching thread continues: the client may be closed, or the worker dead."""

    class Finished:
        status = "finished"

        def done(self):
            return True

        def result(self, timeout):
            raise error

    cluster, run = Cluster(), Run.create(RunConfig(**SHORT), tmp_path / "runs")
    cluster._tasks.append(_Task(run, None, execute, "cpu", {}, future=Finished()))
    cluster._clear(threading.Event())
    assert not cluster._tasks
