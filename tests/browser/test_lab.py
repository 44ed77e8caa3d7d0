"""The lab in Chromium: p and β by keyboard, a drawn signal, a hover over Γ."""

import itertools
import re

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import (
    chart,
    drag,
    expect,
    fingers,
    places,
    point,
    press,
    settle,
    until,
)


def difference(page: Page, name: str):
    """The difference from torch's layer that the page shows."""
    metric = page.get_by_test_id("stMetric").filter(has_text=name)
    return expect(metric.get_by_test_id("stMetricValue"), name)


def handle(page: Page, label: str):
    return page.get_by_test_id("stSlider").filter(has_text=label).get_by_role("slider")


def test_p_is_dragged_to_k_and_beyond(visit):
    page = visit("/lab?layer=adaptive-conv&p=2.9")
    shown = difference(page, "F.conv1d")
    shown.not_to_have_text("0")
    for _ in range(2):
        handle(page, "Amplitude p").press("ArrowRight")
    shown.to_have_text("0")
    expect(page.get_by_text("With p = K = 3 it is the same layer")).to_be_visible()
    expect(page).to_have_url(re.compile(r"p=3(&|$)"))
    handle(page, "Amplitude p").press("ArrowRight")
    shown.not_to_have_text("0")


def test_beta_is_dragged_through_the_average_to_the_maximum(visit):
    page = visit("/lab?layer=pool&beta=-1")
    average, highest = (difference(page, name) for name in ("F.avg_pool1d", "F.max_pool1d"))
    average.not_to_have_text("0")
    for _ in range(2):
        handle(page, "β").press("ArrowRight")
    average.to_have_text("0")
    highest.not_to_have_text("0")
    handle(page, "β").press("ArrowRight")
    average.not_to_have_text("0")
    handle(page, "β").press("End")
    expect(page.get_by_text("log(4)/1000")).to_be_visible()
    expect(page).to_have_url(re.compile("beta=1000"))
    metric = page.get_by_test_id("stMetric").filter(has_text="F.max_pool1d")
    value = metric.get_by_test_id("stMetricValue")
    until(page, lambda: float(value.inner_text()) <= 1.4e-3)


def test_a_signal_is_drawn(visit):
    page = visit("/lab?signal=own&layer=linear&values=0 0 0 0")
    drag(page, "[aria-label^='Drawing pad for the signal']", [(0.01, 0.98), (0.99, 0.02)])
    typed = page.get_by_label("Values")
    expect(typed).not_to_have_value("0 0 0 0")
    values = [float(word) for word in typed.input_value().split()]
    assert len(values) == 4
    assert values == sorted(values)
    assert values[-1] > 0.9


SIGNAL = "[aria-label^='Drawing pad for the signal']"


def drawn(page: Page) -> list[float]:
    return [float(word) for word in page.get_by_label("Values").input_value().split()]


def test_a_stroke_goes_on_while_the_page_answers_the_one_before(visit):
    page = visit("/lab?signal=own&layer=linear&values=0 0 0 0")
    drag(page, SIGNAL, [(0.1, 0.5), (0.3, 0.5)])
    press(page, SIGNAL, [(0.6, 0.1), (0.7, 0.1)])
    until(page, lambda: drawn(page)[0] > 0)  # the answer, with the pen still down
    (box,) = places(page, SIGNAL)
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.up()
    until(page, lambda: min(drawn(page)) > 0)
    assert min(drawn(page)[2:]) > 0.8


def test_neither_another_button_nor_another_finger_draws_a_signal(visit):
    page = visit("/lab?signal=own&layer=linear&values=0 0 0 0")
    fingers(page, SIGNAL, (0.1, 0.5), (0.9, 0.1), (0.3, 0.5), button=2)
    fingers(page, SIGNAL, (0.1, 0.5), (0.9, 0.1), (0.3, 0.5))
    until(page, lambda: drawn(page)[0] > 0)
    assert drawn(page)[2:] == [0, 0]


def test_a_row_of_gamma_answers_a_hover(visit):
    page = visit("/lab?layer=linear&pixels=4")
    image = chart(page, "strips").locator(".heatmaplayer image")
    expect(image).to_be_visible()
    label = page.locator(".hoverlayer .hovertext").filter(has_text="row 3").first
    shares = itertools.cycle((0.6, 0.61, 0.62, 0.63, 0.64))

    def answers() -> bool:
        """The plot listens some time after it is painted, and then to a move alone."""
        share = next(shares)
        point(page, ".st-key-strips .heatmaplayer image", share, share)
        return label.is_visible()

    until(page, answers)
    expect(label).to_be_visible()
    expect(label).to_contain_text("whole row: mass 1")


@pytest.mark.parametrize("link", ["", "?tab=picture"])
def test_the_page_fits_a_phone(visit, link):
    page = visit(f"/lab{link}", width=420)
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert places(page, ".js-plotly-plot")[0]["y"] < 450
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_on_a_phone_the_sliders_are_under_the_figure(visit):
    """Each with its sentence, and what is seldom changed below them."""
    page = visit("/lab", width=420)
    expect(chart(page, "strips").locator(".heatmaplayer image")).to_be_visible()
    bench = ".st-key-lab-bench .st-key-layer"
    selectors = (".st-key-strips", ".st-key-row", ".st-key-row + *", bench)
    places(page, ", ".join(selectors))  # all of them are at rest before each is looked for
    figure, slider, sentence, layer = (places(page, selector)[0] for selector in selectors)
    below = slider["y"] - figure["y"] - figure["height"]
    assert 0 <= below < 60
    assert 0 <= sentence["y"] - slider["y"] - slider["height"] + 16 < 40
    assert layer["y"] > sentence["y"]


def test_a_tab_stays_open(visit):
    """The browser opened the one before again, as the tab to begin with had changed."""
    page = visit("/lab?tour=0")
    for name, link in (("One picture", True), ("One signal", False)) * 3:
        tab = page.get_by_role("tab", name=name)
        tab.click()
        until(page, lambda link=link: ("tab=picture" in page.url) is link)
        settle(page)
        expect(tab).to_have_attribute("aria-selected", "true")
