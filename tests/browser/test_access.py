"""Keyboard, names of controls, widths and hidden parts."""

import re

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import (
    choose,
    expect,
    painted,
    point,
    shows,
    until,
)
from tests.browser.gallery import (
    COLOUR,
    FIELD,
    MOVING,
    OF,
    sample,
)
from tests.browser.views import field_of, pressed

FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (!element || element === document.body) return null;
  window.order ??= [];
  if (!window.order.includes(element)) window.order.push(element);
  return window.order.indexOf(element);
}"""


CONTROLS = """() => {
  const all = [];
  const look = (root) => root.querySelectorAll("*").forEach((part) => {
    if (part.shadowRoot) look(part.shadowRoot);
    if (part.checkVisibility({ visibilityProperty: true }) && !part.disabled
        && part.matches("a, button, input, select, summary, [tabindex='0']")) all.push(part);
  });
  look(document);
  const name = (part) => part.getAttribute("aria-label") || part.labels?.[0]?.textContent
    || part.textContent.trim() || part.title;
  return [all.length, all.filter((part) => !name(part)).map((part) => part.outerHTML),
    all.filter((part) => !(window.order ?? []).includes(part)).map((part) => part.outerHTML)];
}"""


@pytest.mark.parametrize(
    "link",
    [
        "explore?show=swipe&more=density",
        "explore?from=draw&show=overlay&more=effect",
        "explore?show=class&more=classes",
        f"explore?model={COLOUR}",
        "compare?models=4",
    ],
)
def test_every_control_has_a_name_and_is_reached_by_the_keyboard(site, link):
    page = site(link)
    expect(page.locator("canvas:visible").first).to_be_visible()
    page.get_by_text("Move, turn, morph").click()
    page.evaluate("document.activeElement.blur()")
    count, nameless, _ = page.evaluate(CONTROLS)
    assert nameless == []
    assert count > 15
    page.locator("header a").first.focus()
    for _ in range(count + 5):
        page.evaluate(FOCUSED)
        page.keyboard.press("Tab")
    _, _, missed = page.evaluate(CONTROLS)
    assert missed == []


def test_the_keyboard_reads_pixels_and_texts_follow(site):
    page = site()
    values = field_of(sample())
    shows(page, FIELD, values)
    plot = page.locator(".pair .after .plot")
    epochs = OF[MOVING].config.epochs
    name = "Receptive field, a heatmap of the sum of the densities, after training, epoch "
    expect(plot).to_have_attribute("aria-label", f"{name}{epochs}")
    plot.press("ArrowRight")
    expect(plot).to_have_attribute(
        "aria-label", re.compile(f"column 15.50, row 14.50.*{values[58, 62]:.4f} per pixel²")
    )
    plot.press("ArrowUp")
    expect(plot).to_have_attribute(
        "aria-label", re.compile(f"column 15.50, row 13.50.*{values[54, 62]:.4f} per pixel²")
    )
    slider = page.get_by_label("Step of training")
    slider.press("Home")
    expect(plot).to_have_attribute("aria-label", re.compile("before training"))
    expect(slider).to_have_attribute("aria-valuetext", re.compile("before training"))
    point(page, ".pair .after .plot", 3.1 / 28, 20.2 / 28)
    before = field_of(sample(), index=0)
    expect(page.locator(".pair .after .tip")).to_contain_text(f"{before[80, 12]:.4f} per pixel²")
    page.mouse.move(0, 0)
    choose(page, "Show", "per pixel")
    expect(plot).to_have_attribute("aria-label", re.compile("Sum of Γ over the densities"))
    choose(page, "Class", "3")
    expect(pressed(page, "Class")).to_have_text("3")
    picture = page.locator(".left .stills .plot")
    expect(picture).to_have_attribute("aria-label", re.compile("The input of the model"))


def ground(page: Page, selector: str) -> list[str]:
    """The colours behind the first such element, and of its border; all as the page's for none."""
    return page.locator(selector).first.evaluate(
        """element => {
          const page = getComputedStyle(document.body).backgroundColor;
          const own = getComputedStyle(element);
          const colour = (name) => name === "rgba(0, 0, 0, 0)" ? page : name;
          const border = parseFloat(own.borderTopWidth) ? own.borderColor : page;
          return [colour(own.backgroundColor), own.backgroundImage.slice(0, 9), colour(border)];
        }"""
    )


