"""Receptive fields as arrays with their coordinates."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from densembed.data import as_input
from densembed.data.grids import MAX_CELLS
from densembed.functional.arguments import per_axis
from densembed.functional.gamma import axes_gamma
from densembed.layers.embedding import Embedding, PixelEmbedding
from densembed.models.architectures import DensityNetwork
from densembed.models.defaults import float32_on_cpu
from densembed.models.registry import at_grid
from densembed.text import index_of
from densembed.training.checkpoint import Checkpoint

Model = TypeVar("Model", bound=nn.Module)
Input = TypeVar("Input", Tensor, Tensor | None)

RESOLUTION = 4
TOP_PERCENTILE = 99.5
CHUNK_CELLS = 2**19
"""Cells computed at once for many inputs, so that their densities stay in the cache."""


@dataclass(frozen=True)
class Field:
    """Sum of the densities of a layer over the input's domain, Σ_i φ_i(t, u).

    `values` is (inputs, channels, H · r, W · r) per square pixel, row 0 at the top; `x` (W · r)
    and `y` (H · r) are the centres of the cells in pixels. If the densities do not depend on the
    input or the channel, that dimension has size 1. The field of a signal is
    (inputs, channels, L · r) per sample, and `y` is empty.
    """

    values: np.ndarray
    x: np.ndarray
    y: np.ndarray


@torch.inference_mode()
def field(model: nn.Module, x: Tensor | None = None, resolution: int = RESOLUTION) -> Field:
    """The receptive field of a model, one for each input if the model is adaptive.

    Separable densities are summed as one product, Σ_i f_i(u) g_i(t), so that no array of
    densities × H · r × W · r is needed.

    Args:
        model: a `DensityNetwork`, or a network like it.
        x: inputs (N, C, *sizes), required for adaptive models.
        resolution: cells r per pixel on each axis.
    Raises:
        ValueError: the resolution is no positive integer, or makes more than 2²⁶ cells.
    """
    (resolution,) = per_axis(resolution, 1, "resolution", 1)
    network = cast(DensityNetwork, model)
    cells = [size * resolution for size in network.embedding.sizes]
    if prod(cells) > MAX_CELLS**2:
        raise ValueError(
            f"A resolution of {resolution:,} makes more than {MAX_CELLS**2:,} cells: lower it."
        )

    def summed(model: DensityNetwork, x: Tensor | None) -> Tensor:
        embedding = model.embedding
        if not model.adaptive or x is None:
            return weighted_sum(embedding, x, resolution)
        chunk = max(1, CHUNK_CELLS // (prod(cells) * embedding.in_channels))
        first = weighted_sum(embedding, x[:chunk], resolution)
        if len(x) <= chunk:
            return first
        values = first.new_empty(len(x), *first.shape[1:])
        values[:chunk] = first
        for part, inputs in zip(values[chunk:].split(chunk), x[chunk:].split(chunk), strict=True):
            part.copy_(weighted_sum(embedding, inputs, resolution))
        return values

    values = _retry_in_float64(summed, network, x)
    *height, width = ((np.arange(count) + 0.5) / resolution for count in cells)
    return Field(values.float().cpu().numpy(), width, *(height or [np.empty(0)]))


def _retry_in_float64(compute: Callable[[Model, Input], Tensor], model: Model, x: Input) -> Tensor:
    """The result of `compute`, in float64 if sums of large weights overflow float32.

    With weights of 1e38, a location at the edge of the domain would be NaN, as ∞ − ∞.
    """
    values = compute(model, x)
    if values.isfinite().all():
        return values
    return compute(copy.deepcopy(model).double(), x if x is None else x.double())


def weighted_sum(
    embedding: Embedding, x: Tensor | None, resolution: int, weights: Tensor | None = None
) -> Tensor:
    """Σ_i w_i φ_i, (batch or 1, channels or 1, *sizes · resolution); by default w_i = 1.

    Args:
        weights: (channels or 1, K).
    """
    (resolution,) = per_axis(resolution, 1, "resolution", 1)
    if isinstance(embedding, PixelEmbedding) and embedding.cells == embedding.sizes:
        # The products of K densities and K · resolution cells would exhaust the memory.
        values = embedding.lengths.new_ones(1, embedding.num_densities)
        values = (values if weights is None else weights.to(values))[None]
        values = values.unflatten(-1, embedding.sizes)
        for axis in range(len(embedding.sizes)):
            values = values.repeat_interleave(resolution, -1 - axis)
        return values
    first, *rest = embedding.pdf_axes(x, resolution=resolution)
    if weights is not None:
        first = first * weights[..., None].to(first)
    return sum_of_products([first, *rest])


def sum_of_products(factors: list[Tensor]) -> Tensor:
    """Sum over the densities of the products of their factors (…, K, cells) along each axis."""
    *rows, columns = factors
    return rows[0].transpose(-1, -2) @ columns if rows else columns.sum(-2)


LARGEST = 1e30
"""Fields are clipped to this value, so that their differences and squares are finite."""


def finite(values: np.ndarray) -> np.ndarray:
    """Values that can be drawn: clipped to `LARGEST`, with 0 for NaN."""
    if np.isfinite(values).all() and (not values.size or abs(values).max() <= LARGEST):
        return values
    return np.clip(np.nan_to_num(values), -LARGEST, LARGEST)


@torch.inference_mode()
def pixel_field(model: DensityNetwork, x: Tensor | None = None) -> np.ndarray:
    """Σ_i Γ_i[m, n], the mass of the densities in each pixel: (inputs, channels, H, W).

    For signals it is their mass in each sample, (inputs, channels, L).
    """

    def summed(model: DensityNetwork, x: Tensor | None) -> Tensor:
        embedding = model.embedding
        loc, scale = embedding.placement(x)
        return sum_of_products(
            axes_gamma(embedding.family, loc, scale, embedding.sizes, truncate=embedding.truncate)
        )

    return finite(_retry_in_float64(summed, model, x).float().cpu().numpy())


@torch.inference_mode()
def logits(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of a model, (N, classes), in float64 if they overflow float32."""
    return _retry_in_float64(lambda model, x: model(x), model, x)


