"""Every way to show a field, and what lies one click deeper, against `fields` and `meaning`."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from pages.widgets.explore.views import OLD_WAYS
from PIL import Image

from densembed.data import Split, as_input
from densembed.data.codec import to_text
from densembed.fields.field import view
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    mean_displacement,
    measure,
    weighted_field,
)
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from tests.pages.conftest import (
    assert_shows,
    charts,
    settle,
    stage,
    stills,
    values,
    visit,
    warnings,
)
from tests.pages.test_explore import ROOT, SHIPPED, sample, shows


def test_field_over_the_input(small_gallery, trained):
    app = visit(show="on the input", opacity="0.3")
    moving = stage(app)
    shows(app, trained, sample(7))
    assert moving["picture"]["opacity"] == 0.3
    png = base64.b64decode(moving["picture"]["url"].partition("base64,")[2])
    np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(png))), sample(7)[0])


@pytest.mark.parametrize("show", ["difference", "swipe"])
def test_both_fields_are_there_for_a_difference(small_gallery, trained, show):
    app = visit(show=show, step=str(trained.steps[4]))
    shows(app, trained, sample(7), 4)
    assert stage(app)["way"] == show
    top = view(trained, sample(7)).top
    signed = stage(app)["scales"][1]
    assert (signed["low"], signed["high"]) == pytest.approx((-top, top))


def test_sum_of_gamma_on_the_pixels(small_gallery, trained):
    moving = stage(visit(show="pixels"))
    x = as_input(sample(7)[None])
    for k in (0, 3, -1):
        gamma = trained.model(k).embedding.gamma(x)  # (1, channels, densities, 28, 28)
        np.testing.assert_allclose(moving["values"][k], gamma.sum((0, 1, 2)), 1e-4, 5e-5)


@pytest.mark.parametrize("label", ["3", None])
def test_densities(small_gallery, trained, label):
    moving = stage(visit(show="densities", **({"for": label} if label else {})))
    index = int(label or view(trained, sample(7)).probabilities[-1].argmax())
    for k in (0, 4, -1):
        shown = densities(trained.model(k), as_input(sample(7)[None]))
        np.testing.assert_allclose(moving["dots"]["loc"][k], shown.loc, 1e-5)
        np.testing.assert_allclose(moving["dots"]["scale"][k], shown.scale, 1e-5)
        np.testing.assert_allclose(moving["dots"]["weights"][k], shown.weights[index], 1e-5)
    (scale,) = moving["scales"]
    assert scale["low"] == -scale["high"] == -moving["dots"]["bound"]


def test_class_weight(small_gallery, trained):
    moving = stage(visit(show="class weight", **{"for": "4"}))
    for k in (0, 5, -1):
        model = trained.model(k)
        expected = weighted_field(model, as_input(sample(7)[None]), class_weights(model)[4])
        np.testing.assert_allclose(moving["values"][k], expected.sum(0), 1e-4, 5e-5)
    (scale,) = moving["scales"]
    assert scale["low"] == -scale["high"]


def test_a_way_that_is_none_is_named(small_gallery, trained):
    app = visit(show="Mars", **{"for": "x"}, more="y")
    (said,) = warnings(app)
    assert said.count("The link sets “") == 3
    shows(app, trained, sample(7))


def test_numbers_are_the_fields(small_gallery, trained):
    lines = stage(visit())["numbers"]
    seen, x = view(trained, sample(7)), as_input(sample(7)[None])
    for k in (0, 3, -1):
        found = measure(seen.fields[k], seen.fields[0], seen.x, seen.y)
        first, now = (densities(trained.model(n), x) for n in (0, k))
        for text in (
            f"centre {found.centre[0]:.1f}, {found.centre[1]:.1f}",
            f"spread {found.spread:.1f} pixels",
            f"entropy {found.entropy:.1f} of 9.6 bits",
            f"in {found.area:.0f} of 784 pixels",
            f"moved {mean_displacement(first, now):.1f} pixels",
        ):
            assert text in lines[k]


def test_one_density(small_gallery, trained):
    app = visit(more="One density", density="5", show="densities")
    x, model = as_input(sample(7)[None]), trained.model()
    drawn, shown = charts(app), densities(model, x)
    assert_shows(stills(app)["density-own"][0], density_field(model, x, 4)[0])
    np.testing.assert_allclose(values(drawn["density-weights"], "x"), shown.weights[:, 4], 1e-5)
    path = [densities(trained.model(k), x).loc[4] for k in range(len(trained.steps))]
    np.testing.assert_allclose(values(drawn["density-path"], "x"), np.array(path)[:, 0], 1e-5)
    np.testing.assert_allclose(values(drawn["density-path"], "y"), np.array(path)[:, 1], 1e-5)
    text = " ".join(element.value for element in app.markdown)
    for number in (*shown.loc[4], *shown.scale[4]):
        assert f"{number:.2f}" in text
    assert stage(app)["dots"]["chosen"] == 5
    settle(app.number_input(key="density").set_value(9).run())
    assert_shows(stills(app)["density-own"][0], density_field(model, x, 8)[0])


def test_what_it_computes(small_gallery, trained):
    app = visit(more="What it computes", **{"for": "2"})
    gradient = input_gradient(trained.model(), as_input(sample(7)[None]))
    looks, signed, strength = stills(app)["computes"]
    assert_shows(looks, view(trained, sample(7), [-1]).fields[0].sum(0))
    assert_shows(signed, gradient[2, 0])
    assert signed["scale"]["low"] == -signed["scale"]["high"] < 0
    assert_shows(strength, np.sqrt((gradient[:, 0] ** 2).mean(0)))


def test_atlas(small_gallery, trained, digits):
    drawn = stills(visit(more="All classes"))
    for label in (0, 6):
        images = digits.test.images[digits.test.labels == label][:100]
        pair = field_statistics(trained.model(), as_input(images))
        for kind, expected in zip(("mean", "deviation"), pair, strict=True):
            assert_shows(drawn[f"atlas-{kind}"][label], expected)


def test_fixed_densities_deviate_by_nothing_on_the_scale_of_their_mean(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    drawn = stills(visit(model="logistic-el-15-digits", more="All classes"))
    assert not any(each["values"].any() for each in drawn["atlas-deviation"])
    ends = {
        each["scale"]["high"] for kind in ("mean", "deviation") for each in drawn[f"atlas-{kind}"]
    }
    assert len(ends) == 1


def test_a_view_that_another_model_has_not_leaves_the_link(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    app = visit(model="logistic-el-15-digits", more="One density")
    app.selectbox(key="model").set_value("linear")
    settle(app.run())
    assert dict(app.query_params) == {"model": "linear"}


MORE = ["What am I looking at?", "One density", "What it computes", "All classes"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("more", MORE)
def test_every_shipped_model_goes_deeper(monkeypatch, runs_root, path, more):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    for show in ("densities", "class weight"):
        app = visit(model=path.stem, more=more, show=show, step="0")
        assert stage(app)["step"] == 0


@pytest.mark.parametrize("density", ["0", "-3", "17", "x", "9" * 5000])
def test_a_density_that_is_not_there_is_named(small_gallery, density):
    app = visit(more="One density", density=density, show="densities")
    assert "“Density”" in warnings(app)[0]
    assert 1 <= app.number_input(key="density").value <= 16


@pytest.fixture
def colour_model(gallery_root, runs_root, digits) -> Checkpoint:
    """A network on colour pictures, after one epoch on tinted digits."""
    tint = torch.tensor([1.0, 0.6, 0.2])[:, None, None]
    train_set, test_set = (
        Split((split.images * tint).byte(), split.labels) for split in (digits.train, digits.test)
    )
    dataset = replace(digits, train=train_set, test=test_set)
    config = RunConfig(model="logistic-el-3", epochs=1, device="cpu")
    recorder = Recorder(config, dataset)
    for event in train(config, dataset):
        recorder.add(event)
    checkpoint = recorder.checkpoint("done")
    checkpoint.save(gallery_root / "colour.safetensors")
    return checkpoint


@pytest.mark.parametrize("channel", ["together", "red", "blue"])
def test_colour_by_channel_or_together(colour_model, channel):
    pixels = torch.randint(0, 256, (3, 28, 28), dtype=torch.uint8)
    link = {"from": "Upload", "ink": to_text(pixels), "channel": channel}
    moving = stage(visit(**link))
    fields = np.stack(view(colour_model, pixels).fields)
    assert fields.shape[1] == 3
    index = {"together": slice(None), "red": slice(0, 1), "blue": slice(2, 3)}[channel]
    np.testing.assert_allclose(moving["values"], fields[:, index].sum(1), 1e-4, 5e-5)
    assert moving["scales"][0]["high"] == pytest.approx(view(colour_model, pixels).top)
    for way in ("pixels", "class weight", "densities", "on the input"):
        assert stage(visit(**link, show=way))["way"] == OLD_WAYS.get(way, way)
