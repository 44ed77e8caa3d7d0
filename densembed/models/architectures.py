"""Networks of density layers: the paper's (Section 4), and deeper ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from densembed.functional.densities import Density
from densembed.layers import (
    AdaptiveConv2d,
    AdaptiveDensityEmbedding,
    AdaptivePool2d,
    DensityEmbedding,
    FeatureEmbedding,
    PixelEmbedding,
)
from densembed.layers.embedding import Embedding

Shape = tuple[int, int, int]
"""Shape of one input: (channels, height, width)."""
MAPS, KERNEL, WINDOW = 8, 5, 2
"""Feature maps, taps per axis and pooled pixels per axis of `conv_pool_embedding_network`."""
STAGE_KERNEL = 3
"""Taps per axis of the convolutions in networks with several stages."""
POOLED_STAGES = 2
"""Number of stages of `staged_embedding_network` with pooling; later ones keep the map size."""


class DensityNetwork(nn.Module):
    """An embedding, flattened, and a classifier: y = W flatten(Γ(x) x) + b.

    Args:
        embedding: a module (N, C, H, W) → (N, C, K), see `densembed.layers`.
        classes: number of outputs.
        hidden: units of one hidden layer with ReLU in the classifier; 0 for a linear classifier.

    >>> network = DensityNetwork(DensityEmbedding((28, 28), num_densities=(5, 5)), classes=10)
    >>> network(torch.rand(8, 1, 28, 28)).shape
    torch.Size([8, 10])
    """

    def __init__(self, embedding: Embedding, classes: int, *, hidden: int = 0):
        super().__init__()
        self.embedding = embedding
        features = embedding.out_features
        self.classifier: nn.Module
        if hidden:
            self.classifier = nn.Sequential(
                nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes)
            )
        else:
            self.classifier = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits: (N, C, H, W) → (N, classes)."""
        embedding, classifier = self.embedding, self.classifier
        embedding.check(x)
        if (
            isinstance(embedding, DensityEmbedding)
            and isinstance(classifier, nn.Linear)
            and classifier.out_features < embedding.num_densities
        ):  # applying each Σ_i w_i Γ_i is cheaper than applying every Γ_i
            kernel = embedding.fold(classifier.weight)
            return linear(x.flatten(1), kernel.flatten(1), classifier.bias)
        return classifier(embedding(x).flatten(1))

    def fold(self) -> nn.Linear:
        """The equivalent linear classifier of the pixels, for fixed densities.

        Raises ValueError if there is none: for densities that move with the input or lie on
        feature maps, or with a hidden layer.
        """
        embedding, classifier = self.embedding, self.classifier
        if isinstance(embedding, PixelEmbedding) and isinstance(classifier, nn.Linear):
            return classifier
        if not isinstance(embedding, DensityEmbedding) or not isinstance(classifier, nn.Linear):
            raise ValueError("Only fixed densities followed by a linear map can be folded.")
        kernel = embedding.fold(classifier.weight).flatten(1)
        plain = nn.Linear(kernel.shape[1], kernel.shape[0]).to(kernel)
        plain.load_state_dict({"weight": kernel.detach(), "bias": classifier.bias.detach()})
        return plain

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities of the embedding per square pixel, (N or 1, C or 1, K, H · r, W · r)."""
        return self.embedding.receptive_field(x, resolution=resolution)

    @property
    def adaptive(self) -> bool:
        """Whether the receptive field moves with the input."""
        return self.embedding.adaptive


def perceptron(input_shape: Shape, classes: int, hidden: int = 0) -> DensityNetwork:
    """A linear classifier of the pixels, or an MLP with one hidden layer."""
    channels, *sizes = input_shape
    return DensityNetwork(PixelEmbedding(sizes, channels), classes, hidden=hidden)


def fixed_embedding_network(
    input_shape: Shape, classes: int, family: str | Density, b: int
) -> DensityNetwork:
    """Logistic-EL of Section 4.1: B² fixed densities of any family, and a linear classifier."""
    channels, *sizes = input_shape
    embedding = DensityEmbedding(sizes, channels, num_densities=(b, b), family=family)
    return DensityNetwork(embedding, classes)


def micro_embedding_network(
    input_shape: Shape,
    classes: int,
    family: str | Density,
    b: int,
    b0: int,
    *,
    adaptive_scale: bool = False,
) -> DensityNetwork:
    """Logistic-EL with a micro network of B₀² densities (Section 4.2).

    Args:
        adaptive_scale: also move the scales, initially by 0.
    """
    channels, *sizes = input_shape
    outputs = channels * b * b * (2 if adaptive_scale else 1)
    locator = micro_network(sizes, channels, outputs, family=family, b0=b0)
    if adaptive_scale:
        *_, last = (m for m in locator.modules() if isinstance(m, nn.Linear))
        with torch.no_grad():
            last.weight[len(last.bias) // 2 :] = 0
            last.bias[len(last.bias) // 2 :] = 0
    embedding = AdaptiveDensityEmbedding(
        locator,
        sizes,
        channels,
        num_densities=(b, b),
        family=family,
        adaptive_scale=adaptive_scale,
    )
    return DensityNetwork(embedding, classes)


def micro_network(
    sizes: Sequence[int],
    channels: int,
    densities: int,
    *,
    family: str | Density,
    b0: int,
    shared: bool = False,
) -> nn.Sequential:
    """mNN: a linear map of an embedding with B₀² densities to α of `densities` (Section 4.2)."""
    inner = DensityEmbedding(sizes, channels, num_densities=(b0, b0), family=family, shared=shared)
    return nn.Sequential(inner, nn.Flatten(), nn.Linear(inner.out_features, len(sizes) * densities))


def conv_pool_embedding_network(
    input_shape: Shape, classes: int, family: str | Density, b: int, b0: int | None = None
) -> DensityNetwork:
    """`staged_embedding_network` with one stage of 8 maps and 5 × 5 taps."""
    return staged_embedding_network(input_shape, classes, (MAPS,), family, b, b0, kernel=KERNEL)


def staged_embedding_network(
    input_shape: Shape,
    classes: int,
    maps: Sequence[int],
    family: str | Density,
    b: int,
    b0: int | None = None,
    *,
    kernel: int = STAGE_KERNEL,
) -> DensityNetwork:
    """Stages of adaptive convolution, ReLU and adaptive pooling, then B² densities on the maps.

    Each convolution learns its amplitude per axis (Section 3.3) and each pooling one β per map
    (Section 3.4). The first `POOLED_STAGES` stages halve the size of the maps. All maps of the
    last stage have the same densities, fixed or moved by a micro network of B₀² densities, so the
    receptive field is one image over the input. Raises ValueError for images too small to pool.
    """
    channels, *sizes = input_shape
    _check_poolable(sizes, min(POOLED_STAGES, len(maps)))
    layers: list[nn.Module] = []
    for stage, count in enumerate(maps):
        layers += [AdaptiveConv2d(channels, count, kernel, padding="same"), nn.ReLU()]
        if stage < POOLED_STAGES:
            layers.append(AdaptivePool2d(WINDOW, beta="channel", channels=count))
            sizes = [size // WINDOW for size in sizes]
        channels = count
    options: dict[str, Any] = {"num_densities": (b, b), "family": family, "shared": True}
    embedding: Embedding
    if b0 is None:
        embedding = DensityEmbedding(sizes, channels, **options)
    else:
        locator = micro_network(sizes, channels, b * b, family=family, b0=b0, shared=True)
        embedding = AdaptiveDensityEmbedding(locator, sizes, channels, **options)
    return _on_features(layers, embedding, input_shape, classes)


def plain_cnn(input_shape: Shape, classes: int, maps: Sequence[int]) -> DensityNetwork:
    """A small CNN: 3 × 3 convolutions, each with ReLU and max pooling, and a linear classifier.

    The baseline of `staged_embedding_network`. Raises ValueError for images too small to pool.
    """
    channels, *sizes = input_shape
    _check_poolable(sizes, len(maps))
    layers: list[nn.Module] = []
    for count in maps:
        layers += [
            nn.Conv2d(channels, count, STAGE_KERNEL, padding=STAGE_KERNEL // 2),
            nn.ReLU(),
            nn.MaxPool2d(WINDOW),
        ]
        channels, sizes = count, [size // WINDOW for size in sizes]
    return _on_features(layers, PixelEmbedding(sizes, channels), input_shape, classes)


def _on_features(
    layers: list[nn.Module], embedding: Embedding, input_shape: Shape, classes: int
) -> DensityNetwork:
    channels, *sizes = input_shape
    features = nn.Sequential(*layers)
    return DensityNetwork(
        FeatureEmbedding(features, embedding, sizes=sizes, in_channels=channels), classes
    )


def _check_poolable(sizes: Sequence[int], halvings: int) -> None:
    minimum = WINDOW**halvings
    if min(sizes) < minimum:
        raise ValueError(
            f"Expected images of at least {minimum} × {minimum} pixels; "
            f"got {sizes[0]} × {sizes[1]}."
        )
