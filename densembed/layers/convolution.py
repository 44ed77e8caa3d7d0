"""Convolution, and convolution with a learned amplitude (Sections 3.2 and 3.3).

Both spread the taps of a kernel over intervals I_i^l. With a fixed integer stride S the intervals
of position l are those of position 1, shifted by (l−1)S pixels, so Γ^l_{i, (l−1)S + j} = Γ^1_{ij}
and

    y_l = Σ_i w_i Σ_n Γ^l_in x_n = Σ_j W_j x_{(l−1)S + j},   W_j = Σ_i w_i Γ^1_ij:

exactly an ordinary convolution, with the kernel W = w spread over the pixels of one window. Only
the small Γ^1 is computed. With the stride S·p/K, proportional to the amplitude, the intervals are
I_i^l = p/K · [(l−1)S + i−1, (l−1)S + i], the cells of one grid of width p/K. So the signal is
first integrated over that grid, and an ordinary convolution with stride S follows.
"""

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
    take_weights,
    widened,
)
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
Padding = int | Sequence[int] | Literal["same", "valid"]


def padding_pairs(
    padding: Padding, spans: tuple[int, ...], stride: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
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
    """Base class of both convolutions: torch's weights, the windows and the receptive field.

    A subclass defines the intervals of the first position (`_ends`), the distance to the next
    position (`_step`) and the value of the densities (`_height`). The leading axis A of these is
    the number of output channels if each has its own intervals, otherwise 1.
    """

    axes: ClassVar[int]
    torch_layer: ClassVar[type[nn.Conv1d] | type[nn.Conv2d]]
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        (self.in_channels,) = per_axis(in_channels, 1, "in_channels", 1)
        (self.out_channels,) = per_axis(out_channels, 1, "out_channels", 1)
        (self.groups,) = per_axis(groups, 1, "groups", 1)
        self.kernel_size = per_axis(kernel_size, self.axes, "kernel_size", 1)
        self.stride = per_axis(stride, self.axes, "stride", 1)
        self.dilation = per_axis(dilation, self.axes, "dilation", 1)
        self.padding = padding_pairs(padding, self.spans, self.stride)
        initial = self.torch_layer(
            self.in_channels,
            self.out_channels,
            self.kernel_size,  # type: ignore[arg-type]
            groups=self.groups,
            bias=bias,
        )
        self.weight = initial.weight
        self.bias = initial.bias

    @classmethod
    def _torch_arguments(cls, module: nn.Conv1d | nn.Conv2d) -> dict[str, Any]:
        check_source(module, cls.torch_layer)
        if module.padding_mode != "zeros":
            raise ValueError(f"Expected padding_mode 'zeros'; got {module.padding_mode!r}.")
        names = "in_channels out_channels kernel_size stride padding dilation groups"
        arguments = {name: getattr(module, name) for name in names.split()}
        return arguments | {"bias": module.bias is not None}

    @property
    def spans(self) -> tuple[int, ...]:
        """Extent of the K taps in pixels, for each axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True))

    def _whole_numbers(self, count: int) -> Tensor:
        dtype = torch.promote_types(self.weight.dtype, torch.float32)
        return torch.arange(count, dtype=dtype, device=self.weight.device)

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        """Lower and upper ends of I_i^1, each (A, K), from the edge of the padded signal."""
        raise NotImplementedError

    def _step(self, axis: int) -> Tensor:
        """Pixels from one position to the next, (1,) or (A,)."""
        return self._whole_numbers(1) + self.stride[axis]

    def _height(self, axis: int) -> Tensor:
        """Value of the densities inside their intervals, (1,) or (A,)."""
        return self._whole_numbers(1) + 1

    def _counts(self, x: Tensor) -> list[int]:
        """L for each axis; ValueError for an input that the kernel does not fit."""
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

        Without an input there is one position, and the domain is its window.
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
        """Number of pixels that the intervals of one position can cover, for each axis."""
        return self.spans

    def gamma(self, x: Tensor | None = None) -> list[Tensor]:
        """Γ^l_in, one factor for each axis (rows, then columns), for inspection.

        Args:
            x: an input, of which only the shape is used. Without it there is one position, and
                the domain is its window.
        Returns:
            For each axis a tensor (out_channels or 1, L positions, K taps, N pixels). With two
            axes Γ is the product of the factors (Section 2.3). Taps on the padding have no mass.
        """
        return [
            self._height(axis)[:, None, None, None] * overlap(lower, upper, self._whole_numbers(n))
            for axis, (lower, upper, n) in enumerate(self._view(x))
        ]

    def receptive_field(
        self,
        x: Tensor | None = None,
        *,
        resolution: int = 4,
        position: int | Sequence[int] | None = None,
    ) -> Tensor:
        """Densities of the taps of one output position, per (square) pixel.

        Args:
            x: an input, of which only the shape is used; without it as in `gamma`.
            resolution: cells per pixel on each axis; values are at the cells' centres.
            position: l for each axis, counted from 0; by default the middle one.
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

    def _spacing(self, axis: int) -> int:
        """Distance in pixels between consecutive pixels that a window reads."""
        return 1

    def _fixed_stride(self, x: Tensor, weight: Tensor) -> Tensor:
        """y by convolution with the kernel that Γ¹ of one window gives."""
        check_input(x, self.weight)
        factors: list[Tensor] = []
        pads: list[int] = []
        spacing = tuple(self._spacing(axis) for axis in range(self.axes))
        for axis, count in enumerate(self._counts(x)):
            reach, before = self._reach()[axis], self.padding[axis][0]
            pixels = self._whole_numbers((reach - 1) // spacing[axis] + 1) * spacing[axis]
            factors.append(overlap(*self._ends(axis), pixels))
            # Pads or crops to exactly what the windows read, so L does not depend on p.
            read = (count - 1) * self.stride[axis] + reach
            pads = [before, read - before - x.shape[2 + axis], *pads]
        x = F.pad(x, pads) if any(pads) else x
        kernel = resample_kernel(weight, factors)
        convolve = CONVOLVE[self.axes - 1]
        return convolve(x, kernel, self.bias, self.stride, 0, spacing, self.groups)

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={self.bias is not None}"
        )


class _DensityConv(_Convolution):
    @classmethod
    def from_torch(cls, module: nn.Conv1d | nn.Conv2d) -> Self:
        """The same map with a copy of the weights, on the same device and in the same dtype.

        Raises ValueError for a module that computes another map: with another padding mode, a
        subclass with its own forward, or one with forward hooks.
        """
        layer = cls(**cls._torch_arguments(module))
        take_weights(layer, module)
        return layer

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        lower = self._whole_numbers(self.kernel_size[axis])[None] * self.dilation[axis]
        return lower, lower + 1

    def _spacing(self, axis: int) -> int:
        return self.dilation[axis]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in_channels, *sizes) → (batch, out_channels, *L)."""
        return self._fixed_stride(x, self.weight)


class DensityConv1d(_DensityConv):
    """`nn.Conv1d` by densities: Γ^l_in = 1 if n = (l−1)S + i, otherwise 0 (Section 3.2).

    Args:
        in_channels, out_channels, kernel_size, stride, dilation, groups, bias: as in torch.
        padding: integers, "same" or "valid"; the signal is zero outside its domain.

    Parameters: `weight`, `bias`, with the shapes and initialisation of torch's layer, whose
    state_dict can be loaded. Input (batch, in_channels, N); ValueError if the kernel does not fit.

    >>> DensityConv1d(1, 4, 3, stride=2, padding=1)(torch.rand(8, 1, 100)).shape
    torch.Size([8, 4, 50])
    """

    axes = 1
    torch_layer = nn.Conv1d


class DensityConv2d(_DensityConv):
    """`nn.Conv2d` by separable densities (Section 3.2).

    Arguments as in `DensityConv1d`, each an integer or (rows, columns). Input
    (batch, in_channels, H, W).

    >>> layer = DensityConv2d.from_torch(nn.Conv2d(1, 4, 5, padding="same"))
    >>> layer(torch.rand(8, 1, 28, 28)).shape
    torch.Size([8, 4, 28, 28])
    """

    axes = 2
    torch_layer = nn.Conv2d


class _AdaptiveConv(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        amplitude: Literal["layer", "channel"] = "layer",
        stride_mode: Literal["fixed", "proportional"] = "fixed",
        normalize: bool = False,
        bounds: tuple[float, float] = (0.5, 1.5),
        start: float = 1.0,
        lr_scale: float = 1.0,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )
        if amplitude not in ("layer", "channel"):
            raise ValueError(f"Expected amplitude 'layer' or 'channel'; got {amplitude!r}.")
        if stride_mode not in ("fixed", "proportional"):
            raise ValueError(
                f"Expected stride_mode 'fixed' or 'proportional'; got {stride_mode!r}."
            )
        try:
            low, high = (positive(bound, "bound") for bound in bounds)
            if not low < high:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(
                f"Expected bounds 0 < a < b, as multiples of K; got {bounds!r}."
            ) from None
        self.stride_mode = stride_mode
        self.normalize = normalize
        self.bounds = (low, high)
        self.lr_scale = positive(lr_scale, "lr_scale")
        shape = (self.out_channels if amplitude == "channel" else 1, self.axes)
        logit = bounded_logit(positive(start, "start"), low, high) / self.lr_scale
        self.amplitude_logit = nn.Parameter(torch.full(shape, logit))

    @classmethod
    def from_torch(cls, module: nn.Conv1d | nn.Conv2d, **options: Any) -> Self:
        """A layer with a copy of the weights, on the same device and in the same dtype.

        It computes the same as `module` while p = K. `options` are the arguments that torch's
        layer does not have, from `amplitude` to `lr_scale`. Raises ValueError as for
        `DensityConv2d.from_torch`.
        """
        arguments = cls._torch_arguments(module)
        layer = cls(**arguments, **options)
        take_weights(layer, module)
        return layer

    def _width(self) -> Tensor:
        """p/K, the width of one tap: (out_channels or 1, axes)."""
        return bounded(step_scaled(widened(self.amplitude_logit), self.lr_scale), *self.bounds)

    def amplitude(self) -> Tensor:
        """p(λ) in pixels, (out_channels or 1, axes), axes in the order of `kernel_size`."""
        width = self._width()
        return width * torch.tensor(self.kernel_size, dtype=width.dtype, device=width.device)

    def _reach(self) -> tuple[int, ...]:
        return tuple(math.ceil(self.bounds[1] * span) for span in self.spans)

    def _ends(self, axis: int) -> tuple[Tensor, Tensor]:
        edges = self._width()[:, axis, None] * self._whole_numbers(self.spans[axis] + 1)
        dilation = self.dilation[axis]
        return edges[:, :-1:dilation], edges[:, 1::dilation]

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
        check_input(x, self.weight)
        counts = self._counts(x)
        cells = [
            (count - 1) * stride + span
            for count, stride, span in zip(counts, self.stride, self.spans, strict=True)
        ]
        x = F.pad(x, [pad for pair in reversed(self.padding) for pad in pair])
        width = self._width()
        if len(width) == 1:
            x, groups = x[:, None], self.groups
        else:  # each output channel has its own grid, so it is a group of its own
            x = x.unflatten(1, (self.groups, -1))
            x = x.repeat_interleave(self.out_channels // self.groups, 1)
            groups = self.out_channels
        for axis, count in enumerate(cells):  # moves the cells of each axis last
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
            f"amplitude={'channel' if len(self.amplitude_logit) > 1 else 'layer'}, "
            f"normalize={self.normalize}, bounds={self.bounds}"
        )


class AdaptiveConv1d(_AdaptiveConv):
    """Convolution with a learned amplitude p of the kernel (Section 3.3).

    Tap i of position l is uniform on I_i^l(p) = [(l−1)S + p(i−1)/K, (l−1)S + p·i/K], measured from
    the edge of the padded signal, which is zero outside. So the kernel grows to the right. At
    p = K the output and the gradient of the weights equal those of `nn.Conv1d`; the output has a
    kink in p there. p(λ) = a + (b−a) σ(λ) keeps p within its bounds with any optimiser. The number
    of positions follows from K and S and does not depend on p.

    Args:
        in_channels, out_channels, kernel_size, stride, groups, bias: as in torch.
        padding: integers, "same" or "valid".
        dilation: D as in torch. Tap i starts at p/K · D(i−1), so p also scales the gaps.
        amplitude: one p for the layer ("layer") or one per output channel ("channel").
        stride_mode: the stride is S ("fixed") or S·p/K ("proportional"). "proportional" with one
            amplitude per channel resamples the input once per output channel.
        normalize: use densities of mass 1 and height K/p; in the paper they have height 1 and mass
            p/K.
        bounds: (a, b) as multiples of K, 0 < a < b. With a fixed stride the kernel has ⌈bK⌉ pixels.
        start: initial p as a multiple of K, strictly within the bounds.
        lr_scale: factor of the learning rate of λ, see
            `densembed.functional.uniform.step_scaled`.

    Parameters: `weight` and `bias` as in torch; `amplitude_logit` = λ / lr_scale, of shape
    (out_channels or 1, axes). Input (batch, in_channels, N); ValueError if K does not fit.

    >>> layer = AdaptiveConv1d(1, 4, 5, padding="same", start=1.2)
    >>> layer(torch.rand(8, 1, 100)).shape
    torch.Size([8, 4, 100])
    >>> round(layer.amplitude().item(), 4)  # pixels
    6.0
    """

    axes = 1
    torch_layer = nn.Conv1d


class AdaptiveConv2d(_AdaptiveConv):
    """Adaptive convolution of images, with one amplitude per axis (Sections 2.3 and 3.3).

    Tap (i, j) is uniform on a product of intervals. Arguments as in `AdaptiveConv1d`, each an
    integer or (rows, columns). Input (batch, in_channels, H, W).

    >>> AdaptiveConv2d(1, 4, 5, padding="same")(torch.rand(8, 1, 28, 28)).shape
    torch.Size([8, 4, 28, 28])
    """

    axes = 2
    torch_layer = nn.Conv2d
