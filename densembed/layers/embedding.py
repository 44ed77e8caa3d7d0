"""Density-embedding layers: the expectations of a signal under densities (Sections 2 and 4).

`DensityEmbedding` and `AdaptiveDensityEmbedding` accept signals with one or two axes. Their
subclasses with names that end in 1d and 2d accept one kind only.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import torch
from torch import Tensor, nn

from densembed.functional.action import embed, fold
from densembed.functional.arguments import axis_sizes, check_input, per_axis, positive, widened
from densembed.functional.densities import Density, Logistic, density
from densembed.functional.frame import mass_box
from densembed.functional.gamma import axes_gamma, negligible, outer
from densembed.functional.uniform import cell_centres, cell_means, fold_cell_means, step_scaled

ALPHA_STD = 0.4
"""α ~ N(0, 0.4) (appendix; read as a standard deviation)."""
BETA_MEAN, BETA_STD = -3.0, 0.3
"""β ~ N(−3, 0.3), so s ≈ 1.33 pixels initially on an axis of 28 pixels."""
Frame = Literal["input", "mass"]
"""The box in which densities are placed: the domain of the input, or one around its mass."""
LOC_SLOPE = 4.0
"""p_μ of the appendix, μ = N σ(4α). The main text omits it, but the experiments used it."""


def bounded_loc(alpha: Tensor, sizes: Tensor) -> Tensor:
    """μ(α) = N σ(4α), in pixels within [0, N] (appendix, (p, q) = (4, 0))."""
    return sizes * torch.sigmoid(LOC_SLOPE * alpha)


def bounded_scale(beta: Tensor, sizes: Tensor, unit: float = 1.0) -> Tensor:
    """s(β) = N σ(β), in pixels within (0, N] (appendix, read as (p, q) = (1, 0)).

    At least `least_scale`, where the primitive is already a step and the gradient vanishes.
    """
    scale = sizes * torch.sigmoid(beta) * unit
    return scale.clamp_min(least_scale(scale.dtype))


def least_scale(dtype: torch.dtype) -> float:
    """Scale of the narrowest density, in pixels: 2⁻³² in float32, 2⁻²⁵⁶ in float64.

    It is far below the spacing of the locations, so the density is a point mass, and its square
    neither underflows nor overflows. As a power of two it makes (t − μ)/s exact however computed.
    """
    return 2.0 ** (math.frexp(torch.finfo(dtype).tiny)[1] // 4)


def scale_unit(family: Density) -> float:
    """Factor of s that gives every family the spread of the logistic at the same β.

    It equates standard deviations, or interquartile ranges if the deviation is infinite.
    """
    if math.isinf(family.std):
        return Logistic.iqr / family.iqr
    return Logistic.std / family.std


Module = TypeVar("Module", bound=nn.Module)


def shared_copy(module: Module) -> Module:
    """A copy that shares the parameters of a module and its submodules, but nothing else of them.

    So neither hooks nor `eval` of the copy affect the module.
    """
    copy = module.__new__(type(module))
    for name, part in module.__dict__.items():
        copy.__dict__[name] = part.copy() if isinstance(part, dict) else part
    for name, child in module._modules.items():
        copy._modules[name] = None if child is None else shared_copy(child)
    return copy


class Embedding(nn.Module):
    """Base class of embeddings: the domain, the family and the receptive field.

    A subclass defines where the densities lie (`placement`) and the expectations under them
    (`forward`).
    """

    axes: ClassVar[int | None] = None
    """Number of axes of the signal, one or two; None if it follows from `sizes`."""
    adaptive: bool = False
    """Whether the densities move with the input."""
    lengths: Tensor

    def __init__(
        self,
        sizes: int | Sequence[int],
        in_channels: int,
        *,
        num_densities: int | tuple[int, ...],
        family: str | Density,
        shared: bool,
        truncate: bool,
        frame: Frame = "input",
    ):
        super().__init__()
        if frame not in get_args(Frame):
            raise ValueError(f"Expected frame 'input' or 'mass'; got {frame!r}.")
        self.frame = frame
        self.sizes = axis_sizes(sizes, self.axes)
        self.cells = self.sizes
        (self.in_channels,) = per_axis(in_channels, 1, "in_channels", 1)
        grid = per_axis(num_densities, len(self.sizes), "num_densities", 1)
        self.num_densities = math.prod(grid) if isinstance(num_densities, tuple | list) else grid[0]
        self.family = density(family)
        self.groups = 1 if shared else self.in_channels
        self.truncate = truncate
        self.unit = scale_unit(self.family)
        self.register_buffer("lengths", self._lengths(torch.empty(())), persistent=False)

    def _lengths(self, like: Tensor) -> Tensor:
        """The lengths of the axes, columns first, on the device of a tensor and as wide as μ."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.tensor(self.sizes[::-1], dtype=dtype, device=like.device)

    def _apply(self, fn: Callable, recurse: bool = True) -> Self:
        before = self.lengths
        super()._apply(fn, recurse)
        if self.lengths is not before:  # `to_empty` leaves it unset, and bfloat16 rounds 257
            self.lengths = self._lengths(self.lengths)
        return self

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        own: Tensor | None = next(self.parameters(recurse=False), None)
        if own is None:  # then other layers may have left the device meta with assign=True
            own = torch.empty(()) if self.lengths.is_meta else self.lengths
        lengths = self._lengths(own)
        if (lengths.device, lengths.dtype) != (self.lengths.device, self.lengths.dtype):
            self.lengths = lengths

    @property
    def pixel(self) -> tuple[float, ...]:
        """Lengths of a pixel along each axis, in pixels of the grid that the layer was made for."""
        return tuple(cells / size for cells, size in zip(self.cells, self.sizes, strict=True))

    @property
    def out_features(self) -> int:
        """Number of outputs per input."""
        return self.in_channels * self.num_densities

    def at(self, sizes: int | Sequence[int]) -> Self:
        """The same densities for inputs on another grid, such as larger images.

        α and β are relative to the domain, and the expectation of a piecewise constant signal does
        not depend on the grid that represents it. So the result has the same parameters (shared,
        not copied) and gives the same output, up to rounding, for the same signal on a finer grid.

        Raises ValueError if it depends on another layer that is made for one grid.

        >>> layer = DensityEmbedding2d(14, num_densities=9)
        >>> x = torch.rand(1, 1, 14, 14)
        >>> finer = x.repeat_interleave(2, -1).repeat_interleave(2, -2)
        >>> bool((layer.at(28)(finer) - layer(x)).abs().max() < 1e-5)
        True
        """
        layer = shared_copy(self)
        layer.sizes = axis_sizes(sizes, len(self.sizes))
        layer.lengths = layer._lengths(self.lengths)
        return layer

    def _logits(self, mean: float, std: float) -> nn.Parameter:
        shape = (self.groups, self.num_densities, len(self.sizes))
        logits = torch.empty(shape)
        if not logits.is_meta:  # drawing on meta makes torch import its compiler
            logits.normal_().mul_(std).add_(mean)
        return nn.Parameter(logits)

    def check(self, x: Tensor) -> None:
        """Raises unless `x` is a tensor (batch, C, *sizes) of the layer's dtype and device."""
        check_input(x, next(self.parameters(), None))
        expected = (self.in_channels, *self.sizes)
        if tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"Expected an input of shape (batch, {', '.join(map(str, expected))}); "
                f"got {tuple(x.shape)}."
            )

    def _placed(self, alpha: Tensor, beta: Tensor, x: Tensor | None) -> tuple[Tensor, Tensor]:
        """μ and s in pixels for α and β, within the frame of the input."""
        if self.frame == "input":
            return bounded_loc(alpha, self.lengths), bounded_scale(beta, self.lengths, self.unit)
        lower, length = mass_box(widened(self._required(x)), self.pixel)
        return lower + bounded_loc(alpha, length), bounded_scale(beta, length, self.unit)

    def _required(self, x: Tensor | None) -> Tensor:
        """`x` after `check`. Raises ValueError for None: the densities move with the input."""
        if x is None:
            raise ValueError("The densities of this layer move with the input; pass x.")
        self.check(x)
        return x

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Locations and scales in pixels, each (batch or 1, channels or 1, K, axes)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """R(x) = Γx: (N, C, *sizes) → (N, C, K), in the dtype of x."""
        raise NotImplementedError

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ as a dense tensor (batch or 1, channels or 1, K, *sizes), for inspection."""
        loc, scale = self.placement(x)
        return outer(axes_gamma(self.family, loc, scale, self.sizes, truncate=self.truncate))

    def tiles(self) -> tuple[Tensor, Tensor] | None:
        """`placement` in float64 if the densities are uniform on the tiles of a grid, else None."""
        return None

    def pdf_axes(self, x: Tensor | None = None, *, resolution: int = 4) -> list[Tensor]:
        """Factors of φ along each axis, at the centres of `resolution` cells per pixel.

        Those of `tiles` are means over the cells: a centre may lie on an edge that two share.

        Returns:
            For each axis of `sizes` the densities per pixel,
            (batch or 1, channels or 1, K, size · resolution).
        """
        if tiles := self.tiles():
            cells = tuple(len(cell_centres(n, resolution, self.lengths)) for n in self.sizes)
            loc, scale = (resolution * part for part in tiles)
            masses = axes_gamma(self.family, loc, scale, cells)
            return [(resolution * part).to(self.lengths) for part in masses]
        loc, scale = self.placement(x)
        factors = []
        for axis, size in enumerate(self.sizes):
            index = len(self.sizes) - 1 - axis
            mu, s = loc[..., index, None], scale[..., index, None]
            phi = self.family.pdf((cell_centres(size, resolution, mu) - mu) / s) / s
            if self.truncate:
                total = axes_gamma(self.family, loc, scale, self.sizes)[axis].sum(-1)[..., None]
                empty = negligible(total)
                phi = torch.where(empty, 1 / size, phi / total.masked_fill(empty, 1))
            factors.append(phi)
        return factors

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities φ(t, u) on a grid, per square pixel.

        Args:
            x: (N, C, *sizes), required if the densities move with the input, otherwise ignored.
            resolution: cells per pixel on each axis; values are at the cells' centres,
                (k + ½) / resolution pixels from the domain's edge.
        Returns:
            (batch or 1, channels or 1, K, *sizes · resolution).
        """
        return outer(self.pdf_axes(x, resolution=resolution))

    def extra_repr(self) -> str:
        return (
            f"sizes={self.sizes}, in_channels={self.in_channels}, "
            f"num_densities={self.num_densities}, family={self.family.name}, "
            f"shared={self.groups < self.in_channels}, truncate={self.truncate}, frame={self.frame}"
        )


