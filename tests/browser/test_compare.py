"""Compare as a visitor sees it: values read back from the figures, clicks, files, a phone."""

import io
import re

import numpy as np
import pytest

from densembed.data import load_dataset
from densembed.fields.agreement import align_steps, confusion_matrix, disagreement, predict
from densembed.fields.field import view
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import (
    ROOT,
    chart,
    drawn,
    expect,
    painted,
    places,
    point,
    settle,
    stage_at,
)
from tests.browser.test_explore import DIGITS, width_needed
from tests.figures.test_export import figures_of, values

FIXED = DIGITS.with_name("logistic-el-15-digits.safetensors")
FIVE = DIGITS.with_name("logistic-el-5.safetensors")
LINEAR = DIGITS.with_name("linear.safetensors")
PAIR = f"first={DIGITS.stem}&second={FIXED.stem}"
FOUR = f"models=4&{PAIR}&third={FIVE.stem}&fourth={LINEAR.stem}"
TEST = load_dataset("digits").test
MORE = [
    "Models and settings", "Training curves", "Where they disagree", "Confusion matrices",
    "All classes", "Export",
]  # fmt: skip


def sample(label: int = 7):
    return TEST.images[(TEST.labels == label).nonzero()[0, 0]]


def shown(page, panel: str) -> np.ndarray:
    return painted(page, panel, "columns")


def fields_are(page, sides: dict, pixels) -> None:
    """Each panel shows the field of its side, a checkpoint's snapshot, and the differences.

    They travel as 16 bits: each is off by at most half a 65535th of its range.
    """
    start = None
    for name, (checkpoint, index) in sides.items():
        every = [values.sum(0) for values in view(checkpoint, pixels).fields]
        within = np.ptp(every) / 131000 + 1e-6
        now = shown(page, f"field.{name}")
        np.testing.assert_allclose(now, every[index], 0, within)
        if start is None:
            start, start_within = every[index], within
        else:
            change = shown(page, f"change.{name}")
            np.testing.assert_allclose(change, every[index] - start, 0, within + start_within)


def slide(page, key: str) -> None:
    page.get_by_role("slider", name="of training").or_(
        page.get_by_role("slider", name="of the training")
    ).press(key)


def bring(page, column: int) -> None:
    """Open the way to bring a file of the model in that column."""
    page.get_by_test_id("stPopoverButton").filter(visible=True).nth(column).click()


def close(actual, expected) -> None:
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-5)


def test_four_models_line_up_while_the_slider_moves(visit):
    page = visit(f"/compare?{FOUR}&by=epoch&epoch=20.0")
    stage_at(page, 20, "columns")
    paths = zip(("first", "second", "third", "fourth"), (DIGITS, FIXED, FIVE, LINEAR), strict=True)
    of = {name: Checkpoint.open(path) for name, path in paths}
    along_of = {name: align_steps(each, each.steps, "epoch") for name, each in of.items()}
    stops = sorted({place for own in along_of.values() for place in own})
    panels = ".st-key-columns :is(.figure, .opinion, .steps), .st-key-open, .st-key-the-input"
    for name in of:
        shown(page, f"field.{name}")
    page.get_by_role("slider", name="Epoch of training").focus()  # and the page scrolls there
    before = places(page, panels)
    assert len(before) == 11
    at = stops.index(20.0)
    for key, move in ((None, 0), ("ArrowLeft", -1), ("ArrowLeft", -1), ("PageDown", None)):
        if key:
            slide(page, key)
        if move is None:
            at = stops.index(page.locator(".st-key-columns .stage").evaluate(
                "root => root.stage.data.steps[root.stage.index]"
            ))  # fmt: skip
        else:
            at += move
        stage_at(page, stops[at], "columns")
        now = {
            name: (each, int(np.searchsorted(along_of[name], stops[at], "right")) - 1)
            for name, each in of.items()
        }
        fields_are(page, now, sample())
        said = page.locator(".st-key-columns .legend span")
        for k, (name, (each, index)) in enumerate(now.items()):
            row = view(each, sample()).probabilities[index]
            words = f"{name}: {row.argmax()} ({100 * row.max():.1f} %)"
            expect(said.nth(k)).to_have_text(words)
    page.wait_for_url(f"**epoch={stops[at]:g}*")
    assert places(page, panels) == before  # nothing jumps, not even when the server has answered
    ends = [
        page.locator(f".st-key-columns .field.{name} .ticks").inner_text().split() for name in of
    ]
    assert all(end == ends[0] for end in ends)
    boxes = [
        places(page, f".st-key-columns .{kind}.{name} canvas")[0]
        for kind, names in (("field", list(of)), ("change", list(of)[1:]))
        for name in names
    ]
    assert all(box["width"] == pytest.approx(box["height"], abs=1) for box in boxes)
    tops = [box["y"] for box in boxes]
    assert max(tops[:4]) - min(tops[:4]) < 1
    assert max(tops[4:]) - min(tops[4:]) < 1
    (picture,) = places(page, ".st-key-the-input canvas")
    assert picture["y"] == pytest.approx(tops[0], abs=2)
    for field, change in zip(boxes[1:4], boxes[4:], strict=True):  # a difference is under its field
        assert field["x"] == pytest.approx(change["x"], abs=1)


