"""Density-embedding layers: what they place where, show, count, and accept."""

import math
import re

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from densembed.functional.densities import FAMILIES, Logistic
from densembed.layers.embedding import (
    AdaptiveDensityEmbedding,
    AdaptiveDensityEmbedding1d,
    AdaptiveDensityEmbedding2d,
    DensityEmbedding,
    DensityEmbedding1d,
    DensityEmbedding2d,
    PixelEmbedding,
    bounded_loc,
    bounded_scale,
)
from tests.functional.test_densities import REFERENCES, each_family


def adaptive(
    sizes: tuple[int, ...],
    in_channels: int = 1,
    num_densities: int | tuple[int, int] = 4,
    **options,
) -> AdaptiveDensityEmbedding:
    """Densities placed by a linear map of the whole input."""
    count = math.prod(num_densities) if isinstance(num_densities, tuple) else num_densities
    inputs = in_channels * math.prod(sizes)
    locator = nn.Sequential(nn.Flatten(), nn.Linear(inputs, in_channels * count * len(sizes)))
    return AdaptiveDensityEmbedding(
        locator, sizes, in_channels, num_densities=num_densities, **options
    )


def located(kind: type, sizes: tuple[int, ...], **options) -> AdaptiveDensityEmbedding:
    """Three densities on two channels, placed by a linear map of the whole input."""
    count = (2 if options.get("adaptive_scale") else 1) * (1 if options.get("shared") else 2)
    locator = nn.Linear(2 * math.prod(sizes), count * 3 * len(sizes))
    return kind(nn.Sequential(nn.Flatten(), locator), sizes, 2, num_densities=3, **options)


# Every layer with each of its options, on signals of two channels.
VARIANTS = {
    f"{kind.__name__}-{'-'.join(options) or 'plain'}": (kind, sizes, options)
    for kinds, every in (
        (
            {DensityEmbedding1d: (9,), DensityEmbedding2d: (5, 7)},
            ({}, {"shared": True}, {"truncate": True}, {"location_lr_scale": 8.0}),
        ),
        (
            {AdaptiveDensityEmbedding1d: (9,), AdaptiveDensityEmbedding2d: (5, 7)},
            (
                {},
                {"shared": True},
                {"truncate": True},
                {"adaptive_scale": True},
                {"shared": True, "adaptive_scale": True},
            ),
        ),
    )
    for kind, sizes in kinds.items()
    for options in every
}
each_variant = pytest.mark.parametrize("variant", VARIANTS)


def made(variant: str) -> nn.Module:
    kind, sizes, options = VARIANTS[variant]
    if issubclass(kind, DensityEmbedding):
        return kind(sizes, 2, num_densities=3, **options)
    return located(kind, sizes, **options)


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
    layer = DensityEmbedding((5, 7), in_channels=2, num_densities=3)
    loc, scale = layer.placement()
    assert loc.shape == scale.shape == (1, 2, 3, 2)
    for axis, size in enumerate((7, 5)):  # index 0 runs along the columns
        expected = size * torch.sigmoid(4 * layer.alpha[None, ..., axis])
        torch.testing.assert_close(loc[..., axis], expected)
        expected = size * torch.sigmoid(layer.beta[None, ..., axis])
        torch.testing.assert_close(scale[..., axis], expected)


def test_placement_of_an_adaptive_layer_follows_the_input():
    layer = adaptive((5, 7), in_channels=2, num_densities=3)
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
    layer = DensityEmbedding((28, 28), num_densities=(40, 40))
    assert layer.alpha.mean().abs() < 0.05
    assert layer.alpha.std().item() == pytest.approx(0.4, rel=0.05)
    assert layer.beta.mean().item() == pytest.approx(-3, abs=0.05)
    assert layer.beta.std().item() == pytest.approx(0.3, rel=0.05)
    assert layer.placement()[1].median().item() == pytest.approx(1.33, rel=0.02)


