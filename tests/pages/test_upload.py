"""A visitor's own checkpoint: accepted, shown on both pages, or refused with a sentence."""

import base64
import gc
import weakref

import pytest
from streamlit.runtime import caching

from densembed.cache import size
from densembed.training.checkpoint import Checkpoint
from densembed.training.checkpoint import _networks as networks
from pages.widgets.common.cache import kept
from pages.widgets.inputs.checkpoints import MAX_BYTES, MAX_KEPT, MAX_VALUES
from tests.conftest import is_sentence
from tests.pages.conftest import as_read, live, report, sample, settle, visit, warnings


@pytest.fixture
def own(trained, tmp_path) -> Checkpoint:
    """A model that is in no gallery."""
    checkpoint = Checkpoint(trained.header, {k: 1.2 * v for k, v in trained.tensors.items()})
    checkpoint.save(tmp_path / "own.safetensors")
    return checkpoint


def bring(app, data: bytes, key: str = "model", name: str = "own.safetensors"):
    """Add a file to those in the uploader."""
    uploader = app.file_uploader(key=f"file-{key}")
    before = [(file.name, file.getvalue(), file.type) for file in uploader.value or []]
    file = (name, data, "application/octet-stream")
    return settle(uploader.set_value([*before, file]).run())


def exported(app):
    """The page after the view has shown the default model, which is the file uploaded last."""
    return report(app, "explore", sample(), "7", more="export")


@pytest.mark.parametrize("name", ["own.safetensors", "own", "own.bin", "own.safetensors.txt"])
def test_an_upload_is_on_both_pages(small_gallery, own, tmp_path, name):
    """playground#20, cnn-explainer#17, #31: people want their own model."""
    data = (tmp_path / "own.safetensors").read_bytes()
    app = visit(model="small")
    order = live(app)["order"]
    app = bring(app, data, name=name)
    key = f"upload-{own.digest[:12]}"  # the same for the same content, whatever its name
    assert not app.error
    assert live(app)["link"] == f"model={key}"
    assert live(app)["order"] > order  # the view follows the link
    exported(app)
    assert any("deleted when this session ends" in caption.value for caption in app.caption)
    assert f"{key}.safetensors" in app.code[0].value
    for page, parameter in (("compare", "first"), ("explore", "model")):
        sent = live(settle(app.switch_page(f"pages/{page}.py").run()))
        assert sent["defaults"][parameter] == key
        assert base64.b64decode(sent["models"][key]["content"]) == data
        assert sent["models"][key]["url"] is None
        assert sent["models"][key]["samples"] == "/samples/of-data/digits"
        assert "own" in sent["models"][key]["title"]


def test_of_files_with_one_content_the_one_that_stays_gives_its_name(small_gallery, own, tmp_path):
    data = (tmp_path / "own.safetensors").read_bytes()
    app = bring(bring(visit(model="small"), data, name="first.safetensors"), data, name="second")
    uploader = app.file_uploader(key="file-model")
    (kept,) = app.session_state["uploads"].values()
    assert kept.name == "second"
    first = uploader.value[0]
    app = settle(uploader.set_value([(first.name, first.getvalue(), first.type)]).run())
    (kept,) = app.session_state["uploads"].values()
    assert kept.name == "first"
    assert any("your file first" in each["title"] for each in live(app)["models"].values())


def test_of_several_files_the_refused_ones_are_named(small_gallery, own, tmp_path):
    app = bring(visit(model="small"), (tmp_path / "own.safetensors").read_bytes())
    assert not app.error
    (error,) = bring(app, b"Dear reader,", name="letter.txt").error
    assert as_read(error.value).startswith("“letter.txt”: The file is not a densembed checkpoint.")
    assert [each.name for each in app.session_state["uploads"].values()] == ["own"]


def test_an_upload_of_other_data_gets_no_wrong_images(small_gallery, trained, tmp_path):
    header = trained.header.model_copy(deep=True)
    header.classes = [f"letter {k}" for k in range(10)]
    Checkpoint(header, trained.tensors).save(tmp_path / "letters.safetensors")
    app = bring(visit(), (tmp_path / "letters.safetensors").read_bytes())
    (model,) = [each for each in live(app)["models"].values() if each["content"]]
    assert model["samples"] == "/samples/of-data/none"