def test_a_checkpoint_against_itself_is_exactly_zero_at_every_step(visit):
    """streamlit#11424: equal charts were a duplicate element."""
    page = visit(f"/compare?first={DIGITS.stem}&second={DIGITS.stem}&models=3&third={FIXED.stem}")
    assert shown(page, "change.third").any()
    for _ in Checkpoint.open(DIGITS).steps:
        assert not shown(page, "change.second").any()
        slide(page, "ArrowLeft")
    stage_at(page, 0, "columns")
    expect(page.get_by_text("The second model is the same as the first")).to_be_visible()


def test_one_slider_moves_every_field_and_no_field_is_sent_again(visit):
    """tensorflow/playground#38, aim#3230, tensorboard#469: one step slider for all images."""
    one, two = Checkpoint.open(DIGITS), Checkpoint.open(FIXED)
    assert one.steps == two.steps
    page = visit(f"/compare?{PAIR}&step={one.steps[9]}")
    stage_at(page, one.steps[9], "columns")
    fields_are(page, {"first": (one, 9), "second": (two, 9)}, sample())
    settle(page)
    received = []
    wire = page.context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on(
        "Network.webSocketFrameReceived",
        lambda frame: received.append(len(frame["response"]["payloadData"])),
    )
    slide(page, "ArrowLeft")
    stage_at(page, one.steps[8], "columns")
    fields_are(page, {"first": (one, 8), "second": (two, 8)}, sample())
    page.wait_for_url(f"**step={one.steps[8]}*")
    places(page, ".st-key-columns canvas")
    stage_at(page, one.steps[8], "columns")
    assert 0 < sum(received) < 100_000
    page.get_by_text("Models and settings", exact=True).click()
    expect(page.locator(".facts table")).to_be_visible()
    slide(page, "ArrowRight")
    page.wait_for_url(f"**step={one.steps[9]}*")
    places(page, ".st-key-columns canvas")
    stage_at(page, one.steps[9], "columns")
    slide(page, "ArrowLeft")
    page.wait_for_url(f"**step={one.steps[8]}*")
    settle(page).reload()
    stage_at(page, one.steps[8], "columns")  # it is in the link
    fields_are(page, {"first": (one, 8), "second": (two, 8)}, sample())
    page.get_by_text("fraction", exact=True).click()
    expect(page.get_by_role("slider", name="Fraction of the training")).to_be_visible()
    stage_at(page, align_steps(one, one.steps, "fraction")[8], "columns")  # the same moment
    page.wait_for_url(lambda url: "by=fraction" in url and "step=" not in url)


def test_a_warning_that_goes_leaves_the_slider_where_it_is(visit):
    steps = Checkpoint.open(DIGITS).steps
    page = visit(f"/compare?{PAIR}&class=Z")
    expect(page.get_by_text("sets “Class” to “Z”")).to_be_visible()
    shown(page, "field.first")
    slide(page, "Home")
    slide(page, "ArrowRight")
    page.wait_for_url(f"**step={steps[1]}*")
    expect(page.get_by_text("sets “Class” to “Z”")).to_be_hidden()
    stage_at(settle(page), steps[1], "columns")
    slide(page, "ArrowRight")
    stage_at(page, steps[2], "columns")


