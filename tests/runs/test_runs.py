"""The life of a run, told by its folder alone."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

import filelock
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save
from torchvision.datasets import MNIST

from densembed.runs import Run, all_runs, events, execute, execution, folder, runs_folder
from densembed.training import loop
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from tests import waiting
from tests.conftest import is_sentence
from tests.runs import processes
from tests.waiting import work

ENDLESS = 10_000
SHORT = {"model": "logistic-el-2", "epochs": 2, "batch_size": 100, "device": "cpu"}


@pytest.fixture
def new(runs_root):
    """Makes queued runs of a tiny model."""
    return lambda **values: Run.create(RunConfig(**SHORT | values))


def signs() -> tuple:
    """How many events each run has, and what our processes have worked."""
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


# From the queue to the end


def test_from_queued_to_done(new):
    run = new()
    assert run.state() == "queued"
    assert run.events() == []
    assert run.checkpoint() is None
    assert execute(str(run.path)) == "done"
    assert run.state() == "done"
    assert not run.running()
    found = kinds(run)
    assert (found[0], found[-1]) == ("start", "end")
    assert found.count("epoch") == 2
    assert "progress" in found
    told = run.events()
    assert [event["time"] for event in told] == sorted(event["time"] for event in told)
    assert told[-1]["reason"] == ""
    assert told[0]["process"] == os.getpid()


def test_checkpoint_of_a_run_is_that_of_the_training(new, digits):
    run = new(seed=3)
    execute(str(run.path))
    kept = run.checkpoint()
    assert kept.config == run.config == RunConfig(**SHORT, seed=3)
    assert kept.steps == [0, 1, 2, 4, 8, 15, 30]
    assert kept.header.outcome == "done"
    epochs = [event for event in run.events() if event["kind"] == "epoch"]
    assert [event["test_error"] for event in epochs] == [
        epoch.test_error for epoch in kept.header.epochs
    ]
    wrong = (kept.model()(digits.test.images / 255).argmax(1) != digits.test.labels).sum().item()
    assert kept.errors[0] == pytest.approx(100 * wrong / 359)


def test_only_known_files_are_in_the_folder(new):
    run = new()
    execute(str(run.path))
    names = {path.name for path in run.path.iterdir()}
    assert names - {"lock"} == {"config.json", "events.jsonl", "checkpoint.safetensors"}


def test_a_run_that_is_over_is_left_alone(new):
    run = new(epochs=1)
    execute(str(run.path))
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    assert execute(str(run.path)) == "done"
    assert {path: path.read_bytes() for path in before} == before


# Stop


def test_stop_keeps_what_was_learnt(new):
    run = new(epochs=1000)  # a snapshot every 32 epochs
    with InThread(run) as worker:
        assert run.state() == "running"
        assert run.running()
        wait_for(lambda: run.events()[-1].get("step", 0) > 600)
        run.stop()
        told = len(run.events())
        ended(worker.thread)
    assert len(run.events()) <= told + 3  # what was being written, one more report, and the end
    assert worker.state == run.state() == "stopped"
    kept = run.checkpoint()
    assert kept.header.outcome == "stopped"
    assert kept.steps[0] == 0
    assert kept.steps[-1] > 0
    assert kept.model()(torch.rand(1, 1, 28, 28)).isfinite().all()


def test_stopped_in_the_queue_never_starts(new):
    run = new(dataset="mnist")
    run.stop()
    assert run.state() == "stopped"
    # Nothing is loaded for it: MNIST is not here, and that would be a failure.
    assert execute(str(run.path), str(run.path / "no data")) == "stopped"
    assert run.state() == "stopped"
    assert run.checkpoint() is None


def test_stop_after_the_end_changes_nothing(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.stop()
    assert run.state() == "done"


# Failures are states with a sentence


def end_of(run) -> dict:
    last = run.events()[-1]
    assert last["kind"] == "end"
    assert last["state"] == run.state()
    return last


def test_data_that_cannot_be_had(new, tmp_path):
    (tmp_path / "file").write_text("in the way")
    run = new(dataset="mnist")
    assert execute(str(run.path), str(tmp_path / "file")) == "failed"
    assert is_sentence(end_of(run)["reason"])
    assert "digits" in end_of(run)["reason"]


def test_an_unknown_data_set(new):
    run = new(dataset="cats")
    assert execute(str(run.path)) == "failed"
    assert end_of(run)["reason"].startswith("Unknown data set 'cats'; choose from digits")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"model": "nothing"}', '{"colour": 1}', "\x00"]
)
def test_a_damaged_configuration(new, content):
    run = new()
    (run.path / "config.json").write_text(content)
    assert run.config is None
    assert execute(str(run.path)) == "failed"
    assert "configuration is missing or damaged" in end_of(run)["reason"]


def test_a_configuration_that_is_gone(new):
    run = new()
    (run.path / "config.json").unlink()
    assert execute(str(run.path)) == "failed"
    assert all_runs() == []


def test_divergence(new):
    run = new(learning_rate=1e6, epochs=10)
    assert execute(str(run.path)) == "diverged"
    assert "lower learning rate" in end_of(run)["reason"]
    kept = run.checkpoint()
    assert kept.header.outcome == "diverged"
    assert kept.model()(torch.rand(1, 1, 28, 28)).isfinite().all()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "Out of memory. Choose a smaller batch size"),
        (OSError(28, "No space left on device"), "No space left on device."),
        (RuntimeError("CUDA error: something"), "Training failed (RuntimeError)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_failures(new, monkeypatch, error, words):
    def broken(*_, **__):
        raise error

    run = new()
    monkeypatch.setattr(execution, "train", broken)
    assert execute(str(run.path)) == "failed"
    assert words in end_of(run)["reason"]
    assert end_of(run)["reason"].endswith(".")


def test_cuda_out_of_memory_keeps_the_last_checkpoint(new, monkeypatch):
    """In the midst of a step; with room again, it goes on from what it kept."""
    undisturbed, run = new(epochs=5), new(epochs=5)
    real = loop.stepper
    monkeypatch.setattr(execution, "KEEP_EVERY", 0.0)

    def greedy(*args):
        take, steps = real(*args), iter(range(1_000_000))

        def step(*args):
            if next(steps) == 40:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
            return take(*args)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(loop, "stepper", greedy)
        assert execute(str(run.path)) == "failed"
    assert end_of(run)["reason"] == (
        "Out of memory. Choose a smaller batch size, a smaller model or another device. "
        "The last checkpoint was saved."
    )
    assert "Tried to allocate 2 GiB" in run.log
    assert run.checkpoint().steps[-1] == 30  # the end of the epoch before
    assert run.checkpoint().model()(torch.rand(1, 1, 28, 28)).isfinite().all()
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_damaged_data_are_named(new, tmp_path):
    folder = tmp_path / "data" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name in ("train-images", "train-labels", "t10k-images", "t10k-labels"):
        kind = "idx3" if "images" in name else "idx1"
        (folder / f"{name}-{kind}-ubyte.gz").write_bytes(b"damaged")
    run = new(dataset="mnist")
    assert execute(str(run.path), str(tmp_path / "data")) == "failed"
    assert end_of(run)["reason"].startswith("MNIST cannot be read: train-images-idx3-ubyte.gz")
    assert is_sentence(end_of(run)["reason"])


def test_the_log_has_the_traceback_of_the_unforeseen(new, monkeypatch):
    run = new()
    monkeypatch.setattr(execution, "train", lambda *_, **__: [][1])
    execute(str(run.path))
    assert "IndexError" in (run.path / "log.txt").read_text()


def test_a_full_disk_keeps_the_last_checkpoint(new, monkeypatch):
    run = new(epochs=5)
    real, saves = Checkpoint.save, []

    def save(self, path):
        if saves:
            raise OSError(28, "No space left on device")
        saves.append(path)
        real(self, path)

    monkeypatch.setattr(Checkpoint, "save", save)
    assert execute(str(run.path)) == "failed"
    assert "disk space" in end_of(run)["reason"]
    assert run.checkpoint().steps == [0]


class FullDisk:
    """Writes go through `count` times, and then no more."""

    def __init__(self, real, count):
        self.real, self.count = real, count

    def __get__(self, run, _):
        return lambda *args, **values: self(run, *args, **values)

    def __call__(self, *args, **values):
        if self.count == 0:
            raise OSError(28, "No space left on device")
        self.count -= 1
        return self.real(*args, **values)


@pytest.mark.parametrize("count", range(6))
def test_no_file_can_be_replaced(new, monkeypatch, count):
    """It ends in a sentence, what it had opens, and with room on the disk it goes on."""
    undisturbed, run = new(epochs=3), new(epochs=3)
    monkeypatch.setattr(execution, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(execution, "KEEP_EVERY", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", FullDisk(os.replace, count))
        assert execute(str(run.path)) == run.state() == "failed"
    assert is_sentence(end_of(run)["reason"])
    assert "Free some disk space" in end_of(run)["reason"]
    assert "OSError" in run.log
    assert (run.checkpoint() is not None) == (count > 0)
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


@pytest.mark.parametrize("count", range(6))
def test_no_event_can_be_appended(new, monkeypatch, count):
    """Not even the end can be said: that is an interruption, from which it goes on."""
    undisturbed, run = new(epochs=3), new(epochs=3)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "append", FullDisk(Run.append, count))
        assert execute(str(run.path)) == "failed"
    assert run.state() == ("interrupted" if count else "queued")
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_a_folder_that_is_not_writable(new, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    run = new()
    monkeypatch.setattr(execution.filelock, "FileLock", refused)
    assert execute(str(run.path)) == "failed"


def test_what_a_process_left_half_written_is_removed(new):
    run = new(epochs=1)
    for name in (".checkpoint.safetensors.0a1b2c3d.tmp", ".resume.safetensors.0a1b2c3d.tmp"):
        (run.path / name).write_bytes(b"half")
    assert execute(str(run.path)) == "done"
    assert not list(run.path.glob("*.tmp"))
    assert not list(run.path.glob(".*.tmp"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for some checkpoints, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("No file system may be mounted here.")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk, new, monkeypatch):
    """The checkpoint from before opens, and with room again the run goes on."""
    monkeypatch.setattr(execution, "SAVE_EVERY", 0.0)
    config = RunConfig(**SHORT | {"epochs": 20})
    run, undisturbed = Run.create(config, small_disk), new(epochs=20)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    before = run.checkpoint().steps
    with open(small_disk / "filler", "wb", 0) as filler, contextlib.suppress(OSError):
        for _ in range(1000):
            filler.write(bytes(4096))
    (run.path / "control").unlink()
    run.append("queue")  # there is room at the end of that file's last block
    assert execute(str(run.path)) == "failed"
    assert run.state() in ("failed", "interrupted")  # with no room left even for that line
    assert set(before) <= set(run.checkpoint().steps)
    (small_disk / "filler").unlink()
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_a_folder_that_is_really_not_writable(small_disk, new):
    """What it had opens, who asks is told, and once it may be written the run goes on."""
    run, undisturbed = Run.create(RunConfig(**SHORT), small_disk), new()
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    before = run.checkpoint().steps
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OSError, match="Read-only"):
        run.resume()
    assert execute(str(run.path)) == "failed"
    assert run.state() == "paused"
    assert run.checkpoint().steps == before
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_a_quota_ends_a_run_in_a_sentence(new):
    """A file may not grow beyond a size, as with a user's quota; what was saved before opens."""
    run, undisturbed = new(epochs=5), new(epochs=5)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    before = run.checkpoint().steps
    run.resume()
    processes.start(run, processes.with_quota, run.checkpoint_path.stat().st_size).join()
    assert run.state() == "failed"
    assert end_of(run)["reason"] == (
        "The checkpoint could not be saved: File too large. "
        "The last checkpoint was saved. Free some disk space and resume the run."
    )
    assert run.checkpoint().steps == before
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


