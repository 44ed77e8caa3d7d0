"""The live panel of a notebook, in a frame as Jupyter displays it."""

import pytest

import densembed
from tests.browser.conftest import LONGEST, expect
from tests.browser.gallery import PAPER, sample

READER = "logistic-el-mnn-10-5"
"""The model that the app selects for drawings and photographs."""


@pytest.fixture
def cell(browser, tmp_path):
    """A cell's output, in its width in JupyterLab on a screen of 1440 pixels."""
    checkpoint = densembed.Checkpoint.open(PAPER / f"{READER}.safetensors")
    panel = densembed.show(checkpoint, sample(3))
    (tmp_path / "cell.html").write_text(f"<!doctype html>{panel._repr_html_()}", "utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_default_timeout(LONGEST)
    faults = []
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((tmp_path / "cell.html").as_uri())
    yield page
    page.close()
    assert not faults


def test_a_panel_shows_its_model_and_input(cell):
    frame = cell.frame_locator("iframe")
    expect(frame.locator(".pair")).to_contain_text("3 (")
    expect(frame.locator("h1")).to_have_text("What does this network look at?")
    facts = frame.locator(".choices .note")
    expect(facts).to_contain_text("6,510 parameters")
    expect(facts).not_to_contain_text("Selected")  # there is no other


def test_the_steps_are_in_sight(cell):
    play = cell.frame_locator("iframe").get_by_role("button", name="Play", exact=True)
    expect(play).to_be_visible()
    box, frame = play.bounding_box(), cell.locator("iframe").bounding_box()
    assert box["y"] + box["height"] < frame["y"] + frame["height"]
