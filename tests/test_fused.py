"""The fast paths against the plain ones: values, first and second gradients, members."""

import pytest
import torch
from torch.func import vmap

from densembed import fused, gamma
from densembed.densities import FAMILIES, Logistic

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
    fast, plain = fused.moving(x, loc, scale, family), gamma.embed_plain(x, loc, scale, family)
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
    fast, plain = fused.fixed(x, loc, scale, family), gamma.embed_plain(x, loc, scale, family)
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
    fast, plain = fused.fold(*inputs, family, sizes), gamma.fold_plain(*inputs, family, sizes)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    for got, wanted in zip(gradients(fast, inputs), gradients(plain, inputs), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


def test_fold_of_shared_densities_equals_plain():
    weight, _, _ = fold_inputs((5, 7), 3)
    _, loc, scale = fold_inputs((5, 7), 1)
    fast = gamma.fold(weight, loc, scale, Logistic(), (5, 7))
    plain = gamma.fold_plain(weight, loc, scale, Logistic(), (5, 7))
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
        plain = gradients(gamma.embed_plain(*member, Logistic()), member)
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
    assert torch.autograd.gradcheck(lambda *p: fused.fold(*p, Logistic(), (4, 5)), inputs)
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
            fused.moving(*(stacked[k] if dims[k] is None else stacked[k][m] for k in range(3)),
                         Logistic())
            for m in range(4)
        ]
    )  # fmt: skip
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
    plain = gamma.embed_plain(x, loc, scale, Logistic())
    with_gradient = x.clone().requires_grad_()
    value = gamma.embed(with_gradient, loc, scale, Logistic())
    torch.testing.assert_close(value, plain)
    assert torch.autograd.grad(value.sum(), with_gradient)[0].abs().sum() > 0
    truncated = gamma.embed(x, loc, scale, Logistic(), truncate=True)
    torch.testing.assert_close(
        truncated, gamma.embed_plain(x, loc, scale, Logistic(), truncate=True)
    )
    half = [part.detach().to(torch.bfloat16) for part in (x, loc, scale)]
    assert gamma.embed(*half, Logistic()).dtype == torch.bfloat16
