"""A run, from the click that starts it to its end, with tabs that come and go."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import drawn, painted, serve, settle, visitor


def start(page: Page, epochs: int) -> str:
    """Start a small model on the digits; the link to its run."""
    model = page.get_by_role("combobox", name="Model")
    model.fill("logistic-el-3")
    model.press("Enter")
    settle(page)
    number = page.get_by_role("spinbutton", name="Epochs")
    number.fill(str(epochs))
    number.press("Enter")
    settle(page)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"run=\d"))
    return re.search(r"/train\?.*", page.url)[0]


def says(page: Page, word: str) -> None:
    expect(page.get_by_test_id("stAlert").filter(has_text=word)).to_be_visible()


def stop(page: Page):
    return page.get_by_role("button", name="Stop")


@pytest.fixture
def long_run(visit):
    """A run that would take minutes, training, in the tab that started it; stopped at the end."""
    page = visit("/train")
    link = start(page, 10_000)
    expect(page.get_by_text(re.compile("training · step"))).to_be_visible()
    yield page, link
    last = visit(link)
    expect(
        last.get_by_role("progressbar").or_(last.get_by_test_id("stAlert")).first
    ).to_be_visible()
    if stop(last).count():
        stop(last).click()
        says(last, "Stopped")


def test_run_is_watched_to_its_end_and_shown_in_explore(visit):
    page = visit("/train")
    start(page, 3)
    says(page, "Done · test error")
    drawn(page, "field-1")
    page.get_by_role("link", name="Show it in Explore").click()
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    settle(page)
    expect(page.get_by_role("combobox", name="Model")).to_have_value(re.compile("B = 3 ·"))
    painted(page, "after")


def test_reload_finds_the_run_and_a_second_tab_stops_it(visit, long_run):
    page, link = long_run
    drawn(page, "field-1")
    page.reload()
    expect(settle(page).get_by_text(re.compile("training · step"))).to_be_visible()
    expect(stop(page)).to_be_enabled()
    stop(visit(link)).click()
    expect(page.get_by_test_id("stAlert").filter(has_text="Stopped")).to_be_visible(timeout=10_000)
    expect(page.get_by_role("button", name="Start training")).to_be_enabled()
    expect(stop(page)).to_have_count(0)


def test_stop_works_after_a_reload(long_run):
    page, _ = long_run
    page.reload()
    stop(settle(page)).click()
    says(page, "Stopped")
    expect(page.get_by_role("link", name="Show it in Explore")).to_be_visible()


def test_run_goes_on_when_all_tabs_are_closed(visit):
    page = visit("/train")
    link = start(page, 30)
    page.context.close()
    page = visit(link)
    says(page, "Done · test error")
    expect(page.get_by_text("epoch 30", exact=True)).to_be_visible()


def test_high_learning_rate_ends_in_a_sentence(visit):
    page = visit("/train")
    page.get_by_text("More", exact=True).click()
    rate = page.get_by_role("spinbutton", name="Learning rate")
    rate.fill("1000")
    rate.press("Enter")
    settle(page)
    start(page, 100)
    says(page, "Diverged: The loss left all bounds")
    says(page, "is kept.")


def verb(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def trains(page: Page) -> None:
    expect(page.get_by_text(re.compile("training · step"))).to_be_visible()


def test_pause_in_one_tab_resume_in_another(visit, long_run):
    page, link = long_run
    verb(visit(link), "Pause").click()
    says(page, "Paused")
    other = visit(link)
    steps = other.locator(".panel").filter(has_text="steps")
    before = steps.inner_text()
    verb(other, "One epoch").click()
    expect(steps).not_to_have_text(before)
    says(other, "Paused · test error")
    other = visit(link)
    verb(other, "Resume").click()
    trains(other)
    page.reload()
    trains(page)


def test_name_change_and_delete(visit):
    page = visit("/train")
    start(page, 2)
    says(page, "Done")
    verb(page, "Rename").click()
    page.get_by_role("textbox", name="Name").fill("**mine** $x$")
    page.get_by_role("textbox", name="Name").press("Enter")
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="**mine** $x$")).to_be_visible()
    with page.expect_download() as download:
        verb(page, "Download").click()
    assert download.value.suggested_filename.endswith(".safetensors")
    verb(page, "Change and start").click()
    expect(page.get_by_role("spinbutton", name="Epochs")).to_have_value("2")
    link = re.search(r"/train\?.*", page.url)[0]
    verb(page, "Delete").click()
    verb(page, "Delete for good").click()
    page.wait_for_url(re.compile(r"/train$"))
    expect(visit(link).get_by_text("which is not here any more")).to_be_visible()


def test_server_restart_and_resume(browser, tmp_path):
    with serve(tmp_path) as address, visitor(browser, address) as visit:
        page = visit("/train")
        link = start(page, 10_000)
        trains(page)
    with serve(tmp_path) as address, visitor(browser, address) as visit:
        page = visit(link)
        says(page, "Interrupted")
        verb(page, "Resume").click()
        trains(page)
        verb(page, "Stop").click()
        says(page, "Stopped")
