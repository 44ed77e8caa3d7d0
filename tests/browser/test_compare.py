"""Compare as a visitor sees it: values read back from the figures, clicks, files, a phone."""

import io

import numpy as np
import pytest
from playwright.sync_api import expect

from densembed.checkpoint import Checkpoint
from densembed.comparison import along, answers, confusion, disagreement
from densembed.data import load_dataset
from densembed.fields import field, view
from tests.browser.conftest import ROOT, chart, drawn, settle
from tests.browser.test_explore import DIGITS, top_of, width_needed

FIXED = DIGITS.with_name("logistic-el-15-digits.safetensors")
FIVE = DIGITS.with_name("logistic-el-5.safetensors")
LINEAR = DIGITS.with_name("linear.safetensors")
PAIR = f"first={DIGITS.stem}&second={FIXED.stem}"
FOUR = f"models=4&{PAIR}&third={FIVE.stem}&fourth={LINEAR.stem}"
TEST = load_dataset("digits").test
MORE = [
    "Model and recipe", "How they learned", "Where they disagree", "What they mistake",
    "All classes", "Take it away",
]  # fmt: skip


def sample(label: int = 7):
    return TEST.images[(TEST.labels == label).nonzero()[0, 0]]


def shown(page, key: str) -> np.ndarray:
    return np.array(drawn(page, key))


def bring(page, column: int) -> None:
    """Open the way to bring a file of the model in that column."""
    page.get_by_test_id("stPopoverButton").filter(visible=True).nth(column).click()


def close(actual, expected) -> None:
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-5)


def test_four_models_line_up_on_one_scale(visit):
    page = visit(f"/compare?{FOUR}&by=epoch&epoch=20.0")
    expect(page.get_by_text("fourth, after training")).to_be_visible()
    settle(page)
    scales = set()
    fields = {}
    paths = zip(("first", "second", "third", "fourth"), (DIGITS, FIXED, FIVE, LINEAR), strict=True)
    for name, path in paths:
        checkpoint = Checkpoint.open(path)
        index = np.searchsorted(along(checkpoint, checkpoint.steps, "epoch"), 20.0, "right") - 1
        x = sample()[None] / 255
        fields[name] = field(checkpoint.model(index), x).values[0].sum(0)
        close(shown(page, f"{name}-field"), fields[name])
        trace = "plot => [plot._fullData[0].zmin, plot._fullData[0].zmax]"
        scales.add(tuple(chart(page, f"{name}-field").evaluate(trace)))
        if name != "first":
            close(shown(page, f"{name}-change"), fields[name] - fields["first"])
    assert len(scales) == 1
    tops = [top_of(page, key) for key in ("picture", *(f"{name}-field" for name in fields))]
    assert max(tops) - min(tops) < 1
    for kind, names in (("field", list(fields)), ("change", list(fields)[1:])):
        for name in names:
            box = chart(page, f"{name}-{kind}").locator(".heatmaplayer image").bounding_box()
            assert box["width"] == pytest.approx(box["height"], abs=1)
    sides = [chart(page, f"{name}-{kind}") for kind in ("field", "change") for name in ["third"]]
    lefts = [side.bounding_box()["x"] for side in sides]
    assert lefts[0] == pytest.approx(lefts[1], abs=12)  # a difference stands under its field


def test_a_checkpoint_against_itself_is_exactly_zero(visit):
    """streamlit#11424: equal charts were a duplicate element."""
    page = visit(f"/compare?first={DIGITS.stem}&second={DIGITS.stem}")
    assert not shown(page, "second-change").any()


def test_one_slider_moves_every_field(visit):
    """tensorflow/playground#38, aim#3230, tensorboard#469: one step slider for all images."""
    one, two = Checkpoint.open(DIGITS), Checkpoint.open(FIXED)
    assert one.steps == two.steps
    before, step = one.steps[8:10]
    page = visit(f"/compare?{PAIR}&step={step}")
    expect(page.get_by_text(f"after {step} steps")).to_have_count(2)
    thumb = page.get_by_role("slider")
    thumb.focus()
    thumb.press("ArrowLeft")
    expect(page.get_by_text(f"after {before} steps")).to_have_count(2)
    settle(page)
    for name, checkpoint in (("first", one), ("second", two)):
        close(shown(page, f"{name}-field"), view(checkpoint, sample()).fields[8].sum(0))
    page.reload()
    expect(page.get_by_text(f"after {before} steps")).to_have_count(2)  # it is in the link
    page.get_by_text("fraction", exact=True).click()
    expect(page.get_by_text("Fraction of the training")).to_be_visible()
    assert "by=fraction" in settle(page).url
    assert "step=" not in page.url


