"""Explore and Compare on models of signals: their curves, details and links are Python's."""

import csv
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, TimeoutError
from scipy.ndimage import gaussian_filter1d

from densembed.data import load_dataset
from densembed.fields.field import field, logits, pixel_field, view
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    mean_displacement,
    measure,
    weighted_field,
)
from densembed.runs import all_runs
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from tests.browser.conftest import (
    bring,
    choose,
    expect,
    numbers,
    places,
    press,
    serve,
    settle,
    shows,
    until,
    visitor,
)
from tests.browser.gallery import PAPER, SMALL, made
from tests.browser.test_train import start, stop
from tests.browser.views import ends

LENGTH, COUNT = 24, 60
BEFORE, AFTER, SIGNAL = ".pair .before", ".pair .after", ".left .stills figure"
NAMES = ("low", "high")


def table(path: Path, level: float = 100) -> None:
    """Bumps in the first or second half, on a level that is far from what a network takes."""
    random = np.random.default_rng(1)
    places = np.arange(LENGTH)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for k in range(COUNT):
            middle = random.uniform(3, 9) + 12 * (k % 2)
            bump = level + 30 * np.exp(-((places - middle) ** 2) / 8) + random.normal(0, 2, LENGTH)
            writer.writerow([*bump.round(3), NAMES[k % 2]])


def trained(config: RunConfig, path: Path) -> None:
    data = load_dataset(config.dataset)
    recorder = Recorder(config, data)
    for event in train(config, data):
        recorder.add(event)
    recorder.checkpoint("done").save(path)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A server with models of signals and one of images, and its folder."""
    folder = tmp_path_factory.mktemp("signals")
    gallery = folder / "gallery"
    gallery.mkdir()
    (folder / "data").mkdir()  # a file of a gallery names no data elsewhere
    table(folder / "data/bumps.csv")
    shutil.copy(PAPER / f"{SMALL}.safetensors", gallery)
    common = {"batch_size": 16, "learning_rate": 0.05, "device": "cpu", "epochs": 5}
    for key, model in (("bumps", "gaussian-el-mnn-6-3"), ("plain", "linear")):
        config = RunConfig(model=model, dataset=f"csv:{folder / 'data/bumps.csv'}", **common)
        trained(config, gallery / f"{key}.safetensors")
    table(folder / "data/more.csv", 130)
    trained(
        RunConfig(model="gaussian-el-mnn-4-2", dataset=f"csv:{folder / 'data/more.csv'}", **common),
        gallery / "other.safetensors",
    )
    trained(
        RunConfig(model="logistic-el-4", dataset="mnist1d", epochs=1, device="cpu"),
        gallery / "longer.safetensors",
    )
    with serve(folder, gallery=gallery) as address:
        yield address, folder


@pytest.fixture
def visit(browser, server):
    with visitor(browser, server[0]) as open_link:
        yield open_link


@pytest.fixture
def checkpoint(server) -> Checkpoint:
    return Checkpoint.open(server[1] / "gallery/bumps.safetensors")


@pytest.fixture
def tested(server):
    return load_dataset(f"csv:{server[1] / 'data/bumps.csv'}")


def measured(tested, name: str, example: int = 1) -> np.ndarray:
    """A test signal as it is in the table."""
    label = tested.classes.index(name)
    chosen = tested.test.images[tested.test.labels == label][example - 1, 0]
    return tested.scaling.measured(chosen.double().numpy())


def scaled(checkpoint, values: np.ndarray) -> torch.Tensor:
    header = checkpoint.header.scaling
    return torch.from_numpy((values - header.mean) / header.std).float()[None]


def field_of(checkpoint, x: torch.Tensor, index: int = -1) -> np.ndarray:
    return view(checkpoint, x, [index]).fields[0]


def rests(page: Page, **wanted: str) -> None:
    """Wait until the link of the page has these parameters."""
    until(
        page,
        lambda: (
            {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}.items()
            >= wanted.items()
        ),
    )


def line(page: Page, figure: str) -> np.ndarray:
    """The points of the curve of a figure, as shares of its plot's width and height."""
    paths = page.locator(f"{figure} .plot svg path[stroke-linejoin]")
    d = paths.last.get_attribute("d")
    box = page.locator(f"{figure} .plot svg").get_attribute("viewBox").split()
    points = np.array([pair.split() for pair in d[1:].split("L")], float)
    return points / np.array(box[2:], float)


