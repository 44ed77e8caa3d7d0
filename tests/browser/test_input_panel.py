"""The input of a view: examples, changes, morphs and drawings."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page

from densembed.data.codec import from_text, to_text
from densembed.data.transform import Transform
from densembed.web.site import EXAMPLES
from tests.browser.conftest import (
    choose,
    drag,
    expect,
    fingers,
    numbers,
    point,
    press,
    shows,
    until,
)
from tests.browser.gallery import (
    FIELD,
    INPUT,
    made,
    sample,
)
from tests.browser.views import PAD, alike, drawn, field_of, follows, rests


def test_class_example_thumbnails_and_shuffle(site):
    page = site()
    choose(page, "Class", "3")
    shows(page, FIELD, field_of(sample(3)))
    page.get_by_label("Example", exact=True).fill("4")
    page.get_by_label("Example", exact=True).press("Enter")
    shows(page, FIELD, field_of(sample(3, 4)))
    row = page.locator(".thumbnails")
    row.get_by_role("button", name="Example 9", exact=True).click()
    shows(page, INPUT, sample(3, 9)[0].numpy() / 255)
    expect(page.get_by_label("Example", exact=True)).to_have_value("9")
    expect(row.locator("[aria-pressed=true]")).to_have_attribute("title", "Example 9")
    titles = "all => all.map(each => each.title)"
    first = row.get_by_role("button").evaluate_all(titles)
    row.get_by_role("button", name="Shuffle").click()
    page.wait_for_url("**shuffle=*")
    shuffled = row.get_by_role("button").evaluate_all(titles)
    assert shuffled != first
    assert len(set(shuffled)) == 17
    page.reload()
    until(page, lambda: row.get_by_role("button").evaluate_all(titles) == shuffled)
    page.get_by_label("Example", exact=True).fill("99")
    page.get_by_label("Example", exact=True).press("Enter")
    expect(page.get_by_label("Example", exact=True)).to_have_value(str(EXAMPLES))
    shows(page, FIELD, field_of(sample(3, EXAMPLES)))


SLIDERS = {
    "right": ("Move to the right", 3),
    "down": ("Move down", -2.5),
    "size": ("Size", 1.2),
    "turn": ("Turn clockwise", 25),
    "blur": ("Blur", 0.75),
    "noise": ("Noise", 0.1),
}


def test_sliders_change_the_input_as_python_does(site):
    page = site()
    page.get_by_text("Move, turn, morph").click()
    changes: dict[str, float] = {}
    for name, (label, value) in SLIDERS.items():
        page.get_by_label(label, exact=True).fill(str(value))
        changes[name] = value
        changed = Transform(**changes)(sample()[None])[0]
        until(page, lambda changed=changed: alike(numbers(page, INPUT), changed[0].numpy()))
    rests(page, "&".join(f"{name}={value}" for name, value in changes.items()))
    page.reload()
    until(page, lambda: alike(numbers(page, INPUT), changed[0].numpy()))
    shown = torch.from_numpy(np.rint(255 * numbers(page, INPUT)).astype(np.uint8))[None]
    shows(page, FIELD, field_of(shown))
    page.get_by_role("button", name="Reset").click()
    shows(page, INPUT, sample()[0].numpy() / 255)
    expect(page.get_by_role("button", name="Reset")).to_be_hidden()
    rests(page, "example=1")


def test_dragging_the_picture_moves_it_while_the_field_follows(site):
    page = site("explore?right=1")
    shows(page, INPUT, Transform(right=1)(sample()[None])[0, 0].numpy() / 255)
    plot = ".left .stills .plot"
    press(page, plot, [(0.5, 0.5), (0.5 + 3 / 28, 0.5 - 2 / 28)])
    moved = Transform(right=4, down=-2)(sample()[None])[0]
    shows(page, INPUT, moved[0].numpy() / 255)
    shows(page, FIELD, field_of(moved))  # the button is still down
    page.mouse.up()
    point(page, plot, 0.1, 0.1)
    shows(page, INPUT, moved[0].numpy() / 255)
    rests(page, "right=4&down=-2")


def test_another_finger_does_not_move_the_picture(site):
    page = site()
    shows(page, INPUT, sample()[0].numpy() / 255)
    fingers(page, ".left .stills .plot", (0.5, 0.5), (0.2, 0.1), (0.5 + 3 / 28, 0.5))
    shows(page, INPUT, Transform(right=3)(sample()[None])[0, 0].numpy() / 255)


def test_a_drawing_is_not_moved_by_what_moved_the_picture_before(site):
    page = site("explore?class=3&right=5&turn=40&to=8&between=0.5")
    choose(page, "Input", "Draw")
    drag(page, PAD, [(0.5, 0.2), (0.5, 0.8)])
    columns = np.nonzero(follows(page)[0].numpy())[1]
    assert 13 <= columns.mean() <= 14.5
    page.wait_for_url("**ink=*")
    assert "right=" not in page.url
    choose(page, "Input", "Test images")
    rests(page, "class=3")


def test_a_drawing_is_kept_where_the_first_model_has_other_test_images(site, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(made("linear", (1, 20, 20), classes="0123456789"))
    page = site("compare?from=draw&field=mean")
    drag(page, PAD, [(0.3, 0.5), (0.7, 0.6)])
    page.wait_for_url("**ink=*")
    page.locator("#file").set_input_files(own)
    page.wait_for_url(re.compile("from=draw.*first=file-own|first=file-own.*from=draw"))
    page.wait_for_url("**ink=*")
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()


def test_a_morph_begins_and_ends_with_the_two_images(site):
    page = site("explore?example=2")
    page.get_by_text("Move, turn, morph").click()
    page.get_by_label("Morph into").select_option("3")
    between = page.get_by_label("Between", exact=True)
    expect(between).to_have_value("0.5")
    rests(page, "example=2&to=3&between=0.5")
    half = numbers(page, INPUT)
    for place, pixels in (("1", sample(3, 2)), ("0", sample(7, 2))):
        between.fill(place)
        shows(page, INPUT, pixels[0].numpy() / 255)
        shows(page, FIELD, field_of(pixels))
        assert abs(half - numbers(page, INPUT)).max() > 0.2
    page.get_by_label("Morph into").select_option("no other image")
    expect(between).to_be_hidden()
    rests(page, "example=2")


def test_the_field_follows_the_pen(site):
    page = site()
    choose(page, "Input", "Draw")
    expect(page.get_by_text("no digit yet")).to_be_visible()
    press(page, PAD, [(0.3, 0.2), (0.7, 0.2)])
    bar = follows(page)
    page.mouse.move(*middle(page, PAD), steps=4)
    until(page, lambda: bool((drawn(page) != bar).any()))
    one = follows(page)  # the pen is still down
    page.mouse.up()
    expect(page.get_by_text("the network gets the small picture, 28 × 28")).to_be_visible()
    drag(page, PAD, [(0.3, 0.5), (0.7, 0.6)])
    until(page, lambda: bool((drawn(page) != one).any()))
    two = follows(page)
    page.wait_for_url("**ink=*")
    until(page, lambda: torch.equal(linked(page), two))
    again = site(page.url.partition("#")[2])
    assert torch.equal(follows(again), two)
    drag(again, PAD, [(0.2, 0.9), (0.8, 0.9)])  # on top of the drawing of the link
    until(again, lambda: bool((drawn(again) != two).any()))
    three = follows(again)
    again.get_by_role("button", name="Clear").click()
    expect(again.get_by_text("no digit yet")).to_be_visible()
    again.get_by_role("button", name="Undo").click()
    until(again, lambda: torch.equal(drawn(again), three))  # the link's picture, too
    assert torch.equal(follows(again), three)
    page.locator(PAD).press("Control+z")
    until(page, lambda: torch.equal(drawn(page), one))
    follows(page)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("no digit yet")).to_be_visible()
    expect(page.locator(".opinion .heading small")).to_have_text("none: no digit found")
    rests(page, "from=draw")
    page.get_by_role("button", name="Undo").click()
    until(page, lambda: torch.equal(drawn(page), one))
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("no digit yet")).to_be_visible()
    page.get_by_label("Pen size").fill("16")
    drag(page, PAD, [(0.15, 0.3), (0.15, 0.7)])
    drag(page, PAD, [(0.75, 0.2), (0.95, 0.25), (0.75, 0.7), (0.95, 0.75)])
    expect(page.get_by_text("several digits: draw one at a time")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("several digits")).to_be_hidden()


@pytest.mark.parametrize("width", [420, 1440])
def test_ink_that_is_left_out_is_named_and_the_pad_stays_in_place(site, width):
    page = site("explore?from=draw")
    page.set_viewport_size({"width": width, "height": 1000})
    empty = page.locator(PAD).bounding_box()
    drag(page, PAD, [(0.1, 0.1), (0.4, 0.1), (0.2, 0.9)])
    expect(
        page.get_by_text("the network gets the small picture, 28 × 28", exact=True)
    ).to_be_visible()
    before, place = drawn(page), page.locator(PAD).bounding_box()
    drag(page, PAD, [(0.85, 0.8), (0.95, 0.9)])
    expect(page.get_by_text("ink beside the digit is left out, 28 × 28")).to_be_visible()
    assert torch.equal(drawn(page), before)
    assert page.locator(PAD).bounding_box() == place == empty


@pytest.mark.parametrize("way", ["key", "Undo", "Clear"])
def test_a_stroke_ends_where_it_is_undone(site, way):
    """By a key or another finger, while it is drawn: what followed was seen, but not read."""
    page = site("explore?from=draw")
    press(page, PAD, [(0.3, 0.2), (0.3, 0.5)])
    if way == "key":
        page.keyboard.press("Control+z")
    else:
        page.get_by_role("button", name=way).evaluate("button => button.click()")
    box = page.locator(PAD).bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.8 * box["height"], steps=8)
    page.mouse.up()
    dark = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
      .data.filter((value, k) => k % 4 === 0 && value < 128).length"""
    assert page.locator(PAD).evaluate(dark) == 0
    drag(page, PAD, [(0.5, 0.2), (0.5, 0.8)])  # the next stroke is drawn
    follows(page)


