"""Explore's fields, steps, models and details are Python's."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from densembed.data import as_input, load_dataset
from densembed.data.transform import Transform, scaled_images
from densembed.fields.field import TOP_PERCENTILE, field, pixel_field, view
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    weighted_field,
)
from densembed.functional.frame import mass_box
from densembed.runs.gallery import Entry
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import EXAMPLES, write_site
from tests.browser.conftest import (
    choose,
    expect,
    painted,
    press,
    shows,
    until,
)
from tests.browser.gallery import (
    COLOUR,
    FIELD,
    FIXED,
    FRAMED,
    INPUT,
    LETTERS,
    LINEAR,
    MLP,
    MOVING,
    OF,
    PAPER,
    SMALL,
    STEPS,
    made,
    sample,
)
from tests.browser.test_links import INK
from tests.browser.views import decoded, ends, field_of, pressed, rests


def class_field(pixels: torch.Tensor, label: int, index: int) -> np.ndarray:
    model = OF[MOVING].network(index)
    return weighted_field(model, as_input(pixels[None]), class_weights(model)[label]).sum(0)


def masses(pixels: torch.Tensor, index: int) -> np.ndarray:
    return pixel_field(OF[MOVING].network(index), as_input(pixels[None]))[0].sum(0)


def bound(first: np.ndarray, last: np.ndarray) -> float:
    return max(np.percentile(abs(values), TOP_PERCENTILE) for values in (first, last))


def test_every_way_paints_the_numbers_of_python(site):
    page, pixels, at = site(f"explore?step={STEPS[9]}"), sample(), 9
    expected = view(OF[MOVING], pixels)
    before, now = expected.fields[0].sum(0), expected.fields[at].sum(0)
    weights = [class_field(pixels, 3, index) for index in (0, at, -1)]
    mass = [masses(pixels, index) for index in (0, at, -1)]
    page.get_by_label("Contours").check()
    for way, first, second, top in (
        ("field", before, now, expected.top),
        ("over the input", before, now, expected.top),
        ("difference", before, now - before, expected.top),
        ("swipe", before, np.hstack([before[:, :56], now[:, 56:]]), expected.top),
        ("per pixel", mass[0], mass[1], bound(mass[0], mass[2])),
        ("weight for a class", weights[0], weights[1], bound(weights[0], weights[2])),
    ):
        choose(page, "Show", way)
        if way == "weight for a class":
            page.get_by_label("for class").select_option("3")
        shows(page, ".pair .before", first)
        shows(page, FIELD, second)
        low = -top if way in ("difference", "weight for a class") else 0
        until(
            page,
            lambda low=low, top=top: (
                ends(page, ".pair .after") == pytest.approx((low, top), rel=6e-3)
            ),
        )
        drawn = page.locator(".pair .after svg path").evaluate_all(
            "paths => paths.map(path => path.getAttribute('d'))"
        )
        share = [0.2, 0.4, 0.6, 0.8] + ([-0.2, -0.4, -0.6, -0.8] if low else [])
        assert len(drawn) == len(share)
        cell = 28 / second.shape[0]
        for path, level in zip(drawn, np.array(share) * top, strict=True):
            corners = np.array(re.findall(r"[\d.]+", path), float).reshape(-1, 2)
            crossed(second, corners, level, cell)
        if way == "over the input":
            picture = decoded(page.locator(".pair .after img"))
            np.testing.assert_array_equal(picture, pixels[0])
            page.get_by_label("Opacity", exact=True).fill("0.3")
            expect(page.locator(f"{FIELD} canvas")).to_have_css("opacity", "0.3")
    rests(page, f"step={STEPS[9]}&show=class&for=3&contours=true&opacity=0.3")


def crossed(values: np.ndarray, places: np.ndarray, level: float, cell: float) -> None:
    """Along the contour the values between the cells' centres are the level."""
    at = places / cell - 0.5
    low = np.clip(np.floor(at).astype(int), 0, np.array(values.shape)[::-1] - 2)
    x, y = (at - low).T
    (j, i) = low.T
    between = (
        values[i, j] * (1 - x) * (1 - y)
        + values[i, j + 1] * x * (1 - y)
        + values[i + 1, j] * (1 - x) * y
        + values[i + 1, j + 1] * x * y
    )
    steep = abs(np.diff(values, axis=0)).max() + abs(np.diff(values, axis=1)).max()
    assert len(places) or not (values.max() > level > values.min())
    np.testing.assert_allclose(between, level, 0, 0.006 / cell * steep)  # two decimals


