"""Γ against SciPy, numerical integrals and brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from densembed.functional.action import embed
from densembed.functional.densities import FAMILIES, density
from densembed.functional.gamma import axes_gamma, gamma, interval_mass, outer
from tests.functional.test_densities import REFERENCES, each_family

LOC = torch.tensor([-30.4, -0.6, 0.0, 2.3, 4.5, 9.81, 25.2], dtype=torch.float64)
SCALE = torch.tensor([0.05, 0.37, 1.3, 6.1, 90.0, 1e4], dtype=torch.float64)


def placed(*shape: int, size: float = 7.0, dtype=torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(sum(shape))
    loc = size * torch.rand(shape, generator=generator, dtype=dtype)
    return loc, 0.3 + 3 * torch.rand(shape, generator=generator, dtype=dtype)


@each_family
def test_gamma_is_the_mass_of_every_pixel(name):
    loc, scale = LOC[:, None], SCALE
    got = gamma(FAMILIES[name], loc, scale, 9)
    assert got.shape == (len(LOC), len(SCALE), 9)
    z = ((torch.arange(9) - loc[..., None]) / scale[:, None]).numpy()
    width = np.broadcast_to(1 / scale[:, None].numpy(), z.shape)
    expected = REFERENCES[name].mass(z.ravel(), width.ravel()).reshape(z.shape)
    np.testing.assert_allclose(got, expected, 1e-8, 1e-40)


@each_family
def test_rows_sum_to_the_mass_in_the_domain(name):
    cdf = REFERENCES[name].cdf
    rows = gamma(FAMILIES[name], LOC[:, None], SCALE, 9).sum(-1)
    ends = [((end - LOC[:, None]) / SCALE).numpy() for end in (0, 9)]
    np.testing.assert_allclose(rows, cdf(ends[1]) - cdf(ends[0]), 0, 1e-12)


@pytest.mark.parametrize("name", ["logistic", "hypsecant"])
def test_two_axes_are_double_integrals(name):
    """φ(t, u): t along the columns with index 0 of loc and scale, u along the rows with 1."""
    loc = torch.tensor([[1.2, 2.9]], dtype=torch.float64)
    scale = torch.tensor([[0.4, 1.1]], dtype=torch.float64)
    dense = outer(axes_gamma(FAMILIES[name], loc, scale, (5, 3)))
    assert dense.shape == (1, 5, 3)
    pdf = REFERENCES[name].scipy.pdf

    def phi(u, t):
        return pdf((t - 1.2) / 0.4) / 0.4 * pdf((u - 2.9) / 1.1) / 1.1

    for m, n in ((0, 0), (3, 1), (4, 2)):
        expected, _ = integrate.dblquad(phi, n, n + 1, m, m + 1, epsabs=1e-10, epsrel=1e-8)
        assert dense[0, m, n].item() == pytest.approx(expected, rel=1e-7)


def test_outer_of_one_two_and_three_axes():
    a, b, c = torch.rand(2, 3, 4), torch.rand(2, 3, 5), torch.rand(2, 3, 6)
    assert outer([a]) is a
    torch.testing.assert_close(outer([a, b]), torch.einsum("nkx,nky->nkxy", a, b))
    torch.testing.assert_close(outer([a, b, c]), torch.einsum("nkx,nky,nkz->nkxyz", a, b, c))


@each_family
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_truncated_rows_sum_to_one(name, dtype):
    rows = gamma(FAMILIES[name], LOC[:, None].to(dtype), SCALE.to(dtype), 9, truncate=True)
    atol = 3e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(rows.sum(-1), torch.ones_like(rows[..., 0]), rtol=0, atol=atol)
    assert (rows >= 0).all()


def test_truncated_rows_sum_to_one_down_to_the_least_numbers():
    """Where the pixels' masses turn subnormal, the density counts as one without mass."""
    loc = -torch.linspace(20, 120, 2001)
    rows = gamma(FAMILIES["logistic"], loc, torch.ones(()), 12, truncate=True)
    torch.testing.assert_close(rows.sum(-1), torch.ones(2001), rtol=0, atol=3e-5)
    assert rows[0, 0] > 0.6
    torch.testing.assert_close(rows[-1], torch.full((12,), 1 / 12))


