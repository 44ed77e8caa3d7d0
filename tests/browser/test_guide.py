"""The tour, what a teacher hides, thumbnails and the sliders of the input."""

import numpy as np
import pytest

from tests.browser.conftest import expect, painted, places, press, repainted, settle


def test_the_tour_is_taken_skipped_and_not_shown_again(visit):
    page = visit()
    card = page.get_by_role("dialog", name="A tour of five steps")
    expect(card).to_contain_text("1 of 5")
    before = distances(page)
    for number in range(2, 6):
        card.get_by_role("button", name="Next").click()
        expect(card).to_contain_text(f"{number} of 5")
        page.wait_for_url(f"**tour={number}*")
    card.get_by_role("button", name="Done").click()
    expect(card).to_be_hidden()
    page.wait_for_url("**tour=0*")
    assert distances(page) == before  # nothing moved, but for what was scrolled
    page.goto(page.url.partition("?")[0])
    settle(page)
    painted(page, "after")
    expect(card).to_be_hidden()
    page.goto(page.url.partition("?")[0] + "?tour=4")
    expect(card).to_contain_text("4 of 5")
    card.get_by_role("button", name="Skip").press("Escape")
    expect(card).to_be_hidden()


def distances(page) -> list[float]:
    """How far the fields are below the page's title."""
    (title,) = places(page, "h1")
    return [plot["y"] - title["y"] for plot in places(page, ".st-key-stage .plot")]


def test_on_a_phone_the_tour_covers_nothing_that_it_speaks_of(visit):
    page = visit("/?tour=1", width=420)
    painted(page, "after")
    card = page.get_by_role("dialog", name="A tour of five steps")
    for part in ("stage .after", "stage .steps", "showing", "more"):
        card.get_by_role("button", name="Next").click()
        (shown,), (over,) = places(page, f".st-key-{part}"), places(page, ".st-key-tour-card .tour")
        assert shown["y"] >= 0
        assert shown["y"] + shown["height"] <= over["y"]
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    (last,), (over,) = places(page, ".st-key-copy-link"), places(page, ".st-key-tour-card .tour")
    assert last["y"] + last["height"] <= over["y"]


@pytest.mark.parametrize("width", [1440, 420])
def test_what_is_hidden_is_not_there(visit, width):
    page = visit("/?hide=sidebar,predictions,before,more&tour=0", width=width)
    painted(page, "after")
    for part in (".st-key-choices", ".st-key-more", ".st-key-copy-link"):
        expect(page.locator(part).first).to_be_hidden()
    for part in (".before", ".opinion"):
        expect(page.locator(f".st-key-stage {part}")).to_be_hidden()
    expect(page.get_by_role("slider", name="Step of training")).to_be_visible()


@pytest.mark.parametrize(
    ("hidden", "left"),
    [("predictions", ["before", "after"]), ("before", ["after", "opinion"]),
     ("before,predictions", ["after"]), ("numbers", ["before", "after", "opinion"])],
)  # fmt: skip
def test_what_is_left_takes_the_room(visit, hidden, left):
    page = visit(f"/?hide={hidden}&tour=0")
    painted(page, "after")
    (stage,) = places(page, ".st-key-stage .stage")
    parts = [places(page, f".st-key-stage .{part}")[0] for part in left]
    assert sum(part["width"] for part in parts) > 0.9 * stage["width"]
    ends = (
        parts[0]["x"] - stage["x"],
        stage["x"] + stage["width"] - parts[-1]["x"] - parts[-1]["width"],
    )
    assert ends == pytest.approx((0, 0), abs=2)
    (plot,) = places(page, ".st-key-stage .after .plot")
    assert plot["width"] == pytest.approx({3: 300, 2: 340, 1: 340}[len(left)], abs=20)


