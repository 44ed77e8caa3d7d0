"""The commands `evaluate` and `info`."""

import shutil

import numpy as np
import pytest
from PIL import Image

from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from tests.cli.conftest import fails


def test_evaluate_is_repeatable(run, trained_file, trained, digits):
    first, second = run("evaluate", trained_file), run("evaluate", trained_file)
    assert first == second
    status, text, errors = first
    assert (status, errors) == (0, "")
    wrong = (trained.model()(digits.test.images / 255).argmax(1) != digits.test.labels).sum()
    assert text == f"test error: {100 * wrong / 359:.2f} % of 359 test images\n"


def test_evaluate_several(run, trained_file, tmp_path):
    other = shutil.copy(trained_file, tmp_path / "other.safetensors")
    _, single, _ = run("evaluate", trained_file)
    status, text, _ = run("evaluate", trained_file, other)
    assert status == 0
    assert text == f"small.safetensors: {single}other.safetensors: {single}"


def test_files_of_one_name_are_told_apart(run, trained_file, tmp_path):
    """Every run has its file under the same name."""
    files = [tmp_path / name / "checkpoint.safetensors" for name in "abc"]
    for file in files:
        file.parent.mkdir()
        shutil.copy(trained_file, file)
    files[2].write_bytes(b"damaged")
    _, single, _ = run("evaluate", trained_file)
    status, text, errors = run("evaluate", *files)
    assert status == 2
    assert text == f"{files[0]}: {single}{files[1]}: {single}"
    assert errors.startswith(f"densembed: {files[2]}: ")
    rows = run("info", *files)[1]
    assert all(str(file) in rows for file in files[:2])


def test_an_error_on_data_of_another_title_says_so(run, trained, tmp_path):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = "My digits"
    Checkpoint(header, trained.tensors).save(tmp_path / "a.safetensors")
    status, text, errors = run("evaluate", tmp_path / "a.safetensors")
    assert (status, text[:12]) == (0, "test error: ")
    assert "a.safetensors was trained on My digits, but this is its error on " in errors
    assert run("evaluate", tmp_path / "a.safetensors", "--dataset", "digits")[2] == ""


def test_evaluate_on_another_data_set(run, trained_file, tmp_path):
    status, text, _ = run("evaluate", trained_file, "--dataset", "digits")
    assert status == 0
    assert text.startswith("test error: ")
    (tmp_path / "file").write_text("in the way")
    below = tmp_path / "file/data"
    result = run("evaluate", trained_file, "--dataset", "mnist", "--data-dir", below)
    assert "MNIST cannot be saved in" in fails(result)
    status, _, errors = run("evaluate", trained_file, "--dataset", "cats")
    assert status == 2
    assert "Unknown data set" in errors
    assert "Traceback" not in errors


def test_evaluate_on_another_grid(run, trained_file, trained, digits):
    status, text, errors = run("evaluate", trained_file, "--grid", "14")
    assert (status, errors) == (0, "")
    images = digits.test.images.float().unflatten(-2, (14, 2)).unflatten(-1, (14, 2))
    small = images.mean((-3, -1)).round() / 255
    model = build(trained.config.model, (1, 14, 14))  # the same weights in a model of that size
    model.load_state_dict(trained.state())
    wrong = (model(small).argmax(1) != digits.test.labels).sum()
    assert text == f"test error: {100 * wrong / 359:.2f} % of 359 test images\n"


@pytest.mark.parametrize("grid", ["", "0", "14x", "14x0", "2000", "a", "14x14x14", "-5"])
def test_evaluate_on_a_wrong_grid(run, trained_file, grid):
    status, _, errors = run("evaluate", trained_file, "--grid", grid)
    assert status == 2
    assert f"{grid!r} is not a size: give pixels as in 14" in errors.splitlines()[-1]


# info


def test_info(run, trained_file, trained):
    status, text, errors = run("info", trained_file, trained_file)
    assert (status, errors) == (0, "")
    for words in ("small.safetensors", "logistic-el-mnn-4-2", "378", f"{trained.errors[0]:.2f} %"):
        assert text.count(words) == 2
    assert str(trained.steps[-1]) in text
    assert trained.header.provenance.dataset_title in text