@pytest.mark.parametrize("name", ["uniform", "triangular", "raisedcosine", "gaussian"])
def test_truncated_density_without_mass_in_the_domain_is_uniform(name):
    loc = torch.tensor([-50.0, 1.7, 1e6], requires_grad=True)
    rows = gamma(FAMILIES[name], loc, torch.ones(3), 8, truncate=True)
    torch.testing.assert_close(rows[::2], torch.full((2, 8), 1 / 8))
    assert rows[1].max() > 0.3
    (slope,) = torch.autograd.grad(rows[:, 2].sum(), loc)
    assert slope[0] == slope[2] == 0
    assert slope[1] != 0


@each_family
@pytest.mark.parametrize("truncate", [False, True])
def test_gradients_match_finite_differences(name, truncate):
    family = FAMILIES[name]
    loc = torch.tensor([[-0.63], [1.37], [2.81]], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor([0.77, 2.21], dtype=torch.float64, requires_grad=True)

    def rows(loc, scale):
        return gamma(family, loc, scale, 4, truncate=truncate)

    assert torch.autograd.gradcheck(rows, (loc, scale))
    assert torch.autograd.gradgradcheck(rows, (loc, scale))


@each_family
def test_embed_has_gradients_for_signal_and_densities(name):
    x = torch.rand(2, 1, 3, 2, dtype=torch.float64, requires_grad=True)
    loc = torch.tensor([[[0.37, 1.21], [1.73, 2.57]]], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor([[[0.71, 1.13], [2.39, 0.83]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *args: embed(*args, FAMILIES[name]), (x, loc, scale))


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("sizes", [(6,), (5, 7), (7, 5)])
@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (3, 3), (3, 1)])
@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("adaptive", [False, True])
def test_embed_is_the_sum_over_the_dense_gamma(adaptive, batch, channels, groups, sizes, truncate):
    family = FAMILIES["logistic"]
    x = torch.rand(batch, channels, *sizes, dtype=torch.float64)
    lead = (batch, groups) if adaptive else (groups,)
    loc, scale = placed(*lead, 4, len(sizes))
    got = embed(x, loc, scale, family, truncate=truncate)
    assert got.shape == (batch, channels, 4)
    if not adaptive:
        loc, scale = (p.expand(batch, *p.shape) for p in (loc, scale))
    loc, scale = (p.expand(batch, channels, 4, len(sizes)) for p in (loc, scale))
    columns = gamma(family, loc[..., 0], scale[..., 0], sizes[-1], truncate=truncate)
    if len(sizes) == 1:
        expected = torch.einsum("nct,nckt->nck", x, columns)
    else:
        rows = gamma(family, loc[..., 1], scale[..., 1], sizes[0], truncate=truncate)
        expected = torch.einsum("ncut,ncku,nckt->nck", x, rows, columns)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)


@each_family
def test_interval_mass_between_uneven_edges(name):
    edges = torch.tensor([-2.0, 0.25, 0.25, 3.0, 11.0], dtype=torch.float64)
    loc, scale = torch.tensor(1.3, dtype=torch.float64), torch.tensor(1.7, dtype=torch.float64)
    got = interval_mass(FAMILIES[name], loc, scale, edges)
    cdf = REFERENCES[name].cdf((edges.numpy() - 1.3) / 1.7)
    np.testing.assert_allclose(got, np.diff(cdf), 0, 1e-12)


@each_family
def test_vmap_over_locations(name):
    family = FAMILIES[name]
    loc, scale = placed(3, 4)

    def rows(loc, scale):
        return gamma(family, loc, scale, 7, truncate=True)

    stacked = torch.func.vmap(rows, in_dims=(0, None))(loc, scale[0])
    torch.testing.assert_close(stacked, torch.stack([rows(one, scale[0]) for one in loc]))

    def loss(loc, scale):
        return rows(loc, scale).square().sum()

    each = torch.func.vmap(torch.func.grad(loss, (0, 1)))(loc, scale)
    loc, scale = loc.requires_grad_(), scale.requires_grad_()
    together = torch.autograd.grad(loss(loc, scale), (loc, scale))
    torch.testing.assert_close(each, together)


@each_family
@pytest.mark.parametrize("truncate", [False, True])
def test_extreme_placements_stay_finite(name, truncate):
    size = 28
    loc = [-1e6, -1e3, -90.0, -13.0, -1.0, 0.0, 13.3, 14.0, 28.0, 37.0, 120.0, 1e6]
    loc = torch.tensor(loc)[:, None].requires_grad_()
    scale = torch.tensor([1e-2, 0.1, 0.5, 1.0, 3.0, 30.0, 1e3, 1e4], requires_grad=True)
    rows = gamma(FAMILIES[name], loc, scale, size, truncate=truncate)
    assert ((rows >= 0) & (rows <= 1)).all()
    assert (rows.sum(-1) <= 1 + 1e-4).all()
    signal = torch.linspace(-1, 1, size).sin() + torch.arange(size) % 3
    slopes = torch.autograd.grad((rows @ signal).square().sum(), (loc, scale))
    assert all(slope.isfinite().all() for slope in slopes)


@each_family
def test_wide_densities_in_float32(name):
    """Pixels of a density 1e4 pixels wide: the difference of two cdfs would be noise."""
    loc, scale = torch.tensor([-900.0, 3.0, 2100.0]), torch.tensor(1e4)
    got = gamma(FAMILIES[name], loc, scale, 28)
    expected = gamma(FAMILIES[name], loc.double(), scale.double(), 28)
    np.testing.assert_allclose(got, expected, 1e-6)


placements = {
    "name": st.sampled_from(sorted(FAMILIES)),
    "loc": st.floats(-20, 30),
    "scale": st.floats(0.05, 1e3),
}
few = settings(max_examples=60, derandomize=True)


def row(name: str, loc: float, scale: float, size: int) -> torch.Tensor:
    loc = torch.tensor(loc, dtype=torch.float64)
    return gamma(FAMILIES[name], loc, torch.full_like(loc, scale), size)


@few
@given(**placements)
def test_moving_a_density_by_a_pixel_moves_its_row(name, loc, scale):
    moved = row(name, loc + 1, scale, 11)
    torch.testing.assert_close(moved[1:], row(name, loc, scale, 10), rtol=1e-9, atol=1e-11)


@few
@given(**placements)
def test_mirrored_density_has_the_mirrored_row(name, loc, scale):
    mirrored = row(name, 10 - loc, scale, 10).flip(-1)
    torch.testing.assert_close(mirrored, row(name, loc, scale, 10), rtol=1e-9, atol=1e-11)


@few
@given(**placements, size=st.integers(1, 40))
def test_row_is_a_measure_of_at_most_one(name, loc, scale, size):
    entries = row(name, loc, scale, size)
    assert entries.shape == (size,)
    assert (entries >= 0).all()
    assert entries.sum() <= 1 + 1e-12


@few
@given(**placements, factor=st.floats(0.1, 10))
def test_row_depends_on_lengths_in_scales_alone(name, loc, scale, factor):
    """Pixels, location and scale stretched together leave the masses as they are."""
    edges = torch.arange(8, dtype=torch.float64)
    loc, scale = torch.tensor(loc, dtype=torch.float64), torch.tensor(scale, dtype=torch.float64)
    stretched = interval_mass(FAMILIES[name], loc * factor, scale * factor, edges * factor)
    masses = interval_mass(FAMILIES[name], loc, scale, edges)
    torch.testing.assert_close(stretched, masses, rtol=1e-8, atol=1e-11)


@each_family
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [2.0**-32, 1e-12, 1e-5])
def test_a_narrow_density_on_an_edge_has_half_its_mass_on_either_side(name, dtype, scale):
    loc = torch.tensor([0.0, 3.0, 7.0], dtype=dtype)
    rows = gamma(FAMILIES[name], loc, torch.tensor(scale, dtype=dtype), 7)
    expected = torch.zeros(3, 7, dtype=dtype)
    expected[0, 0] = expected[1, 2] = expected[1, 3] = expected[2, 6] = 0.5
    torch.testing.assert_close(rows, expected, rtol=0, atol=1e-4)


@each_family
@pytest.mark.parametrize("truncate", [False, True])
def test_narrow_densities_beside_an_edge_in_float32(name, truncate):
    """Both pixels at an edge have the same F there, so that no mass is lost or counted twice."""
    beta = torch.tensor([-12.0, -15.0, -20.0, -40.0])[:, None]
    scale = beta.exp()
    loc = 14 + torch.linspace(-3, 3, 101) * scale
    masses = gamma(density(name), loc, scale, 28, truncate=truncate)
    exact = gamma(density(name), loc.double(), scale.double(), 28, truncate=truncate)
    torch.testing.assert_close(masses.double(), exact, rtol=0, atol=1e-6)
    family, distance = density(name), (14 - loc.double()) / scale.double()
    torch.testing.assert_close(
        masses[..., :14].sum(-1).double(), family.cdf(distance), rtol=0, atol=1e-4
    )
