"""Every command as a person gives it: what it prints, what it writes, and how it fails."""

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import densembed
from densembed.cli.main import build_parser, main
from densembed.cli.progress import Bar
from densembed.cli.reproduce import EXPERIMENTS
from densembed.data.images import read_picture
from densembed.fields import novelty
from densembed.fields.field import view
from densembed.figures.export import printed
from densembed.functional.densities import FAMILIES
from densembed.models.names import templates
from densembed.runs import Run, all_runs
from densembed.training.checkpoint import Checkpoint
from tests.fields.test_novelty import photographs

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
    assert re.search(rf"test error: {kept.errors[0]:.2f} % of 359 test images  \(trained in", text)
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
    assert re.search(
        r"test error: \d+\.\d\d ± \d+\.\d\d % of [\d,]+ test images \(3 members\)", text
    )
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
    monkeypatch.setattr("densembed.cli.train.train", lambda *_, **__: pytest.fail("It trains."))
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "no/a.safetensors", "file/a.safetensors", "pipe"):
        out = tmp_path / name
        assert "cannot be written" in fails(run("train", "linear", "--out", out))
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    out = tmp_path / "a.safetensors"
    assert "cannot be written" in fails(run("train", "linear", "--out", out))


@pytest.mark.parametrize("suffix", ["pdf", "html", "npz"])
def test_a_file_replaces_no_pipe_and_no_link(run, trained_file, pictures, tmp_path, suffix):
    pipe, link, target = (tmp_path / f"{name}.{suffix}" for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    link.symlink_to(target.name)
    arguments = "render", trained_file, "--image", pictures["digit"], "--out"
    assert "Not a regular file" in fails(run(*arguments, pipe))
    assert pipe.is_fifo()
    assert run(*arguments, link)[0] == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000


class ClosedPipe(io.StringIO):
    """Standard output to a program such as `head`, which ends after one line."""

    def flush(self):
        if self.getvalue().count("\n") > 1:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize("place", ["folder", "file"])
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_closed_pipe_does_not_end_a_training(run, tmp_path, runs_root, monkeypatch, place):
    out = tmp_path / "a.safetensors"
    monkeypatch.setattr("sys.stdout", ClosedPipe())
    result = run("train", "linear", *FAST, *(["--out", out] if place == "file" else []))
    assert fails(result) == "densembed: The output cannot be written: Broken pipe."
    path = out if place == "file" else all_runs()[0].checkpoint_path
    assert len(Checkpoint.open(path).header.epochs) == 2


def test_train_that_diverges_keeps_what_was_good(run, tmp_path):
    out = tmp_path / "a.safetensors"
    fast = ["--epochs", "10", "--batch-size", "100", "--learning-rate", "10000", "--device", "cpu"]
    assert "Training diverged" in fails(run("train", "logistic-el-2", *fast, "--out", out))
    assert Checkpoint.open(out).header.outcome == "diverged"


@pytest.mark.parametrize("place", ["file", "folder"])
def test_ctrl_c_keeps_the_latest_snapshot(run, tmp_path, runs_root, monkeypatch, place):
    """With and without --out: one status, one sentence, and the file that it names."""
    from densembed.cli import train as module
    from densembed.runs import execution

    real = module.train

    def interrupted(*arguments, **options):
        for event in real(*arguments, **options):
            yield event
            if getattr(event, "epoch", 0) == 1:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "train", interrupted)
    monkeypatch.setattr(execution, "train", interrupted)
    before = signal.getsignal(signal.SIGINT)
    out = tmp_path / "a.safetensors"
    more = ["--out", out] if place == "file" else []
    status, text, errors = run("train", "linear", *FAST, "--epochs", "1000", *more)
    path = out if place == "file" else all_runs()[0].checkpoint_path
    assert status == 130
    assert errors == f"densembed: Interrupted. Saved the latest snapshot to {path}.\n"
    kept = Checkpoint.open(path)
    assert kept.header.outcome == "stopped"
    assert kept.steps[-1] == kept.header.steps_per_epoch
    assert f"test error: {kept.errors[0]:.2f} %" in text
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_anything_is_trained(run, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("densembed.cli.common.load_dataset", interrupted)
    for more in ([], ["--out", tmp_path / "a.safetensors"]):
        result = run("train", "linear", *FAST, *more)
        assert result == (130, "", "densembed: Interrupted. Nothing was saved.\n")


@pytest.mark.parametrize("place", ["file", "folder"])
def test_in_a_pipe_progress_is_a_line_per_epoch(run, tmp_path, runs_root, place):
    out = tmp_path / "a.safetensors"
    more = ["--out", out] if place == "file" else []
    _, text, _ = run("train", "linear", *FAST, "--epochs", "3", *more)
    kept = Checkpoint.open(out if place == "file" else all_runs()[0].checkpoint_path)
    lines = [line for line in text.splitlines() if line.startswith("epoch ")]
    steps = kept.header.steps_per_epoch
    assert len(lines) == 3
    for number, (line, epoch) in enumerate(zip(lines, kept.header.epochs, strict=True), 1):
        said = f"epoch {number}/3  step {number * steps}/{3 * steps}  {100 * number / 3:.0f} %"
        assert line.startswith(f"{said}  error {epoch.test_error[0]:.2f} %")
        assert bool(re.search(r"  \d+:\d\d:\d\d left$", line)) == (number < 3)


def test_at_a_terminal_progress_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal to the library that draws it
    monkeypatch.setenv("COLUMNS", "100")
    with Bar(20) as bar:
        bar.show("progress", {"step": 90, "steps": 600})
        bar.show("epoch", {"epoch": 3, "test_error": [4.0, 6.0]})
        bar.show("progress", {"step": 105, "steps": 600})
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    last = next(line for line in reversed(text.splitlines()) if "epoch" in line)
    for words in ("epoch 4/20", "18%", "step 105/600", "error 5.00 ± 1.41 %"):
        assert words in last


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
    assert text == f"test error: {100 * wrong / 359:.2f} % of 359 test images\n"


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
    assert "MNIST cannot be saved in" in fails(result)
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
    assert "unknown" in run("info", tmp_path / "a.safetensors")[1]


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
    assert status == 2  # as one of them is no picture
    digit, empty = text.splitlines()
    (letter,) = errors.splitlines()
    assert re.fullmatch(r"digit\.png: \d  [01]\.\d\d", digit)
    assert empty == "empty.png: no digit found"
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
    assert line.startswith("densembed: other.safetensors: ")


def test_read_says_what_the_model_says(run, trained_file, trained, pictures):
    from densembed.data.images import read_picture

    picture = read_picture(pictures["digit"], (1, 28, 28))
    probabilities = trained.model()(picture.pixels[None] / 255)[0].softmax(0)
    (result,) = json.loads(run("read", trained_file, pictures["digit"], "--json")[1])
    assert result == {
        "file": "digit.png",
        "label": None,
        "seen": "digit",
        "class": str(probabilities.argmax().item()),
        "probability": pytest.approx(probabilities.max().item(), abs=6e-5),
        "unlike": None,  # its training images are too few to judge by
        "error": None,
    }


def test_read_gives_the_same_keys_for_every_picture(run, trained_file, pictures, tmp_path):
    ink = 255 - np.asarray(Image.open(pictures["digit"]))
    Image.fromarray(255 - np.hstack([ink, ink])).save(tmp_path / "two.png")
    files = [pictures["digit"], pictures["empty"], pictures["letter"], tmp_path / "two.png"]
    status, text, _ = run("read", trained_file, *files, "--json")
    results = json.loads(text)
    assert status == 2
    assert {tuple(result) for result in results} == {
        ("file", "label", "seen", "class", "probability", "unlike", "error")
    }
    seen = ["digit", "no ink", "nothing", "several digits"]
    assert [result["seen"] for result in results] == seen
    assert [result["class"] is None for result in results] == [False, True, True, False]
    assert [result["error"] is None for result in results] == [True, True, False, True]
    assert "(several digits)" in run("read", trained_file, tmp_path / "two.png")[1]


def test_read_says_what_is_unlike_the_training_images(
    run, trained_file, pictures, digits, tmp_path, monkeypatch
):
    """As the page does, where there are enough training images to judge by."""
    monkeypatch.setattr(novelty, "REFERENCES", len(digits.train))
    stripes = np.full((140, 140), 255, np.uint8)
    stripes[20:120, 30:40] = stripes[20:120, 60:70] = stripes[20:120, 90:100] = 0
    stripes[20:30, 30:100] = 0
    Image.fromarray(stripes).save(tmp_path / "comb.png")
    (tmp_path / "photo.jpg").write_bytes(photographs(1)[0])
    files = [pictures["digit"], tmp_path / "comb.png", tmp_path / "photo.jpg"]
    status, text, _ = run("read", trained_file, *files)
    like, *unlike = text.splitlines()
    words = "(unlike the training images)"
    assert status == 0
    assert words not in like
    assert all(words in line for line in unlike)
    results = json.loads(run("read", trained_file, *files, "--json")[1])
    assert [result["unlike"] for result in results] == [False, True, True]
    monkeypatch.setattr(novelty, "is_available", lambda *_: False)
    results = json.loads(run("read", trained_file, *files, "--json")[1])
    assert [result["unlike"] for result in results[:2]] == [None, None]


def test_read_with_labels(run, trained_file, pictures, labels, digits):
    files = [pictures["digit"], pictures["empty"], pictures["letter"]]
    status, text, _ = run("read", trained_file, *files, "--labels", labels)
    assert status == 2
    results = json.loads(run("read", trained_file, *files, "--labels", labels, "--json")[1])
    assert [result["file"] for result in results] == ["digit.png", "empty.png", "letter.png"]
    label = str(digits.test.labels[0].item())
    assert results[0]["label"] == label
    right = int(results[0]["class"] == label)
    assert text.splitlines()[-1] == f"{right} of 1 correct"
    assert [result["label"] for result in results] == [label, None, None]
    other = labels.with_name("wrong.tsv")
    other.write_text(f"file\tdigit\ndigit.png\t{(int(results[0]['class']) + 1) % 10}\n")
    wrong = run("read", trained_file, files[0], "--labels", other)[1].splitlines()
    assert "(label: " in wrong[0]
    assert wrong[1] == "0 of 1 correct"


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


def test_a_named_pipe_is_refused_at_once(run, trained_file, pictures, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (
        ["read", trained_file, pictures["digit"], "--labels", pipe],
        ["render", trained_file, "--image", pipe, "--out", tmp_path / "a.svg"],
        ["evaluate", pipe],
        ["info", pipe],
    ):
        assert "ot a regular file" in fails(run(*arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "CHECKPOINT", "--dataset", "NAME"],
        ["train", "linear", "--dataset", "NAME"],
        ["sweep", "linear", "--dataset", "NAME"],
        ["reproduce", "NAME"],
        ["reproduce", "table1", "--dataset", "digits", "--rows", "NAME"],
        ["train", "linear", "--NAME"],
        ["NAME"],
        ["train", "linear", "--plugin", "NAME"],
        ["benchmark", "--json", "/NAME/a.json"],
    ],
)
def test_a_wrong_name_that_is_not_unicode_is_shown_by_its_bytes(run, trained_file, arguments):
    values = {"CHECKPOINT": str(trained_file), "NAME": os.fsdecode(b"a\xff")}
    for key, value in values.items():
        arguments = [argument.replace(key, value) for argument in arguments]
    status, _, errors = run(*arguments)
    assert status == 2
    assert r"a\xff" in errors
    assert "udc" not in errors


def test_read_with_a_row_that_is_cut(run, trained_file, pictures, labels):
    labels.write_text("file\tdigit\ndigit.png\n")
    status, text, _ = run("read", trained_file, pictures["digit"], "--labels", labels)
    assert status == 0
    assert "None" not in text
    assert "correct" not in text


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
    assert '"link": "explore?from=upload"' in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)\s*=\s*.(https?:)?//", page)


