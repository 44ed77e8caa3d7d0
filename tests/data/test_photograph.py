"""A photograph is read in the open: frame, polarity, colours, and every digit in reading order."""

import base64

import numpy as np
import pytest
import torch
from PIL import Image

from densembed.data.content import Content, Polarity
from densembed.data.images import normalise_digit, read_picture
from densembed.data.photograph import read_photograph
from tests.data.test_images import drawn, encoded, noisy, on_transparency, photographed, saved

HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAVZtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAA"
    "AAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABegABAAAAAAAAAP8AAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABo"
    "dmMxAAAAAA5waXRtAAAAAAABAAAA1mlwcnAAAAC3aXBjbwAAAHhodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEA"
    "GEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQArQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbqSSmubgIaDAgAAAMAyAAA"
    "AwAIQGIAAQAHRAHBcrAiQAAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAAAAAAAABAAAAAQAAAABBwaXhpAAAAAAMI"
    "CAgAAAAXaXBtYQAAAAAAAAABAAEEgQIDBAAAAQdtZGF0AAAA+ygBrxmAoo+Q5sjxE/ajf1Yb/3pNDLnWgYcnhIyW3XOI"
    "bfxEpFrKyBaYfP7uuIgrIzNteN6dQh6fV6iBkzHtgyquJQsEm/LK5BfFbkWkZAk/P6qge0mhMrTi/sVjpC7/fRP7VkP5"
    "MEWpxOUyFpFV9HJ5nPSsDHlvTUg6mQZuDilpPrgaP4uatZBnppv/j613eBMktar7UJJHm1YMDrIbh7WQUjAZ3Id60POH"
    "/fKgBKAsaA5Q6EW6+8I54wL8SpI4f+YuHhpB75VgVpp05QdRG8uf0cH9s340bDFISADUMFPsyHWe7shZaOC5hEJAWVIE"
    "sL7HEP2we/VwFK6Q"
)
"""A 3 of scikit-learn's digits, 64 pixels wide, as a HEIC file."""


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other.double()).abs().sum() / other.double().sum())


