"""The box around an input's mass, and densities that are placed in it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from densembed.functional.frame import SIDE, mass_box
from densembed.layers import AdaptiveDensityEmbedding, DensityEmbedding
from densembed.layers.embedding import Embedding

SHAPES = [(2, 9), (1, 7, 11)]


def layers(sizes: tuple[int, ...], channels: int) -> list[Embedding]:
    """Fixed densities and a micro network, both in the frame of the mass."""
    options = {"num_densities": 4, "frame": "mass"}
    inner = DensityEmbedding(sizes, channels, **options)
    linear = nn.Linear(4 * channels, channels * 4 * len(sizes))
    locator = nn.Sequential(inner, nn.Flatten(), linear)
    return [
        DensityEmbedding(sizes, channels, **options).double(),
        AdaptiveDensityEmbedding(locator, sizes, channels, **options).double(),
    ]


def sampled_moments(x: np.ndarray, cells: int = 400) -> tuple[np.ndarray, float]:
    """Centre (columns first) and mean variance of |x(t)| by a Riemann sum on a fine grid."""
    mass = np.abs(x).sum(0)
    centre, variances = [], []
    for axis in reversed(range(mass.ndim)):
        profile = mass.sum(tuple(other for other in range(mass.ndim) if other != axis))
        weights = np.repeat(profile, cells)
        t = (np.arange(len(weights)) + 0.5) / cells
        mean = np.average(t, weights=weights)
        centre.append(mean)
        variances.append(np.average((t - mean) ** 2, weights=weights))
    return np.array(centre), float(np.mean(variances))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_box_has_the_moments_of_the_piecewise_constant_signal(shape):
    x = torch.randn(3, *shape, dtype=torch.float64)
    lower, length = mass_box(x)
    for k in range(3):
        centre, variance = sampled_moments(x[k].numpy())
        np.testing.assert_allclose((lower + length / 2)[k, 0, 0], centre, rtol=1e-6)
        np.testing.assert_allclose(length[k, 0, 0], SIDE * variance**0.5, rtol=1e-5)


@pytest.mark.parametrize("value", [1.0, -3.0, 1e-40, 1e38])
def test_one_pixel(value):
    x = torch.zeros(1, 1, 5, 6)
    x[..., 3, 4] = value
    lower, length = mass_box(x)
    torch.testing.assert_close((lower + length / 2)[0, 0, 0], torch.tensor([4.5, 3.5]))
    torch.testing.assert_close(length[0, 0, 0], torch.full((2,), SIDE * (1 / 12) ** 0.5))


@pytest.mark.parametrize("shape", SHAPES)
def test_without_mass_the_box_is_the_domain(shape):
    channels, *sizes = shape
    x = torch.zeros(2, *shape, dtype=torch.float64, requires_grad=True)
    for layer in layers(tuple(sizes), channels):
        plain = DensityEmbedding(sizes, channels, num_densities=4).double()
        if isinstance(layer, DensityEmbedding):
            plain.load_state_dict(layer.state_dict())
            loc, scale = layer.placement(x)
            torch.testing.assert_close(loc, plain.placement()[0].expand_as(loc))
            torch.testing.assert_close(scale, plain.placement()[1].expand_as(scale))
        (gradient,) = torch.autograd.grad(layer(x).sum(), x)
        assert gradient.isfinite().all()


@settings(max_examples=20)
@given(st.integers(-3, 3), st.integers(-4, 4), st.floats(0.01, 100))
def test_a_shift_by_whole_pixels_changes_nothing(down, right, factor):
    """Nor does a factor of the ink, which moves no density unless a micro network reads it."""
    torch.manual_seed(0)
    x = torch.zeros(1, 1, 16, 18, dtype=torch.float64)
    x[..., 4:12, 5:13] = torch.rand(8, 8, dtype=torch.float64)
    moved = torch.roll(x, (down, right), (-2, -1))
    for layer in layers((16, 18), 1):
        by = factor if isinstance(layer, DensityEmbedding) else 1
        torch.testing.assert_close(layer(moved * by), by * layer(x), rtol=1e-10, atol=1e-12)
        shift = torch.tensor([right, down], dtype=torch.float64)
        torch.testing.assert_close(layer.placement(moved)[0], layer.placement(x)[0] + shift)


@pytest.mark.parametrize("factor", [2, 3])
def test_a_larger_input_gives_the_same(factor):
    """Enlarging the image within the same number of pixels scales the box and the densities."""
    x = torch.zeros(1, 1, 24, 24, dtype=torch.float64)
    x[..., 8:14, 9:15] = torch.rand(6, 6, dtype=torch.float64)
    ink = x[..., 8:14, 9:15].repeat_interleave(factor, -1).repeat_interleave(factor, -2)
    larger = torch.zeros_like(x)
    larger[..., 3 : 3 + 6 * factor, 2 : 2 + 6 * factor] = ink
    for layer in layers((24, 24), 1):
        torch.testing.assert_close(layer(larger), layer(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape):
    channels, *sizes = shape
    x = torch.rand(2, *shape, dtype=torch.float64, requires_grad=True)
    for layer in layers(tuple(sizes), channels):
        assert torch.autograd.gradcheck(layer, (x,))
        names, values = zip(*layer.named_parameters(), strict=True)

        def output(*values, layer=layer, names=names):
            state = dict(zip(names, values, strict=True))
            return torch.func.functional_call(layer, state, (x.detach(),))

        assert torch.autograd.gradcheck(output, values)


def test_wrong_frame():
    with pytest.raises(ValueError, match="Expected frame 'input' or 'mass'; got 'ink'"):
        DensityEmbedding(5, frame="ink")
    with pytest.raises(ValueError, match="move with the input; pass x"):
        DensityEmbedding(5, frame="mass").receptive_field()
    with pytest.raises(ValueError, match="move with the input; pass x"):
        DensityEmbedding(5, frame="mass").fold(torch.rand(2, 25))


def test_autocast_does_not_round_the_box():
    x = torch.zeros(1, 1, 1000)
    x[..., 800:807] = torch.rand(7)
    expected = [part.double() for part in mass_box(x)]
    with torch.autocast("cpu", torch.bfloat16):
        found = mass_box(x)
    for part, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(part.double(), wanted, rtol=0, atol=1e-4)