def differ(page: Page, one: str, other: str) -> None:
    """Wait, as a part may be in the page some frames before the style sheet that colours it."""
    until(page, lambda: ground(page, one) != ground(page, other))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("link", ["explore?more=about", "compare"])
def test_forced_colours_leave_data_and_what_is_chosen(site, link, theme):
    page = site(link, theme=theme)
    page.emulate_media(forced_colors="active")
    expect(page.locator(".live .legend i").first).to_be_visible()
    panel = ":is(.pair, .columns)"
    for data in (".track div", ".scale .bar", ".legend i"):
        differ(page, f"{panel} {data}", "body")
    for group in (".segments", ".input-bar .pills", ".thumbnails"):
        differ(page, f"{group} [aria-pressed=true]", f"{group} [aria-pressed=false]")


def test_forced_colours_leave_the_controls_of_streamlit(visit):
    page = visit("/lab")
    page.emulate_media(forced_colors="active")
    differ(page, '[data-testid="stSlider"] [style*=left]', "body")
    differ(page, '[data-testid="stCheckbox"] label > div', "body")
    differ(page, "[role=tab][aria-selected=true]", "[role=tab][aria-selected=false]")
    page = visit("/train")
    page.emulate_media(forced_colors="active")
    differ(page, "[role=radio][aria-checked=true]", "[role=radio][aria-checked=false]")


@pytest.mark.parametrize("width", [320, 420, 1024])
def test_nothing_is_wider_than_the_screen(site, width):
    page = site(width=width, theme="dark")
    for link in (
        "explore?show=densities&more=density",
        "explore?from=draw&show=overlay&more=effect",
        "explore?more=classes&to=3&between=0.5",
        "explore?more=about&class=Z",
        f"explore?model={COLOUR}",
        "compare?models=2",
        "compare?models=4&class=3",
    ):
        page.evaluate("link => { location.hash = link; }", link)
        page.wait_for_function("document.querySelector('.live .part')?.shadowRoot")
        expect(page.locator(".live canvas").first).to_be_attached()
        page.get_by_text("Move, turn, morph").click()
        until(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= width)


def test_hidden_parts_of_compare(site):
    page = site("compare?hide=sidebar,change,ways,more,predictions,differences")
    painted(page, ".columns .field.first")
    for part in (".choices", ".changes", ".ways", ".details", ".opinion", ".change"):
        expect(page.locator(part).first).to_be_hidden()
    expect(page.get_by_label("Step of training")).to_be_visible()


def test_hidden_parts_leave_their_room(site):
    page = site("explore?hide=sidebar,predictions,before,more")
    shows(page, FIELD, field_of(sample()))
    for part in (".choices", ".details", ".pair .before", ".pair .opinion"):
        expect(page.locator(part).first).to_be_hidden()
    expect(page.get_by_label("Step of training")).to_be_visible()
    stage, after = (page.locator(f".pair {part}").bounding_box() for part in (".stage", ".after"))
    assert after["width"] > 0.9 * stage["width"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_links_of_the_menu_and_own_buttons_have_a_focus_mark(visit, theme):
    page = visit("/?tour=1", theme=theme)
    mark = """element => {
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      return `${outlineStyle} ${outlineWidth}`;
    }"""
    page.keyboard.press("Tab")
    for name in ("Compare", "Skip", "Copy link"):
        element = page.get_by_text(name, exact=True).filter(visible=True).first
        own = element.locator("xpath=ancestor-or-self::*[self::a or self::button][1]")
        own.focus()
        assert own.evaluate(mark) == "solid 2px"
