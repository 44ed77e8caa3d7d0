"""The pages show models of images, and say so where models of signals could be looked for."""

import pytest

from densembed.data import load_dataset
from densembed.runs import Run, execute
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from pages.widgets.inputs.checkpoints import keep, titles
from tests.pages.conftest import visit

CONFIG = RunConfig(
    model="logistic-el-3", dataset="mnist1d", epochs=1, batch_size=1000, device="cpu"
)


@pytest.fixture
def run(small_gallery, runs_root):
    made = Run.create(CONFIG)
    assert execute(str(made.path)) == "done"
    return made


def test_a_run_of_signals_is_shown_without_a_field(run):
    app = visit("train", run=run.identifier)
    assert not app.exception
    (caption,) = [one.value for one in app.caption if "model of signals" in one.value]
    assert f"render {run.identifier}.safetensors" in caption
    assert "Show in Explore" not in str(app.main)


def test_lists_have_images_only(run):
    app = visit("train")
    choices = app.selectbox(key="new-data")
    assert "MNIST" in choices.options
    assert "MNIST-1D" not in choices.options
    assert "command line" in choices.help


def test_a_model_of_signals_is_not_shown_on_explore(run, small_gallery):
    app = visit("explore", model=run.identifier)
    assert not app.exception
    assert list(titles()) == ["small"]


def test_an_upload_is_refused():
    data = load_dataset("mnist1d")
    recorder = Recorder(CONFIG, data)
    for event in train(CONFIG, data):
        recorder.add(event)
    with pytest.raises(CheckpointError, match="model of signals"):
        keep(recorder.checkpoint("done").to_bytes(), "signals.safetensors")
