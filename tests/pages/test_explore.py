"""Explore: what the server gives to the view, and what it shows below it."""

import base64
import csv
import io
import threading

import numpy as np
import pytest
import streamlit as st
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest
from torchvision.datasets import MNIST

from densembed.data import as_input
from densembed.data.images import read_picture
from densembed.data.transform import scaled_images
from densembed.fields.field import view
from densembed.fields.measures import densities, density_field
from densembed.figures.export import snippet
from densembed.runs import Run
from densembed.training.checkpoint import Checkpoint
from pages.widgets.explore.tour import STOPS, stops_of
from pages.widgets.inputs import download
from pages.widgets.live import routes
from tests.browser.gallery import made
from tests.conftest import is_sentence
from tests.fields.test_novelty import photographs
from tests.pages.conftest import (
    ROOT,
    as_read,
    component,
    explored,
    live,
    report,
    sample,
    settle,
    visit,
    warnings,
)
from tests.runs.conftest import silent_mirror

SHIPPED = {path.stem: path for path in (ROOT / "checkpoints/paper").glob("*.safetensors")}


def test_first_visit_offers_all_shipped_models(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    app = visit()
    data = live(app)
    assert set(data["models"]) == set(SHIPPED)
    # MNIST is not available here, so the default model is one of the built-in digits.
    assert data["defaults"] == {"model": "logistic-el-mnn-10-5-digits"}
    assert data["link"] == ""
    for key, model in data["models"].items():
        assert key in model["url"]
        assert not model["content"]
        assert Checkpoint.peek(SHIPPED[key]).provenance.dataset_title in model["title"]
    assert not [*app.warning, *app.info, *app.error, *app.get("download_button")]


def test_models_of_one_title_are_told_apart(small_gallery, trained):
    trained.save(small_gallery / "twin.safetensors")
    titles = {key: model["title"] for key, model in live(visit())["models"].items()}
    assert {key: title.rpartition(" · ")[2] for key, title in titles.items()} == {
        "small": "small",
        "twin": "twin",
    }


def test_files_that_do_not_open_are_left_out(small_gallery, trained_file):
    whole = trained_file.read_bytes()
    (small_gallery / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (small_gallery / "empty.safetensors").write_bytes(b"")
    (small_gallery / "letter.safetensors").write_text("Dear reader")
    assert list(live(visit())["models"]) == ["small"]


@pytest.mark.parametrize("page", ["explore", "compare"])
def test_empty_gallery_says_what_to_do(gallery_root, runs_root, page):
    app = visit(page)
    assert "Training one" in app.info[0].value
    assert not app.get("bidi_component") or page == "explore"
    assert [link.proto.label for link in app.get("page_link")] == ["Train a model"]


@pytest.mark.parametrize("page", ["explore", "compare"])
@pytest.mark.parametrize("key", ["gone", "../../etc/passwd", "<b>x</b>", "a\0b", "x" * 999])
def test_a_link_to_a_model_that_is_not_there_reaches_the_view(small_gallery, page, key):
    """The view names it, and shows the default model."""
    name = {"explore": "model", "compare": "first"}[page]
    app = visit(page, **{name: key, "step": "0"})
    data = live(app)
    assert data["defaults"][name] == "small"
    assert list(data["models"]) == ["small"]
    assert name in data["link"]
    report(app, page, sample(), "7", **{name: key})
    assert live(app)["order"] > data["order"]  # it follows the link again


def test_a_model_that_is_deleted_while_it_is_shown(mnist_model, small_gallery):
    app = report(visit(model="other"), "explore", sample(), "7", model="other", more="export")
    order = live(app)["order"]
    (small_gallery / "other.safetensors").unlink()
    data = live(settle(app.run()))
    assert list(data["models"]) == ["small"]
    assert data["link"] == "model=other"
    assert data["order"] > order


def test_a_member_of_a_sweep_or_a_run_is_a_model(small_gallery, trained):
    run = Run.create(trained.config)
    trained.save(run.checkpoint_path)
    assert set(live(visit())["models"]) == {"small", run.identifier}


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        (
            "linear",
            (1, 28, 28),
            ("28 × 28", "prediction change", "no densities: it reads each pixel"),
        ),
        ("cnn-4", (1, 28, 28), ("28 × 28", "prediction change", "each cell of its maps")),
        ("logistic-el-3", (3, 12, 21), ("12 × 21", "prediction change", "are the same for every")),
        (
            "logistic-el-mnn-3-2",
            (1, 28, 28),
            ("28 × 28", "field move", "They move when the picture"),
        ),
        ("stages-2-logistic-el-3", (1, 28, 28), ("28 × 28", "prediction change", "mean of a map")),
    ],
)
def test_the_tour_is_true_for_the_model(model, shape, said):
    stops = stops_of(Checkpoint.from_bytes(made(model, shape)))
    assert len(stops) == STOPS
    text = " ".join(text for _, text in stops)
    assert all(words in text for words in said)
    assert "draw a digit" not in text
    assert "each digit" not in text
    assert ("many of its densities" in text) == ("el-" in model)
    digits = stops_of(Checkpoint.from_bytes(made(model, shape, classes="0123456789")))
    assert "or draw a digit" in digits[0][1]


