"""Initial locations and scales of the densities: random as in the paper, or on a grid."""

import math
from typing import Literal, TypeGuard

import torch
from torch import Tensor, nn

from densembed.layers.embedding import (
    BETA_MEAN,
    LOC_SLOPE,
    AdaptiveDensityEmbedding,
    DensityEmbedding,
    Embedding,
)


def is_density(name: str) -> bool:
    """Whether a parameter with this name is α or β of densities, not a weight."""
    return name.rpartition(".")[2] in ("alpha", "beta")


def is_locator(name: str) -> bool:
    """Whether a parameter with this name is a weight of a micro network."""
    return ".locator." in f".{name}" and not is_density(name)


def is_initialised(module: nn.Module) -> TypeGuard[DensityEmbedding | AdaptiveDensityEmbedding]:
    """Whether `initialise` sets the densities of a module."""
    return isinstance(module, DensityEmbedding | AdaptiveDensityEmbedding)


@torch.no_grad()
def initialise(
    model: nn.Module, *, location: Literal["normal", "grid"] = "normal", scale: float = BETA_MEAN
) -> None:
    """Initialise the densities of a new model in place.

    Args:
        location: "normal" keeps α as drawn; "grid" puts the locations on a regular grid over the
            domain. For densities that move with the input these are the mean locations.
        scale: mean of β; its spread does not change.
    """
    for module in model.modules():
        if is_initialised(module):
            module.beta.add_(scale - BETA_MEAN)
        if location != "grid":
            continue
        if isinstance(module, DensityEmbedding):
            module.alpha.copy_(_grid(module).expand_as(module.alpha) / module.location_lr_scale)
        if isinstance(module, AdaptiveDensityEmbedding):
            *_, last = (m for m in module.locator.modules() if isinstance(m, nn.Linear))
            grid = _grid(module).expand(module.groups, -1, -1).flatten()
            last.bias[: len(grid)] = grid  # the rest, with learned scales, shifts β


def _grid(embedding: Embedding) -> Tensor:
    """α of a regular grid, (K, axes): B by B for B² densities on an image."""
    axes = len(embedding.sizes)
    side = math.ceil(embedding.num_densities ** (1 / axes) - 1e-9)
    points = (torch.arange(side) + 0.5) / side
    grid = torch.cartesian_prod(*[points] * axes).view(-1, axes)[: embedding.num_densities]
    return torch.logit(grid) / LOC_SLOPE
