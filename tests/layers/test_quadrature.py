import copy
import itertools
import math

import pytest
import scipy.integrate
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call, vmap

from densembed.functional.densities import density
from densembed.functional.gamma import gamma as closed_form
from densembed.functional.gamma import outer
from densembed.layers import DensityEmbedding, QuadratureEmbedding
from densembed.layers.quadrature import gamma_by_quadrature, legendre_rule


class Placed(nn.Module):
    """Logistic densities at learned places, (C, K), one place and scale for every axis."""

    def __init__(self, loc, scale):
        super().__init__()
        self.loc = nn.Parameter(torch.as_tensor(loc).double())
        self.scale = nn.Parameter(torch.as_tensor(scale).double())

    def forward(self, t, u=None):
        phi = self._axis(t)
        return phi if u is None else phi * self._axis(u)

    def _axis(self, t):
        trailing = (..., *[None] * t.dim())
        s = self.scale[trailing]
        return density("logistic").pdf((t - self.loc[trailing]) / s) / s


class Tilted(nn.Module):
    """A Gaussian along a slanted line: not separable, and with no closed form on a pixel."""

    def forward(self, t, u):
        return torch.exp(-((t - u) ** 2) - (t + u - 6) ** 2 / 8)[None, None]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_rule_is_exact_to_its_degree(order):
    degree = 2 * order - 1
    got = gamma_by_quadrature(lambda t: t**degree, (4,), order=order, dtype=torch.float64)
    n = torch.arange(1, 5).double()
    assert torch.allclose(got, (n ** (degree + 1) - (n - 1) ** (degree + 1)) / (degree + 1))
    missed = gamma_by_quadrature(
        lambda t: t ** (degree + 1), (4,), order=order, dtype=torch.float64
    )
    assert not torch.allclose(missed, (n ** (degree + 2) - (n - 1) ** (degree + 2)) / (degree + 2))


def test_approaches_the_closed_form():
    loc, scale = torch.tensor([[1.3, 4.0, 9.2]]).double(), torch.tensor([[0.5, 1.0, 4.0]]).double()
    exact = closed_form(density("logistic"), loc, scale, 8)
    errors = [
        (gamma_by_quadrature(Placed(loc, scale), (8,), order=order, dtype=torch.float64) - exact)
        .abs()
        .max()
        .item()
        for order in (1, 2, 4, 8, 16)
    ]
    assert all(after < before / 5 for before, after in itertools.pairwise(errors))
    assert errors[-1] < 1e-10


def test_misses_a_narrow_density_that_the_closed_form_sees():
    loc, scale = torch.tensor([[3.5]]).double(), torch.tensor([[0.01]]).double()
    exact = closed_form(density("logistic"), loc, scale, 8)
    got = gamma_by_quadrature(Placed(loc, scale), (8,), order=8, dtype=torch.float64)
    assert exact.sum().item() == pytest.approx(1)
    assert got.sum().item() < 0.1


def test_evaluates_order_points_a_pixel():
    shapes = []

    def pdf(t, u):
        shapes.append(torch.broadcast_shapes(t.shape, u.shape))
        return (t + u)[None, None]

    gamma_by_quadrature(pdf, (3, 5), order=4)
    assert shapes == [(12, 20)]  # the closed form: 4 + 6 edges


def test_axes_are_rows_then_columns():
    got = gamma_by_quadrature(lambda t, u: t + 100 * u, (2, 3), order=2, dtype=torch.float64)
    assert torch.allclose(got, torch.tensor([[50.5, 51.5, 52.5], [150.5, 151.5, 152.5]]).double())


def test_equals_scipy_for_a_density_that_is_not_separable():
    got = gamma_by_quadrature(Tilted(), (6, 5), order=10, dtype=torch.float64)[0, 0]
    for m, n in [(0, 0), (2, 3), (5, 1)]:
        expected, _ = scipy.integrate.dblquad(
            lambda u, t: math.exp(-((t - u) ** 2) - (t + u - 6) ** 2 / 8), n, n + 1, m, m + 1
        )
        assert got[m, n].item() == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("sizes", [(7,), (7, 7)])
def test_layer_equals_the_density_embedding(sizes):
    torch.manual_seed(0)
    embedding = DensityEmbedding(sizes, 2, num_densities=3).double()
    with torch.no_grad():
        # One place for both axes, as `Placed` has it.
        embedding.alpha.copy_(embedding.alpha[..., :1].expand_as(embedding.alpha))
        embedding.beta.copy_(embedding.beta[..., :1].expand_as(embedding.beta))
    loc, scale = (part[0, ..., 0].detach() for part in embedding.placement())
    layer = QuadratureEmbedding(Placed(loc, scale), sizes, 2, order=16).double()
    x = torch.randn(4, 2, *sizes).double()
    assert torch.allclose(layer(x), embedding(x), atol=1e-8)
    assert torch.allclose(layer.gamma(), embedding.gamma(), atol=1e-8)
    assert torch.allclose(
        layer.receptive_field(resolution=2), embedding.receptive_field(None, resolution=2)
    )
    expected = outer([closed_form(density("logistic"), loc, scale, n) for n in sizes])
    assert torch.allclose(layer.gamma()[0], expected, atol=1e-8)