class DensityEmbedding(Embedding):
    """Fixed densities with learned location and scale: R(x) = Γ(α, β) x (Section 4.1).

    Args:
        sizes: length of each axis, (H, W) for images, (N,) for series.
        in_channels: number of channels C.
        num_densities: number of densities K, or a grid (B_rows, B_columns) with that product.
        family: a density or its name.
        shared: use the same densities for all channels; by default each channel has its own.
        truncate: renormalise each density to the domain (the paper does not).
        frame: the box that α and β are relative to. "input" is the domain of the input, as in the
            paper; "mass" is the box around its mass, see `densembed.functional.frame.mass_box`,
            with which the densities follow an input that is shifted or scaled.
        location_lr_scale: factor of the learning rate of the locations, see
            `densembed.functional.uniform.step_scaled`. Neither the initial locations nor the
            functions that can be learned depend on it.

    Parameters: `alpha` = α / location_lr_scale and `beta`, of shape (C or 1, K, axes): 4·C·K
    numbers for images. Input (batch, C, *sizes); ValueError for any other shape.

    >>> layer = DensityEmbedding((28, 28), num_densities=(5, 5), family="gaussian")
    >>> layer(torch.rand(8, 1, 28, 28)).shape
    torch.Size([8, 1, 25])
    >>> layer.receptive_field(resolution=2).shape
    torch.Size([1, 1, 25, 56, 56])
    """

    def __init__(
        self,
        sizes: int | Sequence[int],
        in_channels: int = 1,
        *,
        num_densities: int | tuple[int, ...] = 25,
        family: str | Density = "logistic",
        shared: bool = False,
        truncate: bool = False,
        frame: Frame = "input",
        location_lr_scale: float = 1.0,
    ):
        super().__init__(
            sizes,
            in_channels,
            num_densities=num_densities,
            family=family,
            shared=shared,
            truncate=truncate,
            frame=frame,
        )
        self.adaptive = frame == "mass"
        self.location_lr_scale = positive(location_lr_scale, "location_lr_scale")
        self.alpha = self._logits(0.0, ALPHA_STD / self.location_lr_scale)
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        alpha = step_scaled(widened(self.alpha), self.location_lr_scale)
        return self._placed(alpha[None], widened(self.beta)[None], x)

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        loc, scale = self.placement(x)
        if not self.adaptive:
            loc, scale = loc[0], scale[0]
        return embed(widened(x), loc, scale, self.family, truncate=self.truncate).to(x.dtype)

    def fold(self, weight: Tensor) -> Tensor:
        """The linear map on pixels, (O, C, *sizes), that equals `weight`, (O, C · K), after Γ.

        Raises ValueError if the densities move with the input.
        """
        loc, scale = self.placement()
        wide = widened(weight).unflatten(-1, (self.in_channels, self.num_densities))
        kernel = fold(wide, loc[0], scale[0], self.family, self.sizes, truncate=self.truncate)
        return kernel.to(weight.dtype)


