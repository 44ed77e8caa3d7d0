"""Densities on feature maps: a deeper network whose receptive field still lies on its input."""

import torch
from torch import Tensor, nn

from densembed.functional.arguments import per_axis
from densembed.layers.embedding import Embedding


def places(layer: nn.Module, axes: int = 2) -> tuple[Tensor, Tensor]:
    """Where a layer's output lies on its input: its cell [n, n + 1] on [a n + b, a (n + 1) + b].

    Each cell stands for one step of the stride, centred in the window that it reads (in what
    the kernel covers now, where its amplitude is learned). A layer without a window, such as an
    activation, moves nothing.

    Args:
        layer: a convolution or pooling of `densembed.layers` or of torch with a fixed stride and
            padding in numbers, a layer that acts pixel by pixel, or an `nn.Sequential` of those.
    Returns:
        a and b, each (axes,), rows then columns.
    """
    stretch, offset = torch.ones(axes), torch.zeros(axes)
    if isinstance(layer, nn.Sequential):
        for inner in reversed(layer):
            a, b = places(inner, axes)
            stretch, offset = a.to(stretch) * stretch, a.to(stretch) * offset + b.to(stretch)
    elif hasattr(layer, "kernel_size"):
        # torch's own layers keep one number for all axes, or one for each.
        stretch = torch.tensor(per_axis(layer.stride, axes, "stride", 1), dtype=stretch.dtype)
        taps = torch.tensor(per_axis(layer.kernel_size, axes, "kernel_size", 1)).to(stretch)
        dilation = getattr(layer, "dilation", 1)
        dilation = torch.tensor(per_axis(dilation, axes, "dilation", 1)).to(stretch)
        spans = dilation * (taps - 1) + 1
        if hasattr(layer, "amplitude"):
            spans = spans * layer.amplitude().detach().mean(0).to(stretch) / taps
        pads = layer.padding if isinstance(layer.padding, tuple) else (layer.padding,) * axes
        before = [pad[0] if isinstance(pad, tuple) else pad for pad in pads]
        offset = (spans - stretch) / 2 - torch.tensor(before, dtype=stretch.dtype)
    return stretch, offset


class FeatureEmbedding(Embedding):
    """Densities on the feature maps of an input, shown over the input itself.

    A cell of a feature map stands for a stretch of the input (see `places`), so a density on the
    maps is one of the same family on the input: μ becomes a μ + b, and s becomes a s. That is
    what `placement`, `gamma` and `receptive_field` give. It is where the densities lie, not yet
    all that they see: every cell reads a window, which reaches some pixels beyond its stretch.

    Args:
        features: (N, in_channels, *sizes) → (N, maps, *embedding.sizes), of layers that `places`
            knows.
        embedding: the densities on the maps.
        sizes, in_channels: of the input.
    """

    def __init__(self, features: nn.Module, embedding: Embedding, sizes, in_channels=1):
        super().__init__(
            sizes, in_channels, embedding.densities, embedding.density, embedding.groups == 1,
            embedding.truncate,
        )  # fmt: skip
        self.adaptive = embedding.adaptive
        self.features = features
        self.embedding = embedding

    @property
    def out_features(self) -> int:
        return self.embedding.out_features

    def placement(self, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if x is not None:
            self.check(x)
        needed = self.adaptive and x is not None
        loc, scale = self.embedding.placement(self.features(x) if needed else None)
        stretch, offset = (part.flip(0).to(loc) for part in places(self.features, len(self.sizes)))
        return loc * stretch + offset, scale * stretch

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, *sizes) → (N, maps, K)."""
        self.check(x)
        return self.embedding(self.features(x))
