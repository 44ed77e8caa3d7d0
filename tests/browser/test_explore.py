"""Explore as a visitor sees it."""

import numpy as np
import pytest
from playwright.sync_api import expect

from densembed.checkpoint import Checkpoint
from densembed.data import load_dataset
from densembed.data.images import read_picture
from densembed.fields import view
from tests.browser.conftest import ROOT, chart, drawn, serve, settle, visitor

DIGITS = ROOT / "checkpoints/paper/logistic-el-mnn-10-5-digits.safetensors"


def width_needed(page) -> int:
    return page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")


def top_of(page, key: str) -> float:
    return chart(page, key).bounding_box()["y"]


def test_first_visit_paints_both_fields_without_a_click(visit):
    page = visit()
    test = load_dataset("digits").test
    pixels = test.images[(test.labels == 7).nonzero()[0, 0]]
    seen = view(Checkpoint.open(DIGITS), pixels)
    np.testing.assert_allclose(drawn(page, "before"), seen.fields[0].sum(0), 1e-5, 1e-6)
    np.testing.assert_allclose(drawn(page, "after"), seen.fields[-1].sum(0), 1e-5, 1e-6)
    expect(chart(page, "opinion").locator(".bars path").first).to_be_visible()
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") <= 900


def test_pixels_are_square(visit):
    for width in (800, 420):
        page = visit(width=width)
        drawn(page, "after")
        box = chart(page, "after").locator(".heatmaplayer image").bounding_box()
        assert box["width"] == pytest.approx(box["height"], abs=1)


def test_slider_moves_the_field_and_nothing_else(visit):
    page = visit()
    places = [(key, drawn(page, key) and top_of(page, key)) for key in ("before", "after")]
    last = drawn(page, "after")
    thumb = page.get_by_role("slider")
    thumb.focus()
    thumb.press("ArrowLeft")
    expect(page.get_by_text("after 696 steps").first).to_be_visible()
    settle(page)
    assert drawn(page, "after") != last
    assert places == [(key, top_of(page, key)) for key in ("before", "after")]
    page.reload()
    expect(page.get_by_text("after 696 steps").first).to_be_visible()  # it is in the link


def test_upload_is_kept_from_page_to_page(visit, pictures):
    page = visit()
    page.get_by_text("Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(pictures["digit"])
    expect(page.get_by_text("digit.png")).to_be_visible()
    ink = read_picture(pictures["digit"]).pixels[0].numpy() / 255
    np.testing.assert_allclose(drawn(settle(page), "picture"), ink, atol=1e-6)
    for name, title in (("Compare", "What differs"), ("Explore", "look at")):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        np.testing.assert_allclose(drawn(settle(page), "picture"), ink, atol=1e-6)


def test_upload_that_is_no_picture(visit, pictures):
    page = visit("/?from=Upload")
    page.locator("input[type=file]").set_input_files(pictures["letter"])
    expect(page.get_by_test_id("stAlert")).to_be_visible()
    assert page.locator(".js-plotly-plot").count() == 0


@pytest.mark.parametrize("link", ["/", "/train", "/?from=Upload"])
def test_phone_scrolls_one_way(visit, link):
    page = visit(link, width=420, theme="dark")
    if "Upload" not in link:
        expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert width_needed(page) <= 420


def test_phone_shows_input_field_opinion_and_then_the_rest(visit):
    page = visit(width=420)
    drawn(page, "before")
    order = [top_of(page, key) for key in ("picture", "after", "opinion", "before")]
    assert order == sorted(order)
    slider = page.get_by_test_id("stSlider").bounding_box()["y"]
    assert order[2] < slider < order[3]


def test_link_is_the_first_thing_a_new_server_gets(browser, tmp_path):
    """A folder called `pages` beside app.py would be served without the router until then."""
    with serve(tmp_path) as address, visitor(browser, address) as visit:
        page = visit("/compare")
        drawn(page, "first-field")
        for name in ("Explore", "Train", "Compare"):
            expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
