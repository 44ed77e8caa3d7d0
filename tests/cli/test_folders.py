"""Folders of images, and names that are not Unicode, on the command line."""

import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from densembed.experiments.report import Settings
from densembed.training.checkpoint import Checkpoint
from tests.cli.conftest import fails


def test_every_command_names_what_a_folder_leaves_out_once(run, photos, tmp_path, runs_root):
    """However many checkpoints or trainings there are."""
    data, out = f"folder:{photos}", tmp_path / "a.safetensors"
    fast = ["--dataset", data, "--epochs", "1", "--batch-size", "16", "--device", "cpu"]
    processes = ["--processes", "1"]
    figure1 = ["reproduce", "figure1", "--seeds", "1"]
    for arguments in (
        ["train", "linear", *fast],
        ["train", "linear", *fast, "--out", out],
        ["evaluate", out, out, "--dataset", data],
        ["sweep", "linear", "--learning-rate", "0.01,0.02", *fast, *processes],
        [*figure1, *fast[:2], *fast[-2:], *processes, "--out", tmp_path / "tables"],
    ):
        status, _, errors = run(*arguments)
        assert status == 0
        assert errors.count("densembed: not an image, skipped: dark/notes.txt\n") == 1


def test_a_figure_without_its_inputs_trains_nothing(run, photos, tmp_path):
    arguments = ["--dataset", f"folder:{photos}", "--out", tmp_path / "tables"]
    line = fails(run("reproduce", "figure1", *arguments, "--inputs", "light,dark,7"))
    assert "Unknown class '7'; photos has test images of dark, light." in line
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("inputs", ["7", "7,2", "7,2,1,0"])
def test_the_number_of_inputs_is_checked_before_a_download(run, tmp_path, monkeypatch, inputs):
    def load(settings):
        raise AssertionError("data were asked for")

    monkeypatch.setattr(Settings, "load", load)
    line = fails(run("reproduce", "figure1", "--inputs", inputs, "--out", tmp_path / "tables"))
    assert f"Figure 1 has three inputs; got {inputs.count(',') + 1}" in line
    assert not (tmp_path / "tables").exists()


def test_no_checkpoint_replaces_a_file_of_the_folder(run, photos):
    """An earlier result among them may be replaced."""
    arguments = ["train", "linear", "--dataset", f"folder:{photos}", "--epochs", "1", "--out"]
    image, own = photos / "dark" / "3.png", photos / "a.safetensors"
    before = image.read_bytes()
    line = fails(run(*arguments, image))
    assert f"{image} would replace a file among the data of photos, and it is no check" in line
    assert image.read_bytes() == before
    for _ in range(2):
        assert run(*arguments, own)[0] == 0


def test_a_folder_of_ones_own(run, photos, tmp_path):
    """It is trained on, evaluated and shown by `info`; files that are no images are listed."""
    data, out = f"folder:{tmp_path / 'photos'}", tmp_path / "a.safetensors"
    arguments = ["--dataset", data, "--epochs", "30", "--learning-rate", "0.05", "--device", "cpu"]
    status, text, errors = run("train", "logistic-el-2", *arguments, "--out", out)
    assert status == 0
    assert errors.splitlines() == ["densembed: not an image, skipped: dark/notes.txt"]
    kept = Checkpoint.open(out)
    number = kept.header.provenance.test_images
    assert f"test error: 0.00 % of {number} test images  (trained" in text
    assert kept.header.classes == ["dark", "light"]
    assert kept.header.input_shape == (3, 9, 11)
    status, text, _ = run("evaluate", out, "--dataset", data)
    assert (status, text) == (0, f"test error: 0.00 % of {number} test images\n")
    assert run("evaluate", out, "--data-dir", tmp_path)[1] == text
    _, text, _ = run("info", out)
    assert "photos" in text
    status, text, _ = run("read", out, tmp_path / "photos" / "light" / "3.png")
    assert text.startswith("3.png: light")
    for path in (tmp_path / "photos").rglob("*.png"):
        path.unlink()
    assert "two subfolders" in fails(run("evaluate", out, "--dataset", data))


def test_a_checkpoint_selects_no_folder(run, trained, pictures, tmp_path, monkeypatch):
    """The file may have another author, so the user names the folder or puts it in the data."""
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path=".": listed.append(path) or scandir(path))
    config = trained.config.model_copy(update={"dataset": "folder:/etc@1x28x28"})
    header = trained.header.model_copy(update={"config": config})
    sly = tmp_path / "sly.safetensors"
    type(trained)(header, trained.tensors).save(sly)
    assert "add --dataset folder:/etc@1x28x28." in fails(run("evaluate", sly))
    assert run("read", sly, pictures["digit"])[0] == 0
    assert run("info", sly)[0] == 0
    assert not listed
    run("evaluate", sly, "--dataset", "folder:/etc@1x28x28")
    assert listed


def test_names_that_are_not_unicode(run, tmp_path, trained_file, monkeypatch):
    """They are escaped before training, and stop no output: stdout takes UTF-8 alone."""
    cryptic = os.fsdecode(b"rot\xe9")
    for name, bright in (("dark", 60), (cryptic, 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(8):
            pixels = np.full((9, 11, 3), bright + n, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    (tmp_path / "photos" / "dark" / f"{cryptic}.txt").write_text("no picture")
    out = tmp_path / f"{cryptic}.safetensors"
    arguments = ["logistic-el-2", "--epochs", "2", "--device", "cpu", "--data-dir"]
    arguments += [tmp_path / f"data {cryptic}", "--dataset"]
    data = f"folder:{tmp_path / 'photos'}"
    status, text, errors = run("train", *arguments, data, "--out", out)
    assert status == 0
    assert r"its class is called 'rot\xe9'" in errors
    assert r"not an image, skipped: dark/rot\xe9.txt" in errors
    assert r"rot\xe9.safetensors" in text.replace("\n", "")
    assert Checkpoint.open(out).header.classes == ["dark", r"rot\xe9"]
    for command, *flags in (("evaluate", "--dataset", data), ("info",)):
        status, text, errors = run(command, out, out, *flags)
        assert status == 0
        assert (r"skipped: dark/rot\xe9.txt" in errors) == (command == "evaluate")
        assert r"rot\xe9.safetensors" in text
        text.encode()
    picture = tmp_path / f"{cryptic}.png"
    shutil.copy(tmp_path / "photos" / cryptic / "3.png", picture)
    table = tmp_path / "labels.tsv"
    table.write_text("file\tdigit\nrot\\xe9.png\tdark\n")
    for flags in ([], ["--json"]):
        status, text, _ = run("read", out, picture, "--labels", table, *flags)
        assert status == 0
        text.encode()
    assert os.fsencode(json.loads(text)[0]["file"]) == b"rot\xe9.png"
    assert json.loads(text)[0]["label"] == "dark"
    _, text, _ = run("render", out, "--image", picture, "--out", tmp_path / f"{cryptic}.svg")
    assert r"rot\xe9.svg" in text
    os.rename(tmp_path / "photos", tmp_path / cryptic)
    said = fails(run("train", *arguments, f"folder:{tmp_path / cryptic}", "--out", out))
    assert "not valid UTF-8" in said
    assert r"rot\xe9" in said
    gone = tmp_path / f"gone {cryptic}.safetensors"
    assert r"gone rot\xe9" in fails(run("evaluate", gone))
    assert r"gone rot\xe9" in fails(run("train", *arguments, "digits", "--out", gone / "a"))
