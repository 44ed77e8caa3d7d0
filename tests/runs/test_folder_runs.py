"""Runs on a folder of pictures that an older version began, or that cannot be used."""

import os

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from densembed.data import class_folders, folder, load_dataset
from densembed.runs import Run, execute
from densembed.runs.execution import _reason
from densembed.training.config import RunConfig
from densembed.training.loop import error_rate


@pytest.fixture
def numbers(tmp_path, runs_root, monkeypatch):
    """A run on a folder of three classes whose order depends on the version."""
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    random = np.random.default_rng(0)
    for k, name in enumerate(("1", "2", "10")):
        (tmp_path / "numbers" / name).mkdir(parents=True)
        for n in range(20):
            pixels = (40 + 80 * k + random.integers(-20, 20, (9, 11))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "numbers" / name / f"{n}.png")
    return RunConfig(
        model="mlp-8",
        dataset=f"folder:{tmp_path / 'numbers'}",
        epochs=40,
        learning_rate=0.02,
        batch_size=16,
        device="cpu",
    )


def _forget_data(run: Run) -> None:
    """Rewrite the resume file as an older version did, which kept nothing of its data."""
    with safe_open(run.resume_path, "pt") as file:
        metadata = file.metadata()
    del metadata["data"]
    save_file(load_file(run.resume_path), run.resume_path, metadata)


def test_a_run_of_an_older_version_keeps_its_classes(numbers, monkeypatch):
    run = Run.create(numbers)
    with monkeypatch.context() as before:
        for module in (folder, class_folders):
            before.setattr(module, "natural", str)
        before.setattr(folder, "RULES", 1)
        run.resume(epochs=1)
        assert execute(str(run.path)) == "paused"
    _forget_data(run)
    assert run.checkpoint().header.classes == ["1", "10", "2"]
    folder._load.cache_clear()
    assert load_dataset(numbers.dataset).classes == ("1", "2", "10")
    run.resume()
    assert execute(str(run.path)) == "done", run.last
    ended = run.checkpoint()
    assert ended.header.classes == ["1", "10", "2"]
    test = load_dataset(numbers.dataset).in_order(ended.header.classes).test
    assert error_rate(ended.model(), test) == pytest.approx(ended.errors[0])
    assert ended.errors[0] < 10


def test_a_validation_error_is_one_sentence(numbers):
    with pytest.raises(ValueError, match="string_unicode") as caught:
        RunConfig(dataset="folder:" + os.fsdecode(b"caf\xe9"))
    assert _reason(Run.create(numbers), caught.value) == (
        r"Dataset is not valid UTF-8: folder:caf\xe9. Rename the folder."
    )