def test_render_an_empty_page_says_so(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.npz"
    status, _, errors = run("render", trained_file, "--image", pictures["empty"], "--out", out)
    assert status == 0
    assert errors == "densembed: No digit found, so this is the field for a blank image.\n"
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

    assert "must end in .html, .svg, .pdf, .png or .npz" in render(out=tmp_path / "a.txt")
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

    monkeypatch.setattr("densembed.training.checkpoint.os.replace", full)
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


def test_version(run):
    assert run("--version") == (0, f"densembed {densembed.__version__}\n", "")


@pytest.mark.parametrize("command", [[], ["train"], ["sweep"]])
def test_help_names_models_families_and_data_sets(run, command):
    words = set(re.split(r"[\s,;]+", run(*command, "--help")[1]))
    assert set(templates().split(", ")) <= words
    assert set(FAMILIES) | {"digits", "mnist", "fashion-mnist", "cifar10", "folder:PATH"} <= words


COMMAND_NAMES = (
    "train", "evaluate", "info", "read", "render", "reproduce", "sweep", "benchmark",
)  # fmt: skip


def test_the_help_of_every_command_has_examples_that_it_takes(run):
    listed = run("--help")[1]
    for name in COMMAND_NAMES:
        assert f"\n    {name}" in listed
        text = run(name, "--help")[1]
        examples = re.findall(r"^  densembed (.*)$", text, re.M)
        assert examples
        for example in examples:
            assert build_parser().parse_args(example.split()).run
        assert "exit status: 0 " in text
        assert "130 after Ctrl-C" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "logistc-el-5"], "did you mean 'logistic-el-5'?"),
        (["train", "gausian-el-mnn-4-3"], "did you mean 'gaussian-el-mnn-4-3'?"),
        (["train", "mlp50"], "did you mean 'mlp-50'?"),
        (["train", "LINEAR"], "did you mean 'linear'?"),
        (["train", "linear", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["train", "linear", "--lerning-rate", "1"], "did you mean --learning-rate?"),
        (["sweep", "logistic-el-3,logistc-el-5"], "did you mean 'logistic-el-5'?"),
        (["sweep", "linear", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["sweep", "linear,mlp-5", "--epoch-s", "1,2"], "did you mean --epochs?"),
        (["reproduce", "tabel1"], "did you mean 'table1'?"),
        (["reproduce", "table1", "--recipe", "tund"], "did you mean 'tuned'?"),
        (["reproduce", "table1", "--rows", "logistic-el-51"], "did you mean 'logistic-el-5'?"),
        (["reproduce", "table1", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["evalute", "a.safetensors"], "did you mean 'evaluate'?"),
        (["benchmark", "--quik"], "did you mean --quick?"),
    ],
)
def test_a_misspelt_name_gets_a_guess(run, runs_root, arguments, words):
    status, text, errors = run(*arguments)
    assert (status, text) == (2, "")
    assert words in errors
    assert "Traceback" not in errors
    assert not runs_root.exists()


def test_a_guess_is_close(run):
    _, _, errors = run("reproduce", "table1", "--epochs", "1")
    assert "unrecognized arguments: --epochs 1\n" in errors


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["read", "a", ""], "image"),
        (["read", "", "a.png"], "checkpoint"),
        (["evaluate", ""], "checkpoint"),
        (["render", "a", "--image", "", "--out", "b.svg"], "--image"),
        (["train", "linear", "--out", ""], "--out"),
        (["train", "linear", "--data-dir", ""], "--data-dir"),
        (["sweep", "linear", "--out", ""], "--out"),
    ],
)
def test_an_empty_path_is_refused(run, runs_root, command, argument):
    status, text, errors = run(*command)
    assert (status, text) == (2, "")
    assert f"argument {argument}: the path is empty" in errors
    assert not runs_root.exists()


