"""The static site: Explore and Compare in a browser without a server of ours."""

import base64
import contextlib
import io
import re
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Locator, Page

from densembed.data import as_input
from densembed.data.codec import from_text, to_text
from densembed.data.decode import ImageError
from densembed.data.transform import Transform
from densembed.fields.agreement import align_steps
from densembed.fields.field import TOP_PERCENTILE, field, pixel_field, view
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    weighted_field,
)
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.web.site import EXAMPLES
from tests.browser.conftest import (
    choose,
    drag,
    expect,
    numbers,
    painted,
    point,
    press,
    shows,
    until,
)  # fmt: skip
from tests.browser.gallery import (
    COLOUR,
    FIELD,
    FIXED,
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


def parameters(link: str) -> dict:
    """Those of a link; a picture as its pixels, for which there are several texts."""
    found = dict(parse_qsl(link))
    with contextlib.suppress(ImageError, KeyError):
        found["ink"] = from_text(found["ink"], (1, 28, 28)).tolist()
    return found


def rests(page: Page, link: str) -> None:
    """Wait until the view has written this link."""
    wanted = parameters(link)
    try:
        until(page, lambda: parameters(page.url.partition("#")[2].partition("?")[2]) == wanted)
    except AssertionError:
        assert page.url.partition("?")[2] == link
        raise


def pressed(page: Page, group: str) -> Locator:
    return page.get_by_role("group", name=group, exact=True).locator("[aria-pressed=true]")


def ends(page: Page, figure: str) -> tuple[float, float]:
    texts = page.locator(f"{figure} .ticks span").all_text_contents()
    found = [float(re.sub("[≤≥ ]", "", text).replace("−", "-")) for text in texts]
    return found[0], found[-1]


def field_of(pixels: torch.Tensor, key: str = MOVING, index: int = -1) -> np.ndarray:
    return view(OF[key], pixels, [index]).fields[0].sum(0)


# Ways of showing


def class_field(pixels: torch.Tensor, label: int, index: int) -> np.ndarray:
    model = OF[MOVING].network(index)
    return weighted_field(model, as_input(pixels[None]), class_weights(model)[label]).sum(0)


def masses(pixels: torch.Tensor, index: int) -> np.ndarray:
    return pixel_field(OF[MOVING].network(index), as_input(pixels[None]))[0].sum(0)


def bound(first: np.ndarray, last: np.ndarray) -> float:
    return max(np.percentile(abs(values), TOP_PERCENTILE) for values in (first, last))


def test_every_way_paints_the_numbers_of_python(site):
    page, pixels, at = site(f"explore?step={STEPS[9]}"), sample(), 9
    seen = view(OF[MOVING], pixels)
    before, now = seen.fields[0].sum(0), seen.fields[at].sum(0)
    weights = [class_field(pixels, 3, index) for index in (0, at, -1)]
    mass = [masses(pixels, index) for index in (0, at, -1)]
    page.get_by_label("Contours").check()
    for way, first, second, top in (
        ("field", before, now, seen.top),
        ("over the input", before, now, seen.top),
        ("difference", before, now - before, seen.top),
        ("swipe", before, np.hstack([before[:, :56], now[:, 56:]]), seen.top),
        ("per pixel", mass[0], mass[1], bound(mass[0], mass[2])),
        ("weight for a class", weights[0], weights[1], bound(weights[0], weights[2])),
    ):
        choose(page, "Show", way)
        if way == "weight for a class":
            page.get_by_label("for class").select_option("3")
        shows(page, ".pair .before", first)
        shows(page, FIELD, second)
        low = -top if way in ("difference", "weight for a class") else 0
        until(page, lambda low=low, top=top: ends(page, ".pair .after")
              == pytest.approx((low, top), rel=6e-3))  # fmt: skip
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
        values[i, j] * (1 - x) * (1 - y) + values[i, j + 1] * x * (1 - y)
        + values[i + 1, j] * (1 - x) * y + values[i + 1, j + 1] * x * y
    )  # fmt: skip
    steep = abs(np.diff(values, axis=0)).max() + abs(np.diff(values, axis=1)).max()
    assert len(places) or not (values.max() > level > values.min())
    np.testing.assert_allclose(between, level, 0, 0.006 / cell * steep)  # two decimals