@pytest.mark.parametrize(
    ("link", "stop"),
    [
        ({}, None),
        ({"tour": "3"}, 3),
        ({"tour": "0"}, 0),
        ({"hide": "predictions"}, 0),
        ({"hide": "menu", "tour": "2"}, 2),
    ],
)
def test_the_tour_and_the_menu_are_the_page_s(small_gallery, link, stop):
    app = visit(**link, show="overlay")
    assert component(app, "tour")["stop"] == stop
    style = " ".join(element.proto.body for element in app.get("html"))
    assert ("stHeader" in style) == (link.get("hide") == "menu")
    rest = "&".join(f"{key}={value}" for key, value in link.items() if key != "tour")
    assert live(app)["link"] == "&".join(filter(None, [rest, "show=overlay"]))


def test_model_of_other_data_says_so(mnist_model, digits):
    app = report(visit(model="other"), "explore", sample(), "7", model="other")
    (note,) = app.info
    assert as_read(note.value) == (
        f"This model was trained on MNIST but is shown {digits.title}, so expect more errors."
    )
    assert "Download the test images of MNIST" in [button.label for button in app.button]


def ask(app: AppTest) -> AppTest:
    """Press the button that downloads the test images."""
    (button,) = [each for each in app.button if each.label.startswith("Download the test images")]
    return settle(button.click().run())


def test_a_download_of_test_images_reaches_the_view(mnist_model, monkeypatch):
    """The browser keeps test images by their URL, so the URL changes."""
    there = threading.Event()
    for place in (download, routes):
        monkeypatch.setattr(place, "is_available", lambda name: there.is_set())
    monkeypatch.setattr(download, "load_dataset", lambda name: there.wait())
    app = visit(model="other")
    before = live(app)
    ask(app)
    assert as_read(app.get("progress")[0].proto.text) == "downloading MNIST · 0.0 MB"
    there.set()
    download._downloads["mnist"].thread.join()
    after = live(settle(app.run()))
    assert after["order"] > before["order"]
    assert after["models"]["other"]["samples"] != before["models"]["other"]["samples"]
    assert after["models"]["other"]["url"] == before["models"]["other"]["url"]


def test_a_download_of_test_images_is_stopped(mnist_model, monkeypatch, tmp_path):
    asked = threading.Event()
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    with silent_mirror(monkeypatch, asked.set):
        app = ask(visit(model="other"))
        asked.wait()
        settle(app.button(key="stop-download").click().run())
        download._downloads["mnist"].thread.join()
        labels = [button.label for button in settle(app.run()).button]
    assert "Download the test images of MNIST" in labels
    assert "Stop the download" not in labels
    assert not app.warning


def test_the_fault_of_a_download_stands_below_its_button(mnist_model, monkeypatch, tmp_path):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    app = ask(visit(model="other"))
    download._downloads["mnist"].thread.join()
    (warning,) = settle(app.run()).warning
    assert is_sentence(as_read(warning.value))
    assert "127.0.0.1" in as_read(warning.value)
    assert not visit(model="other").warning  # of a visitor who has not asked


# The visitor's own picture


def upload(app: AppTest, data: bytes, name: str = "picture.png") -> AppTest:
    """Choose a file in the uploader, which the view's report has shown."""
    report(app, "explore", sample(), "7", **{"from": "upload"})
    app.file_uploader(key="upload").set_value((name, data, "application/octet-stream"))
    return settle(app.run())


def pixels_sent(app: AppTest) -> bytes:
    return base64.b64decode(live(app)["upload"])