def sheet(*rows: tuple[int, ...]) -> np.ndarray:
    return np.vstack([np.hstack([drawn(number) for number in row]) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [((2, 0, 2, 6),), ((2, 7), (0, 3)), ((3, 7, 8), (1, 4, 5))])
def test_every_digit_of_a_sheet_is_read_in_order_as_if_it_were_alone(rows):
    found = read_photograph(saved(noisy(photographed(sheet(*rows)), 0.01), "JPEG", quality=90))
    assert found.content == Content.SEVERAL_DIGITS
    assert found.clean
    expected = [number for row in rows for number in row]
    assert len(found.digits) == len(expected)
    for digit, number in zip(found.digits, expected, strict=True):
        alone = read_photograph(saved(1 - drawn(number))).digits[0]
        assert apart(digit.pixels, alone.pixels) < 0.2, number
        assert not digit.cut_off


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_every_digit_of_a_long_column_or_row_is_read(axis):
    """In a strip of 40 digits, each is small beside the longer side, and none was found."""
    page = np.pad(np.concatenate([drawn(number, 90) for number in range(40)], axis), 45)
    found = read_photograph(saved(1 - page)).digits
    assert len(found) == 40
    for number, digit in enumerate(found):
        start, end = (np.array(digit.box[axis ^ 1 :: 2]) * page.shape[axis] - 45) / 90
        assert number < start < end < number + 1
        alone = read_photograph(saved(1 - drawn(number))).digits[0]
        assert apart(digit.pixels, alone.pixels) < 0.25, number


def test_a_thin_ring_in_a_faint_shadow_is_a_digit_beside_others():
    """The shadow around a 0 hid its strokes, and the sheet was read without it."""
    y, x = np.mgrid[:300, :600]
    ink = np.zeros((300, 600))
    for centre in (150, 420):
        ink[np.abs(np.hypot((y - 150) / 1.2, x - centre) - 60) < 3.5] = 1
    shade = 1 - 0.09 * np.exp(-(((x - 330) / 70) ** 2) - ((y - 170) / 80) ** 2)
    page = noisy(0.72 * shade - 0.6 * ink, 0.004)
    assert len(read_photograph(saved(page)).digits) == 2


def test_boxes_are_where_the_digits_are():
    page = np.zeros((400, 600))
    page[40:200, 60:220] = drawn(4)
    page[210:370, 400:560] = drawn(5)
    for digit, (top, left) in zip(
        read_photograph(saved(1 - page)).digits, [(40, 60), (210, 400)], strict=True
    ):
        rows, columns = np.nonzero(page[top : top + 160, left : left + 160] > 0.5)
        expected = np.array(
            [columns.min() + left, rows.min() + top, columns.max() + left + 1, rows.max() + top + 1]
        )
        np.testing.assert_allclose(np.array(digit.box) * (600, 400, 600, 400), expected, atol=4)


def test_polarity_and_colours_are_those_of_the_picture():
    dark = read_photograph(saved(photographed(drawn(2))))
    assert dark.polarity == Polarity.DARK_ON_LIGHT
    np.testing.assert_allclose(dark.paper, (0.95, 0.93, 0.85), atol=0.02)
    np.testing.assert_allclose(dark.ink, (0.1, 0.1, 0.3), atol=0.05)
    assert read_photograph(saved(drawn(2))).polarity == Polarity.LIGHT_ON_DARK
    strokes = read_photograph(saved(on_transparency(drawn(2), 0.8)))
    assert strokes.polarity == Polarity.TRANSPARENT
    assert strokes.paper is None
    np.testing.assert_allclose(strokes.ink, 0.8, atol=0.02)


def test_a_frame_a_turn_and_a_polarity_that_are_asked_for():
    page = 1 - sheet((2, 6))
    right = read_photograph(saved(page), frame=(0.5, 0.0, 1.0, 1.0))
    assert [digit.box[0] > 0.5 for digit in right.digits] == [True]
    assert apart(right.digits[0].pixels, read_photograph(saved(page)).digits[1].pixels) < 0.05
    turned = read_photograph(saved(np.rot90(page)), quarter_turns=1)
    for one, other in zip(turned.digits, read_photograph(saved(page)).digits, strict=True):
        assert apart(one.pixels, other.pixels) < 0.05
    inverted = read_photograph(saved(1 - drawn(3)), light_on_dark=True)
    assert inverted.polarity == Polarity.LIGHT_ON_DARK
    with pytest.raises(ValueError, match="left < right"):
        read_photograph(saved(page), frame=(0.5, 0, 0.5, 1))


@pytest.mark.parametrize("number", [0, 3, 8])
def test_a_digit_that_is_cut_off_is_said_to_be(number):
    ink = drawn(number)
    columns = np.nonzero(ink.sum(0))[0]
    half = 1 - ink[:, : (columns.min() + columns.max()) // 2]
    assert read_photograph(saved(half)).digits[0].cut_off
    assert not read_photograph(saved(1 - ink)).digits[0].cut_off


def test_a_thin_pen_on_ruled_paper_is_a_page():
    ink = np.pad(drawn(3, 120), ((20, 100), (60, 120)))
    page = photographed(np.clip(ink, 0, 1))
    page[150:153] = (0.45, 0.6, 0.75)
    found = read_photograph(saved(noisy(page, 0.005)))
    assert found.content == Content.DIGIT
    assert found.clean


def test_heic_and_avif_are_read():
    alike = read_photograph(saved(1 - drawn(3, 64))).digits[0].pixels
    assert apart(read_photograph(HEIC).digits[0].pixels, alike) < 0.15
    grey = Image.fromarray(np.uint8(255 * (1 - drawn(3, 64)))).convert("RGB")
    assert apart(read_photograph(encoded(grey, "AVIF")).digits[0].pixels, alike) < 0.15


def test_a_photograph_of_a_phone_is_shrunk_and_not_refused():
    large = Image.fromarray(np.uint8(255 * (1 - drawn(3)))).resize((7000, 7000))
    found = read_photograph(encoded(large, "JPEG", quality=60))
    assert (
        apart(found.digits[0].pixels, read_photograph(saved(1 - drawn(3))).digits[0].pixels) < 0.2
    )


def test_the_first_digit_is_the_input_of_a_model():
    page = saved(1 - sheet((4, 9)))
    assert torch.equal(read_picture(page).pixels, read_photograph(page).digits[0].pixels)
    assert normalise_digit(drawn(4)).shape == (28, 28)