def decoded(image: Locator) -> np.ndarray:
    """The first channel of a picture whose URL contains it."""
    content = image.get_attribute("src").partition(",")[2]
    return np.array(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))[..., 0]


def test_densities_are_where_python_places_them_and_one_opens_by_a_click(site):
    page = site("explore?show=densities&class=4&for=9")
    model = OF[MOVING].network()
    placed = densities(model, as_input(sample(4)[None]))
    circles = page.locator(".pair .after circle")
    expect(circles).to_have_count(len(placed.loc))
    found = circles.evaluate_all("all => all.map(each => ['cx', 'cy', 'fill'].map("
                                 "name => each.getAttribute(name)))")  # fmt: skip
    np.testing.assert_allclose([[float(x), float(y)] for x, y, _ in found], placed.loc, 1e-4, 1e-4)
    fills = {sign: {fill for (*_, fill), w in zip(found, placed.weights[9], strict=True)
                    if (w > 0) == sign} for sign in (True, False)}  # fmt: skip
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
    assert "divider" not in page.url
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
    assert page.locator(".opinion .heading").inner_text().endswith("none: no digit found")


# Input


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
    "right": ("Move to the right", 3), "down": ("Move down", -2.5), "size": ("Size", 1.2),
    "turn": ("Turn clockwise", 25), "blur": ("Blur", 0.75), "noise": ("Noise", 0.1),
}  # fmt: skip


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
    page.get_by_text("Move, turn, morph").click()
    page.get_by_role("button", name="Reset").click()
    shows(page, INPUT, sample()[0].numpy() / 255)
    rests(page, "")


def alike(shown: np.ndarray, pixels: np.ndarray) -> bool:
    """The same up to rounding, which may differ by one for a few pixels."""
    if shown.shape != pixels.shape:
        return False
    off = abs(np.rint(255 * shown) - pixels)
    return bool(off.max() <= 1 and (off > 0).mean() < 0.02)


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
    page.get_by_label("Morph into").select_option("none")
    expect(between).to_be_hidden()
    rests(page, "example=2")


def drawn(page: Page) -> torch.Tensor:
    """The input that the drawing became, from the small picture beside the pad."""
    return torch.from_numpy(decoded(page.locator(".draw_pad figure img")).copy())[None]


def follows(page: Page) -> torch.Tensor:
    """Wait until the field is that of the drawing, which has ink."""
    pixels = torch.zeros(1, 28, 28, dtype=torch.uint8)

    def there() -> bool:
        nonlocal pixels
        pixels = drawn(page)
        shown = numbers(page, FIELD)
        return bool(pixels.any()) and np.allclose(shown, field_of(pixels), 1e-4, 1e-5)

    until(page, there)
    return pixels


PAD = ".draw_pad canvas"


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
    expect(page.get_by_text("scaled to 28 × 28")).to_be_visible()
    drag(page, PAD, [(0.3, 0.5), (0.7, 0.6)])
    until(page, lambda: bool((drawn(page) != one).any()))
    two = follows(page)
    page.wait_for_url("**ink=*")
    until(page, lambda: torch.equal(linked(page), two))
    again = site(page.url.partition("#")[2])
    assert torch.equal(follows(again), two)
    drag(again, PAD, [(0.2, 0.9), (0.8, 0.9)])  # on top of the drawing of the link
    until(again, lambda: bool((drawn(again) != two).any()))
    follows(again)
    page.locator(PAD).press("Control+z")
    until(page, lambda: torch.equal(drawn(page), one))
    follows(page)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("no digit yet")).to_be_visible()
    expect(page.locator(".opinion .heading small")).to_have_text("none: no digit found")
    rests(page, "from=draw")
    page.get_by_label("Pen size").fill("16")
    drag(page, PAD, [(0.15, 0.3), (0.15, 0.7)])
    drag(page, PAD, [(0.75, 0.2), (0.95, 0.25), (0.75, 0.7), (0.95, 0.75)])
    expect(page.get_by_text("several digits: draw one at a time")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("several digits")).to_be_hidden()