@pytest.mark.parametrize(("motion", "frame"), [("reduce", 350), ("no-preference", 70)])
def test_play_ends_at_the_end_and_is_calm_for_who_asks(visit, motion, frame):
    page = visit(f"/compare?{PAIR}")
    page.emulate_media(reduced_motion=motion)
    steps = Checkpoint.open(DIGITS).steps
    shown(page, "field.first")
    page.locator(".st-key-columns .stage").evaluate(
        """root => {
          root.seen = [];
          const moment = () => document.timeline.currentTime;  // of the frame, however late it is
          new MutationObserver(() => root.seen.push([root.dataset.step, moment()]))
            .observe(root, { attributeFilter: ["data-step"] });
        }"""
    )
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    seen = page.locator(".st-key-columns .stage").evaluate("root => root.seen")
    shown_steps = [int(step) for step, _ in seen]
    assert shown_steps == sorted(shown_steps)
    assert (shown_steps[0], shown_steps[-1]) == (steps[0], steps[-1])
    assert set(shown_steps) <= set(steps)
    # Each step is shown in the frames that are its own; a busy machine skips some.
    places = [(steps.index(int(step)), moment) for step, moment in seen[1:]]
    begun = min(moment - frame * place for place, moment in places)
    assert begun >= seen[0][1] - 1
    assert all(moment - begun <= frame * (place + 1) + 1 for place, moment in places[:-1])


def test_hover_and_arrow_keys_tell_the_value(visit):
    page = visit(f"/compare?{PAIR}")
    change = shown(page, "change.second")
    plot = page.locator(".st-key-columns .change.second .plot")
    point(page, ".st-key-columns .change.second .plot", 3.1 / 28, 20.2 / 28)
    value = f"{change[80, 12]:+.4f} per pixel²".replace("-", "−")
    expect(page.locator(".st-key-columns .change.second .tip")).to_contain_text(value)
    page.mouse.move(0, 0)
    name = "Difference of two receptive fields, second − first, red: more in the second"
    expect(plot).to_have_attribute("aria-label", name)
    plot.press("ArrowRight")
    expect(plot).to_have_attribute("aria-label", re.compile("column 15.50, row 14.50"))
    slider = page.get_by_role("slider", name="Step of training")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^step .*; first: .*; second: "))
    plots = page.locator(".st-key-columns .plot")
    assert all(plots.nth(k).get_attribute("aria-label") for k in range(plots.count()))


@pytest.mark.parametrize("width", [1440, 420])
def test_what_is_hidden_is_not_there(visit, width):
    page = visit(f"/compare?{PAIR}&hide=sidebar,predictions,differences,more", width=width)
    shown(page, "field.second")
    for part in (".st-key-choices", ".st-key-open", ".st-key-copy-link"):
        expect(page.locator(part).first).to_be_hidden()
    for part in (".opinion", ".change"):
        expect(page.locator(f".st-key-columns {part}")).to_be_hidden()
    expect(page.get_by_role("slider", name="Step of training")).to_be_visible()


def test_a_thumbnail_becomes_the_input(visit):
    page = visit(f"/compare?{PAIR}&open=Where they disagree")
    said = [predict(Checkpoint.open(path), TEST.images) for path in (DIGITS, FIXED)]
    found = disagreement(*said, TEST.labels.numpy())
    index = int(found.first_only[0])
    thumbnail = page.locator(f".st-key-open-{index} button img").filter(visible=True)
    expect(thumbnail).to_be_visible()
    expect(thumbnail).to_have_js_property("offsetWidth", 64)
    thumbnail.click()
    place = (TEST.labels == TEST.labels[index]).nonzero()[:, 0].tolist().index(index) + 1
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value(str(place))
    np.testing.assert_allclose(
        painted(settle(page), "figure", "the-input"), TEST.images[index, 0] / 255, atol=1e-5
    )
    sides = {"first": (Checkpoint.open(DIGITS), -1), "second": (Checkpoint.open(FIXED), -1)}
    fields_are(page, sides, TEST.images[index])


def test_confusion_matrices_are_counts(visit):
    page = visit(f"/compare?{PAIR}&open=What they mistake")
    off = ~np.eye(10, dtype=bool)
    counts = []
    for name, path in (("first", DIGITS), ("second", FIXED)):
        said = predict(Checkpoint.open(path), TEST.images)
        counts.append(confusion_matrix(said, TEST.labels.numpy(), 10))
        plot = chart(page, f"{name}-confusion")
        expect(plot.locator(".heatmaplayer image")).to_be_visible()
        text = np.array(plot.evaluate("plot => plot._fullData[0].text.map(r => Array.from(r))"))
        assert np.array_equal(np.where(text == "", "0", text).astype(int), counts[-1])
    change = np.array(drawn(page, "second-confusion-change"), dtype=float)
    assert np.array_equal(change[off], (counts[1] - counts[0])[off])