def test_every_way_shows_the_numbers_of_python(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=high&example=2&for=high&tour=0")
    x = scaled(checkpoint, measured(tested, "high", 2))
    last = len(checkpoint.steps) - 1
    first, after = checkpoint.network(0), checkpoint.network()
    label = tested.classes.index("high")
    shows(page, SIGNAL, measured(tested, "high", 2)[None])
    shows(page, BEFORE, field_of(checkpoint, x, 0))
    shows(page, AFTER, field_of(checkpoint, x))
    # One scale, up to the largest value of all steps.
    top = max(float(field_of(checkpoint, x, k).max()) for k in range(last + 1))
    for figure in (BEFORE, AFTER):
        until(page, lambda figure=figure: np.allclose(ends(page, figure), (0, top), 0.006))
    # The curve itself.
    points, values = line(page, AFTER), field_of(checkpoint, x)[0]
    np.testing.assert_allclose(points[:, 0], (np.arange(4 * LENGTH) + 0.5) / 4 / LENGTH, 0, 1e-4)
    np.testing.assert_allclose(1 - points[:, 1], values / top, 0, 2e-3)

    choose(page, "Show", "difference")
    shows(page, AFTER, field_of(checkpoint, x) - field_of(checkpoint, x, 0))
    choose(page, "Show", "per sample")
    shows(page, BEFORE, pixel_field(first, x[None])[0])
    shows(page, AFTER, pixel_field(after, x[None])[0])
    steps = line(page, AFTER)
    assert len(steps) == 2 * LENGTH  # two points per sample: the beginning and the end of its step
    np.testing.assert_allclose(steps[::2, 0] * LENGTH, np.arange(LENGTH), 0, 1e-3)
    np.testing.assert_allclose(steps[::2, 1], steps[1::2, 1])

    choose(page, "Show", "weight for a class")
    for figure, model in ((BEFORE, first), (AFTER, after)):
        shows(page, figure, weighted_field(model, x[None], class_weights(model)[label]))
    low, high = ends(page, AFTER)
    assert low == -high
    choose(page, "Show", "swipe")
    half = np.arange(4 * LENGTH) < 2 * LENGTH
    shows(page, AFTER, np.where(half, field_of(checkpoint, x, 0), field_of(checkpoint, x)))
    choose(page, "Show", "over the input")
    shows(page, AFTER, field_of(checkpoint, x))
    expect(page.locator(f"{AFTER} .heading")).to_contain_text("after training")
    scores = logits(after, x[None])[0].softmax(0)
    name = tested.classes[int(scores.argmax())]
    expect(page.locator(".pair .opinion .heading small")).to_have_text(
        f"{name} ({100 * scores.max():.1f} %)"
    )


def test_densities_are_curves_and_one_opens_by_a_click(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=low&show=densities&tour=0")
    x = scaled(checkpoint, measured(tested, "low"))[None]
    for figure, index in ((BEFORE, 0), (AFTER, -1)):
        model = checkpoint.network(index)
        each = [density_field(model, x, k)[0] for k in range(6)]
        shows(page, figure, np.stack(each))
    placed = densities(checkpoint.network(), x)
    marks = page.locator(f"{AFTER} [data-number]")
    expect(marks).to_have_count(6)
    middles = [
        float(d.split()[0][1:]) for d in marks.evaluate_all("m => m.map(e => e.getAttribute('d'))")
    ]
    np.testing.assert_allclose(middles, placed.loc[:, 0], 1e-4, 1e-3)
    # One that no other covers.
    inside = [k for k in range(6) if 1 < placed.loc[k, 0] < LENGTH - 1]
    number = max(inside, key=lambda k: np.delete(abs(placed.loc[:, 0] - placed.loc[k, 0]), k).min())
    marks.nth(number).dispatch_event("click")
    rests(page, more="density", density=str(number + 1))
    shows(page, ".detail figure", density_field(checkpoint.network(), x, number))
    loc, scale = placed.loc[number, 0], placed.scale[number, 0]
    expect(page.locator(".detail .text p").first).to_contain_text(
        f"Location: {loc:.2f}. Scale: {scale:.2f}, in samples."
    )
    d = page.locator(".detail .path").get_attribute("d")
    path = np.array([pair.split() for pair in d[1:].split("L")], float)
    wanted = [
        densities(checkpoint.network(k), x).loc[number, 0] for k in range(len(checkpoint.steps))
    ]
    np.testing.assert_allclose(path[:, 0], wanted, 1e-4, 1e-3)
    assert (np.diff(path[:, 1]) > 0).all()


def test_steps_numbers_and_a_reload(visit, checkpoint, tested):
    step = checkpoint.steps[1]
    page = visit(f"/?model=bumps&class=high&step={step}&show=difference&size=1.25&tour=0")
    place = (np.arange(LENGTH) - (LENGTH - 1) / 2) / 1.25 + (LENGTH - 1) / 2
    stretched = np.interp(place, np.arange(LENGTH), measured(tested, "high"))
    x = scaled(checkpoint, stretched)

    def there() -> None:
        shows(page, SIGNAL, stretched[None])
        # A difference has the rounding of the fields, which are larger.
        shows(page, AFTER, field_of(checkpoint, x, 1) - field_of(checkpoint, x, 0), 1e-3)
        expect(page.locator(".pair .steps output")).to_have_text(f"step {step}")

    there()
    page.reload()
    there()
    rests(page, step=str(step), show="difference", size="1.25")
    now, before = (field(checkpoint.network(k), x[None]) for k in (1, 0))
    own = measure(now.values[0], before.values[0], now.x, now.y)
    moved = mean_displacement(*(densities(checkpoint.network(k), x[None]) for k in (0, 1)))
    expect(page.locator(".pair .numbers")).to_have_text(
        f"centre {own.centre[0]:.1f} · spread {own.spread:.1f} samples · "
        f"entropy {own.entropy:.1f} of {np.log2(LENGTH):.1f} bits · "
        f"90 % of the field in {own.area:.0f} of {LENGTH} samples · "
        f"densities have moved {moved:.1f} samples on average since the start"
    )
    page.get_by_label("Step of training").press("Home")
    shows(page, AFTER, field_of(checkpoint, x, 0))


def test_a_signal_is_moved_blurred_noisy_and_morphed(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=high&tour=0")
    own = measured(tested, "high")
    shows(page, SIGNAL, own[None])
    press(page, f"{SIGNAL} .plot", [(0.5, 0.5), (0.5 + 3 / LENGTH, 0.9)])
    page.mouse.up()
    moved = own[np.maximum(np.arange(LENGTH) - 3, 0)]  # the first value is repeated
    shows(page, SIGNAL, moved[None])
    shows(page, AFTER, field_of(checkpoint, scaled(checkpoint, moved)))
    rests(page, right="3")
    assert "down" not in page.url
    page.get_by_text("Move, stretch, morph").click()
    page.get_by_role("button", name="Reset", exact=True).click()
    shows(page, SIGNAL, own[None])
    page.get_by_label("Blur").fill("1")
    blurred = gaussian_filter1d(own, 1, mode="mirror", truncate=4)
    shows(page, SIGNAL, blurred[None])
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_label("Noise").fill("0.2")
    noise = torch.randn(LENGTH, generator=torch.Generator().manual_seed(0)).numpy()
    shows(page, SIGNAL, (own + 0.2 * own.std() * noise)[None])
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_label("Morph into").select_option("low")
    shows(page, SIGNAL, (own + measured(tested, "low"))[None] / 2)


def test_details(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=low&more=effect&for=low&tour=0")
    x = scaled(checkpoint, measured(tested, "low"))[None]
    gradient = input_gradient(checkpoint.network(), x)[:, 0]
    shows(page, ".detail figure:nth-child(1)", field_of(checkpoint, x[0]))
    shows(page, ".detail figure:nth-child(2)", gradient[[tested.classes.index("low")]])
    shows(page, ".detail figure:nth-child(3)", np.sqrt((gradient**2).mean(0))[None])
    choose(page, "More", "All classes")
    for label in range(2):
        images = tested.test.images[tested.test.labels == label][:20]
        mean, _ = field_statistics(checkpoint.network(), images, 4)
        shows(page, f".detail figure:nth-child({label + 1})", mean[None])
    choose(page, "More", "Export")
    page.get_by_role("button", name="Numbers, CSV").click(trial=True)
    with page.expect_download() as download:
        page.get_by_role("button", name="Numbers, CSV").click()
    saved = np.genfromtxt(download.value.path(), delimiter=",", names=True)
    np.testing.assert_allclose(saved["t"], (np.arange(4 * LENGTH) + 0.5) / 4)
    np.testing.assert_allclose(saved["before"], field_of(checkpoint, x[0], 0)[0], 1e-4, 1e-6)
    np.testing.assert_allclose(saved["after"], field_of(checkpoint, x[0])[0], 1e-4, 1e-6)
    with page.expect_download() as download:
        page.get_by_role("button", name="Input, CSV").click()
    np.testing.assert_allclose(
        np.loadtxt(download.value.path(), delimiter=","), measured(tested, "low"), 1e-5
    )


def test_a_curve_is_read_by_pointer_and_keyboard_and_saved(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=low&tour=0")
    values = field_of(checkpoint, scaled(checkpoint, measured(tested, "low")))
    shows(page, AFTER, values)
    plot = page.locator(f"{AFTER} .plot")
    expect(plot).to_have_attribute(
        "aria-label", re.compile("^Receptive field, a curve of the sum of the densities, after")
    )
    plot.focus()
    page.keyboard.press("ArrowRight")  # from the middle to the next sample
    sample = LENGTH // 2 + 1
    label = plot.get_attribute("aria-label")
    assert f"sample {sample}, " in label
    read = float(label.split(", ")[-1].split()[0])
    assert read == pytest.approx(values[0, 4 * sample + 2], 0.01)
    with page.expect_download() as download:
        page.locator(f"{AFTER} > .save").get_by_text("SVG").dispatch_event("click")
    root = ET.parse(download.value.path()).getroot()
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"0", "5", "20"} <= texts
    assert any("density per sample" in (text or "") for text in texts)


def test_the_page_has_what_a_signal_has(visit):
    page = visit("/?model=bumps&tour=0")
    expect(page.locator(f"{SIGNAL} canvas")).to_be_visible()
    for name in ("How it works, in five steps", "Why this answer?"):
        expect(page.get_by_role("button", name=name)).to_be_hidden()
    expect(page.get_by_text("Contours")).to_be_hidden()
    inputs = page.get_by_role("group", name="Input", exact=True).get_by_role("button")
    expect(inputs).to_have_text(["Test signals", "Numbers", "Draw"])
    expect(page.get_by_label("Turn clockwise")).to_have_count(0)
    expect(page.locator(".problems")).to_be_hidden()
    page.get_by_label("Model", exact=True).select_option("plain")  # without densities
    expect(page.locator(".pair .numbers")).not_to_contain_text("moved")
    expect(page.get_by_role("group", name="Show").get_by_role("button")).to_have_text(
        ["field", "over the input", "difference", "swipe", "weight for a class"]
    )
    page.get_by_label("Model", exact=True).select_option(SMALL)
    expect(page.locator(f"{SIGNAL} canvas")).to_have_js_property("height", 28)
    until(page, lambda: numbers(page, AFTER).shape == (112, 112))
    expect(page.get_by_role("button", name="How it works, in five steps")).to_be_visible()
    page.get_by_label("Model", exact=True).select_option("bumps")
    until(page, lambda: numbers(page, AFTER).shape == (1, 4 * LENGTH))


COLUMN = ".columns .field."
CHANGE = ".columns .change."


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_compare_shows_the_fields_of_each_model_on_one_scale(
    visit, server, checkpoint, tested, kind
):
    step = checkpoint.steps[2]
    link = "models=3&first=bumps&second=plain&third=bumps"
    page = visit(f"/compare?{link}&class=high&example=2&field={kind}&step={step}")
    plain = Checkpoint.open(server[1] / "gallery/plain.safetensors")
    measured_signal = measured(tested, "high", 2)

    def fields(index: int, values: np.ndarray) -> dict[str, np.ndarray]:
        x = scaled(checkpoint, values)
        own = field_of(checkpoint, x, index) / (6 if kind == "mean" else 1)
        even = np.full((1, 4 * LENGTH), 1 / LENGTH if kind == "mean" else 1.0)
        return {"first": own, "second": even, "third": own}

    def there(index: int, values: np.ndarray) -> None:
        shown = fields(index, values)
        shows(page, SIGNAL, values[None])
        for name, values_of in shown.items():
            shows(page, COLUMN + name, values_of)
        shows(page, f"{CHANGE}second", shown["second"] - shown["first"])
        shows(page, f"{CHANGE}third", np.zeros((1, 4 * LENGTH)))
        for name, model in (("first", checkpoint), ("second", plain)):
            scores = logits(model.network(index), scaled(model, values)[None])[0].softmax(0)
            best = tested.classes[int(scores.argmax())]
            expect(page.locator(".columns .legend span").filter(has_text=f"{name}:")).to_have_text(
                f"{name}: {best} ({100 * scores.max():.1f} %)"
            )

    there(2, measured_signal)
    # One scale, up to the largest value of the first and the last step of all models.
    x = scaled(checkpoint, measured_signal)
    share = 6 if kind == "mean" else 1
    top = max(float(field_of(checkpoint, x, k).max()) for k in (0, -1)) / share
    top = max(top, 1 / LENGTH if kind == "mean" else 1.0)
    for name in ("first", "second", "third"):
        until(page, lambda name=name: np.allclose(ends(page, COLUMN + name), (0, top), 0.006))
    low, high = ends(page, f"{CHANGE}second")
    assert low == -high
    points = line(page, f"{COLUMN}first")
    np.testing.assert_allclose(
        1 - points[:, 1], fields(2, measured_signal)["first"][0] / top, 0, 2e-3
    )
    # The input and all fields have one axis.
    boxes = places(page, f"{SIGNAL} .plot, .columns .plot")
    assert len(boxes) == 6
    assert len({(box["x"], box["width"]) for box in boxes}) == 1
    expect(page.locator(f"{COLUMN}first .plot")).to_have_attribute(
        "aria-label", re.compile("^Receptive field, a curve")
    )
    page.get_by_text("Move, stretch, morph").click()
    page.get_by_label("Blur").fill("1")
    blurred = gaussian_filter1d(measured_signal, 1, mode="mirror", truncate=4)
    there(2, blurred)
    page.get_by_label("Step of training").press("End")
    there(-1, blurred)
    rests(page, blur="1", field=kind)
    until(page, lambda: "step=" not in page.url)
    page.reload()
    there(-1, blurred)
    expect(page.locator(".problems")).to_be_hidden()


def test_compare_has_the_same_signal_for_models_of_other_scaling(visit, server, checkpoint):
    """Each model scales what was measured by its own training signals."""
    values = np.linspace(90, 140, LENGTH).round(1)
    page = visit("/compare?first=bumps&second=other&from=upload&field=sum")
    pasted(page, " ".join(map(str, values)))
    other = Checkpoint.open(server[1] / "gallery/other.safetensors")
    assert other.header.scaling != checkpoint.header.scaling
    for name, model in (("first", checkpoint), ("second", other)):
        shows(page, COLUMN + name, field_of(model, scaled(model, values)))
    until(page, lambda: "ink=" in page.url)
    choose(page, "Input", "Draw")
    press(page, f"{SIGNAL} .plot", [(2.5 / LENGTH, 0.25), (9.5 / LENGTH, 0.25)])
    page.mouse.up()
    until(page, lambda: np.ptp(numbers(page, SIGNAL)[0, 2:10]) == 0)
    drawn = numbers(page, SIGNAL)[0]
    shows(page, f"{COLUMN}second", field_of(other, scaled(other, drawn)))
    choose(page, "More", "Export")
    page.get_by_role("button", name="Numbers, CSV").click(trial=True)
    with page.expect_download() as download:
        page.get_by_role("button", name="Numbers, CSV").click()
    saved = np.genfromtxt(download.value.path(), delimiter=",", names=True)
    for name, model in (("first", checkpoint), ("second", other)):
        np.testing.assert_allclose(saved[name], field_of(model, scaled(model, drawn))[0], 1e-4)


def test_compare_names_models_of_other_inputs(visit, checkpoint, tested):
    """The first model sets what the input is."""
    page = visit(f"/compare?models=4&first=bumps&second={SMALL}&third=longer&fourth=plain")
    note = page.locator(".columns ~ .note")
    expect(note).to_have_text(
        "The second model takes pictures, not signals. "
        "The third model takes signals of another length."
    )
    expect(page.locator(".columns .field")).to_have_count(2)
    alerts = page.get_by_test_id("stAlert")
    expect(alerts.nth(0)).to_contain_text("The second model takes grey pictures of 28 × 28")
    expect(alerts.nth(1)).to_contain_text("The third model takes signals of 40 samples")
    page.get_by_label("First model").select_option(SMALL)
    expect(note).to_have_text("The third and fourth models take signals, not pictures.")
    until(page, lambda: numbers(page, f"{COLUMN}first").shape == (112, 112))
    expect(page.locator(".columns .stage")).not_to_have_class(re.compile("signals"))
    page.get_by_label("First model").select_option("bumps")
    expect(page.get_by_role("button", name="Numbers", exact=True)).to_be_visible()
    shows(page, f"{COLUMN}fourth", np.full((1, 4 * LENGTH), 1.0))


def test_details_of_compared_signals(visit, server, checkpoint, tested):
    page = visit("/compare?first=bumps&second=other&class=low&field=sum&open=classes")
    other = Checkpoint.open(server[1] / "gallery/other.safetensors")
    for part, model in enumerate((checkpoint, other), 1):
        for label in range(2):
            images = tested.scaled_by(model.header.scaling).test.images
            mean, _ = field_statistics(model.network(), images[tested.test.labels == label][:20], 4)
            shows(
                page, f".atlases .part:nth-child({part}) figure:nth-child({label + 1})", mean[None]
            )
    choose(page, "More", "Where they disagree")
    expect(page.get_by_test_id("stMarkdown").filter(has_text="McNemar")).to_contain_text(
        "12 test signals of bumps.csv"
    )
    choose(page, "More", "Models and settings")
    expect(page.locator(".facts table")).to_contain_text("48 signals")


def test_a_signal_goes_with_the_visitor_from_explore_to_compare(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=high&example=2&right=3&tour=0")
    own = measured(tested, "high", 2)
    moved = own[np.maximum(np.arange(LENGTH) - 3, 0)]
    shows(page, SIGNAL, moved[None])
    rests(page, right="3")
    box = settle(page).get_by_role("combobox", name="Compare with another model")
    # The options of the lists in the view have no place on the page while these are closed.
    options = page.get_by_test_id("stSelectboxVirtualDropdown").get_by_role("option")

    def compared():
        with suppress(TimeoutError):  # the list closes if the page's script runs meanwhile
            if not options.count():
                box.press("ArrowDown", timeout=2000)
            else:
                options.filter(has_text="Linear").click(timeout=2000)
        return "/compare" in page.url

    until(page, compared)
    shows(page, SIGNAL, moved[None])
    shows(page, f"{COLUMN}first", field_of(checkpoint, scaled(checkpoint, moved)) / 6)
    rests(page, first="bumps", second="plain", right="3")
    page.go_back()
    shows(page, AFTER, field_of(checkpoint, scaled(checkpoint, moved)))
    page.go_forward()
    shows(page, f"{COLUMN}first", field_of(checkpoint, scaled(checkpoint, moved)) / 6)
    expect(page.locator(".problems")).to_be_hidden()


def test_an_uploaded_model_of_signals(visit, server):
    page = visit("/?tour=0")
    mine = server[1] / "mine.safetensors"
    trained(RunConfig(model="logistic-el-4", dataset="mnist1d", epochs=1, device="cpu"), mine)
    bring(page, mine)
    until(page, lambda: numbers(page, AFTER).shape == (1, 160))
    checkpoint = Checkpoint.open(mine)
    data = load_dataset("mnist1d")
    expect(page.locator(".choices .note").first).to_contain_text("1,000 test signals")
    choose(page, "Class", "3")
    shows(page, SIGNAL, data.test.images[data.test.labels == 3][0].numpy())
    shows(page, AFTER, field_of(checkpoint, data.test.images[:1][0]))


def test_extreme_signals_of_a_stranger_have_finite_numbers(visit, tmp_path):
    """A tiny deviation made NaN of large values, and the view said "undefined (NaN %)"."""
    strange = Checkpoint.from_bytes(made("logistic-el-mnn-4-2", (1, 20)))
    scaling = strange.header.scaling.model_copy(update={"mean": 0.0, "std": 1e-30})
    header = strange.header.model_copy(update={"scaling": scaling})
    Checkpoint(header, strange.tensors).save(tmp_path / "strange.safetensors")
    page = visit("/?class=e&example=3&tour=0")
    bring(page, tmp_path / "strange.safetensors")
    until(page, lambda: numbers(page, AFTER).shape == (1, 80))
    # There are no test signals, so nothing is wrong with their class and number in the link.
    expect(page.locator(".problems")).to_have_text("No test signals for this model are available.")
    choose(page, "Input", "Numbers")
    values = np.array([1e30, -1e30] * 10)
    pasted(page, " ".join(map(str, values)))
    shows(page, SIGNAL, values[None])
    expect(page.locator(".pair .opinion .heading small")).to_have_text(re.compile(r"[a-e] \(\d"))
    assert np.isfinite(numbers(page, AFTER)).all()


def test_the_largest_numbers_stay_in_the_link(visit):
    page = visit("/?model=bumps&from=upload&tour=0")
    values = np.array([1e30, -1e30] * (LENGTH // 2))
    pasted(page, " ".join(map(str, values)))
    shows(page, SIGNAL, values[None])
    until(page, lambda: "ink=" in page.url)
    page.reload()
    shows(page, SIGNAL, values[None])


def pasted(page: Page, text: str) -> None:
    page.get_by_label("Numbers of a signal").fill(text)


def test_numbers_become_the_signal_and_stay_in_the_link(visit, checkpoint):
    page = visit("/?model=bumps&from=upload&tour=0")
    expect(page.locator(".pair .opinion .heading small")).to_have_text("none: no numbers yet")
    random = np.random.default_rng(5)
    values = (100 + 20 * random.random(LENGTH)).round(2)
    x = scaled(checkpoint, values)
    # A row, a column, and the first row of a table with headings, decimal commas and a class.
    german = "".join(f"{value:.2f}".replace(".", ",") + ";" for value in values)
    headings = ";".join(f"t{k}" for k in range(LENGTH)) + ";class\n"
    for text in (
        " ".join(map(str, values)),
        "\n".join(map(str, values)),
        f"{headings}{german}high\n{german.replace('1', '2')}low\n",
    ):
        pasted(page, "")
        pasted(page, text)
        shows(page, SIGNAL, values[None])
        shows(page, AFTER, field_of(checkpoint, x))
    expect(page.locator(".input-bar .note")).to_have_text("This is the first of 2 rows.")
    until(page, lambda: "ink=" in page.url)
    whole = page.url
    # Half as many are repeated, each for two samples.
    pasted(page, ", ".join(map(str, values[::2])))
    shows(page, SIGNAL, np.repeat(values[::2], 2)[None])
    expect(page.get_by_text(f"{LENGTH // 2} numbers, resampled to {LENGTH}.")).to_be_visible()
    pasted(page, "1 2 three 4")
    sentence = "Value 3, “three”, is not a number. The last signal is kept."
    expect(page.get_by_text(sentence)).to_be_visible()
    shows(page, SIGNAL, np.repeat(values[::2], 2)[None])
    until(page, lambda: page.url != whole)
    page.reload()
    shows(page, SIGNAL, np.repeat(values[::2], 2)[None])
    page.locator(".input-bar input[type=file]").set_input_files(
        {"name": "new.csv", "mimeType": "text/csv", "buffer": ",".join(map(str, values)).encode()}
    )
    shows(page, AFTER, field_of(checkpoint, x))
    page.locator(".input-bar input[type=file]").set_input_files(
        {"name": "empty.csv", "mimeType": "text/csv", "buffer": b"\n"}
    )
    note = page.locator(".input-bar .note")
    expect(note).to_have_text("The table is empty. The last signal is kept.")
    shows(page, AFTER, field_of(checkpoint, x))
    pasted(page, "")  # what is removed is no longer shown
    expect(page.locator(".pair .opinion .heading small")).to_have_text("none: no numbers yet")
    until(page, lambda: "ink=" not in page.url)


def test_a_signal_is_drawn_over_the_test_signal(visit, checkpoint, tested):
    page = visit("/?model=bumps&class=high&tour=0")
    own = measured(tested, "high")
    shows(page, SIGNAL, own[None])
    choose(page, "Input", "Draw")
    shows(page, SIGNAL, own[None])
    low, high = ends(page, SIGNAL)
    press(page, f"{SIGNAL} .plot", [(2.5 / LENGTH, 0.25), (9.5 / LENGTH, 0.25)])
    page.mouse.up()
    until(page, lambda: np.ptp(numbers(page, SIGNAL)[0, 2:10]) == 0)
    drawn = numbers(page, SIGNAL)[0]
    np.testing.assert_allclose(drawn[2:10], high - 0.25 * (high - low), 0, 0.02 * (high - low))
    np.testing.assert_allclose(np.delete(drawn, range(2, 10)), np.delete(own, range(2, 10)), 1e-6)
    shows(page, AFTER, field_of(checkpoint, scaled(checkpoint, drawn)))
    until(page, lambda: "ink=" in page.url)
    page.reload()
    shows(page, SIGNAL, drawn[None])
    page.get_by_role("button", name="Clear", exact=True).click()
    until(page, lambda: np.ptp(numbers(page, SIGNAL)) == 0)
    page.get_by_role("button", name="Test signal", exact=True).click()
    shows(page, SIGNAL, own[None])
    page.get_by_label("Model", exact=True).select_option(SMALL)
    until(page, lambda: numbers(page, AFTER).shape == (112, 112))
    # Compare begins with the first model of this gallery, which takes signals again.
    page.get_by_role("link", name="Compare").click()
    until(page, lambda: numbers(page, f"{COLUMN}first").shape == (1, 4 * LENGTH))
    expect(page.locator(".problems")).to_be_hidden()
    page.get_by_label("First model").select_option(SMALL)
    until(page, lambda: numbers(page, f"{COLUMN}first").shape == (112, 112))
    expect(page.locator(".problems")).to_be_hidden()


@pytest.mark.parametrize("start", ["?model=bumps&tour=0&more=export", "compare?open=export"])
def test_an_exported_page_works_without_a_server(
    visit, browser, checkpoint, tested, tmp_path, start
):
    both = "&first=bumps&second=other&field=sum" if start.startswith("compare") else ""
    page = visit(f"/{start}{both}&class=high&example=2&right=3")
    own = measured(tested, "high", 2)
    moved = own[np.maximum(np.arange(LENGTH) - 3, 0)]
    shows(page, SIGNAL, moved[None])
    page.get_by_role("button", name="Page, HTML").click(trial=True)
    with page.expect_download() as download:
        page.get_by_role("button", name="Page, HTML").click()
    download.value.save_as(tmp_path / "page.html")
    figure = f"{COLUMN}first" if both else AFTER
    context = browser.new_context(reduced_motion="reduce", offline=True)
    alone = context.new_page()
    faults: list[str] = []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.goto((tmp_path / "page.html").as_uri())
    shows(alone, SIGNAL, moved[None])
    shows(alone, figure, field_of(checkpoint, scaled(checkpoint, moved)))
    alone.get_by_text("Move, stretch, morph").click()
    alone.get_by_label("Blur").fill("1")
    blurred = gaussian_filter1d(moved, 1, mode="mirror", truncate=4)
    shows(alone, figure, field_of(checkpoint, scaled(checkpoint, blurred)))
    until(alone, lambda: "blur=1" in alone.url)
    alone.reload()
    shows(alone, SIGNAL, blurred[None])
    expect(alone.locator("#notices")).to_be_hidden()
    assert not faults
    context.close()


def test_the_field_of_a_training_is_seen_while_it_runs(visit, server):
    page = visit("/train?network=logistic-el-4")
    epochs = page.get_by_role("spinbutton", name="Epochs")
    usual = epochs.input_value()
    page.get_by_role("combobox", name="Data", exact=True).click()
    page.get_by_role("option", name="MNIST-1D").click()
    # Other data have another field with another default; for a moment, both are on the page.
    until(page, lambda: usual not in epochs.evaluate_all("all => all.map(({value}) => value)"))
    settle(page)
    start(page, 10_000)
    headings = page.locator(".st-key-run-fields .heading")
    expect(headings.last).to_have_text(re.compile(r"after [1-9][\d,]* steps"))
    expect(page.get_by_text(re.compile("training · step .* signals per second"))).to_be_visible()
    stop(page).click()
    expect(page.get_by_test_id("stAlert").filter(has_text="Stopped")).to_be_visible()
    (run,) = all_runs(server[1] / "runs")
    checkpoint = run.checkpoint()
    test = load_dataset("mnist1d").test
    signal = test.images[test.labels == 7][0]
    rounded = 5e-5  # values have 16 bits
    shows(page, ".st-key-the-input figure", signal.numpy(), rounded)
    for figure, index in (("first-child", 0), ("last-child", -1)):
        values = field_of(checkpoint, signal, index)
        shows(page, f".st-key-run-fields figure:{figure}", values, rounded)
    own = places(page, ".st-key-the-input .plot, .st-key-run-fields .plot")
    assert len({(box["x"], box["width"]) for box in own}) == 1
