"""Uniform densities on intervals: the mathematics of Section 3 as functions on tensors.

Pixel n covers [n−1, n]; in code a pixel is named by where it starts, so the first one is 0.
Lengths are in pixels. Layers of one and of two axes use the same functions, one axis at a time,
because their densities are separable (Section 2.3).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from densembed.functional.gamma import outer


def bounded(logit: Tensor, low: float, high: float) -> Tensor:
    """p(λ) = a + (b − a) σ(λ), within [a, b] for every real λ (Section 3.3)."""
    return low + (high - low) * torch.sigmoid(logit)


def bounded_logit(value: float, low: float, high: float) -> float:
    """The λ with p(λ) = `value`. Raises ValueError unless low < value < high."""
    if not low < value < high:
        raise ValueError(f"Expected a start strictly between {low} and {high}; got {value}.")
    return math.log((value - low) / (high - value))


def step_scaled(stored: Tensor, lr_scale: float) -> Tensor:
    """θ = lr_scale · stored: the same function of θ, learned in longer steps.

    The gradients of locations and of interval ends are small, for a reason. Moving a density
    changes its expectation only by what differs across it: with f the density,
    ∂R/∂μ = Σ_n f(n) (x_{n+1} − x_n), nothing where the signal is flat and a sum of both signs
    where it is not; moving the ends between the taps of a kernel gives differences of
    neighbouring weights in the same way. Besides, a location has pixels to travel where a weight
    has fractions of one. So a learning rate that suits the weights hardly moves it.

    A parameter stored divided by `lr_scale` cures that with any optimiser and one learning rate:
    a step in θ becomes `lr_scale` times as long under Adam and its kin (whose step does not
    depend on the gradient's size), `lr_scale`² times under SGD. To start at θ, store
    θ / lr_scale. A state_dict holds the stored number, so load it into a layer of the same scale.
    """
    return lr_scale * stored


def overlap(lower: Tensor, upper: Tensor, starts: Tensor) -> Tensor:
    """Lengths of [lower, upper] ∩ [start, start + 1]: m_in of Section 3.4, Γ of Section 3.3.

    It is max(0, min(n, b) − max(n−1, a)), written as the difference of the primitive of the
    pixel's indicator at b and at a. The two have the same value for a ≤ b; in this form an end
    that lies on a pixel's edge, where there is a kink, gives half its derivative to the pixel
    on either side: the mean of the one-sided derivatives, under which the derivatives of the
    masses still sum to that of the length. Convolutions start with all their ends on edges.

    Args:
        lower, upper: (...) ends a ≤ b.
        starts: (n,) or (..., n), where the pixels start.
    Returns:
        (..., n), entries in [0, 1].
    """

    def covered(end: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(end[..., None], starts), starts + 1)

    return covered(upper) - covered(lower)


def indicator(lower: Tensor, upper: Tensor, size: int, resolution: int) -> Tensor:
    """Δ(t; [lower, upper]) at the centres of `resolution` cells a pixel on [0, size].

    Returns:
        (..., size · resolution), zeros and ones; a centre on a shared end counts once.
    """
    cells = torch.arange(size * resolution, dtype=lower.dtype, device=lower.device)
    t = (cells + 0.5) / resolution
    return ((lower[..., None] <= t) & (t < upper[..., None])).to(lower.dtype)


def product(factors: list[Tensor]) -> Tensor:
    """All products of one interval an axis: [(A, K_rows, H), (A, K_cols, W)] → (A, ΠK, H, W)."""
    axes = len(factors)
    placed = [
        factor.reshape(len(factor), *(factor.shape[1] if a == axis else 1 for a in range(axes)), -1)
        for axis, factor in enumerate(factors)
    ]
    return outer(placed).flatten(1, axes)


def resample_kernel(weight: Tensor, factors: list[Tensor]) -> Tensor:
    """W_j = Σ_i w_i Γ_ij: the taps of a kernel spread over the pixels they cover.

    Args:
        weight: (O, I, *taps).
        factors: for each axis Γ of the first position, (O or 1, taps, pixels).
    Returns:
        (O, I, *pixels).
    """
    for factor in factors:  # each turn takes the first axis left and puts its pixels last
        weight = weight.movedim(2, -1)
        spread = weight.flatten(1, -2) @ factor.to(weight.dtype)
        weight = spread.unflatten(1, weight.shape[1:-1])
    return weight


def resample_signal(x: Tensor, width: Tensor, cells: int, widest: float) -> Tensor:
    """∫ x(t) dt over the cells [j w, (j+1) w], j = 0 … cells − 1, of a signal that is 0 outside.

    A cell meets at most ⌈widest⌉ + 1 pixels, so this is linear in the length of the signal, and
    unlike differences of a cumulative sum it loses no digits on a long one.

    Args:
        x: (batch, A or 1, ..., N).
        width: (A,) w in pixels, 0 < w ≤ widest.
    Returns:
        (batch, A, ..., cells).
    """
    size = x.shape[-1]
    edges = width[:, None] * torch.arange(cells + 1, dtype=width.dtype, device=width.device)
    lower, upper = edges[:, :-1], edges[:, 1:]
    # ceil − 1, not floor: a lower end on an edge has half its derivative in the pixel before.
    taps = torch.arange(math.ceil(widest) + 1, dtype=width.dtype, device=width.device)
    starts = (lower.detach().ceil() - 1)[..., None] + taps
    shape = (1, len(width)) + (1,) * (x.dim() - 3) + (cells, len(taps))
    mass = overlap(lower, upper, starts).to(x.dtype).reshape(shape)
    index = (starts + 1).clamp(max=size + 1).long().reshape(shape)
    padded = F.pad(x, (1, 1))  # one zero on either side stands for everything outside
    # Spread by hand: `take_along_dim` takes the batch for a number, so nothing could export it.
    spread = (x.shape[0], len(width), *x.shape[2:-1], -1)
    padded = padded.expand(spread)
    return sum(
        padded.gather(-1, index[..., tap].expand(spread)) * mass[..., tap]
        for tap in range(len(taps))
    )
