"""Models that learned from a folder of colour pictures, on every page."""

import base64
import io
import os
import shutil

import numpy as np
import pytest
from pages.widgets.explore.details import ABOUT, DENSITY, DETAILS, EFFECT
from pages.widgets.explore.views import CLASS, DENSITIES, DIFFERENCE, FIELD, OVER
from PIL import Image

from densembed.data import load_dataset
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from tests.pages.conftest import (
    as_read,
    columns,
    pills,
    settle,
    shown_input,
    stage,
    stills,
    visit,
    warnings,
)

CLASSES = ("blue [sky]", "green", "red*")
MODELS = {"fixed": "logistic-el-3", "moving": "logistic-el-mnn-3-2", "plain": "linear"}


def colours(root, count=30):
    """A folder of noisy pictures in three colours, 12 rows by 14 columns."""
    random = np.random.default_rng(0)
    for k, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for n in range(count):
            pixels = random.integers(0, 90, (12, 14, 3), np.uint8)
            pixels[..., 2 - k] += 150
            Image.fromarray(pixels).save(root / name / f"{n}.png")
    (root / CLASSES[0] / "notes.txt").write_text("no picture")
    return root


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return colours(tmp_path_factory.mktemp("own") / "photos")


@pytest.fixture(scope="module")
def models(photos) -> dict[str, Checkpoint]:
    found = {}
    for key, model in MODELS.items():
        config = RunConfig(model=model, dataset=f"folder:{photos}", epochs=2, device="cpu")
        dataset = load_dataset(config.dataset)
        recorder = Recorder(config, dataset)
        for event in train(config, dataset):
            recorder.add(event)
        found[key] = recorder.checkpoint("done")
    return found


@pytest.fixture
def gallery(small_gallery, models, photos, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(photos.parent))
    for key, checkpoint in models.items():
        checkpoint.save(small_gallery / f"{key}.safetensors")
    return small_gallery


@pytest.mark.parametrize("key", MODELS)
def test_explore_shows_the_field_of_a_colour_picture(gallery, models, key, photos):
    """playground#20, cnn-explainer#17, #31: people want their own data."""
    app = visit(model=key, **{"class": "green", "example": "2"})
    dataset = load_dataset(f"folder:{photos}")
    index = (dataset.test.labels == 1).nonzero()[1, 0]
    picture = dataset.test.images[index]
    url = shown_input(app)["picture"]["url"]
    png = Image.open(io.BytesIO(base64.b64decode(url.partition("base64,")[2])))
    assert np.array_equal(np.array(png), picture.permute(1, 2, 0))
    seen = view(models[key], picture)
    fields = np.stack(seen.fields).sum(1)
    np.testing.assert_allclose(stage(app)["values"], fields, 0, np.ptp(fields) / 131000)
    assert stage(app)["right"] == 1


@pytest.mark.parametrize("key", MODELS)
@pytest.mark.parametrize("more", [None, *DETAILS])
def test_every_closer_look_works_in_colour(gallery, key, more):
    app = visit(model=key)
    if more == DENSITY and key == "plain":
        return
    if more:
        pills(app, "more").set_value(more).run()
        settle(app)
    ways = [FIELD, OVER, DIFFERENCE] + ([DENSITIES] if key != "plain" else []) + [CLASS]
    for way in ways:
        pills(app, "show").set_value(way).run()
        settle(app)


def test_what_is_drawn_for_digits_is_not_offered(gallery):
    app = visit(model="moving")
    assert list(pills(app, "from").options) == ["Samples", "Upload"]
    app = visit(model="small")
    assert "Draw" in pills(app, "from").options


def test_another_models_choices_do_not_break_it(gallery):
    app = visit(model="small", **{"from": "Draw", "class": "3"})
    app.selectbox(key="model").select("moving").run()
    settle(app)
    assert shown_input(app)["picture"]["url"]


def test_compare_takes_two_of_them(gallery, models):
    app = visit("compare", first="moving", second="fixed")
    assert list(columns(app)["sides"]) == ["first", "second"]
    for opened in ("settings", "disagreements"):
        pills(app, "open").set_value(opened).run()
        settle(app)
    app = visit("compare", first="moving", second="small")
    assert any("28 × 28" in info.value for info in app.info)


