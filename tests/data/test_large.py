"""Pictures of many pixels: read as their small copies are, within a bound of memory."""

import io

import numpy as np
import pytest
from PIL import Image

from densembed.data.decode import ENOUGH_PIXELS, decode
from tests.stress.picture import KINDS, cost

MEGABYTES = 300
"""Before the reduction while decoding it was more than 800."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("PNG", "JPEG", "WebP")])
def test_a_large_picture_takes_little_memory(kind):
    _, megabytes = cost(kind)
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_large_picture_is_reduced_and_turned_the_right_way_up(form):
    """A dark half at the top, which the file's orientation 6 turns to the right."""
    page = np.full((2000, 3000), 255, np.uint8)
    page[:1000] = 0
    image = Image.fromarray(page)
    exif = image.getexif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, form, exif=exif)
    found = decode(file.getvalue())
    assert found.shape == (1500, 1000, 4)
    assert found.shape[0] * found.shape[1] <= ENOUGH_PIXELS
    np.testing.assert_allclose(found[:, 510:, :3], 0, atol=0.02)
    np.testing.assert_allclose(found[:, :490, :3], 1, atol=0.02)


def test_a_picture_of_ordinary_size_is_decoded_pixel_by_pixel():
    page = np.random.default_rng(0).integers(0, 256, (1500, 2000), np.uint8)
    file = io.BytesIO()
    Image.fromarray(page).save(file, "PNG")
    np.testing.assert_array_equal(decode(file.getvalue())[..., 0], page.astype(np.float32) / 255)
