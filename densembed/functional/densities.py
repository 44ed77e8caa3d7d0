"""Families of densities, in standard form: location 0, scale 1, symmetric about 0.

A family is a class with `pdf`, `cdf` and `mass`. Everything else (Γ, its gradients, the layers,
the names of models) follows from these. To add a family, write the class, add an instance to
`FAMILIES`, and its name to `families.WORDS`.

>>> density("gaussian").mass(torch.tensor(-1.0), torch.tensor(2.0))  # within one deviation
tensor(0.6827)

No `mass` subtracts nearly equal numbers. Largest relative error measured, both tails, widths
1e-7 to 200, masses above 1e-37 (float32) and 1e-300 (float64):

    family                                      float32    float64
    cauchy, uniform, triangular, raisedcosine     4e-7       1e-15
    logistic, laplace                             5e-6       1e-13
    gaussian, hypsecant, plateau                  1e-5       2e-13

The larger errors occur in the tails, where e^-y has the rounding error of y times y. Near the
middle all errors are below 7e-7 in float32. The rounding of `z` itself has the same effect.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from densembed.text import unknown


class Density(ABC):
    """A location-scale family of probability densities on the real line, in standard form.

    All methods work elementwise on tensors of any shape and floating dtype (`Gaussian.mass` on
    float32 and float64 only, like torch's erfcx) and are finite for |z| up to at least 1e12.
    """

    name: ClassVar[str]
    words: ClassVar[str] = ""
    """Display name of a registered family, if it differs from `name`."""
    std: ClassVar[float]
    """Standard deviation of the standard form; `inf` if it is not finite."""
    iqr: ClassVar[float]
    """Interquartile range of the standard form."""
    support: ClassVar[float] = math.inf
    """Half-width of the interval outside which the density is zero."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if vars(cls).keys() & {"pdf", "cdf"} and "cdf_pdf" not in vars(cls):
            # Not that of a family with another pdf.
            cls.cdf_pdf = Density.cdf_pdf  # type: ignore[method-assign]

    @abstractmethod
    def pdf(self, z: Tensor) -> Tensor:
        """Density at `z`."""

    @abstractmethod
    def cdf(self, z: Tensor) -> Tensor:
        """Primitive F of the density, with F(-∞) = 0 and F(∞) = 1."""

    def cdf_pdf(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once; overridden by families where one follows from the other."""
        return self.cdf(z), self.pdf(z)

    @abstractmethod
    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        """F(z + width) - F(z) for `width` ≥ 0, with relative accuracy.

        The width is a separate argument, because the difference of two rounded ends loses it if a
        density is much wider than a pixel.
        """


def _by_symmetry(left_cdf: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """F from its left half, F(z) = 1 − F(−z), so that neither side overflows."""
    left = left_cdf(torch.where(z > 0, -z, z))
    return torch.where(z > 0, 1 - left, left)


def _mirrored(z: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Ends a, b of the interval [z, z + width] or of its mirror image, so that a + b ≤ 0."""
    end = z + width
    mirror = z + end > 0
    return torch.where(mirror, -end, z), torch.where(mirror, -z, end)


def _overlap(z: Tensor, width: Tensor) -> Tensor:
    """Length of [z, z + width] within [−1, 1]: exactly `width` inside."""
    # Added to a large z, the 1 would be lost, and with it a narrow density at the end.
    from_left = torch.where(z < -1000, 1 + (z + width), 1 + z + width)
    return torch.minimum(torch.minimum(width, 1 - z), from_left).clamp(0, 2)


def _margin(z: Tensor, overlap: Tensor) -> Tensor:
    """1 − |m|, m the middle of the overlap of [z, …] with [−1, 1], from the exact end z."""
    from_left = (1 + z).clamp_min(0) + overlap / 2
    from_right = (1 - z).clamp(0, 2) - overlap / 2
    return torch.minimum(from_left, from_right).clamp_min(0)


def _minus_sine(x: Tensor) -> Tensor:
    """x − sin x for x ≥ 0, by its series below 1."""
    x2 = x.clamp_max(1).square()
    series = torch.ones_like(x)
    for k in range(18, 3, -2):
        series = 1 - x2 / (k * (k + 1)) * series
    return torch.where(x < 1, x * x2 / 6 * series, x - torch.sin(x))


class Logistic(Density):
    """f(z) = e^-z / (1 + e^-z)², F(z) = σ(z): the paper's choice (Section 4.1)."""

    name = "logistic"
    std = math.pi / math.sqrt(3)
    iqr = 2 * math.log(3)

    def pdf(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z) * torch.sigmoid(-z)

    def cdf(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def cdf_pdf(self, z: Tensor) -> tuple[Tensor, Tensor]:
        cdf = torch.sigmoid(z)
        return cdf, torch.addcmul(cdf, cdf, cdf, value=-1)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        # σ(b) − σ(a) = σ(b) σ(−a) (1 − e^(a−b)): three factors, no difference of equal numbers.
        return torch.sigmoid(z + width) * torch.sigmoid(-z) * -torch.expm1(-width)


class Gaussian(Density):
    """f(z) = e^(−z²/2) / √(2π)."""

    name = "gaussian"
    std = 1.0
    iqr = 1.3489795003921634

    def pdf(self, z: Tensor) -> Tensor:
        return torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)

    def cdf(self, z: Tensor) -> Tensor:
        return torch.erfc(z / -math.sqrt(2)) / 2

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        middle = z + width / 2
        a, b = _mirrored(z, width)
        fall = -middle.abs() * width  # log f(a) − log f(b)
        across = (torch.erf(b / math.sqrt(2)) - torch.erf(a / math.sqrt(2))) / 2
        beside = b.clamp(max=0)
        tail = torch.special.erfcx(-beside / math.sqrt(2))
        tail = tail - torch.exp(fall) * torch.special.erfcx(-a / math.sqrt(2))
        tail = torch.exp(-beside.square() / 2) * tail / 2
        narrow = (fall > -0.3) & (width < 0.3)
        return torch.where(
            narrow, self._narrow_mass(middle, width), torch.where(b > 0, across, tail)
        )

    def _narrow_mass(self, middle: Tensor, width: Tensor) -> Tensor:
        """Taylor's series of the integral about the middle, in Hermite polynomials to He₈."""
        m2 = middle.clamp(-40, 40).square()  # f(40) is 0 in float64, and m⁸ stays finite
        w2 = width.clamp(max=1).square()
        he2 = m2 - 1
        he4 = (m2 - 6) * m2 + 3
        he6 = ((m2 - 15) * m2 + 45) * m2 - 15
        he8 = (((m2 - 28) * m2 + 210) * m2 - 420) * m2 + 105
        series = he6 / 322560 + w2 * he8 / 92897280
        series = w2 * (he2 / 24 + w2 * (he4 / 1920 + w2 * series))
        return self.pdf(middle) * width * (1 + series)


class Laplace(Density):
    """f(z) = e^−|z| / 2."""

    name = "laplace"
    std = math.sqrt(2)
    iqr = 2 * math.log(2)

    def pdf(self, z: Tensor) -> Tensor:
        return torch.exp(-z.abs()) / 2

    def cdf(self, z: Tensor) -> Tensor:
        return _by_symmetry(lambda left: torch.exp(left) / 2, z)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        end = z + width
        nearer = torch.maximum(z, -end)  # distance to 0 of an interval on one side
        beside = torch.exp(-nearer.clamp_min(0)) * -torch.expm1(-width) / 2
        across = -(torch.expm1(z.clamp_max(0)) + torch.expm1(-end.clamp_min(0))) / 2
        return torch.where(nearer < 0, across, beside)


class Cauchy(Density):
    """f(z) = 1 / (π (1 + z²)): no variance, the heaviest tails here."""

    name = "cauchy"
    std = math.inf
    iqr = 2.0

    def pdf(self, z: Tensor) -> Tensor:
        return 1 / (math.pi * (1 + z.square()))

    def cdf(self, z: Tensor) -> Tensor:
        return torch.atan2(torch.ones_like(z), -z) / math.pi

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        # The tangent of a difference of two arcs.
        return torch.atan2(width, 1 + z * (z + width)) / math.pi


class HyperbolicSecant(Density):
    """f(z) = sech(πz/2) / 2."""

    name = "hypsecant"
    std = 1.0
    iqr = 4 / math.pi * math.log(1 + math.sqrt(2))

    def pdf(self, z: Tensor) -> Tensor:
        y = math.pi / 2 * z.abs()
        return torch.exp(-y) * torch.sigmoid(2 * y)

    def cdf(self, z: Tensor) -> Tensor:
        return _by_symmetry(lambda left: 2 / math.pi * torch.atan(torch.exp(math.pi / 2 * left)), z)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        # (2/π) atan(sinh(πw/4) / cosh(π(a + b)/4)), with e^(πw/4 − π|a + b|/4) taken out.
        end = z + width
        ratio = torch.exp(math.pi / 2 * torch.minimum(end, -z))
        ratio = ratio * -torch.expm1(-math.pi / 2 * width)
        ratio = ratio * torch.sigmoid(math.pi / 2 * (z + end).abs())
        return 2 / math.pi * torch.atan(ratio)


class Uniform(Density):
    """f(z) = 1/2 on [−1, 1]: the interval Δ of the paper, of half-width s."""

    name = "uniform"
    std = 1 / math.sqrt(3)
    iqr = 1.0
    support = 1.0

    def pdf(self, z: Tensor) -> Tensor:
        return (z.abs() <= 1).to(z.dtype) / 2

    def cdf(self, z: Tensor) -> Tensor:
        return ((1 + z) / 2).clamp(0, 1)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        return _overlap(z, width) / 2


class Triangular(Density):
    """f(z) = 1 − |z| on [−1, 1]."""

    name = "triangular"
    std = 1 / math.sqrt(6)
    iqr = 2 - math.sqrt(2)
    support = 1.0

    def pdf(self, z: Tensor) -> Tensor:
        return (1 - z.abs()).clamp_min(0)

    def cdf(self, z: Tensor) -> Tensor:
        return _by_symmetry(lambda left: (1 + left).clamp_min(0).square() / 2, z)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        length = _overlap(z, width)
        left, right = (-z).clamp(0, 1), (z + width).clamp(0, 1)
        across = left * (1 - left / 2) + right * (1 - right / 2)
        return torch.where((left > 0) & (right > 0), across, length * _margin(z, length))


class RaisedCosine(Density):
    """f(z) = (1 + cos πz) / 2 on [−1, 1]."""

    name = "raisedcosine"
    std = math.sqrt(1 / 3 - 2 / math.pi**2)
    iqr = 0.5294837907323009
    support = 1.0

    def pdf(self, z: Tensor) -> Tensor:
        return torch.sin(math.pi / 2 * (1 - z.abs()).clamp_min(0)).square()

    def cdf(self, z: Tensor) -> Tensor:
        def left_cdf(left):
            x = math.pi * (1 + left).clamp_min(0)
            return _minus_sine(x) / (2 * math.pi)

        return _by_symmetry(left_cdf, z)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        # (w + (2/π) cos πm sin πw/2) / 2 with cos πm = 2 sin²(π(1 − |m|)/2) − 1.
        length = _overlap(z, width)
        x = math.pi / 2 * length
        lift = torch.sin(math.pi / 2 * _margin(z, length)).square() * torch.sin(x)
        return ((_minus_sine(x) + 2 * lift) / math.pi).clamp_max(1)


class Plateau(Density):
    """Flat on [−1, 1] with logistic edges: f(z) = (σ((z + 1)/e) − σ((z − 1)/e)) / 2, e = 0.1."""

    name = "plateau"
    edge = 0.1
    """Scale of the edges, as a fraction of the half-width. `std` and `iqr` are those of 0.1."""
    std = math.sqrt((1 + math.pi**2 * edge**2) / 3)
    iqr = 1 + 2 * edge * (math.log1p(-math.exp(-1.5 / edge)) - math.log1p(-math.exp(-0.5 / edge)))

    def pdf(self, z: Tensor) -> Tensor:
        rise, fall = torch.sigmoid((1 + z) / self.edge), torch.sigmoid((1 - z) / self.edge)
        return -math.expm1(-2 / self.edge) / 2 * rise * fall

    def cdf(self, z: Tensor) -> Tensor:
        return _by_symmetry(self._left_cdf, z)

    def _left_cdf(self, z: Tensor) -> Tensor:
        lift = torch.exp((z + 1) / self.edge) * torch.sigmoid((1 - z) / self.edge)
        return self.edge / 2 * torch.log1p(-math.expm1(-2 / self.edge) * lift)

    def mass(self, z: Tensor, width: Tensor) -> Tensor:
        a, b = _mirrored(z, width)
        step = (width / self.edge).clamp_max(2 / self.edge)
        rise, fall = self._softplus_step(a + 1, step), self._softplus_step(a - 1, step)
        wide = self.cdf(b) - self._left_cdf(a)  # F(a) is then small beside F(b)
        return torch.where(width < 2, self.edge / 2 * (rise - fall), wide)

    def _softplus_step(self, z: Tensor, step: Tensor) -> Tensor:
        """log(1 + e^(y + step)) − log(1 + e^y) at y = z/e."""
        y = z / self.edge
        return torch.log1p(torch.exp(y + step) * torch.sigmoid(-y) * -torch.expm1(-step))


FAMILIES: dict[str, Density] = {
    family.name: family
    for family in (
        Logistic(),
        Gaussian(),
        Laplace(),
        Cauchy(),
        HyperbolicSecant(),
        Uniform(),
        Triangular(),
        RaisedCosine(),
        Plateau(),
    )
}


def density(name: str | Density) -> Density:
    """The family with this name; returns a `Density` unchanged. ValueError for unknown names."""
    if isinstance(name, Density):
        return name
    try:
        return FAMILIES[name]
    except KeyError:
        sentence = unknown("density", str(name), FAMILIES)
        raise ValueError(f"{sentence}; available are {', '.join(FAMILIES)}.") from None
