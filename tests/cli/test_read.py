"""The command `read`."""

import io
import json
import os
import re
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import avg_pool2d

from densembed.data.images import read_picture
from densembed.fields import novelty
from densembed.models.registry import build
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint, novelty_file
from densembed.training.novelty import Novelty
from tests.cli.conftest import fails
from tests.fields.test_novelty import photographs


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


def test_read_of_unreadable_files_is_an_error(run, trained_file, pictures):
    status, text, errors = run("read", trained_file, pictures["letter"])
    assert (status, text) == (2, "")
    assert errors.count("\n") == 1


def test_read_prints_the_prediction_of_the_model(run, trained_file, trained, pictures):
    picture = read_picture(pictures["digit"], (1, 28, 28))
    probabilities = trained.model()(picture.pixels[None] / 255)[0].softmax(0)
    (result,) = json.loads(run("read", trained_file, pictures["digit"], "--json")[1])
    assert result == {
        "file": "digit.png",
        "label": None,
        "seen": "digit",
        "polarity": "dark on light",
        "class": str(probabilities.argmax().item()),
        "probability": pytest.approx(probabilities.max().item(), abs=6e-5),
        "unlike": None,  # its training images are too few to judge by
        "digits": [ANY],
        "remark": None,
        "error": None,
    }


def test_frames_that_are_not_read_are_named_once(run, trained_file, pictures, digits, tmp_path):
    page = Image.open(pictures["digit"])
    wide = Image.fromarray(np.hstack([page, page]))  # two digits: still one sentence
    frames = [page.rotate(10 * k, fillcolor=255).resize(wide.size) for k in range(1, 12)]
    wide.save(tmp_path / "a.gif", save_all=True, append_images=frames)
    wide.save(tmp_path / "one.gif")
    sentence = "a.gif has 12 frames: only the first was read."
    files = [tmp_path / "a.gif", tmp_path / "one.gif"]
    status, text, errors = run("read", trained_file, *files)
    assert (status, errors) == (0, f"densembed: {sentence}\n")
    animated, single = text.splitlines()
    assert animated.removeprefix("a.gif") == single.removeprefix("one.gif")
    status, text, errors = run("read", trained_file, *files, "--json")
    assert (status, errors) == (0, "")
    assert [result["remark"] for result in json.loads(text)] == [sentence, None]


@pytest.mark.parametrize("size", [(14, 14), (40, 56)])
def test_read_on_another_grid(run, trained_file, trained, pictures, size):
    picture = read_picture(pictures["digit"], (1, *size))
    model = build(trained.config.model, (1, *size))  # the same weights in a model of that size
    model.load_state_dict(trained.state())
    probabilities = model(picture.pixels[None] / 255)[0].softmax(0)
    grid = "x".join(map(str, size))
    (result,) = json.loads(
        run("read", trained_file, pictures["digit"], "--json", "--grid", grid)[1]
    )
    assert result["class"] == str(probabilities.argmax().item())
    assert result["probability"] == pytest.approx(probabilities.max().item(), abs=6e-5)


def test_read_compares_with_the_training_images_on_their_grid(
    run, trained_file, pictures, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        "densembed.cli.read.unlike_training", lambda image, *_: seen.append(image.pixels)
    )
    run("read", trained_file, pictures["digit"], "--grid", "56")
    run("read", trained_file, pictures["digit"])
    fine, own = seen
    assert torch.equal(own, read_picture(pictures["digit"], (1, 28, 28)).pixels)
    means = avg_pool2d(read_picture(pictures["digit"], (1, 56, 56)).pixels.float(), 2)
    assert torch.equal(fine, means.round().to(torch.uint8))


def test_read_gives_the_same_keys_for_every_picture(run, trained_file, pictures, tmp_path):
    ink = 255 - np.asarray(Image.open(pictures["digit"]))
    Image.fromarray(255 - np.hstack([ink, ink])).save(tmp_path / "two.png")
    files = [pictures["digit"], pictures["empty"], pictures["letter"], tmp_path / "two.png"]
    status, text, _ = run("read", trained_file, *files, "--json")
    results = json.loads(text)
    assert status == 2
    keys = "file label seen polarity class probability unlike digits remark error"
    assert {tuple(result) for result in results} == {tuple(keys.split())}
    contents = ["digit", "no ink", "nothing", "several digits"]
    assert [result["seen"] for result in results] == contents
    assert [result["class"] is None for result in results] == [False, True, True, False]
    assert [result["error"] is None for result in results] == [True, True, False, True]
    first, second = results[3]["digits"]
    assert first["class"] == second["class"] == results[0]["class"]
    assert results[3]["class"] == 2 * results[0]["class"]
    assert first["box"][2] < second["box"][0]
    line = run("read", trained_file, tmp_path / "two.png")[1]
    assert line.startswith(f"two.png: {first['class']} {second['class']}  ")


