"""Convolution, and convolution with a learned amplitude (Sections 3.2 and 3.3).

Both spread the taps of a kernel over intervals I_i^l. With a fixed stride S, a whole number, the
intervals of position l are those of position 1 moved by (l−1)S pixels, so
Γ^l_{i, (l−1)S + j} = Γ^1_{ij} and

    y_l = Σ_i w_i Σ_n Γ^l_in x_n = Σ_j W_j x_{(l−1)S + j},   W_j = Σ_i w_i Γ^1_ij:

an ordinary convolution, exactly, whose kernel W is w spread over the pixels of one window. Only
this small Γ^1 is ever formed. With a stride S·p/K in proportion to the amplitude the intervals
are I_i^l = p/K · [(l−1)S + i−1, (l−1)S + i]: the cells of one grid of width p/K. So the signal
is integrated over that grid first, and an ordinary convolution of stride S follows.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from densembed.functional.arguments import check_dtype, per_axis, positions, widened
from densembed.functional.uniform import (
    bounded,
    bounded_logit,
    indicator,
    overlap,
    product,
    resample_kernel,
    resample_signal,
    step_scaled,
)

CONVOLVE = (F.conv1d, F.conv2d)


def padding_pairs(padding, spans, stride) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis from torch's `padding`: integers, "valid" or "same"."""
    if padding == "valid":
        return ((0, 0),) * len(spans)
    if padding == "same":
        if max(stride) > 1:
            raise ValueError(f"Expected stride 1 with padding 'same'; got {stride}.")
        return tuple(((span - 1) // 2, span - 1 - (span - 1) // 2) for span in spans)
    if isinstance(padding, str):
        raise ValueError(f"Expected padding 'same', 'valid' or integers; got {padding!r}.")
    return tuple((pad, pad) for pad in per_axis(padding, len(spans), "padding", 0))


class _Convolution(nn.Module):
    """What both convolutions share: weights as torch's, windows, the view of their densities.

    A subclass gives the intervals of the first position (`_ends`), how far the next ones lie
    (`_step`) and how high the densities are (`_height`). Its leading axis A is the number of
    output channels where every channel has intervals of its own, else 1.
    """

    axes: ClassVar[int]
    torch_layer: ClassVar[type[nn.Module]]

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
    ):
        super().__init__()
        for name, value in (
            ("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups),
        ):  # fmt: skip
            per_axis(value, 1, name, 1)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_axis(kernel_size, self.axes, "kernel_size", 1)
        self.stride = per_axis(stride, self.axes, "stride", 1)
        self.dilation = per_axis(dilation, self.axes, "dilation", 1)
        self.padding = padding_pairs(padding, self.spans, self.stride)
        start = self.torch_layer(
            in_channels, out_channels, self.kernel_size, groups=groups, bias=bias
        )
        self.weight = start.weight
        self.register_parameter("bias", start.bias)

    @classmethod
    def _torch_arguments(cls, module: nn.Module) -> dict:
        if not isinstance(module, cls.torch_layer):
            raise ValueError(
                f"Expected nn.{cls.torch_layer.__name__}; got {type(module).__name__}."
            )
        if module.padding_mode != "zeros":
            raise ValueError(f"Expected padding_mode 'zeros'; got {module.padding_mode!r}.")
        arguments = {
            name: getattr(module, name)
            for name in (
                "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation",
                "groups",
            )
        }  # fmt: skip
        return arguments | {"bias": module.bias is not None}

    @property
    def spans(self) -> tuple[int, ...]:
        """Pixels from the first to the last of K taps, for each axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True))

    def _whole_numbers(self, count: int) -> Tensor:
        dtype = torch.promote_types(self.weight.dtype, torch.float32)
        return torch.arange(count, dtype=dtype, device=self.weight.device)

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        """Lower and upper ends of I_i^1, each (A, K), from the padded signal's edge."""
        raise NotImplementedError

    def _step(self, axis: int) -> Tensor:
        """Pixels from one position to the next, (1,) or (A,)."""
        return self._whole_numbers(1) + self.stride[axis]

    def _height(self, axis: int) -> Tensor:
        """Value of the densities inside their intervals, (1,) or (A,)."""
        return self._whole_numbers(1) + 1

    def _counts(self, x: Tensor) -> list[int]:
        """L for each axis; ValueError for an input that does not fit."""
        if x.dim() != self.axes + 2 or x.shape[1] != self.in_channels:
            names = ("length",) if self.axes == 1 else ("height", "width")
            raise ValueError(
                f"Expected an input of shape (batch, {self.in_channels}, {', '.join(names)}); "
                f"got {tuple(x.shape)}."
            )
        return [
            positions(size, span, stride, pads)
            for size, span, stride, pads in zip(
                x.shape[2:], self.spans, self.stride, self.padding, strict=True
            )
        ]

    def _view(self, x: Tensor | None) -> list[tuple[Tensor, Tensor, int]]:
        """For each axis the ends of I_i^l, each (A, L, K), in pixels of the input, and its size.

        Without an input: one position, on a domain of just the pixels that its window reads.
        """
        if x is None:
            domain = [(reach, 1, 0) for reach in self._reach()]
        else:
            befores = [before for before, _ in self.padding]
            domain = list(zip(x.shape[2:], self._counts(x), befores, strict=True))
        view = []
        for axis, (size, count, before) in enumerate(domain):
            lower, upper = (end[:, None] for end in self._ends(axis))
            offset = self._step(axis)[:, None] * self._whole_numbers(count) - before
            view.append((lower + offset[..., None], upper + offset[..., None], size))
        return view

    def _reach(self) -> tuple[int, ...]:
        """Pixels that the intervals of one position can cover, for each axis."""
        return self.spans

    def gamma(self, x: Tensor | None = None) -> list[Tensor]:
        """Γ^l_in, one factor for each axis (rows, then columns), to check and to look at.

        Args:
            x: an input, of which only the shape counts. Without it the domain is what one
                window covers, and there is one position.
        Returns:
            A list with, for each axis, (out_channels or 1, L positions, K taps, N pixels). Over
            two axes Γ is the product of the factors (Section 2.3). Taps that fall on the padding
            have no mass.
        """
        return [
            self._height(axis)[:, None, None, None] * overlap(lower, upper, self._whole_numbers(n))
            for axis, (lower, upper, n) in enumerate(self._view(x))
        ]

    def receptive_field(
        self,
        x: Tensor | None = None,
        resolution: int = 4,
        position: int | tuple[int, ...] | None = None,
    ) -> Tensor:
        """Densities of the taps of one output position, per (square) pixel.

        Args:
            x: an input, of which only the shape counts; without it as in `gamma`.
            resolution: cells a pixel on each axis; values are at the cells' centres.
            position: l for each axis, counted from 0; the middle one by default.
        Returns:
            (1, out_channels or 1, taps, *sizes · resolution).
        """
        view = self._view(x)
        counts = [lower.shape[1] for lower, _, _ in view]
        if position is None:
            position = tuple(count // 2 for count in counts)
        position = per_axis(position, self.axes, "position", 0)
        if any(at >= count for at, count in zip(position, counts, strict=True)):
            raise ValueError(f"Expected a position below {tuple(counts)}; got {position}.")
        factors = []
        for axis, (at, (lower, upper, size)) in enumerate(zip(position, view, strict=True)):
            field = indicator(lower[:, at], upper[:, at], size, resolution)
            factors.append(self._height(axis)[:, None, None] * field)
        return product(factors)[None]

    def _apart(self, axis: int) -> int:
        """Pixels from one that a window reads to the next."""
        return 1

    def _fixed_stride(self, x: Tensor, weight: Tensor) -> Tensor:
        """y through Γ¹ of one window, from the pixels of its reach that it reads."""
        check_dtype(x, self.weight.dtype)
        factors, pads = [], []
        apart = tuple(self._apart(axis) for axis in range(self.axes))
        for axis, count in enumerate(self._counts(x)):
            reach, before = self._reach()[axis], self.padding[axis][0]
            pixels = self._whole_numbers((reach - 1) // apart[axis] + 1) * apart[axis]
            factors.append(overlap(*self._ends(axis), pixels))
            # Padded, or cut, to just what the windows read: that settles L for every p.
            read = (count - 1) * self.stride[axis] + reach
            pads = [before, read - before - x.shape[2 + axis], *pads]
        x = F.pad(x, pads) if any(pads) else x
        kernel = resample_kernel(weight, factors)
        convolve = CONVOLVE[self.axes - 1]
        return convolve(x, kernel, self.bias, self.stride, 0, apart, self.groups)

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={self.bias is not None}"
        )


class _DensityConv(_Convolution):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
        bias=True,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    @classmethod
    def from_torch(cls, module: nn.Module) -> "_DensityConv":
        """The same map with a copy of the weights, on the same device, in the same dtype."""
        layer = cls(**cls._torch_arguments(module))
        layer.to(module.weight).load_state_dict(module.state_dict())
        return layer

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        lower = self._whole_numbers(self.kernel_size[axis])[None] * self.dilation[axis]
        return lower, lower + 1

    def _apart(self, axis: int) -> int:
        return self.dilation[axis]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in_channels, *sizes) → (batch, out_channels, *L)."""
        return self._fixed_stride(x, self.weight)


class DensityConv1d(_DensityConv):
    """Convolution through Γ^l_in = 1 if n = (l−1)S + i, else 0 (Section 3.2): `nn.Conv1d`.

    Args:
        in_channels, out_channels, kernel_size, stride, dilation, groups, bias: as in torch.
        padding: integers, "same" or "valid"; the signal is zero outside its domain.

    Parameters: `weight`, `bias`, shaped and started as torch's, so its state_dict loads.
    Input (batch, in_channels, N); one that the kernel does not fit raises ValueError.
    """

    axes = 1
    torch_layer = nn.Conv1d


class DensityConv2d(_DensityConv):
    """Convolution of images through a separable Γ (Section 3.2): `nn.Conv2d`.

    Arguments as in `DensityConv1d`, an integer or (rows, columns). Input
    (batch, in_channels, H, W).
    """

    axes = 2
    torch_layer = nn.Conv2d


class _AdaptiveConv(_Convolution):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, groups=1, bias=True,
        amplitude="layer", stride_mode="fixed", normalize=False, bounds=(0.5, 1.5), start=1.0,
        lr_scale=1.0, dilation=1,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        if amplitude not in ("layer", "channel"):
            raise ValueError(f"Expected amplitude 'layer' or 'channel'; got {amplitude!r}.")
        if stride_mode not in ("fixed", "proportional"):
            raise ValueError(
                f"Expected stride_mode 'fixed' or 'proportional'; got {stride_mode!r}."
            )
        low, high = bounds
        if not 0 < low < high < math.inf:
            raise ValueError(f"Expected bounds 0 < a < b, as multiples of K; got {bounds}.")
        if not 0 < lr_scale < math.inf:
            raise ValueError(f"Expected a positive lr_scale; got {lr_scale}.")
        self.stride_mode = stride_mode
        self.normalize = normalize
        self.bounds = (float(low), float(high))
        self.lr_scale = float(lr_scale)
        shape = (out_channels if amplitude == "channel" else 1, self.axes)
        logit = bounded_logit(start, low, high) / lr_scale
        self.amplitude_logit = nn.Parameter(torch.full(shape, logit))

    @classmethod
    def from_torch(cls, module: nn.Module, **options) -> "_AdaptiveConv":
        """A layer that starts with a copy of the weights, on the same device, in the same dtype.

        It computes what `module` does for as long as p = K. `options` are the arguments from
        `amplitude` to `lr_scale`.
        """
        arguments = cls._torch_arguments(module)
        layer = cls(**arguments, **options).to(module.weight)
        layer.load_state_dict(layer.state_dict() | module.state_dict())
        return layer

    def _width(self) -> Tensor:
        """p/K, what one tap covers: (out_channels or 1, axes)."""
        return bounded(step_scaled(widened(self.amplitude_logit), self.lr_scale), *self.bounds)

    def amplitude(self) -> Tensor:
        """p(λ) in pixels, (out_channels or 1, axes), axes in the order of `kernel_size`."""
        width = self._width()
        return width * torch.tensor(self.kernel_size, dtype=width.dtype, device=width.device)

    def _reach(self) -> tuple[int, ...]:
        return tuple(math.ceil(self.bounds[1] * span) for span in self.spans)

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        edges = self._width()[:, axis, None] * self._whole_numbers(self.spans[axis] + 1)
        every = self.dilation[axis]
        return edges[:, :-1:every], edges[:, 1::every]

    def _step(self, axis: int) -> Tensor:
        step = super()._step(axis)
        return step * self._width()[:, axis] if self.stride_mode == "proportional" else step

    def _height(self, axis: int) -> Tensor:
        return 1 / self._width()[:, axis] if self.normalize else super()._height(axis)

    def _weight(self) -> Tensor:
        if not self.normalize:
            return self.weight
        height = 1 / self._width().prod(-1)
        return self.weight * height.to(self.weight.dtype).reshape(-1, *[1] * (self.axes + 1))

    def _proportional_stride(self, x: Tensor) -> Tensor:
        check_dtype(x, self.weight.dtype)
        counts = self._counts(x)
        cells = [
            (count - 1) * stride + span
            for count, stride, span in zip(counts, self.stride, self.spans, strict=True)
        ]
        x = F.pad(x, [pad for pair in reversed(self.padding) for pad in pair])
        width = self._width()
        if len(width) == 1:
            x, groups = x[:, None], self.groups
        else:  # every output channel reads a grid of its own: a group of its own
            x = x.unflatten(1, (self.groups, -1))
            x = x.repeat_interleave(self.out_channels // self.groups, 1)
            groups = self.out_channels
        for axis, count in enumerate(cells):  # first axis left in, its cells put last
            x = resample_signal(x.movedim(3, -1), width[:, axis], count, self.bounds[1])
        convolve = CONVOLVE[self.axes - 1]
        x, weight = x.flatten(1, 2), self._weight()
        return convolve(x, weight, self.bias, self.stride, 0, self.dilation, groups)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in_channels, *sizes) → (batch, out_channels, *L), L as for p = K."""
        if self.stride_mode == "proportional":
            return self._proportional_stride(x)
        return self._fixed_stride(x, self._weight())

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, stride_mode={self.stride_mode}, "
            f"normalize={self.normalize}, bounds={self.bounds}"
        )


class AdaptiveConv1d(_AdaptiveConv):
    """Convolution whose kernel learns its amplitude p (Section 3.3).

    Tap i of position l is uniform on I_i^l(p) = [(l−1)S + p(i−1)/K, (l−1)S + p·i/K], counted from
    the edge of the padded signal, which is zero outside. So the kernel grows to the right. At
    p = K the layer is `nn.Conv1d`, in value and in the gradient of its weights; there
    everything has a kink in p. p(λ) = a + (b−a) σ(λ) keeps it within bounds with any optimiser.
    The number of positions is that of K and S for every p.

    Args:
        in_channels, out_channels, kernel_size, stride, groups, bias: as in torch.
        padding: integers, "same" or "valid".
        amplitude: one p for the layer ("layer") or for each output channel ("channel").
        stride_mode: S as it is ("fixed") or S·p/K ("proportional"). Proportional with an
            amplitude a channel resamples the input once for each output channel.
        normalize: densities of mass 1 (height K/p). As printed they have height 1, so mass p/K.
        bounds: (a, b) as multiples of K, 0 < a < b. A fixed stride costs a kernel of ⌈b⌉ pixels.
        start: p at the start as a multiple of K, strictly within the bounds.
        lr_scale: longer steps in λ, see `densembed.functional.uniform.step_scaled`.
        dilation: D as in torch: tap i starts at p/K · D(i−1), so p stretches the gaps, too.

    Parameters: `weight`, `bias` as torch's; `amplitude_logit` = λ / lr_scale, shape
    (out_channels or 1, axes). Input (batch, in_channels, N); ValueError if K does not fit it.
    """

    axes = 1
    torch_layer = nn.Conv1d


class AdaptiveConv2d(_AdaptiveConv):
    """Adaptive convolution of images, with an amplitude for each axis (Sections 2.3 and 3.3).

    Tap (i, j) is uniform on a product of intervals. Arguments as in `AdaptiveConv1d`, an integer
    or (rows, columns). Input (batch, in_channels, H, W).
    """

    axes = 2
    torch_layer = nn.Conv2d