def test_densities_are_where_python_places_them_and_one_opens_by_a_click(site):
    page = site("explore?show=densities&class=4&for=9")
    model = OF[MOVING].network()
    placed = densities(model, as_input(sample(4)[None]))
    circles = page.locator(".pair .after circle")
    expect(circles).to_have_count(len(placed.loc))
    drawn = circles.evaluate_all(
        "all => all.map(each => ['cx', 'cy', 'fill'].map(name => each.getAttribute(name)))"
    )
    np.testing.assert_allclose([[float(x), float(y)] for x, y, _ in drawn], placed.loc, 1e-4, 1e-4)
    fills = {
        sign: {
            fill for (*_, fill), w in zip(drawn, placed.weights[9], strict=True) if (w > 0) == sign
        }
        for sign in (True, False)
    }
    assert len(fills[True]) == len(fills[False]) == 1
    assert fills[True] != fills[False]
    ellipses = page.locator(".pair .after ellipse").evaluate_all(
        "all => all.map(each => ['rx', 'ry'].map(name => Number(each.getAttribute(name))))"
    )
    np.testing.assert_allclose(ellipses, placed.scale, 1e-4, 1e-4)
    page.locator(".pair .after circle[data-number='7']").dispatch_event("click")
    expect(page.get_by_label("Density", exact=True)).to_have_value("7")
    rests(page, "show=densities&class=4&for=9&more=density&density=7")


def test_the_divider_is_dragged_and_rests_in_the_link(site):
    page = site("explore?show=swipe")
    first, last = field_of(sample(), index=0), field_of(sample())
    shows(page, FIELD, np.hstack([first[:, :56], last[:, 56:]]))
    press(page, ".pair .after .plot", [(0.5, 0.5), (0.25, 0.5)])
    place = page.get_by_role("slider", name="Divider").input_value()
    edge = round(112 * int(place) / 100)
    assert 20 < edge < 36
    shows(page, FIELD, np.hstack([first[:, :edge], last[:, edge:]]))
    page.mouse.up()
    rests(page, f"show=swipe&divider={place}")
    page.reload()
    shows(page, FIELD, np.hstack([first[:, :edge], last[:, edge:]]))


def test_a_channel_of_a_colour_model_and_its_three_channels(site):
    page = site(f"explore?model={COLOUR}")
    checkpoint = Checkpoint.from_bytes(made("logistic-el-mnn-3-2", (3, 12, 21)))
    blank = torch.zeros(1, 3, 12, 21)
    values = field(checkpoint.network(), blank).values[0]
    shows(page, FIELD, values.sum(0))
    choose(page, "Channel", "green")
    shows(page, FIELD, values[1 % len(values)])
    rests(page, f"model={COLOUR}&channel=green")
    assert page.locator(".opinion .heading").inner_text().endswith("none: no picture")


def test_the_box_of_the_densities_is_drawn(site, tmp_path):
    """It follows the ink, before and after training; a box that is the picture is not drawn."""
    files = [Entry(key, PAPER / f"{key}.safetensors") for key in (FRAMED, MOVING)]
    write_site(tmp_path / "out", files, [load_dataset("digits")])
    place = f"{(tmp_path / 'out').as_uri()}/"
    page = site(f"explore?model={FRAMED}&class=7&example=1&right=3&size=0.7", at=place)
    x = as_input(Transform(right=3, size=0.7)(sample()[None]))
    lower, length = mass_box(x)
    wanted = [*lower.flatten().tolist(), *length.expand_as(lower).flatten().tolist()]
    assert 10 < wanted[2] < 26
    for way in ("field", "over the input", "densities", "difference"):
        choose(page, "Show", way)
        for panel in (".before", ".after"):
            rect = page.locator(f".pair {panel} svg rect.box")
            expect(rect).to_have_count(1)
            drawn = [float(rect.get_attribute(name)) for name in ("x", "y", "width", "height")]
            assert drawn == pytest.approx(wanted, abs=1e-3)
    page.get_by_label("Model", exact=True).select_option(MOVING)
    expect(page.locator("svg rect.box")).to_have_count(0)


# Steps