@each_family
def test_families_start_with_the_same_spread(name):
    layer = DensityEmbedding((9, 9), num_densities=3, family=name)
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
    layer = wide(DensityEmbedding((3, 5), num_densities=2, family=name))
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
    layer = DensityEmbedding((3, 5), num_densities=2)
    with_input = layer.receptive_field(torch.rand(4, 1, 3, 5))
    torch.testing.assert_close(with_input, layer.receptive_field())


def test_axis_0_of_the_parameters_runs_along_the_columns():
    layer = DensityEmbedding((20, 30), num_densities=2)
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
    layer = wide(build(sizes, num_densities=2, truncate=truncate)).double()
    x = torch.rand(3, 1, *sizes).double()
    gamma = layer.gamma(x)
    errors = []
    for resolution in (2, 4, 8):
        field = layer.receptive_field(x, resolution=resolution) / resolution ** len(sizes)
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
    layer = build(sizes, channels, num_densities=4, family=family)
    x = torch.rand(batch, channels, *sizes)
    y = layer(x)
    assert y.shape == (batch, channels, 4)
    expected = (layer.gamma(x) * x[:, :, None]).flatten(3).sum(-1)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-6)
    y.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_shared_densities_treat_every_channel_alike():
    layer = DensityEmbedding((5, 7), 3, num_densities=4, shared=True)
    assert layer.alpha.shape == layer.beta.shape == (1, 4, 2)
    x = torch.rand(2, 3, 5, 7)
    swapped = layer(x[:, [2, 0, 1]])
    torch.testing.assert_close(layer(x)[:, [2, 0, 1]], swapped)


@both_layers
def test_truncated_densities_keep_a_constant_image(build):
    layer = build((5, 7), num_densities=4, truncate=True)
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
        DensityEmbedding(sizes, channels, num_densities=densities)


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
    layer = DensityEmbedding((28, 28), channels, num_densities=densities)
    assert layer.num_densities == count
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


# One axis or two, and every option


@each_variant
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_every_option_is_the_expectation_under_gamma(variant, batch):
    layer = made(variant).double()
    x = torch.rand(batch, 2, *layer.sizes).double()
    gamma = layer.gamma(x)
    groups = 1 if "shared" in variant else 2
    assert gamma.shape == (batch if layer.adaptive else 1, groups, 3, *layer.sizes)
    expected = (gamma * x[:, :, None]).flatten(3).sum(-1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-12)


@each_variant
def test_gradients_of_every_option(variant):
    """Of the input and all parameters, with the input's gradient and without it.

    In random directions: entry by entry, two axes take a hundred times as long.
    """
    layer = made(variant).double()
    x = torch.rand(2, 2, *layer.sizes).double()
    names = [name for name, _ in layer.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for parameter in layer.parameters()]

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(lambda *values: call(x, *values), values, fast_mode=True)
    assert torch.autograd.gradcheck(call, [x.requires_grad_(), *values], fast_mode=True)


@each_variant
def test_every_option_compiles_as_one_graph(variant):
    layer = made(variant)
    x = torch.rand(3, 2, *layer.sizes)
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    y = compiled(x)
    torch.testing.assert_close(y, layer(x))
    parameters = list(layer.parameters())
    got = torch.autograd.grad(y.square().sum(), parameters)
    want = torch.autograd.grad(layer(x).square().sum(), parameters)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)


@each_variant
def test_every_option_under_vmap(variant):
    members = [made(variant).double() for _ in range(2)]
    x = torch.rand(2, 2, *members[0].sizes).double()
    stacked, buffers = torch.func.stack_module_state(members)

    def loss(parameters, buffers, x):
        y = torch.func.functional_call(members[0], (parameters, buffers), (x,))
        return y.square().sum()

    both = torch.func.grad(loss, argnums=(0, 2))
    slopes, by_x = torch.func.vmap(both, in_dims=(0, 0, None))(stacked, buffers, x)
    x = x.requires_grad_()
    members[1](x).square().sum().backward()
    torch.testing.assert_close(by_x[1], x.grad)
    for name, parameter in members[1].named_parameters():
        torch.testing.assert_close(slopes[name][1], parameter.grad)