def test_only_a_folder_is_to_be_renamed(run):
    cryptic = os.fsdecode(b"rot\xe9")
    assert fails(run("train", cryptic)) == r"densembed: Model is not valid UTF-8: rot\xe9."
    line = fails(run("train", "linear", "--dataset", f"folder:{cryptic}"))
    assert line.endswith(r"folder:rot\xe9. Rename the folder.")


def test_an_unknown_name_gets_the_known_ones(run, runs_root):
    line = fails(run("train", "transformer"))
    assert "did you mean" not in line
    for known in (*templates().split(", "), *FAMILIES):
        assert known in line
    for known in EXPERIMENTS:
        assert known in run("reproduce", "everything")[2]
    for known in COMMAND_NAMES:
        assert known in run("fly")[2]


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


@pytest.fixture
def photos(tmp_path):
    """A folder of bright and dark pictures, and of a file that is not a picture."""
    random = np.random.default_rng(0)
    for name, bright in (("dark", 60), ("light", 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(20):
            pixels = (bright + random.integers(-40, 40, (9, 11, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    (tmp_path / "photos" / "dark" / "notes.txt").write_text("no picture")
    return tmp_path / "photos"


def test_every_command_names_what_a_folder_leaves_out_once(run, photos, tmp_path, runs_root):
    """However many checkpoints or trainings there are."""
    data, out = f"folder:{photos}", tmp_path / "a.safetensors"
    fast = ["--dataset", data, "--epochs", "1", "--batch-size", "16", "--device", "cpu"]
    processes = ["--processes", "1"]
    for arguments in (
        ["train", "linear", *fast],
        ["train", "linear", *fast, "--out", out],
        ["evaluate", out, out, "--dataset", data],
        ["sweep", "linear", "--learning-rate", "0.01,0.02", *fast, *processes],
        ["reproduce", "figure1", "--rows", "linear", "--seeds", "1", *fast[:2], *fast[-2:],
         *processes, "--out", tmp_path / "tables"],
    ):  # fmt: skip
        status, _, errors = run(*arguments)
        assert status == 0
        assert errors.count("densembed: not an image, skipped: dark/notes.txt\n") == 1


def test_a_folder_of_ones_own(run, photos, tmp_path):
    """Trained on, judged on, and said in `info`; what is no picture is named."""
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
    assert json.loads(text)[0]["file"] == r"rot\xe9.png"
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
