"""The browser around the page: its history, its menu, its console, its printer."""

import re

import numpy as np
import pytest
from PIL import Image

from densembed.web.modules import modules, script
from pages.widgets.common.component import FOLDERS
from tests.browser.conftest import (
    PICTURE_FILE,
    choose,
    expect,
    fingers,
    painted,
    places,
    serve,
    settle,
    until,
    visitor,
)
from tests.browser.gallery import FIELD
from tests.browser.test_pages import go
from tests.browser.views import pressed


def test_components_below_a_path(browser, tmp_path):
    """The modules of the components load from there, and a deep link finds them."""
    with serve(tmp_path, base="/fields") as server, visitor(browser, server) as visit:
        page = visit("/compare")
        assert painted(page, ".columns .field.first").any()
        go(page, "Explore")
        assert painted(page, ".pair .after").any()
        assert page.url.startswith(f"{server}/")
        choose(page, "Class", "3")
        page.wait_for_url(re.compile(re.escape(f"{server}/?") + r".*\bclass=3"))
        for link in (page.url.removeprefix(server), "/explore?class=3"):
            page = visit(link)
            expect(pressed(page, "Class")).to_have_text("3")
            assert page.url.startswith(f"{server}/?")
        visit("/train")


def test_the_browser_keeps_modules_until_one_changes(visit):
    page = visit("/train")  # a deep link
    address = page.locator("script[type=importmap]").evaluate(
        "map => new URL(JSON.parse(map.textContent).imports.densembed, location).href"
    )
    answer = page.request.get(address)
    assert answer.text() == script(**FOLDERS)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    loaded = page.evaluate("() => performance.getEntriesByType('resource').map(each => each.name)")
    assert [name for name in loaded if "/modules/" in name] == [address]
    exported = page.evaluate(
        """async (address) => Object.entries((await import(address)).modules).map(
             ([name, values]) => [name, Object.keys(values).sort()])""",
        address,
    )
    texts = modules(**FOLDERS)
    assert {name for name, _ in exported} == set(texts)
    named = re.compile(r"^export (?:async )?(?:const|class|function) (\w+)", re.MULTILINE)
    for name, keys in exported:
        assert set(named.findall(texts[name])) <= set(keys)
        assert ("default" in keys) == ("\nexport default " in texts[name])
    # A page that was open when the server was updated has an earlier address.
    older = re.sub(r"/modules/\w+", "/modules/0", address)
    answer = page.request.get(older)
    assert answer.ok
    assert answer.headers["cache-control"] == "no-cache"


def test_the_first_page_is_shown_for_other_addresses(visit):
    page = visit("/explore?class=3&tour=0")
    assert painted(page, FIELD).any()
    assert re.search(r":\d+/\?.*class=3", page.url)
    # Where there is no page, Streamlit says so, and shows the first one.
    answer = page.request.get(re.sub(r"/\?.*", "/nothing", page.url))
    assert "importmap" in answer.text()


def test_what_the_first_view_needs_is_loaded_once_and_before_the_page_runs(visit, server):
    page = visit(None)
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    page.goto(server + "/?tour=0&class=3")
    shown = painted(settle(page), FIELD)
    assert shown.any()
    loaded = page.evaluate(
        "() => performance.getEntriesByType('resource').map(each => [each.name, each.startTime])"
    )
    starts = {
        part: [start for name, start in loaded if part in name]
        for part in ("/checkpoints/", "/samples/", "class=3", "_stcore/host-config", "Bidi")
    }
    assert [len(each) for each in starts.values()] == [1, 2, 1, 1, 1]
    assert max(starts["/checkpoints/"] + starts["/samples/"]) < starts["_stcore/host-config"][0]


def test_the_menu_of_a_phone_closes_over_the_new_page(visit):
    page = visit("/?tour=0", width=420)
    for name in ("Lab", "Paper"):
        page.get_by_test_id("stExpandSidebarButton").click()
        go(page, name)
        expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
        page.reload()
        expect(settle(page).get_by_test_id("stExpandSidebarButton")).to_be_visible()


def test_a_photograph_of_more_than_5_mb_is_read(visit, tmp_path):
    noise = np.random.default_rng(0).integers(0, 9, (1500, 1500, 3), dtype=np.uint8)
    path = tmp_path / "large.bmp"
    Image.fromarray(noise + 200).save(path)
    assert 5 * 2**20 < path.stat().st_size < 20 * 2**20
    page = visit("/?tour=0&from=Upload")
    page.locator(PICTURE_FILE).set_input_files(path)
    expect(page.get_by_text("An example is shown until")).to_have_count(0)
    expect(page.get_by_text("larger than")).to_have_count(0)


def test_another_finger_draws_no_frame_on_a_photograph(visit, tmp_path):
    picture = np.full((200, 200), 255, np.uint8)
    picture[40:120, 70:80] = 0
    Image.fromarray(picture).save(tmp_path / "one.png")
    page = visit("/?tour=0&from=Upload")
    page.locator(PICTURE_FILE).set_input_files(tmp_path / "one.png")
    expect(page.locator(".sheet .frame")).to_be_visible()
    fingers(page, ".sheet", (0.1, 0.1), (0.9, 0.9), (0.5, 0.7))

    def is_framed() -> bool:
        (frame,), (sheet,) = places(page, ".sheet .frame"), places(page, ".sheet")
        return frame["width"] / sheet["width"] == pytest.approx(0.4, abs=0.02)

    until(page, is_framed)


