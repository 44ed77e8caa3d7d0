"""Killed, paused and resumed runs end bit for bit as undisturbed ones."""

import signal
import threading
import time

import filelock
import pytest
import torch

from densembed.runs import Run, execute, execution, folder
from tests.conftest import is_sentence
from tests.runs import processes
from tests.runs.conftest import (
    ENDLESS,
    InThread,
    begin,
    end_of,
    ended,
    kill,
    kinds,
    learnt,
    wait_for,
)


def test_a_second_process_leaves(new):
    run = new(epochs=ENDLESS)
    with InThread(run) as worker:
        assert execute(str(run.path)) == "running"
        assert [event["kind"] for event in run.events()].count("start") == 1
    assert worker.state == "stopped"


def test_probing_the_lock_does_not_disturb(new):
    """Pages look at the lock all the time; a run that starts meanwhile gets it all the same."""
    run = new(epochs=1)
    (run.path / "lock").touch()
    over = threading.Event()

    def look():
        while not over.is_set():
            run.running()

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for thread in lookers:
        thread.start()
    state = execute(str(run.path))
    over.set()
    for thread in lookers:
        thread.join()
    assert state == "done"


def test_running_means_that_the_lock_is_held(new):
    run = new()
    assert not run.running()
    with filelock.FileLock(run.path / "lock"):
        assert run.running()
        assert run.state() == "running"
    assert not run.running()
    assert run.state() == "queued"


def test_a_killed_process_leaves_an_interrupted_run(new):
    run = new(epochs=ENDLESS)
    process = begin(run)
    assert run.state() == "running"
    assert run.events()[0]["process"] == process.pid
    kill(process)
    assert run.state() == "interrupted"
    assert not run.running()
    kept = run.checkpoint()
    assert kept.header.outcome == "running"
    assert kept.model()(torch.rand(1, 1, 28, 28)).isfinite().all()
    run.stop()  # by a person, before anybody continues it
    assert run.state() == "stopped"
    assert execute(str(run.path)) == "stopped"
    assert not run.resume_path.exists()