@dataclass(frozen=True)
class View:
    """Receptive fields and predictions of a checkpoint for one input at several snapshots.

    `steps` of the snapshots, their `fields` (one array (C, H · r, W · r) each, or (C, L · r) of a
    signal) and `probabilities` (snapshots, classes). Both are finite even for extreme weights.
    """

    steps: list[int]
    x: np.ndarray
    y: np.ndarray
    fields: list[np.ndarray]
    probabilities: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the input in pixels."""
        return round(self.x[0] + self.x[-1]), round(self.y[0] + self.y[-1])

    @cached_property
    def top(self) -> float:
        """Upper end of the colour scale of all steps, per square pixel, summed over the channels.

        This is the largest 99.5th percentile of a field. With the maximum, the peaks of a few very
        narrow densities would leave everything else dark. Higher values get the last colour.
        """
        return max(float(np.percentile(values.sum(0), TOP_PERCENTILE)) for values in self.fields)


def network_for(
    checkpoint: Checkpoint, pixels: Tensor, index: int, member: int | None = None
) -> DensityNetwork:
    """The network of a snapshot on the grid of an input (C, *sizes).

    Raises ValueError if that is another grid than the model's, and it works on no other one.
    """
    network = checkpoint.network(index, member)
    if pixels.shape != checkpoint.header.input_shape:
        network = at_grid(network, tuple(pixels.shape[1:]))
    return cast(DensityNetwork, network)


@float32_on_cpu()
@torch.inference_mode()
def view(
    checkpoint: Checkpoint,
    pixels: Tensor,
    snapshots: list[int] | None = None,
    member: int | None = None,
    resolution: int = RESOLUTION,
) -> View:
    """Compute the receptive fields and the predictions for one input.

    Args:
        checkpoint: the checkpoint.
        pixels: (C, H, W) uint8, or a scaled signal (C, L). On another grid than that of the
            training images, the same weights are used on it.
        snapshots: indices of the snapshots, negative ones from the end (default: all).
        member: index of the member (default: the typical one).
        resolution: cells per pixel on each axis.
    Raises:
        ValueError: there is no such snapshot or member, or none is named.
    """
    count = len(checkpoint.steps)
    wanted = range(count) if snapshots is None else snapshots
    snapshots = [index_of(index, count, "snapshot") for index in wanted]
    if not snapshots:
        raise ValueError("Expected the index of at least one snapshot; got none.")
    x = as_input(pixels[None])
    fields, probabilities = [], []
    for index in snapshots:
        model = network_for(checkpoint, pixels, index, member)
        last = field(model, x, resolution)
        fields.append(finite(last.values[0]))
        probabilities.append(logits(model, x)[0].softmax(0).float().numpy())
    return View(
        [checkpoint.steps[index] for index in snapshots],
        last.x,
        last.y,
        fields,
        np.stack(probabilities),
    )
