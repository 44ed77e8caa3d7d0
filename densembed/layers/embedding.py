"""Density-embedding layers: a signal seen through a set of densities (Sections 2 and 4)."""

import math

import torch
from torch import Tensor, nn

from densembed.densities import Density, Logistic, density
from densembed.gamma import axes_gamma, embed, fold, negligible, outer

ALPHA_STD = 0.4
"""α ~ N(0, 0.4) (appendix; read as a standard deviation)."""
BETA_MEAN, BETA_STD = -3.0, 0.3
"""β ~ N(−3, 0.3): a start at s ≈ 1.33 pixels on 28."""
LOC_SLOPE = 4.0
"""p_μ of the appendix, μ = N σ(4α): what was run, though the main text leaves it out."""


def bounded_loc(alpha: Tensor, sizes: Tensor) -> Tensor:
    """μ(α) = N σ(4α), in pixels within [0, N] (appendix, (p, q) = (4, 0))."""
    return sizes * torch.sigmoid(LOC_SLOPE * alpha)


def bounded_scale(beta: Tensor, sizes: Tensor, unit: float = 1.0) -> Tensor:
    """s(β) = N σ(β), in pixels within [0, N] (appendix, read as (p, q) = (1, 0))."""
    return sizes * torch.sigmoid(beta) * unit


def scale_unit(family: Density) -> float:
    """Factor on s that gives every family the logistic's spread at the same β.

    Equal standard deviations; equal interquartile ranges where the deviation is infinite.
    """
    if math.isinf(family.std):
        return Logistic.iqr / family.iqr
    return Logistic.std / family.std


