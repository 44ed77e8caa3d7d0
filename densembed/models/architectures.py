"""Networks of density layers: the paper's (Section 4), and a deeper one."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from densembed.layers import (
    AdaptiveConv2d,
    AdaptiveDensityEmbedding,
    AdaptivePool2d,
    DensityEmbedding,
    FeatureEmbedding,
    PixelEmbedding,
)
from densembed.layers.embedding import Embedding

MAPS, KERNEL, WINDOW = 8, 5, 2
"""Feature maps, taps of the convolution and pixels of the pooling, each axis, of the deeper one."""
STAGE_KERNEL = 3
"""Taps of a convolution, each axis, where several stages follow one another."""
POOLED = 2
"""Stages of `staged` that pool; a third one keeps the size of its maps."""


class DensityNetwork(nn.Module):
    """An embedding, flattened, and a classifier: y = W flatten(Γ(x) x) + b.

    Args:
        embedding: a module (N, C, H, W) → (N, C, K), see `densembed.layers`.
        classes: number of outputs.
        hidden: units of one hidden layer with ReLU in the classifier; 0 for a linear one.
    """

    def __init__(self, embedding: Embedding, classes: int, hidden: int = 0):
        super().__init__()
        self.embedding = embedding
        features = embedding.out_features
        if hidden:
            self.classifier = nn.Sequential(
                nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes)
            )
        else:
            self.classifier = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits: (N, C, H, W) → (N, classes)."""
        self.embedding.check(x)
        if self._folds:
            kernel = self.embedding.fold(self.classifier.weight)
            return linear(x.flatten(1), kernel.flatten(1), self.classifier.bias)
        return self.classifier(self.embedding(x).flatten(1))

    @property
    def _folds(self) -> bool:
        """Fewer outputs than fixed densities: cheaper to apply Σ_i w_i Γ_i than every Γ_i."""
        return (
            isinstance(self.embedding, DensityEmbedding)
            and isinstance(self.classifier, nn.Linear)
            and self.classifier.out_features < self.embedding.densities
        )

    def fold(self) -> nn.Linear:
        """The plain linear classifier on pixels that a model with fixed densities is, exactly.

        Raises ValueError where it is not one: densities that move or lie on feature maps, or a
        hidden layer.
        """
        fixed = isinstance(self.embedding, DensityEmbedding | PixelEmbedding)
        if not fixed or not isinstance(self.classifier, nn.Linear):
            raise ValueError("Only fixed densities followed by a linear map are a linear map.")
        if isinstance(self.embedding, PixelEmbedding):
            return self.classifier
        kernel = self.embedding.fold(self.classifier.weight).flatten(1)
        plain = nn.Linear(kernel.shape[1], kernel.shape[0]).to(kernel)
        plain.load_state_dict({"weight": kernel.detach(), "bias": self.classifier.bias.detach()})
        return plain

    def receptive_field(self, x: Tensor | None = None, resolution: int = 4) -> Tensor:
        """Densities of the embedding per square pixel, (N or 1, C or 1, K, H · r, W · r)."""
        return self.embedding.receptive_field(x, resolution)

    @property
    def adaptive(self) -> bool:
        """Whether the receptive field moves with the input."""
        return self.embedding.adaptive


def perceptron(input_shape, classes, hidden=0) -> DensityNetwork:
    """A linear classifier of the pixels, or one with a hidden layer."""
    channels, *sizes = input_shape
    return DensityNetwork(PixelEmbedding(sizes, channels), classes, hidden)


def embedded(input_shape, classes, family, b) -> DensityNetwork:
    """Logistic-EL of Section 4.1: B² fixed densities of any family, and a linear classifier."""
    channels, *sizes = input_shape
    return DensityNetwork(DensityEmbedding(sizes, channels, (b, b), family), classes)


def micro_embedded(input_shape, classes, family, b, b0) -> DensityNetwork:
    """Logistic-EL with a micro network of B₀² densities (Section 4.2)."""
    channels, *sizes = input_shape
    locator = micro_network(sizes, channels, family, b0, channels * b * b)
    embedding = AdaptiveDensityEmbedding(locator, sizes, channels, (b, b), family)
    return DensityNetwork(embedding, classes)