@pytest.mark.parametrize("link", ["/?tour=0&from=Draw", "/lab?signal=own&layer=linear"])
def test_ink_lands_under_the_pen_while_the_page_moves(visit, link):
    """The pad moves between two frames of a stroke; each event counts where the pad then is."""
    page = visit(link)
    name = "pad" if "Draw" in link else "Drawing pad"
    pad = page.get_by_role("img", name=re.compile(name, re.IGNORECASE)).first
    pad.scroll_into_view_if_needed()
    marked = pad.evaluate(
        """async canvas => {
          canvas.setPointerCapture = () => {};
          const fire = (kind, x, y) => {
            const box = canvas.getBoundingClientRect();
            canvas.dispatchEvent(new PointerEvent(kind, {
              pointerId: 1, bubbles: true,
              clientX: box.left + x * box.width, clientY: box.top + y * box.height,
            }));
          };
          fire("pointerdown", 0.25, 0.5);
          canvas.style.transform = "translate(40px, 60px)";
          await new Promise(requestAnimationFrame);
          // As a browser does where an element hears of moves at once.
          fire("pointerrawupdate", 0.75, 0.5);
          fire("pointermove", 0.75, 0.5);
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const dark = (x, y) => {
            const at = 4 * (Math.round(y * height) * width + Math.round(x * width));
            return data[at + 3] > 0 && data[at] < 128;
          };
          fire("pointerup", 0.75, 0.5);
          return [[0.3, 0.5], [0.5, 0.52], [0.7, 0.52], [0.5, 0.3], [0.7, 0.3]].map(
            ([x, y]) => dark(x, y));
        }"""
    )
    assert marked[2]
    assert not marked[3]
    assert not marked[4]


def test_a_printed_chart_is_whole(visit, tmp_path):
    """On paper, narrower than the screen, the chart of Table 1 keeps its right-hand marks."""
    page = visit("/paper")
    expect(page.locator(".st-key-table1 .js-plotly-plot .point").first).to_be_visible()
    settle(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 750, "height": 1000})
    box = page.locator(".st-key-table1").bounding_box()
    marks = page.locator(".st-key-table1 .points path").evaluate_all(
        "marks => marks.map(mark => mark.getBoundingClientRect().right)"
    )
    assert len(marks) >= 18
    assert max(marks) <= box["x"] + box["width"]
    drawn = page.locator(".st-key-table1 .svg-container").bounding_box()
    assert box["height"] == pytest.approx(drawn["height"], abs=2)  # no blank area under it


def test_a_printed_slider_is_above_its_caption(visit):
    page = visit("/lab")
    expect(page.get_by_test_id("stSlider").nth(2)).to_be_visible()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 750, "height": 1000})
    overlaps = page.get_by_test_id("stSlider").evaluate_all("""sliders => sliders.map(slider => {
      const caption = slider.closest("[data-testid=stElementContainer]").nextElementSibling;
      return slider.getBoundingClientRect().bottom - caption.getBoundingClientRect().top;
    })""")
    assert len(overlaps) >= 3
    assert max(overlaps) <= 0


def test_the_forms_keep_what_is_filled_in(visit, tmp_path):
    page = visit("/train")
    data = page.get_by_role("combobox", name="Data")
    data.fill("A folder")
    data.press("Enter")
    field = page.get_by_role("textbox", name=re.compile("Folder"))
    field.fill(str(tmp_path))
    field.press("Enter")
    settle(page)
    go(page, "Explore")
    go(page, "Train")
    expect(page.get_by_role("textbox", name=re.compile("Folder"))).to_have_value(str(tmp_path))
    page.get_by_role("tab", name="A sweep").click()
    seeds = page.get_by_role("spinbutton", name="Seeds")
    seeds.fill("4")
    seeds.press("Enter")
    settle(page)
    go(page, "Explore")
    go(page, "Train")
    page.get_by_role("tab", name="A sweep").click()
    expect(page.get_by_role("spinbutton", name="Seeds")).to_have_value("4")


def test_numbers_read_well(visit):
    """A number that reads as 0 has no sign, and a line does not end between symbol and number."""
    page = visit("/train")
    address = page.locator("script[type=importmap]").evaluate(
        "map => new URL(JSON.parse(map.textContent).imports.densembed, location).href"
    )
    texts = page.evaluate(
        """async (address) => {
          const text = Object.entries((await import(address)).modules)
            .find(([name]) => name.endsWith("panels/text.js"))[1];
          return [...[-0.001, 0, 0.001, -0.2, 0.2, -20].map((value) =>
            [text.fixed(value, 2), text.withSign(value)]),
            text.together("B₀ = 5 has 5 × 5, 90 % B")];
        }""",
        address,
    )
    assert texts == [
        ["0.00", "0.00"],
        ["0.00", "0.00"],
        ["0.00", "0.00"],
        ["−0.20", "−0.20"],
        ["0.20", "+0.20"],
        ["−20.00", "−20.00"],
        "B₀\u00a0=\u00a05 has 5\u00a0×\u00a05, 90\u00a0% B",
    ]