UNNAMED = """() => {
  const found = [];
  const look = (root) => root.querySelectorAll("*").forEach((part) => {
    if (part.shadowRoot) look(part.shadowRoot);
    if (!part.checkVisibility()) return;
    if (part.matches("button, input, select, textarea, [role=slider], [role=img], .js-plotly-plot"))
      found.push(part);
  });
  look(document.querySelector("[data-testid=stMain]"));
  const name = (part) => part.getAttribute("aria-label") || part.labels?.[0]?.textContent
    || part.textContent.trim() || part.title || part.closest("[role=radiogroup][aria-label]");
  const figure = (part) => part.closest("figure, [role=figure]")?.getAttribute("aria-label");
  return found.filter((part) => !(part.matches(".js-plotly-plot") ? figure(part) : name(part)))
    .map((part) => part.outerHTML.slice(0, 200));
}"""


@pytest.mark.parametrize(
    "link",
    ["show=swipe", "show=on the input&more=One density", "show=densities&more=What it computes",
     "more=All classes", "more=Take it away", "from=Draw", "from=Upload"],
)  # fmt: skip
def test_every_control_and_figure_has_a_name(visit, link):
    page = visit(f"/?tour=0&{link}")
    if "Upload" not in link:
        painted(page, "after") if "densities" not in link else places(page, ".st-key-stage .plot")
    assert page.evaluate(UNNAMED) == []
    for name in ("Upload a model", "Copy link"):
        if "Upload" not in link or name != "Copy link":
            expect(page.get_by_role("button", name=name)).to_be_visible()


def test_an_address_that_is_no_page_is_named(browser, server):
    context = browser.new_context()  # not `visit`: Streamlit says it in the console, too
    page = context.new_page()
    page.goto(server + "/nowhere?tour=0")
    expect(page.get_by_role("dialog").filter(has_text="Page not found")).to_be_visible()
    expect(page.locator("h1")).to_have_text("What does this network look at?")
    context.close()


def test_the_divider_rests_in_the_link(visit):
    page = visit("/?tour=0&show=swipe")
    painted(page, "after")
    press(page, ".st-key-stage .after .plot", [(0.5, 0.5), (0.25, 0.5)])
    assert "divider" not in page.url
    page.mouse.up()
    page.wait_for_url("**divider=2*")
    divider = page.get_by_role("slider", name="Divider")
    place = divider.input_value()
    assert f"divider={place}" in page.url
    other = visit("/?" + page.url.partition("?")[2])
    expect(other.get_by_role("slider", name="Divider")).to_have_value(place)
    left = painted(other, "after")[:, : 112 * int(place) // 100 - 1]
    np.testing.assert_array_equal(left, painted(other, "before")[:, : left.shape[1]])


def test_a_thumbnail_is_the_example(visit):
    page = visit("/?tour=0")
    row = page.locator(".st-key-thumbnails")
    row.get_by_role("button", name="Example 5", exact=True).click()
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value("5")
    page.wait_for_url("**example=5*")
    names = row.get_by_role("button").evaluate_all("all => all.map(each => each.title)")
    row.get_by_role("button", name="Shuffle").click()
    first = row.get_by_role("button").first
    expect(first).not_to_have_attribute("title", names[0])
    page.wait_for_url("**shuffle=*")
    shuffled = first.get_attribute("title")
    other = visit("/?" + page.url.partition("?")[2])
    expect(other.locator(".st-key-thumbnails button").first).to_have_attribute("title", shuffled)


def test_the_field_follows_a_slider_of_the_input(visit):
    page = visit("/?tour=0")
    before = painted(page, "after")
    page.get_by_text("Move, turn, blur").click()
    page.get_by_role("slider", name="Turn clockwise").press("ArrowRight")
    page.wait_for_url("**turn=5*")
    turned = repainted(page, "after", before)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("() => !location.href.includes('turn=')")
    assert (repainted(page, "after", turned) == before).all()


def test_model_and_input_stay_from_page_to_page(visit):
    page = visit("/?tour=0&model=logistic-el-8&class=4&example=3")
    field = painted(page, "after")
    page.get_by_role("link", name="Train", exact=True).click()
    expect(page.get_by_role("heading", name="How does")).to_be_visible()
    page.get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    assert (painted(settle(page), "after") == field).all()
    page.wait_for_url("**model=logistic-el-8*")
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value("3")