def test_an_upload_is_compared_explored_and_gone_elsewhere(visit):
    page = visit(f"/compare?{PAIR}")
    bring(page, 1)
    page.locator("input[type=file]").set_input_files(FIVE)
    expect(page.get_by_text("deleted when this session ends")).to_be_visible()
    page.keyboard.press("Escape")
    name = "Receptive field, a heatmap of the densities, Logistic-EL, B = 5, second, after training"
    expect(page.get_by_role("img", name=name)).to_be_visible()
    sides = {"first": (Checkpoint.open(DIGITS), -1), "second": (Checkpoint.open(FIVE), -1)}
    fields_are(settle(page), sides, sample())
    expected = view(Checkpoint.open(FIVE), sample()).fields[-1].sum(0)
    page.wait_for_url("**second=upload-*")
    address = page.url
    page.get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    expect(page.get_by_text("deleted when this session ends")).to_be_visible()
    settle(page).get_by_text("Export", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Model", exact=True).click()
    assert waiting.value.path().read_bytes() == FIVE.read_bytes()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Numbers, NPZ").click()
    with np.load(waiting.value.path()) as numbers:  # what Explore shows of it
        close(numbers["after"][0], expected)
    elsewhere = visit(address[address.index("/compare") :])
    expect(elsewhere.get_by_text("deleted when its session ended")).to_be_visible()
    shown(elsewhere, "field.second")


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_what_is_taken_away_is_what_is_shown(visit, kind):
    step = Checkpoint.open(DIGITS).steps[5]
    page = visit(f"/compare?{PAIR}&open=Take it away&step={step}&field={kind}")

    def file(label: str) -> bytes:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).click()
        return waiting.value.path().read_bytes()

    with np.load(io.BytesIO(file("Numbers, NPZ"))) as archive:
        numbers = dict(archive)
        for name in ("first", "second"):
            field = numbers[f"field_{name}"].sum(0)
            np.testing.assert_allclose(shown(page, f"field.{name}"), field, 0, 1e-4)
            assert numbers[f"step_{name}"] == step
    assert file("Numbers, CSV").startswith(b"column,row,first,second\n")
    data = [trace for trace, *_ in figures_of(file("Figure, HTML").decode())]
    change = numbers["field_second"] - numbers["field_first"]
    np.testing.assert_allclose(values(data[3]), change.sum(0), 1e-5, 1e-6)
    printed = file("Figure, SVG").decode()
    assert "second − first" in printed
    assert ("mean density" in printed) == (kind == "mean")
    assert f"after {step:,} steps" in printed
    assert file("Figure, PDF").startswith(b"%PDF-")
    assert file("Settings, CSV").decode().splitlines()[0].startswith(",first,second")
    assert file("Second model") == FIXED.read_bytes()


def test_a_file_that_is_no_checkpoint(visit, pictures):
    page = visit("/")
    bring(page, 0)
    with open(ROOT / "README.md", "rb") as file:
        letter = {"name": "a.safetensors", "mimeType": "", "buffer": file.read()}
    page.locator("input[type=file]").set_input_files(letter)
    expect(page.get_by_text("is not a densembed checkpoint")).to_be_visible()


@pytest.mark.parametrize("more", MORE)
def test_phone_scrolls_one_way(visit, more):
    page = visit(f"/compare?{FOUR}&open={more}", width=420, theme="dark")
    shown(page, "field.fourth")
    settle(page)
    assert width_needed(page) <= 420


@pytest.mark.parametrize(("link", "count"), [(PAIR, 2), (FOUR, 4)])
def test_a_phone_has_two_pictures_in_a_row(visit, link, count):
    page = visit(f"/compare?{link}", width=420)
    names = ("first", "second", "third", "fourth")[:count]
    panels = [f"field.{name}" for name in names] + [f"change.{name}" for name in names[1:]]
    for panel in panels:
        shown(page, panel)
    selectors = ", ".join(f".st-key-columns .{panel} canvas" for panel in panels)
    boxes = places(page, selectors)
    assert all(box["width"] == pytest.approx(box["height"], abs=1) for box in boxes)
    assert all(box["width"] > 140 for box in boxes)
    tops = [box["y"] for box in boxes]
    assert tops[:count:2] == pytest.approx(tops[1:count:2], abs=1)
    (slider,) = places(page, ".st-key-columns .steps")
    assert max(tops[:count]) < slider["y"] < min(tops[count:])
    if count == 2:
        tall = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        assert tall < 2300
