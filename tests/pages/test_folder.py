"""Models that learned from a folder of colour pictures, on every page."""

import base64
import io
import json
import os
import shutil
import zipfile

import numpy as np
import pytest
import streamlit as st
import torch
from PIL import Image

from densembed.data import load_dataset
from densembed.data.images import read_picture
from densembed.fields.field import view
from densembed.markup import JOINER
from densembed.runs import Run
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence
from tests.pages.conftest import (
    as_read,
    get,
    live,
    pills,
    report,
    settle,
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
    checkpoints = {}
    for key, model in MODELS.items():
        config = RunConfig(model=model, dataset=f"folder:{photos}", epochs=2, device="cpu")
        dataset = load_dataset(config.dataset)
        recorder = Recorder(config, dataset)
        for event in train(config, dataset):
            recorder.add(event)
        checkpoints[key] = recorder.checkpoint("done")
    return checkpoints


@pytest.fixture
def gallery(small_gallery, models, photos, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(photos.parent))
    for key, checkpoint in models.items():
        checkpoint.save(small_gallery / f"{key}.safetensors")
    return small_gallery


def images_of(key: str) -> tuple[dict, list[torch.Tensor]]:
    """What the view gets about the test images of a model, and the images of each class."""
    url = live(visit())["models"][key]["samples"]
    facts = json.loads(get(url).body)
    images = []
    for label, count in enumerate(facts["counts"]):
        sent = torch.tensor(list(get(f"{url}&label={label}").body), dtype=torch.uint8)
        images.append(sent.reshape(count, *facts["shape"]))
    return facts, images


@pytest.mark.parametrize("key", MODELS)
def test_explore_takes_colour_pictures(gallery, models, key, photos, monkeypatch):
    """playground#20, cnn-explainer#17, #31: people want their own data."""
    dataset = load_dataset(f"folder:{photos}")
    facts, images = images_of(key)
    assert facts["title"] == dataset.title
    assert tuple(facts["classes"]) == CLASSES
    for label, own in enumerate(images):
        assert torch.equal(own, dataset.test.images[dataset.test.labels == label])
    files = {}
    monkeypatch.setattr(
        st, "download_button", lambda label, data, *_, **__: files.update({label: data()})
    )
    picture = images[1][1]
    app = report(visit(), "explore", picture, "green", model=key, more="export", channel="red")
    assert not [*app.info, *app.warning, *app.error]
    png = Image.open(io.BytesIO(files["Input, PNG"]))
    np.testing.assert_array_equal(np.array(png), picture.permute(1, 2, 0))
    numbers = np.load(io.BytesIO(files["Numbers, NPZ"]))
    after = view(models[key], picture).fields[-1]
    np.testing.assert_array_equal(numbers["after"], after)
    columns = np.genfromtxt(io.BytesIO(files["Numbers, CSV"].encode()), delimiter=",", names=True)
    np.testing.assert_allclose(columns["after"], after.sum(0).ravel(), 1e-6)
    words = "contain the sum over all channels, not only the one shown above"
    assert any(words in caption.value for caption in app.caption) == (len(after) > 1)
    report(app, "explore", picture, "green", model=key, more="export")
    assert not any(words in caption.value for caption in app.caption)


def test_a_picture_for_a_model_of_colours_is_cropped(gallery, photos):
    path = next((photos / "green").iterdir())
    link = {"model": "moving", "from": "upload"}
    app = report(visit(), "explore", torch.zeros(3, 12, 14, dtype=torch.uint8), "green", **link)
    app.file_uploader(key="upload").set_value(("a.png", path.read_bytes(), "image/png"))
    pixels = read_picture(path, (3, 12, 14), digit=False).pixels
    assert base64.b64decode(live(settle(app.run()))["upload"]) == pixels.numpy().tobytes()
    report(app, "explore", 0 * pixels, None, **link)
    assert not warnings(app)  # a black picture is no missing digit


def test_compare_takes_two_of_them(gallery, photos):
    picture = load_dataset(f"folder:{photos}").test.images[0]
    for second, told in (("fixed", False), ("small", True)):
        app = visit("compare")
        for opened in ("settings", "disagreements", "export"):
            link = {"first": "moving", "second": second, "open": opened}
            report(app, "compare", picture, CLASSES[0], **link)
            assert any("28 × 28" in info.value for info in app.info) == told


def samples_problem(key: str) -> str:
    """The sentence that the view shows instead of test images."""
    answer = get(live(visit())["models"][key]["samples"])
    sentence = json.loads(answer.text)["missing"]
    assert is_sentence(sentence)
    app = report(visit(), "explore", torch.zeros(3, 12, 14, dtype=torch.uint8), None, model=key)
    assert not [*app.info, *app.warning, *app.error]
    return sentence


def moved(models, gallery, root) -> None:
    """Save the models as trained on another folder."""
    for key, checkpoint in models.items():
        header = checkpoint.header.model_copy(deep=True)
        header.config = header.config.model_copy(update={"dataset": f"folder:{root}"})
        Checkpoint(header, checkpoint.tensors).save(gallery / f"{key}.safetensors")


def test_a_checkpoint_selects_no_folder_outside_of_the_data(gallery, data_here):
    assert "No test images of photos" in samples_problem("moving")


def test_a_folder_that_is_gone_is_one_sentence(gallery, models, data_here, tmp_path):
    moved(models, gallery, tmp_path / "gone")
    said = samples_problem("moving")
    assert "“photos”" in said
    assert "was not found" in said
    assert str(tmp_path) not in said


def test_a_folder_with_other_classes_is_not_taken_for_its_own(gallery, models, data_here, tmp_path):
    other = colours(tmp_path / "photos")
    shutil.move(other / "green", other / "grass")
    moved(models, gallery, other)
    assert "has changed" in samples_problem("moving")


def test_train_asks_for_the_folder_and_says_what_is_in_it(gallery, photos):
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    settle(app)
    assert not any(button.label == "Start training" for button in app.button)
    # Copied from a message of the page, which hides a word joiner after each @ and colon.
    app.text_input(key="new-folder").input(f"{photos}{JOINER}").run()
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


def packed(root) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(root.rglob("*.png")):
            archive.write(path, path.relative_to(root.parent))
    return file.getvalue()


def uploaded(name: str, data: bytes, mime: str = "application/zip"):
    """Train with these files as its data."""
    app = visit("train")
    app.selectbox(key="new-data").select("upload:").run()
    settle(app)
    app.file_uploader(key="new-files-0").set_value([(name, data, mime)])
    return settle(app.run())


def bodies(app) -> list[str]:
    return [each.proto.body for each in app.get("html")]


def test_train_takes_an_archive_and_shows_its_classes(gallery, photos, data_here, runs_root):
    app = uploaded("photos.zip", packed(photos))
    (said,) = [text.value for text in app.text if "pictures" in text.value]
    assert "photos: 3 classes" in said
    (shown,) = (html for html in bodies(app) if 'class="classes"' in html)
    for name in CLASSES:
        assert f"<b>{name}<small>" in shown
    assert shown.count("data:image/png") == 3
    before = {app.session_state["new-upload"]}
    assert not app.toggle(key="new-inverted").value  # coloured pictures are no ink
    settle(app.switch_page("pages/lab.py").run())
    settle(app.switch_page("pages/train.py").run())
    assert {app.session_state["new-upload"]} == before
    assert any(button.label == "Start training" for button in app.button)
    settle(next(one for one in app.button if one.label == "Remove the pictures").click().run())
    assert not any(button.label == "Start training" for button in app.button)


def test_the_uploader_is_empty_when_the_form_gets_other_pictures(
    gallery, photos, data_here, runs_root
):
    """It still showed the archive that was chosen before the settings of a run were edited."""
    app = uploaded("photos.zip", packed(photos))
    photographs = app.session_state["new-upload"]
    run = Run.create(RunConfig(model="linear", dataset=photographs, epochs=1))
    run.stop()
    renamed = shutil.copytree(photos, data_here / "others")
    app.file_uploader(key="new-files-0").set_value([("others.zip", packed(renamed), "")])
    assert "others: 3 classes" in about_pictures(settle(app.run()))
    app.query_params["run"] = run.identifier
    settle(app.run())
    for _ in range(2):  # the second time, the form has these pictures already
        settle(app.button(key="edit-settings-and-rerun").click().run())
        assert "photos: 3 classes" in about_pictures(app)
        (uploader,) = app.get("file_uploader")
        assert (uploader.key, uploader.value) == ("new-files-1", [])


def about_pictures(app) -> str:
    (text,) = [text.value for text in app.text if "test pictures" in text.value]
    return text


def test_what_is_left_out_of_an_upload_is_said_of_it_alone(gallery, photos, data_here, runs_root):
    file = io.BytesIO(packed(photos))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("photos/readme.doc", "text")
        archive.writestr("photos/.old/1.png", "hidden")
    app = uploaded("photos.zip", file.getvalue())
    assert "Files that are no pictures or cannot be read: photos/readme.doc." in about_pictures(app)
    assert "Hidden images and folders are not used: 'photos/.old/1.png'." in about_pictures(app)
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").input(str(photos)).run()
    assert "readme" not in about_pictures(settle(app))
    assert "Hidden" not in about_pictures(app)
    app.selectbox(key="new-data").select("upload:").run()
    assert "readme" in about_pictures(settle(app))


def test_dark_pictures_on_light_ground_are_inverted(gallery, data_here, tmp_path):
    for name, column in (("1", 5), ("2", 8)):
        (tmp_path / "ink" / name).mkdir(parents=True)
        for k in range(5):
            pixels = np.full((12, 12), 240, np.uint8)
            pixels[2:10, column] = 10 + k
            Image.fromarray(pixels).save(tmp_path / "ink" / name / f"{k}.png")
    app = uploaded("ink.zip", packed(tmp_path / "ink"))
    assert app.toggle(key="new-inverted").value
    assert any("dark on light, so they are inverted" in each.value for each in app.caption)
    settle(app.toggle(key="new-inverted").set_value(False).run())
    assert any("MNIST’s digits are light on dark" in each.value for each in app.caption)


def test_an_upload_that_cannot_be_used_is_one_sentence(gallery, data_here):
    app = uploaded("a.zip", b"no archive")
    (error,) = app.error
    assert is_sentence(as_read(error.value))
    assert not any(button.label == "Start training" for button in app.button)


def test_train_names_a_folder_that_cannot_be_used(gallery, tmp_path):
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").input(str(tmp_path / "nothing")).run()
    settle(app)
    assert "nothing" in app.error[0].value
    assert not any(button.label == "Start training" for button in app.button)


@pytest.mark.parametrize(("named", "size"), [("", "12 × 14"), ("@3x48x48", "48 × 48")])
def test_train_takes_the_name_of_a_data_set(gallery, tmp_path, named, size):
    """As on the command line, whose messages the page shows."""
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").input(f"folder:{colours(tmp_path / 'photos', 8)}{named}").run()
    settle(app)
    assert any(f"{size}, colour" in text.value for text in app.text)
    assert any(button.label == "Start training" for button in app.button)


@pytest.mark.parametrize("prefix", ["", "folder:"])
def test_a_size_in_the_path_counts_and_is_said(gallery, tmp_path, prefix):
    """A size that was chosen before it won silently, or the path was taken for another folder."""
    root = colours(tmp_path / "photos", 8)
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.selectbox(key="new-shape").select("1x28x28").run()
    app.text_input(key="new-folder").input(f"{prefix}{root}@3x48x40").run()
    settle(app)
    assert any("48 × 40, colour" in text.value for text in app.text)
    assert any("The path sets the size 3x48x40." in caption.value for caption in app.caption)
    app.text_input(key="new-folder").input(f"{prefix}{root}@3x999x40").run()
    (error,) = app.error
    assert as_read(error.value).endswith("sides of at most 256 pixels; got 3x999x40.")
    app.text_input(key="new-folder").input(f"{prefix}{root}").run()
    assert any("28 × 28, grey" in text.value for text in settle(app).text)


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
    return tmp_path


@pytest.fixture
def untested(small_gallery, data_here, tmp_path):
    """Two models of a folder in which one class has no test images."""
    root = tmp_path / "photos"
    for part, count in (("train", 8), ("test", 2)):
        colours(root / part, count)
    shutil.rmtree(root / "test" / "green")
    for key, model in (("one", "logistic-el-3"), ("two", "logistic-el-mnn-3-2")):
        learned(root, model).save(small_gallery / f"{key}.safetensors")


def test_a_class_without_test_images_breaks_no_page(untested):
    facts, images = images_of("one")
    assert facts["counts"] == [2, 0, 2]
    assert [len(own) for own in images] == [2, 0, 2]
    titles = [live(visit())["models"][key]["title"] for key in ("one", "two")]
    assert all(title.endswith("% error on 4 test images") for title in titles)
    app = visit("compare")
    for opened in ("settings", "disagreements", "confusion"):
        link = {"first": "one", "second": "two", "open": opened}
        report(app, "compare", images[0][0], CLASSES[0], **link)


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
    old = Checkpoint(
        now.header.model_copy(update={"classes": ["1", "10", "2"]}),
        {
            name: value[..., [0, 2, 1], :]
            if name == "classifier.weight"
            else value[..., [0, 2, 1]]
            if name == "classifier.bias"
            else value
            for name, value in now.tensors.items()
        },
    )
    now.save(small_gallery / "now.safetensors")
    old.save(small_gallery / "old.safetensors")
    first, second = (images_of(key) for key in ("now", "old"))
    assert first[0]["classes"] == ["1", "2", "10"]
    assert second[0]["classes"] == ["1", "10", "2"]
    assert torch.equal(first[1][2], second[1][1])
    link = {"first": "now", "second": "old", "open": "disagreements"}
    app = report(visit("compare"), "compare", first[1][0][0], "1", **link)
    assert any(
        "**0** are predicted correctly only by the first" in text.value for text in app.markdown
    )


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


def test_the_form_states_the_limits_of_its_files():
    """It said 50 MB for pictures, too, of which one of 41 MiB is refused."""
    app = visit("train")
    app.selectbox(key="new-data").select("upload:").run()
    (field,) = app.get("file_uploader")
    assert "A picture may have up to 40 MiB, an archive up to 50 MiB." in field.proto.help