@pytest.mark.parametrize("name", ["photo.jfif", "photo", "photo.heic", "photo.JPG.txt", "x.png"])
def test_a_picture_is_read_whatever_the_name_of_its_file(small_gallery, pictures, name):
    data = io.BytesIO()
    Image.open(pictures["digit"]).save(data, "JPEG")
    app = upload(visit(), data.getvalue(), name)
    assert not [*app.error, *app.warning]
    path = pictures["digit"].with_name("photo-for-names")
    path.write_bytes(data.getvalue())
    assert pixels_sent(app) == read_picture(path).pixels.numpy().tobytes()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            b"\0\0\0\x18ftypheic" + bytes(100),
            "The file is a video, or a damaged HEIC",
        ),
        (b"Dear reader, this is no picture.", "The file is not a picture"),
        (b"", "The picture file is empty"),
        (bytes(41 * 2**20), "The picture is 41.0 MiB, more than the 40 MiB"),
    ],
    ids=["video", "letter", "empty", "large"],
)
def test_another_file_gets_one_sentence(small_gallery, pictures, data, sentence):
    app = upload(visit(**{"from": "upload"}), data, "../../photo.png")
    (error,) = app.error
    assert as_read(error.value).startswith(sentence)
    assert as_read(error.value).endswith(" An example is shown.")
    assert is_sentence(as_read(error.value))
    assert not live(app)["upload"]
    assert pixels_sent(upload(app, pictures["digit"].read_bytes()))
    app.query_params["ink"] = "of the picture before"
    upload(app, data, "../../photo.png")
    assert "ink" not in app.query_params
    assert not live(app)["upload"]


def remarks(app: AppTest, pixels, **link) -> list[str]:
    return warnings(report(app, "explore", pixels, None, **link))


def test_remarks_about_a_picture(small_gallery, pictures, tmp_path):
    """r4ghu/iOS-CoreML-MNIST#3: a class was predicted of an empty page."""
    app = upload(visit(), pictures["empty"].read_bytes())
    shown = read_picture(pictures["empty"]).pixels
    assert remarks(app, shown, **{"from": "upload"}) == ["No digit found. Is the picture blank?"]
    path = tmp_path / "temple.jpg"
    path.write_bytes(photographs(1)[0])
    upload(app, path.read_bytes())
    (warning,) = remarks(app, read_picture(path).pixels, **{"from": "upload"})
    assert "unlike the training images of this model" in warning
    assert is_sentence(warning)
    upload(app, pictures["digit"].read_bytes())
    assert not remarks(app, read_picture(pictures["digit"]).pixels, **{"from": "upload"})


def test_frames_that_are_not_read_are_named_until_another_picture(small_gallery, pictures):
    page = Image.open(pictures["digit"])
    file = io.BytesIO()
    page.save(file, "WEBP", save_all=True, append_images=[page.rotate(20)], lossless=True)
    app = upload(visit(), file.getvalue())
    shown = read_picture(pictures["digit"]).pixels
    assert not remarks(app, shown, **{"from": "upload"})
    (note,) = app.info
    assert as_read(note.value) == "The picture has 2 frames: only the first was read."
    upload(app, pictures["digit"].read_bytes())
    assert not remarks(app, shown, **{"from": "upload"})
    assert not app.info


@pytest.mark.parametrize("source", ["upload", "draw"])
def test_remarks_about_a_picture_of_a_link(small_gallery, source):
    """The picture is in the report alone. Remarks about a drawing are in the view."""
    app = visit()
    assert not remarks(app, sample(), **{"from": source})
    said = remarks(app, 0 * sample(), **{"from": source})
    assert said == (["No digit found. Is the picture blank?"] if source == "upload" else [])


def test_a_picture_survives_other_pages_and_can_be_removed(small_gallery, pictures):
    """crxi/multipage_streamlit#1: an upload vanished on a change of page."""
    app = upload(visit(), pictures["digit"].read_bytes())
    sent = pixels_sent(app)
    for page in ("compare", "explore"):
        app.switch_page(f"pages/{page}.py").run()
        report(app, page, sample(), "7", **{"from": "upload"})
        assert pixels_sent(app) == sent
    app.query_params["from"], app.query_params["ink"] = "upload", "AAAA"
    (button,) = [each for each in app.button if each.label == "Remove the picture"]
    before = live(app)["order"]
    after = live(settle(button.click().run()))
    assert not after["upload"]
    # The view may not have met the picture but in its link, which it reads again.
    assert "ink" not in after["link"]
    assert after["order"] > before


# Downloads


def offered(monkeypatch, link: dict[str, str], pixels=None) -> tuple[AppTest, dict[str, bytes]]:
    """The page with Export, and the content of each file by the label of its button."""
    files = {}

    def button(label, data, *args, **kwargs):
        files[label] = data()

    monkeypatch.setattr(st, "download_button", button)
    app = visit(**link)
    report(app, "explore", sample() if pixels is None else pixels, "7", more="export", **link)
    return app, files