class DensityEmbedding1d(DensityEmbedding):
    """`DensityEmbedding` of series: sizes N or (N,), input (batch, C, N).

    >>> DensityEmbedding1d(100, num_densities=8)(torch.rand(4, 1, 100)).shape
    torch.Size([4, 1, 8])
    """

    axes = 1


class DensityEmbedding2d(DensityEmbedding):
    """`DensityEmbedding` of images: sizes N or (H, W), input (batch, C, H, W).

    >>> DensityEmbedding2d((32, 24), 3, num_densities=8)(torch.rand(4, 3, 32, 24)).shape
    torch.Size([4, 3, 8])
    """

    axes = 2


class AdaptiveDensityEmbedding(Embedding):
    """Densities that move with the input: R(x) = Γ(α(x; W), β) x (Section 4.2).

    Args:
        locator: any module that maps (N, C, *sizes) to α of every density, as many numbers as
            (N, C, K, axes) has. The paper's micro network is one: a `DensityEmbedding`, flattened,
            followed by a linear map.
        adaptive_scale: also move the scales. The locator then returns the numbers of
            (N, 2, C, K, axes): α, and a shift of β. With zero shifts the layer equals one without
            this option.
        shared: use the same densities for all channels, so C is 1 in the output of the locator.
        sizes, in_channels, num_densities, family, truncate, frame: as in `DensityEmbedding`.
            `frame` does not set that of densities in the locator.

    Parameters: those of `locator`, and `beta` of shape (C or 1, K, axes). Raises ValueError if
    the shape of the input or the number of outputs of the locator is wrong.

    >>> locator = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 2 * 25))
    >>> layer = AdaptiveDensityEmbedding(locator, (28, 28), num_densities=25)
    >>> layer(torch.rand(8, 1, 28, 28)).shape
    torch.Size([8, 1, 25])
    """

    adaptive = True

    def __init__(
        self,
        locator: nn.Module,
        sizes: int | Sequence[int],
        in_channels: int = 1,
        *,
        num_densities: int | tuple[int, ...] = 25,
        family: str | Density = "logistic",
        shared: bool = False,
        truncate: bool = False,
        frame: Frame = "input",
        adaptive_scale: bool = False,
    ):
        super().__init__(
            sizes,
            in_channels,
            num_densities=num_densities,
            family=family,
            shared=shared,
            truncate=truncate,
            frame=frame,
        )
        self.locator = locator
        self.adaptive_scale = adaptive_scale
        self.beta = self._logits(BETA_MEAN, BETA_STD)

    def at(self, sizes: int | Sequence[int]) -> Self:
        layer = super().at(sizes)
        locator = layer.locator
        if isinstance(locator, nn.Sequential) and isinstance(locator[0], Embedding):
            locator[0] = locator[0].at(sizes)
        elif isinstance(locator, Embedding):
            layer.locator = locator.at(sizes)
        else:
            raise ValueError(
                "The locator of this layer is made for one grid: only a locator that begins with "
                "an embedding can be used on another one."
            )
        return layer

    def _located(self, x: Tensor) -> Tensor:
        """Output of the locator, (N, 1 or 2, C or 1, K, axes)."""
        parts = 2 if self.adaptive_scale else 1
        shape = (parts, self.groups, self.num_densities, len(self.sizes))
        numbers = self.locator(x)
        batch = x.shape[0]  # len() would be a constant for torch.export
        if numbers.shape[:1] != x.shape[:1] or math.prod(numbers.shape[1:]) != math.prod(shape):
            raise ValueError(
                f"Expected {math.prod(shape)} numbers for each of {batch} inputs from the "
                f"locator; got an output of shape {tuple(numbers.shape)}."
            )
        return widened(numbers).reshape(batch, *shape)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        numbers = self._located(self._required(x))
        beta = widened(self.beta)[None]
        if self.adaptive_scale:
            beta = beta + numbers[:, 1]
        return self._placed(numbers[:, 0], beta, x)

    def forward(self, x: Tensor) -> Tensor:
        loc, scale = self.placement(x)
        return embed(widened(x), loc, scale, self.family, truncate=self.truncate).to(x.dtype)


