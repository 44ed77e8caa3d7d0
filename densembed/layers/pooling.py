"""Pooling between the minimum, the mean and the maximum, learned (Section 3.4)."""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from densembed.functional.arguments import check_dtype, per_axis, positions, widened
from densembed.functional.pooling import pooling_weights, softmax_pool
from densembed.functional.uniform import bounded, indicator, overlap, product, step_scaled


class _AdaptivePool(nn.Module):
    axes: ClassVar[int]
    torch_layer: ClassVar[type[nn.Module]]

    def __init__(
        self, kernel_size, stride=None, padding=0, beta="layer", channels=None,
        learn_intervals=False, min_length=0.5, lr_scale=1.0,
    ):  # fmt: skip
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
        if beta == "channel":
            per_axis(channels, 1, "channels (for a β a channel)", 1)
        if not 0 < min_length < min(self.kernel_size):
            raise ValueError(
                f"Expected a min_length between 0 and the kernel's {min(self.kernel_size)}; "
                f"got {min_length}."
            )
        if not 0 < lr_scale < math.inf:
            raise ValueError(f"Expected a positive lr_scale; got {lr_scale}.")
        self.min_length = float(min_length)
        self.lr_scale = float(lr_scale)
        self.beta = nn.Parameter(torch.zeros(channels if beta == "channel" else 1))
        ends = nn.Parameter(torch.zeros(self.axes, 2)) if learn_intervals else None
        self.register_parameter("ends_logit", ends)

    @classmethod
    def from_torch(cls, module: nn.Module, **options) -> "_AdaptivePool":
        """A layer that starts as this average pooling; `options` are arguments from `beta` on.

        Raises ValueError where the two differ: ceil_mode, a divisor, padding that is counted.
        """
        if not isinstance(module, cls.torch_layer):
            raise ValueError(
                f"Expected nn.{cls.torch_layer.__name__}; got {type(module).__name__}."
            )
        padding = per_axis(module.padding, cls.axes, "padding", 0)
        counted = module.count_include_pad and any(padding)
        if module.ceil_mode or counted or getattr(module, "divisor_override", None):
            raise ValueError(
                "Expected an average pooling without ceil_mode and divisor_override, and with "
                f"count_include_pad=False where it pads; got {module}."
            )
        return cls(module.kernel_size, module.stride, padding, **options)

    def ends(self, axis: int) -> tuple[Tensor, Tensor]:
        """Ends of the interval along an axis, in pixels from where torch's window starts.

        Each keeps within (K − min_length)/2 of where torch's window has it, so the interval is
        never shorter than `min_length` and never misses the signal.
        """
        taps = self.kernel_size[axis]
        if self.ends_logit is None:
            lower = torch.zeros_like(widened(self.beta.detach()[0]))
            return lower, lower + taps
        travel = (taps - self.min_length) / 2
        moved = bounded(step_scaled(widened(self.ends_logit), self.lr_scale), -travel, travel)
        return moved[axis, 0], moved[axis, 1] + taps

    def _margin(self, axis: int) -> int:
        """Whole pixels beyond torch's window, on either side, that the interval can reach."""
        if self.ends_logit is None:
            return 0
        return math.ceil((self.kernel_size[axis] - self.min_length) / 2)

    def _starts(self, axis: int, count: int) -> Tensor:
        """Where the pixels of each window start, (L, M), in pixels of the input."""
        margin, device = self._margin(axis), self.beta.device
        window = torch.arange(-margin, self.kernel_size[axis] + margin, device=device)
        offset = torch.arange(count, device=device) * self.stride[axis] - self.padding[axis]
        return offset[:, None] + window

    def _masses(self, axis: int, size: int, count: int) -> Tensor:
        """m of each window's pixels, (L, M); those outside the signal have none."""
        margin = self._margin(axis)
        lower, upper = self.ends(axis)
        window = torch.arange(
            -margin, self.kernel_size[axis] + margin, dtype=lower.dtype, device=lower.device
        )
        starts = self._starts(axis, count)
        return overlap(lower, upper, window) * ((starts >= 0) & (starts < size))

    def _windows(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """Pixels (batch, C, ΠL, ΠM), masses (1, ΠL, ΠM), β (C or 1, 1, 1), and L."""
        check_dtype(x, self.beta.dtype)
        wanted = "channels" if len(self.beta) == 1 else len(self.beta)
        if x.dim() != self.axes + 2 or wanted not in ("channels", x.shape[1]):
            names = "length" if self.axes == 1 else "height, width"
            raise ValueError(
                f"Expected an input of shape (batch, {wanted}, {names}); got {tuple(x.shape)}."
            )
        counts, masses, pads = [], [], []
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
            if span == stride:  # windows side by side: no copy, and members map over it
                windows = windows.unflatten(place, (counts[axis], span)).movedim(place + 1, -1)
            else:
                windows = windows.unfold(place, span, stride)
        # The pixels of a window first in memory, see `softmax_pool`.
        pixels = range(2 + self.axes, 2 + 2 * self.axes)
        windows = windows.movedim(tuple(pixels), tuple(range(self.axes))).contiguous()
        windows = widened(windows.flatten(0, self.axes - 1).flatten(3).movedim(0, -1))
        return windows, product(masses).flatten(2), widened(self.beta)[:, None, None], counts

    def forward(self, x: Tensor) -> Tensor:
        """(batch, C, *sizes) → (batch, C, *L)."""
        windows, mass, beta, counts = self._windows(x)
        return softmax_pool(windows, mass, beta).unflatten(2, counts).to(x.dtype)

    def _spread(self, windows: Tensor, sizes: tuple[int, ...], counts: list[int]) -> Tensor:
        """Values on the pixels of each window, (batch, C, ΠL, ΠM), put where those pixels are."""
        places = []
        for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            pixels = torch.arange(size, device=windows.device)
            places.append(self._starts(axis, count)[..., None] == pixels)
        shape = [place.shape[1] for place in places]
        dense = windows.unflatten(3, shape).unflatten(2, counts)
        rule = "bclm,lmn->bcln" if self.axes == 1 else "bcklmn,kmh,lnw->bcklhw"
        placed = torch.einsum(rule, dense, *(place.to(windows.dtype) for place in places))
        return placed.flatten(2, 1 + self.axes)

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ_in(x, β, λ) as a dense tensor (batch, C, ΠL positions, *sizes), to look at."""
        if x is None:
            raise ValueError("The densities of this layer depend on the input: pass x.")
        windows, mass, beta, counts = self._windows(x)
        return self._spread(pooling_weights(windows, mass, beta), tuple(x.shape[2:]), counts)

    def receptive_field(self, x: Tensor | None = None, resolution: int = 4) -> Tensor:
        """Densities φ_i(t, x, β, λ) of every output position, per (square) pixel.

        Args:
            x: (batch, C, *sizes), needed because the densities depend on it.
            resolution: cells a pixel on each axis; values are at the cells' centres.
        Returns:
            (batch, C, ΠL positions, *sizes · resolution).
        """
        if x is None:
            raise ValueError("The densities of this layer depend on the input: pass x.")
        windows, mass, beta, counts = self._windows(x)
        height = pooling_weights(windows, mass, beta) / mass.masked_fill(mass == 0, 1)
        field = self._spread(height, tuple(x.shape[2:]), counts)
        inside = []
        for axis, (size, count) in enumerate(zip(x.shape[2:], counts, strict=True)):
            field = field.repeat_interleave(resolution, 3 + axis)
            offset = torch.arange(count, device=x.device) * self.stride[axis] - self.padding[axis]
            lower, upper = (end + offset for end in self.ends(axis))
            inside.append(indicator(lower, upper, size, resolution)[None])
        return field * product(inside)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"learn_intervals={self.ends_logit is not None}"
        )


class AdaptivePool1d(_AdaptivePool):
    """Pooling with Γ_in = m_in e^{βx_n} / Σ_r m_ir e^{βx_r}, β learned (Section 3.4).

    Average pooling at β = 0 (torch's, with count_include_pad=False), max pooling as β → ∞, min
    pooling as β → −∞: within log(k)/|β| of either for windows of k pixels.

    Args:
        kernel_size, stride, padding: as in torch (stride None: the kernel's size).
        beta: one β for the layer ("layer") or for each channel ("channel").
        channels: C, for a β a channel.
        learn_intervals: learn both ends of the interval on each axis, one pair for all positions
            and channels. They start at torch's window. Where an end lies exactly on the edge of
            a pixel, as it does at the start, the gradient counts the pixel inside alone.
        min_length: least length of a learned interval, in pixels, below the kernel's size.
        lr_scale: longer steps for the ends, see `densembed.functional.uniform.step_scaled`.

    Parameters: `beta`, (C or 1,); `ends_logit`, (axes, 2), where the ends are learned.
    Input (batch, C, N), output (batch, C, L); ValueError for one that the kernel does not fit.
    """

    axes = 1
    torch_layer = nn.AvgPool1d


class AdaptivePool2d(_AdaptivePool):
    """Adaptive pooling of images: the softmax runs over a product of two intervals.

    Arguments as in `AdaptivePool1d`, an integer or (rows, columns). Input (batch, C, H, W).
    """

    axes = 2
    torch_layer = nn.AvgPool2d