def test_an_exported_page_has_the_name_of_the_run(small_gallery, trained, monkeypatch):
    run = Run.create(trained.config)
    trained.save(run.checkpoint_path)
    run.rename("my run")
    _, files = offered(monkeypatch, {"model": run.identifier})
    assert '"title": "my run \\u00b7 ' in files["Page, HTML"].replace("·", "\\u00b7")


def test_downloads_contain_what_is_shown(small_gallery, trained, trained_file, monkeypatch):
    """playground#39, netron#1152: figures, numbers, the model, a program."""
    k, label = 4, 3
    step = trained.steps[k]
    app, files = offered(monkeypatch, {"step": str(step), "show": "class", "for": str(label)})
    assert list(files) == [
        "Numbers, CSV",
        "Numbers, NPZ",
        "Page, HTML",
        "Figure, SVG",
        "Figure, PDF",
        "Figure, PNG",
        "Animation, GIF",
        "Animation, WebP",
        "Input, PNG",
        "Model",
    ]
    expected, numbers = view(trained, sample()), np.load(io.BytesIO(files["Numbers, NPZ"]))
    np.testing.assert_array_equal(numbers["before"], expected.fields[0])
    np.testing.assert_array_equal(numbers["after"], expected.fields[k])
    model, x = trained.model(k), as_input(sample()[None])
    weights = densities(model, x).weights[label]
    own = sum(w * density_field(model, x, i) for i, w in enumerate(weights.tolist()))
    np.testing.assert_allclose(numbers["class_weight_after"], own, 1e-4, 1e-5)
    rows = list(csv.DictReader(io.StringIO(files["Numbers, CSV"])))
    after = np.array([float(row["after"]) for row in rows])
    np.testing.assert_allclose(after, expected.fields[k].ravel(), 1e-5)
    np.testing.assert_array_equal(
        np.array(Image.open(io.BytesIO(files["Input, PNG"]))), sample()[0]
    )
    assert files["Model"] == trained_file.read_bytes()
    assert app.code[0].value == snippet("small.safetensors", sample(), step).strip()
    for kind, start in (("SVG", b"<?xml"), ("PDF", b"%PDF"), ("PNG", b"\x89PNG")):
        assert files[f"Figure, {kind}"].startswith(start)
    assert Image.open(io.BytesIO(files["Animation, GIF"])).n_frames == len(trained.steps)


def test_downloads_on_another_grid(small_gallery, trained, monkeypatch):
    app, files = offered(monkeypatch, {"grid": "14", "show": "class", "for": "3"})
    pixels = scaled_images(sample(), (14, 14))
    numbers = np.load(io.BytesIO(files["Numbers, NPZ"]))
    np.testing.assert_array_equal(numbers["after"], view(trained, pixels, [-1]).fields[0])
    assert numbers["class_weight_after"].shape == (1, 56, 56)
    np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(files["Input, PNG"]))), pixels[0])
    assert "grid=14" in files["Page, HTML"]
    program = snippet("small.safetensors", sample(), trained.steps[-1], (14, 14))
    assert app.code[0].value == program.strip()


@pytest.mark.parametrize("grid", ["x", "0", "1024"])
def test_downloads_without_a_grid_of_a_view_are_on_that_of_the_data(small_gallery, trained, grid):
    app = explored(more="export", grid=grid)
    assert app.code[0].value == snippet("small.safetensors", sample(), trained.steps[-1]).strip()


def test_every_shipped_model_is_exported(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    monkeypatch.setattr(st, "download_button", lambda *args, **kwargs: None)
    app = visit()
    for key, path in SHIPPED.items():
        signals = Checkpoint.peek(path).scaling
        shown = torch.linspace(-2, 2, 40) if signals else sample()
        report(app, "explore", shown, "7", model=key, more="export", show="class")
        assert f"{key}.safetensors" in app.code[0].value


@pytest.mark.parametrize("step", ["", "x", "-1", "9" * 99])
def test_export_without_a_saved_step_is_of_the_last_one(small_gallery, trained, step):
    app = explored(more="export", step=step)
    assert app.code[0].value == snippet("small.safetensors", sample(), trained.steps[-1]).strip()


def test_export_closes_with_the_view_s_part(small_gallery):
    app = explored({"printed": "one-column"}, more="export")
    assert app.query_params["printed"] == "one-column"
    report(app, "explore", sample(), "7")
    assert not app.get("download_button")
    assert "printed" not in app.query_params