# One process trains, whoever else looks


def test_who_comes_second_leaves(new):
    run = new(epochs=ENDLESS)
    with InThread(run) as worker:
        assert execute(str(run.path)) == "running"
        assert [event["kind"] for event in run.events()].count("start") == 1
    assert worker.state == "stopped"


def test_looking_does_not_disturb(new):
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


def begin(run):
    """A process of its own that trains a run, after its first epoch."""
    process = processes.start(run)
    wait_for(lambda: "epoch" in kinds(run))
    return process


def kill(process) -> None:
    process.kill()
    process.join()  # SIGKILL cannot be refused


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
    run.stop()  # by a person, before anybody goes on with it
    assert run.state() == "stopped"
    assert execute(str(run.path)) == "stopped"
    assert not run.resume_path.exists()


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


def test_a_run_that_was_killed_ends_bit_for_bit_as_one_that_was_not(new, monkeypatch):
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


def test_a_run_that_dies_again_and_again_fails(new):
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


def test_another_code_path_is_said_and_goes_on(new):
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


def test_a_paused_run_goes_on_as_if_there_had_been_no_pause(new, monkeypatch):
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
    assert execute(str(paused.path)) == "paused"  # nobody asked
    assert paused.checkpoint().header.outcome == "running"
    at = paused.checkpoint().steps[-1]
    paused.resume()
    assert paused.state() == "queued"
    assert execute(str(paused.path)) == execute(str(undisturbed.path)) == "done"
    starts = [event for event in paused.events() if event["kind"] == "start"]
    assert starts[1]["step"] == at > 0
    assert learnt(paused) == learnt(undisturbed)
    assert not paused.resume_path.exists()


