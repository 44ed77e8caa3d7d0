"""Pooling that learns to interpolate between minimum, mean and maximum (Section 3.4)."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from densembed.functional.arguments import (
    check_input,
    check_source,
    per_axis,
    positions,
    positive,
    widened,
)
from densembed.functional.pooling import pooling_weights, softmax_pool
from densembed.functional.uniform import bounded, indicator, overlap, product, step_scaled

LEAST_LENGTH = 1e-3
"""Least length of a learned interval in pixels: a shorter one may be rounded to 0 in float32."""


class _AdaptivePool(nn.Module):
    axes: ClassVar[int]
    torch_layer: ClassVar[type[nn.AvgPool1d] | type[nn.AvgPool2d]]
    ends_logit: nn.Parameter | None

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        *,
        padding: int | Sequence[int] = 0,
        beta: Literal["layer", "channel"] = "layer",
        channels: int | None = None,
        learn_intervals: bool = False,
        min_length: float = 0.5,
        lr_scale: float = 1.0,
    ):
        super().__init__()
        self.kernel_size = per_axis(kernel_size, self.axes, "kernel_size", 1)
        self.stride = per_axis(
            self.kernel_size if stride is None else stride, self.axes, "stride", 1
        )
        self.padding = per_axis(padding, self.axes, "padding", 0)
        if any(2 * pad > size for pad, size in zip(self.padding, self.kernel_size, strict=True)):
            raise ValueError(
                f"Expected padding of at most half the kernel {self.kernel_size}; "
                f"got {self.padding}."
            )
        if beta not in ("layer", "channel"):
            raise ValueError(f"Expected beta 'layer' or 'channel'; got {beta!r}.")
        self.channels: int | None = None
        if beta == "channel":
            (self.channels,) = per_axis(channels, 1, "channels (with beta='channel')", 1)
        elif channels is not None:
            raise ValueError(
                f"Expected channels with beta='channel' only; got {channels!r} with beta='layer'."
            )
        self.min_length = positive(min_length, "min_length")
        if not LEAST_LENGTH <= self.min_length < min(self.kernel_size):
            raise ValueError(
                f"Expected a min_length from {LEAST_LENGTH} to below the kernel's "
                f"{min(self.kernel_size)}; got {min_length}."
            )
        self.lr_scale = positive(lr_scale, "lr_scale")
        self.beta = nn.Parameter(torch.zeros(self.channels or 1))
        ends = nn.Parameter(torch.zeros(self.axes, 2)) if learn_intervals else None
        self.register_parameter("ends_logit", ends)

    @classmethod
    def from_torch(cls, module: nn.AvgPool1d | nn.AvgPool2d, **options: Any) -> Self:
        """A layer that initially computes this average pooling.

        `options` are keyword arguments of the constructor. Raises ValueError if the two cannot
        agree: with ceil_mode, a divisor, padding that is counted, forward hooks, or in a subclass
        with its own forward.
        """
        check_source(module, cls.torch_layer)
        padding = per_axis(module.padding, cls.axes, "padding", 0)
        counted = module.count_include_pad and any(padding)
        if module.ceil_mode or counted or getattr(module, "divisor_override", None):
            raise ValueError(
                "Expected an average pooling without ceil_mode and divisor_override, and with "
                f"count_include_pad=False if it pads; got {module}."
            )
        layer = cls(module.kernel_size, module.stride, padding=padding, **options)
        return layer.train(module.training)

    def ends(self, axis: int) -> tuple[Tensor, Tensor]:
        """Ends of the interval along an axis, in pixels from the start of torch's window.

        Each stays within (K − min_length)/2 of the end of torch's window, so the interval is never
        shorter than `min_length` and always overlaps the signal.
        """
        taps = self.kernel_size[axis]
        if self.ends_logit is None:
            lower = torch.zeros_like(widened(self.beta.detach()[0]))
            return lower, lower + taps
        travel = (taps - self.min_length) / 2
        moved = bounded(step_scaled(widened(self.ends_logit), self.lr_scale), -travel, travel)
        return moved[axis, 0], moved[axis, 1] + taps

    def _margin(self, axis: int) -> int:
        """Number of whole pixels beyond torch's window, per side, that the interval can cover."""
        if self.ends_logit is None:
            return 0
        return math.ceil((self.kernel_size[axis] - self.min_length) / 2)

    def _starts(self, axis: int, count: int) -> Tensor:
        """Left edges of the pixels of each window, (L, M), in pixels of the input."""
        margin, device = self._margin(axis), self.beta.device
        window = torch.arange(-margin, self.kernel_size[axis] + margin, device=device)
        offset = torch.arange(count, device=device) * self.stride[axis] - self.padding[axis]
        return offset[:, None] + window

    def _masses(self, axis: int, size: int, count: int) -> Tensor:
        """m of each window's pixels, (L, M); 0 outside the signal."""
        margin = self._margin(axis)
        lower, upper = self.ends(axis)
        window = torch.arange(
            -margin, self.kernel_size[axis] + margin, dtype=lower.dtype, device=lower.device
        )
        starts = self._starts(axis, count)
        return overlap(lower, upper, window) * ((starts >= 0) & (starts < size))

    def _windows(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """Pixels (batch, C, ΠL, ΠM), masses (1, ΠL, ΠM), β (C or 1, 1, 1), and L."""
        check_input(x, self.beta)
        any_number = self.channels is None and len(self.beta) == 1
        channels = "channels" if any_number else len(self.beta)
        if x.dim() != self.axes + 2 or channels not in ("channels", x.shape[1]):
            names = "length" if self.axes == 1 else "height, width"
            raise ValueError(
                f"Expected an input of shape (batch, {channels}, {names}); got {tuple(x.shape)}."
            )
        counts: list[int] = []
        masses: list[Tensor] = []
        pads: list[int] = []
        for axis, size in enumerate(x.shape[2:]):
            span, stride, pad = self.kernel_size[axis], self.stride[axis], self.padding[axis]
            count = positions(size, span, stride, (pad, pad))
            margin = self._margin(axis)
            total = (count - 1) * stride + span + 2 * margin
            pads = [pad + margin, total - pad - margin - size, *pads]
            masses.append(self._masses(axis, size, count)[None])
            counts.append(count)
        windows = F.pad(x, pads) if any(pads) else x
        for axis, stride in enumerate(self.stride):
            span, place = masses[axis].shape[-1], 2 + axis
            if span == stride:  # adjacent windows: no copy, and vmap works
                windows = windows.unflatten(place, (counts[axis], span)).movedim(place + 1, -1)
            else:
                windows = windows.unfold(place, span, stride)
        # The pixels of a window get the largest stride in memory, see `softmax_pool`.
        pixels = range(2 + self.axes, 2 + 2 * self.axes)
        windows = windows.movedim(tuple(pixels), tuple(range(self.axes))).contiguous()
        windows = widened(windows.flatten(0, self.axes - 1).flatten(3).movedim(0, -1))
        return windows, product(masses).flatten(2), widened(self.beta)[:, None, None], counts

    def forward(self, x: Tensor) -> Tensor:
        """(batch, C, *sizes) → (batch, C, *L)."""
        windows, mass, beta, counts = self._windows(x)
        return softmax_pool(windows, mass, beta).unflatten(2, counts).to(x.dtype)

    def _spread(self, windows: Tensor, sizes: tuple[int, ...], counts: list[int]) -> Tensor:
        """Scatters values on the pixels of each window, (batch, C, ΠL, ΠM), over the input."""
        pixel_of = []
        for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            pixels = torch.arange(size, device=windows.device)
            pixel_of.append(self._starts(axis, count)[..., None] == pixels)
        shape = [one_hot.shape[1] for one_hot in pixel_of]
        dense = windows.unflatten(3, shape).unflatten(2, counts)
        rule = "bclm,lmn->bcln" if self.axes == 1 else "bcklmn,kmh,lnw->bcklhw"
        field = torch.einsum(rule, dense, *(one_hot.to(windows.dtype) for one_hot in pixel_of))
        return field.flatten(2, 1 + self.axes)

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ_in(x, β, λ) as a dense tensor (batch, C, ΠL positions, *sizes), for inspection."""
        if x is None:
            raise ValueError("The densities of this layer depend on the input; pass x.")
        windows, mass, beta, counts = self._windows(x)
        return self._spread(pooling_weights(windows, mass, beta), tuple(x.shape[2:]), counts)

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities φ_i(t, x, β, λ) of every output position, per (square) pixel.

        Args:
            x: (batch, C, *sizes), required because the densities depend on it.
            resolution: cells per pixel on each axis; values are at the cells' centres.
        Returns:
            (batch, C, ΠL positions, *sizes · resolution).
        """
        if x is None:
            raise ValueError("The densities of this layer depend on the input; pass x.")
        (resolution,) = per_axis(resolution, 1, "resolution", 1)
        windows, mass, beta, counts = self._windows(x)
        height = pooling_weights(windows, mass, beta) / mass.masked_fill(mass == 0, 1)
        field = self._spread(height, tuple(x.shape[2:]), counts)
        inside = []
        for axis, (size, count) in enumerate(zip(x.shape[2:], counts, strict=True)):
            offset = torch.arange(count, device=x.device) * self.stride[axis] - self.padding[axis]
            lower, upper = (end + offset for end in self.ends(axis))
            inside.append(indicator(lower, upper, size, resolution)[None])
            field = field.repeat_interleave(resolution, 3 + axis)
        return field * product(inside)

    def extra_repr(self) -> str:
        beta = f"channel, channels={self.channels}" if self.channels else "layer"
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"beta={beta}, learn_intervals={self.ends_logit is not None}"
        )


