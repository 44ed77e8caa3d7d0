"""Image transforms against array operations, SciPy and Pillow."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from densembed.data import Split, transform
from densembed.data.transform import Transform, shifted


@pytest.fixture
def seven(digits):
    return digits.test.images[(digits.test.labels == 7).nonzero()[0, 0]]


def test_nothing_is_nothing(seven):
    assert Transform()(seven) is seven


@pytest.mark.parametrize(("right", "down"), [(3, 0), (0, 2), (-4, 5)])
def test_whole_pixels_are_a_roll(seven, right, down):
    inside = torch.nn.functional.pad(seven[:, 8:20, 8:20], (8, 8, 8, 8))
    moved = Transform(right=right, down=down)(inside)
    assert torch.equal(moved, inside.roll((down, right), (1, 2)))


@pytest.mark.parametrize(("turn", "quarters"), [(90, -1), (-90, 1), (180, 2)])
def test_quarter_turns(seven, turn, quarters):
    expected = np.rot90(seven[0].numpy(), quarters)
    np.testing.assert_allclose(Transform(turn=turn)(seven)[0], expected, atol=1)


def smooth(height=28, width=28) -> torch.Tensor:
    """An asymmetric blob, (1, H, W), that bilinear interpolation hardly changes."""
    y, x = np.mgrid[:height, :width] + 0.5
    blob = np.exp(-((x - 0.6 * width) ** 2) / 18 - (y - 0.4 * height) ** 2 / 24)
    return torch.from_numpy((255 * blob).astype(np.uint8))[None]


@pytest.mark.parametrize("turn", [30, -10, -90])
@pytest.mark.parametrize("sizes", [(28, 28), (20, 30)])
def test_turns_are_clockwise(turn, sizes):
    image = smooth(*sizes)
    theirs = Image.fromarray(image[0].numpy()).rotate(-turn, Image.Resampling.BILINEAR)
    assert np.abs(Transform(turn=turn)(image)[0].float() - np.asarray(theirs, float)).max() <= 8


@pytest.mark.parametrize("size", [0.7, 1.3])
def test_sizes_are_about_the_middle(size):
    image = smooth()[0].numpy().astype(float)
    middle = (np.array(image.shape) - 1) / 2
    theirs = ndimage.affine_transform(
        image, np.eye(2) / size, middle - middle / size, order=1, mode="constant"
    )
    assert np.abs(Transform(size=size)(smooth())[0].numpy() - theirs).max() <= 2


def test_a_batch_is_transformed_as_its_images_are(digits):
    images, transform = digits.test.images[:3], Transform(right=1.5, size=1.1, turn=20, blur=0.5)
    alone = torch.stack([transform(image) for image in images])
    assert torch.equal(transform(images), alone)


@pytest.mark.parametrize("blur", [0.5, 3.0])
def test_a_blur_is_that_of_scipy(blur):
    image = smooth(40, 60)
    theirs = ndimage.gaussian_filter(image[0].numpy().astype(float), blur, mode="mirror")
    assert np.abs(Transform(blur=blur)(image)[0].numpy() - theirs).max() <= 1


def test_a_small_image_can_be_blurred():
    assert Transform(blur=3.0)(torch.full((1, 4, 5), 200, dtype=torch.uint8)).eq(200).all()


def test_twice_the_size_has_four_times_the_ink():
    dot = torch.zeros(1, 28, 28, dtype=torch.uint8)
    dot[0, 11:17, 11:17] = 255
    ink = Transform(size=2)(dot).sum() / dot.sum()
    assert float(ink) == pytest.approx(4, rel=0.02)


def test_blur_keeps_the_ink_and_noise_is_the_same_each_time(seven):
    blurred = Transform(blur=1.0)(seven)
    assert float(blurred.sum()) == pytest.approx(float(seven.sum()), rel=0.02)
    assert blurred.max() < seven.max()
    grey = torch.full((3, 28, 28), 128, dtype=torch.uint8)
    noisy = Transform(noise=0.1)(grey)
    assert float(noisy.float().std()) == pytest.approx(25.5, rel=0.05)
    assert torch.equal(noisy, Transform(noise=0.1)(grey))


def test_shifted_copies_of_signals_repeat_the_edge():
    split = Split(torch.tensor([[[1.0, 2, 3]], [[4.0, 5, 6]]]), torch.tensor([7, 8]))
    copies = shifted(split, 1)
    assert copies.images[:, 0].tolist() == [
        *([2, 3, 3], [5, 6, 6]),  # one sample to the left
        *([1, 2, 3], [4, 5, 6]),
        *([1, 1, 2], [4, 4, 5]),
    ]
    assert copies.labels.tolist() == [7, 8] * 3
    assert shifted(split, 0) is split


def test_shifted_copies_of_images_are_all_pairs_of_shifts(digits):
    split = Split(digits.test.images[:3], digits.test.labels[:3])
    padded = np.pad(split.images.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), mode="edge")
    copies = shifted(split, 2)
    assert len(copies) == 3 * 25
    expected = {padded[0, :, y : y + 28, x : x + 28].tobytes() for y in range(5) for x in range(5)}
    assert {image.numpy().tobytes() for image in copies.images[::3]} == expected
    assert copies.images.dtype == torch.uint8
    assert copies.labels.tolist() == split.labels.tolist() * 25


def test_shifts_that_exhaust_the_memory_are_refused(digits, monkeypatch):
    monkeypatch.setattr(transform, "MOST_SHIFTED", 10 * 784)
    split = Split(digits.test.images[:1], digits.test.labels[:1])
    assert len(shifted(split, 1)) == 9
    with pytest.raises(ValueError, match=r"Shifts of up to 2 need .* Choose a smaller shift\."):
        shifted(split, 2)
