"""The fast paths against the plain ones: values, first and second gradients, members."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import vmap

from densembed.functional import action, fused
from densembed.functional.densities import FAMILIES, Logistic
from densembed.layers import AdaptiveDensityEmbedding, DensityEmbedding
from densembed.layers.embedding import bounded_loc, bounded_scale, scale_unit

SHAPES = [(1, 1, 4, 4), (3, 2, 5, 7), (2, 3, 7, 4)]


def moving_inputs(shape, densities=6, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def rand(*size):
        return torch.rand(*size, generator=generator, dtype=torch.float64).to(dtype)

    batch, channels, height, width = shape
    lengths = torch.tensor([width, height], dtype=dtype)
    x = rand(*shape)
    loc = rand(batch, channels, densities, 2) * lengths * 1.4 - 0.2 * lengths
    scale = 0.2 + 3 * rand(1, channels, densities, 2)
    return x, loc.requires_grad_(), scale.requires_grad_()


def fold_inputs(sizes, channels, densities=6, outputs=4):
    _, loc, scale = moving_inputs((1, channels, *sizes), densities)
    weight = torch.randn(outputs, channels, densities, dtype=torch.float64, requires_grad=True)
    return weight, loc.detach()[0].requires_grad_(), scale.detach()[0].requires_grad_()


def gradients(value, wanted):
    cotangent = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)
    return torch.autograd.grad(value, wanted, cotangent, retain_graph=True)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_moving_equals_plain(family, shape):
    x, loc, scale = moving_inputs(shape)
    fast, plain = fused.moving(x, loc, scale, family), action.embed_plain(x, loc, scale, family)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    for got, wanted in zip(
        gradients(fast, (loc, scale)), gradients(plain, (loc, scale)), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(fused.moving(x, loc, scale, family), plain.detach())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shared", [False, True])
def test_fixed_equals_plain(family, shape, shared):
    x, loc, scale = moving_inputs(shape)
    groups = 1 if shared else shape[1]
    loc, scale = (p.detach()[0, :groups].requires_grad_() for p in (loc, scale))
    fast, plain = fused.fixed(x, loc, scale, family), action.embed_plain(x, loc, scale, family)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    for got, wanted in zip(
        gradients(fast, (loc, scale)), gradients(plain, (loc, scale)), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("sizes", [(4, 4), (5, 7), (7, 4)])
@pytest.mark.parametrize("channels", [1, 3])
def test_fold_equals_plain(family, sizes, channels):
    inputs = fold_inputs(sizes, channels)
    fast, plain = fused.fold(*inputs, family, sizes), action.fold_plain(*inputs, family, sizes)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    for got, wanted in zip(gradients(fast, inputs), gradients(plain, inputs), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


def test_fold_of_shared_densities_equals_plain():
    weight, _, _ = fold_inputs((5, 7), 3)
    _, loc, scale = fold_inputs((5, 7), 1)
    fast = action.fold(weight, loc, scale, Logistic(), (5, 7))
    plain = action.fold_plain(weight, loc, scale, Logistic(), (5, 7))
    torch.testing.assert_close(fast, plain)
    wanted = (weight, loc, scale)
    for got, expected in zip(gradients(fast, wanted), gradients(plain, wanted), strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("act", ["moving", "fixed"])
def test_the_pictures_own_gradient_equals_plain(act, shape):
    """As for the maps of layers before: alone, and with the members along an axis."""
    members = [moving_inputs(shape, seed=seed) for seed in range(2)]
    if act == "fixed":
        members = [(x, *(p.detach()[0].requires_grad_() for p in rest)) for x, *rest in members]
    leaves = [[part.detach().requires_grad_() for part in member] for member in members]
    fast = [getattr(fused, act)(*member, Logistic()) for member in leaves]
    stacked = [torch.stack(parts) for parts in zip(*leaves, strict=True)]
    together = vmap(lambda *p: getattr(fused, act)(*p, Logistic()))(*stacked)
    for k, member in enumerate(leaves):
        plain = gradients(action.embed_plain(*member, Logistic()), member)
        for value in (fast[k], together[k]):
            for got, wanted in zip(gradients(value, member), plain, strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


def test_gradients_by_finite_differences():
    x, loc, scale = moving_inputs((2, 1, 4, 5), 3)
    assert torch.autograd.gradcheck(lambda *p: fused.moving(x, *p, Logistic()), (loc, scale))
    assert torch.autograd.gradgradcheck(lambda *p: fused.moving(x, *p, Logistic()), (loc, scale))
    whole = (x.clone().requires_grad_(), loc, scale)
    assert torch.autograd.gradgradcheck(lambda *p: fused.moving(*p, Logistic()), whole)
    still = [p.detach()[0].requires_grad_() for p in (loc, scale)]
    assert torch.autograd.gradcheck(lambda *p: fused.fixed(x, *p, Logistic()), still)
    assert torch.autograd.gradgradcheck(lambda *p: fused.fixed(x, *p, Logistic()), still)
    inputs = fold_inputs((4, 5), 2, 3, 2)
    assert torch.autograd.gradcheck(
        lambda *p: fused.fold(*p, Logistic(), (4, 5)), inputs, check_forward_ad=True
    )
    assert torch.autograd.gradgradcheck(lambda *p: fused.fold(*p, Logistic(), (4, 5)), inputs)


@pytest.mark.parametrize("shared", ["nothing", "x", "scale"])
def test_members_of_moving_equal_one_at_a_time(shared):
    parts = [moving_inputs((3, 2, 5, 7), seed=seed) for seed in range(4)]
    dims = tuple(None if name == shared else 0 for name in ("x", "loc", "scale"))
    stacked = [
        parts[0][k] if dims[k] is None else torch.stack([part[k] for part in parts])
        for k in range(3)
    ]
    together = vmap(lambda *p: fused.moving(*p, Logistic()), in_dims=dims)(*stacked)
    alone = torch.stack(
        [
            fused.moving(
                *(stacked[k] if dims[k] is None else stacked[k][m] for k in range(3)), Logistic()
            )
            for m in range(4)
        ]
    )
    torch.testing.assert_close(together, alone)
    leaves = [part for parts_ in parts for part in parts_ if part.requires_grad]
    used = [leaf for leaf in leaves if shared != "scale" or leaf.dim() == 4]
    for got, wanted in zip(
        torch.autograd.grad(together.square().sum(), used, allow_unused=True),
        torch.autograd.grad(alone.square().sum(), used, allow_unused=True),
        strict=True,
    ):
        assert (got is None) == (wanted is None)
        if got is not None:
            torch.testing.assert_close(got, wanted)


def test_members_of_fold_equal_one_at_a_time():
    members = [fold_inputs((5, 7), 2) for _ in range(3)]
    stacked = [torch.stack(parts) for parts in zip(*members, strict=True)]
    together = vmap(lambda *p: fused.fold(*p, Logistic(), (5, 7)))(*stacked)
    alone = torch.stack([fused.fold(*member, Logistic(), (5, 7)) for member in members])
    torch.testing.assert_close(together, alone)
    leaves = [part for member in members for part in member]
    for got, wanted in zip(gradients(together, leaves), gradients(alone, leaves), strict=True):
        torch.testing.assert_close(got, wanted)


def test_float32_keeps_an_absolute_accuracy():
    double = moving_inputs((8, 1, 28, 28), 40)
    single = [part.detach().float() for part in double]
    single = [single[0], *(part.requires_grad_() for part in single[1:])]
    exact, rounded = (fused.moving(*parts, Logistic()) for parts in (double, single))
    torch.testing.assert_close(rounded.double(), exact, rtol=0, atol=2e-5)
    for got, wanted in zip(
        gradients(rounded, single[1:]), gradients(exact, double[1:]), strict=True
    ):
        assert (got - wanted).norm() / wanted.norm() < 2e-5


@pytest.mark.parametrize("beta", [-8, -12, -17])
@pytest.mark.parametrize("act", [fused.moving, fused.fixed, fused.moving_value])
def test_narrow_densities_beside_an_edge_are_exact(act, beta):
    """t/s − μ/s lost up to a third of a mass."""
    scale = torch.full((1, 500, 2), 28 * math.exp(beta))
    loc = torch.randint(1, 28, scale.shape) + scale * torch.randn(scale.shape)
    x = torch.rand(1, 1, 28, 28).round()
    if act is not fused.fixed:
        loc, scale = loc[None], scale[None]
    with torch.no_grad():
        exact = act(x.double(), loc.double(), scale.double(), Logistic())
        plain = action.embed_plain(x.double(), loc.double(), scale.double(), Logistic())
        torch.testing.assert_close(exact, plain)
    rounded = act(x, loc, scale, Logistic())
    torch.testing.assert_close(rounded.double(), exact, rtol=0, atol=1e-6)


def test_a_fold_of_large_weights_keeps_its_accuracy():
    """Of many wide densities whose weights cancel, as training makes them."""
    torch.manual_seed(0)
    sizes, count = (28, 28), 15
    grid = torch.linspace(0, 28, count, dtype=torch.float64)
    loc = torch.cartesian_prod(grid, grid)[None]
    scale = torch.full_like(loc, 2.0)
    weight = 50 * torch.randn(10, 1, count**2, dtype=torch.float64)
    exact = action.fold_plain(weight, loc, scale, Logistic(), sizes)
    single = [part.float() for part in (weight, loc, scale)]
    fast, plain = (
        (fold(*single, Logistic(), sizes) - exact).square().mean().sqrt()
        for fold in (fused.fold, action.fold_plain)
    )
    assert fast <= 10 * plain  # 300 times, if the sum were differenced


@pytest.mark.parametrize("scale", [1e-2, 1e4])
@pytest.mark.parametrize("loc", [-1e6, 0.0, 14.0, 1e6])
def test_extremes_are_finite(scale, loc):
    x = torch.rand(2, 1, 28, 28)
    loc = torch.full((2, 1, 3, 2), loc, requires_grad=True)
    scale = torch.full((1, 1, 3, 2), scale, requires_grad=True)
    value = fused.moving(x, loc, scale, Logistic())
    assert value.isfinite().all()
    assert all(part.isfinite().all() for part in gradients(value, (loc, scale)))


def test_where_the_fast_path_does_not_apply():
    x, loc, scale = moving_inputs((2, 1, 4, 5))
    plain = action.embed_plain(x, loc, scale, Logistic())
    with_gradient = x.clone().requires_grad_()
    value = action.embed(with_gradient, loc, scale, Logistic())
    torch.testing.assert_close(value, plain)
    assert torch.autograd.grad(value.sum(), with_gradient)[0].abs().sum() > 0
    truncated = action.embed(x, loc, scale, Logistic(), truncate=True)
    torch.testing.assert_close(
        truncated, action.embed_plain(x, loc, scale, Logistic(), truncate=True)
    )
    half = [part.detach().to(torch.bfloat16) for part in (x, loc, scale)]
    assert action.embed(*half, Logistic()).dtype == torch.bfloat16


# Densities as narrow and as far out as parameters can place them


logits = st.one_of(
    st.floats(-3e38, 3e38), st.floats(-120, 120), st.sampled_from([-48.0, -90.0, 0.0])
)
extreme = settings(max_examples=25, derandomize=True)


def near_an_edge(loc, scale):
    """Whether the rounding of a location decides what a narrow density sees."""
    gap = (loc - loc.round()).abs()
    spacing = 64 * torch.finfo(loc.dtype).eps * loc.abs().clamp_min(1)
    return ((gap > 0) & (gap < spacing) & (scale < 1e-2)).any().item()


def placed_at(alpha, beta, family, dtype, lengths=(7, 5)):
    sizes = torch.tensor(lengths, dtype=dtype)
    loc = bounded_loc(alpha, sizes)
    return loc, bounded_scale(beta, sizes, scale_unit(family))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@extreme
@given(st.lists(st.tuples(logits, logits), min_size=3, max_size=3))
def test_any_parameters_are_finite_and_equal_to_plain(family, dtype, drawn):
    """α and β of three densities anywhere: moving, fixed and folded, values and gradients."""
    x = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(0), dtype=dtype)
    logit = torch.tensor(drawn, dtype=dtype)[None, :, :, None].expand(1, 3, 2, 2)
    alpha, beta = logit[:, :, 0].clone().requires_grad_(), logit[:, :, 1].clone().requires_grad_()
    loc, scale = placed_at(alpha, beta, family, dtype)
    assume(not near_an_edge(loc.detach(), scale.detach()))
    z = (torch.arange(8)[:, None, None, None] - loc.detach()) / scale.detach()
    if family.name == "uniform":  # its pdf jumps, and roundings differ on which side an edge is
        assume((z.abs() - 1).abs().min() > 1e-4)
    weight = torch.linspace(-1, 1, 6, dtype=dtype).view(2, 1, 3).requires_grad_()
    several = loc[None].expand(2, 1, 3, 2)
    for fast, plain, by in (
        (
            fused.moving(x, several, scale[None], family),
            action.embed_plain(x, several, scale[None], family),
            (alpha, beta),
        ),
        (
            fused.fixed(x, loc, scale, family),
            action.embed_plain(x, loc, scale, family),
            (alpha, beta),
        ),
        (
            fused.fold(weight, loc, scale, family, (5, 7)),
            action.fold_plain(weight, loc, scale, family, (5, 7)),
            (weight, alpha, beta),
        ),
    ):
        atol = 1e-4 if dtype == torch.float32 else 1e-9
        torch.testing.assert_close(fast, plain, rtol=1e-3, atol=atol)
        got, wanted = gradients(fast, by), gradients(plain, by)
        for a, b in zip(got, wanted, strict=True):
            assert a.isfinite().all()
            assert b.isfinite().all()
            torch.testing.assert_close(a, b, rtol=5e-3, atol=20 * atol)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beta", [-48.0, -90.0, -400.0, -3e38, 40.0, 3e38])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layers_are_finite_at_any_beta(family, beta, dtype):
    """The narrow limit is a point mass: the pixel at the location, whose value has no slope."""
    torch.manual_seed(0)
    for sizes in ((9,), (5, 7)):
        for options in ({}, {"shared": True}, {"truncate": True}, {"moving": True}):
            moving = options.get("moving", False)
            if moving:
                locator = nn.Sequential(
                    nn.Flatten(), nn.Linear(2 * math.prod(sizes), 6 * len(sizes))
                )
                layer = AdaptiveDensityEmbedding(locator, sizes, 2, num_densities=3, family=family)
            else:
                layer = DensityEmbedding(sizes, 2, num_densities=3, family=family, **options)
            layer.to(dtype).beta.data.fill_(beta)
            x = torch.rand(2, 2, *sizes, dtype=dtype)
            y = layer(x)
            y.sum().backward()
            assert all(p.grad.isfinite().all() for p in layer.parameters())
            field = layer.receptive_field(x)
            assert field.isfinite().all()
            if beta > 0:
                assert y.isfinite().all()
                continue
            loc = layer.placement(x)[0].long().expand(2, 2, 3, len(sizes))
            index = [loc[..., len(sizes) - 1 - axis] for axis in range(len(sizes))]
            n, c = torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")
            torch.testing.assert_close(y, x[(n[..., None], c[..., None], *index)])
            assert layer.beta.grad.abs().max() < 1e-6
