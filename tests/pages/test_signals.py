"""Explore shows models of signals; the other pages link to it."""

import json

import numpy as np
import pytest
import torch

from densembed.data import load_dataset
from densembed.fields.field import view
from densembed.figures import export
from densembed.models.registry import build, parameter_count
from densembed.runs import Run, execute
from densembed.runs.gallery import one_line
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from pages.widgets.inputs.checkpoints import keep, titles
from pages.widgets.live.live import Report
from tests.pages.conftest import get, visit

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


def test_a_run_of_signals_links_to_explore(run):
    app = visit("train", run=run.identifier)
    assert not app.exception
    assert [each.value.rpartition(" of ")[2] for each in app.success] == ["1,000 test signals."]
    links = [link.proto for link in app.main.get("page_link")]
    shown = [link.label for link in links if f"model={run.identifier}" in link.query_string]
    assert "Show in Explore" in shown
    assert not any("compare-with" in (box.key or "") for box in app.selectbox)


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


def test_models_of_signals_are_in_the_list_of_explore_alone(run):
    app = visit("explore", model=run.identifier)
    assert not app.exception
    assert list(titles()) == ["small"]
    assert set(titles(signals=True)) == {"small", run.identifier}
    app = visit("compare", first=run.identifier)
    assert not app.exception
    assert [each.value for each in app.info] == [
        "Models of signals cannot be compared yet. Explore shows them."
    ]


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


def test_an_exported_program_makes_the_same_numbers(checkpoint, tmp_path, monkeypatch):
    signal = load_dataset("mnist1d").test.images[5]
    checkpoint.save(tmp_path / "it.safetensors")
    (tmp_path / "input.csv").write_text(export.signal_csv(signal, checkpoint.header.scaling))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(export.signal_snippet("it.safetensors", checkpoint.steps[0]), names)
    np.testing.assert_allclose(names["after"], view(checkpoint, signal).fields[0], 1e-5)
    assert (tmp_path / "field.pdf").read_bytes().startswith(b"%PDF")


def test_an_upload_is_kept_where_signals_are_shown(checkpoint, small_gallery):
    data = checkpoint.to_bytes()
    with pytest.raises(CheckpointError, match="model of signals"):
        keep(data, "signals.safetensors")
    key = keep(data, "signals.safetensors", signals=True)
    assert key in titles(signals=True)
    assert key not in titles()
