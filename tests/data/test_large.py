"""Pictures of many pixels: read as their small copies are, within a bound of memory."""

import io

import numpy as np
import pytest
from PIL import Image

from densembed.data.decode import (
    ENOUGH_PIXELS,
    MAX_JPEG_PIXELS,
    MAX_PIXELS,
    ImageError,
    _webp_decoder,
    decode,
)
from tests.stress.picture import KINDS, cost

MEGABYTES = 250
"""Before the reduction while decoding it was more than 800. An ordinary photograph takes 116."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("PNG", "JPEG", "WebP")])
def test_a_large_picture_takes_little_memory(kind):
    _, megabytes = cost(kind)
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_a_large_picture_is_reduced_and_turned_the_right_way_up(form):
    """A dark half at the top, which the file's orientation 6 turns to the right."""
    page = np.full((2000, 3000), 255, np.uint8)
    page[:1000] = 0
    image = Image.fromarray(page)
    exif = image.getexif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, form, exif=exif)
    pixels = decode(file.getvalue())
    assert pixels.shape == (1500, 1000, 4)
    assert pixels.shape[0] * pixels.shape[1] <= ENOUGH_PIXELS
    np.testing.assert_allclose(pixels[:, 510:, :3], 0, atol=0.02)
    np.testing.assert_allclose(pixels[:, :490, :3], 1, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
@pytest.mark.parametrize("torchvision", [True, False])
def test_a_large_webp_has_the_pixels_of_pillow(mode, frames, torchvision, monkeypatch):
    if torchvision:
        assert _webp_decoder() is not None
    else:
        monkeypatch.setattr("densembed.data.decode._webp_decoder", lambda: None)
    page = np.random.default_rng(0).integers(0, 256, (10, 12, len(mode)), np.uint8)
    image = Image.fromarray(page.squeeze(), mode).resize((2400, 2000), Image.Resampling.NEAREST)
    file = io.BytesIO()
    more = {"save_all": True, "append_images": [image.rotate(180)]} if frames > 1 else {}
    image.save(file, "WEBP", lossless=True, exact=True, **more)
    with Image.open(file) as opened:
        assert opened.n_frames == frames
    expected = np.asarray(image.convert("RGBA").reduce(2), np.float32) / 255
    np.testing.assert_allclose(decode(file.getvalue()), expected, atol=1 / 255)


def test_a_large_jpeg_with_a_second_picture_is_read_as_without_it():
    """MPO, as phones write it; the draft of a JPEG decoder must not be lost."""
    shown = Image.effect_noise((600, 500), 50).resize((6000, 5000))
    assert MAX_PIXELS < shown.width * shown.height < MAX_JPEG_PIXELS
    files = {form: io.BytesIO() for form in ("JPEG", "MPO", "PNG")}
    shown.save(files["JPEG"], "JPEG")
    shown.save(files["MPO"], "MPO", save_all=True, append_images=[shown.reduce(50)])
    Image.new("L", shown.size).save(files["PNG"], "PNG", compress_level=1)
    with Image.open(files["MPO"]) as opened:
        assert (opened.format, opened.n_frames) == ("MPO", 2)
    jpeg, mpo = (decode(files[form].getvalue()) for form in ("JPEG", "MPO"))
    np.testing.assert_array_equal(jpeg, mpo)
    with pytest.raises(ImageError, match="at most 25 million"):
        decode(files["PNG"].getvalue())


def test_a_picture_of_ordinary_size_is_decoded_pixel_by_pixel():
    page = np.random.default_rng(0).integers(0, 256, (1500, 2000), np.uint8)
    file = io.BytesIO()
    Image.fromarray(page).save(file, "PNG")
    np.testing.assert_array_equal(decode(file.getvalue())[..., 0], page.astype(np.float32) / 255)
