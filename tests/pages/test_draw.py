"""Drawing, and pictures of one's own in links."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from densembed.data.codec import from_text, to_text
from densembed.data.images import read_picture
from densembed.fields.field import view
from tests.pages.conftest import column, headings, pills, settle, stage, visit, warnings


def draw(app, png: bytes | None):
    """What a stroke's end leaves in the session."""
    url = png and "data:image/png;base64," + base64.b64encode(png).decode()
    app.session_state["drawing"] = {"png": url, "strokes": [], "base": False}
    pills(app, "from").set_value("draw")  # AppTest forgets it, a browser does not
    return settle(app.run())


def shows(app, checkpoint, pixels, page: str = "explore") -> None:
    field = view(checkpoint, pixels).fields[-1].sum(0)
    drawn = column(app, "first") if page == "compare" else stage(app)["values"][-1]
    np.testing.assert_allclose(drawn, field, 1e-5, 5e-5)


def link_text(app) -> str:
    text = app.query_params["ink"]
    return text if isinstance(text, str) else text[0]


def test_an_empty_pad_has_no_ink_and_no_opinion(small_gallery, trained):
    """r4ghu/iOS-CoreML-MNIST#3: a class was predicted of nothing drawn."""
    app = visit(**{"from": "Draw"})
    assert "no digit" in headings(app)
    assert stage(app)["probabilities"] is None
    assert not app.warning
    assert "ink" not in app.query_params
    shows(app, trained, torch.zeros(1, 28, 28, dtype=torch.uint8))


@pytest.mark.parametrize("page", ["explore", "compare"])
def test_a_drawing_is_read_as_an_upload_is(small_gallery, trained, pictures, page):
    app = visit(page, **{"from": "Draw"})
    draw(app, pictures["digit"].read_bytes())
    pixels = read_picture(pictures["digit"]).pixels
    shows(app, trained, pixels, page)
    assert link_text(app) == to_text(pixels)
    draw(app, None)  # cleared
    assert "no digit" in headings(app)
    assert "ink" not in app.query_params


@pytest.mark.parametrize("pen", [16, 72])
def test_a_dot_stays_in_the_link(small_gallery, pen):
    """A click on the pad is no digit, but opening the page again does not lose it."""
    dot = Image.new("L", (280, 280), "white")
    ends = 140 - pen // 4, 140 + pen // 4
    ImageDraw.Draw(dot).ellipse((ends[0], ends[0], ends[1], ends[1]), fill="black")
    file = io.BytesIO()
    dot.save(file, "PNG")
    app = draw(visit(**{"from": "draw"}), file.getvalue())
    assert "no digit" in headings(app)
    link = link_text(app)
    pixels = from_text(link, (1, 28, 28))
    assert pixels[0, 13:15, 13:15].all()
    assert pixels.count_nonzero() < 40
    opened = visit(**{"from": "draw", "ink": link})
    assert "no digit" in headings(opened)
    assert stage(opened)["probabilities"] is None
    assert link_text(opened) == link


@pytest.mark.parametrize("url", ["data:image/png;base64,ü", "data:text/html,<b>", 7, "x" * 10**7])
def test_a_drawing_that_is_none_is_no_ink(small_gallery, url):
    app = visit(**{"from": "Draw"})
    app.session_state["drawing"] = {"png": url, "strokes": [], "base": False}
    pills(app, "from").set_value("draw")
    assert "no digit" in headings(settle(app.run()))


def test_a_drawing_that_is_no_picture_is_one_sentence(small_gallery, pictures):
    app = draw(visit(**{"from": "Draw"}), pictures["letter"].read_bytes())
    assert len(app.error) == 1


@pytest.mark.parametrize("way", ["draw", "upload"])
def test_a_link_brings_the_picture(small_gallery, trained, digits, pictures, way):
    pixels = digits.test.images[5]
    app = visit(**{"from": way, "ink": to_text(pixels)})
    shows(app, trained, pixels)
    assert link_text(app) == to_text(pixels)
    pills(app, "from").set_value(way)
    shows(settle(app.run()), trained, pixels)  # and it stays until another one takes its place
    if way == "draw":
        draw(app, pictures["digit"].read_bytes())
        shows(app, trained, read_picture(pictures["digit"]).pixels)
    pills(app, "from").set_value("samples").run()
    assert "ink" not in app.query_params


SMALL = to_text(torch.zeros(1, 8, 8, dtype=torch.uint8))


@pytest.mark.parametrize("text", ["x", "A" * 9999, "../../etc", SMALL])
def test_a_link_with_a_wrong_picture_says_so(small_gallery, text):
    app = visit(**{"from": "Draw", "ink": text})
    assert warnings(app)[0].startswith("The link sets “Picture” to “")
    assert "no digit" in headings(app)
