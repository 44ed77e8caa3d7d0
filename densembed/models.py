"""The paper's networks (Section 4), by name.

A model is an embedding, flattened, and a classifier. A new kind of model is one function
here and one line in `BUILDERS`; its name is what the command line, the pages and the
checkpoints use.
"""

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from densembed.densities import FAMILIES
from densembed.layers import AdaptiveDensityEmbedding, DensityEmbedding, PixelEmbedding

MAX_DENSITIES = 64
"""Largest B in a name: 64² densities; beyond it a misspelt name would only exhaust the memory."""
MAX_HIDDEN = 4096


class DensityNetwork(nn.Module):
    """An embedding, flattened, and a classifier: y = W flatten(Γ(x) x) + b.

    Args:
        embedding: a module (N, C, H, W) → (N, C, K), see `densembed.layers`.
        classes: number of outputs.
        hidden: units of one hidden layer with ReLU in the classifier; 0 for a linear one.
    """

    def __init__(self, embedding: nn.Module, classes: int, hidden: int = 0):
        super().__init__()
        self.embedding = embedding
        features = embedding.in_channels * embedding.densities
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

        Raises ValueError where it is not one: densities that move, or a hidden layer.
        """
        if self.adaptive or not isinstance(self.classifier, nn.Linear):
            raise ValueError("Only fixed densities followed by a linear map are a linear map.")
        if not isinstance(self.embedding, DensityEmbedding):
            return self.classifier
        kernel = self.embedding.fold(self.classifier.weight).flatten(1)
        plain = nn.Linear(kernel.shape[1], kernel.shape[0]).to(kernel)
        with torch.no_grad():
            plain.weight.copy_(kernel)
            plain.bias.copy_(self.classifier.bias)
        return plain

    def receptive_field(self, x: Tensor | None = None, resolution: int = 4) -> Tensor:
        """Densities of the embedding per square pixel, (N or 1, C or 1, K, H · r, W · r)."""
        return self.embedding.receptive_field(x, resolution)

    @property
    def adaptive(self) -> bool:
        """Whether the receptive field moves with the input."""
        return isinstance(self.embedding, AdaptiveDensityEmbedding)


def _dense(input_shape, classes, hidden=0):
    channels, *sizes = input_shape
    return DensityNetwork(PixelEmbedding(sizes, channels), classes, hidden)


def _el(input_shape, classes, family, b):
    channels, *sizes = input_shape
    return DensityNetwork(DensityEmbedding(sizes, channels, (b, b), family), classes)


def _el_mnn(input_shape, classes, family, b, b0):
    channels, *sizes = input_shape
    inner = DensityEmbedding(sizes, channels, (b0, b0), family)
    # The micro network is linear in its own embedding and gives α of every density (Section 4.2).
    locator = nn.Sequential(
        inner, nn.Flatten(), nn.Linear(channels * b0 * b0, len(sizes) * channels * b * b)
    )
    return DensityNetwork(
        AdaptiveDensityEmbedding(locator, sizes, channels, (b, b), family), classes
    )


_FAMILY = "(" + "|".join(sorted(FAMILIES, key=len, reverse=True)) + ")"
_SIZE = r"(\d{1,9})"
BUILDERS: dict[str, Callable[..., nn.Module]] = {
    r"linear": _dense,
    rf"mlp-{_SIZE}": _dense,
    rf"{_FAMILY}-el-{_SIZE}": _el,
    rf"{_FAMILY}-el-mnn-{_SIZE}-{_SIZE}": _el_mnn,
}


def _parse(name: str) -> tuple[Callable[..., nn.Module], list]:
    shown = repr(name[:60])  # a name comes from anywhere, of any length
    for pattern, builder in BUILDERS.items():
        match = re.fullmatch(pattern, name, re.ASCII)
        if not match:
            continue
        arguments = [int(group) if group.isdecimal() else group for group in match.groups()]
        most = MAX_HIDDEN if builder is _dense else MAX_DENSITIES
        if all(1 <= number <= most for number in arguments if isinstance(number, int)):
            return builder, arguments
        raise ValueError(f"The sizes in {shown} must lie between 1 and {most}.")
    raise ValueError(
        f"Unknown model {shown}; names look like linear, mlp-50, logistic-el-5 (B = 5) or "
        "logistic-el-mnn-10-5 (B = 10, B₀ = 5)."
    )


def check_name(name: str) -> str:
    """The name itself, if a model can be built from it; raises ValueError if not."""
    _parse(name)
    return name


def build(
    name: str, input_shape: tuple[int, int, int] = (1, 28, 28), classes: int = 10
) -> nn.Module:
    """A model of the paper with fresh parameters.

    Args:
        name: `linear`, `mlp-50`, `logistic-el-5` (B = 5), `logistic-el-mnn-10-5` (B = 10,
            B₀ = 5), with any numbers.
        input_shape: (channels, height, width).
        classes: number of outputs.
    Raises:
        ValueError: for an unknown name or sizes out of range.
    """
    if len(input_shape) != 3 or min(*input_shape, classes) < 1:
        raise ValueError(
            "input_shape is (channels, height, width) and all sizes are at least 1; "
            f"got {tuple(input_shape)} and {classes} classes."
        )
    builder, arguments = _parse(name)
    return builder(tuple(input_shape), classes, *arguments)


def parameter_count(model: nn.Module) -> int:
    """Number of trainable parameters, as the paper's tables count them."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe(name: str) -> str:
    """A model's name in words, e.g. "Logistic-EL with mNN, B = 10, B₀ = 5"."""
    builder, arguments = _parse(name)
    if builder is _dense:
        return f"MLP, {arguments[0]} hidden units" if arguments else "Linear classifier"
    family, b, *b0 = arguments
    title = f"{family.capitalize()}-EL"
    return f"{title} with mNN, B = {b}, B₀ = {b0[0]}" if b0 else f"{title}, B = {b}"
