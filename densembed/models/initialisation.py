"""Where the densities start: the paper's random places, or a regular grid; narrow or wide."""

import math

import torch
from torch import Tensor, nn

from densembed.layers.embedding import (
    BETA_MEAN,
    LOC_SLOPE,
    AdaptiveDensityEmbedding,
    DensityEmbedding,
)


def is_density(name: str) -> bool:
    """Whether a parameter of that name is a density's α or β and not a weight."""
    return name.rpartition(".")[2] in ("alpha", "beta")


def is_locator(name: str) -> bool:
    """Whether a parameter of that name is a weight that places densities (of a micro network)."""
    return ".locator." in f".{name}" and not is_density(name)


@torch.no_grad()
def start(model: nn.Module, location: str = "normal", scale: float = BETA_MEAN) -> None:
    """Move the freshly initialised densities of a model, in place.

    Args:
        location: "normal" leaves α as it is; "grid" puts the locations on a regular grid over
            the domain (where the densities move with the input: their mean locations).
        scale: mean of β; its spread stays.
    """
    for module in model.modules():
        if isinstance(module, DensityEmbedding | AdaptiveDensityEmbedding):
            module.beta += scale - BETA_MEAN
        if location != "grid":
            continue
        if isinstance(module, DensityEmbedding):
            module.alpha.copy_(_grid(module).expand_as(module.alpha) / module.location_lr_scale)
        if isinstance(module, AdaptiveDensityEmbedding):
            last = [layer for layer in module.locator.modules() if isinstance(layer, nn.Linear)][-1]
            grid = _grid(module).expand(module.groups, -1, -1).flatten()
            last.bias[: len(grid)] = grid  # what follows, with learned scales, is added to β


def _grid(embedding: nn.Module) -> Tensor:
    """α of a regular grid, (K, axes); for B² densities on a picture B by B."""
    axes = len(embedding.sizes)
    side = math.ceil(embedding.densities ** (1 / axes) - 1e-9)
    places = (torch.arange(side) + 0.5) / side
    grid = torch.cartesian_prod(*[places] * axes).view(-1, axes)[: embedding.densities]
    return torch.logit(grid) / LOC_SLOPE
