"""Failures are states of a run with a sentence; with the cause removed, the run continues."""

import contextlib
import os
import subprocess

import pytest
import torch

from densembed.runs import Run, all_runs, execute, execution
from densembed.training import loop
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from tests.conftest import is_sentence
from tests.runs import processes
from tests.runs.conftest import SHORT, end_of, learnt


def test_unavailable_data(new, tmp_path):
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
    assert "was saved" not in end_of(run)["reason"]  # it failed before the first checkpoint
    assert "resume the run" not in end_of(run)["reason"]


def test_cuda_out_of_memory_keeps_the_last_checkpoint(new, monkeypatch):
    """In the middle of a step. With enough memory, it resumes from the last saved state."""
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


def test_the_log_takes_a_name_that_is_not_unicode(new, monkeypatch):
    """Such a name is in the text of an error; writing it failed, in place of the reason."""

    def fails(*_, **__):
        raise RuntimeError("caf\udce9")

    run = new()
    monkeypatch.setattr(execution, "train", fails)
    assert execute(str(run.path)) == "failed"
    assert "RuntimeError" in (run.path / "log.txt").read_text()


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            PermissionError(13, "Permission denied", "/a/b/checkpoint.safetensors"),
            "The file 'checkpoint.safetensors' could not be used: Permission denied. "
            "Allow the app to write to the folder of runs and run it again.",
        ),
        (OSError(30, "Read-only file system"), "A file could not be used: Read-only file system."),
        (OSError(5, "Input/output error"), "Remove the cause and run it again."),
        (OSError(), "A file could not be used: OSError."),
        (OSError(122, "Disk quota exceeded"), "Free some disk space and run it again."),
    ],
    ids=str,
)
def test_only_a_full_disk_lacks_disk_space(new, monkeypatch, error, words):
    def fail(*_):
        raise error

    run = new(epochs=2)
    monkeypatch.setattr(Checkpoint, "save", fail)
    assert execute(str(run.path)) == "failed"
    reason = end_of(run)["reason"]
    assert words in reason
    assert is_sentence(reason)
    assert ("disk space" in reason) == (error.errno == 122)
    assert "/a/b" not in reason


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
    """It ends with one sentence, its checkpoint opens, and with space on the disk it resumes."""
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
    """The end cannot be recorded either, so the run is interrupted and can be resumed."""
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
def small_disk(mounted):
    """With room for some checkpoints."""
    return mounted("256k")


def test_a_disk_that_is_really_full(small_disk, new, monkeypatch):
    """The last checkpoint opens, and with space on the disk the run resumes."""
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
    """The last checkpoint opens, and resuming fails until the folder is writable."""
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
