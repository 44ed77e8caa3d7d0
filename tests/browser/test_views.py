"""Ways to show a field in a real browser: a click on a density, files, the link."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from densembed.data import as_input, load_dataset
from densembed.fields.field import view
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    weighted_field,
)
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import expect, painted, point, settle
from tests.browser.test_explore import DIGITS, width_needed

CHECKPOINT = Checkpoint.open(DIGITS)


def seven():
    test = load_dataset("digits").test
    return test.images[(test.labels == 7).nonzero()[0, 0]]


def test_a_click_on_a_density_opens_it(visit):
    """streamlit#15042: a click on a heatmap selected nothing."""
    page = visit("/?show=densities")
    x, model = as_input(seven()[None]), CHECKPOINT.model()
    shown = densities(model, x)
    gaps = np.linalg.norm(shown.loc[:, None] - shown.loc[None], axis=2) + 99 * np.eye(100)
    lone = int(np.argmax(gaps.min(1) - 99 * (abs(shown.loc - 14) > 12).any(1)))  # none beside it
    t, u = map(float, shown.loc[lone])
    point(page, ".st-key-stage .after .plot", t / 28, u / 28)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("spinbutton", name="Density (1 to 100)")).to_have_value(str(lone + 1))
    own = density_field(model, x, lone)[0]
    np.testing.assert_allclose(painted(settle(page), "figure", "density-own"), own, 1e-4, 1e-6)
    page.reload()  # it is in the link
    expect(page.get_by_role("spinbutton", name="Density (1 to 100)")).to_have_value(str(lone + 1))


def test_class_weight_and_its_numbers(visit):
    """playground#39, netron#1152: people want to take the result away."""
    step = CHECKPOINT.steps[7]
    page = visit(f"/?show=class weight&for=3&more=Take it away&step={step}")
    model = CHECKPOINT.model(7)
    expected = weighted_field(model, as_input(seven()[None]), class_weights(model)[3]).sum(0)
    np.testing.assert_allclose(painted(page, "after"), expected, 1e-3, 1e-4)

    def file(label: str) -> bytes:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).click()
        return waiting.value.path().read_bytes()

    with np.load(io.BytesIO(file("Numbers, NPZ"))) as found:
        seen = view(CHECKPOINT, seven())

        np.testing.assert_allclose(found["after"], seen.fields[7], 1e-5)
        np.testing.assert_allclose(found["class_weight_after"].sum(0), expected, 1e-4, 1e-6)
        np.testing.assert_array_equal(found["input"], seven())
    header, first, *_ = file("Numbers, CSV").decode().splitlines()
    assert header == "column,row,before,after,class_weight_before,class_weight_after"
    assert first.startswith("0.125,0.125,")
    picture = np.array(Image.open(io.BytesIO(file("Input, PNG"))))
    np.testing.assert_array_equal(picture, seven()[0])
    assert b"Plotly.newPlot" in file("Figure, HTML")
    assert file("Model") == DIGITS.read_bytes()


def test_a_field_is_saved_as_svg_and_png(visit):
    """playground#39, netron#1152: people want to take the result away."""
    page = visit("/?show=on the input")
    painted(page, "after")
    page.locator(".st-key-stage .after").hover()
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            page.locator(".st-key-stage .after").get_by_role("button", name=kind).click()
        assert waiting.value.path().read_bytes().startswith(start)
        assert (
            waiting.value.suggested_filename == f"densembed-after-training-epoch-60.{kind.lower()}"
        )


def test_what_it_computes_is_drawn(visit):
    page = visit("/?more=What it computes&for=3")
    gradient = input_gradient(CHECKPOINT.model(), as_input(seven()[None]))[:, 0]
    effect = painted(page, "figure:nth-child(2)", "computes")
    np.testing.assert_allclose(effect, gradient[3], 0, 1e-4)
    strength = painted(page, "figure:nth-child(3)", "computes")
    np.testing.assert_allclose(strength, np.sqrt((gradient**2).mean(0)), 0, 1e-4)


def test_all_classes_are_drawn_and_saved_as_one_picture(visit):
    """playground#39, netron#1152: people want to take the result away."""
    page = visit("/?more=All classes")
    test = load_dataset("digits").test
    images = as_input(test.images[test.labels == 3][:100])
    for kind, expected in zip(
        ("mean", "deviation"), field_statistics(CHECKPOINT.model(), images), strict=True
    ):
        shown = painted(page, "figure:nth-child(4)", f"atlas-{kind}")
        np.testing.assert_allclose(shown, expected, 0, 1e-4)
    page.locator(".st-key-atlas-mean .stage").hover()
    with page.expect_download() as waiting:
        page.locator(".st-key-atlas-mean .stage > .save").get_by_role("button", name="SVG").click()
    source = waiting.value.path().read_text()
    assert ElementTree.fromstring(source).tag.endswith("svg")
    assert source.count("<image ") == 10
    words = re.findall(r"<text[^>]*>([^<]*)</text>", source)
    assert words[:10] == list("0123456789")
    assert words[-1] == "density per pixel²"


def test_the_link_is_copied(browser, server):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(server + "/?show=difference")
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    assert "show=difference" in copied
    context.close()


@pytest.mark.parametrize("more", ["One density", "What it computes", "All classes", "Take it away"])
def test_phone_scrolls_one_way(visit, more):
    page = visit(f"/?more={more}&show=densities", width=420, theme="dark")
    expect(page.locator(".st-key-stage svg").first).to_be_visible()
    settle(page)
    assert width_needed(page) <= 420