@each_variant
def test_every_option_in_half_precision(variant):
    """The densities are placed and integrated in float32; the output has the input's dtype."""
    layer = made(variant)
    x = torch.rand(3, 2, *layer.sizes).bfloat16()
    exact = layer(x.float())
    y = layer.to(torch.bfloat16)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), exact, rtol=0.05, atol=0.03)
    y.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize(("dtype", "size"), [(torch.bfloat16, 1001), (torch.float16, 4097)])
def test_a_long_domain_is_not_rounded_in_half_precision(dtype, size):
    layer = DensityEmbedding1d(size, num_densities=2).to(dtype)
    for one in (layer, layer.at(size), layer.at(9).to(dtype).at(size)):
        loc, scale = one.placement()
        alpha, beta = (part.detach().double().numpy() for part in (layer.alpha, layer.beta))
        np.testing.assert_allclose(loc[0].detach(), size * expit(4 * alpha), rtol=1e-6)
        np.testing.assert_allclose(scale[0].detach(), size * expit(beta), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("beta", [-6e4, -20.0, 0.0, 6e4])
@each_variant
def test_half_precision_at_any_scale(variant, beta, dtype):
    """In float16 the gradient of a point mass on an edge, here at α = 0, may overflow."""
    layer = made(variant).to(dtype)
    layer.beta.data.fill_(beta)
    if "alpha" in dict(layer.named_parameters()):
        layer.alpha.data.zero_()
    x = torch.rand(3, 2, *layer.sizes).to(dtype).requires_grad_()
    y = layer(x)
    assert y.isfinite().all()
    y.float().sum().backward()
    if dtype == torch.bfloat16:
        assert x.grad.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@each_variant
def test_every_option_can_be_built_without_memory(variant):
    with torch.device("meta"):
        layer = made(variant)
    shapes = {name: value.shape for name, value in layer.state_dict().items()}
    assert shapes == {name: value.shape for name, value in made(variant).state_dict().items()}
    assert all(value.is_meta for value in layer.state_dict().values())


def test_many_inputs_with_scales_of_their_own():
    """More than the fast path takes at a time."""
    locator = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 2 * 2 * 64))
    layer = AdaptiveDensityEmbedding2d(locator, 28, 1, num_densities=64, adaptive_scale=True)
    x = torch.rand(300, 1, 28, 28)
    y = layer(x)
    for start in (0, 150, 290):
        torch.testing.assert_close(y[start : start + 10], layer(x[start : start + 10]))
    y.sum().backward()
    assert locator[1].weight.grad.isfinite().all()


@pytest.mark.parametrize(
    ("kind", "sizes", "generic"),
    [
        (DensityEmbedding1d, 9, (9,)),
        (DensityEmbedding2d, 6, (6, 6)),
        (DensityEmbedding2d, (5, 7), (5, 7)),
    ],
)
def test_names_with_axes_are_the_generic_layer(kind, sizes, generic):
    layer, other = kind(sizes, 2, num_densities=3), DensityEmbedding(generic, 2, num_densities=3)
    other.load_state_dict(layer.state_dict())
    x = torch.rand(2, 2, *generic)
    assert torch.equal(layer(x), other(x))
    assert layer.sizes == generic