def test_read_marks_images_unlike_the_training_images(
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
    words = "unlike the training images"
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
        ("file\tdigit\n".encode("utf-16"), "is not UTF-8 text"),
        (b"file\tdigit\na\t1\na\t2\n", "two labels for 'a', '1' and '2'"),
        (b'file\tdigit\na\t"1\nb\t2\n', "quote in line 2 of labels.tsv is not closed"),
        (b"file\tdigit\na\t" + b"1" * 200_000, "Line 2 of labels.tsv is not a table"),
    ],
)
def test_read_with_bad_labels(run, trained_file, pictures, labels, content, words):
    labels.write_bytes(content)
    line = fails(run("read", trained_file, pictures["digit"], "--labels", labels))
    assert words in line
    assert "codec" not in line


def test_labels_with_spaces_and_none_that_fit(run, trained_file, pictures, labels):
    (result,) = json.loads(run("read", trained_file, pictures["digit"], "--json")[1])
    labels.write_text(f"digit\tfile\n{result['class']} \tdigit.png\n5\n")
    _, text, errors = run("read", trained_file, pictures["digit"], "--labels", labels)
    assert (text.splitlines()[-1], errors) == ("1 of 1 correct", "")
    for separator in "\t;":  # as Excel writes it, with a separator at the end of each line
        row = separator.join(("digit.png", result["class"], ""))
        labels.write_text(
            f"sep={separator}\nfile{separator}digit{separator}\n{row}\n", encoding="utf-8-sig"
        )
        assert (
            "1 of 1 correct" in run("read", trained_file, pictures["digit"], "--labels", labels)[1]
        )
    labels.write_text("file\tdigit\nmy/digit.png\t3\n")
    status, text, errors = run("read", trained_file, pictures["digit"], "--labels", labels)
    assert status == 0
    assert "correct" not in text
    assert errors.startswith("densembed: labels.tsv has no row for any of the files")


def test_files_of_one_name_are_told_apart(run, trained_file, pictures, labels, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(pictures["digit"], tmp_path / name)
    files = [tmp_path / "a" / "digit.png", tmp_path / "b" / "digit.png", pictures["empty"]]
    lines = run("read", trained_file, *files)[1].splitlines()
    assert [line.partition(":")[0] for line in lines] == [*map(str, files[:2]), "empty.png"]
    line = fails(run("read", trained_file, *files, "--labels", labels))
    assert line.startswith("densembed: The row of 'digit.png' in labels.tsv stands for ")
    labels.write_text(f"file\tdigit\n{files[0]}\t3\n{files[1]}\t-\ndigit.png\t5\n")
    _, text, errors = run("read", trained_file, *files, "--labels", labels, "--json")
    assert [result["label"] for result in json.loads(text)] == ["3", None, None]
    assert errors == "densembed: labels.tsv has no row for 'empty.png'.\n"


def test_a_label_that_is_no_class_is_named(run, trained_file, pictures, labels):
    labels.write_text("file\tdigit\ndigit.png\tz\n")
    status, text, errors = run("read", trained_file, pictures["digit"], "--labels", labels)
    assert (status, text.splitlines()[-1]) == (0, "0 of 1 correct")
    assert errors == "densembed: No class of the model, so counted as wrong: 'z'.\n"
    labels.write_text("file\tdigit\ndigit.png\t42\n")  # of two digits in one photograph
    assert run("read", trained_file, pictures["digit"], "--labels", labels)[2] == ""


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


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_labels_of_a_spreadsheet_and_of_another_system(run, trained_file, pictures, tmp_path, form):
    """A mark at the beginning, and é as one character or as two."""
    shutil.copy(pictures["digit"], tmp_path / "é.png")
    (tmp_path / "labels.tsv").write_text(
        f"file\tdigit\n{unicodedata.normalize(form, 'é.png')}\t3\n", encoding="utf-8-sig"
    )
    arguments = "--labels", tmp_path / "labels.tsv", "--json"
    (result,) = json.loads(run("read", trained_file, tmp_path / "é.png", *arguments)[1])
    assert result["label"] == "3"


@pytest.mark.parametrize("name", ["nl\nx.png", "é \u202e.png", os.fsdecode(b"rot\xe9.png")])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_script_finds_a_file_again(
    run, trained_file, pictures, tmp_path, monkeypatch, name, encoding
):
    """JSON has the file's own name, and the text what can be printed of it."""
    shutil.copy(pictures["digit"], tmp_path / name)
    _, text, _ = run("read", trained_file, tmp_path / name)
    assert text.startswith(f"{printable(name)}: ")
    for files in ([tmp_path / name], [tmp_path / name, Path("..") / name]):
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding))
        assert run("read", trained_file, *files, "--json")[0] == 0
        found = [each["file"] for each in json.loads(written.getvalue().decode(encoding))]
        assert found == [name] if len(files) == 1 else found == [*map(str, files)]


