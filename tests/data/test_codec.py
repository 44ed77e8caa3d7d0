"""Pictures as text: what is written is read, and nothing else is."""

import base64
import io
import re
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from densembed.data.codec import MAX_TEXT, from_text, to_png, to_text
from densembed.data.images import ImageError

SHAPE = (1, 28, 28)


def packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(data)).decode().rstrip("=")


@pytest.mark.parametrize("shape", [SHAPE, (1, 8, 8), (3, 32, 32), (1, 1, 3)])
def test_text_is_read_back(shape):
    pixels = torch.randint(256, shape, dtype=torch.uint8)
    assert torch.equal(from_text(to_text(pixels), shape), pixels)


def test_digits_fit_in_a_link(digits):
    texts = [to_text(image) for image in digits.test.images]
    assert max(map(len, texts)) < 1000
    assert all(re.fullmatch(r"[\w-]+", text, re.ASCII) for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ü" * 8,
        "../../etc/passwd",
        "<b>",
        packed(bytes(783)),
        packed(bytes(785)),
        packed(bytes(10**9 // 200)),  # unpacks to far more than its length
        packed(bytes(784))[:-6],
        packed(bytes(784)) + "AAAA",
        base64.urlsafe_b64encode(bytes(784)).decode(),
        "A" * (MAX_TEXT + 1),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text):
    with pytest.raises(ImageError, match=r"^The picture in the link .*\.$"):
        from_text(text, SHAPE)


def test_png_has_the_pixels():
    for shape in (SHAPE, (3, 5, 4)):
        pixels = torch.randint(256, shape, dtype=torch.uint8)
        decoded = np.array(Image.open(io.BytesIO(to_png(pixels))))
        expected = pixels.squeeze(0) if shape[0] == 1 else pixels.movedim(0, -1)
        np.testing.assert_array_equal(decoded, expected)
