"""Uniform densities on intervals: the mathematics of Section 3.3 as functions on tensors.

Pixel n covers [n−1, n]; in code a pixel has the index of its left edge, so the first one is 0.
Lengths are in pixels. Layers with one and two axes use the same functions, one axis at a time,
because their densities are separable (Section 2.3).
"""

import math
from collections.abc import Sequence
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

from densembed.functional.arguments import per_axis, widened
from densembed.functional.gamma import outer

MOST_CELLS = 2**24
"""Integers up to here are exact in float32."""


def bounded(logit: Tensor, low: float, high: float) -> Tensor:
    """p(λ) = a + (b − a) σ(λ), within [a, b] for every real λ (Section 3.3)."""
    return low + (high - low) * torch.sigmoid(logit)


def bounded_logit(value: float, low: float, high: float) -> float:
    """The λ with p(λ) = `value`. Raises ValueError unless low < value < high."""
    if not low < value < high:
        raise ValueError(f"Expected a start strictly between {low} and {high}; got {value}.")
    return math.log((value - low) / (high - value))


def step_scaled(stored: Tensor, lr_scale: float) -> Tensor:
    """θ = lr_scale · stored: multiplies the learning rate of θ without a parameter group.

    The gradients of locations and of interval ends are small. With f the density of location μ,
    ∂R/∂μ = Σ_n f(n) (x_{n+1} − x_n), which is 0 if the signal is flat and otherwise a sum of terms
    of both signs. The ends between the taps of a kernel likewise have gradients that are
    differences of neighbouring weights. In addition, a location has to move by pixels where a
    weight changes by fractions of 1. So a learning rate that suits the weights hardly moves it.

    Storing θ / lr_scale solves this with any optimiser and a single learning rate: a step in θ is
    `lr_scale` times as long with Adam and its variants, whose steps do not depend on the scale of
    the gradient, and `lr_scale`² times as long with SGD. A state_dict holds the stored number, so
    load it into a layer with the same `lr_scale`.
    """
    return lr_scale * stored


def overlap(lower: Tensor, upper: Tensor, starts: Tensor) -> Tensor:
    """Lengths of [lower, upper] ∩ [start, start + 1]: m_in of Section 3.4, Γ of Section 3.3.

    They are max(0, min(n, b) − max(n−1, a)), computed as the difference of the primitive of the
    pixel's indicator at b and at a. Both expressions have the same value for a ≤ b. If an end lies
    on the edge of a pixel, where there is a kink, the latter gives half of its derivative to the
    pixel on either side: the mean of the one-sided derivatives, with which the derivatives of the
    masses still sum to that of the length. Initially all ends of a convolution lie on edges.

    Args:
        lower, upper: (...) ends a ≤ b.
        starts: (n,) or (..., n), the left edges of the pixels.
    Returns:
        (..., n), entries in [0, 1].
    """

    def covered(end: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(end[..., None], starts), starts + 1)

    return covered(upper) - covered(lower)


def cell_centres(size: int, resolution: int, like: Tensor) -> Tensor:
    """Centres of `resolution` cells per pixel on [0, size], (size · resolution,), as `like`.

    Raises ValueError unless the resolution is a positive integer and the cells are at most 2²⁴.
    """
    (resolution,) = per_axis(resolution, 1, "resolution", 1)  # a NumPy integer would overflow
    if size * resolution > MOST_CELLS:
        raise ValueError(
            f"A resolution of {resolution:,} makes more than {MOST_CELLS:,} cells along an axis: "
            "lower it."
        )
    cells = torch.arange(size * resolution, dtype=like.dtype, device=like.device)
    return (cells + 0.5) / resolution


def indicator(lower: Tensor, upper: Tensor, size: int, resolution: int) -> Tensor:
    """Δ(t; [lower, upper]) at the centres of `resolution` cells per pixel on [0, size].

    Returns:
        (..., size · resolution), zeros and ones; a centre on a shared end is in one interval.
    """
    t = cell_centres(size, resolution, lower)
    return ((lower[..., None] <= t) & (t < upper[..., None])).to(lower.dtype)


def product(factors: list[Tensor]) -> Tensor:
    """All products of one interval per axis: [(A, K_rows, H), (A, K_cols, W)] → (A, ΠK, H, W)."""
    axes = len(factors)
    reshaped = [
        factor.reshape(len(factor), *(factor.shape[1] if a == axis else 1 for a in range(axes)), -1)
        for axis, factor in enumerate(factors)
    ]
    return outer(reshaped).flatten(1, axes)