def test_novelty_reads_only_the_data_folder(run, trained, tmp_path):
    """A checkpoint may name any folder of this machine."""
    config = trained.config.model_copy(update={"dataset": f"folder:{tmp_path / 'own'}"})
    header = trained.header.model_copy(update={"config": config})
    path = tmp_path / "a.safetensors"
    replace(trained, header=header).save(path)
    status, text, errors = run("novelty", path, "--data-dir", tmp_path / "data")
    assert (status, text) == (2, "")
    assert errors == (
        "densembed: a.safetensors was trained on data outside of the data folder. To use them, add "
        f"--data-dir with a folder that contains {tmp_path / 'own'}.\n"
    )


def test_novelty_goes_on_after_a_file_that_cannot_be_written(
    run, trained_file, tmp_path, monkeypatch
):
    """It is the promise of its help; a folder stands for one that is read-only."""
    for name in ("LEAST_IMAGES", "HELD_OUT"):
        monkeypatch.setattr(f"densembed.training.novelty.{name}", 500)
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path in paths:
        shutil.copy(trained_file, path)
    novelty_file(paths[0]).mkdir()
    status, text, errors = run("novelty", *paths)
    assert status == 2
    (line,) = errors.splitlines()
    assert line == f"densembed: {novelty_file(paths[0])} cannot be written: Is a directory."
    assert text.startswith("b.safetensors: ")
    assert novelty_file(paths[1]).is_file()


def test_novelty_of_classes_that_changed(run, trained, digits, tmp_path, monkeypatch):
    """The prototypes of a class were those of another one, or there was no such class."""
    for name in ("LEAST_IMAGES", "HELD_OUT"):
        monkeypatch.setattr(f"densembed.training.novelty.{name}", 500)
    path = tmp_path / "a.safetensors"
    trained.save(path)
    expected = Novelty.fit(trained.model(), digits).prototypes
    turned = digits.in_order(digits.classes[::-1])  # the same data, as another version sorted them
    monkeypatch.setattr("densembed.cli.data.load_dataset", lambda *_: turned)
    assert run("novelty", path)[0] == 0
    np.testing.assert_array_equal(Checkpoint.open(path).novelty.prototypes, expected)
    novelty_file(path).unlink()
    for classes in (("zero", *digits.classes[1:]), (*digits.classes, "ten")):
        changed = replace(digits, classes=classes)
        monkeypatch.setattr("densembed.cli.data.load_dataset", lambda *_, now=changed: now)
        line = fails(run("novelty", path))
        assert line.startswith("densembed: a.safetensors has the classes ")
        assert not novelty_file(path).exists()


def test_novelty_keeps_the_statistics_that_there_are(run, trained, tmp_path, monkeypatch):
    for name in ("LEAST_IMAGES", "HELD_OUT"):
        monkeypatch.setattr(f"densembed.training.novelty.{name}", 500)
    path = tmp_path / "a.safetensors"
    replace(trained, novelty=None).save(path)
    first = run("novelty", path)
    before = novelty_file(path).stat()
    assert run("novelty", path) == first
    assert novelty_file(path).stat() == before
    Checkpoint.open(path).save(path)  # which writes them into the file itself
    assert run("novelty", path) == first
    assert not novelty_file(path).exists()


def test_novelty_of_scores_that_overflow(run, trained, tmp_path, monkeypatch):
    """The statistics had NaN in them, which is no JSON."""
    for name in ("LEAST_IMAGES", "HELD_OUT"):
        monkeypatch.setattr(f"densembed.training.novelty.{name}", 500)
    path = tmp_path / "a.safetensors"
    extreme = {name: torch.full_like(value, 3e38) for name, value in trained.tensors.items()}
    replace(trained, tensors=extreme).save(path)
    status, text, errors = run("novelty", path)
    assert (status, errors) == (0, "")
    assert text == "a.safetensors: some scores are not finite; nothing written\n"
    assert not novelty_file(path).exists()