def test_a_checkpoint_selects_no_folder_outside_of_the_data(gallery, data_here):
    for page, link in (("", {"model": "moving"}), ("compare", {"first": "moving"})):
        app = visit(page, **link)
        assert any("No test images of photos" in info.value for info in app.info)


def test_a_folder_that_is_gone_is_one_sentence(gallery, models, data_here, tmp_path):
    for key, checkpoint in models.items():
        header = checkpoint.header.model_copy(deep=True)
        header.config = header.config.model_copy(update={"dataset": f"folder:{tmp_path}/gone"})
        Checkpoint(header, checkpoint.tensors).save(gallery / f"{key}.safetensors")
    for page, link in (("", {"model": "moving"}), ("compare", {"first": "moving"})):
        app = visit(page, **link)
        (said,) = [info.value for info in app.info if "was not found" in info.value]
        assert "photos" in said
        assert str(tmp_path) not in said


def test_a_folder_with_other_classes_is_not_taken_for_its_own(gallery, models, data_here, tmp_path):
    other = colours(tmp_path / "photos")
    shutil.move(other / "green", other / "grass")
    header = models["moving"].header.model_copy(deep=True)
    header.config = header.config.model_copy(update={"dataset": f"folder:{other}"})
    Checkpoint(header, models["moving"].tensors).save(gallery / "moving.safetensors")
    app = visit(model="moving")
    assert any("has changed" in info.value for info in app.info)


def test_train_asks_for_the_folder_and_says_what_is_in_it(gallery, photos):
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    settle(app)
    assert not any(button.label == "Start training" for button in app.button)
    app.text_input(key="new-folder").input(str(photos)).run()
    settle(app)
    (said,) = [text.value for text in app.text if "pictures" in text.value]
    dataset = load_dataset(f"folder:{photos}")
    assert "photos: 3 classes" in said
    assert f"{len(dataset.train)} training and {len(dataset.test)} test pictures" in said
    assert "12 × 14, colour" in said
    assert "blue [sky]/notes.txt" in said
    assert any(button.label == "Start training" for button in app.button)
    app.selectbox(key="new-shape").select("3x48x48").run()
    settle(app)
    assert any("48 × 48, colour" in text.value for text in app.text)


def test_train_names_a_folder_that_cannot_be_used(gallery, tmp_path):
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").input(str(tmp_path / "nothing")).run()
    settle(app)
    assert "nothing" in app.error[0].value
    assert not any(button.label == "Start training" for button in app.button)


def learned(folder, model="logistic-el-3") -> Checkpoint:
    config = RunConfig(model=model, dataset=f"folder:{folder}", epochs=1, device="cpu")
    dataset = load_dataset(config.dataset)
    recorder = Recorder(config, dataset)
    for event in train(config, dataset):
        recorder.add(event)
    return recorder.checkpoint("done")


@pytest.fixture
def data_here(tmp_path, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))


@pytest.fixture
def untested(small_gallery, data_here, tmp_path):
    """Two models of a folder in which one class has no test images."""
    root = tmp_path / "photos"
    for part, count in (("train", 8), ("test", 2)):
        colours(root / part, count)
    shutil.rmtree(root / "test" / "green")
    for key, model in (("one", "logistic-el-3"), ("two", "logistic-el-mnn-3-2")):
        learned(root, model).save(small_gallery / f"{key}.safetensors")


