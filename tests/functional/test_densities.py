"""Every family against SciPy. A new family needs one row in `REFERENCES`."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.special import expit

from densembed.functional.action import embed, embed_plain
from densembed.functional.densities import FAMILIES, Density, Logistic, density


class PlateauByQuadrature(stats.rv_continuous):
    """The plateau with nothing but its pdf in closed form."""

    edge = 0.1

    def _pdf(self, x):
        left = -np.abs(x)
        return (expit((left + 1) / self.edge) - expit((left - 1) / self.edge)) / 2

    def _left_cdf(self, x):
        return integrate.quad(self._pdf, x - 4, x, points=[-1.0], epsabs=0, epsrel=1e-12)[0]

    def _cdf(self, x):
        return np.array(
            [self._left_cdf(x) if x <= 0 else 1 - self._left_cdf(-x) for x in np.ravel(x)]
        ).reshape(np.shape(x))


@dataclass
class ScipyFamily:
    """An independent implementation of a family, and how far it is looked at."""

    scipy: object
    reach: float
    """|z| up to which masses in the tails are normal numbers in float32."""
    rtol: float
    """Relative accuracy of masses in float32, as documented in `densembed.functional.densities`."""
    kinks: tuple[float, ...] = ()
    """Where the pdf or its slope jumps."""

    def cdf(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # SciPy's hyperbolic secant far out
            return self.scipy.cdf(z)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return self.scipy.pdf(z)

    def mass(self, z: np.ndarray, width: np.ndarray) -> np.ndarray:
        """F(z + width) − F(z) without cancellation, by symmetry and quadrature where short."""
        a, b = z, z + width
        mirror = a + b > 0
        a, b = np.where(mirror, -b, a), np.where(mirror, -a, b)
        low, high = self.cdf(a), self.cdf(-np.abs(b))
        far = np.where(b > 0, 1 - low - high, high - low)
        short = width < np.maximum(1, abs(z) / 100)
        return np.where(short, self._integral(z, width), far)

    def _integral(self, z: np.ndarray, width: np.ndarray) -> np.ndarray:
        nodes, weights = np.polynomial.legendre.leggauss(60)
        cuts = [np.clip(kink - z, 0, width) for kink in (-math.inf, *self.kinks, math.inf)]
        total = np.zeros_like(z)
        for low, high in pairwise(cuts):
            half = (high - low) / 2
            at = (z + low)[..., None] + half[..., None] * (nodes + 1)
            total = total + half * (self.pdf(at) @ weights)
        return total


REFERENCES = {
    "logistic": ScipyFamily(stats.logistic(), 80, 5e-6),
    "gaussian": ScipyFamily(stats.norm(), 12.5, 1e-5),
    "laplace": ScipyFamily(stats.laplace(), 80, 5e-6, (0,)),
    "cauchy": ScipyFamily(stats.cauchy(), 1e6, 4e-7),
    "hypsecant": ScipyFamily(stats.hypsecant(scale=2 / math.pi), 50, 1e-5),
    "uniform": ScipyFamily(stats.uniform(-1, 2), 1.2, 4e-7, (-1, 1)),
    "triangular": ScipyFamily(stats.triang(0.5, -1, 2), 1.2, 4e-7, (-1, 0, 1)),
    "raisedcosine": ScipyFamily(stats.cosine(scale=1 / math.pi), 1.2, 4e-7, (-1, 1)),
    "plateau": ScipyFamily(PlateauByQuadrature()(), 8, 1e-5),
}

each_family = pytest.mark.parametrize("name", FAMILIES)


def intervals(reach: float, dtype: torch.dtype, count: int = 240) -> tuple[torch.Tensor, ...]:
    """Left ends on both sides of 0, near it and far out, and widths from 1e-7 to 100."""
    rng = np.random.default_rng(0)
    size = np.concatenate(
        (np.geomspace(1e-4, reach, count // 2), rng.uniform(0, reach, count - count // 2))
    )
    z = torch.tensor(size * np.where(np.arange(count) % 2, 1, -1), dtype=dtype)
    width = np.exp(rng.uniform(math.log(1e-7), math.log(100), count))
    width[::3] = rng.uniform(0, 1, len(width[::3]))
    return z, torch.tensor(width, dtype=dtype)


def generic_points(kinks: tuple[float, ...], reach: float) -> torch.Tensor:
    z = torch.cat((torch.linspace(-2.03, 2.07, 42), torch.tensor([-0.9 * reach, 0.0, 0.9 * reach])))
    z = z.double()
    for kink in kinks:
        z = z[(z - kink).abs() > 1e-3]
    return z


def test_every_family_has_a_reference():
    assert set(REFERENCES) == set(FAMILIES)
    assert all(name == family.name for name, family in FAMILIES.items())
    assert all(name.isalnum() and name == name.lower() for name in FAMILIES)


@each_family
def test_pdf_and_cdf_match_scipy(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    z = generic_points(reference.kinks, reference.reach)
    np.testing.assert_allclose(family.pdf(z), reference.pdf(z.numpy()), 1e-10, 1e-300)
    np.testing.assert_allclose(family.cdf(z), reference.cdf(z.numpy()), 1e-10, 1e-300)


@each_family
def test_mass_matches_scipy_in_both_tails(name):
    reference = REFERENCES[name]
    z, width = intervals(reference.reach, torch.float64)
    expected = reference.mass(z.numpy(), width.numpy())
    np.testing.assert_allclose(FAMILIES[name].mass(z, width), expected, 2e-12, 1e-300)


@each_family
def test_mass_in_float32_keeps_its_digits(name):
    """The same rounded intervals in both precisions; float64 is held against SciPy above."""
    reference = REFERENCES[name]
    z, width = intervals(reference.reach, torch.float32, 4000)
    got = FAMILIES[name].mass(z, width)
    assert got.dtype == torch.float32
    expected = FAMILIES[name].mass(z.double(), width.double())
    if expected.max() > 0:
        np.testing.assert_allclose(got.double(), expected, reference.rtol, 1e-37)


@each_family
def test_mass_of_a_wide_density_is_pdf_times_width(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    z = generic_points(reference.kinks, reference.reach).float()
    for width in (1e-4, 1e-6, 1e-9):
        middle = z.double() + width / 2
        expected = family.pdf(middle) * width
        got = family.mass(z, torch.full_like(z, width))
        np.testing.assert_allclose(got, expected, max(reference.rtol, 1e-6), 1e-36)


@pytest.mark.slow
@each_family
def test_spread(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    lower, upper = reference.scipy.ppf([0.25, 0.75])
    assert family.iqr == pytest.approx(upper - lower, rel=1e-10)
    if math.isinf(family.std):
        assert not math.isfinite(reference.scipy.std())
    else:
        assert family.std == pytest.approx(reference.scipy.std(), rel=1e-7)


@each_family
def test_pdf_has_mass_one_within_its_support(name):
    family = FAMILIES[name]
    total, _ = integrate.quad(
        lambda z: family.pdf(torch.tensor(z, dtype=torch.float64)).item(),
        0,
        family.support,
        epsabs=1e-11,
    )
    assert 2 * total == pytest.approx(1, abs=1e-9)
    if math.isfinite(family.support):
        outside = torch.tensor([-1.001, 1.001, 7.0, 1e12]) * family.support
        assert (family.pdf(outside) == 0).all()
    else:
        assert (family.pdf(torch.tensor([-4.0, 4.0])) > 0).all()


@each_family
def test_symmetry(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    z, width = intervals(reference.reach, torch.float64)
    torch.testing.assert_close(family.pdf(-z), family.pdf(z), rtol=1e-15, atol=0)
    torch.testing.assert_close(family.cdf(-z), 1 - family.cdf(z), rtol=0, atol=1e-15)
    mirrored = family.mass(-z - width, width)
    torch.testing.assert_close(mirrored, family.mass(z, width), rtol=1e-9, atol=1e-15)


@each_family
def test_cdf_has_the_pdf_as_its_gradient(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    z = generic_points(reference.kinks, reference.reach).requires_grad_()
    (slope,) = torch.autograd.grad(family.cdf(z).sum(), z)
    torch.testing.assert_close(slope, family.pdf(z.detach()), rtol=1e-9, atol=1e-15)


@each_family
def test_pdf_has_the_gradient_of_finite_differences(name):
    family, reference = FAMILIES[name], REFERENCES[name]
    z = generic_points(reference.kinks, reference.reach).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: family.pdf(z) + 0 * z, z)


@each_family
@pytest.mark.parametrize("width", [0.0, 1e-12, 1e-4, 1.0, 1e3, 1e12])
def test_finite_and_within_bounds_far_out(name, width):
    family = FAMILIES[name]
    z = torch.logspace(-6, 12, 91)
    z = torch.cat((-z, torch.tensor([-1.0, 0.0, 1.0]), z)).requires_grad_()
    mass = family.mass(z.detach(), torch.full_like(z, width))
    assert ((mass >= 0) & (mass <= 1)).all()
    assert (mass == 0).all() or width > 0
    for function in (family.pdf, family.cdf):
        value = function(z)
        assert value.isfinite().all()
        (slope,) = torch.autograd.grad((value + 0 * z).sum(), z)
        assert slope.isfinite().all()


@each_family
def test_all_of_the_mass(name):
    family = FAMILIES[name]
    whole = family.mass(torch.tensor(-1e9), torch.tensor(2e9))
    half = family.mass(torch.tensor(0.0), torch.tensor(1e9))
    torch.testing.assert_close(whole, torch.tensor(1.0))
    torch.testing.assert_close(half, torch.tensor(0.5))


@each_family
def test_shapes_and_dtypes_are_kept(name):
    family = FAMILIES[name]
    for dtype in (torch.float32, torch.float64):
        z = torch.zeros(2, 0, 3, dtype=dtype)
        for result in (family.pdf(z), family.cdf(z), family.mass(z, z)):
            assert result.shape == z.shape
            assert result.dtype == dtype


def test_density_by_name():
    assert isinstance(density("logistic"), Logistic)
    own = Logistic()
    assert density(own) is own
    with pytest.raises(ValueError, match=r"'boxcar'.*logistic, gaussian"):
        density("boxcar")


def test_density_is_abstract():
    with pytest.raises(TypeError):
        Density()


def test_a_family_that_changes_another_one_has_its_own_values():
    """The logistic family computes F and f at once, which is not that of its subclass."""

    class Wide(Logistic):
        def pdf(self, z):
            return super().pdf(z / 2) / 2

        def cdf(self, z):
            return super().cdf(z / 2)

        def mass(self, z, width):
            return super().mass(z / 2, width / 2)

    x, loc, scale = torch.rand(2, 1, 8, 8), 8 * torch.rand(1, 3, 2), torch.rand(1, 3, 2) + 0.5
    torch.testing.assert_close(embed(x, loc, scale, Wide()), embed_plain(x, loc, scale, Wide()))