def test_one_epoch_at_a_time(new):
    undisturbed, stepped = new(epochs=3), new(epochs=3)
    stepped.pause()
    assert stepped.state() == "paused"
    assert execute(str(stepped.path)) == "paused"
    for epoch in (1, 2):
        stepped.resume(epochs=1)
        assert stepped.state() == "queued"
        assert execute(str(stepped.path)) == stepped.state() == "paused"
        assert stepped.checkpoint().steps[-1] == epoch * 15
        assert kinds(stepped).count("epoch") == epoch
    stepped.resume(epochs=1)
    assert execute(str(stepped.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(stepped) == learnt(undisturbed)


def test_one_epoch_asked_for_within_one_ends_with_it(new):
    run = new(epochs=ENDLESS)
    worker = InThread(run)
    worker.thread.start()
    wait_for(lambda: "progress" in kinds(run))
    run.resume(epochs=1)  # from a tab that does not know yet that it trains
    ended(worker.thread)
    assert worker.state in ("paused", "running")
    assert run.checkpoint().steps[-1] % 15 == 0


def test_resume_takes_a_pause_back(new, monkeypatch):
    """However close the two are: it goes on, or is queued again."""
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
def test_what_is_kept_may_be_damaged(new, harm):
    run = new(epochs=3)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    harm(run)
    run.resume()
    assert execute(str(run.path)) == "failed"
    assert end_of(run)["reason"].endswith((
        "Start again.", "Start the run again with the same seed."
    ))  # fmt: skip


def test_without_what_was_kept_it_begins_anew(new):
    undisturbed, run = new(), new()
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    run.resume_path.unlink()
    run.resume()
    assert execute(str(run.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(run) == learnt(undisturbed)


def test_a_line_that_was_cut_off_spoils_no_other(new):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b'{"kind": "epo')
    run.append("end", state="stopped", reason="")
    assert kinds(run) == ["start", "end"]


@pytest.mark.parametrize("word", [b"", b"dance", b"stop\n" * 9, b"\xff\xff"])
def test_a_word_that_is_none_is_no_wish(new, word):
    run = new(epochs=1)
    (run.path / "control").write_bytes(word)
    assert run.request() == ""
    assert execute(str(run.path)) == "done"


# Changed data


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of two classes, and what puts more pictures into it."""
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    root, random = tmp_path / "photos", np.random.default_rng(0)

    def add(count: int, *classes: str) -> None:
        for name in classes:
            for part, share in (("train", count), ("test", 5)):
                place = root / part / name
                place.mkdir(parents=True, exist_ok=True)
                begin = len(list(place.iterdir()))
                for k in range(begin, begin + share):
                    pixels = random.integers(0, 256, (8, 8), np.uint8)
                    Image.fromarray(pixels).save(place / f"{k:04}.png")

    add(40, "cat", "dog")
    add.root = root
    return add


@pytest.fixture
def paused(new, photos):
    """A run on them, after one of three epochs of eight steps."""
    run = new(dataset=f"folder:{photos.root}", batch_size=10, epochs=3)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    assert run.changed_data == ""
    return run


def said_to_change(run) -> str:
    last = run.events()[-1]
    assert (last["kind"], last["state"], run.state()) == ("end", "paused", "paused")
    assert is_sentence(last["reason"])
    assert "The last checkpoint was saved" in last["reason"]
    return last["reason"]


def test_a_run_goes_on_with_changed_data_only_if_told_to(paused, photos):
    photos(60, "cat", "dog")
    before = paused.checkpoint_path.read_bytes(), paused.resume_path.read_bytes()
    for _ in range(2):  # asking again is no answer
        paused.resume()
        assert execute(str(paused.path)) == "paused"
        reason = said_to_change(paused)
        assert "80 training images before, 200 now; 10 test images before, 20 now" in reason
    assert (paused.checkpoint_path.read_bytes(), paused.resume_path.read_bytes()) == before
    kept = paused.checkpoint()
    paused.resume(data=paused.changed_data)
    assert execute(str(paused.path)) == "done"
    after = paused.checkpoint()
    assert after.header.steps_per_epoch == 20
    assert [epoch.step for epoch in after.header.epochs] == [20, 40, 60]
    assert after.steps[-1] == 60
    assert after.header.epochs[0].test_error == kept.header.epochs[0].test_error
    for name, tensor in kept.tensors.items():  # it began where it was, not from scratch
        at = after.steps.index(20)
        assert torch.equal(after.tensors[name][at], tensor[-1])
        assert not torch.equal(after.tensors[name][-1], tensor[-1])
    assert after.header.provenance.train_images == 200


def test_what_was_agreed_to_holds_through_pauses_and_kills(paused, photos, monkeypatch):
    monkeypatch.setattr(execution, "KEEP_EVERY", 0.0)
    photos(20, "cat")
    paused.resume()
    execute(str(paused.path))
    paused.resume(1, paused.changed_data)
    assert execute(str(paused.path)) == "paused"
    assert paused.changed_data == ""
    assert len(paused.checkpoint().header.epochs) == 2
    paused.resume()  # nobody needs to agree again
    assert execute(str(paused.path)) == "done"
    assert [epoch.epoch for epoch in paused.checkpoint().header.epochs] == [1, 2, 3]


def test_agreeing_to_one_change_is_not_agreeing_to_the_next(paused, photos):
    photos(20, "cat")
    paused.resume()
    execute(str(paused.path))
    agreed = paused.changed_data
    photos(1, "dog")
    paused.resume(data=agreed)
    assert execute(str(paused.path)) == "paused"
    assert "80 training images before, 101 now" in said_to_change(paused)
    assert paused.changed_data not in ("", agreed)


def test_data_that_are_put_back_need_no_agreement(paused, photos, new):
    undisturbed = Run.create(paused.config)
    extra = photos.root / "train/cat/9999.png"
    extra.write_bytes((photos.root / "train/cat/0000.png").read_bytes())
    paused.resume()
    assert execute(str(paused.path)) == "paused"
    assert "80 training images before, 81 now" in said_to_change(paused)
    extra.unlink()
    paused.resume()
    assert execute(str(paused.path)) == execute(str(undisturbed.path)) == "done"
    assert learnt(paused) == learnt(undisturbed)


def test_a_restart_after_a_kill_does_not_go_on_with_changed_data(new, photos):
    run = new(dataset=f"folder:{photos.root}", batch_size=10, epochs=ENDLESS)
    process = begin(run)
    wait_for(run.resume_path.is_file)
    kill(process)
    photos(10, "dog")
    assert run.state() == "interrupted"
    assert execute(str(run.path)) == "paused"  # as Dask does by itself
    assert "80 training images before, 90 now" in said_to_change(run)


def test_a_model_that_does_not_fit_the_changed_data(paused, photos):
    photos(40, "eel")
    paused.resume()
    assert execute(str(paused.path)) == "paused"
    reason = said_to_change(paused)
    assert "new classes 'eel'; 80 training images before, 120 now" in reason
    assert "start a new run" in reason
    assert paused.changed_data == ""


def test_a_run_of_an_older_version_goes_on(paused, photos):
    """Its folder knows no digest, so nothing can be said."""
    with safe_open(paused.resume_path, "pt") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "data"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    paused.resume_path.write_bytes(save(tensors, metadata))
    (photos.root / "train/cat/0000.png").write_bytes(
        (photos.root / "train/cat/0001.png").read_bytes()
    )
    paused.resume()
    assert execute(str(paused.path)) == "done"


# Downloads


@pytest.mark.parametrize("word", ["stop", "pause"])
def test_a_download_obeys(new, monkeypatch, tmp_path, word):
    """From a server that accepts and stays silent, with the limits as they are."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{silent.getsockname()[1]}/"])
        run = new(dataset="mnist")

        def ask():
            connection, _ = silent.accept()
            with connection:
                wait_for(lambda: "download" in kinds(run))
                getattr(run, word)()

        threading.Thread(target=ask, daemon=True).start()
        state = {"stop": "stopped", "pause": "paused"}[word]
        assert execute(str(run.path), str(tmp_path / "data")) == state
    assert run.state() == state
    assert kinds(run)[:2] == ["start", "download"]
    assert run.checkpoint() is None


def test_a_paused_download_is_taken_up_again(new, monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{silent.getsockname()[1]}/"])
        run = new(dataset="mnist")

        def ask():
            connection, _ = silent.accept()
            with connection:
                run.pause()

        threading.Thread(target=ask, daemon=True).start()
        assert execute(str(run.path), str(tmp_path)) == "paused"
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    run.resume()
    assert execute(str(run.path), str(tmp_path)) == "failed"
    assert "Connection refused" in end_of(run)["reason"]


# Names


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("my best", "my best"),
        ("../../etc", "../../etc"),
        ("  two\n\tlines\x00 ", "two lines"),
        ("x" * 1000, "x" * 60),
        ("é" * 100, "é" * 60),
        ("\u202eright to left", "right to left"),
        ("", ""),
    ],
)
def test_a_name_is_text_on_one_line(new, name, kept):
    run = new()
    assert run.name == ""
    run.rename(name)
    assert run.name == kept
    assert sorted(path.name for path in run.path.iterdir()) == ["config.json", "name"]