@pytest.mark.parametrize("page", ["explore", "compare"])
def test_a_class_without_test_images_breaks_no_page(untested, page):
    link = {"model": "one"} if page == "explore" else {"first": "one", "second": "two"}
    app = visit("" if page == "explore" else page, **link, **{"class": "green"})
    if page == "explore":  # on a later page the session's own class goes before the link's
        (said,) = [text for text in warnings(app) if "green" in text]
        assert "a class with test images" in said
    assert list(map(as_read, pills(app, "class").options)) == ["blue [sky]", "red*"]
    assert "green" in pills(app, "class").help
    titles = app.selectbox(key="model" if page == "explore" else "first").options
    assert sum(title.endswith("% error on 4 test images") for title in titles) == 2
    assert any("(4 test images)" in as_read(caption.value) for caption in app.caption)
    opened = {
        "explore": ("more", [ABOUT, DENSITY, EFFECT, "classes"]),
        "compare": ("open", ["settings", "disagreements", "confusion"]),
    }
    key, ways = opened[page]
    for way in ways:
        pills(app, key).set_value(way).run()
        settle(app)
        if way == "classes":
            assert all(len(shown) == 2 for name, shown in stills(app).items() if "atlas" in name)
    if page == "compare":
        pills(app, "open").set_value("classes").run()
        settle(app)
        assert [len(stills(app)[f"{name}-atlas"]) for name in ("first", "second")] == [2, 2]


def test_train_shows_a_run_whose_class_has_no_test_images(untested, runs_root):
    from densembed.runs import Run, gallery

    checkpoint = gallery.find("one").open()
    run = Run.create(checkpoint.config)
    checkpoint.save(run.checkpoint_path)
    (epoch,) = checkpoint.header.epochs
    run.append("epoch", **epoch.model_dump())
    run.append("end", state="done")
    app = visit("train", run=run.identifier, **{"class": "green"})
    assert f"test error {epoch.test_error[0]:.2f} % of 4 test images" in app.success[0].value
    assert list(map(as_read, pills(app, "class").options)) == ["blue [sky]", "red*"]


def test_a_checkpoint_from_before_natural_order_is_shown_right(small_gallery, data_here, tmp_path):
    root = tmp_path / "numbers"
    colours(root, 10)
    for name, number in zip(CLASSES, ("1", "10", "2"), strict=True):
        shutil.move(root / name, root / number)
    now = learned(root)
    assert now.header.classes == ["1", "2", "10"]
    old = Checkpoint(now.header.model_copy(update={"classes": ["1", "10", "2"]}), {
        name: value[..., [0, 2, 1], :] if name == "classifier.weight"
        else value[..., [0, 2, 1]] if name == "classifier.bias" else value
        for name, value in now.tensors.items()
    })  # fmt: skip
    now.save(small_gallery / "now.safetensors")
    old.save(small_gallery / "old.safetensors")
    shown = {}
    for key, order in (("now", ["1", "2", "10"]), ("old", ["1", "10", "2"])):
        app = visit(model=key, **{"class": "10"})
        assert list(pills(app, "class").options) == order
        assert stage(app)["right"] == order.index("10")
        shown[key] = np.asarray(stage(app)["probabilities"])[:, order.index("10")]
    np.testing.assert_allclose(shown["now"], shown["old"], atol=2e-6)
    app = visit("compare", first="now", second="old", open="Where they disagree")
    assert any(
        "**0** are predicted correctly only by the first" in text.value for text in app.markdown
    )
    first, second = (np.asarray(side["probabilities"]) for side in columns(app)["sides"])
    np.testing.assert_allclose(first, second, atol=2e-6)


def test_train_lists_names_that_are_not_unicode(gallery, tmp_path):
    root = colours(tmp_path / "photos", 8)
    (root / "green" / os.fsdecode(b"caf\xe9.txt")).write_text("no picture")
    os.rename(root / "red*", root / os.fsdecode(b"rot\xe9"))
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").input(str(root)).run()
    settle(app)
    (said,) = [text.value for text in app.text if "pictures" in text.value]
    assert r"green/caf\xe9.txt" in said
    assert r"its class is called 'rot\xe9'" in said


def test_train_never_parses_the_path(gallery, tmp_path):
    root = colours(tmp_path / "me@3x5x5" / "photos@1x7x7", 8)
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    for shape, said in (("", "12 × 14"), ("3x48x48", "48 × 48")):
        app.text_input(key="new-folder").input(str(root)).run()
        app.selectbox(key="new-shape").select(shape).run()
        settle(app)
        assert any(f"{said}, colour" in text.value for text in app.text)
        assert any(button.label == "Start training" for button in app.button)
