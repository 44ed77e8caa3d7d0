"""The commands on signals."""

import base64
import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from densembed.data import load_dataset
from densembed.fields.field import field
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import EXAMPLES
from tests.cli.conftest import FAST, fails
from tests.conftest import is_sentence
from tests.runs.conftest import InThisProcess

NAME = "gaussian-el-mnn-6-3"


@pytest.fixture
def table(tmp_path):
    """A CSV file of 40 signals with 8 values in two classes."""
    random = np.random.default_rng(0)
    path = tmp_path / "own.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*(f"t{k}" for k in range(8)), "state"])
        for n in range(40):
            bump = 5 * (np.arange(8) // 4 == n % 2) + 20
            rows.writerow([*(bump + random.normal(0, 0.3, 8)).round(3), ["low", "high"][n % 2]])
    return path


@pytest.fixture
def model(run, table, tmp_path):
    """A model of that table, and its checkpoint."""
    path = tmp_path / "own.safetensors"
    options = ["--batch-size", "8", "--epochs", "30", "--learning-rate", "0.02"]
    status, text, errors = run("train", NAME, "--dataset", f"csv:{table}", *options, "--out", path)
    assert (status, errors) == (0, "")
    assert "of 8 test signals" in text
    return path


def test_a_table_is_trained_evaluated_and_listed(run, model, table):
    assert run("evaluate", model, "--dataset", f"csv:{table}") == (
        0,
        "test error: 0.00 % of 8 test signals\n",
        "",
    )
    assert f"--dataset csv:{table}" in fails(run("evaluate", model))
    status, text, _ = run("info", model)
    assert status == 0
    assert all(part in text for part in ("own.csv", NAME, "0.00 % of 8 test signals"))
    header = Checkpoint.open(model).header
    assert (header.input_shape, header.classes) == ((1, 8), ["high", "low"])
    assert header.scaling == load_dataset(f"csv:{table}").scaling


def test_a_model_keeps_the_scaling_of_its_training(run, model, table, tmp_path):
    """Signals of one class alone have another mean, but are the same inputs."""
    rows = table.read_text().splitlines()
    low = [row for row in rows if row.endswith("low")]
    (tmp_path / "low.csv").write_text("\n".join([rows[0], *low, *rows[2:12:2]]))
    status, text, _ = run("evaluate", model, "--dataset", f"csv:{tmp_path / 'low.csv'}")
    assert (status, text.startswith("test error: 0.00 %")) == (0, True)


def test_no_result_replaces_the_table(run, table, tmp_path):
    before = table.read_bytes()
    line = fails(run("train", "linear", "--dataset", f"csv:{table}@state", "--out", table))
    assert f"--out {table} would replace {table}, which the command reads" in line
    assert table.read_bytes() == before
    own = table.rename(tmp_path / "sweep.csv")
    line = fails(run("sweep", "linear", "--dataset", f"csv:{own}", "--out", tmp_path))
    assert f"would replace {own}, which the command reads" in line
    assert own.read_bytes() == before


def test_signals_of_a_file_are_read(run, model, table, tmp_path):
    status, text, errors = run("read", model, table)
    lines = text.splitlines()
    assert (status, errors, len(lines)) == (0, "", 41)
    assert lines[-1] == "40 of 40 correct"
    assert lines[0].startswith("own.csv, line 2: low  ")
    new = tmp_path / "new.csv"
    signals = [row.split(",")[:-1] for row in table.read_text().splitlines()[1:4]]
    new.write_text("\n".join(";".join(row).replace(".", ",") for row in signals))
    status, text, _ = run("read", model, new, "--json")
    found = json.loads(text)
    assert [each["class"] for each in found] == ["low", "high", "low"]
    assert [each["line"] for each in found] == [1, 2, 3]
    checkpoint = Checkpoint.open(model)
    inputs = checkpoint.header.scaling(np.array(signals, float))[:, None]
    scores = checkpoint.model()(torch.from_numpy(inputs).float()).softmax(1).amax(1)
    assert [each["probability"] for each in found] == pytest.approx(scores.tolist(), abs=1e-4)


def test_a_script_finds_a_file_of_signals_again(run, model, table):
    strange = table.with_name("nl\nx.csv")
    strange.write_bytes(table.read_bytes())
    assert {each["file"] for each in json.loads(run("read", model, strange, "--json")[1])} == {
        "nl\nx.csv"
    }
    assert run("read", model, strange)[1].startswith(r"nl\nx.csv, line 2: low")


def test_a_file_that_does_not_fit_is_named(run, model, tmp_path):
    wrong = tmp_path / "wrong.csv"
    for content, says in (("1,2,3,a\n1,2,3,b\n", "3 values"), ("1,x,3\n", "'x'"), ("", "empty")):
        wrong.write_text(content)
        status, _, errors = run("read", model, wrong)
        assert (status, says in errors) == (2, True)
    status, _, errors = run("read", model, tmp_path / "missing.csv")
    assert (status, "No such file" in errors) == (2, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1,2,4,7,5,6,9\n", "signals of 7 values, or of 6 and a class, but the model takes 8."),
        ("1,2,4,7,a\n", "signals of 4 values beside the class, but the model takes 8."),
        ("1,a\n", "signals of 1 value beside the class, but the model takes 8."),
        ("0,1,2,3,4,5,6,7\n", "The only line of new.csv counts from 0, so it is read as headings"),
    ],
)
def test_the_length_of_signals_without_a_class_is_that_of_the_row(
    run, model, tmp_path, content, says
):
    (tmp_path / "new.csv").write_text(content)
    _, _, errors = run("read", model, tmp_path / "new.csv")
    assert says in errors
    assert is_sentence(errors.partition(": ")[2].strip())
    # The remedy of the last one.
    (tmp_path / "new.csv").write_text("a,b,c,d,e,f,g,h\n0,1,2,3,4,5,6,7\n")
    assert run("read", model, tmp_path / "new.csv")[0] == 0


