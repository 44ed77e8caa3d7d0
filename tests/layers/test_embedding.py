"""Density-embedding layers: what they place where, show, count, and accept."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn

from densembed.densities import FAMILIES, Logistic
from densembed.layers.embedding import (
    AdaptiveDensityEmbedding,
    DensityEmbedding,
    bounded_loc,
    bounded_scale,
)
from tests.test_densities import REFERENCES, each_family


def adaptive(
    sizes: tuple[int, ...], in_channels: int = 1, densities: int | tuple[int, int] = 4, **options
) -> AdaptiveDensityEmbedding:
    """Densities placed by a linear map of the whole input."""
    count = math.prod(densities) if isinstance(densities, tuple) else densities
    inputs = in_channels * math.prod(sizes)
    locator = nn.Sequential(nn.Flatten(), nn.Linear(inputs, in_channels * count * len(sizes)))
    return AdaptiveDensityEmbedding(locator, sizes, in_channels, densities, **options)


def wide(layer: nn.Module) -> nn.Module:
    """The layer with densities so wide that a few cells a pixel resolve them."""
    nn.init.normal_(layer.beta, -1.0, 0.2)
    return layer


both_layers = pytest.mark.parametrize("build", [DensityEmbedding, adaptive])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# Placement


def test_placement_of_a_fixed_layer_is_the_bounded_parameters():
    layer = DensityEmbedding((5, 7), in_channels=2, densities=3)
    loc, scale = layer.placement()
    assert loc.shape == scale.shape == (1, 2, 3, 2)
    for axis, size in enumerate((7, 5)):  # index 0 runs along the columns
        expected = size * torch.sigmoid(4 * layer.alpha[None, ..., axis])
        torch.testing.assert_close(loc[..., axis], expected)
        expected = size * torch.sigmoid(layer.beta[None, ..., axis])
        torch.testing.assert_close(scale[..., axis], expected)


def test_placement_of_an_adaptive_layer_follows_the_input():
    layer = adaptive((5, 7), in_channels=2, densities=3)
    x = torch.rand(4, 2, 5, 7)
    loc, scale = layer.placement(x)
    assert loc.shape == (4, 2, 3, 2)
    assert scale.shape == (1, 2, 3, 2)
    alpha = layer.locator(x).view(4, 2, 3, 2)
    torch.testing.assert_close(loc, torch.tensor([7.0, 5.0]) * torch.sigmoid(4 * alpha))
    with pytest.raises(ValueError, match="pass x"):
        layer.placement()


def test_locations_and_scales_stay_within_the_domain():
    sizes = torch.tensor([7.0, 5.0])
    for value in (-1e6, -3.0, 0.0, 3.0, 1e6):
        logits = torch.full((2,), value)
        for bounded in (bounded_loc(logits, sizes), bounded_scale(logits, sizes)):
            assert ((bounded >= 0) & (bounded <= sizes)).all()
    torch.testing.assert_close(bounded_loc(torch.zeros(2), sizes), sizes / 2)


def test_start_is_the_one_of_the_appendix():
    layer = DensityEmbedding((28, 28), densities=(40, 40))
    assert layer.alpha.mean().abs() < 0.05
    assert layer.alpha.std().item() == pytest.approx(0.4, rel=0.05)
    assert layer.beta.mean().item() == pytest.approx(-3, abs=0.05)
    assert layer.beta.std().item() == pytest.approx(0.3, rel=0.05)
    assert layer.placement()[1].median().item() == pytest.approx(1.33, rel=0.02)


@each_family
def test_families_start_with_the_same_spread(name):
    layer = DensityEmbedding((9, 9), densities=3, family=name)
    scale = layer.placement()[1]
    logistic = bounded_scale(layer.beta, layer.lengths)[None]
    if math.isinf(FAMILIES[name].std):
        spreads = scale * FAMILIES[name].iqr, logistic * Logistic.iqr
    else:
        spreads = scale * FAMILIES[name].std, logistic * Logistic.std
    torch.testing.assert_close(*spreads)


# Receptive field


@each_family
def test_receptive_field_is_the_pdf_at_the_centres_of_cells(name):
    layer = wide(DensityEmbedding((3, 5), densities=2, family=name))
    loc, scale = (parameter[0, 0].detach().double().numpy() for parameter in layer.placement())
    field = layer.receptive_field(resolution=3)
    assert field.shape == (1, 1, 2, 9, 15)
    u, t = (np.arange(9) + 0.5) / 3, (np.arange(15) + 0.5) / 3
    for k in range(2):
        along_t = REFERENCES[name].pdf((t - loc[k, 0]) / scale[k, 0]) / scale[k, 0]
        along_u = REFERENCES[name].pdf((u - loc[k, 1]) / scale[k, 1]) / scale[k, 1]
        expected = along_u[:, None] * along_t
        np.testing.assert_allclose(field[0, 0, k].detach(), expected, 1e-3, 1e-6)


def test_receptive_field_ignores_the_input_of_a_fixed_layer():
    layer = DensityEmbedding((3, 5), densities=2)
    with_input = layer.receptive_field(torch.rand(4, 1, 3, 5))
    torch.testing.assert_close(with_input, layer.receptive_field())


def test_axis_0_of_the_parameters_runs_along_the_columns():
    layer = DensityEmbedding((20, 30), densities=2)
    nn.init.zeros_(layer.alpha)
    layer.alpha.data[0, 1, 0] += 0.2  # moved to the right
    move = 30 * torch.sigmoid(torch.tensor(0.8)) - 15
    for weights in (layer.gamma()[0, 0], layer.receptive_field(resolution=1)[0, 0]):
        mass = weights.sum((-2, -1))
        columns = (weights.sum(-2) * (torch.arange(30) + 0.5)).sum(-1) / mass
        rows = (weights.sum(-1) * (torch.arange(20) + 0.5)).sum(-1) / mass
        torch.testing.assert_close(columns, torch.stack((0 * move, move)) + 15, atol=0.1, rtol=0)
        torch.testing.assert_close(rows, torch.tensor([10.0, 10.0]), atol=1e-3, rtol=0)


@both_layers
@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("sizes", [(9,), (5, 7)])
def test_receptive_field_integrates_to_gamma(build, truncate, sizes):
    layer = wide(build(sizes, densities=2, truncate=truncate)).double()
    x = torch.rand(3, 1, *sizes).double()
    gamma = layer.gamma(x)
    errors = []
    for resolution in (2, 4, 8):
        field = layer.receptive_field(x, resolution) / resolution ** len(sizes)
        for axis, size in enumerate(sizes):
            field = field.unflatten(3 + axis, (size, resolution)).sum(4 + axis)
        assert field.shape == gamma.shape
        errors.append((field - gamma).abs().max().item())
    assert errors[2] < 1e-3
    assert errors[2] < errors[1] / 3 < errors[0] / 9  # the midpoint rule: a quarter each time


# Forward


@both_layers
@pytest.mark.parametrize("family", ["logistic", "uniform"])
@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize(("sizes", "channels"), [((6,), 1), ((5, 7), 1), ((7, 5), 3)])
def test_output_is_the_expectation_under_gamma(build, sizes, channels, batch, family):
    layer = build(sizes, channels, 4, family=family)
    x = torch.rand(batch, channels, *sizes)
    y = layer(x)
    assert y.shape == (batch, channels, 4)
    expected = (layer.gamma(x) * x[:, :, None]).flatten(3).sum(-1)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-6)
    y.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_shared_densities_treat_every_channel_alike():
    layer = DensityEmbedding((5, 7), 3, 4, shared=True)
    assert layer.alpha.shape == layer.beta.shape == (1, 4, 2)
    x = torch.rand(2, 3, 5, 7)
    swapped = layer(x[:, [2, 0, 1]])
    torch.testing.assert_close(layer(x)[:, [2, 0, 1]], swapped)


@both_layers
def test_truncated_densities_keep_a_constant_image(build):
    layer = build((5, 7), densities=4, truncate=True)
    y = layer(torch.full((2, 1, 5, 7), 0.3))
    torch.testing.assert_close(y, torch.full((2, 1, 4), 0.3))


# What it accepts


@both_layers
@pytest.mark.parametrize("shape", [(2, 1, 7, 5), (2, 3, 5, 7), (1, 5, 7), (2, 1, 35)])
def test_wrong_shape_is_named(build, shape):
    layer = build((5, 7))
    expected_and_got = re.escape("(batch, 1, 5, 7)") + ".*" + re.escape(str(shape))
    with pytest.raises(ValueError, match=expected_and_got):
        layer(torch.zeros(shape))


@pytest.mark.parametrize(
    ("sizes", "channels", "densities"), [((0, 5), 1, 3), ((5,), 0, 3), ((5,), 1, 0)]
)
def test_sizes_below_one_are_refused(sizes, channels, densities):
    with pytest.raises(ValueError, match="at least 1"):
        DensityEmbedding(sizes, channels, densities)


def test_unknown_family_is_refused():
    with pytest.raises(ValueError, match="boxcar"):
        DensityEmbedding((5, 7), family="boxcar")


# As a module


def numbers(layer: nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


@pytest.mark.parametrize(
    ("channels", "densities", "count"), [(1, 9, 9), (3, (5, 5), 25), (2, 1, 1)]
)
def test_parameter_counts(channels, densities, count):
    layer = DensityEmbedding((28, 28), channels, densities)
    assert layer.densities == count
    assert numbers(layer) == 4 * channels * count
    layer = adaptive((6, 5), channels, densities)
    assert numbers(layer) - numbers(layer.locator) == 2 * channels * count


@both_layers
def test_state_dict_round_trip(build):
    layer, other = build((5, 7)), build((5, 7))
    x = torch.rand(2, 1, 5, 7)
    assert not torch.equal(layer(x), other(x))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x), other(x))
    own = [key for key in layer.state_dict() if not key.startswith("locator")]
    assert own == (["alpha", "beta"] if build is DensityEmbedding else ["beta"])


@both_layers
def test_float64(build):
    layer = build((5, 7))
    x = torch.rand(2, 1, 5, 7)
    single = layer(x)
    double = layer.double()(x.double())
    assert double.dtype == torch.float64
    assert layer.receptive_field(x.double()).dtype == torch.float64
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-6)
    assert not torch.equal(single.double(), double)


@each_family
@both_layers
def test_bfloat16_autocast_is_near(build, name):
    layer = build((5, 7), family=name)
    x = torch.rand(2, 1, 5, 7)
    exact = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert y.isfinite().all()
    torch.testing.assert_close(y.float(), exact, rtol=0, atol=0.05)
    y.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@both_layers
def test_stacked_parameters_under_vmap(build):
    members = [build((5, 7)) for _ in range(3)]
    x = torch.rand(2, 1, 5, 7)
    parameters, buffers = torch.func.stack_module_state(members)

    def call(parameters, buffers):
        return torch.func.functional_call(members[0], (parameters, buffers), (x,))

    stacked = torch.func.vmap(call)(parameters, buffers)
    torch.testing.assert_close(stacked, torch.stack([member(x) for member in members]))

    def loss(parameters, buffers):
        return call(parameters, buffers).square().sum()

    slopes = torch.func.vmap(torch.func.grad(loss))(parameters, buffers)
    members[1](x).square().sum().backward()
    for name, parameter in members[1].named_parameters():
        torch.testing.assert_close(slopes[name][1], parameter.grad, rtol=1e-4, atol=1e-5)
