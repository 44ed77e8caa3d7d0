"""A visitor's own checkpoint: taken, shown on both pages, refused with a sentence."""

import gc
import weakref

import numpy as np
import pytest
from streamlit.runtime import caching

from densembed.cache import size
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from densembed.training.checkpoint import _networks as networks
from pages.widgets.common.cache import kept
from pages.widgets.inputs.checkpoints import MAX_BYTES, MAX_KEPT, MAX_VALUES
from tests.conftest import is_sentence
from tests.pages.conftest import column, settle, visit, warnings
from tests.pages.test_compare import sample


@pytest.fixture
def own(trained, tmp_path) -> Checkpoint:
    """A model that is in no gallery."""
    checkpoint = Checkpoint(trained.header, {k: 1.2 * v for k, v in trained.tensors.items()})
    checkpoint.save(tmp_path / "own.safetensors")
    return checkpoint


def bring(app, data: bytes, key: str = "model", name: str = "own.safetensors"):
    file = (name, data, "application/octet-stream")
    return settle(app.file_uploader(key=f"file-{key}").set_value(file).run())


def test_an_upload_is_explored_compared_and_found_again(small_gallery, own, tmp_path):
    """playground#20, cnn-explainer#17, #31: people want their own model."""
    data = (tmp_path / "own.safetensors").read_bytes()
    app = bring(visit(), data)
    expected = view(own, sample()).fields[-1].sum(0)
    key = app.selectbox(key="model").value
    assert key == f"upload-{own.digest[:12]}"
    assert app.query_params["model"] == key
    assert any("deleted when this session ends" in caption.value for caption in app.caption)
    settle(app.switch_page("pages/compare.py").run())
    assert app.selectbox(key="first").value == key
    np.testing.assert_allclose(column(app, "first"), expected, 0, np.ptp(expected) / 10_000)
    settle(app.switch_page("pages/explore.py").run())
    assert app.selectbox(key="model").value == key


def test_each_column_takes_a_file(small_gallery, own, trained, tmp_path):
    app = visit("compare", first="small", second="small")
    app = bring(app, (tmp_path / "own.safetensors").read_bytes(), "second")
    for name, checkpoint in (("first", trained), ("second", own)):
        expected = view(checkpoint, sample()).fields[-1].sum(0)
        np.testing.assert_allclose(column(app, name), expected, 0, np.ptp(expected) / 10_000)
    assert app.selectbox(key="first").value == "small"


@pytest.mark.parametrize(("page", "key"), [("", "model"), ("compare", "second")])
def test_a_link_to_an_upload_says_that_it_is_gone(small_gallery, page, key):
    app = visit(page, **{key: "upload-0123456789ab"})
    (warning,) = warnings(app)
    assert "session" in warning
    assert "deleted" in warning
    assert "upload-" not in app.selectbox(key=key).value


def test_a_link_to_an_upload_works_where_the_file_is(small_gallery, own, tmp_path):
    """The key is the file's content."""
    app = bring(visit(), (tmp_path / "own.safetensors").read_bytes(), name="renamed.safetensors")
    other = bring(visit(), (tmp_path / "own.safetensors").read_bytes())
    assert app.query_params["model"] == other.query_params["model"]


@pytest.mark.parametrize("name", ["own", "own.bin", "own.safetensors.txt"])
def test_a_checkpoint_is_read_whatever_its_name_is(small_gallery, own, tmp_path, name):
    app = bring(visit(model="small"), (tmp_path / "own.safetensors").read_bytes(), name=name)
    assert not app.error
    assert app.selectbox(key="model").value == f"upload-{own.digest[:12]}"


@pytest.mark.parametrize("name", ["photo.heic", "photo"])
def test_another_file_gets_our_sentence_whatever_its_name_is(small_gallery, name):
    app = bring(visit(model="small"), b"\xff\xd8\xff" * 99, name=name)
    (error,) = app.error
    assert "not a densembed checkpoint" in error.value


def test_a_file_names_no_place_on_this_machine(small_gallery, trained, tmp_path):
    header = trained.header.model_copy(deep=True)
    header.config = header.config.model_copy(update={"dataset": "folder:/etc@1x28x28"})
    Checkpoint(header, trained.tensors).save(tmp_path / "sly.safetensors")
    app = bring(visit(), (tmp_path / "sly.safetensors").read_bytes())
    (kept,) = app.session_state["uploads"].values()
    assert kept.checkpoint.config.dataset == "elsewhere"
    assert kept.data == (tmp_path / "sly.safetensors").read_bytes()


