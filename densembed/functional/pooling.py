"""Softmax densities of adaptive pooling (Section 3.4)."""

import math

import torch
from torch import Tensor


def _tilted(x: Tensor, mass: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """m e^{βc}, c = x − extreme and the extreme itself, the largest βx of each window.

    Measured from there no exponential exceeds 1 and one of them is 1, and at large |β| equal
    extremes differ by exactly 0 instead of by a rounding error times β. Pixels without mass are
    taken out before the exponential: 0 · ∞ and its gradient are NaN.
    """
    empty = mass <= 0
    sign = torch.where(beta < 0, -1, 1)
    extreme = (sign * x.detach()).masked_fill(empty, -math.inf).amax(-1, keepdim=True) * sign
    centred = (x - extreme).masked_fill(empty, 0)
    return mass.masked_fill(empty, 0) * torch.exp(beta * centred), centred, extreme


def pooling_weights(x: Tensor, mass: Tensor, beta: Tensor) -> Tensor:
    """Γ of adaptive pooling, m e^{βx} / Σ m e^{βx} (Section 3.4).

    Args:
        x: (..., k) the pixels of each window.
        mass: (..., k) their overlaps m ≥ 0 with the interval, not all 0 in a window.
        beta: (..., 1) or broadcastable to it.
    Returns:
        (..., k), summing to 1 along the last axis; 0 where m = 0, with no NaN in any gradient.
    """
    tilted, _, _ = _tilted(x, mass, beta)
    return tilted / tilted.sum(-1, keepdim=True)


def softmax_pool(x: Tensor, mass: Tensor, beta: Tensor) -> Tensor:
    """Expectation of each window under `pooling_weights`: (..., k) → (...).

    The mean at β = 0, the maximum and the minimum to within log(Σm / m)/|β| as β → ±∞, where m
    is the mass of the extreme pixel: log(k)/|β| for k whole pixels. Fastest where the windows'
    axis, the last one here, is the first in memory: every pass then runs along whole rows.
    """
    tilted, centred, extreme = _tilted(x, mass, beta)
    return (tilted * centred).sum(-1) / tilted.sum(-1) + extreme.squeeze(-1)
