"""Measures of receptive fields: single densities, weights for classes, and summary numbers."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from densembed.fields.field import RESOLUTION, field, weighted_sum
from densembed.layers import FeatureEmbedding
from densembed.models.architectures import DensityNetwork

MASS = 0.9
"""Fraction of a field's mass whose area is measured."""


@dataclass(frozen=True)
class Densities:
    """The densities of a network for one input.

    `loc` and `scale` are (D, 2) in pixels, along the columns and then the rows, or (D, 1) for a
    signal. D counts the densities of all channels. `weights` (classes, D) are the weights of
    the densities for each class, summed over feature maps that share a density; None if there is a
    hidden layer.
    """

    loc: np.ndarray
    scale: np.ndarray
    weights: np.ndarray | None


@torch.inference_mode()
def densities(model: DensityNetwork, x: Tensor) -> Densities:
    """The locations, scales and class weights of the densities for one input (1, C, H, W).

    Raises ValueError for a batch of several inputs.
    """
    _check_single(x)
    loc, scale = model.embedding.placement(x)
    weights = class_weights(model)
    return Densities(
        loc[0].flatten(0, 1).float().numpy(),
        scale[0].flatten(0, 1).float().numpy(),
        None if weights is None else weights.flatten(1).float().numpy(),
    )


def _check_single(x: Tensor) -> None:
    if len(x) != 1:
        raise ValueError(f"Expected a batch of one input; got {len(x):,}. Pass them one by one.")


def class_weights(model: DensityNetwork) -> Tensor | None:
    """w_ci as (classes, channels or 1, K), None if there is a hidden layer."""
    classifier, count = getattr(model, "classifier", None), model.embedding.num_densities
    if not isinstance(classifier, nn.Linear) or classifier.in_features % count:
        return None
    weight = classifier.weight.detach().unflatten(1, (-1, count))
    return weight.sum(1, keepdim=True) if model.embedding.groups == 1 else weight


def on_pixels(model: nn.Module) -> bool:
    """Whether the densities are over the pixels, not over the feature maps of other layers."""
    return not isinstance(model.embedding, FeatureEmbedding)


@torch.inference_mode()
def weighted_field(
    model: DensityNetwork, x: Tensor, weights: Tensor, resolution: int = RESOLUTION
) -> np.ndarray:
    """Σ_i w_i φ_i(t, u) for one input (1, C, H, W), per square pixel: (channels, H · r, W · r).

    For a signal (1, C, L) it is (channels, L · r), per sample.

    Args:
        weights: (channels or 1, K), e.g. those of one class of `class_weights`.
    Raises:
        ValueError: for a batch of several inputs.
    """
    _check_single(x)
    return weighted_sum(model.embedding, x, resolution, weights)[0].float().numpy()


def density_field(
    model: DensityNetwork, x: Tensor, index: int, resolution: int = RESOLUTION
) -> np.ndarray:
    """φ_i(t, u) of one of `densities`, per square pixel: (1, H · r, W · r), or (1, L · r)."""
    weights = torch.zeros(model.embedding.groups * model.embedding.num_densities)
    weights[index] = 1
    chosen = weights.unflatten(0, (model.embedding.groups, model.embedding.num_densities))
    return weighted_field(model, x, chosen, resolution).sum(0, keepdims=True)


def input_gradient(model: nn.Module, x: Tensor) -> np.ndarray:
    """∂ logit_c / ∂ x for one input (1, C, H, W): (classes, C, H, W).

    The effective receptive field of Luo et al. (2016), with its sign. For fixed densities and a
    linear classifier it is the same for every input: the kernel of `DensityNetwork.fold`.
    Raises ValueError for a batch of several inputs.
    """
    _check_single(x)
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        logits = model(x)[0]
        rows = [torch.autograd.grad(logit, x, retain_graph=True)[0] for logit in logits]
    return torch.cat(rows).to(torch.promote_types(x.dtype, torch.float32)).numpy()


@dataclass(frozen=True)
class Measures:
    """Numbers of one field, in pixels.

    `centre` (t, u) of mass; `spread`, the root mean square distance from it; `entropy` in bits,
    which is log₂ of the number of pixels for a uniform field; `area`, the number of pixels with the
    fraction `MASS` of the mass; `variation`, the total variation distance from the field before
    training. The field of a signal has one row: u is 0.5, and the unit is a sample.
    """

    centre: tuple[float, float]
    spread: float
    entropy: float
    area: float
    variation: float


def measure(values: np.ndarray, before: np.ndarray, x: np.ndarray, y: np.ndarray) -> Measures:
    """Compute the measures of a field (C, H · r, W · r) or (C, L · r), summed over its channels.

    Args:
        before: the field before training, of the same shape.
        x, y: centres of the cells in pixels; `y` is empty for a signal.
    """
    y = y if len(y) else np.array([0.5])
    cell = float(x[0] * 2 * y[0] * 2)
    mass, start = (
        each.sum(0).astype(np.float64).reshape(len(y), len(x)) for each in (values, before)
    )
    mass, start = mass / (mass.sum() or 1), start / (start.sum() or 1)
    along, down = mass.sum(0), mass.sum(1)
    centre = float(along @ x), float(down @ y)
    spread = np.sqrt(along @ (x - centre[0]) ** 2 + down @ (y - centre[1]) ** 2)
    inked = mass[mass > 0]
    largest = np.cumsum(np.sort(mass, axis=None)[::-1])
    return Measures(
        centre,
        float(spread),
        float(-(inked * np.log2(inked / cell)).sum()),
        float(np.searchsorted(largest, MASS) + 1) * cell,
        float(abs(mass - start).sum() / 2),
    )


def mean_displacement(first: Densities, second: Densities) -> float:
    """Mean distance between the locations of the same densities, in pixels or samples."""
    return float(np.linalg.norm(second.loc - first.loc, axis=1).mean())


def field_statistics(
    model: DensityNetwork, x: Tensor, resolution: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the field (H · r, W · r) over inputs, summed over channels.

    Raises ValueError without any input.
    """
    if not len(x):
        raise ValueError("Expected at least one input; got none.")
    values = field(model, x, resolution).values.sum(1)
    return values.mean(0), values.std(0)
