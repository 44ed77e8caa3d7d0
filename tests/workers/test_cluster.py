"""The real worker processes: one cluster for all tests here, and one for those that need two."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from densembed.runs import Run, all_runs, execute
from densembed.runs.recovery import recover
from densembed.runs.sweep import Sweep
from densembed.runs.sweep_plan import make_plan
from densembed.training.config import RunConfig
from densembed.workers.cluster import NICENESS, Cluster
from tests.waiting import wait_for

SHORT = {"model": "logistic-el-2", "epochs": 1, "batch_size": 100, "device": "cpu"}


def children() -> set[int]:
    """Our own children, without the tracker that Python itself keeps until the end.

    Those of the browser and the server of other tests, which come and go, are not ours.
    """
    processes = set()
    for process in psutil.Process().children():
        try:
            if "resource_tracker" not in " ".join(process.cmdline()):
                processes.add(process.pid)
        except psutil.Error:
            continue
    return processes


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster runs")


@pytest.fixture(scope="module")
def cluster():
    before = children()
    cluster = Cluster()
    yield cluster
    cluster.close()
    wait_for(lambda: children() <= before)


@pytest.fixture(scope="module")
def several():
    """A second one, with two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DENSEMBED_RUNS_PER_DEVICE", "2")
        several = Cluster()
        several._start()
    yield several
    several.close()


@pytest.fixture(autouse=True)
def over(root):
    """A run that would never end does not keep the worker from the next test."""
    yield
    for run in all_runs(root):
        run.stop()


def started(run) -> int | None:
    """The process that trains a run."""
    events = run.events()
    return events[0]["process"] if len(events) > 1 else None


def test_it_starts_on_first_use_and_trains(cluster, root):
    before = children()
    run = Run.create(RunConfig(**SHORT), root)
    cluster.submit(run, execute)
    wait_for(lambda: run.state() == "done")
    assert run.checkpoint().header.outcome == "done"
    assert started(run) in children() - before
    assert started(run) != os.getpid()


def test_a_folder_whose_name_is_not_utf_8(cluster, tmp_path):
    """Dask sends the keys of its tasks as UTF-8; the sweep never began."""
    plan = make_plan(SHORT, {"model": ["linear", "logistic-el-2"]})
    sweep = Sweep.create(plan, tmp_path / os.fsdecode(b"caf\xe9"))
    sweep.submit(cluster)
    wait_for(lambda: sweep.state() == "done")
    assert [len(row.errors) for row in sweep.rows()] == [1, 1]


def test_workers_have_a_low_priority(cluster, root):
    own = psutil.Process().nice()
    run = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    cluster.submit(run, execute)
    worker = wait_for(lambda: started(run))
    if sys.platform == "linux":  # there, each thread has its own
        threads = psutil.Process(worker).threads()
        nice = [os.getpriority(os.PRIO_PROCESS, thread.id) for thread in threads]
        assert max(nice) >= NICENESS
    elif os.name == "posix":
        assert psutil.Process(worker).nice() >= NICENESS
    assert psutil.Process().nice() == own  # the worker's, not ours
    run.stop()
    wait_for(lambda: run.state() == "stopped")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such mask")
def test_ctrl_c_of_a_terminal_ends_no_worker(cluster, root):
    """A terminal sends it to all processes, but this one ends the workers."""
    run = Run.create(RunConfig(**SHORT), root)
    other = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    cluster.submit(other, execute)
    worker = wait_for(lambda: started(other))
    os.kill(worker, signal.SIGINT)
    cluster.submit(run, execute)
    other.stop()
    wait_for(lambda: run.state() == "done")
    assert started(run) == worker


def test_runs_wait_for_one_another_and_obey(cluster, root):
    first, second, third = (
        Run.create(RunConfig(**SHORT | {"epochs": epochs}), root) for epochs in (10_000, 1, 1)
    )
    for run in (first, second, third):
        cluster.submit(run, execute)
    cluster.submit(third, execute)  # twice is once
    wait_for(lambda: started(first))
    assert first.state() == "running"
    assert second.state() == "queued"
    second.stop()
    first.stop()
    wait_for(lambda: third.state() == "done")
    assert first.state() == "stopped"
    assert second.state() == "stopped"
    assert second.checkpoint() is None
    assert [event["kind"] for event in third.events()].count("start") == 1


def test_a_failure_does_not_stop_the_worker(cluster, root, tmp_path):
    (tmp_path / "file").write_text("in the way")
    bad = Run.create(RunConfig(**SHORT | {"dataset": "mnist"}), root)
    good = Run.create(RunConfig(**SHORT), root)
    cluster.submit(bad, execute, str(tmp_path / "file"))
    cluster.submit(good, execute)
    wait_for(lambda: good.state() == "done")
    assert bad.state() == "failed"


def last_start(run) -> dict:
    return [event for event in run.events() if event["kind"] == "start"][-1]


