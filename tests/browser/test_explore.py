"""Explore as a visitor sees it."""

import re

import numpy as np
import pytest

from densembed.data import load_dataset
from densembed.data.images import read_picture
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import (
    PATIENCE,
    ROOT,
    expect,
    painted,
    places,
    point,
    serve,
    settle,
    stage_at,
    visitor,
)

DIGITS = ROOT / "checkpoints/paper/logistic-el-mnn-10-5-digits.safetensors"


def width_needed(page) -> int:
    return page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")


def seven():
    test = load_dataset("digits").test
    return test.images[(test.labels == 7).nonzero()[0, 0]]


def test_first_visit_paints_both_fields_without_a_click(visit):
    page = visit()
    seen = view(Checkpoint.open(DIGITS), seven())
    np.testing.assert_allclose(painted(page, "before"), seen.fields[0].sum(0), 1e-4, 1e-5)
    np.testing.assert_allclose(painted(page, "after"), seen.fields[-1].sum(0), 1e-4, 1e-5)
    rows = page.locator(".st-key-stage .bars li")
    shares = [f"{100 * p:.0f} %" for p in seen.probabilities[-1]]
    expect(rows.locator(".value")).to_have_text(shares)
    expect(rows.nth(7).locator(".name")).to_have_text("7 ◂")
    page.wait_for_function(
        "document.querySelector('[data-testid=stMain]').scrollHeight <= 900", timeout=PATIENCE
    )


def test_bars_begin_on_one_line_whatever_the_classes_are_called(visit):
    page = visit()
    painted(page, "after")
    bars = page.locator(".st-key-stage .bars")
    starts = bars.evaluate(
        """bars => {
          [...bars.querySelectorAll(".name")].forEach((name, k) => {
            name.textContent = ["cat", "automobile", "a name that is much too long"][k % 3];
          });
          return [...bars.querySelectorAll(".track")].map(
            (track) => track.getBoundingClientRect().left);
        }"""
    )
    assert len(starts) == 10
    assert max(starts) - min(starts) < 1


def test_pixels_are_square(visit):
    for width in (800, 420):
        page = visit(width=width)
        painted(page, "after")
        (box,) = places(page, ".st-key-stage .after canvas")
        assert box["width"] == pytest.approx(box["height"], abs=1)


def test_slider_moves_the_field_and_nothing_else(visit):
    page = visit()
    checkpoint = Checkpoint.open(DIGITS)
    seen = view(checkpoint, seven())
    panels = ".st-key-stage figure, .st-key-stage .steps, .st-key-show"
    painted(page, "after")
    before = places(page, panels)
    thumb = page.get_by_role("slider", name="Step of training")
    for back in (2, 3):
        thumb.press("ArrowLeft")
        stage_at(page, checkpoint.steps[-back])  # at once: no server was asked
        after = seen.fields[-back].sum(0)
        np.testing.assert_allclose(painted(page, "after"), after, 1e-4, 1e-5)
        shares = [f"{100 * p:.0f} %" for p in seen.probabilities[-back]]
        expect(page.locator(".st-key-stage .bars .value")).to_have_text(shares)
    assert before == places(page, panels)
    page.wait_for_url(f"**step={checkpoint.steps[-3]}*")  # and the link follows
    settle(page).reload()
    stage_at(page, checkpoint.steps[-3])
    thumb.press("Home")
    np.testing.assert_allclose(painted(page, "after"), seen.fields[0].sum(0), 1e-4, 1e-5)


