"""How the views are laid out, on the static site: on a phone, for a finger, and in words."""

import numpy as np
import pytest
from torch import Tensor

from densembed.data import as_input
from densembed.fields.field import field
from tests.browser.conftest import expect, painted, places, point, until
from tests.browser.gallery import FIELD, FIXED, INPUT, MOVING, OF, sample

TARGETS = """root => {
  const found = [];
  const visit = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.shadowRoot) visit(each.shadowRoot);
      if (each.matches("button, select, summary, input[type=number]") && each.offsetHeight)
        found.push([each.textContent.trim().slice(0, 20), each.offsetHeight
          + 10 * (getComputedStyle(each, "::after").content !== "none")]);
    }
  };
  visit(root);
  return found;
}"""


@pytest.fixture(params=[False, True], ids=["samples", "draw"])
def phone(request, site):
    page = site(f"explore?from={'draw' if request.param else 'samples'}", 420)
    painted(page, FIELD)
    return page


def test_on_a_phone_one_view_has_the_fields_and_what_changes_them(phone):
    ways, picture, prediction, before, after, steps = (
        places(phone, f".live {selector}")[0]
        for selector in (
            ".ways",
            ".input :is(.plot, .pad):visible",
            ".pair .opinion .heading",
            ".before",
            ".after",
            ".pair .steps",
        )
    )
    assert ways["y"] + ways["height"] <= picture["y"] < prediction["y"] < before["y"] == after["y"]
    assert before["x"] + before["width"] <= after["x"]
    assert after["y"] + after["height"] <= steps["y"]
    assert after["y"] + after["height"] - picture["y"] <= 760  # of 900


@pytest.mark.parametrize("width", [320, 1024])
def test_test_images_are_in_one_row_beside_shuffle(site, width):
    page = site("explore", width)
    images = places(page, ".thumbnails button")
    assert len({box["y"] for box in images}) == 1
    (row,) = places(page, ".thumbnails .row")
    assert images[-1]["x"] + images[-1]["width"] <= row["x"] + row["width"] <= width


@pytest.mark.parametrize(
    "view", ["explore?more=density&show=densities", "compare?models=3", "explore?from=draw"]
)
def test_a_finger_has_targets_of_44_pixels(site, view):
    page = site(view, 420, is_phone=True)
    expect(page.locator(".live canvas").first).to_be_attached()
    page.get_by_text("Move, turn, morph").click()
    targets = page.locator(".live").evaluate(TARGETS)
    assert len(targets) > 10
    assert [each for each in targets if each[1] < 44] == []


@pytest.mark.parametrize("width", [320, 1440])
def test_the_sliders_open_beside_the_picture_that_they_change(site, width):
    page = site("explore", width)
    page.get_by_text("Move, turn, morph").click()
    (picture,), (sliders,) = places(page, f"{INPUT} canvas"), places(page, ".changes details[open]")
    below = picture["y"] + picture["height"] <= sliders["y"]
    assert below or picture["x"] + picture["width"] <= sliders["x"]


def test_on_a_phone_the_picture_is_above_the_model(site):
    page = site("explore", 390)
    painted(page, FIELD)
    (picture,) = places(page, f"{INPUT} canvas")
    (model,) = places(page, ".field:has(select)")[:1]
    assert picture["y"] < model["y"]


def test_a_model_has_its_error_data_and_parameters_below_its_name(site):
    page = site("explore")
    for key in (MOVING, FIXED):
        page.get_by_role("combobox", name="Model").select_option(key)
        checkpoint = OF[key]
        (error,), images = checkpoint.header.errors, checkpoint.header.provenance.test_images
        expect(page.locator(".choices .note")).to_contain_text(f"{error:.2f} % error on")
        expect(page.locator(".choices .note")).to_contain_text(
            f"({images} test images), {checkpoint.parameters:,} parameters."
        )


def test_a_long_name_is_whole_over_its_field(site):
    page = site("compare?models=4")
    painted(page, ".columns .field.first")
    for heading in page.locator(".columns .field .heading").all():
        assert heading.evaluate("each => each.scrollWidth <= each.clientWidth")
    plots = places(page, ".columns .field .plot")
    assert len({box["y"] for box in plots}) == 1


def measures_in_words(pixels: Tensor) -> str:
    """The numbers below a field, each as its words define it."""
    model, x = OF[MOVING].model(-1), as_input(pixels[None])
    mass = field(model, x, 4).values[0].sum(0).astype(np.float64)
    mass /= mass.sum()
    rows, columns = ((np.indices(mass.shape) + 0.5) / 4).reshape(2, -1)
    weights = mass.ravel()
    centre = columns @ weights, rows @ weights
    mean_square = ((columns - centre[0]) ** 2 + (rows - centre[1]) ** 2) @ weights
    entropy = -(mass * np.log2(16 * mass)).sum()
    area = (np.cumsum(np.sort(weights)[::-1]) < 0.9).sum() / 16
    placed = [OF[MOVING].model(index).embedding.placement(x)[0].detach() for index in (0, -1)]
    moved = (placed[1] - placed[0]).norm(dim=-1).mean()
    return (
        f"centre {centre[0]:.1f}, {centre[1]:.1f} · "
        f"spread {mean_square**0.5:.1f} pixels · "
        f"entropy {entropy:.1f} of {np.log2(28 * 28):.1f} bits · "
        f"90 % of the field in {area:.0f} of 784 pixels · "
        f"densities have moved {moved:.1f} pixels on average since the start"
    )


def test_a_screen_reader_hears_the_prediction_at_rest(site):
    page = site("explore")
    heard = page.locator(".pair [aria-live=polite]")
    before = heard.inner_text()
    page.get_by_role("group", name="Class").get_by_role("button", name="3", exact=True).click()
    until(page, lambda: heard.inner_text() != before)
    expect(heard).to_have_attribute("aria-busy", "false")
    expect(heard).to_contain_text("3 (")
    described = page.locator(".pair .after .plot").get_attribute("aria-describedby")
    expect(page.locator(f".pair #{described}")).to_contain_text(measures_in_words(sample(3)))
    expect(page.get_by_role("img", name="The input of the model, class 3")).to_be_visible()


def test_the_pad_stays_under_the_pen(site):
    page = site("explore?from=draw")
    point(page, ".draw_pad .pad > canvas", 0.4, 0.2)
    (before,) = places(page, ".draw_pad .pad > canvas")
    page.mouse.down()
    for x, y in np.linspace((0.4, 0.2), (0.5, 0.8), 9):
        point_x, point_y = before["x"] + x * before["width"], before["y"] + y * before["height"]
        page.mouse.move(point_x, point_y)
    (during,) = places(page, ".draw_pad .pad > canvas")
    page.mouse.up()
    assert during == before == places(page, ".draw_pad .pad > canvas")[0]