def test_a_thumbnail_becomes_the_input(visit):
    page = visit(f"/compare?{PAIR}&open=Where they disagree")
    said = [answers(Checkpoint.open(path), TEST.images) for path in (DIGITS, FIXED)]
    found = disagreement(*said, TEST.labels.numpy())
    index = int(found.first_only[0])
    thumbnail = page.locator(f".st-key-open-{index} button img").filter(visible=True)
    expect(thumbnail).to_be_visible()
    assert thumbnail.bounding_box()["width"] == 64
    thumbnail.click()
    place = (TEST.labels == TEST.labels[index]).nonzero()[:, 0].tolist().index(index) + 1
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value(str(place))
    np.testing.assert_allclose(
        shown(settle(page), "picture"), TEST.images[index, 0] / 255, atol=1e-6
    )
    close(
        shown(page, "second-field"), view(Checkpoint.open(FIXED), TEST.images[index]).fields[-1][0]
    )


def test_confusion_matrices_are_counts(visit):
    page = visit(f"/compare?{PAIR}&open=What they mistake")
    off = ~np.eye(10, dtype=bool)
    counts = []
    for name, path in (("first", DIGITS), ("second", FIXED)):
        said = answers(Checkpoint.open(path), TEST.images)
        counts.append(confusion(said, TEST.labels.numpy(), 10))
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
    expect(page.get_by_text("kept for this session: a link")).to_be_visible()
    page.keyboard.press("Escape")
    name = "Receptive field of the second model, Logistic-EL, B = 5, after training"
    expect(page.get_by_role("figure", name=name)).to_be_visible()
    expected = view(Checkpoint.open(FIVE), sample()).fields[-1].sum(0)
    close(shown(settle(page), "second-field"), expected)
    address = page.url
    assert "second=upload-" in address
    page.get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    expect(page.get_by_text("kept for this session: a link")).to_be_visible()
    settle(page).get_by_text("Take it away", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Model", exact=True).click()
    assert waiting.value.path().read_bytes() == FIVE.read_bytes()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Numbers, NPZ").click()
    with np.load(waiting.value.path()) as numbers:  # what Explore shows of it
        close(numbers["after"][0], expected)
    elsewhere = visit(address[address.index("/compare") :])
    expect(elsewhere.get_by_text("kept for their session alone")).to_be_visible()
    drawn(elsewhere, "second-field")


def test_what_is_taken_away_is_what_is_shown(visit):
    step = Checkpoint.open(DIGITS).steps[5]
    page = visit(f"/compare?{PAIR}&open=Take it away&step={step}")

    def file(label: str) -> bytes:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label).click()
        return waiting.value.path().read_bytes()

    with np.load(io.BytesIO(file("Numbers, NPZ"))) as numbers:
        for name in ("first", "second"):
            close(shown(page, f"{name}-field"), numbers[f"field_{name}"].sum(0))
            assert numbers[f"step_{name}"] == step
    assert file("Numbers, CSV").startswith(b"column,row,first,second\n")
    assert file("Recipes, CSV").decode().splitlines()[0].startswith(",first,second")
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
    drawn(page, "fourth-field")
    settle(page)
    assert width_needed(page) <= 420


def test_a_phone_has_two_pictures_in_a_row(visit):
    page = visit(f"/compare?{PAIR}", width=420)
    boxes = []
    for key in ("picture", "first-field", "second-field", "second-change"):
        drawn(page, key)
        box = chart(page, key).locator(".heatmaplayer image").bounding_box()
        assert box["width"] == pytest.approx(box["height"], abs=1)
        assert box["width"] > 140
        boxes.append(box)
    tops = [box["y"] for box in boxes]
    assert tops[0] == pytest.approx(tops[1], abs=1)
    assert tops[2] == pytest.approx(tops[3], abs=1)
    assert tops[0] < tops[2]
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") < 2300