def test_a_run_whose_worker_is_killed_resumes_by_itself_and_fails_in_the_end(cluster, root):
    """The next run trains after it."""
    bad = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    after = Run.create(RunConfig(**SHORT), root)
    cluster.submit(bad, execute)
    cluster.submit(after, execute)
    wait_for(lambda: started(bad))
    assert cluster.place(bad) == 0
    wait_for(bad.resume_path.is_file)
    killed = set()
    for _ in range(4):
        wait_for(lambda: last_start(bad)["process"] not in killed and bad.state() == "running")
        assert cluster.place(bad) == 0
        assert not killed or last_start(bad)["step"] > 0
        killed.add(last_start(bad)["process"])
        psutil.Process(last_start(bad)["process"]).kill()
    wait_for(lambda: after.state() == "done")
    wait_for(lambda: bad.state() == "failed")
    assert "died 4 times" in bad.events()[-1]["reason"]


def test_pause_frees_the_worker_and_resume_queues_again(cluster, root):
    first, second = (
        Run.create(RunConfig(**SHORT | {"epochs": epochs}), root) for epochs in (10_000, 1)
    )
    assert cluster.place(first) is None
    cluster.submit(first, execute)
    cluster.submit(second, execute)
    assert cluster.place(second) == 1
    wait_for(lambda: started(first))
    first.pause()
    wait_for(lambda: second.state() == "done")
    assert first.state() == "paused"
    first.resume()
    cluster.submit(first, execute)
    wait_for(lambda: first.state() == "running")
    first.stop()
    wait_for(lambda: first.state() == "stopped")
    wait_for(lambda: cluster.place(first) is None)


def test_closing_what_never_started_does_nothing():
    before = children()
    Cluster().close()
    assert children() == before


def test_two_servers_on_one_folder(cluster, several, root):
    """Both are asked to train it: one does, and the other one's worker is free for the next."""
    run = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    beside = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    after = Run.create(RunConfig(**SHORT), root)
    cluster.submit(run, execute)
    wait_for(lambda: started(run))
    several.submit(beside, execute)  # the other worker has something to do
    several.submit(run, execute)
    several.submit(after, execute)
    wait_for(lambda: after.state() == "done")
    assert run.state() == beside.state() == "running"
    assert [event["kind"] for event in run.events()].count("start") == 1
    for endless in (run, beside):
        endless.stop()
        wait_for(lambda endless=endless: endless.state() == "stopped")


def test_the_allowed_number_trains_at_once_and_the_rest_in_order(several, root):
    runs = [Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root) for _ in range(4)]
    for run in runs:
        several.submit(run, execute)
    wait_for(lambda: started(runs[0]) and started(runs[1]))
    assert [several.place(run) for run in runs] == [0, 0, 1, 2]
    assert [several.at_once(run) for run in runs] == [2] * 4
    assert several.ahead(runs[3]) == runs[:3]
    assert started(runs[0]) != started(runs[1])
    runs[1].stop()
    wait_for(lambda: runs[2].state() == "running")
    assert runs[3].state() == "queued"
    assert [several.place(run) for run in runs] == [0, None, 0, 1]
    for run in runs:
        run.stop()
    wait_for(lambda: {run.state() for run in runs} == {"stopped"})


@pytest.mark.parametrize("value", ["0", "-1", "two", "65", "1.5", "²"])
def test_runs_per_device_is_a_number(value, root, monkeypatch):
    monkeypatch.setenv("DENSEMBED_RUNS_PER_DEVICE", value)
    with pytest.raises(ValueError, match="DENSEMBED_RUNS_PER_DEVICE takes a number from 1 to 64"):
        Cluster().submit(Run.create(RunConfig(**SHORT), root), execute)


SERVER = """
import sys, signal
from pathlib import Path
from densembed.workers.cluster import Cluster
from densembed.runs import Run, all_runs, execute
from tests.waiting import wait_for
if __name__ == "__main__":
    cluster = Cluster()
    for path in sys.argv[1:]:
        cluster.submit(Run(Path(path)), execute)
    signal.pause()
"""


def test_workers_end_with_a_killed_server_and_the_next_one_resumes(cluster, runs_root, tmp_path):
    half, waiting, paused = (
        Run.create(RunConfig(**SHORT | {"epochs": epochs}), runs_root) for epochs in (10_000, 1, 1)
    )
    paused.pause()
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    command = [sys.executable, str(script), str(half.path), str(waiting.path)]
    server = subprocess.Popen(command, env=environment)
    worker = wait_for(lambda: started(half))
    wait_for(half.resume_path.is_file)
    server.kill()
    server.wait()  # SIGKILL cannot be refused
    wait_for(lambda: not psutil.pid_exists(worker))
    assert half.state() == "interrupted"
    assert waiting.state() == "queued"
    recover(cluster)
    wait_for(lambda: last_start(half)["process"] != worker)  # its lock comes before its start
    assert half.state() == "running"
    assert last_start(half)["step"] > 0
    half.stop()
    wait_for(lambda: waiting.state() == "done")
    assert paused.state() == "paused"


def test_closing_leaves_no_process(cluster, root):
    """And interrupts what was training; closed twice is closed."""
    cluster.close()
    before = children()  # not none: a browser may be waiting for other tests
    run = Run.create(RunConfig(**SHORT | {"epochs": 10_000}), root)
    cluster.submit(run, execute)
    worker = wait_for(lambda: started(run))
    cluster.close()
    cluster.close()
    wait_for(lambda: not psutil.pid_exists(worker))
    wait_for(lambda: children() <= before)
    assert run.state() == "interrupted"
