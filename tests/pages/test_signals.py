"""Explore and Compare show models of signals; the other pages link to them."""

import json

import numpy as np
import pytest
import torch

from densembed.data import load_dataset
from densembed.fields.field import view
from densembed.figures import export
from densembed.figures.signals import signal_tile
from densembed.models.registry import build, parameter_count
from densembed.runs import Run, execute
from densembed.runs.gallery import one_line
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from pages.widgets.inputs.checkpoints import keep, titles
from pages.widgets.live.live import Report
from tests.pages.conftest import assert_shows, component, get, report, shown_input, stills, visit

CONFIG = RunConfig(
    model="logistic-el-3", dataset="mnist1d", epochs=1, batch_size=1000, device="cpu"
)


@pytest.fixture
def run(small_gallery, runs_root):
    made = Run.create(CONFIG)
    assert execute(str(made.path)) == "done"
    return made


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    data = load_dataset("mnist1d")
    recorder = Recorder(CONFIG, data)
    for event in train(CONFIG, data):
        recorder.add(event)
    return recorder.checkpoint("done")


def test_a_run_of_signals_links_to_explore_and_compare(run, small_gallery):
    run.checkpoint().save(small_gallery / "other.safetensors")
    app = visit("train", run=run.identifier)
    assert not app.exception
    assert [each.value.rpartition(" of ")[2] for each in app.success] == ["1,000 test signals."]
    links = [link.proto for link in app.main.get("page_link")]
    shown = [link.label for link in links if f"model={run.identifier}" in link.query_string]
    assert "Show in Explore" in shown
    (box,) = [box for box in app.selectbox if "compare-with" in (box.key or "")]
    assert len(box.options) == 1  # the other one of signals, and none of images


def test_a_run_of_signals_shows_its_fields(run):
    app = visit("train", run=run.identifier, **{"class": "3", "example": "2"})
    test = load_dataset("mnist1d").test
    signal = test.images[test.labels == 3][1]
    assert shown_input(app)["note"] == "a test signal of class 3"
    assert_shows(shown_input(app), signal.numpy())
    expected = view(run.checkpoint(), signal, [0, -1]).fields
    drawn = stills(app)["run-fields"]
    for shown, values in zip(drawn, expected, strict=True):
        assert_shows(shown, values)
        assert shown["scale"]["high"] == pytest.approx(max(each.max() for each in expected))
        assert shown["scale"]["unit"] == "per sample"
    assert drawn[0]["curves"]["colours"] != drawn[1]["curves"]["colours"]


def test_few_test_signals_are_named_in_the_title_of_a_model(checkpoint):
    few = checkpoint.header.provenance.model_copy(update={"test_images": 8})
    header = checkpoint.header.model_copy(update={"provenance": few})
    assert one_line(header).endswith(" % error on 8 test signals")


def test_the_form_trains_on_signals(run):
    app = visit("train")
    choices = app.selectbox(key="new-data")
    assert "csv:signals.csv" in choices.help
    choices.select("mnist1d").run()
    assert not app.exception
    (size,) = [each.value for each in app.caption if "parameters" in each.value]
    model = size.split("`")[1]
    assert f"{parameter_count(build(model, (1, 40), classes=10)):,} parameters" in size
    assert any(button.label == "Start training" for button in app.button)


def test_models_of_signals_are_in_the_lists(run):
    for page, name in (("explore", "model"), ("compare", "first")):
        app = visit(page, **{name: run.identifier})
        assert not app.exception
        assert set(component(app, "live")["models"]) == {"small", run.identifier}


def test_test_signals_are_measured_values(run):
    data = load_dataset("mnist1d")
    address = f"/samples/of-model/{run.identifier}"
    facts = json.loads(get(address).body)
    assert facts["shape"] == [1, 40]
    assert facts["counts"] == data.test.labels.bincount().tolist()
    measured = data.scaling.measured(data.test.images.numpy())
    np.testing.assert_allclose(facts["range"], [measured.min(), measured.max()], 1e-6)
    values = np.frombuffer(get(f"{address}?class=4").body, np.float32).reshape(-1, 1, 40)
    np.testing.assert_allclose(values, measured[data.test.labels.numpy() == 4], 1e-6, 1e-6)
    assert get("/samples/of-data/mnist1d?label=4").body == values.tobytes()