def test_the_slider_and_play_show_every_step(site):
    page = site()
    expected = view(OF[MOVING], sample())
    slider = page.get_by_label("Step of training")
    for index in (-2, -3, 0):
        slider.press("Home" if index == 0 else "ArrowLeft")
        shows(page, FIELD, expected.fields[index].sum(0))
        shares = [f"{100 * share:.1f} %" for share in expected.probabilities[index]]
        expect(page.locator(".pair .bars .value")).to_have_text(shares)
    rests(page, f"step={STEPS[0]}")
    page.locator(".pair .stage").evaluate(
        """root => {
          root.seen = [];
          const moment = () => document.timeline.currentTime;  // of the frame, however late it is
          new MutationObserver(() => root.seen.push([Number(root.dataset.step), moment()]))
            .observe(root, { attributeFilter: ["data-step"] });
        }"""
    )
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    times = page.locator(".pair .stage").evaluate("root => root.seen")
    shown = [step for step, _ in times]  # a busy machine skips some
    assert shown == sorted(shown)
    assert set(shown) <= set(STEPS)
    assert shown[-1] == STEPS[-1]
    # With reduced motion, no more than three changes per second.
    changes = [moment for step, moment in times if step != STEPS[0]]
    changes = changes[: len(set(shown) - {STEPS[0]})]  # the last step is set again at the end
    assert all(later - earlier >= 349 for earlier, later in pairwise(changes))
    shows(page, FIELD, expected.fields[-1].sum(0))
    rests(page, "")


# Models


def test_another_model_keeps_what_was_chosen_where_it_has_it(site):
    page = site(f"explore?class=3&example=2&show=densities&contours=true&step={STEPS[3]}")
    model = page.get_by_label("Model", exact=True)
    model.select_option(FIXED)
    index = OF[FIXED].steps.index(STEPS[3])
    choose(page, "Show", "difference")
    before, now = (field_of(sample(3, 2), FIXED, k) for k in (0, index))
    shows(page, FIELD, now - before, 1e-3)  # early in the training it is small
    rests(page, f"model={FIXED}&class=3&example=2&show=difference&contours=true&step={STEPS[3]}")
    choose(page, "Show", "densities")
    model.select_option(MLP)  # no densities
    expect(pressed(page, "Show")).to_have_text("field")
    ways = page.get_by_role("group", name="Show")
    expect(ways.get_by_role("button", name="densities")).to_have_count(0)
    expect(pressed(page, "Class")).to_have_text("3")
    model.select_option(LETTERS)
    expect(page.get_by_role("group", name="Class")).to_be_hidden()  # no test images to choose from
    model.select_option(COLOUR)
    expect(page.get_by_role("group", name="Channel")).to_be_visible()
    expect(page.get_by_role("group", name="Input", exact=True)).to_be_hidden()
    model.select_option(MOVING)
    shows(page, FIELD, field_of(sample()))
    expect(page.locator("#notices")).to_be_hidden()


def test_a_drawing_stays_with_another_model(site):
    page = site(f"explore?from=draw&ink={INK}")
    shows(page, FIELD, field_of(sample(5)))
    page.get_by_label("Model", exact=True).select_option(FIXED)
    expect(page.get_by_label("Model", exact=True)).to_have_value(FIXED)
    shows(page, FIELD, field_of(sample(5), FIXED))
    rests(page, f"model={FIXED}&from=draw&ink={INK}")


def test_a_view_that_was_left_writes_no_link(site):
    page = site("explore")
    rests(page, "")
    page.evaluate(
        """() => {
          document.querySelector("button[value=difference]").click();
          location.hash = "compare?class=3&field=sum";
        }"""
    )
    shows(page, ".columns .field.first", field_of(sample(3)))
    page.get_by_label("Step of training").press("ArrowLeft")
    page.wait_for_url("**step=*")
    assert page.url.partition("#")[2] == f"compare?class=3&field=sum&step={STEPS[-2]}"


@pytest.mark.parametrize(("key", "decimals"), [(FIXED, 3), (MOVING, 2)])
def test_a_small_distance_is_not_written_as_zero(site, key, decimals):
    page, x = site(f"explore?model={key}&step={STEPS[1]}"), as_input(sample()[None])
    before, now = (OF[key].model(k).embedding.placement(x)[0].detach() for k in (0, 1))
    moved = (now - before).norm(dim=-1).mean()
    assert moved < 0.05
    expect(page.get_by_text(re.compile("densities have moved"))).to_contain_text(
        f"densities have moved {moved:.{decimals}f} pixels on average"
    )