class AdaptivePool1d(_AdaptivePool):
    """Pooling with Γ_in = m_in e^{βx_n} / Σ_r m_ir e^{βx_r} and learned β (Section 3.4).

    It is average pooling at β = 0 (torch's, with count_include_pad=False), max pooling as β → ∞
    and min pooling as β → −∞, with an error of at most log(k)/|β| for windows of k pixels.

    Args:
        kernel_size, stride, padding: as in torch; the stride defaults to the kernel size.
        beta: one β for the layer ("layer") or one per channel ("channel").
        channels: number of channels C, with one β per channel only.
        learn_intervals: learn both ends of the interval on each axis, one pair for all positions
            and channels. The initial ones are those of torch's window. At an end exactly on the
            edge of a pixel, as initially, only the pixel inside contributes to the gradient.
        min_length: minimal length of a learned interval in pixels, from 0.001 to below the kernel
            size.
        lr_scale: factor of the learning rate of the ends, see
            `densembed.functional.uniform.step_scaled`.

    Parameters: `beta`, (C or 1,), and with `learn_intervals` also `ends_logit`, (axes, 2). The
    gradient of β is the variance of x under the density. It overflows in float32 if the density
    covers values of x that differ by more than 10¹⁹; that of x only if the gradient of the output
    times their difference does.
    Input (batch, C, N), output (batch, C, L); ValueError if the kernel does not fit the input. The
    output of a window with an infinite pixel is NaN.

    >>> pool = AdaptivePool1d(2)
    >>> pool(torch.tensor([[[1.0, 3.0, 2.0, 2.0]]])).tolist()
    [[[2.0, 2.0]]]
    """

    axes = 1
    torch_layer = nn.AvgPool1d


class AdaptivePool2d(_AdaptivePool):
    """Adaptive pooling of images, with the softmax over a product of two intervals.

    Arguments as in `AdaptivePool1d`, each an integer or (rows, columns). Input (batch, C, H, W).

    >>> pool = AdaptivePool2d(2, beta="channel", channels=3)
    >>> pool(torch.rand(8, 3, 28, 28)).shape
    torch.Size([8, 3, 14, 14])
    """

    axes = 2
    torch_layer = nn.AvgPool2d
