"""Networks of density layers: the paper's (Section 4), and deeper ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from densembed.functional.densities import Density
from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    AdaptiveDensityEmbedding,
    AdaptivePool1d,
    AdaptivePool2d,
    DensityEmbedding,
    DensityEmbedding1d,
    DensityEmbedding2d,
    DensityLinear,
    FeatureEmbedding,
    PixelEmbedding,
)
from densembed.layers.embedding import Embedding, Frame, shared_copy

Shape = tuple[int, ...]
"""Shape of one input: (channels, height, width) of an image, (channels, length) of a signal."""
ADAPTIVE: tuple[Any, Any] = (AdaptiveConv1d, AdaptivePool1d), (AdaptiveConv2d, AdaptivePool2d)
PLAIN: tuple[Any, Any] = (nn.Conv1d, nn.MaxPool1d), (nn.Conv2d, nn.MaxPool2d)
"""Convolution and pooling for inputs with one axis, and with two."""
MAPS, KERNEL, WINDOW = 8, 5, 2
"""Feature maps, taps per axis and pooled pixels per axis of `conv_pool_embedding_network`."""
STAGE_KERNEL = 3
"""Taps per axis of the convolutions in networks with several stages."""
POOLED_STAGES = 2
"""Number of stages of `staged_embedding_network` with pooling; later ones keep the map size."""


FIXED = DensityEmbedding, DensityEmbedding1d, DensityEmbedding2d
"""Embeddings whose densities are fixed in the frame of the input."""


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
            and not embedding.adaptive
            and isinstance(classifier, nn.Linear)
            and classifier.out_features < embedding.num_densities
            and _need_not_be_called(embedding, FIXED, "alpha", "beta")
            and _need_not_be_called(classifier, (nn.Linear,), "weight", "bias")
        ):  # applying each Σ_i w_i Γ_i is cheaper than applying every Γ_i
            kernel = embedding.fold(classifier.weight).flatten(1)
            # `linear` computes x Kᵀ, which takes up to three times as long for few outputs.
            pixels, bias = x.flatten(1).mT, classifier.bias
            scores = kernel @ pixels if bias is None else torch.addmm(bias[:, None], kernel, pixels)
            return scores.mT.contiguous()
        return classifier(embedding(x).flatten(1))

    def fold(self) -> nn.Linear:
        """The equivalent linear classifier of the pixels, for fixed densities.

        Raises ValueError if there is none: for densities that move with the input or lie on
        feature maps, with a hidden layer, or with hooks, also those of all modules of torch.
        """
        embedding, classifier = self.embedding, self.classifier
        if (
            not isinstance(embedding, DensityEmbedding | PixelEmbedding)
            or embedding.adaptive
            or not isinstance(classifier, nn.Linear)
            or type(embedding).forward not in (DensityEmbedding.forward, PixelEmbedding.forward)
            or type(classifier).forward not in (nn.Linear.forward, DensityLinear.forward)
        ):
            raise ValueError("Only fixed densities followed by a linear map can be folded.")
        if not all(map(_is_called_as_defined, (self, embedding, classifier))):
            raise ValueError(
                "A network with hooks, or with a replaced forward, cannot be folded, as they would "
                "be lost: remove them, also those of torch.nn.modules.module for all modules."
            )
        kernel = embedding.fold(classifier.weight).flatten(1)
        outputs, pixels = kernel.shape
        plain = nn.Linear(pixels, outputs, bias=classifier.bias is not None).to(kernel)
        plain.weight.data.copy_(kernel)
        if classifier.bias is not None:
            plain.bias.data.copy_(classifier.bias)
        return plain

    def at(self, sizes: int | Sequence[int]) -> "DensityNetwork":
        """The same network for inputs on another grid; it shares the parameters of this one.

        Args:
            sizes: (H, W), or one number for both.

        >>> network = DensityNetwork(DensityEmbedding((28, 28), num_densities=(5, 5)), classes=10)
        >>> network.at((14, 14))(torch.rand(8, 1, 14, 14)).shape
        torch.Size([8, 10])
        """
        network = shared_copy(self)
        network.embedding = self.embedding.at(sizes)
        return network

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities of the embedding per square pixel, (N or 1, C or 1, K, H · r, W · r)."""
        return self.embedding.receptive_field(x, resolution=resolution)

    @property
    def adaptive(self) -> bool:
        """Whether the receptive field moves with the input."""
        return self.embedding.adaptive


def _need_not_be_called(module: nn.Module, classes: Sequence[type], *names: str) -> bool:
    """Whether a call of a module does nothing but its class's forward, with given parameters.

    `torch.func.functional_call` replaces parameters by tensors, which stay in their place.
    """
    return (
        type(module) in classes
        and all(name in module._parameters for name in names)
        and _is_called_as_defined(module)
    )


def _is_called_as_defined(module: nn.Module) -> bool:
    """Whether a module has neither hooks, its own or those of all modules, nor its own forward."""
    return "forward" not in module.__dict__ and not (
        module._forward_pre_hooks
        or module._forward_hooks
        or module._backward_pre_hooks
        or module._backward_hooks
        or _has_any_global_hook()
    )


def perceptron(input_shape: Shape, classes: int, hidden: int = 0) -> DensityNetwork:
    """A linear classifier of the pixels, or an MLP with one hidden layer."""
    channels, *sizes = input_shape
    return DensityNetwork(PixelEmbedding(sizes, channels), classes, hidden=hidden)