@pytest.mark.parametrize("dataset", ["csv:", "csv:a\0b", "csv:" + "a" * 190, "csv:@"])
def test_a_model_reads_signals_whatever_its_own_data_are_called(run, model, table, dataset):
    """The path of the model's own table was judged as if it were to be read."""
    opened = Checkpoint.open(model)
    config = opened.config.model_copy(update={"dataset": dataset})
    header = opened.header.model_copy(update={"config": config})
    strange = model.with_name("strange.safetensors")
    Checkpoint(header, opened.tensors).save(strange)
    status, text, errors = run("read", strange, table)
    assert (status, errors) == (0, "")
    assert text.replace("strange", model.stem) == run("read", model, table)[1]


def test_a_value_that_overflows_is_named_by_its_line(run, model, table, tmp_path):
    """The probability was NaN, which is not JSON, and the class that of the label."""
    rows = table.read_text().splitlines()
    rows[6] = ",".join(["1e300", *rows[6].split(",")[1:]])
    (tmp_path / "new.csv").write_text("\n".join(rows))
    says = "Line 7 of new.csv has a value that is not between −1e+30 and 1e+30."
    status, text, _ = run("read", model, tmp_path / "new.csv", "--json")
    (found,) = json.loads(text, parse_constant=pytest.fail)
    assert status == 2
    assert found["error"].startswith(says)
    out = tmp_path / "a.npz"
    assert says in fails(run("render", model, "--image", tmp_path / "new.csv", "--out", out))
    assert not out.exists()


def test_the_column_of_a_model_s_own_data_is_explained(run, model, table, tmp_path):
    kept = Checkpoint.open(model)
    config = kept.config.model_copy(update={"dataset": "csv:own.csv@motion"})
    header = kept.header.model_copy(update={"config": config})
    Checkpoint(header, kept.tensors).save(tmp_path / "state.safetensors")
    line = fails(run("render", tmp_path / "state.safetensors", "--image", table, "--out", "a.npz"))
    assert line.endswith("The model's own data have their class in the column 'motion'.")


def test_a_picture_is_no_table(run, model, pictures, tmp_path):
    for command in (["read", model], ["render", model, "--out", tmp_path / "a.npz", "--image"]):
        _, _, errors = run(*command, pictures["digit"])
        assert "digit.png is an image, but the model takes signals." in errors


def test_labels_that_are_no_classes_are_named(run, model, table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("low", "zebra"))
    status, text, errors = run("read", model, other)
    assert (status, text.splitlines()[-1]) == (0, "20 of 40 correct")
    assert errors == "densembed: No class of the model, so counted as wrong: 'zebra'.\n"


def test_classes_of_other_names_are_named(run, model, table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("low", "2").replace("high", "1"))
    status, text, errors = run("evaluate", model, "--dataset", f"csv:{other}")
    assert (status, text) == (0, "test error: 0.00 % of 8 test signals\n")
    assert errors == (
        "densembed: own.safetensors has the classes 'high', 'low', but other.csv has "
        "'1', '2': they are compared in this order.\n"
    )


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_a_figure(run, model, table, tmp_path, suffix):
    out = tmp_path / f"field.{suffix}"
    status, text, errors = run("render", model, "--image", table, "--out", out)
    assert (status, text) == (0, f"saved: {out}\n")
    assert "40 signals; this is the one of line 2" in errors
    assert out.stat().st_size > 3000
    if suffix == "svg":
        drawn = out.read_text()
        assert all(f">{part}<" in drawn for part in ("t in samples", "before training, step 0"))


