"""The life of a run, as its folder records it."""

import os

import pytest
import torch
from torchvision.datasets import MNIST

from densembed.runs import execute
from densembed.training.config import RunConfig
from tests.runs.conftest import SHORT, InThread, end_of, ended, kinds, silent_mirror, wait_for


def test_from_queued_to_done(new):
    run = new()
    assert run.state() == "queued"
    assert run.events() == []
    assert run.checkpoint() is None
    assert execute(str(run.path)) == "done"
    assert run.state() == "done"
    assert not run.running()
    order = kinds(run)
    assert (order[0], order[-1]) == ("start", "end")
    assert order.count("epoch") == 2
    assert "progress" in order
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


# Downloads


@pytest.mark.parametrize("word", ["stop", "pause"])
def test_a_download_obeys(new, monkeypatch, tmp_path, word):
    """With the limits as they are."""
    run = new(dataset="mnist")

    def ask():
        wait_for(lambda: "download" in kinds(run))
        getattr(run, word)()

    with silent_mirror(monkeypatch, ask):
        state = {"stop": "stopped", "pause": "paused"}[word]
        assert execute(str(run.path), str(tmp_path / "data")) == state
    assert run.state() == state
    assert kinds(run)[:2] == ["start", "download"]
    assert run.checkpoint() is None


def test_a_paused_download_is_taken_up_again(new, monkeypatch, tmp_path):
    run = new(dataset="mnist")
    with silent_mirror(monkeypatch, run.pause):
        assert execute(str(run.path), str(tmp_path)) == "paused"
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    run.resume()
    assert execute(str(run.path), str(tmp_path)) == "failed"
    assert "Connection refused" in end_of(run)["reason"]