def test_a_wild_file_of_a_name_is_cut(new):
    run = new()
    (run.path / "name").write_bytes(b"\xff\n" * 1_000_000)
    assert len(run.name) <= 60
    assert "\n" not in run.name


def test_the_end_of_the_log_is_read(new):
    run = new()
    assert run.log == ""
    (run.path / "log.txt").write_text("x" * 50_000 + "the end")
    assert run.log.endswith("xthe end")
    assert len(run.log) == 20_000


# Identifiers are data


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        ".",
        "..",
        "../outside",
        "20240101-000000-abcdef/../../outside",
        "../runs/{real}",
        "{absolute}",
        "{real}/",
        "{real}\n",
        "{real}\x00",
        " {real}",
        "２０２４0101-000000-abcdef",
        "20240101-000000-ABCDEF",
        "20240101-000000-abcde",
        "x" * 100_000,
    ],
    ids=lambda text: repr(text[:30]),
)
def test_an_identifier_is_never_a_path(new, identifier):
    run = new()
    outside = run.path.parent.parent / "outside"
    outside.mkdir()
    (outside / "config.json").write_text(RunConfig().model_dump_json())
    text = identifier.replace("{real}", run.identifier).replace("{absolute}", str(outside))
    assert Run.find(text) is None
    assert Run.find(run.identifier) == run