def test_gradients_reach_the_density_and_the_input():
    layer = QuadratureEmbedding(Placed([[1.0, 3.0]], [[0.7, 1.5]]), (5,), 2).double()
    x = torch.randn(2, 2, 5).double().requires_grad_()
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def call(x, loc, scale):
        return functional_call(layer, {"pdf.loc": loc, "pdf.scale": scale}, (x,))

    assert gradcheck(call, (x, *values))


def test_vmap_compile_and_batch_of_none():
    layer = QuadratureEmbedding(Placed([[1.0, 3.0]], [[0.7, 1.5]]), (5, 4), 1, order=3).double()
    x = torch.randn(2, 1, 5, 4).double()
    members = {name: torch.stack([p, p + 0.1]) for name, p in layer.named_parameters()}
    together = vmap(lambda p: functional_call(layer, p, (x,)))(members)
    assert torch.allclose(together[0], layer(x))
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x))
    assert layer(x[:0]).shape == (0, 1, 2)


def test_follows_to_device_and_dtype():
    layer = QuadratureEmbedding(Placed([[1.0, 3.0]], [[0.7, 1.5]]), (5, 4), order=3)
    assert layer.to(torch.float32).gamma().dtype == torch.float32
    x = torch.empty(2, 1, 5, 4, device="meta")
    assert layer.to("meta")(x).device.type == "meta"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["module", "function"])
def test_nodes_have_their_places_in_half_precision(kind, dtype):
    """On a long axis, whose nodes half precision does not tell apart."""
    pdf = Placed([[704.0, 944.0]], [[4.0, 8.0]]).float()  # numbers that both dtypes have
    layer = QuadratureEmbedding(pdf if kind == "module" else lambda t: pdf(t), 1000).to(dtype)
    edges = torch.arange(1001, dtype=torch.float64)[:, None]
    loc, scale = torch.tensor([704.0, 944.0]), torch.tensor([4.0, 8.0])
    masses = torch.sigmoid((edges - loc) / scale).diff(dim=0).T
    torch.testing.assert_close(layer.gamma()[0, 0].double(), masses, rtol=0, atol=1e-6)
    height = layer.receptive_field(resolution=2)[0, 0].double().view(2, 1000, 2).mean(-1)
    torch.testing.assert_close(height, masses, rtol=0, atol=1e-3)
    x = (torch.arange(1000) % 7).to(dtype)[None, None]
    y = layer(x)
    assert y.dtype == dtype
    torch.testing.assert_close(y[0, 0].double(), masses @ x[0, 0].double(), rtol=0.01, atol=0)
    if kind == "module":
        y.sum().backward()
        assert pdf.loc.grad.dtype == dtype
        assert pdf.loc.grad.isfinite().all()


def test_a_network_is_a_density_in_half_precision():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 3), nn.Softplus())

        def forward(self, t):
            return self.layers(t[:, None] / 10).T[None]

    layer = QuadratureEmbedding(Network(), 10).bfloat16()
    wide = copy.deepcopy(layer).float()
    torch.testing.assert_close(layer.gamma(), wide.gamma())


def test_the_nodes_of_a_function_leave_the_device_meta():
    def pdf(t):
        return torch.exp(-((t - 3) ** 2)).expand(1, 2, -1)

    with torch.device("meta"):
        network = nn.Sequential(QuadratureEmbedding(pdf, 9), nn.Flatten(), nn.Linear(2, 3))
    state = nn.Sequential(nn.Identity(), nn.Identity(), nn.Linear(2, 3)).state_dict()
    network.load_state_dict(state, assign=True)
    x = torch.rand(4, 1, 9)
    wanted = nn.functional.linear(QuadratureEmbedding(pdf, 9)(x).flatten(1), *state.values())
    torch.testing.assert_close(network(x), wanted)


def test_errors():
    with pytest.raises(ValueError, match="order of at least 1; got 0"):
        legendre_rule(0)
    with pytest.raises(ValueError, match="sizes of one or two axes; got"):
        QuadratureEmbedding(Tilted(), (2, 2, 2))
    with pytest.raises(ValueError, match=r"\(batch, 1, 5, 4\); got \(1, 1, 4, 5\)"):
        QuadratureEmbedding(Tilted(), (5, 4))(torch.zeros(1, 1, 4, 5))
    with pytest.raises(ValueError, match=r"Expected densities of shape \(2 or 1, K, \*points\)"):
        QuadratureEmbedding(lambda t: t, (5,), 2).gamma()
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 8\) from the pdf; got \(1, 1, 1\)"):
        QuadratureEmbedding(lambda t: torch.ones(1, 1, 1), (1,)).gamma()


def test_autocast_does_not_round_the_masses():
    def pdf(t):
        return torch.exp(-((t - 2) ** 2)).expand(1, 1, -1)

    expected = gamma_by_quadrature(pdf, (5,))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(gamma_by_quadrature(pdf, (5,)), expected)