def test_info_cuts_off_nothing_in_a_pipe(run, trained, tmp_path):
    """Columns as wide as the longest title and file name, with letters of double width."""
    long = "\U0001f600" * 150
    provenance = trained.header.provenance.model_copy(update={"dataset_title": long})
    path = tmp_path / f"{'my ' * 60}.safetensors"
    header = trained.header.model_copy(update={"provenance": provenance})
    type(trained)(header, trained.tensors).save(path)
    status, text, errors = run("info", path)
    assert (status, errors) == (0, "")
    (line,) = [line for line in text.splitlines() if long in line]
    assert path.name in line
    assert f"{trained.errors[0]:.2f} %" in line


def test_info_shows_names_as_they_are(run, trained, tmp_path):
    """Brackets are markup to the library that draws the table, not to a person."""
    provenance = trained.header.provenance.model_copy(update={"dataset_title": "[/red] mine"})
    header = trained.header.model_copy(update={"provenance": provenance})
    for name in ("model[bold]", "a[1]", "[red]"):
        path = tmp_path / f"{name}.safetensors"
        type(trained)(header, trained.tensors).save(path)
        status, text, errors = run("info", path)
        assert (status, errors) == (0, "")
        assert path.name in text
        assert "[/red] mine" in text


@pytest.mark.parametrize("outcome", ["stopped", "diverged"])
def test_info_tells_a_training_that_did_not_end(run, trained, tmp_path, outcome):
    header = trained.header.model_copy(update={"outcome": outcome})
    type(trained)(header, trained.tensors).save(tmp_path / "a.safetensors")
    assert f" {trained.steps[-1]}, {outcome} " in run("info", tmp_path / "a.safetensors")[1]


def test_info_before_the_first_epoch(run, trained, tmp_path):
    header = trained.header.model_copy(update={"epochs": []})
    type(trained)(header, trained.tensors).save(tmp_path / "a.safetensors")
    assert "unknown" in run("info", tmp_path / "a.safetensors")[1]


# read


def test_info_and_evaluate_name_the_bad_file_and_go_on(run, trained_file, tmp_path):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no")
    for command in ("info", "evaluate"):
        status, text, errors = run(command, bad, trained_file)
        assert status == 2
        assert errors.count("\n") == 1
        assert "bad.safetensors" in errors
        assert trained_file.name in text
        status, text, errors = run(command, bad)
        assert (status, text) == (2, "")  # no table without a row


def test_evaluate_goes_on_after_data_that_are_not_there(run, trained, trained_file, tmp_path):
    config = trained.config.model_copy(update={"dataset": "folder:/no/such/folder"})
    header = trained.header.model_copy(update={"config": config})
    other = tmp_path / "other.safetensors"
    type(trained)(header, trained.tensors).save(other)
    status, text, errors = run("evaluate", other, trained_file)
    assert status == 2
    assert text.startswith("small.safetensors: test error: ")
    (line,) = errors.splitlines()
    assert line.startswith("densembed: other.safetensors: The model was trained on data outside ")
    assert line.count("other.safetensors") == 1


def test_evaluate_knows_the_classes_of_an_older_order(run, tmp_path):
    random = np.random.default_rng(0)
    for k, name in enumerate(("1", "2", "10")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(20):
            pixels = (40 + 80 * k + random.integers(-20, 20, (9, 11))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    out, arguments = tmp_path / "a.safetensors", ["--epochs", "60", "--learning-rate", "0.05"]
    arguments += ["--dataset", f"folder:{tmp_path / 'photos'}", "--device", "cpu", "--out", out]
    assert run("train", "mlp-8", *arguments)[0] == 0
    kept = Checkpoint.open(out)
    assert kept.header.classes == ["1", "2", "10"]
    assert kept.errors[0] < 10
    for name, value in kept.tensors.items():
        if ".2." in name:  # the last layer
            kept.tensors[name] = value[:, :, [0, 2, 1]]
    kept.header.classes = ["1", "10", "2"]  # as older versions sorted them
    kept.save(out)
    _, text, _ = run("evaluate", out, "--data-dir", tmp_path)
    assert f"test error: {kept.errors[0]:.2f} %" in text
    shutil.rmtree(tmp_path / "photos" / "10")
    assert "3 classes, but photos has 2" in fails(run("evaluate", out, "--data-dir", tmp_path))
