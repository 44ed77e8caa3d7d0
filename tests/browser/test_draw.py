"""Drawing with a pen and with a finger."""

import numpy as np

from densembed.data.codec import from_text
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import drag, expect, painted, places, settle, until
from tests.browser.test_explore import DIGITS


def stroke(page, points) -> None:
    """A line through points given as shares of the pad."""
    drag(page, ".st-key-pad canvas", points)


def link_picture(page):
    page.wait_for_url("**ink=**")
    settle(page)
    return from_text(page.url.partition("ink=")[2].partition("&")[0], (1, 28, 28))


def shows(page, pixels) -> None:
    field = view(Checkpoint.open(DIGITS), pixels).fields[-1].sum(0)
    canvas = page.locator(".st-key-stage .after canvas")
    expect(canvas).to_have_count(1)  # a change of page leaves the old one for a moment
    canvas.evaluate(
        """async (canvas, value) => {
          while (Math.abs((canvas.values ?? [])[56 * 112 + 56] - value) > 1e-4)
            await new Promise(requestAnimationFrame);
        }""",
        float(field[56, 56]),
    )
    np.testing.assert_allclose(painted(page, "after"), field, 1e-3, 1e-4)


def test_the_field_follows_the_pen_and_the_link_opens_it(visit):
    page = visit("/?from=Draw")
    expect(page.get_by_text("no digit yet")).to_be_visible()
    stroke(page, [(0.3, 0.2), (0.7, 0.2), (0.45, 0.8)])
    seven = link_picture(page)
    shows(page, seven)
    expect(page.get_by_text("no digit yet")).to_have_count(0)
    before = page.url
    stroke(page, [(0.3, 0.5), (0.7, 0.5)])
    page.wait_for_function("url => location.href !== url", arg=before)
    barred = link_picture(page)
    assert (barred != seven).any()
    shows(page, barred)
    for name, title in (("Compare", "What differs"), ("Explore", "look at")):  # and it stays
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        assert (link_picture(page) == barred).all()
    page.get_by_role("button", name="Undo").click()
    until(page, lambda: (link_picture(page) == seven).all())
    shows(page, seven)
    other = visit(page.url.partition("/")[2].partition("/")[2].partition("/")[2].join(("/", "")))
    shows(other, seven)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("no digit yet")).to_be_visible()


def test_a_finger_draws_on_a_phone(browser, server):
    context = browser.new_context(
        viewport={"width": 420, "height": 900}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(server + "/?from=Draw")
    settle(page)
    pad = page.locator(".st-key-pad canvas")
    pad.scroll_into_view_if_needed()
    (box,) = places(page, ".st-key-pad canvas")
    session = context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [
            {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "id": k}
            for k, (x, y) in enumerate(places)
        ]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    main = "document.querySelector('[data-testid=stMain]')"
    top = page.evaluate(f"{main}.scrollTop")
    path = [(0.5, 0.2 + k / 15) for k in range(9)]
    touch("touchStart", path[0])
    for place in path[1:]:
        touch("touchMove", place)
    touch("touchEnd")
    assert link_picture(page).sum() > 2000
    assert page.evaluate(f"{main}.scrollTop") == top  # the page stays under the finger
    assert page.evaluate(f"{main}.scrollWidth") <= 420
    ink = pad.evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, 560, 560);
          return Array.from({ length: 560 * 560 }, (_, k) => 255 - data[4 * k]);
        }"""
    )
    rows, columns = np.nonzero(np.array(ink).reshape(560, 560) > 200)
    half = 22 / 560 + 0.01  # of the pen
    ends = np.array([rows.min(), rows.max(), columns.min(), columns.max()]) / 560
    np.testing.assert_allclose(ends, [0.2 - half, 0.73 + half, 0.5 - half, 0.5 + half], atol=0.015)
    touch("touchStart", (0.3, 0.5))  # a second finger, or a palm, draws nothing
    touch("touchStart", (0.3, 0.5), (0.8, 0.9))
    touch("touchMove", (0.4, 0.5), (0.8, 0.7))
    touch("touchEnd")
    *_, last = pad.evaluate("canvas => canvas.pad.strokes.map(stroke => stroke.points)")
    assert max(last[0::2]) < 0.45 * 560
    assert max(last[1::2]) < 0.55 * 560
    for name in ("Undo", "Clear"):
        (place,) = places(page, f"button:text-is('{name}')")
        assert 0 < place["y"] < 900 - place["height"]
        assert place["height"] >= 44
    page.get_by_role("button", name="Undo").tap()
    page.wait_for_function("pad => pad.pad.strokes.length === 1", arg=pad.element_handle())
    page.get_by_role("button", name="Clear").tap()
    expect(page.get_by_text("no digit yet")).to_be_visible()
    context.close()
