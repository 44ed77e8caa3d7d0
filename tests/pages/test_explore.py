"""Explore: what is there without a click, whatever the input, whatever the link."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from densembed.data import load_dataset
from densembed.data.images import read_picture
from densembed.data.transform import Transform
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence
from tests.fields.test_novelty import photographs
from tests.pages.conftest import (
    ROOT,
    as_read,
    charts,
    component,
    pills,
    rest_at,
    settle,
    shown_input,
    stage,
    visit,
    warnings,
)

SHIPPED = sorted((ROOT / "checkpoints/paper").glob("*.safetensors"))


def sample(label: int, number: int = 1):
    test = load_dataset("digits").test
    return test.images[(test.labels == label).nonzero()[number - 1, 0]]


def upload(app, path, name="picture.png", kind="image/png"):
    if pills(app, "from").value != "upload":
        pills(app, "from").set_value("upload").run()
    app.file_uploader(key="upload").set_value((name, path.read_bytes(), kind)).run()
    return settle(app)


def shows(app, checkpoint: Checkpoint, pixels, index: int = -1) -> None:
    """The page draws this input, and at a snapshot; it holds the field and opinion of each."""
    seen, moving = view(checkpoint, pixels), stage(app)
    np.testing.assert_allclose(shown_input(app)["values"], pixels[0].numpy() / 255, atol=1e-5)
    assert moving["step"] == checkpoint.steps[index]
    assert moving["steps"] == checkpoint.steps
    fields = np.stack(seen.fields).sum(1)
    np.testing.assert_allclose(moving["values"], fields, 0, np.ptp(fields) / 131000)
    assert all(scale["low"] <= 0 for scale in moving["scales"])
    assert moving["scales"][0]["high"] == pytest.approx(seen.top)
    np.testing.assert_allclose(moving["probabilities"], seen.probabilities, 1e-4, 1e-6)


def test_first_visit_shows_a_shipped_model(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    app = visit()
    (path,) = (path for path in SHIPPED if app.query_params["model"] in (path.stem, [path.stem]))
    checkpoint = Checkpoint.open(path)
    assert checkpoint.config.dataset == "digits"  # MNIST is not here, and no network is asked
    shows(app, checkpoint, sample(7))
    assert not app.warning
    assert not app.info
    assert not app.error


@pytest.mark.parametrize("name", ["photo.jfif", "photo", "photo.heic", "photo.JPG.txt", "x.png"])
def test_a_picture_is_read_whatever_its_files_name_is(small_gallery, trained, pictures, name):
    data = io.BytesIO()
    Image.open(pictures["digit"]).save(data, "JPEG")
    path = pictures["digit"].with_name("photo-for-names")
    path.write_bytes(data.getvalue())
    app = upload(visit(model="small"), path, name, "application/octet-stream")
    assert not app.error
    shows(app, trained, read_picture(path).pixels)


@pytest.mark.parametrize("name", ["photo.heic", "photo", "photo.jfif", "photo.pdf"])
def test_what_is_no_picture_gets_our_sentence_whatever_its_name_is(small_gallery, tmp_path, name):
    path = tmp_path / "it"
    path.write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    app = upload(visit(model="small"), path, name, "image/heic")
    (error,) = app.error
    assert as_read(error.value).startswith("The file is a HEIC, AVIF or video file, not a picture")
    assert is_sentence(as_read(error.value))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_model_opens_by_its_link(monkeypatch, runs_root, path):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(path.parent))
    shows(visit(model=path.stem), Checkpoint.open(path), sample(7))


def test_slider_moves_the_field_and_not_the_scale(small_gallery, trained):
    """mllam/neural-lam#377: what was compared had scales of its own."""
    app = visit()
    for index in (0, len(trained.steps) // 2, -1):
        step = trained.steps[index]
        shows(rest_at(app, step), trained, sample(7), index)
        last = step == trained.steps[-1]
        assert app.query_params.get("step") == (None if last else str(step))
    assert stage(app)["titles"][3] == f"after {trained.steps[3]:,} steps"


def test_models_of_one_title_are_told_apart(small_gallery, trained):
    trained.save(small_gallery / "twin.safetensors")
    options = visit().selectbox(key="model").options
    assert [option.rpartition(" · ")[2] for option in options] == ["small", "twin"]


def test_class_and_example(small_gallery, trained):
    app = visit()
    pills(app, "class").set_value("3").run()
    app.number_input(key="example").set_value(4).run()
    shows(settle(app), trained, sample(3, 4))
    assert stage(app)["right"] == 3


def test_link_holds_the_view(small_gallery, trained):
    step = trained.steps[5]
    link = {"model": "small", "class": "3", "example": "4", "step": str(step)}
    shows(visit(**link), trained, sample(3, 4), 5)


@pytest.mark.parametrize(
    "link",
    [
        {"step": "x"},
        {"step": "-1"},
        {"class": "A"},
        {"example": "99999999"},
        {"example": "-3"},
        {"from": "Mars"},
    ],
)
def test_senseless_links_show_the_page(small_gallery, trained, link):
    shows(visit(**link), trained, sample(7))


@pytest.mark.parametrize("model", ["gone", "../../etc/passwd", "<b>x</b>", "x" * 999])
def test_link_to_a_model_that_is_gone_is_named(small_gallery, trained, model):
    app = visit(model=model)
    (warning,) = warnings(app)
    assert model[:40] in warning
    assert is_sentence(warning)
    shows(app, trained, sample(7))
    assert app.query_params["model"] == ["small"] or app.query_params["model"] == "small"


def test_upload(small_gallery, trained, pictures):
    app = visit()
    pills(app, "from").set_value("upload").run()
    assert is_sentence(app.info[0].value)
    assert not charts(app)
    upload(app, pictures["digit"])
    shows(app, trained, read_picture(pictures["digit"]).pixels)
    assert stage(app)["right"] is None


def test_upload_without_ink_gets_no_opinion(small_gallery, pictures):
    """r4ghu/iOS-CoreML-MNIST#3: a class was predicted of an empty page."""
    app = upload(visit(), pictures["empty"])
    assert "No digit" in warnings(app)[0]
    assert stage(app)["probabilities"] is None
    assert "no digit" in stage(app)["predictions"][-1]
    assert not shown_input(app)["values"].any()


@pytest.mark.parametrize("name", ["letter.png", "../../letter.png"])
def test_upload_of_no_picture_is_one_sentence(small_gallery, trained, pictures, name):
    app = upload(visit(), pictures["letter"], name)
    (error,) = app.error
    assert is_sentence(error.value)
    shows(app, trained, sample(7))  # what was there is still there
    upload(app, pictures["digit"])
    shows(app, trained, read_picture(pictures["digit"]).pixels)


def test_upload_of_a_photograph_is_unlike_what_it_learned(small_gallery, trained, tmp_path):
    path = tmp_path / "temple.jpg"
    path.write_bytes(photographs(1)[0])
    app = upload(visit(), path)
    (warning,) = warnings(app)
    assert "unlike the training images" in warning
    assert is_sentence(warning)
    shows(app, trained, read_picture(path).pixels)


def test_the_input_is_changed_and_the_link_holds_it(small_gallery, trained):
    app = visit(turn="30", right="2.5", noise="0.1")
    change = Transform(turn=30, right=2.5, noise=0.1)
    shows(app, trained, change(sample(7)))
    app.slider(key="blur").set_value(1.0).run()
    shows(settle(app), trained, replace(change, blur=1.0)(sample(7)))
    next(button for button in app.button if button.label == "Reset").click().run()
    shows(settle(app), trained, sample(7))
    assert not {"turn", "right", "noise", "blur"} & set(app.query_params)


def test_upload_that_is_too_large_is_one_sentence(small_gallery, tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(bytes(21 * 2**20))
    assert "21.0 MB, more than the 20 MB" in upload(visit(), path).error[0].value


def test_upload_survives_other_pages(small_gallery, trained, pictures):
    """crxi/multipage_streamlit#1: an upload vanished on a change of page."""
    app = upload(visit(), pictures["digit"])
    pixels = read_picture(pictures["digit"]).pixels
    for page in ("compare", "explore"):
        app.switch_page(f"pages/{page}.py").run()
        pills(app, "from").set_value("upload").run()  # AppTest forgets it, a browser does not
        settle(app)
        np.testing.assert_allclose(shown_input(app)["values"], pixels[0].numpy() / 255, atol=1e-5)
    shows(app, trained, pixels)


def test_model_of_other_data_says_so(mnist_model):
    app = visit(model="other")
    (note,) = app.info
    assert "trained on MNIST" in note.value
    assert is_sentence(note.value)
    assert "Download the test images of MNIST" in [button.label for button in app.button]
    shows(app, mnist_model, sample(7))


def test_change_of_model_forgets_a_step_that_it_lacks(mnist_model, trained):
    app = visit(model="other")
    rest_at(app, mnist_model.steps[4])
    settle(app.selectbox(key="model").set_value("small").run())
    shows(app, trained, sample(7), 4)  # it has that step, too
    settle(app.selectbox(key="model").set_value("other").run())
    rest_at(app, mnist_model.steps[-1])
    settle(app.selectbox(key="model").set_value("small").run())
    shows(app, trained, sample(7))


def test_files_that_do_not_open_are_left_out(small_gallery, trained, trained_file):
    whole = trained_file.read_bytes()
    (small_gallery / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (small_gallery / "empty.safetensors").write_bytes(b"")
    (small_gallery / "letter.safetensors").write_text("Dear reader")
    app = visit()
    assert len(app.selectbox(key="model").options) == 1
    shows(app, trained, sample(7))


@pytest.mark.parametrize("page", ["explore", "compare"])
def test_empty_gallery_says_what_to_do(gallery_root, runs_root, page):
    app = visit(page)
    assert "Training one" in app.info[0].value
    assert not charts(app)
    assert [link.proto.label for link in app.get("page_link")] == ["Train a model"]


@pytest.mark.parametrize("name", ["cnn-2-3", "stages-2-3-logistic-el-2"])
def test_convolutional_networks_are_looked_at_too(name, small_gallery, digits):
    config = RunConfig(model=name, epochs=1, batch_size=512, device="cpu")
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    trained = recorder.checkpoint("done")
    trained.save(small_gallery / "conv.safetensors")
    app = visit(model="conv", more="What am I looking at?")
    text = " ".join(part.value for part in app.markdown)
    assert ("ordinary convolutional network" in text) == name.startswith("cnn")
    assert "fully connected" not in text
    shows(app, trained, sample(7))
    for more in ("effect", "classes"):
        pills(app, "more").set_value(more).run()
        settle(app)


@pytest.mark.parametrize("hidden", ["predictions", "before,numbers", "steps, sidebar ,menu", ""])
def test_a_teacher_hides_parts(small_gallery, trained, hidden):
    app = visit(hide=hidden)
    assert not app.warning
    shows(app, trained, sample(7))
    names = [name.strip() for name in hidden.split(",")]
    assert set(stage(app)["hidden"]) == set(names) & {"predictions", "before", "numbers", "steps"}
    assert app.query_params.get("hide", "") == hidden  # it stays in the link


def test_what_cannot_be_hidden_is_named(small_gallery):
    app = visit(hide="predictions,Mars")
    (warning,) = warnings(app)
    assert "Mars" in warning
    assert is_sentence(warning)
    assert stage(app)["hidden"] == ["predictions"]


@pytest.mark.parametrize(
    ("link", "stop"),
    [({}, None), ({"tour": "3"}, 3), ({"tour": "0"}, 0), ({"hide": "menu"}, 0),
     ({"hide": "menu", "tour": "2"}, 2)],
)  # fmt: skip
def test_the_tour_is_in_the_link(small_gallery, link, stop):
    assert component(visit(**link), "tour")["stop"] == stop


@pytest.mark.parametrize("tour", ["6", "x", "-1"])
def test_a_step_that_the_tour_lacks_is_named(small_gallery, tour):
    app = visit(tour=tour)
    assert tour in warnings(app)[0]
    assert component(app, "tour")["stop"] is None


def test_thumbnails_are_the_examples(small_gallery, digits):
    app = visit(**{"class": "3"}, example="2")
    row = component(app, "thumbnails")
    assert row["chosen"] == 2
    png = base64.b64decode(row["sprite"].partition("base64,")[2])
    threes = digits.test.images[digits.test.labels == 3]
    sprite = np.array(Image.open(io.BytesIO(png)))
    for place, number in enumerate(row["numbers"]):
        tile = sprite[:, 28 * place : 28 * place + 28]
        np.testing.assert_array_equal(tile, threes[number - 1, 0])
    app.session_state["shuffled"] = 7
    others = component(settle(app.run()), "thumbnails")["numbers"]
    assert others != row["numbers"]
    assert len(set(others)) == len(others)
    assert set(others) <= set(range(1, len(threes) + 1))
    assert app.query_params["shuffle"] == "7"
    again = visit(**{"class": "3"}, shuffle="7")  # the link has the same handful
    assert component(again, "thumbnails")["numbers"] == others


def test_the_divider_of_a_swipe_is_in_the_link(small_gallery):
    app = visit(show="swipe", divider="30")
    assert stage(app)["divider"] == 30
    app.session_state["divided"] = 65
    assert stage(settle(app.run()))["divider"] == 65
    assert app.query_params["divider"] == "65"
    pills(app, "show").set_value("field").run()
    assert "divider" not in settle(app).query_params