@each_family
@pytest.mark.parametrize("sizes", [(6,), (3, 4)], ids=["1d", "2d"])
@pytest.mark.parametrize("adaptive", [False, True], ids=["fixed", "adaptive"])
def test_every_family_against_sums_of_scipys_masses(name, sizes, adaptive):
    if adaptive:
        kind = AdaptiveDensityEmbedding1d if len(sizes) == 1 else AdaptiveDensityEmbedding2d
        layer = located(kind, sizes, family=name).double()
    else:
        kind = DensityEmbedding1d if len(sizes) == 1 else DensityEmbedding2d
        layer = kind(sizes, 2, num_densities=3, family=name).double()
    x = torch.rand(1, 2, *sizes).double()
    loc, scale = (part[0].detach().numpy() for part in layer.placement(x))
    y, x = layer(x)[0].detach(), x[0].numpy()
    for c, k in np.ndindex(2, 3):
        expected = x[c]
        for index, size in enumerate(reversed(sizes)):  # index 0 runs along the last axis
            z = (np.arange(size + 1) - loc[c, k, index]) / scale[c, k, index]
            expected = expected @ np.diff(REFERENCES[name].cdf(z))
        assert y[c, k].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


# What the locator may return


def test_scales_move_with_the_input_where_asked():
    layer = located(AdaptiveDensityEmbedding2d, (5, 7), adaptive_scale=True)
    x = torch.rand(4, 2, 5, 7)
    loc, scale = layer.placement(x)
    assert loc.shape == scale.shape == (4, 2, 3, 2)
    alpha, shift = layer.locator(x).view(4, 2, 2, 3, 2).unbind(1)
    lengths = torch.tensor([7.0, 5.0])
    torch.testing.assert_close(loc, lengths * torch.sigmoid(4 * alpha))
    torch.testing.assert_close(scale, lengths * torch.sigmoid(layer.beta + shift))
    assert scale.std(0).min() > 0


def test_a_locator_that_moves_no_scale_leaves_the_layer_as_it_was():
    layer = located(AdaptiveDensityEmbedding2d, (5, 7), adaptive_scale=True)
    plain = located(AdaptiveDensityEmbedding2d, (5, 7))
    with torch.no_grad():
        layer.beta.copy_(plain.beta)
        layer.locator[1].weight.zero_()[:12] = plain.locator[1].weight
        layer.locator[1].bias.zero_()[:12] = plain.locator[1].bias
    x = torch.rand(4, 2, 5, 7)
    torch.testing.assert_close(layer(x), plain(x))


@pytest.mark.parametrize("shape", [(4, 2, 3, 2), (4, 12), (4, 3, 4)])
def test_any_shape_of_the_locators_numbers_will_do(shape):
    alpha = torch.randn(4, 12)

    class Fixed(nn.Module):
        def forward(self, x):
            return alpha.view(shape)

    layer = AdaptiveDensityEmbedding2d(Fixed(), (5, 7), 2, num_densities=3)
    loc, _ = layer.placement(torch.rand(4, 2, 5, 7))
    expected = torch.tensor([7.0, 5.0]) * torch.sigmoid(4 * alpha.view(4, 2, 3, 2))
    torch.testing.assert_close(loc, expected)


@pytest.mark.parametrize("given", [(4, 11), (4, 24), (3, 16), (48,), ()])
def test_another_count_of_numbers_is_named(given):
    class Fixed(nn.Module):
        def forward(self, x):
            return torch.zeros(given)

    layer = AdaptiveDensityEmbedding2d(Fixed(), (5, 7), 2, num_densities=3)
    message = "Expected 12 numbers for each of 4 inputs.*got .*shape " + re.escape(str(given))
    with pytest.raises(ValueError, match=message):
        layer(torch.zeros(4, 2, 5, 7))


# Longer steps


@pytest.mark.parametrize("kind", [DensityEmbedding1d, DensityEmbedding2d])
def test_location_lr_scale_leaves_the_start(kind):
    torch.manual_seed(1)
    layer = kind(9, 2, num_densities=3)
    torch.manual_seed(1)
    scaled = kind(9, 2, num_densities=3, location_lr_scale=20.0)
    torch.testing.assert_close(scaled.alpha * 20, layer.alpha)
    assert torch.equal(scaled.beta, layer.beta)
    x = torch.rand(2, 2, *layer.sizes)
    torch.testing.assert_close(scaled(x), layer(x))
    torch.testing.assert_close(scaled.receptive_field(), layer.receptive_field())