def resample_kernel(weight: Tensor, factors: list[Tensor]) -> Tensor:
    """W_j = Σ_i w_i Γ_ij: the taps of a kernel spread over the pixels that they cover.

    Args:
        weight: (O, I, *taps).
        factors: for each axis, Γ of the first position, (O or 1, taps, pixels).
    Returns:
        (O, I, *pixels).
    """
    for factor in factors:  # replaces the first remaining axis and moves its pixels last
        weight = weight.movedim(2, -1)
        spread = weight.flatten(1, -2) @ factor.to(weight.dtype)
        weight = spread.unflatten(1, weight.shape[1:-1])
    return weight


def cell_means(x: Tensor, sizes: Sequence[int]) -> Tensor:
    """Means of a piecewise constant signal over the cells of another grid of its domain.

    They are the expectations under one uniform density per cell (Section 3.1), which are exact: a
    finer grid by a whole factor represents the same signal.

    Args:
        x: (..., *signal), one or two axes as in `sizes`.
        sizes: number of cells along each axis.
    Returns:
        (..., *sizes).

    >>> cell_means(torch.tensor([1.0, 3.0, 5.0]), (2,))
    tensor([1.6667, 4.3333])
    """
    factors = _mean_factors(x.shape[-len(sizes) :], sizes, x)
    wide = widened(x)
    if len(sizes) == 2:
        wide = factors[0] @ wide
    return (wide @ factors[-1].mT).to(x.dtype)


def fold_cell_means(weight: Tensor, sizes: Sequence[int]) -> Tensor:
    """The weights of a signal, (..., *sizes), that equal those of its `cell_means`, (..., *cells).

    >>> fold_cell_means(torch.tensor([1.0, 3.0]), (3,))  # of the two means of three pixels
    tensor([0.6667, 1.3333, 2.0000])
    """
    factors = _mean_factors(sizes, weight.shape[-len(sizes) :], weight)
    wide = widened(weight)
    if len(sizes) == 2:
        wide = factors[0].mT @ wide
    return (wide @ factors[-1]).to(weight.dtype)


def _mean_factors(sizes: Sequence[int], cells: Sequence[int], like: Tensor) -> list[Tensor]:
    """For each axis the matrix (cells, size) of `cell_means`, in at least float32."""
    factors, dtype = [], torch.promote_types(like.dtype, torch.float32)
    for size, count in zip(sizes, cells, strict=True):
        edges = torch.arange(count + 1, dtype=dtype, device=like.device) * (size / count)
        pixels = torch.arange(size, dtype=dtype, device=like.device)
        factors.append(overlap(edges[:-1], edges[1:], pixels) * (count / size))
    return factors


def resample_signal(x: Tensor, width: Tensor, cells: int, widest: float) -> Tensor:
    """∫ x(t) dt over the cells [j w, (j+1) w], j = 0 … cells − 1, of a zero-padded signal.

    A cell overlaps at most ⌈widest⌉ + 1 pixels, so the cost is linear in the length of the signal.
    Unlike differences of a cumulative sum it loses no digits on long signals.

    Args:
        x: (batch, A or 1, ..., N).
        width: (A,), w in pixels, 0 < w ≤ widest.
    Returns:
        (batch, A, ..., cells).
    """
    size = x.shape[-1]
    edges = width[:, None] * torch.arange(cells + 1, dtype=width.dtype, device=width.device)
    lower, upper = edges[:, :-1], edges[:, 1:]
    # ceil − 1, not floor: half the derivative of a lower end on an edge is in the pixel before it.
    taps = torch.arange(math.ceil(widest) + 1, dtype=width.dtype, device=width.device)
    starts = (lower.detach().ceil() - 1)[..., None] + taps
    shape = (1, len(width)) + (1,) * (x.dim() - 3) + (cells, len(taps))
    mass = overlap(lower, upper, starts).to(x.dtype).reshape(shape)
    index = (starts + 1).clamp(max=size + 1).long().reshape(shape)
    padded = F.pad(x, (1, 1))  # one zero on either side represents the outside
    # Not `take_along_dim`, which fixes the batch size, so torch.export would fail.
    spread = (x.shape[0], len(width), *x.shape[2:-1], -1)
    padded = padded.expand(spread)
    return reduce(
        torch.add,
        (
            padded.gather(-1, index[..., tap].expand(spread)) * mass[..., tap]
            for tap in range(len(taps))
        ),
    )
