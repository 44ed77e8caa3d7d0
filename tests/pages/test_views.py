"""Every way to show a field, and what lies one click deeper, against `fields` and `meaning`."""

import numpy as np
import pytest

from densembed.data import as_input
from densembed.fields import view
from densembed.meaning import (
    class_weights,
    densities,
    input_gradient,
    measure,
    moved,
    one_density,
    spread_of_fields,
    weighted_field,
)
from tests.pages.conftest import charts, scale, settle, values, visit
from tests.pages.test_explore import ROOT, SHIPPED, sample


def captions(app) -> str:
    return " ".join(caption.value for caption in app.caption)


def test_field_over_the_input(small_gallery, trained):
    app = visit(show="on the input", opacity="0.3")
    seen, drawn = view(trained, sample(7)), charts(app)
    for key, k in (("before", 0), ("after", -1)):
        under, over = drawn[key]["data"]
        ink = sample(7)[0].numpy() / 255
        np.testing.assert_allclose(values(drawn[key], "z", 0), ink, atol=1e-6)
        np.testing.assert_allclose(values(drawn[key], "z", 1), seen.fields[k].sum(0), 1e-5, 1e-7)
        assert over["opacity"] == 0.3
        assert over["zmax"] == pytest.approx(seen.top)
        assert not under["showscale"]


def test_difference_to_before(small_gallery, trained):
    app = visit(show="difference", step=str(trained.steps[4]))
    seen, drawn = view(trained, sample(7)), charts(app)
    change = (seen.fields[4] - seen.fields[0]).sum(0)
    np.testing.assert_allclose(values(drawn["after"]), change, 1e-4, 1e-6)
    assert scale(drawn["after"]) == pytest.approx((-seen.top, seen.top))
    np.testing.assert_allclose(values(drawn["before"]), seen.fields[0].sum(0), 1e-5, 1e-7)


@pytest.mark.parametrize("label", ["3", None])
def test_densities(small_gallery, trained, label):
    app = visit(show="densities", **({"for": label} if label else {}))
    shown = densities(trained.model(), as_input(sample(7)[None]))
    index = int(label or view(trained, sample(7)).probabilities[-1].argmax())
    chart = charts(app)["after"]
    (dots,) = (k for k, trace in enumerate(chart["data"]) if trace.get("mode") == "markers")
    np.testing.assert_allclose(values(chart, "x", dots), shown.loc[:, 0], 1e-5)
    np.testing.assert_allclose(values(chart, "y", dots), shown.loc[:, 1], 1e-5)
    marker = chart["data"][dots]["marker"]
    colours = values({"data": [{"color": marker["color"]}]}, "color")
    np.testing.assert_allclose(colours, shown.weights[index], 1e-5)
    assert marker["cmin"] == -marker["cmax"]
    lines = [k for k, trace in enumerate(chart["data"]) if trace.get("mode") == "lines"]
    outline = np.concatenate([values(chart, "x", k) for k in lines])
    ellipses = outline.reshape(len(shown.loc), -1)[:, :-1]
    widths = np.sort((ellipses.max(1) - ellipses.min(1)) / 2)
    np.testing.assert_allclose(widths, np.sort(shown.scale[:, 0]), 1e-4)


def test_class_weight(small_gallery, trained):
    app = visit(show="class weight", **{"for": "4"})
    for key, k in (("before", 0), ("after", -1)):
        model = trained.model(k)
        expected = weighted_field(model, as_input(sample(7)[None]), class_weights(model)[4])
        np.testing.assert_allclose(values(charts(app)[key]), expected.sum(0), 1e-4, 1e-6)
    low, high = scale(charts(app)["after"])
    assert low == -high
    assert scale(charts(app)["before"]) == (low, high)