def test_a_report_has_measured_values(checkpoint):
    header = checkpoint.header
    values = np.linspace(-2, 3, 40, dtype=np.float32)
    signal = Report({}, values.tobytes(), None).input(checkpoint)
    wanted = torch.from_numpy(values[None] - header.scaling.mean) / header.scaling.std
    torch.testing.assert_close(signal, wanted, check_dtype=False)
    for wrong in (values[1:], np.full(40, np.nan, np.float32), np.full(40, np.inf, np.float32)):
        assert Report({}, wrong.tobytes(), None).input(checkpoint) is None


def test_the_numbers_of_a_server_are_those_of_python(run):
    data = load_dataset("mnist1d").test.images[:1]
    checkpoint = Checkpoint.open(run.checkpoint_path)
    answer = get(f"/networks/{run.identifier}/fields", data.numpy().tobytes())
    fields = np.frombuffer(answer.body, np.float32).reshape(len(checkpoint.steps), 160)
    np.testing.assert_allclose(fields, np.stack(view(checkpoint, data[0]).fields)[:, 0], 1e-6)


def beside_the_files(checkpoint, folder, monkeypatch):
    """The signal of `input.csv`, which is with the checkpoint in the working directory."""
    signal = load_dataset("mnist1d").test.images[5]
    checkpoint.save(folder / "it.safetensors")
    (folder / "input.csv").write_text(export.signal_csv(signal, checkpoint.header.scaling))
    monkeypatch.chdir(folder)
    return signal


def test_an_exported_program_makes_the_same_numbers(checkpoint, tmp_path, monkeypatch):
    signal = beside_the_files(checkpoint, tmp_path, monkeypatch)
    names: dict = {}
    exec(export.signal_snippet("it.safetensors", checkpoint.steps[0]), names)
    np.testing.assert_allclose(names["after"], view(checkpoint, signal).fields[0], 1e-5)
    assert (tmp_path / "field.pdf").read_bytes().startswith(b"%PDF")


def test_a_model_of_images_beside_one_of_signals(run):
    signal = torch.linspace(-2, 2, 40)
    for opened in ("settings", "curves", "disagreements", "confusion", "export"):
        link = {"models": "2", "first": run.identifier, "second": "small", "open": opened}
        app = report(visit("compare", **link), "compare", signal, None, **link)
        assert not app.exception
        assert (
            "The second model takes grey pictures of 28 × 28, so it cannot take this input. Its "
            "training curves and settings can be compared below."
        ) in [each.value for each in app.info]


def test_a_program_of_compare_makes_the_same_numbers(checkpoint, tmp_path, monkeypatch):
    signal = beside_the_files(checkpoint, tmp_path, monkeypatch)
    names: dict = {}
    files = dict.fromkeys(("first", "second"), "it.safetensors")
    steps = {"first": checkpoint.steps[0], "second": checkpoint.steps[-1]}
    exec(export.compared_signal_snippet(files, steps, {"first": 1, "second": 3}), names)
    wanted = [field.sum(0) for field in view(checkpoint, signal).fields]
    np.testing.assert_allclose(names["fields"]["first"], wanted[0], 1e-5)
    np.testing.assert_allclose(
        names["changes"]["second − first"], wanted[-1] / 3 - wanted[0], 1e-4, 1e-6
    )
    assert (tmp_path / "differences.pdf").read_bytes().startswith(b"%PDF")


def test_an_upload_is_kept(checkpoint, small_gallery):
    key = keep(checkpoint.to_bytes(), "signals.safetensors")
    assert key in titles()


def test_a_small_picture_of_a_signal_is_its_step_function():
    values = np.array([[0.0, 1.0, 0.25, 0.75]])
    tile = signal_tile(values, 0, 1)
    assert tile.shape == (4, 64, 64)
    rows, columns = np.nonzero(tile[3])
    for step, value in enumerate(values[0]):
        middle = 64 * (0.05 + 0.9 * (step + 0.5) / 4)
        at = rows[columns == int(middle)]
        assert at.mean() + 0.5 == pytest.approx(64 * (0.9 - 0.8 * value), abs=1)