class _Embedding(nn.Module):
    """What fixed and adaptive embeddings share: the domain, the family, the view of the field."""

    def __init__(self, sizes, in_channels, densities, family, shared, truncate):
        super().__init__()
        self.sizes = tuple(int(size) for size in sizes)
        self.in_channels = in_channels
        self.densities = math.prod(densities) if isinstance(densities, tuple) else densities
        if min(*self.sizes, in_channels, self.densities) < 1:
            raise ValueError(
                "Sizes, channels and densities must be at least 1; "
                f"got sizes {self.sizes}, {in_channels} channels, {self.densities} densities."
            )
        self.density = density(family)
        self.groups = 1 if shared else in_channels
        self.truncate = truncate
        self.unit = scale_unit(self.density)
        lengths = torch.tensor(self.sizes[::-1], dtype=torch.get_default_dtype())
        self.register_buffer("lengths", lengths, persistent=False)

    def _logits(self, mean: float, std: float) -> nn.Parameter:
        shape = (self.groups, self.densities, len(self.sizes))
        return nn.Parameter(torch.randn(shape) * std + mean)

    def check(self, x: Tensor) -> None:
        expected = (self.in_channels, *self.sizes)
        if tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"Expected an input of shape (batch, {', '.join(map(str, expected))}); "
                f"got {tuple(x.shape)}."
            )

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Locations and scales in pixels, each (batch or 1, channels or 1, densities, axes)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """R(x) = Γx: (N, C, *sizes) → (N, C, K)."""
        raise NotImplementedError

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ as a dense tensor (batch or 1, channels or 1, densities, *sizes), to look at."""
        loc, scale = self.placement(x)
        return outer(axes_gamma(self.density, loc, scale, self.sizes, self.truncate))

    def pdf_axes(self, x: Tensor | None = None, resolution: int = 4) -> list[Tensor]:
        """Factors of φ along each axis at the centres of `resolution` cells a pixel.

        Returns one tensor (batch or 1, channels or 1, densities, size · resolution) for each of
        the axes of `sizes`, in density per pixel.
        """
        loc, scale = self.placement(x)
        factors = []
        for axis, size in enumerate(self.sizes):
            index = len(self.sizes) - 1 - axis
            mu, s = loc[..., index, None], scale[..., index, None]
            centres = torch.arange(size * resolution, dtype=mu.dtype, device=mu.device)
            phi = self.density.pdf(((centres + 0.5) / resolution - mu) / s) / s
            if self.truncate:
                total = axes_gamma(self.density, loc, scale, self.sizes)[axis].sum(-1)[..., None]
                empty = negligible(total)
                phi = torch.where(empty, 1 / size, phi / total.masked_fill(empty, 1))
            factors.append(phi)
        return factors

    def receptive_field(self, x: Tensor | None = None, resolution: int = 4) -> Tensor:
        """Densities φ(t, u) on a grid, per square pixel.

        Args:
            x: (N, C, *sizes) where the densities move with the input, else ignored.
            resolution: cells a pixel on each axis; values are at the cells' centres,
                (k + ½) / resolution pixels from the domain's edge.
        Returns:
            (batch or 1, channels or 1, densities, *sizes · resolution).
        """
        return outer(self.pdf_axes(x, resolution))

    def extra_repr(self) -> str:
        return (
            f"sizes={self.sizes}, in_channels={self.in_channels}, densities={self.densities}, "
            f"family={self.density.name}"
        )


class DensityEmbedding(_Embedding):
    """Fixed densities with learned location and scale: R(x) = Γ(α, β) x (Section 4.1).

    Args:
        sizes: length of each axis, (H, W) for images, (N,) for series.
        in_channels: C.
        densities: K, or a tuple (B, B) for their product.
        family: a density or its name.
        shared: the same densities for every channel, else a set for each (the default).
        truncate: renormalise to the domain (off in the paper).

    Parameters: `alpha`, `beta` of shape (C or 1, K, axes): 4·C·K numbers for images.
    """

    def __init__(
        self, sizes, in_channels=1, densities=25, family="logistic", shared=False, truncate=False
    ):
        super().__init__(sizes, in_channels, densities, family, shared, truncate)
        self.alpha = self._logits(0.0, ALPHA_STD)
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        loc = bounded_loc(self.alpha, self.lengths)
        return loc[None], bounded_scale(self.beta, self.lengths, self.unit)[None]

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        loc, scale = self.placement()
        return embed(x, loc[0], scale[0], self.density, self.truncate)

    def fold(self, weight: Tensor) -> Tensor:
        """K = Σ_i w_i Γ_i for a linear map (O, C · K) that follows: (O, C, *sizes), exactly."""
        loc, scale = self.placement()
        weight = weight.unflatten(-1, (self.in_channels, self.densities))
        return fold(weight, loc[0], scale[0], self.density, self.sizes, self.truncate)


class AdaptiveDensityEmbedding(_Embedding):
    """Densities whose locations come from the input: R(x) = Γ(α(x; W), β) x (Section 4.2).

    Args:
        locator: any module (N, C, *sizes) → α of N · C · K · axes numbers, e.g. a micro network.
        The others: as in `DensityEmbedding`.
    """

    def __init__(
        self, locator: nn.Module, sizes, in_channels=1, densities=25, family="logistic",
        truncate=False,
    ):  # fmt: skip
        super().__init__(sizes, in_channels, densities, family, False, truncate)
        self.locator = locator
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if x is None:
            raise ValueError("The densities of this layer move with the input: pass x.")
        self.check(x)
        alpha = self.locator(x).reshape(len(x), self.in_channels, self.densities, len(self.sizes))
        return (
            bounded_loc(alpha, self.lengths),
            bounded_scale(self.beta, self.lengths, self.unit)[None],
        )

    def forward(self, x: Tensor) -> Tensor:
        loc, scale = self.placement(x)
        return embed(x, loc, scale, self.density, self.truncate)


class PixelEmbedding(_Embedding):
    """One uniform density a pixel, so that Γ is the identity (Section 3.1).

    It has no parameters. A classifier on it is the ordinary fully connected layer.
    """

    def __init__(self, sizes, in_channels=1):
        super().__init__(sizes, in_channels, tuple(sizes), "uniform", True, False)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        axes = [torch.arange(size).to(self.lengths) + 0.5 for size in self.sizes]
        loc = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flip(-1)
        loc = loc.reshape(1, 1, self.densities, len(self.sizes))
        return loc, torch.full_like(loc, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        return x.flatten(2)