def test_location_lr_scale_lengthens_adams_steps():
    steps = []
    for factor in (1.0, 20.0):
        torch.manual_seed(1)
        layer = DensityEmbedding2d((5, 7), 2, num_densities=3, location_lr_scale=factor).double()
        before = layer.alpha.detach() * factor, layer.beta.detach().clone()
        layer(torch.rand(2, 2, 5, 7).double()).square().sum().backward()
        torch.optim.Adam(layer.parameters(), lr=1e-3).step()
        after = layer.alpha.detach() * factor, layer.beta.detach()
        steps.append([new - old for new, old in zip(after, before, strict=True)])
    torch.testing.assert_close(steps[1][0], 20 * steps[0][0], rtol=1e-3, atol=0)
    torch.testing.assert_close(steps[1][1], steps[0][1], rtol=1e-3, atol=0)
    assert steps[0][0].abs().min() > 5e-4


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DensityEmbedding1d((5, 7)), r"sizes.*got \(5, 7\)"),
        (lambda: DensityEmbedding2d((5, 7, 9)), r"sizes.*got \(5, 7, 9\)"),
        (lambda: DensityEmbedding((5, 7, 9)), r"one or two axes; got \(5, 7, 9\)"),
        (lambda: DensityEmbedding2d((5, 7.5)), r"sizes.*got \(5, 7.5\)"),
        (lambda: DensityEmbedding2d((5, 7), 1.0), r"in_channels.*got 1.0"),
        (lambda: DensityEmbedding2d((5, 7), 1, num_densities=(3,)), r"num_densities.*got \(3,\)"),
        (
            lambda: DensityEmbedding2d((5, 7), 1, num_densities=(3, 0)),
            r"num_densities.*got \(3, 0\)",
        ),
        (lambda: DensityEmbedding1d(9, 1, num_densities=(3, 3)), r"num_densities.*got \(3, 3\)"),
        (lambda: PixelEmbedding(0), "sizes.*got 0"),
        (lambda: PixelEmbedding("a"), "sizes.*got 'a'"),
        (lambda: DensityEmbedding1d(9, location_lr_scale=0.0), "location_lr_scale; got 0.0"),
        (lambda: DensityEmbedding1d(9, location_lr_scale=math.nan), "location_lr_scale; got nan"),
        (lambda: DensityEmbedding1d(9, location_lr_scale="2"), "location_lr_scale; got '2'"),
        (lambda: located(AdaptiveDensityEmbedding1d, (9,)).gamma(), "pass x"),
        (lambda: located(AdaptiveDensityEmbedding2d, (5, 7)).receptive_field(), "pass x"),
    ],
)
def test_arguments_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_pixel_embedding_is_the_identity():
    for sizes in ((9,), (5, 7)):
        layer = PixelEmbedding(sizes, 2)
        x = torch.rand(3, 2, *sizes)
        assert torch.equal(layer(x), x.flatten(2))
        count = math.prod(sizes)
        assert torch.equal(layer.gamma().reshape(count, count), torch.eye(count))
        assert numbers(layer) == 0


def test_integers_are_refused():
    """They would come back cut to integers."""
    with pytest.raises(ValueError, match=r"floating-point input; got torch\.uint8"):
        DensityEmbedding2d((4, 4))(torch.zeros(1, 1, 4, 4, dtype=torch.uint8))


@pytest.mark.parametrize("frame", ["input", "mass"])
def test_views_that_torch_negates_late_are_inputs(frame):
    """The imaginary part of a conjugate, as after a Fourier transform."""
    x = torch.rand(2, 1, 6, 7)
    layer = DensityEmbedding((6, 7), num_densities=3, frame=frame)
    for view in (torch.complex(x, x).conj().imag, torch._neg_view(x)):
        assert view.is_neg()
        torch.testing.assert_close(layer(view), layer(-x))