def scaled_micro_embedded(input_shape, classes, family, b, b0) -> DensityNetwork:
    """`micro_embedded` whose micro network moves the scales, too; they start where β has them."""
    channels, *sizes = input_shape
    count = channels * b * b
    locator = micro_network(sizes, channels, family, b0, 2 * count)
    last = locator[-1]
    with torch.no_grad():
        last.weight[len(last.bias) // 2 :] = 0
        last.bias[len(last.bias) // 2 :] = 0
    embedding = AdaptiveDensityEmbedding(
        locator, sizes, channels, (b, b), family, adaptive_scale=True
    )
    return DensityNetwork(embedding, classes)


def micro_network(sizes, channels, family, b0, densities, shared=False) -> nn.Sequential:
    """mNN: linear in an embedding of its own, gives α of every density (Section 4.2)."""
    inner = DensityEmbedding(sizes, channels, (b0, b0), family, shared)
    return nn.Sequential(inner, nn.Flatten(), nn.Linear(inner.out_features, len(sizes) * densities))


def _large_enough(sizes, halvings: int) -> None:
    least = WINDOW**halvings
    if min(sizes) < least:
        raise ValueError(
            f"Expected pictures of at least {least} × {least} pixels; got {sizes[0]} × {sizes[1]}."
        )


def deep_embedded(input_shape, classes, family, b, b0=None) -> DensityNetwork:
    """Adaptive convolution, ReLU, adaptive pooling, and then B² densities on the feature maps.

    The kernel's amplitude p is learned for each axis (Section 3.3) and β for each map
    (Section 3.4). All maps are seen through the same densities, fixed or placed by a micro
    network of B₀² densities on the maps, so the field is one picture over the input.
    Raises ValueError for a picture smaller than the pooling's window.
    """
    channels, *sizes = input_shape
    _large_enough(sizes, 1)
    features = nn.Sequential(
        AdaptiveConv2d(channels, MAPS, KERNEL, padding="same"),
        nn.ReLU(),
        AdaptivePool2d(WINDOW, beta="channel", channels=MAPS),
    )
    maps = [size // WINDOW for size in sizes]
    if b0 is None:
        embedding = DensityEmbedding(maps, MAPS, (b, b), family, shared=True)
    else:
        locator = micro_network(maps, MAPS, family, b0, b * b, shared=True)
        embedding = AdaptiveDensityEmbedding(locator, maps, MAPS, (b, b), family, shared=True)
    return DensityNetwork(FeatureEmbedding(features, embedding, sizes, channels), classes)


def staged(input_shape, classes, maps: Sequence[int], family, b, b0=None) -> DensityNetwork:
    """Stages of adaptive convolution, ReLU and adaptive pooling, then B² densities on the maps.

    The convolutions have 3 × 3 taps whose reach is learned; the first `POOLED` stages halve the
    maps. All maps of the last one are seen through the same densities, fixed or placed by a micro
    network of B₀² densities. Raises ValueError for a picture that the pooling would use up.
    """
    channels, *sizes = input_shape
    _large_enough(sizes, min(POOLED, len(maps)))
    layers = []
    for stage, count in enumerate(maps):
        layers += [AdaptiveConv2d(channels, count, STAGE_KERNEL, padding="same"), nn.ReLU()]
        if stage < POOLED:
            layers.append(AdaptivePool2d(WINDOW, beta="channel", channels=count))
            sizes = [size // WINDOW for size in sizes]
        channels = count
    if b0 is None:
        embedding = DensityEmbedding(sizes, channels, (b, b), family, shared=True)
    else:
        locator = micro_network(sizes, channels, family, b0, b * b, shared=True)
        embedding = AdaptiveDensityEmbedding(locator, sizes, channels, (b, b), family, shared=True)
    features = nn.Sequential(*layers)
    return DensityNetwork(
        FeatureEmbedding(features, embedding, input_shape[1:], input_shape[0]), classes
    )


def plain_cnn(input_shape, classes, maps: Sequence[int]) -> DensityNetwork:
    """An ordinary small CNN: 3 × 3 convolutions, ReLU and maximum pooling after each, linear map.

    The yardstick for `staged`. Raises ValueError for a picture that the pooling would use up.
    """
    channels, *sizes = input_shape
    _large_enough(sizes, len(maps))
    layers = []
    for count in maps:
        layers += [
            nn.Conv2d(channels, count, STAGE_KERNEL, padding=STAGE_KERNEL // 2),
            nn.ReLU(),
            nn.MaxPool2d(WINDOW),
        ]
        channels, sizes = count, [size // WINDOW for size in sizes]
    embedding = PixelEmbedding(sizes, channels)
    features = nn.Sequential(*layers)
    return DensityNetwork(
        FeatureEmbedding(features, embedding, input_shape[1:], input_shape[0]), classes
    )