@pytest.mark.parametrize("view", ["explore", "compare"])
def test_a_browser_that_is_too_old_is_named(browser, address, view):
    """The words were the browser's own, such as "steps.findLast is not a function"."""
    page = browser.new_page()
    page.add_init_script("delete Array.prototype.findLast; CSS.supports = () => false;")
    page.goto(f"{address}index.html#{view}")
    expect(page.locator("#notices p")).to_have_text(
        "This page needs a newer browser: Chrome or Edge 112, Firefox 119, Safari 16.5, or a later "
        "version."
    )
    page.close()


@pytest.mark.parametrize(
    ("view", "label"),
    [("explore", "Model"), ("compare", "Second model"), ("compare", "First model")],
)
def test_a_model_that_comes_late_or_not_at_all(browser, address, view, label):
    page = browser.new_page()
    errors: list[str] = []
    waiting = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.route(f"**/{LINEAR}.js", lambda route: waiting.append(route))
    page.route(f"**/{MLP}.js", lambda route: route.abort())
    if view == "explore":
        figure, key, combined = FIELD, "model", ""
    else:
        key, combined = label.split()[0].lower(), "&field=sum"
        figure = f".columns .field.{key}"
    page.goto(f"{address}index.html#{view}?{combined}")
    painted(page, figure)
    models = page.get_by_label(label, exact=True)
    models.select_option(LINEAR)
    until(page, lambda: waiting)
    live, loading = page.locator(".live"), page.get_by_text(re.compile("^Loading .*Linear"))
    expect(loading).to_be_visible()
    expect(live).to_have_attribute("aria-busy", "true")
    choose(page, "Class", "2")
    expect(models).to_have_value(LINEAR)  # and does not jump back to the last view's
    expect(loading).to_be_visible()
    choose(page, "Class", "7")
    models.select_option(SMALL)
    shows(page, figure, field_of(sample(), SMALL))
    expect(loading).to_be_hidden()
    expect(live).to_have_attribute("aria-busy", "false")
    waiting[0].continue_()
    page.wait_for_function("key => globalThis.checkpoints[key]", arg=LINEAR)
    choose(page, "Class", "4")
    shows(page, figure, field_of(sample(4), SMALL))
    models.select_option(MLP)
    sentence = (
        f"The file {MLP}.js could not be loaded. Check the connection, and choose the model again "
        "or reload the page."
    )
    expect(page.locator("#notices p")).to_have_text([sentence])
    choose(page, "Class", "5")
    painted(page, figure)
    page.unroute(f"**/{MLP}.js")
    models.select_option(LINEAR)
    models.select_option(MLP)
    expect(models).to_have_value(MLP)
    rests(page, f"{key}={MLP}&class=5{combined}")
    page.close()
    assert errors == []


@pytest.mark.parametrize(
    ("view", "name", "label"), [("explore", "model", "Model"), ("compare", "first", "First model")]
)
def test_another_model_is_chosen_where_that_of_the_link_cannot_be_loaded(
    browser, address, view, name, label
):
    """There was a sentence alone, and nothing to choose."""
    page = browser.new_page()
    page.route(f"**/{MLP}.js", lambda route: route.abort())
    page.goto(f"{address}index.html#{view}?{name}={MLP}&class=3")
    expect(page.locator("#notices p")).to_contain_text([f"The file {MLP}.js could not be loaded."])
    models = page.get_by_label(label, exact=True)
    expect(models).to_have_value(MLP)
    models.select_option(SMALL)
    figure = FIELD if view == "explore" else ".columns .field.first"
    shows(page, figure, field_of(sample(3), SMALL), 1e-4)
    expect(page.locator("#notices")).to_be_hidden()
    page.close()


