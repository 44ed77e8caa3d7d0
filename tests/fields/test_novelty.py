"""What is unlike the training images, and what is no page with a digit on it."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from densembed.data.images import Content, read_picture
from densembed.fields.novelty import CALIBRATION, NoveltyDetector, detector
from tests.data.unlike import compare


def photographs(count: int = 30, side: int = 160) -> list[bytes]:
    """Pieces of two photographs, of a temple and of a flower."""
    rng = np.random.default_rng(0)
    files = []
    for number in range(count):
        photo = load_sample_images().images[number % 2]
        top, left = (int(rng.integers(0, size - side)) for size in photo.shape[:2])
        file = io.BytesIO()
        Image.fromarray(photo[top : top + side, left : left + side]).save(file, "JPEG")
        files.append(file.getvalue())
    return files


def test_few_test_images_are_unlike_their_own_training_images(digits):
    assert detector(digits).is_novel(digits.test.images).mean() <= 0.05


def test_the_limit_is_what_the_rule_says(digits):
    detector = NoveltyDetector.fit(digits)
    assert len(detector.references) == len(digits.train)
    distances = [
        1 - np.delete(detector.references @ reference, index).max()
        for index, reference in enumerate(detector.references[:CALIBRATION])
    ]
    assert np.mean(np.array(distances) > detector.limit) == pytest.approx(0.03, abs=0.002)


@pytest.mark.parametrize("amount", [0.2, 0.5])
def test_brightness_does_not_matter(digits, amount):
    images = digits.test.images[:50]
    dim = (images * amount).byte()
    distances = detector(digits).distances(images)
    np.testing.assert_allclose(detector(digits).distances(dim), distances, atol=0.01)


def test_noise_and_stripes_are_unlike(digits):
    noise = torch.randint(0, 256, (20, 1, 28, 28), dtype=torch.uint8)
    stripes = torch.zeros(1, 1, 28, 28, dtype=torch.uint8)
    stripes[..., ::4] = 255
    assert detector(digits).is_novel(torch.cat([noise, stripes])).all()


@pytest.mark.slow
def test_photographs_are_no_pages_and_unlike_digits(digits):
    pictures = [read_picture(file) for file in photographs()]
    no_page = np.array(
        [not picture.clean or picture.content != Content.DIGIT for picture in pictures]
    )
    assert no_page.mean() >= 0.8  # whatever the model learned
    novel = detector(digits).is_novel(torch.stack([picture.pixels for picture in pictures]))
    assert (no_page | novel).mean() >= 0.9


@pytest.mark.slow
def test_pages_and_their_digits(digits):
    rows = {kind: found for kind, _, found in compare(digits, None, 40)}
    assert rows["its test images"]["any"] <= 5
    assert rows["the same, scanned"]["no page"] == 0
    assert rows["empty pages"]["no ink"] == 100
    assert rows["several digits"]["any"] >= 90