def fixed_embedding_network(
    input_shape: Shape, classes: int, family: str | Density, frame: Frame, b: int
) -> DensityNetwork:
    """Logistic-EL of Section 4.1: B densities per axis of any family, and a linear classifier.

    The densities are fixed in the `frame` of the input.
    """
    channels, *sizes = input_shape
    embedding = DensityEmbedding(
        sizes, channels, num_densities=_grid(b, sizes), family=family, frame=frame
    )
    return DensityNetwork(embedding, classes)


def micro_embedding_network(
    input_shape: Shape,
    classes: int,
    family: str | Density,
    frame: Frame,
    b: int,
    b0: int,
    *,
    adaptive_scale: bool = False,
) -> DensityNetwork:
    """Logistic-EL with a micro network of B₀ densities per axis (Section 4.2).

    Args:
        frame: of these densities and of those of the micro network.
        adaptive_scale: also move the scales, initially by 0.
    """
    channels, *sizes = input_shape
    outputs = channels * b ** len(sizes) * (2 if adaptive_scale else 1)
    locator = micro_network(sizes, channels, outputs, family=family, frame=frame, b0=b0)
    if adaptive_scale:
        *_, last = (m for m in locator.modules() if isinstance(m, nn.Linear))
        with torch.no_grad():
            last.weight[len(last.bias) // 2 :] = 0
            last.bias[len(last.bias) // 2 :] = 0
    embedding = AdaptiveDensityEmbedding(
        locator,
        sizes,
        channels,
        num_densities=_grid(b, sizes),
        family=family,
        frame=frame,
        adaptive_scale=adaptive_scale,
    )
    return DensityNetwork(embedding, classes)


def micro_network(
    sizes: Sequence[int],
    channels: int,
    densities: int,
    *,
    family: str | Density,
    frame: Frame,
    b0: int,
    shared: bool = False,
) -> nn.Sequential:
    """mNN: a linear map of an embedding with B₀ densities per axis to α of `densities`."""
    inner = DensityEmbedding(
        sizes,
        channels,
        num_densities=_grid(b0, sizes),
        family=family,
        shared=shared,
        frame=frame,
    )
    return nn.Sequential(inner, nn.Flatten(), nn.Linear(inner.out_features, len(sizes) * densities))


def conv_pool_embedding_network(
    input_shape: Shape,
    classes: int,
    family: str | Density,
    frame: Frame,
    b: int,
    b0: int | None = None,
) -> DensityNetwork:
    """`staged_embedding_network` with one stage of 8 maps and five taps per axis."""
    return staged_embedding_network(
        input_shape, classes, (MAPS,), family, frame, b, b0, kernel=KERNEL
    )


def staged_embedding_network(
    input_shape: Shape,
    classes: int,
    maps: Sequence[int],
    family: str | Density,
    frame: Frame,
    b: int,
    b0: int | None = None,
    *,
    kernel: int = STAGE_KERNEL,
) -> DensityNetwork:
    """Stages of adaptive convolution, ReLU and adaptive pooling, then B densities per axis.

    Each convolution learns its amplitude per axis (Section 3.3) and each pooling one β per map
    (Section 3.4). The first `POOLED_STAGES` stages halve the size of the maps. All maps of the
    last stage have the same densities, fixed or moved by a micro network of B₀ densities per axis,
    so there is one receptive field over the input. The `frame` is that of the maps. Raises
    ValueError for inputs too small to pool.
    """
    channels, *sizes = input_shape
    _check_poolable(sizes, min(POOLED_STAGES, len(maps)))
    layers: list[nn.Module] = []
    convolution, pooling = ADAPTIVE[len(sizes) - 1]
    for stage, count in enumerate(maps):
        layers += [convolution(channels, count, kernel, padding="same"), nn.ReLU()]
        if stage < POOLED_STAGES:
            layers.append(pooling(WINDOW, beta="channel", channels=count))
            sizes = [size // WINDOW for size in sizes]
        channels = count
    options: dict[str, Any] = {
        "num_densities": _grid(b, sizes),
        "family": family,
        "shared": True,
        "frame": frame,
    }
    embedding: Embedding
    if b0 is None:
        embedding = DensityEmbedding(sizes, channels, **options)
    else:
        locator = micro_network(
            sizes, channels, b ** len(sizes), family=family, frame=frame, b0=b0, shared=True
        )
        embedding = AdaptiveDensityEmbedding(locator, sizes, channels, **options)
    return _on_features(layers, embedding, input_shape, classes)


def plain_cnn(input_shape: Shape, classes: int, maps: Sequence[int]) -> DensityNetwork:
    """A small CNN: convolutions of three taps per axis, each with ReLU and max pooling.

    A linear classifier follows. It is the baseline of `staged_embedding_network`. Raises ValueError
    for inputs too small to pool.
    """
    channels, *sizes = input_shape
    _check_poolable(sizes, len(maps))
    layers: list[nn.Module] = []
    convolution, pooling = PLAIN[len(sizes) - 1]
    for count in maps:
        layers += [
            convolution(channels, count, STAGE_KERNEL, padding=STAGE_KERNEL // 2),
            nn.ReLU(),
            pooling(WINDOW),
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


def _grid(count: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """That many densities per axis."""
    return (count,) * len(sizes)


def _check_poolable(sizes: Sequence[int], halvings: int) -> None:
    minimum = WINDOW**halvings
    if min(sizes) >= minimum:
        return
    if len(sizes) == 1:
        raise ValueError(f"Expected signals of at least {minimum} samples; got {sizes[0]}.")
    raise ValueError(
        f"Expected images of at least {minimum} × {minimum} pixels; got {sizes[0]} × {sizes[1]}."
    )