@pytest.mark.parametrize(
    ("page", "key"), [("", "model"), ("compare", "first"), ("compare", "fourth")]
)
def test_a_link_to_an_upload_reports_that_another_tab_has_or_had_it(small_gallery, page, key):
    app = visit(page, **{key: "upload-0123456789ab"})
    (warning,) = warnings(app)
    assert "only in the tab in which it was uploaded, until that tab is closed" in warning
    assert "deleted" not in warning  # the other tab may still have it
    assert live(app)["link"] == ""
    assert warnings(settle(app.run())) == [warning]  # until the visitor leaves the page
    for other in ("lab", page or "explore"):
        app.switch_page(f"pages/{other}.py")
        settle(app.run())
    assert not warnings(app)


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
        (lambda *_: b"\0" * (MAX_BYTES + 1), "more than the 5 MiB"),
        (lambda good, trained, path: large(trained, path), "more snapshots than these pages"),
    ],
    ids=["letter", "cut", "long", "wild"],
)
def test_a_file_that_is_no_checkpoint_gets_one_sentence(
    small_gallery, own, trained, tmp_path, make, says
):
    good = (tmp_path / "own.safetensors").read_bytes()
    app = visit(model="small")
    app = bring(app, make(good, trained, tmp_path / "wild.safetensors"), name="../../x.safetensors")
    (error,) = app.error
    assert says in error.value
    assert is_sentence(error.value)
    assert list(live(app)["models"]) == ["small"]
    assert live(app)["link"] == "model=small"
    assert not app.session_state["uploads"]


def test_only_the_last_files_are_kept(small_gallery, trained, tmp_path):
    app = visit()
    for k in range(MAX_KEPT + 2):
        tensors = {name: value + k for name, value in trained.tensors.items()}
        Checkpoint(trained.header, tensors).save(tmp_path / "one.safetensors")
        bring(app, (tmp_path / "one.safetensors").read_bytes())
    assert len(app.session_state["uploads"]) == MAX_KEPT
    offered = [model["title"] for model in live(app)["models"].values()]
    assert sum("your file" in title for title in offered) == MAX_KEPT


def test_uploads_stay_within_their_memory_limit(small_gallery, trained, tmp_path, monkeypatch):
    for cache, budget in ((kept, 3_000_000), (networks, 1_000_000)):
        monkeypatch.setattr(cache, "budget", budget)
    app = visit()
    for k in range(8):
        app = exported(bring(app, _other(trained, 2.5 + k, tmp_path)))
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


def test_an_ended_session_frees_its_memory(small_gallery, trained, tmp_path):
    app = exported(bring(visit(), _other(trained, 1.7, tmp_path)))
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


def test_a_removed_file_frees_its_memory(small_gallery, trained, tmp_path):
    app = exported(bring(visit(), _other(trained, 1.8, tmp_path)))
    (upload,) = app.session_state["uploads"].values()
    assert _computed_of(upload.checkpoint.digest)
    settle(app.file_uploader(key="file-model").set_value([]).run())
    assert not app.session_state["uploads"]
    assert not _computed_of(upload.checkpoint.digest)


def test_a_removed_file_leaves_the_link_and_both_pages(small_gallery, own, tmp_path):
    """A page that had shown the file took it for one of an earlier session."""
    data = (tmp_path / "own.safetensors").read_bytes()
    app = visit(model="small")
    for _ in range(2):  # it can be uploaded again
        app = bring(app, data)
        key = f"upload-{own.digest[:12]}"
        report(app, "explore", sample(), "7", model=key)
        app = settle(app.file_uploader(key="file-model").set_value([]).run())
        report(app, "explore", sample(), "7", model=key)  # was on its way when × was pressed
        assert list(live(app)["models"]) == ["small"]
        assert not warnings(app)
        assert "upload-" not in live(app)["link"]
    for page in ("compare", "explore"):
        app = settle(app.switch_page(f"pages/{page}.py").run())
        assert not warnings(app)
        assert "upload-" not in live(app)["link"]


def test_an_upload_is_shown_again_if_the_page_was_left_at_once(small_gallery, own, tmp_path):
    """Before the view had reported it, the model of before came back."""
    app = visit(model="small")
    app.session_state["explore-own"] = {"model": "small"}
    app = bring(app, (tmp_path / "own.safetensors").read_bytes())
    for page in ("compare", "explore"):
        app.query_params.clear()
        data = live(settle(app.switch_page(f"pages/{page}.py").run()))
    assert data["link"] == f"model=upload-{own.digest[:12]}"
