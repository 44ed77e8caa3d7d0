"""Density-embedding layers: a signal seen through a set of densities (Sections 2 and 4).

`DensityEmbedding` and `AdaptiveDensityEmbedding` take signals of one axis or of two. The names
that end in 1d and 2d are the same layers, which accept just that.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from densembed.functional.action import embed, fold
from densembed.functional.arguments import check_dtype, per_axis, widened
from densembed.functional.densities import Density, Logistic, density
from densembed.functional.gamma import axes_gamma, negligible, outer
from densembed.functional.uniform import step_scaled

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
    """s(β) = N σ(β), in pixels within (0, N] (appendix, read as (p, q) = (1, 0)).

    Never below `least_scale`, where the primitive already is a step and no gradient is left.
    """
    scale = sizes * torch.sigmoid(beta) * unit
    return scale.clamp_min(least_scale(scale.dtype))


def least_scale(dtype: torch.dtype) -> float:
    """The narrowest density, in pixels: 2⁻³² in float32, 2⁻²⁵⁶ in float64.

    Far below the spacing of the locations, so nothing but a point mass, and with a square that
    neither vanishes nor overflows. A power of two, so that (t − μ)/s is exact on any way.
    """
    return 2.0 ** (math.frexp(torch.finfo(dtype).tiny)[1] // 4)


def scale_unit(family: Density) -> float:
    """Factor on s that gives every family the logistic's spread at the same β.

    Equal standard deviations; equal interquartile ranges where the deviation is infinite.
    """
    if math.isinf(family.std):
        return Logistic.iqr / family.iqr
    return Logistic.std / family.std


class Embedding(nn.Module):
    """What all embeddings share: the domain, the family, the view of the field.

    A subclass gives the densities (`placement`) and how the signal is seen through them
    (`forward`).
    """

    axes: ClassVar[int | None] = None
    """Axes of the signal, one or two; None where `sizes` tells."""
    adaptive: bool = False
    """Whether the densities move with the input."""

    def __init__(
        self,
        sizes: int | Sequence[int],
        in_channels: int,
        densities: int | tuple[int, ...],
        family: str | Density,
        shared: bool,
        truncate: bool,
    ):
        super().__init__()
        axes = self.axes or (len(sizes) if isinstance(sizes, tuple | list) else 1)
        if axes not in (1, 2):
            raise ValueError(f"Expected sizes of one or two axes; got {sizes!r}.")
        self.sizes = per_axis(sizes, axes, "sizes", 1)
        (self.in_channels,) = per_axis(in_channels, 1, "in_channels", 1)
        grid = per_axis(densities, axes, "densities", 1)
        self.densities = math.prod(grid) if isinstance(densities, tuple | list) else grid[0]
        self.density = density(family)
        self.groups = 1 if shared else in_channels
        self.truncate = truncate
        self.unit = scale_unit(self.density)
        lengths = torch.tensor(self.sizes[::-1], dtype=torch.get_default_dtype())
        self.register_buffer("lengths", lengths, persistent=False)

    @property
    def dtype(self) -> torch.dtype | None:
        """Of the parameters, which the input must have; None where there are none."""
        return next((parameter.dtype for parameter in self.parameters()), None)

    @property
    def out_features(self) -> int:
        """Numbers that it makes of an input."""
        return self.in_channels * self.densities

    def _logits(self, mean: float, std: float) -> nn.Parameter:
        shape = (self.groups, self.densities, len(self.sizes))
        logits = torch.empty(shape)
        if not logits.is_meta:  # nothing to draw there, for which torch would import its compiler
            logits.normal_().mul_(std).add_(mean)
        return nn.Parameter(logits)

    def check(self, x: Tensor) -> None:
        """Raises ValueError for another shape than (batch, C, *sizes) or another dtype."""
        check_dtype(x, self.dtype)
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
        """R(x) = Γx: (N, C, *sizes) → (N, C, K), in the dtype of x."""
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
        per_axis(resolution, 1, "resolution", 1)
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


class DensityEmbedding(Embedding):
    """Fixed densities with learned location and scale: R(x) = Γ(α, β) x (Section 4.1).

    Args:
        sizes: length of each axis, (H, W) for images, (N,) for series.
        in_channels: C.
        densities: K, or a grid (B_rows, B_columns) of that many.
        family: a density or its name.
        shared: the same densities for every channel, else a set for each (the default).
        truncate: renormalise to the domain (off in the paper).
        location_lr_scale: longer steps for the locations, see
            `densembed.functional.uniform.step_scaled`; the start and all that can be learned stay.

    Parameters: `alpha` = α / location_lr_scale and `beta`, of shape (C or 1, K, axes): 4·C·K
    numbers for images. Input (batch, C, *sizes); ValueError for another shape.
    """

    def __init__(
        self, sizes, in_channels=1, densities=25, family="logistic", shared=False, truncate=False,
        location_lr_scale=1.0,
    ):  # fmt: skip
        super().__init__(sizes, in_channels, densities, family, shared, truncate)
        if not 0 < location_lr_scale < math.inf:
            raise ValueError(f"Expected a positive location_lr_scale; got {location_lr_scale}.")
        self.location_lr_scale = float(location_lr_scale)
        self.alpha = self._logits(0.0, ALPHA_STD / self.location_lr_scale)
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        alpha = step_scaled(widened(self.alpha), self.location_lr_scale)
        scale = bounded_scale(widened(self.beta), self.lengths, self.unit)
        return bounded_loc(alpha, self.lengths)[None], scale[None]

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        loc, scale = self.placement()
        return embed(widened(x), loc[0], scale[0], self.density, self.truncate).to(x.dtype)

    def fold(self, weight: Tensor) -> Tensor:
        """K = Σ_i w_i Γ_i for a linear map (O, C · K) that follows: (O, C, *sizes), exactly."""
        loc, scale = self.placement()
        wide = widened(weight).unflatten(-1, (self.in_channels, self.densities))
        kernel = fold(wide, loc[0], scale[0], self.density, self.sizes, self.truncate)
        return kernel.to(weight.dtype)


class DensityEmbedding1d(DensityEmbedding):
    """`DensityEmbedding` of series: sizes N or (N,), input (batch, C, N)."""

    axes = 1


class DensityEmbedding2d(DensityEmbedding):
    """`DensityEmbedding` of images: sizes N or (H, W), input (batch, C, H, W)."""

    axes = 2


class AdaptiveDensityEmbedding(Embedding):
    """Densities that come from the input: R(x) = Γ(α(x; W), β) x (Section 4.2).

    Args:
        locator: any module (N, C, *sizes) → numbers that fill (N, C, K, axes): α of every
            density. The paper's micro network is one: a `DensityEmbedding`, flattened, and a
            linear map. How long its steps are is its own business.
        adaptive_scale: the scales move, too. The locator then fills (N, 2, C, K, axes): α, and
            what is added to β. A locator that gives zeros there leaves the layer as it is
            without this option.
        shared: the same densities for every channel; C is then 1 in the locator's numbers.
        The others: as in `DensityEmbedding`.

    Parameters: those of `locator`, and `beta` of shape (C or 1, K, axes). ValueError where the
    input has another shape or the locator gives another count of numbers.
    """

    adaptive = True

    def __init__(
        self, locator: nn.Module, sizes, in_channels=1, densities=25, family="logistic",
        truncate=False, shared=False, adaptive_scale=False,
    ):  # fmt: skip
        super().__init__(sizes, in_channels, densities, family, shared, truncate)
        self.locator = locator
        self.adaptive_scale = adaptive_scale
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def _located(self, x: Tensor) -> Tensor:
        """The locator's numbers, (N, 1 or 2, C or 1, K, axes)."""
        parts = 2 if self.adaptive_scale else 1
        shape = (parts, self.groups, self.densities, len(self.sizes))
        numbers = self.locator(x)
        batch = x.shape[0]  # len() would be a number to torch.export
        if numbers.shape[:1] != x.shape[:1] or math.prod(numbers.shape[1:]) != math.prod(shape):
            raise ValueError(
                f"Expected {math.prod(shape)} numbers for each of {batch} inputs from the "
                f"locator; got {tuple(numbers.shape)}."
            )
        return widened(numbers).reshape(batch, *shape)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if x is None:
            raise ValueError("The densities of this layer move with the input: pass x.")
        self.check(x)
        numbers = self._located(x)
        beta = widened(self.beta)[None]
        if self.adaptive_scale:
            beta = beta + numbers[:, 1]
        loc = bounded_loc(numbers[:, 0], self.lengths)
        return loc, bounded_scale(beta, self.lengths, self.unit)

    def forward(self, x: Tensor) -> Tensor:
        loc, scale = self.placement(x)
        return embed(widened(x), loc, scale, self.density, self.truncate).to(x.dtype)


class AdaptiveDensityEmbedding1d(AdaptiveDensityEmbedding):
    """`AdaptiveDensityEmbedding` of series: sizes N or (N,), input (batch, C, N)."""

    axes = 1


class AdaptiveDensityEmbedding2d(AdaptiveDensityEmbedding):
    """`AdaptiveDensityEmbedding` of images: sizes N or (H, W), input (batch, C, H, W)."""

    axes = 2


class PixelEmbedding(Embedding):
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