def middle(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def linked(page: Page) -> torch.Tensor:
    return from_text(page.url.partition("ink=")[2].partition("&")[0], (1, 28, 28))


# Steps


def test_the_slider_and_play_show_every_step(site):
    page = site()
    seen = view(OF[MOVING], sample())
    slider = page.get_by_label("Step of training")
    for index in (-2, -3, 0):
        slider.press("Home" if index == 0 else "ArrowLeft")
        shows(page, FIELD, seen.fields[index].sum(0))
        shares = [f"{100 * share:.0f} %" for share in seen.probabilities[index]]
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
    # With reduced motion, no more than three steps per second.
    places = [(STEPS.index(step), moment) for step, moment in times[1:]]
    begun = min(moment - 350 * place for place, moment in places)
    assert all(moment - begun <= 350 * (place + 1) + 1 for place, moment in places[:-1])
    shows(page, FIELD, seen.fields[-1].sum(0))
    rests(page, "")


# Links

USUAL = "The usual value is shown."
INK = to_text(sample(5))


def invalid(label: str, value: str, expected: str) -> str:
    return f"The link sets “{label}” to “{value}”, which is not {expected}. {USUAL}"


def unknown(name: str) -> str:
    return f"This view has no parameter “{name}”."


DAMAGED = "The picture in the link is damaged or of another size than the model’s."
DIGITS = "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
WAYS = "one of field, overlay, difference, swipe, pixels, densities, class"
EXPLORED = [  # link, the link that the view writes, problems
    ("class=3&example=2", "class=3&example=2", []),
    ("class=Z&example=2", "example=2", [invalid("Class", "Z", DIGITS)]),
    ("example=1.5&class=3", "class=3", [invalid("Example", "1.5", "a whole number from 1 to 20")]),
    ("example=21", "", [invalid("Example", "21", "a whole number from 1 to 20")]),
    (f"model={SMALL}&class=3", f"model={SMALL}&class=3", []),
    ("model=nothing&class=3", "class=3", [invalid("Model", "nothing", "one of "
     f"{MOVING}, {FIXED}, {SMALL}, {LINEAR}, {MLP}, {COLOUR}, {LETTERS}")]),
    (f"step={STEPS[4]}", f"step={STEPS[4]}", []),
    (f"step={STEPS[4] + 1}", f"step={STEPS[4]}", []),
    ("step=-1", "", [invalid("Step of training", "-1", f"a number from 0 to {STEPS[-1]:,}")]),
    ("show=on the input&opacity=0.3", "show=overlay&opacity=0.3", []),
    ("show=per pixel", "show=pixels", []),
    ("show=weight for a class&for=its answer", "show=class", []),
    ("show=nothing&class=3", "class=3", [invalid("Show", "nothing", WAYS)]),
    ("opacity=2", "", [invalid("Opacity", "2", "a number from 0 to 1")]),
    ("show=class&for=5", "show=class&for=5", []),
    ("contours=1", "contours=true", []),
    ("contours=true", "contours=true", []),
    ("contours=maybe", "", [invalid("Contours", "maybe", "true or false")]),
    ("more=One density&density=3", "more=density&density=3", []),
    ("more=What it computes", "more=effect", []),
    ("more=density&density=0", "more=density",
     [invalid("Density", "0", "a whole number from 1 to 100")]),
    ("more=Take it away&class=3", "class=3",
     [invalid("More", "Take it away", "one of about, density, effect, classes")]),
    ("from=Samples&class=3", "class=3", []),
    (f"from=Draw&ink={INK}", f"from=draw&ink={INK}", []),
    (f"from=draw&ink={INK[:-4]}", "from=draw", [DAMAGED]),
    ("from=draw&ink=a b", "from=draw", [invalid("Picture", "a b", "a whole picture")]),
    ("from=Upload", "", [invalid("Input", "Upload", "one of samples, draw")]),
    ("shuffle=4", "shuffle=4", []),
    ("shuffle=-1", "", [invalid("Shuffle", "-1", "a whole number from 0 to 1,000,000")]),
    ("to=3&between=0.25", "to=3&between=0.25", []),
    ("to=Z&between=2", "", [invalid("Morph into", "Z", DIGITS),
                            invalid("Between", "2", "a number from 0 to 1")]),
    ("right=2&down=-1.5&size=1.2&turn=-30&blur=1&noise=0.2",
     "right=2&down=-1.5&size=1.2&turn=-30&blur=1&noise=0.2", []),
    ("right=9&turn=5", "turn=5", [invalid("Move to the right", "9", "a number from −8 to 8")]),
    ("hide=before,predictions", "hide=before,predictions", []),
    ("hide=everything&class=3", "class=3", [invalid("Hide", "everything", "some of menu, sidebar, "
     "change, ways, more, predictions, before, numbers, steps")]),
    ("show=swipe&divider=30", "show=swipe&divider=30", []),
    ("divider=101", "", [invalid("Divider of the swipe", "101", "a whole number from 0 to 100")]),
    (f"model={COLOUR}&channel=red", f"model={COLOUR}&channel=red", []),
    ("channel=red&class=3", "class=3", [invalid("Channel", "red", "one of together")]),
    ("modle=linear&class=3", "class=3", [unknown("modle")]),
    ("x=" + "y" * 50 + "&class=<b>", "", [invalid("Class", "<b>", DIGITS), unknown("x")]),
]  # fmt: skip
COMPARED = [
    (f"models=3&second={SMALL}&third={LINEAR}&class=3",
     f"models=3&second={SMALL}&third={LINEAR}&class=3", []),
    ("models=5&class=3", "class=3", [invalid("Models", "5", "one of 2, 3, 4")]),
    ("by=epoch&epoch=20", "by=epoch&epoch=20", []),
    ("by=fraction&fraction=0.5", "by=fraction&fraction=0.5", []),
    ("by=year&step=-1", "", [invalid("Align runs by", "year", "one of step, epoch, fraction"),
     invalid("Step of training", "-1", "a number from 0 to 1,000,000,000,000")]),
    ("field=mean", "field=mean", []),
    ("field=most", "", [invalid("Combine densities by", "most", "one of sum, mean")]),
    (f"from=Draw&ink={INK}", f"from=draw&ink={INK}", []),
    ("hide=differences", "hide=differences", []),
    ("modle=linear&right=2", "right=2", [unknown("modle")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "links"), [("explore", EXPLORED), ("compare", COMPARED)])
def test_a_link_opens_its_state_and_names_what_is_invalid(site, name, links):
    page = site(name)
    rests(page, "")
    for link, written, problems in links:
        page.evaluate("link => { location.hash = link; }", f"{name}?{link}")
        expect(page.locator("#notices p")).to_have_text(problems)
        expect(page.locator("#notices")).to_be_visible(visible=bool(problems))
        rests(page, written)


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
    expect(pressed(page, "Class")).to_have_text("a")
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
          location.hash = "compare?class=3";
        }"""
    )
    shows(page, ".columns .field.first", field_of(sample(3)))
    page.get_by_label("Step of training").press("ArrowLeft")
    page.wait_for_url("**step=*")
    assert page.url.partition("#")[2] == f"compare?class=3&step={STEPS[-2]}"


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
    page.goto(f"{address}index.html#{view}")
    figure = FIELD if view == "explore" else f".columns .field.{label.split()[0].lower()}"
    painted(page, figure)
    models = page.get_by_label(label, exact=True)
    models.select_option(LINEAR)
    until(page, lambda: waiting)
    models.select_option(SMALL)
    shows(page, figure, field_of(sample(), SMALL))
    waiting[0].continue_()
    page.wait_for_function("key => globalThis.checkpoints[key]", arg=LINEAR)
    choose(page, "Class", "4")
    shows(page, figure, field_of(sample(4), SMALL))
    models.select_option(MLP)
    expect(page.locator("#notices p")).to_have_text([f"The file {MLP}.js could not be loaded."])
    choose(page, "Class", "5")
    painted(page, figure)
    page.unroute(f"**/{MLP}.js")
    models.select_option(LINEAR)
    models.select_option(MLP)
    expect(models).to_have_value(MLP)
    rests(page, f"{'model' if view == 'explore' else label.split()[0].lower()}={MLP}&class=5")
    page.close()
    assert errors == []


# Details


def test_one_density_its_numbers_weights_and_path(site):
    page = site("explore?more=density&density=3&class=2")
    x, model = as_input(sample(2)[None]), OF[MOVING].network()
    placed = densities(model, x)
    (t, u), (a, b) = placed.loc[2], placed.scale[2]
    expect(page.locator(".details .text p")).to_contain_text(
        f"Location: {t:.2f} columns and {u:.2f} rows. Scale: {a:.2f} columns and {b:.2f} rows"
    )
    expect(page.locator(".weights td:last-child")).to_have_text(
        [f"{weight:.2f}".replace("-", "−") for weight in placed.weights[:, 2]]
    )
    shows(page, ".details figure", density_field(model, x, 2)[0])
    path = page.locator(".details polyline").get_attribute("points")
    wanted = [densities(OF[MOVING].network(k), x).loc[2] for k in range(len(STEPS))]
    found = np.array(path.split(","), float).reshape(-1, 2)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)
    page.get_by_label("Density", exact=True).fill("10")
    page.get_by_label("Density", exact=True).press("Enter")
    shows(page, ".details figure", density_field(model, x, 9)[0])
    rests(page, "more=density&density=10&class=2")


def test_the_effect_of_each_pixel(site):
    page = site("explore?more=effect&for=3")
    gradient = input_gradient(OF[MOVING].model(), as_input(sample()[None]))[:, 0]
    figures = page.locator(".details figure")
    expect(figures).to_have_count(3)
    shows(page, ".details figure:nth-child(1)", field_of(sample()))
    shows(page, ".details figure:nth-child(2)", gradient[3])
    shows(page, ".details figure:nth-child(3)", np.sqrt((gradient**2).mean(0)))
    expect(figures.nth(1).locator(".heading")).to_contain_text("effect on 3")


def test_all_classes_are_means_over_test_images(site):
    page = site("explore?more=classes")
    for label in (0, 6):
        images = as_input(torch.stack([sample(label, 1 + k) for k in range(EXAMPLES)]))
        mean, _ = field_statistics(OF[MOVING].model(), images, 4)
        shows(page, f".details figure:nth-child({label + 1})", mean)
    expect(page.locator(".details figure")).to_have_count(10)


# Compare


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_four_models_side_by_side(site, kind):
    keys = dict(zip(("first", "second", "third", "fourth"), OF, strict=True))
    link = "&".join(f"{name}={key}" for name, key in keys.items())
    page = site(f"compare?models=4&{link}&class=3&field={kind}&by=epoch&epoch=20")
    sides = {}
    for name, key in keys.items():
        places = align_steps(OF[key], OF[key].steps, "epoch")
        index = int(np.searchsorted(places, 20, "right")) - 1
        count = OF[key].network().embedding.num_densities if kind == "mean" else 1
        sides[name] = field_of(sample(3), key, index) / count
        shows(page, f".columns .field.{name}", sides[name])
        row = view(OF[key], sample(3), [index]).probabilities[0]
        expect(page.locator(".columns .legend span").filter(has_text=f"{name}:")).to_have_text(
            f"{name}: {row.argmax()} ({100 * row.max():.1f} %)"
        )
        if name != "first":
            shows(page, f".columns .change.{name}", sides[name] - sides["first"], 2e-5)
    all_ends = [ends(page, f".columns .field.{name}") for name in keys]
    assert len(set(all_ends)) == 1
    choose(page, "Class", "8")
    shows(page, ".columns .field.first", field_of(sample(8), MOVING, index_at(MOVING, 20))
          / (OF[MOVING].network().embedding.num_densities if kind == "mean" else 1))  # fmt: skip


def index_at(key: str, place: float, unit: str = "epoch") -> int:
    return int(np.searchsorted(align_steps(OF[key], OF[key].steps, unit), place, "right")) - 1


def test_two_models_and_one_slider(site):
    page = site("compare?models=2")
    slider = page.get_by_label("Step of training")
    fields = {key: view(OF[key], sample()).fields for key in (MOVING, FIXED)}
    shows(page, ".columns .field.second", fields[FIXED][-1].sum(0))
    slider.press("ArrowLeft")
    slider.press("ArrowLeft")
    for name, key in (("first", MOVING), ("second", FIXED)):
        shows(page, f".columns .field.{name}", fields[key][-3].sum(0))
    change = fields[FIXED][-3].sum(0) - fields[MOVING][-3].sum(0)
    shows(page, ".columns .change.second", change, 2e-5)
    rests(page, f"step={STEPS[-3]}")
    choose(page, "Align runs by", "fraction")
    place = align_steps(OF[MOVING], STEPS, "fraction")[-3]
    expect(page.get_by_label("Fraction of the training")).to_be_visible()
    expect(page.locator(".columns .stage")).to_have_attribute("data-step", f"{place:g}")
    shows(page, ".columns .field.first", fields[MOVING][-3].sum(0))
    rests(page, f"by=fraction&fraction={place:g}")
    page.get_by_label("Second model").select_option(MOVING)  # the same: no difference
    shows(page, ".columns .change.second", np.zeros((112, 112)))
    expect(page.locator(".columns .change.second .facts dd")).to_have_text(
        "none: they are the same"
    )


def test_models_of_other_classes_and_sizes_are_named(site):
    page = site(f"compare?models=3&second={LETTERS}&third={COLOUR}")
    expect(page.get_by_text("The third model takes pictures of another size.")).to_be_visible()
    letters = Checkpoint.from_bytes(made("logistic-el-3", (1, 28, 28)))
    shows(page, ".columns .field.second", view(letters, sample()).fields[0].sum(0))
    expect(page.locator(".columns .field")).to_have_count(2)
    expect(page.locator(".columns .legend span")).to_have_count(1)  # other classes
    page.get_by_label("First model").select_option(COLOUR)  # whose pictures are the input then
    expect(page.get_by_text("The second model takes pictures of another size.")).to_be_visible()
    expect(page.locator(".columns .field")).to_have_count(2)
    expect(page.get_by_role("group", name="Input", exact=True)).to_be_hidden()
    page.get_by_label("First model").select_option(MOVING)
    shows(page, ".columns .field.first", field_of(sample()))
    rests(page, f"models=3&second={LETTERS}&third={COLOUR}")


# Files


@pytest.mark.parametrize("way", ["button", "drop"])
@pytest.mark.parametrize("start", ["explore?class=3", "compare?class=3"])
def test_a_checkpoint_of_ones_own(site, tmp_path, way, start):
    own = tmp_path / "my own.safetensors"
    own.write_bytes((PAPER / f"{SMALL}.safetensors").read_bytes())
    damaged = tmp_path / "bad.safetensors"
    damaged.write_bytes(own.read_bytes()[:-9])
    with pytest.raises(CheckpointError) as error:
        Checkpoint.from_bytes(damaged.read_bytes(), damaged.name)
    page = site(start)
    canvas = FIELD if start.startswith("explore") else ".columns .field.first"
    shows(page, canvas, field_of(sample(3)))
    bring(page, way, [damaged])
    expect(page.locator("#notices p")).to_have_text([str(error.value)])
    shows(page, canvas, field_of(sample(3)))
    bring(page, way, [own])
    shows(page, canvas, field_of(sample(3), SMALL))
    expect(page.locator("#notices")).to_be_hidden()
    label = "Model" if start.startswith("explore") else "First model"
    expect(page.get_by_label(label, exact=True)).to_have_value("file-my own")
    option = page.locator("select option", has_text="your file my own.safetensors")
    expect(option.first).to_be_attached()


def bring(page: Page, way: str, paths: list[Path]) -> None:
    if way == "button":
        page.get_by_label("Open a checkpoint").set_input_files(paths)
        return
    contents = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths]
    page.evaluate(
        """files => {
          const dataTransfer = new DataTransfer();
          for (const [name, content] of files)
            dataTransfer.items.add(new File(
              [Uint8Array.from(atob(content), letter => letter.charCodeAt(0))], name));
          document.body.dispatchEvent(
            new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        contents,
    )


def test_the_site_opens_from_the_disk(site, built):
    page = site("explore?class=3", at=f"{built.as_uri()}/")
    shows(page, FIELD, field_of(sample(3)))
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What differs between these models?")
    shows(page, ".columns .field.second", field_of(sample(), FIXED))
    page.get_by_role("link", name="Explore").click()
    page.get_by_label("Model", exact=True).select_option(LINEAR)
    shows(page, FIELD, field_of(sample(), LINEAR))


# Access

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
    ["explore?show=swipe&more=density", "explore?from=draw&show=overlay&more=effect",
     "explore?show=class&more=classes", f"explore?model={COLOUR}", "compare?models=4"],
)  # fmt: skip
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
    expect(plot).to_have_attribute("aria-label", re.compile(
        f"column 15.50, row 14.50.*{values[58, 62]:.4f} per pixel²"))  # fmt: skip
    plot.press("ArrowUp")
    expect(plot).to_have_attribute("aria-label", re.compile(
        f"column 15.50, row 13.50.*{values[54, 62]:.4f} per pixel²"))  # fmt: skip
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


@pytest.mark.parametrize("width", [320, 420, 1024])
def test_nothing_is_wider_than_the_screen(site, width):
    page = site(width=width, color_scheme="dark")
    for link in (
        "explore?show=densities&more=density", "explore?from=draw&show=overlay&more=effect",
        "explore?more=classes&to=3&between=0.5", "explore?more=about&class=Z",
        f"explore?model={COLOUR}", "compare?models=2", "compare?models=4&class=3",
    ):  # fmt: skip
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


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_figure_is_saved(site, kind):
    page = site("explore?show=overlay")
    shows(page, FIELD, field_of(sample()))
    page.locator(".pair .after").hover()
    with page.expect_download() as waiting:
        page.locator(".pair .after").get_by_role("button", name=kind).click()
    start = {"SVG": b"<svg", "PNG": b"\x89PNG"}[kind]
    assert waiting.value.path().read_bytes().startswith(start)
    name = f"densembed-after-training-epoch-{OF[MOVING].config.epochs}.{kind.lower()}"
    assert waiting.value.suggested_filename == name


def test_a_finger_draws_on_a_phone(site):
    page = site("explore?from=draw", 420, has_touch=True, is_mobile=True)
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
