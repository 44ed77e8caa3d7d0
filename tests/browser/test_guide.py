"""The tour, what a teacher hides, thumbnails and the sliders of the input."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import painted, places, repainted, settle


def test_the_tour_is_taken_skipped_and_not_shown_again(visit):
    page = visit()
    card = page.get_by_role("dialog", name="A tour of five steps")
    expect(card).to_contain_text("1 of 5")
    before = places(page, ".st-key-stage .plot")
    for number in range(2, 6):
        card.get_by_role("button", name="Next").click()
        expect(card).to_contain_text(f"{number} of 5")
        page.wait_for_url(f"**tour={number}*")
    card.get_by_role("button", name="Done").click()
    expect(card).to_be_hidden()
    page.wait_for_url("**tour=0*")
    assert places(page, ".st-key-stage .plot") == before
    page.goto(page.url.partition("?")[0])
    settle(page)
    painted(page, "after")
    expect(card).to_be_hidden()
    page.goto(page.url.partition("?")[0] + "?tour=4")
    expect(card).to_contain_text("4 of 5")
    card.get_by_role("button", name="Skip").press("Escape")
    expect(card).to_be_hidden()


@pytest.mark.parametrize("width", [1440, 420])
def test_what_is_hidden_is_not_there(visit, width):
    page = visit("/?hide=sidebar,predictions,before,more&tour=0", width=width)
    painted(page, "after")
    for part in (".st-key-choices", ".st-key-more", ".st-key-copy-link"):
        expect(page.locator(part).first).to_be_hidden()
    for part in (".before", ".opinion"):
        expect(page.locator(f".st-key-stage {part}")).to_be_hidden()
    expect(page.get_by_role("slider", name="Step of training")).to_be_visible()


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


def test_the_field_follows_a_slider_of_the_input(visit):
    page = visit("/?tour=0")
    before = painted(page, "after")
    page.get_by_role("button", name="Move, turn, blur").click()
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