@pytest.mark.parametrize("key", [MOVING, FIXED, LINEAR])
def test_a_network_on_another_grid(site, key):
    """The picture as the network gets it, its field and its prediction, and all that follows."""
    page = site(f"explore?model={key}&class=3&right=2")
    shows(page, FIELD, field_of(Transform(right=2)(sample(3)), key))
    page.get_by_text("Move, turn, morph").click()
    resolution = page.get_by_label("Resolution", exact=True)
    expect(resolution.locator("option:checked")).to_have_text("28 × 28 (training)")
    for side in (14, 42):
        resolution.select_option(str(side))
        pixels = scaled_images(Transform(right=2)(sample(3)), (side, side))
        expected = view(OF[key], pixels, [-1])
        shows(page, INPUT, pixels[0].numpy() / 255)
        shows(page, FIELD, expected.fields[0].sum(0))
        best = int(expected.probabilities[0].argmax())
        text = f"{best} ({100 * expected.probabilities[0][best]:.1f} %)"
        expect(page.locator(".pair .opinion .heading")).to_contain_text(text)
    choose(page, "Show", "over the input")
    np.testing.assert_array_equal(decoded(page.locator(".pair .after img")), pixels[0])
    choose(page, "More", "Effect of each pixel")
    model = OF[key].network().at((42, 42))
    gradient = input_gradient(model, as_input(pixels[None]))[:, 0]
    shows(page, ".detail figure:nth-child(2)", gradient[best])
    choose(page, "More", "All classes")
    images = torch.stack([scaled_images(sample(6, 1 + k), (42, 42)) for k in range(EXAMPLES)])
    mean, _ = field_statistics(model, as_input(images), 4)
    shows(page, ".detail figure:nth-child(7)", mean)
    rests(
        page,
        f"model={key}&class=3&right=2&grid=42&show=overlay&more=classes".replace(
            f"model={MOVING}&", ""
        ),
    )
    resolution.select_option("28")
    shows(page, FIELD, field_of(Transform(right=2)(sample(3)), key))


def test_a_drawing_on_another_grid(site):
    page = site(f"explore?from=draw&ink={INK}&grid=14")
    pixels = scaled_images(sample(5), (14, 14))
    shows(page, FIELD, field_of(pixels))
    np.testing.assert_array_equal(decoded(page.locator(".draw_pad figure canvas")), pixels[0])
    rests(page, f"from=draw&ink={INK}&grid=14")


# Details


def test_one_density_its_numbers_weights_and_path(site):
    page = site("explore?more=density&density=3&class=2")
    x, model = as_input(sample(2)[None]), OF[MOVING].network()
    placed = densities(model, x)
    (t, u), (a, b) = placed.loc[2], placed.scale[2]
    with torch.no_grad():
        reading = model.embedding(x)[0].flatten()[2]
    expect(page.locator(".detail .text p")).to_have_text(
        [
            f"Location: {t:.2f} columns and {u:.2f} rows. Scale: {a:.2f} columns and {b:.2f} rows, "
            "in pixels. The line is the path of its location during training, for this input.",
            f"Its reading, the mean ink under it, is {reading:.3f} for this picture.",
        ]
    )
    expect(page.locator(".detail .weights td:last-child")).to_have_text(
        [f"{weight:.2f}".replace("-", "−") for weight in placed.weights[:, 2]]
    )
    shows(page, ".detail figure", density_field(model, x, 2)[0])
    path = page.locator(".detail polyline").get_attribute("points")
    wanted = [densities(OF[MOVING].network(k), x).loc[2] for k in range(len(STEPS))]
    points = np.array(path.split(","), float).reshape(-1, 2)
    np.testing.assert_allclose(points, wanted, 1e-4, 1e-4)
    page.get_by_label("Density", exact=True).fill("10")
    page.evaluate("dispatchEvent(new Event('resize'))")  # the view is drawn again, as when it rests
    page.get_by_label("Density", exact=True).press("Enter")
    shows(page, ".detail figure", density_field(model, x, 9)[0])
    rests(page, "more=density&density=10&class=2")


def test_the_effect_of_each_pixel(site):
    page = site("explore?more=effect&for=3")
    gradient = input_gradient(OF[MOVING].model(), as_input(sample()[None]))[:, 0]
    figures = page.locator(".detail figure")
    expect(figures).to_have_count(3)
    shows(page, ".detail figure:nth-child(1)", field_of(sample()))
    shows(page, ".detail figure:nth-child(2)", gradient[3])
    shows(page, ".detail figure:nth-child(3)", np.sqrt((gradient**2).mean(0)))
    expect(figures.nth(1).locator(".heading")).to_contain_text("effect on 3")


def test_all_classes_are_means_over_test_images(site):
    page = site("explore?more=classes")
    for label in (0, 6):
        images = as_input(torch.stack([sample(label, 1 + k) for k in range(EXAMPLES)]))
        mean, _ = field_statistics(OF[MOVING].model(), images, 4)
        shows(page, f".detail figure:nth-child({label + 1})", mean)
    expect(page.locator(".detail figure")).to_have_count(10)
