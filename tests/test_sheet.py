"""Figures for print: as wide as they say, text that fits, the colours of the numbers."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from unicodedata import normalize

import numpy as np
import pytest
from PIL import Image, ImageFont

from densembed.fields import view
from densembed.sheet import DPI, WIDE, WIDTHS, _runs, sheet
from tests.test_pictures import expected

NAMES = ["before training", "after training"]
LONG = "Adaptive convolution and pooling, Logistic-EL with mNN, B = 8, B₀ = 4"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def shown(trained, digits):
    pixels = digits.test.images[2]
    return pixels, view(trained, pixels)


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_svg_has_words_and_cells(shown, columns):
    pixels, seen = shown
    root = ElementTree.fromstring(sheet(pixels.numpy(), seen, [0, -1], NAMES, LONG, "SVG", columns))
    assert root.get("width") == f"{WIDTHS[columns]:g}mm"
    assert root.get("viewBox").split()[2] == f"{WIDTHS[columns]:g}"
    texts = {text.text: text for text in root.iter(f"{SVG}text")}
    assert {"the input", *NAMES, LONG, "density per pixel²", f"{seen.top:.3g}"} <= set(texts)
    for words, text in texts.items():
        size = float(text.get("font-size"))
        assert size >= 5 / 72 * 25.4  # points
        half = WIDE * size * len(words) / 2
        assert float(text.get("x")) - half >= -0.1
        assert float(text.get("x")) + half <= WIDTHS[columns] + 0.1
    ink, before, after, bar = root.iter(f"{SVG}image")
    cells = [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("href").partition(",")[2]))))
        for image in (ink, before, after)
    ]
    np.testing.assert_array_equal(cells[0], pixels[0])
    for index, picture in ((0, cells[1]), (-1, cells[2])):
        for row, column in ((10, 10), (56, 60), (100, 30)):
            wanted = expected(seen.fields[index], seen.top, row, column)
            assert abs(picture[row, column] - wanted).max() <= 2
    assert float(bar.get("x")) == float(after.get("x"))


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_png_is_as_wide_in_print(shown, columns):
    pixels, seen = shown
    data = sheet(pixels.numpy(), seen, [0, -1], NAMES, "a", "PNG", columns)
    with Image.open(io.BytesIO(data)) as image:
        assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=0.1)
        assert image.width / DPI * 25.4 == pytest.approx(WIDTHS[columns], abs=0.1)
        page = np.asarray(image, int)
    dark = (page != 255).any((0, 2)).nonzero()[0]
    assert page.shape[1] * 0.01 < dark.min() < dark.max() < page.shape[1] * 0.99


def test_every_letter_is_in_the_font(shown):
    """The small digits of B₀ and pixel² came out as empty boxes."""
    font = ImageFont.load_default(20)
    none = bytes(font.getmask("\U0010fffd"))
    for text in (LONG, "density per pixel²", "after 1,234 steps"):
        runs = list(_runs(text))
        assert normalize("NFKD", text) == "".join(run for run, _, _ in runs)
        for run, share, _ in runs:
            assert share == 1 or run.isdecimal()
            assert all(bytes(font.getmask(letter)) != none for letter in run if letter != " ")


def test_a_pdf_is_as_wide_in_print(shown):
    pixels, seen = shown
    data = sheet(pixels.numpy(), seen, [0], NAMES[:1], "a", "PDF", "one column")
    assert data.startswith(b"%PDF-")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
    assert float(box[1]) * 25.4 / 72 == pytest.approx(85, abs=0.1)