def test_play_goes_through_the_steps(visit):
    page = visit()
    painted(page, "after")
    page.locator(".st-key-stage .stage").evaluate(
        """root => {
          root.seen = [];
          new MutationObserver(() => root.seen.push([root.dataset.step, performance.now()]))
            .observe(root, { attributeFilter: ["data-step"] });
        }"""
    )
    page.get_by_role("button", name="Play").click()
    steps = Checkpoint.open(DIGITS).steps
    page.wait_for_function(
        "last => document.querySelector('.st-key-stage').textContent !== null && "
        "[...document.querySelectorAll('.st-key-stage *')].some(e => e.shadowRoot?.querySelector("
        "'.stage')?.seen?.at(-1)?.[0] === last)",
        arg=str(steps[-1]),
    )
    seen = page.locator(".st-key-stage .stage").evaluate("root => root.seen")
    shown = [int(step) for step, _ in seen]  # on a busy machine some are skipped, none is late
    assert (shown[0], shown[-1]) == (steps[0], steps[-1])
    assert set(shown) <= set(steps)
    assert shown == sorted(shown)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_hover_and_arrow_keys_tell_the_value(visit):
    page = visit()
    field = painted(page, "after")
    plot = page.locator(".st-key-stage .after .plot")
    tip = page.locator(".st-key-stage .after .tip")
    for t, u in ((3.1, 20.2), (25.6, 7.9)):
        point(page, ".st-key-stage .after .plot", t / 28, u / 28)
        expect(tip).to_contain_text(f"pixel {int(t)}, {int(u)}")
        expect(tip).to_contain_text(f"{field[int(4 * u), int(4 * t)]:.4f} per pixel²")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    plot.press("ArrowRight")
    expect(plot).to_have_attribute("aria-label", re.compile("column 15.50, row 14.50"))


def test_upload_is_kept_from_page_to_page(visit, pictures):
    """crxi/multipage_streamlit#1: an upload vanished on a change of page."""
    page = visit()
    page.get_by_text("Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(pictures["digit"])
    expect(page.get_by_text("digit.png")).to_be_visible()
    page.wait_for_url("**ink=*")  # the name of the file is there before the server has read it
    ink = read_picture(pictures["digit"]).pixels[0].numpy() / 255
    np.testing.assert_allclose(painted(settle(page), "figure", "the-input"), ink, atol=1e-5)
    for name, title in (("Compare", "What differs"), ("Explore", "look at")):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        np.testing.assert_allclose(painted(settle(page), "figure", "the-input"), ink, atol=1e-5)


def test_upload_that_is_no_picture(visit, pictures):
    page = visit("/?from=Upload")
    page.locator("input[type=file]").set_input_files(pictures["letter"])
    expect(page.get_by_text("not a picture")).to_be_visible()
    shown = painted(settle(page), "figure", "the-input")  # the example is still there
    np.testing.assert_allclose(shown, seven()[0] / 255, atol=1e-5)


@pytest.mark.parametrize("link", ["/", "/train", "/?from=Upload"])
def test_phone_scrolls_one_way(visit, link):
    page = visit(link, width=420, theme="dark")
    if "Upload" not in link:
        expect(page.locator(".js-plotly-plot, .st-key-the-input canvas").first).to_be_visible()
    assert width_needed(page) <= 420


def test_link_is_the_first_thing_a_new_server_gets(browser, tmp_path):
    """A folder called `pages` beside app.py would be served without the router until then."""
    with serve(tmp_path) as address, visitor(browser, address) as visit:
        page = visit("/compare")
        painted(page, "field.first", "columns")
        for name in ("Explore", "Train", "Compare"):
            expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()


def test_on_a_phone_one_view_has_the_fields_and_what_changes_them(visit):
    page = visit("/?tour=0", width=420)
    ways, given, prediction, before, after, steps, bars = (
        places(page, f".live {selector}")[0]
        for selector in (
            ".ways", ".input .plot", ".pair .opinion .heading", ".before", ".after",
            ".pair .steps", ".pair .bars",
        )
    )  # fmt: skip
    assert ways["y"] + ways["height"] <= given["y"] < prediction["y"] < before["y"] == after["y"]
    assert before["x"] + before["width"] <= after["x"]
    assert after["y"] + after["height"] <= steps["y"] < bars["y"]
    assert steps["y"] + steps["height"] - ways["y"] <= 700
    page.get_by_role("slider", name="Step of training").fill("0")  # which scrolls to it
    expect(page.locator(".live .pair .stage")).to_have_attribute("data-step", "0")
    now, first = (places(page, f".live .pair {part}")[0] for part in (".steps", ".before"))
    assert now["y"] - first["y"] == steps["y"] - before["y"]
