"""Densities on feature maps, with their receptive field mapped back to the input."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from densembed.functional.arguments import axis_sizes, per_axis
from densembed.functional.uniform import cell_means
from densembed.layers.convolution import _AdaptiveConv, _Convolution, padding_pairs
from densembed.layers.embedding import Embedding
from densembed.layers.pooling import _AdaptivePool

CONVOLUTIONS = (_Convolution, nn.Conv1d, nn.Conv2d)
POOLINGS = (_AdaptivePool, nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d)
WINDOWS = (*CONVOLUTIONS, *POOLINGS, nn.LPPool1d, nn.LPPool2d)
"""Layers of which each output is computed from one window of the input, at a fixed stride."""
IN_PLACE = ("activation", "batchnorm", "channelshuffle", "dropout", "instancenorm", "normalization")
"""Modules of `torch.nn.modules` whose layers keep every value, or its channels, in its place."""


def places(layer: nn.Module, axes: int = 2) -> tuple[Tensor, Tensor]:
    """Affine map from a layer's output to its input: cell [n, n + 1] → [a n + b, a (n + 1) + b].

    Each cell of the output corresponds to one stride, centred in its window. If the amplitude of
    the kernel or the interval of a pooling is learned, the window is what it currently covers.
    Layers without a window, such as activations, have a = 1 and b = 0.

    Args:
        layer: a convolution or pooling of `densembed.layers`, one of torch's with a fixed window
            (not `nn.ConvTranspose2d` or `nn.AdaptiveAvgPool2d`), one of torch's activations,
            normalizations and dropouts, `nn.Identity`, or an `nn.Sequential` of these.
    Returns:
        a and b, each of shape (axes,), rows before columns.
    Raises:
        ValueError: where the outputs of a layer lie on its input is not known.

    >>> stretch, offset = places(nn.MaxPool2d(2))
    >>> stretch.tolist(), offset.tolist()
    ([2.0, 2.0], [0.0, 0.0])
    """
    stretch, offset = torch.ones(axes), torch.zeros(axes)
    if isinstance(layer, nn.Sequential):
        for inner in reversed(layer):
            a, b = places(inner, axes)
            stretch, offset = a.to(stretch) * stretch, a.to(stretch) * offset + b.to(stretch)
    elif isinstance(layer, WINDOWS):
        window: Any = layer
        # Torch's layers have one number for all axes, or one per axis.
        strides = per_axis(window.stride or window.kernel_size, axes, "stride", 1)
        sizes = per_axis(window.kernel_size, axes, "kernel_size", 1)
        dilations = per_axis(getattr(window, "dilation", 1), axes, "dilation", 1)
        spans = tuple(d * (k - 1) + 1 for k, d in zip(sizes, dilations, strict=True))
        if isinstance(window, _Convolution):
            pads = window.padding
        else:
            pads = padding_pairs(getattr(window, "padding", 0), spans, strides)
        stretch = torch.tensor(strides, dtype=stretch.dtype)
        widths = torch.tensor(spans, dtype=stretch.dtype)
        if isinstance(window, _AdaptiveConv):
            scale = window.amplitude().detach().mean(0).to(stretch) / torch.tensor(sizes)
            widths = widths * scale
            if window.stride_mode == "proportional":
                stretch = stretch * scale
        start = torch.zeros_like(widths)
        if isinstance(window, _AdaptivePool):  # its intervals may be learned
            lower, upper = (
                torch.stack(ends).detach().to(stretch)
                for ends in zip(*map(window.ends, range(axes)), strict=True)
            )
            start, widths = lower, upper - lower
        offset = (
            start
            + (widths - stretch) / 2
            - torch.tensor([before for before, _ in pads]).to(stretch)
        )
    elif not _in_place(layer, axes):
        raise ValueError(
            "Expected layers whose outputs have a known place on the input, such as convolutions, "
            f"pooling and activations, in an nn.Sequential; got {type(layer).__name__}."
        )
    return stretch, offset


def _in_place(layer: nn.Module, axes: int) -> bool:
    package, _, name = type(layer).__module__.rpartition(".")
    if isinstance(layer, nn.MultiheadAttention):  # among torch's activations
        return False
    if isinstance(layer, nn.GLU) and layer.dim not in (1, -axes - 1):  # joins halves of an axis
        return False
    return isinstance(layer, nn.Identity) or (package == "torch.nn.modules" and name in IN_PLACE)


class FeatureEmbedding(Embedding):
    """Densities on the feature maps of an input, located on the input itself.

    Each cell of a feature map corresponds to an interval of the input (see `places`), so a density
    on the maps corresponds to one of the same family on the input, with μ ↦ a μ + b and s ↦ a s.
    `placement`, `gamma` and `receptive_field` return those. They show where the densities lie; the
    output also depends on pixels nearby, since the window of a cell is wider than its interval.
    With `truncate=True` they are renormalised to the domain of the input, and those of the output
    to that of the maps, which is smaller without padding.

    The windows of the features count pixels. So on another grid (`at`) the features get the means
    of the input over the pixels of the original grid.

    Args:
        features: a module (N, in_channels, *sizes) → (N, maps, *embedding.sizes), made of layers
            that `places` supports.
        embedding: the densities on the maps.
        sizes: length of each axis of the input, or one for all.
        in_channels: of the input.
    Raises:
        ValueError: `places` does not support one of the features' layers.

    >>> from densembed.layers import DensityEmbedding
    >>> features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    >>> densities = DensityEmbedding((14, 14), 4, num_densities=9, shared=True)
    >>> layer = FeatureEmbedding(features, densities, sizes=(28, 28))
    >>> layer(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 4, 9])
    >>> layer.receptive_field(resolution=1).shape
    torch.Size([1, 1, 9, 28, 28])
    """

    def __init__(
        self,
        features: nn.Module,
        embedding: Embedding,
        *,
        sizes: int | Sequence[int],
        in_channels: int = 1,
    ):
        super().__init__(
            axis_sizes(sizes, len(embedding.sizes)),
            in_channels,
            num_densities=embedding.num_densities,
            family=embedding.family,
            shared=embedding.groups == 1,
            truncate=embedding.truncate,
            frame=embedding.frame,
        )
        places(features, len(self.sizes))  # raises the error for a layer that it does not support
        self.adaptive = embedding.adaptive
        self.features = features
        self.embedding = embedding

    @property
    def out_features(self) -> int:
        return self.embedding.out_features

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if x is not None:
            self.check(x)
        maps = self._maps(x) if self.adaptive and x is not None else None
        return self._on_input(*self.embedding.placement(maps))

    def tiles(self) -> tuple[Tensor, Tensor] | None:
        tiles = self.embedding.tiles()
        return None if tiles is None else self._on_input(*tiles)

    def _on_input(self, loc: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Locations and scales on the input of those on the maps."""
        stretch, offset = (part.flip(0).to(loc) for part in places(self.features, len(self.sizes)))
        pixel = loc.new_tensor(self.pixel[::-1])
        return (loc * stretch + offset) / pixel, scale * stretch / pixel

    def _maps(self, x: Tensor) -> Tensor:
        return self.features(x if self.cells == self.sizes else cell_means(x, self.cells))

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, *sizes) → (N, maps, K)."""
        self.check(x)
        return self.embedding(self._maps(x))