def large(trained, path) -> bytes:
    header = trained.header.model_copy(update={"steps": list(range(1000)), "epochs": []})
    header.input_shape = (1, 40, 40)
    tensors = {
        name: value[:1].expand(1000, *value.shape[1:]) for name, value in trained.tensors.items()
    }
    Checkpoint(header, tensors).save(path)
    assert MAX_VALUES < 1000 * 40 * 40
    return path.read_bytes()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda *_: b"Dear reader, this is no model.", "not a densembed checkpoint"),
        (lambda good, *_: good[:-100], "damaged or incomplete"),
        (lambda *_: b"\0" * (MAX_BYTES + 1), "more than the 5 MB"),
        (lambda good, trained, path: large(trained, path), "more snapshots than these pages"),
    ],
    ids=["letter", "cut", "long", "wild"],
)
def test_what_is_no_checkpoint_is_refused_in_a_sentence(
    small_gallery, own, trained, tmp_path, make, says
):
    good = (tmp_path / "own.safetensors").read_bytes()
    app = visit(model="small")
    app = bring(app, make(good, trained, tmp_path / "wild.safetensors"), name="../../x.safetensors")
    (error,) = app.error
    assert says in error.value
    assert is_sentence(error.value)
    assert app.selectbox(key="model").value == "small"
    assert not app.session_state["uploads"]


def test_only_the_last_files_are_kept(small_gallery, trained, tmp_path):
    app = visit()
    for k in range(MAX_KEPT + 2):
        tensors = {name: value + k for name, value in trained.tensors.items()}
        Checkpoint(trained.header, tensors).save(tmp_path / "one.safetensors")
        bring(app, (tmp_path / "one.safetensors").read_bytes())
    assert len(app.session_state["uploads"]) == MAX_KEPT
    offered = app.selectbox(key="model").options
    assert sum("your file" in option for option in offered) == MAX_KEPT


def test_words_of_an_upload_are_no_markup(small_gallery, trained, tmp_path):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = "<b>**bold**</b>"
    Checkpoint(header, trained.tensors).save(tmp_path / "odd.safetensors")
    app = visit("compare", first="small", second="small", open="Model and recipe")
    app = bring(app, (tmp_path / "odd.safetensors").read_bytes(), "second", "<i>.safetensors")
    tables = [element.proto.body for element in app.get("html") if "<table" in element.proto.body]
    assert "&lt;b&gt;" in tables[0]
    assert "<b>" not in tables[0]


def test_many_uploads_stay_within_their_bytes(small_gallery, trained, tmp_path, monkeypatch):
    for cache, budget in ((kept, 3_000_000), (networks, 1_000_000)):
        monkeypatch.setattr(cache, "budget", budget)
    app = visit()
    for k in range(8):
        app = bring(app, _other(trained, 2.5 + k, tmp_path))
        for cache in (kept, networks):
            assert cache.used == sum(size(value) for value, _ in cache._values.values())
            assert cache.used <= cache.budget
    assert any(kept._values)


def _other(trained, by: float, folder) -> bytes:
    tensors = {name: by * value for name, value in trained.tensors.items()}
    Checkpoint(trained.header, tensors).save(folder / "other.safetensors")
    return (folder / "other.safetensors").read_bytes()


def _computed_of(digest: str) -> int:
    return sum(digest in key for cache in (kept, networks) for key in cache._values)


def _end_session() -> None:
    """What Streamlit does when a tab is closed."""
    caching.clear_session_resource_cache("test session id")


def test_a_session_that_ends_gives_back(small_gallery, trained, tmp_path):
    app = bring(visit(), _other(trained, 1.7, tmp_path))
    (upload,) = app.session_state["uploads"].values()
    digest, alive = upload.checkpoint.digest, weakref.ref(upload.checkpoint)
    assert _computed_of(digest)
    _end_session()
    assert not _computed_of(digest)
    settle(app.run())  # the tab had only lost its connection, and is back
    assert _computed_of(digest)
    _end_session()
    assert not _computed_of(digest)
    del app, upload
    gc.collect()
    assert alive() is None


def test_a_file_that_is_removed_gives_back(small_gallery, trained, tmp_path):
    app = bring(visit(), _other(trained, 1.8, tmp_path))
    (upload,) = app.session_state["uploads"].values()
    assert _computed_of(upload.checkpoint.digest)
    settle(app.file_uploader(key="file-model").set_value(None).run())
    assert not app.session_state["uploads"]
    assert not _computed_of(upload.checkpoint.digest)
