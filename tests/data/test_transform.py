"""Changed inputs, against what a person would do with the array by hand."""

import numpy as np
import pytest
import torch

from densembed.data.transform import Change, changed


@pytest.fixture
def seven(digits):
    return digits.test.images[(digits.test.labels == 7).nonzero()[0, 0]]


def test_nothing_is_nothing(seven):
    assert changed(seven, Change()) is seven


@pytest.mark.parametrize(("right", "down"), [(3, 0), (0, 2), (-4, 5)])
def test_whole_pixels_are_a_roll(seven, right, down):
    inside = torch.nn.functional.pad(seven[:, 8:20, 8:20], (8, 8, 8, 8))
    moved = changed(inside, Change(right=right, down=down))
    assert torch.equal(moved, inside.roll((down, right), (1, 2)))


@pytest.mark.parametrize(("turn", "quarters"), [(90, -1), (-90, 1), (180, 2)])
def test_quarter_turns(seven, turn, quarters):
    expected = np.rot90(seven[0].numpy(), quarters)
    np.testing.assert_allclose(changed(seven, Change(turn=turn))[0], expected, atol=1)


def test_twice_the_size_has_four_times_the_ink():
    dot = torch.zeros(1, 28, 28, dtype=torch.uint8)
    dot[0, 11:17, 11:17] = 255
    ink = changed(dot, Change(size=2)).sum() / dot.sum()
    assert float(ink) == pytest.approx(4, rel=0.02)


def test_blur_keeps_the_ink_and_noise_is_the_same_each_time(seven):
    blurred = changed(seven, Change(blur=1.0))
    assert float(blurred.sum()) == pytest.approx(float(seven.sum()), rel=0.02)
    assert blurred.max() < seven.max()
    grey = torch.full((3, 28, 28), 128, dtype=torch.uint8)
    noisy = changed(grey, Change(noise=0.1))
    assert float(noisy.float().std()) == pytest.approx(25.5, rel=0.05)
    assert torch.equal(noisy, changed(grey, Change(noise=0.1)))