# What the pad does with a picture that is decoded, put off.
LATE = """() => {
  window.late = [];
  Object.defineProperty(HTMLImageElement.prototype, "onload", { set(load) {
    this.addEventListener("load", String(load).includes("this.draw()")
      ? () => window.late.push(load) : load);
  } });
}"""


def test_a_stroke_keeps_the_picture_of_a_link_that_is_still_decoded(site):
    page = site("explore?from=draw")
    page.evaluate(LATE)
    own = sample(5)
    page.evaluate("ink => { location.hash = `explore?from=draw&ink=${ink}`; }", to_text(own))
    until(page, lambda: alike(drawn(page)[0].numpy() / 255, own[0].numpy()))
    until(page, lambda: page.evaluate("window.late.length"))
    before = page.url
    drag(page, PAD, [(0.5, 0.5), (0.52, 0.5)])
    until(page, lambda: page.url != before)
    page.evaluate("window.late.forEach((load) => load())")
    assert abs(drawn(page) / 255 - own / 255).mean() < 0.05


def middle(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def linked(page: Page) -> torch.Tensor:
    return from_text(page.url.partition("ink=")[2].partition("&")[0], (1, 28, 28))


def test_a_finger_draws_on_a_phone(site):
    page = site("explore?from=draw", 420, is_phone=True)
    pad = page.locator(PAD)
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [
            {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "id": k}
            for k, (x, y) in enumerate(places)
        ]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    top = page.evaluate("scrollY")
    touch("touchStart", (0.5, 0.2))
    for k in range(1, 9):
        touch("touchMove", (0.5, 0.2 + k / 15))
    follows(page)  # the finger is still down
    touch("touchEnd")
    assert page.evaluate("scrollY") == top  # the page stays under the finger
    ink = pad.evaluate(
        """canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, 560, 560);
          return Array.from({ length: 560 * 560 }, (_, k) => 255 - data[4 * k]);
        }"""
    )
    rows, columns = np.nonzero(np.array(ink).reshape(560, 560) > 200)
    half = 22 / 560 + 0.01  # of the pen
    edges = np.array([rows.min(), rows.max(), columns.min(), columns.max()]) / 560
    np.testing.assert_allclose(edges, [0.2 - half, 0.73 + half, 0.5 - half, 0.5 + half], atol=0.015)
    touch("touchStart", (0.3, 0.5))  # a second finger, or a palm, draws nothing
    touch("touchStart", (0.3, 0.5), (0.8, 0.9))
    touch("touchMove", (0.4, 0.5), (0.8, 0.7))
    touch("touchEnd")
    strokes = "canvas => canvas.pad.strokes.map(stroke => stroke.points)"
    *_, last = pad.evaluate(strokes)
    assert max(last[0::2]) < 0.45 * 560
    assert max(last[1::2]) < 0.55 * 560
    for name in ("Undo", "Clear"):
        assert page.get_by_role("button", name=name).bounding_box()["height"] >= 44
    page.get_by_role("button", name="Undo").tap()
    until(page, lambda: len(pad.evaluate(strokes)) == 1)
    page.get_by_role("button", name="Clear").tap()
    expect(page.get_by_text("no digit yet")).to_be_visible()