@given(st.text(max_size=60))
def test_no_text_finds_a_run_that_is_not_there(text):
    assert Run.find(text) is None


def test_identifiers_are_found_and_differ(new):
    made = [new() for _ in range(20)]
    assert len({run.identifier for run in made}) == 20
    assert all(folder.IDENTIFIER.fullmatch(run.identifier) for run in made)
    assert {run.identifier for run in all_runs()} == {run.identifier for run in made}


def test_where_runs_are(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSEMBED_RUNS", str(tmp_path))
    assert runs_folder() == tmp_path
    monkeypatch.delenv("DENSEMBED_RUNS")
    monkeypatch.chdir(tmp_path)
    assert runs_folder() == tmp_path / "checkpoints" / "runs"
    assert all_runs() == []


# Damage


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{\n",
        b"null\n",
        b"[1, 2]\n",
        b'"end"\n',
        b'{"state": "done"}\n',
        b'{"kind": "end"}\n',
        b'{"kind": "end", "state": 5}\n',
        b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        b'{"kind": "end", "state": "done", "reason": ""}',
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_damaged_line_is_left_out(new, line):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(line)
    assert kinds(run) == ["start"]
    assert run.state() == "interrupted"


def test_lines_after_a_damaged_one_count(new):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b'{"kind": "pro\n')
    run.append("end", state="stopped", reason="")
    assert kinds(run) == ["start", "end"]
    assert run.state() == "stopped"


def test_endless_events_are_not_read(new, monkeypatch):
    run = new()
    run.append("start", process=1)
    monkeypatch.setattr(events, "MAX_EVENTS_BYTES", 5)
    assert run.events() == []


def test_a_damaged_checkpoint_is_none(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.checkpoint_path.write_bytes(run.checkpoint_path.read_bytes()[:-100])
    assert run.checkpoint() is None
    assert run.state() == "done"


def test_a_deleted_run_is_gone(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.delete()
    assert not run.path.exists()
    assert Run.find(run.identifier) is None
    assert (run.config, run.events(), run.checkpoint()) == (None, [], None)
    assert not run.running()
    run.delete()


def test_a_run_deleted_in_the_queue_does_not_come_back(new):
    run = new()
    run.delete()
    assert execute(str(run.path)) == "failed"
    assert not run.path.exists()


def test_a_run_deleted_while_it_trains_ends(new):
    run = new(epochs=ENDLESS)
    with InThread(run) as worker:
        run.delete()
        ended(worker.thread)
        assert worker.state == "failed"
        run.path.mkdir(exist_ok=True)  # for the request to stop, after the test


# Many


def test_two_hundred_runs_are_listed_newest_first(runs_root):
    for k in range(200):
        path = runs_root / f"2024{k % 12 + 1:02d}01-0000{k % 60:02d}-{k:06x}"
        path.mkdir(parents=True)
        (path / "config.json").write_text(json.dumps(SHORT))
    for name in ("notes", "20240101-000000-abcdef.bak", "20991231-235959-abcdef"):
        (runs_root / name).mkdir()
    (runs_root / "20991231-235959-abcde0").write_text("a file")
    found = all_runs()
    assert len(found) == 200
    names = [run.identifier for run in found]
    assert names == sorted(names, reverse=True)
    assert {run.state() for run in found} == {"queued"}
    assert found[0].config == RunConfig(**SHORT)


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "end", "state": "weird"},
        {"kind": "end"},
        {"kind": "epoch"},
        {"kind": "epoch", "epoch": 1, "step": 1, "test_error": "low"},
        {"kind": "epoch", "epoch": 1, "step": 1, "test_error": []},
        {"kind": "progress", "step": 0, "steps": 0, "images_per_second": 1.0},
        {"kind": "progress", "step": None, "steps": 3, "images_per_second": 1.0},
        {"kind": "song"},
        {},
        [],
    ],
)
def test_lines_of_another_version_are_passed_over(new, line):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    assert [event["kind"] for event in run.events()] == ["start"]
    assert run.state() == "interrupted"


def test_a_folder_whose_digits_are_no_date_is_no_run(new, runs_root):
    odd = runs_root / "20269999-999999-dddddd"
    new().path.rename(odd)
    assert Run.find(odd.name, runs_root) is None
    assert all_runs(runs_root) == []


def test_the_last_event_is_that_of_all_of_them(new):
    run = new()
    assert run.last is None
    for step in range(1, 2000):  # longer than the part of the file that is looked at
        run.append("progress", step=step, steps=2000, images_per_second=1.0)
    assert run.last == run.events()[-1]
    assert run.last["step"] == 1999
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b"\xff" * events.TAIL_BYTES + b"\n")
    assert run.last["step"] == 1999