def test_the_fields_as_arrays(run, model, table, tmp_path):
    out = tmp_path / "field.npz"
    run("render", model, "--image", table, "--out", out, "--resolution", "2")
    arrays = np.load(out)
    assert set(arrays) == {"before", "after", "x", "input"}
    checkpoint = Checkpoint.open(model)
    first = np.array(table.read_text().splitlines()[1].split(",")[:-1], float)
    np.testing.assert_allclose(arrays["input"][0], checkpoint.header.scaling(first), rtol=1e-5)
    x = torch.from_numpy(arrays["input"][None])
    for name, index in (("before", 0), ("after", -1)):
        expected = field(checkpoint.model(index), x, 2).values[0]
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-5)


def test_a_finer_grid_has_the_same_errors(run, tmp_path):
    out = tmp_path / "a.safetensors"
    run("train", "logistic-el-9", "--dataset", "mnist1d", *FAST, "--out", out)
    status, expected, _ = run("evaluate", out)
    assert status == 0
    assert "of 1,000 test signals" in expected
    assert run("evaluate", out, "--grid", "120") == (0, expected, "")
    assert "one number of samples" in fails(run("evaluate", out, "--grid", "40x20"))


def test_a_sweep(run, table, tmp_path, monkeypatch):
    monkeypatch.setattr("densembed.cli.sweep.Cluster", InThisProcess)
    options = ["--dataset", f"csv:{table}", "--epochs", "2", "--processes", "1"]
    out = tmp_path / "sweep"
    status, text, _ = run("sweep", "linear,logistic-el-3", *options, "--out", out)
    assert status == 0
    assert "linear" in text
    assert len((out / "sweep.csv").read_text().splitlines()) == 3


def test_pages_have_the_measured_values(run, model, table, tmp_path):
    out, page = tmp_path / "site", tmp_path / "x.html"
    own = ("--dataset", f"csv:{table}")
    assert run("site", out, model, *own)[0] == 0
    (examples,) = content(out / "index.html")["samples"]
    test = load_dataset(own[1]).test
    scaling = Checkpoint.open(model).header.scaling
    counts = np.minimum(np.bincount(test.labels), EXAMPLES).tolist()
    assert (examples["shape"], examples["counts"]) == ([1, 8], counts)
    values = np.frombuffer(base64.b64decode(examples["images"]), np.float32).reshape(-1, 8)
    chosen = np.concatenate([np.flatnonzero(test.labels == k)[:EXAMPLES] for k in range(2)])
    np.testing.assert_allclose(values, scaling.measured(test.images.numpy())[chosen, 0], 1e-5)
    assert run("render", model, "--image", table, "--out", page)[0] == 0
    site = content(page)
    first = table.read_text().splitlines()[1].split(",")[:-1]
    signal = np.frombuffer(base64.b64decode(site["signal"]), np.float32)
    np.testing.assert_allclose(signal, np.array(first, float), 1e-5)
    assert site["samples"] == []


def content(page: Path) -> dict:
    """What is written into a page of a site."""
    return json.loads(re.search(r'id="site">(.*?)</script>', page.read_text(), re.DOTALL)[1])


def test_commands_of_images_say_so(run, model, table, tmp_path, trained_file):
    page = tmp_path / "x.svg"
    on = ("--image", table, "--out", page, "--grid", "20")
    assert "--grid is for images" in fails(run("render", model, *on))
    assert "Tables are for images" in fails(run("export", model, "--to", "csv"))
    assert "needs a data set of images, unlike mnist1d" in fails(
        run("reproduce", "table1", "--dataset", "mnist1d")
    )
    assert "--labels is for images" in fails(run("read", model, table, "--labels", table))
    assert "takes signals of shape" in fails(run("evaluate", model, "--dataset", "digits"))
    assert "takes images of shape" in fails(run("evaluate", trained_file, "--dataset", "mnist1d"))
    status, text, _ = run("novelty", model)
    assert (status, text.endswith("no such statistics; nothing written\n")) == (0, True)


def test_an_exported_network_has_the_same_logits(run, model, tmp_path):
    out = tmp_path / "own.pt2"
    assert run("export", model, "--to", "torch", "--out", out)[0] == 0
    extra = {"metadata.json": ""}
    program = torch.export.load(out, extra_files=extra).module()
    x = torch.randn(5, 1, 8, generator=torch.Generator().manual_seed(0))
    checkpoint = Checkpoint.open(model)
    torch.testing.assert_close(program(x), checkpoint.model()(x))
    scaling = checkpoint.header.scaling
    about = json.loads(extra["metadata.json"])
    assert about["normalisation"] == f"values minus {scaling.mean}, divided by {scaling.std}"
    assert json.loads(about["input_shape"]) == [1, 8]


def test_a_training_on_several_grids(run, tmp_path):
    out = tmp_path / "a.safetensors"
    options = ["--dataset", "mnist1d", "--grid", "20,data", *FAST]
    status, text, _ = run("train", "logistic-el-9", *options, "--out", out)
    assert (status, "of 1,000 test signals" in text) == (0, True)
    assert Checkpoint.open(out).header.input_shape == (1, 40)
    options[3] = "20x30"
    assert "one number of samples" in fails(run("train", "linear", *options, "--out", out))
