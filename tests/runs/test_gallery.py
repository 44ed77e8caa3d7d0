"""What a visitor can pick, under keys that are data."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from densembed.data import load_dataset
from densembed.experiments.frontier import best
from densembed.experiments.paper import TABLES
from densembed.paths import app_folder, checkpoint_path, gallery_folder
from densembed.runs import Run, gallery
from densembed.runs.gallery import Entry, entries, find
from densembed.runs.sweep import Sweep
from densembed.runs.sweep_plan import make_plan
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError


@pytest.fixture
def shelf(gallery_root, runs_root, trained):
    """Two shipped models and two runs, of which one has no checkpoint yet."""
    for name in ("b-model", "a-model"):
        trained.save(gallery_root / f"{name}.safetensors")
    (gallery_root / "notes.txt").write_text("not a model")
    done, queued = Run.create(RunConfig()), Run.create(RunConfig())
    trained.save(done.checkpoint_path)
    return done, queued


def test_shipped_ones_come_first_then_runs(shelf):
    done, _ = shelf
    assert [entry.key for entry in entries()] == ["a-model", "b-model", done.identifier]


def test_entries_open_and_have_a_title(shelf, trained):
    for entry in entries():
        assert entry.open().header == trained.header
        error = trained.errors[0]
        parts = ["Logistic-EL with mNN, B = 4, B₀ = 2", f"{error:.2f} % error"]
        for part in parts:
            assert part in entry.title
        assert trained.header.provenance.dataset_title in entry.title


def test_title_before_the_first_epoch_has_no_error(gallery_root, trained):
    header = trained.header.model_copy(update={"epochs": []})
    type(trained)(header, trained.tensors).save(gallery_root / "new.safetensors")
    assert "error" not in find("new").title


def test_find(shelf):
    done, queued = shelf
    assert find("a-model").open()
    assert find(done.identifier).path == done.checkpoint_path
    assert find(queued.identifier) is None


def test_a_member_of_a_sweep_is_found_and_not_listed(shelf, trained):
    config = trained.config.model_dump(exclude={"learning_rate"})
    sweep = Sweep.create(make_plan(config, {"learning_rate": [0.05, 0.1]}))
    done, waiting = sweep.jobs()
    done.path.parent.mkdir()
    trained.save(done.path.parent / "other.safetensors")
    assert find(sweep.key(done)) is None
    header = trained.header.model_copy(update={"config": done.config, "outcome": "done"})
    type(trained)(header, trained.tensors).save(done.path)
    before = [entry.key for entry in entries()]
    member = find(sweep.key(done))
    assert (member.key, member.path) == (f"{sweep.identifier}-1", done.path)
    assert member.open().errors == trained.errors
    assert f"{trained.errors[0]:.2f} % error" in member.title
    assert find(sweep.key(waiting)) is None
    assert find(f"{sweep.identifier}-other") is None
    assert [entry.key for entry in entries()] == before


@pytest.mark.parametrize(
    "key", ["", ".", "..", "../gallery/a-model", "a-model.safetensors", "{absolute}", "a-model\x00"]
)
def test_a_key_is_never_a_path(shelf, gallery_root, key):
    assert find(key.replace("{absolute}", str(gallery_root / "a-model"))) is None


@given(st.text(max_size=50))
def test_no_text_finds_what_is_not_there(text):
    assert find(text) is None


def test_a_file_is_read_once_and_again_when_it_changes(gallery_root, trained, monkeypatch):
    path = gallery_root / "a.safetensors"
    trained.save(path)
    os.utime(path, ns=(1, 1_000_000_000))
    entry = Entry("a", path)
    first = entry.open()
    assert entry.open() is first
    monkeypatch.setattr(gallery.Checkpoint, "open", lambda *_: pytest.fail("It is read again."))
    assert entry.open() is first
    monkeypatch.undo()
    header = trained.header.model_copy(update={"outcome": "stopped"})
    type(trained)(header, trained.tensors).save(path)
    assert entry.open().header.outcome == "stopped"


def test_damaged_and_deleted_ones_say_so(gallery_root, trained):
    path = gallery_root / "a.safetensors"
    path.write_bytes(b"<html>")
    with pytest.raises(CheckpointError, match="is not a densembed checkpoint"):
        Entry("a", path).open()
    trained.save(gallery_root / "b.safetensors")
    entry = find("b")
    entry.path.unlink()
    with pytest.raises(CheckpointError, match=r"^b no longer exists\.$"):
        entry.open()


def test_where_it_is(monkeypatch, tmp_path, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(tmp_path / "none"))
    assert gallery_folder() == tmp_path / "none"
    assert list(entries()) == []
    monkeypatch.delenv("DENSEMBED_GALLERY")
    monkeypatch.chdir(tmp_path)
    assert gallery_folder() == app_folder() / "checkpoints/paper"  # from any working directory


def test_the_network_that_is_opened_answers(shelf):
    assert find("a-model").open().model()(torch.rand(2, 1, 28, 28)).shape == (2, 10)


def test_peek_agrees_with_open(trained, trained_file, tmp_path):
    assert Checkpoint.peek(trained_file) == Checkpoint.open(trained_file).header
    for content in (b"", b"x" * 7, b"\xff" * 100, trained_file.read_bytes()[:200]):
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(CheckpointError):
            Checkpoint.peek(tmp_path / "bad.safetensors")
    with pytest.raises(CheckpointError):
        Checkpoint.peek(tmp_path / "absent.safetensors")


SHIPPED = Path(__file__).parents[2] / "checkpoints/paper"
NUMBERS = {"nine d": 9, "25 d": 25, "64 d": 64, "225 d": 225, "100 d": 100, "36 d": 36, "20 d": 20}
MOST_BYTES = 15 * 10**6


def test_all_shipped_models_have_a_description_and_are_small():
    assert {path.stem for path in SHIPPED.glob("*.safetensors")} == set(gallery.DESCRIPTIONS)
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) <= MOST_BYTES


@pytest.mark.parametrize("key", [key for key in gallery.DESCRIPTIONS if key.endswith("mnist1d")])
def test_shipped_models_of_signals_have_the_error_that_they_state(key):
    checkpoint = Checkpoint.open(SHIPPED / f"{key}.safetensors")
    test = load_dataset("mnist1d").test
    with torch.inference_mode():
        wrong = checkpoint.model()(test.images).argmax(1) != test.labels
    assert checkpoint.errors == [pytest.approx(100 * float(wrong.double().mean()))]
    assert checkpoint.config.dataset == "mnist1d"
    assert checkpoint.parameters <= 5000


def test_descriptions_match_the_models():
    models = {key: Checkpoint.open(SHIPPED / f"{key}.safetensors") for key in gallery.DESCRIPTIONS}
    linear = models["linear"].parameters
    for key, story in gallery.DESCRIPTIONS.items():
        checkpoint = models[key]
        if match := re.search(r"([\d,]+) parameters", story):
            stated = int(match[1].replace(",", ""))
            exact = "at most" not in story
            assert stated == checkpoint.parameters if exact else stated >= checkpoint.parameters
        if match := re.search("|".join(NUMBERS), story.lower()):
            embedding = checkpoint.model().embedding
            assert embedding.groups * embedding.num_densities == NUMBERS[match[0]]
        built_in = checkpoint.config.dataset in ("digits", "mnist1d")
        assert ("Uses built-in data" in story) == built_in
        assert ("Reads signals" in story) == (len(checkpoint.header.input_shape) == 2)
    assert 20 * models["logistic-el-5"].parameters <= linear
    assert models["logistic-el-8"].errors[0] <= 10
    assert 2 * models["logistic-el-15"].parameters < linear
    moving = [row for row in TABLES["mnist"] if "mnn" in row.model]
    assert min(moving, key=lambda row: row.parameters).model == "logistic-el-mnn-6-3"
    assert min(TABLES["mnist"], key=lambda row: row.error).model == "logistic-el-mnn-10-5"
    table = json.loads((SHIPPED / "frontier-mnist.json").read_text())
    for budget in table["budgets"]:
        model = best(table, budget)["model"]
        assert f"at most {budget:,} parameters" in gallery.DESCRIPTIONS[f"frontier-{model}"]


def test_a_file_comes_before_a_model_of_its_name_and_a_folder_does_not(
    shelf, tmp_path, monkeypatch
):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    included, own = gallery_folder() / "a-model.safetensors", Path("a-model")
    assert checkpoint_path("a-model") == included
    own.mkdir()
    assert checkpoint_path("a-model") == included
    own.rmdir()
    own.write_bytes(b"mine")
    assert checkpoint_path("a-model").read_bytes() == b"mine"


@pytest.mark.parametrize("content", ["[]", "3", "{", '{"rows": []}', '"x"'])
def test_a_file_without_results_is_none(gallery_root, content):
    (gallery_root / "families-mnist-tuned.json").write_text(content)
    assert gallery.result("families-mnist-tuned") is None
    assert gallery.results("families-") == []
