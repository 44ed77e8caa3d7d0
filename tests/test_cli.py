"""Every command as a person gives it: what it prints, what it writes, and how it fails."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import densembed
from densembed.__main__ import main
from densembed.checkpoint import Checkpoint
from densembed.data.images import read_picture
from densembed.export import printed
from densembed.fields import view
from densembed.runs import Run, all_runs

FAST = ["--epochs", "2", "--batch-size", "100", "--learning-rate", "0.02", "--device", "cpu"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing depends on the folder in which a command is given."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def run(capsys):
    """Gives a command; returns status, stdout and stderr."""

    def give(*arguments) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return give


def fails(result) -> str:
    """One sentence on stderr, status 2."""
    status, _, errors = result
    assert status == 2
    assert "Traceback" not in errors
    (line,) = errors.splitlines()
    assert line.startswith("densembed: ")
    assert line.endswith(".")
    return line


# train


def test_train_writes_one_file(run, tmp_path, digits, runs_root):
    out = tmp_path / "a.safetensors"
    status, text, errors = run("train", "logistic-el-2", *FAST, "--seed", "3", "--out", out)
    assert (status, errors) == (0, "")
    kept = Checkpoint.open(out)
    assert kept.config.model == "logistic-el-2"
    assert (kept.config.epochs, kept.config.batch_size, kept.config.seed) == (2, 100, 3)
    assert kept.config.learning_rate == 0.02
    assert kept.header.outcome == "done"
    assert re.search(rf"test error: {kept.errors[0]:.2f} %  \(trained in \d+\.\d s\)", text)
    assert f"saved: {out}" in text.replace("\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"a.safetensors", "here"}
    assert all_runs() == []


def test_train_without_out_makes_a_run(run, runs_root):
    status, text, _ = run("train", "logistic-el-2", *FAST)
    assert status == 0
    (made,) = all_runs()
    assert isinstance(made, Run)
    assert made.state() == "done"
    assert made.identifier in text
    assert made.checkpoint().errors is not None


def test_train_repeats_by_seed(run, tmp_path):
    for name in ("a", "b"):
        run("train", "linear", *FAST, "--out", tmp_path / f"{name}.safetensors")
    first, second = (Checkpoint.open(tmp_path / f"{name}.safetensors") for name in ("a", "b"))
    assert all(torch.equal(first.tensors[key], second.tensors[key]) for key in first.tensors)


def test_train_several_members(run, tmp_path):
    out = tmp_path / "a.safetensors"
    status, text, _ = run("train", "linear", *FAST, "--seeds", "3", "--out", out)
    assert status == 0
    assert re.search(r"test error: \d+\.\d\d ± \d+\.\d\d % \(3 members\)", text)
    assert Checkpoint.open(out).members == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["transformer"], "Unknown model 'transformer'"),
        (["logistic-el-0"], "between 1 and 64"),
        (["linear", "--epochs", "0"], "Epochs takes a whole number from 1 to 10,000; got "),
        (["linear", "--epochs", "many"], "Epochs takes a whole number from 1 to 10,000; got "),
        (
            ["linear", "--learning-rate", "nan"],
            "Learning rate takes a number above 0 and up to 1,000,000; got 'nan'.",
        ),
        (
            ["linear", "--seed", "-1"],
            "Seed takes a whole number from 0 to 2,147,483,647; got '-1'.",
        ),
        (["linear", "--device", "tpu"], "Device takes one of auto, cpu, cuda, mps; got 'tpu'."),
        (["linear", "--dataset", "cats"], "Unknown data set 'cats'"),
    ],
)
def test_train_refuses_bad_values(run, tmp_path, arguments, words):
    assert words in fails(run("train", *arguments, "--out", tmp_path / "a.safetensors"))
    assert not (tmp_path / "a.safetensors").exists()


def test_train_in_a_folder_refuses_bad_values_too(run, runs_root):
    assert "Unknown data set" in fails(run("train", "linear", "--dataset", "cats"))
    assert "Epochs takes a whole number from 1 to 10,000; got " in fails(
        run("train", "linear", "--epochs", "0")
    )


def test_train_says_at_once_where_it_cannot_write(run, tmp_path, monkeypatch):
    """Not after hours of training."""
    monkeypatch.setattr("densembed.__main__.train", lambda *_: pytest.fail("It trains."))
    (tmp_path / "file").write_text("")
    for out in (tmp_path, tmp_path / "no" / "a.safetensors", tmp_path / "file" / "a.safetensors"):
        assert "is not a file that can be written" in fails(run("train", "linear", "--out", out))
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    out = tmp_path / "a.safetensors"
    assert "is not a file that can be written" in fails(run("train", "linear", "--out", out))


def test_train_that_diverges_keeps_what_was_good(run, tmp_path):
    out = tmp_path / "a.safetensors"
    fast = [*FAST[:-4], "--learning-rate", "10000"]
    assert "left all bounds" in fails(run("train", "logistic-el-2", *fast, "--out", out))
    assert Checkpoint.open(out).header.outcome == "diverged"


def test_train_that_is_stopped_keeps_what_was_learnt(run, tmp_path, monkeypatch):
    from densembed import __main__ as module

    real = module.train

    def interrupted(*arguments):
        for event in real(*arguments):
            yield event
            if getattr(event, "epoch", 0) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(module, "train", interrupted)
    out = tmp_path / "a.safetensors"
    assert "Stopped before the end." in fails(run("train", "linear", *FAST, "--out", out))
    kept = Checkpoint.open(out)
    assert kept.header.outcome == "stopped"
    assert kept.steps[-1] == kept.header.steps_per_epoch


def test_train_with_data_that_cannot_be_had(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    line = fails(
        run("train", "linear", "--dataset", "mnist", "--data-dir", tmp_path / "file",
            "--out", tmp_path / "a.safetensors")
    )  # fmt: skip
    assert "'digits' needs no download" in line


# evaluate


def test_evaluate_prints_the_error_and_twice_the_same(run, trained_file, trained, digits):
    first, second = run("evaluate", trained_file), run("evaluate", trained_file)
    assert first == second
    status, text, errors = first
    assert (status, errors) == (0, "")
    wrong = (trained.model()(digits.test.images / 255).argmax(1) != digits.test.labels).sum()
    assert text == f"test error: {100 * wrong / 359:.2f} %\n"


def test_evaluate_several(run, trained_file, tmp_path):
    other = shutil.copy(trained_file, tmp_path / "other.safetensors")
    _, single, _ = run("evaluate", trained_file)
    status, text, _ = run("evaluate", trained_file, other)
    assert status == 0
    assert text == f"small.safetensors: {single}other.safetensors: {single}"


def test_evaluate_on_another_data_set(run, trained_file, tmp_path):
    status, text, _ = run("evaluate", trained_file, "--dataset", "digits")
    assert status == 0
    assert text.startswith("test error: ")
    (tmp_path / "file").write_text("in the way")
    result = run("evaluate", trained_file, "--dataset", "mnist", "--data-dir", tmp_path / "file")
    assert "MNIST could not be downloaded" in fails(result)
    status, _, errors = run("evaluate", trained_file, "--dataset", "cats")
    assert status == 2
    assert "Unknown data set" in errors
    assert "Traceback" not in errors


# info


def test_info(run, trained_file, trained):
    status, text, errors = run("info", trained_file, trained_file)
    assert (status, errors) == (0, "")
    for words in ("small.safetensors", "logistic-el-mnn-4-2", "378", f"{trained.errors[0]:.2f} %"):
        assert text.count(words) == 2
    assert str(trained.steps[-1]) in text
    assert trained.header.provenance.dataset_title in text


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


def test_info_before_the_first_epoch(run, trained, tmp_path):
    header = trained.header.model_copy(update={"epochs": []})
    type(trained)(header, trained.tensors).save(tmp_path / "a.safetensors")
    assert "not known" in run("info", tmp_path / "a.safetensors")[1]


# read


@pytest.fixture
def labels(tmp_path, digits):
    path = tmp_path / "labels.tsv"
    rows = ["file\tdigit\tnote", f"digit.png\t{digits.test.labels[0]}\tmine", "empty.png\t-\t"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_read(run, trained_file, pictures):
    status, text, errors = run(
        "read", trained_file, pictures["digit"], pictures["empty"], pictures["letter"]
    )
    assert status == 0
    digit, empty = text.splitlines()
    (letter,) = errors.splitlines()
    assert re.fullmatch(r"digit\.png: \d  [01]\.\d\d", digit)
    assert empty == "empty.png: no digit was found"
    assert letter.startswith("letter.png: The file is not a picture")
    assert letter.endswith(".")


def test_read_of_nothing_that_can_be_read_is_an_error(run, trained_file, pictures):
    status, text, errors = run("read", trained_file, pictures["letter"])
    assert (status, text) == (2, "")
    assert errors.count("\n") == 1


def test_info_and_evaluate_name_the_bad_file_and_go_on(run, trained_file, tmp_path):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no")
    for command in ("info", "evaluate"):
        status, text, errors = run(command, bad, trained_file)
        assert status == 2
        assert errors.count("\n") == 1
        assert "bad.safetensors" in errors
        assert trained_file.name in text


def test_read_says_what_the_model_says(run, trained_file, trained, pictures):
    from densembed.data.images import read_picture

    picture = read_picture(pictures["digit"], (1, 28, 28))
    probabilities = trained.model()(picture.pixels[None] / 255)[0].softmax(0)
    (result,) = json.loads(run("read", trained_file, pictures["digit"], "--json")[1])
    assert result == {
        "file": "digit.png",
        "seen": "digit",
        "class": str(probabilities.argmax().item()),
        "probability": pytest.approx(probabilities.max().item(), abs=6e-5),
    }


def test_read_with_labels(run, trained_file, pictures, labels, digits):
    files = [pictures["digit"], pictures["empty"], pictures["letter"]]
    status, text, _ = run("read", trained_file, *files, "--labels", labels)
    assert status == 0
    results = json.loads(run("read", trained_file, *files, "--labels", labels, "--json")[1])
    assert [result["file"] for result in results] == ["digit.png", "empty.png", "letter.png"]
    label = str(digits.test.labels[0].item())
    assert results[0]["label"] == label
    right = int(results[0]["class"] == label)
    assert text.splitlines()[-1] == f"{right} of 1 right"
    assert results[1] == {"file": "empty.png", "label": "-", "seen": "no ink"}
    assert results[2]["seen"] == "nothing"
    assert "label" not in results[2]
    other = labels.with_name("wrong.tsv")
    other.write_text(f"file\tdigit\ndigit.png\t{(int(results[0]['class']) + 1) % 10}\n")
    wrong = run("read", trained_file, files[0], "--labels", other)[1].splitlines()
    assert "(it is " in wrong[0]
    assert wrong[1] == "0 of 1 right"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name,digit\n", "needs the columns file and digit"),
        (b"", "needs the columns file and digit"),
        (b"file\tdigit\n\xff\xfe\t3\n", "labels.tsv"),
    ],
)
def test_read_with_bad_labels(run, trained_file, pictures, labels, content, words):
    labels.write_bytes(content)
    line = fails(run("read", trained_file, pictures["digit"], "--labels", labels))
    assert words in line
    assert "codec" not in line


def test_read_with_a_row_that_is_cut(run, trained_file, pictures, labels):
    labels.write_text("file\tdigit\ndigit.png\n")
    status, text, _ = run("read", trained_file, pictures["digit"], "--labels", labels)
    assert status == 0
    assert "None" not in text
    assert "right" not in text


# render


def test_render_arrays(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.npz"
    result = run(
        "render", trained_file, "--image", pictures["digit"], "--out", out, "--resolution", "3"
    )
    assert result == (0, f"saved: {out}\n", "")
    with np.load(out) as file:
        assert sorted(file.files) == ["after", "before", "input", "x", "y"]
        assert file["before"].shape == file["after"].shape == (1, 84, 84)
        assert file["input"].shape == (1, 28, 28)
        assert not np.allclose(file["before"], file["after"])


def test_render_a_page(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.html"
    status, _, errors = run("render", trained_file, "--image", pictures["digit"], "--out", out)
    assert (status, errors) == (0, "")
    page = out.read_text(encoding="utf-8")
    assert "Play" in page
    assert not re.search(r"<script[^>]*src\s*=", page)


def test_render_an_empty_page_says_so(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.npz"
    status, _, errors = run("render", trained_file, "--image", pictures["empty"], "--out", out)
    assert status == 0
    assert errors == "densembed: no digit was found; the field is that of a blank picture.\n"
    assert not np.load(out)["input"].any()


@pytest.mark.parametrize("kind", [".svg", ".pdf", ".png", ".PNG"])
def test_render_for_print(run, trained_file, pictures, tmp_path, kind):
    out = tmp_path / f"a{kind}"
    status, _, _ = run("render", trained_file, "--image", pictures["digit"], "--out", out)
    checkpoint = Checkpoint.open(trained_file)
    pixels = read_picture(pictures["digit"], checkpoint.header.input_shape).pixels
    seen = view(checkpoint, pixels, [0, -1])
    assert status == 0
    assert out.read_bytes() == printed(checkpoint, pixels, seen, -1, kind[1:].upper())


def test_render_refuses(run, trained_file, pictures, tmp_path):
    def render(image=pictures["digit"], out=tmp_path / "a.npz", *more):
        return fails(run("render", trained_file, "--image", image, "--out", out, *more))

    assert "ends in .html, .svg, .pdf, .png or .npz" in render(out=tmp_path / "a.txt")
    assert "between 1 and 32" in render(pictures["digit"], tmp_path / "a.npz", "--resolution", "0")
    assert "between 1 and 32" in render(pictures["digit"], tmp_path / "a.npz", "--resolution", "33")
    assert "not a picture" in render(image=pictures["letter"])
    assert "cannot be read" in render(image=tmp_path / "no.png")
    for name in ("a.npz", "a.html"):
        line = render(out=tmp_path / "no" / name)
        assert f"{tmp_path / 'no' / name}: No such file or directory." in line
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


# What every command that opens a checkpoint refuses


@pytest.mark.parametrize("command", ["evaluate", "info", "read", "render"])
def test_files_that_are_no_checkpoints(run, command, pictures, tmp_path):
    more = {
        "read": [pictures["digit"]],
        "render": ["--image", pictures["digit"], "--out", tmp_path / "a.npz"],
    }.get(command, [])
    assert "No such file" in fails(run(command, tmp_path / "no.safetensors", *more))
    assert "is not a densembed checkpoint" in fails(run(command, pictures["digit"], *more))
    assert "directory" in fails(run(command, tmp_path, *more))


def test_a_full_disk_is_one_sentence(run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("densembed.checkpoint.os.replace", full)
    out = tmp_path / "a.safetensors"
    line = fails(run("train", "linear", *FAST, "--out", out))
    assert line == f"densembed: {out}: No space left on device."


# The whole program


@pytest.mark.parametrize("arguments", [[], ["fly"], ["train"], ["evaluate"], ["train", "--fast"]])
def test_usage_errors(run, arguments):
    status, text, errors = run(*arguments)
    assert (status, text) == (2, "")
    assert errors.startswith("usage: densembed")
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", [[], ["train"], ["evaluate"], ["info"], ["read"], ["render"]])
def test_help(run, command):
    status, text, _ = run(*command, "--help")
    assert status == 0
    assert text.startswith("usage: densembed")


def test_train_has_a_flag_for_every_field(run):
    text = run("train", "--help")[1]
    for name in densembed.RunConfig.model_fields:
        assert name == "model" or f"--{name.replace('_', '-')}" in text


def test_it_runs_as_a_program(run, trained_file, tmp_path):
    """One good file and one that is not there: output, sentence and status, from outside."""
    _, expected, _ = run("evaluate", trained_file)
    missing = tmp_path / "no.safetensors"
    given = subprocess.run(
        [sys.executable, "-m", "densembed", "evaluate", str(trained_file), str(missing)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(densembed.__file__))},
        timeout=120,
    )
    assert given.returncode == 2
    assert given.stdout == f"small.safetensors: {expected}"
    assert given.stderr == f"densembed: {missing} cannot be read: No such file or directory.\n"


def test_a_folder_of_ones_own(run, tmp_path):
    """Trained on, judged on, and said in `info`; what is no picture is named."""
    random = np.random.default_rng(0)
    for name, bright in (("dark", 60), ("light", 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(20):
            pixels = (bright + random.integers(-40, 40, (9, 11, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    (tmp_path / "photos" / "dark" / "notes.txt").write_text("no picture")
    data, out = f"folder:{tmp_path / 'photos'}", tmp_path / "a.safetensors"
    arguments = ["--dataset", data, "--epochs", "30", "--learning-rate", "0.05", "--device", "cpu"]
    status, text, errors = run("train", "logistic-el-2", *arguments, "--out", out)
    assert status == 0
    assert errors.splitlines() == ["densembed: left out, as it is no picture: dark/notes.txt"]
    assert "test error: 0.00 %" in text
    kept = Checkpoint.open(out)
    assert kept.header.classes == ["dark", "light"]
    assert kept.header.input_shape == (3, 9, 11)
    status, text, _ = run("evaluate", out)
    assert (status, text) == (0, "test error: 0.00 %\n")
    _, text, _ = run("info", out)
    assert "photos" in text
    status, text, _ = run("read", out, tmp_path / "photos" / "light" / "3.png")
    assert text.startswith("3.png: light")
    for path in (tmp_path / "photos").rglob("*.png"):
        path.unlink()
    assert "two subfolders" in fails(run("evaluate", out))
