"""A run continues with changed data only on request."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save

from densembed.cli.main import main
from densembed.fields.agreement import summary
from densembed.runs import Run, execute, execution
from densembed.runs.log_lines import log_lines
from densembed.training.resume import carry_over, load_resume
from tests.conftest import is_sentence
from tests.runs.conftest import ENDLESS, begin, kill, learnt, wait_for


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


def test_pictures_that_are_overwritten_in_place_are_changed_data(paused, photos):
    """Even in the process that has read them."""
    own = photos.root / "train" / "cat" / "0000.png"
    with Image.open(own) as image:
        pixels = 255 - np.asarray(image)
    Image.fromarray(pixels).save(own)
    os.utime(own, (1, 1))  # a time of its own, as the tests are fast
    paused.resume()
    assert execute(str(paused.path)) == "paused"
    assert "The data set has changed" in said_to_change(paused)


def test_a_run_continues_with_changed_data_only_on_request(paused, photos, capsys):
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
    lines = [line.partition("  ")[2] for line in log_lines(paused.events())]
    assert (
        "after epoch 1, the data set changed: 80 training images before, 200 now; 10 test images "
        "before, 20 now. Since then, steps are counted as if every epoch had had 20 steps instead "
        "of 8"
    ) in lines
    assert [epoch.step for epoch in after.header.epochs] == [20, 40, 60]
    assert after.steps[-1] == 60
    assert after.header.epochs[0].test_error == kept.header.epochs[0].test_error
    for name, tensor in kept.tensors.items():  # it began where it was, not from scratch
        at = after.steps.index(20)
        assert torch.equal(after.tensors[name][at], tensor[-1])
        assert not torch.equal(after.tensors[name][-1], tensor[-1])
    assert after.header.provenance.train_images == 200
    change = "after epoch 1: 80 training images before, 200 now; 10 test images before, 20 now"
    assert after.header.data_changes == [change]
    assert summary(after)["Training data"].endswith(f", 200 images; the data set changed {change}")
    assert main(["info", str(paused.checkpoint_path)]) == 0
    assert f"; changed {change} " in capsys.readouterr().out


def test_consent_to_changed_data_survives_pauses_and_kills(paused, photos, monkeypatch):
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


def test_a_kill_between_the_two_files_counts_no_change_twice(paused, photos):
    """The checkpoint is saved before the state that belongs to it."""
    resume, _, data = load_resume(paused.resume_path)
    photos(60, "cat", "dog")
    paused.resume()
    execute(str(paused.path))
    agreed = paused.changed_data
    now = replace(data, digest=agreed, train=200, test=20)
    _, converted, _ = carry_over(resume, paused.checkpoint(), data, now)
    converted.save(paused.checkpoint_path)
    paused.resume(data=agreed)
    assert execute(str(paused.path)) == "done"
    header = paused.checkpoint().header
    assert [epoch.step for epoch in header.epochs] == [20, 40, 60]
    assert len(header.data_changes) == 1


def test_consent_to_one_change_does_not_cover_the_next(paused, photos):
    photos(20, "cat")
    paused.resume()
    execute(str(paused.path))
    agreed = paused.changed_data
    photos(1, "dog")
    paused.resume(data=agreed)
    assert execute(str(paused.path)) == "paused"
    assert "80 training images before, 101 now" in said_to_change(paused)
    assert paused.changed_data not in ("", agreed)


def test_restored_data_need_no_consent(paused, photos, new):
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


def test_a_restart_after_a_kill_does_not_continue_with_changed_data(new, photos):
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


def test_a_run_of_an_older_version_continues(paused, photos):
    """Its folder contains no digest, so a change cannot be noticed."""
    with safe_open(paused.resume_path, "pt") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "data"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    paused.resume_path.write_bytes(save(tensors, metadata))
    (photos.root / "train/cat/0000.png").write_bytes(
        (photos.root / "train/cat/0001.png").read_bytes()
    )
    paused.resume()
    assert execute(str(paused.path)) == "done"