def test_a_killed_run_ends_bit_for_bit_as_an_undisturbed_one(new, monkeypatch):
    """Three times, at random moments, each after at least one step."""
    monkeypatch.setattr(execution, "KEEP_EVERY", 0.05)
    busy = {"model": "logistic-el-3", "epochs": 25, "batch_size": 16}
    undisturbed, killed = new(**busy), new(**busy)
    for _ in range(3):
        process = processes.start(killed, processes.die)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert killed.state() == "interrupted"
    assert execute(str(killed.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(killed) == learnt(undisturbed)
    starts = [event for event in killed.events() if event["kind"] == "start"]
    assert [event["step"] for event in starts] == sorted(event["step"] for event in starts)
    assert starts[-1]["step"] > 0
    assert {event["changed"] for event in starts} == {""}


def test_a_run_that_dies_repeatedly_fails(new):
    run = new(epochs=ENDLESS)
    for _ in range(4):
        run.append("start", process=1, step=0)
    assert run.state() == "interrupted"
    assert execute(str(run.path)) == "failed"
    assert "died 4 times" in end_of(run)["reason"]
    assert is_sentence(end_of(run)["reason"])
    run.resume()  # a person may insist
    assert run.state() == "queued"
    with InThread(run):
        assert run.state() == "running"


def test_another_code_path_is_logged(new):
    run = new(epochs=400)
    with InThread(run):
        run.pause()
        wait_for(lambda: run.state() == "paused")
    torch.set_num_threads(2)
    try:
        (run.path / "control").unlink()
        run.resume(epochs=1)
        assert execute(str(run.path)) == "paused"
    finally:
        torch.set_num_threads(1)
    starts = [event for event in run.events() if event["kind"] == "start"]
    assert starts[0]["changed"] == ""
    assert starts[0]["path"]["threads"] == "1"
    assert starts[1]["changed"] == "threads 1 → 2"


# Pause, resume, one epoch


def test_a_pause_does_not_change_the_result(new, monkeypatch):
    undisturbed, paused = new(epochs=5, batch_size=16), new(epochs=5, batch_size=16)
    append = Run.append

    def pausing(run, kind, **values):
        append(run, kind, **values)
        if kind == "progress":
            run.pause()

    with monkeypatch.context() as patch:
        patch.setattr(Run, "append", pausing)
        assert execute(str(paused.path)) == "paused"
    told = kinds(paused).index("progress") + 1
    assert len(paused.events()) <= told + 3
    assert paused.state() == "paused"
    assert not paused.running()
    assert execute(str(paused.path)) == "paused"  # without a request
    assert paused.checkpoint().header.outcome == "running"
    at = paused.checkpoint().steps[-1]
    paused.resume()
    assert paused.state() == "queued"
    assert execute(str(paused.path)) == execute(str(undisturbed.path)) == "done"
    starts = [event for event in paused.events() if event["kind"] == "start"]
    assert starts[1]["step"] == at > 0
    assert learnt(paused) == learnt(undisturbed)
    assert not paused.resume_path.exists()


@pytest.mark.parametrize("dataset", ["digits", "mnist1d"])
def test_one_epoch_at_a_time(new, dataset):
    undisturbed, stepped = (new(epochs=3, dataset=dataset) for _ in range(2))
    per_epoch = {"digits": 15, "mnist1d": 40}[dataset]
    stepped.pause()
    assert stepped.state() == "paused"
    assert execute(str(stepped.path)) == "paused"
    for epoch in (1, 2):
        stepped.resume(epochs=1)
        assert stepped.state() == "queued"
        assert execute(str(stepped.path)) == stepped.state() == "paused"
        assert stepped.checkpoint().steps[-1] == epoch * per_epoch
        assert kinds(stepped).count("epoch") == epoch
    stepped.resume(epochs=1)
    assert execute(str(stepped.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(stepped) == learnt(undisturbed)


def test_an_epoch_requested_during_an_epoch_ends_with_it(new):
    run = new(epochs=ENDLESS)
    worker = InThread(run)
    worker.thread.start()
    wait_for(lambda: "progress" in kinds(run))
    run.resume(epochs=1)  # from a tab that does not know yet that it trains
    ended(worker.thread)
    assert worker.state in ("paused", "running")
    assert run.checkpoint().steps[-1] % 15 == 0


def test_resume_withdraws_a_pause(new, monkeypatch):
    """Whichever comes first, the run continues or is queued again."""
    monkeypatch.setattr(folder, "LOCK_SECONDS", 0.3)
    run = new(epochs=ENDLESS)
    for wait in (0.0, 0.2, 0.4, 0.6):
        worker = InThread(run)
        worker.thread.start()
        wait_for(run.running)
        run.pause()
        time.sleep(wait)  # a moment before or after the worker obeys: each must come out right
        run.resume()
        assert run.state() in ("running", "queued")
        run.pause()
        ended(worker.thread)
        run.resume()
        assert run.state() == "queued"


def test_resume_waits_for_the_process_that_has_recorded_a_pause(new, monkeypatch):
    monkeypatch.setattr(folder, "LOCK_SECONDS", 0.1)
    run = new()
    run.pause()
    with filelock.FileLock(run.path / "lock"):
        execution.end(run, "paused")
        resuming = threading.Thread(target=run.resume)
        resuming.start()
        time.sleep(0.4)
    resuming.join()
    assert run.state() == "queued"


def test_a_run_that_is_over_is_not_resumed(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.resume()
    assert run.state() == "done"


def test_a_paused_run_is_stopped_at_once(new):
    run = new()
    run.pause()
    run.stop()
    assert run.state() == "stopped"
    assert execute(str(run.path)) == "stopped"


def damage(path):
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    "harm",
    [
        lambda run: damage(run.resume_path),
        lambda run: run.resume_path.write_bytes(b"\xff" * 100),
        lambda run: run.resume_path.write_bytes(b""),
        lambda run: damage(run.checkpoint_path),
        lambda run: run.checkpoint_path.unlink(),
        lambda run: run.resume_path.write_bytes(run.checkpoint_path.read_bytes()),
    ],
)
def test_a_damaged_resume_state_fails_with_a_reason(new, harm):
    run = new(epochs=3)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    harm(run)
    run.resume()
    assert execute(str(run.path)) == "failed"
    assert end_of(run)["reason"].endswith(
        ("Start again.", "Start the run again with the same seed.")
    )


def test_without_a_resume_state_training_restarts(new):
    undisturbed, run = new(), new()
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    run.resume_path.unlink()
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_a_truncated_line_does_not_affect_others(new):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b'{"kind": "epo')
    run.append("end", state="stopped", reason="")
    assert kinds(run) == ["start", "end"]


@pytest.mark.parametrize("word", [b"", b"dance", b"stop\n" * 9, b"\xff\xff"])
def test_an_invalid_control_word_is_ignored(new, word):
    run = new(epochs=1)
    (run.path / "control").write_bytes(word)
    assert run.request() == ""
    assert execute(str(run.path)) == "done"