def test_a_way_that_is_none_is_named(small_gallery, trained):
    app = visit(show="Mars", **{"for": "x"}, more="y")
    assert [warning.value for warning in app.warning]
    field = view(trained, sample(7)).fields[-1].sum(0)
    np.testing.assert_allclose(values(charts(app)["after"]), field, 1e-5, 1e-7)


def test_numbers_are_the_fields(small_gallery, trained):
    app = visit()
    seen, x = view(trained, sample(7)), as_input(sample(7)[None])
    found = measure(seen.fields[-1], seen.fields[0], seen.x, seen.y)
    first, last = (densities(trained.model(k), x) for k in (0, -1))
    line = captions(app)
    for text in (
        f"centre {found.centre[0]:.1f}, {found.centre[1]:.1f}",
        f"spread {found.spread:.1f} pixels",
        f"entropy {found.entropy:.1f} of 9.6 bits",
        f"in {found.area:.0f} of 784 pixels",
        f"moved {moved(first, last):.1f} pixels",
    ):
        assert text in line


def test_one_density(small_gallery, trained):
    app = visit(more="One density", density="5", show="densities")
    x, model = as_input(sample(7)[None]), trained.model()
    drawn, shown = charts(app), densities(model, x)
    np.testing.assert_allclose(
        values(drawn["density-own"]), one_density(model, x, 4)[0], 1e-4, 1e-7
    )
    np.testing.assert_allclose(values(drawn["density-weights"], "x"), shown.weights[:, 4], 1e-5)
    path = [densities(trained.model(k), x).loc[4] for k in range(len(trained.steps))]
    np.testing.assert_allclose(values(drawn["density-path"], "x"), np.array(path)[:, 0], 1e-5)
    np.testing.assert_allclose(values(drawn["density-path"], "y"), np.array(path)[:, 1], 1e-5)
    text = " ".join(element.value for element in app.markdown)
    for number in (*shown.loc[4], *shown.scale[4]):
        assert f"{number:.2f}" in text
    ring = drawn["after"]["data"][-1]
    assert values(drawn["after"], "x", -1) == pytest.approx(shown.loc[4, 0], rel=1e-5), ring
    settle(app.number_input(key="density").set_value(9).run())
    np.testing.assert_allclose(
        values(charts(app)["density-own"]), one_density(model, x, 8)[0], 1e-4, 1e-7
    )


def test_what_it_computes(small_gallery, trained):
    app = visit(more="What it computes", **{"for": "2"})
    gradient = input_gradient(trained.model(), as_input(sample(7)[None]))
    drawn = charts(app)
    np.testing.assert_allclose(values(drawn["computes-signed"]), gradient[2, 0], 1e-4, 1e-6)
    strength = np.sqrt((gradient[:, 0] ** 2).mean(0))
    np.testing.assert_allclose(values(drawn["computes-strength"]), strength, 1e-4, 1e-6)


def test_atlas(small_gallery, trained, digits):
    drawn = charts(visit(more="All classes"))
    for label in (0, 6):
        images = digits.test.images[digits.test.labels == label][:100]
        pair = spread_of_fields(trained.model(), as_input(images))
        for kind, expected in zip(("mean", "deviation"), pair, strict=True):
            np.testing.assert_allclose(
                values(drawn[f"atlas-{kind}"], "z", label), expected, 1e-4, 1e-6
            )


MORE = ["What am I looking at?", "One density", "What it computes", "All classes"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("more", MORE)
def test_every_shipped_model_goes_deeper(monkeypatch, runs_root, path, more):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    for show in ("densities", "class weight"):
        app = visit(model=path.stem, more=more, show=show, step="0")
        assert {"before", "after"} <= charts(app).keys()


@pytest.mark.parametrize("density", ["0", "-3", "17", "x", "9" * 5000, "٣"])
def test_a_density_that_is_not_there_is_named(small_gallery, density):
    app = visit(more="One density", density=density, show="densities")
    assert "density" in app.warning[0].value
    assert 1 <= app.number_input(key="density").value <= 16