class AdaptiveDensityEmbedding1d(AdaptiveDensityEmbedding):
    """`AdaptiveDensityEmbedding` of series: sizes N or (N,), input (batch, C, N).

    >>> layer = AdaptiveDensityEmbedding1d(nn.Linear(100, 8), 100, num_densities=8)
    >>> layer(torch.rand(4, 1, 100)).shape
    torch.Size([4, 1, 8])
    """

    axes = 1


class AdaptiveDensityEmbedding2d(AdaptiveDensityEmbedding):
    """`AdaptiveDensityEmbedding` of images: sizes N or (H, W), input (batch, C, H, W).

    >>> locator = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 2 * 9))
    >>> layer = AdaptiveDensityEmbedding2d(locator, 16, num_densities=(3, 3))
    >>> location, scale = layer.placement(torch.rand(4, 1, 16, 16))
    >>> location.shape
    torch.Size([4, 1, 9, 2])
    """

    axes = 2


class PixelEmbedding(Embedding):
    """One uniform density per pixel, so that Γ is the identity (Section 3.1).

    It has no parameters. A linear classifier of its output is the usual fully connected layer.
    On another grid (`at`) the densities stay where they are, and the output is the mean of the
    input over each pixel of the original grid. Their receptive field consists of means over cells.

    >>> PixelEmbedding((4, 5))(torch.rand(2, 1, 4, 5)).shape
    torch.Size([2, 1, 20])
    """

    def __init__(self, sizes: int | Sequence[int], in_channels: int = 1):
        super().__init__(
            sizes,
            in_channels,
            num_densities=axis_sizes(sizes),
            family="uniform",
            shared=True,
            truncate=False,
        )

    def tiles(self) -> tuple[Tensor, Tensor]:
        axes = [torch.arange(cells, dtype=torch.float64) + 0.5 for cells in self.cells]
        loc = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flip(-1)
        loc = loc.reshape(1, 1, self.num_densities, len(self.cells))
        pixel = loc.new_tensor(self.pixel[::-1])
        return loc / pixel, (0.5 / pixel).expand_as(loc)

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        loc, scale = self.tiles()
        return loc.to(self.lengths), scale.to(self.lengths)

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        if self.cells != self.sizes:
            x = cell_means(x, self.cells)
        return x.flatten(2)

    def fold(self, weight: Tensor) -> Tensor:
        """The linear map on pixels, (O, C, *sizes), that equals `weight`, (O, C · K), after Γ."""
        weight = weight.unflatten(-1, (self.in_channels, *self.cells))
        return weight if self.cells == self.sizes else fold_cell_means(weight, self.sizes)
