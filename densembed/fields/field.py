"""Receptive fields as arrays with their coordinates: what the figures and the exports show."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from densembed.data import as_input
from densembed.functional.gamma import axes_gamma
from densembed.training.checkpoint import Checkpoint

RESOLUTION = 4
TOP_PERCENTILE = 99.5
CHUNK_CELLS = 2**24
"""Cells computed at once: bounds the memory whatever the number of inputs."""


@dataclass(frozen=True)
class Field:
    """Sum of the densities of a layer over the input's domain, Σ_i φ_i(t, u).

    `values` is (inputs, channels, H · r, W · r) per square pixel, row 0 at the top; `x` (W · r)
    and `y` (H · r) are the centres of the cells in pixels. One input and one channel where the
    densities do not depend on them.
    """

    values: np.ndarray
    x: np.ndarray
    y: np.ndarray


@torch.inference_mode()
def field(model: nn.Module, x: Tensor | None = None, resolution: int = RESOLUTION) -> Field:
    """The receptive field of a model, for each input where it moves with the input.

    Separable densities are summed as one product, Σ_i f_i(u) g_i(t), so nothing of size
    densities × H · r × W · r is ever held.

    Args:
        model: a network with an `embedding`.
        x: (N, C, H, W) in [0, 1]; needed by adaptive models.
        resolution: r, cells a pixel on each axis.
    """
    height, width = (size * resolution for size in model.embedding.sizes)

    def summed(model: nn.Module, x: Tensor | None) -> Tensor:
        embedding = model.embedding
        if not model.adaptive or x is None:
            return _sum(embedding, x, resolution)
        chunk = max(1, CHUNK_CELLS // (height * width * embedding.in_channels))
        parts = [_sum(embedding, part, resolution) for part in x.split(chunk)]
        return torch.cat(parts) if parts else x.new_empty(0, embedding.in_channels, height, width)

    values = _retry_in_float64(summed, model, x)
    return Field(
        values.float().cpu().numpy(),
        (np.arange(width) + 0.5) / resolution,
        (np.arange(height) + 0.5) / resolution,
    )


def _retry_in_float64(
    compute: Callable[[nn.Module, Tensor | None], Tensor], model: nn.Module, x: Tensor | None
) -> Tensor:
    """What `compute` gives, in float64 where sums of large weights overflow float32.

    With weights of 1e38 a location is NaN, as ∞ − ∞, though it lies at the domain's edge.
    """
    values = compute(model, x)
    if values.isfinite().all():
        return values
    return compute(copy.deepcopy(model).double(), None if x is None else x.double())


def _sum(embedding: nn.Module, x: Tensor | None, resolution: int) -> Tensor:
    rows, columns = embedding.pdf_axes(x, resolution=resolution)
    return rows.transpose(-1, -2) @ columns


LARGEST = 1e30
"""Fields are cut off here: beyond it differences and squares are no numbers any more."""


def finite(values: np.ndarray) -> np.ndarray:
    """Values that can be drawn: infinite and huge ones cut off, 0 where there is no number."""
    if np.isfinite(values).all() and (not values.size or abs(values).max() <= LARGEST):
        return values
    return np.clip(np.nan_to_num(values), -LARGEST, LARGEST)


@torch.inference_mode()
def pixel_field(model: nn.Module, x: Tensor | None = None) -> np.ndarray:
    """Σ_i Γ_i[m, n], the mass that the densities have in each pixel: (inputs, channels, H, W)."""

    def summed(model: nn.Module, x: Tensor | None) -> Tensor:
        embedding = model.embedding
        loc, scale = embedding.placement(x)
        rows, columns = axes_gamma(
            embedding.family, loc, scale, embedding.sizes, truncate=embedding.truncate
        )
        return rows.transpose(-1, -2) @ columns

    return finite(_retry_in_float64(summed, model, x).float().cpu().numpy())


@torch.inference_mode()
def logits(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of a model, (N, classes), in float64 where they overflow float32."""
    return _retry_in_float64(lambda model, x: model(x), model, x)


@dataclass(frozen=True)
class View:
    """What a checkpoint makes of one input at some of its snapshots.

    `steps` of the snapshots, their `fields` (one array (C, H · r, W · r) for each) and
    `probabilities` (snapshots, classes). Both are finite whatever the model's weights.
    """

    steps: list[int]
    x: np.ndarray
    y: np.ndarray
    fields: list[np.ndarray]
    probabilities: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture in pixels."""
        return round(self.x[0] + self.x[-1]), round(self.y[0] + self.y[-1])

    @cached_property
    def top(self) -> float:
        """End of the colour scale that all steps share, per square pixel, channels added.

        The 99.5th percentile of the field that reaches highest: the points of a few very narrow
        densities would else leave all the rest dark. What lies above has the last colour.
        """
        return max(float(np.percentile(values.sum(0), TOP_PERCENTILE)) for values in self.fields)


@torch.inference_mode()
def view(
    checkpoint: Checkpoint,
    pixels: Tensor,
    snapshots: list[int] | None = None,
    member: int | None = None,
    resolution: int = RESOLUTION,
) -> View:
    """Field and opinion at the given snapshots (all of them if None) for one picture.

    Args:
        pixels: (C, H, W) uint8, of the shape that the checkpoint's model takes.
    """
    count = len(checkpoint.steps)
    snapshots = list(range(count)) if snapshots is None else [index % count for index in snapshots]
    x = as_input(pixels[None])
    fields, probabilities = [], []
    for index in snapshots:
        model = checkpoint.network(index, member)
        found = field(model, x, resolution)
        fields.append(finite(found.values[0]))
        probabilities.append(logits(model, x)[0].softmax(0).float().numpy())
    return View(
        [checkpoint.steps[index] for index in snapshots],
        found.x,
        found.y,
        fields,
        np.stack(probabilities),
    )
