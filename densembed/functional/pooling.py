"""Softmax densities of adaptive pooling (Section 3.4)."""

import math

import torch
from torch import Tensor


def _tilted(x: Tensor, mass: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor, float]:
    """m e^{β(x − x*)}, sc = s(x − x*), x*, the value with the largest βx in each window, and s.

    Relative to x* no exponential exceeds 1 and at least one equals 1. Values equal to x* differ
    from it by exactly 0, not by a rounding error that a large β would amplify. Pixels without mass
    are masked before the exponential, because 0 · ∞ and its gradient are NaN. Differences are
    scaled by a power of two s ≤ 1/2k, which makes no rounding error, because x − x* may exceed the
    largest number, and so may a sum of k of them.
    """
    scale = 0.5 ** (1 + math.ceil(math.log2(x.shape[-1])))
    empty = mass <= 0
    sign = torch.where(beta < 0, -1, 1)
    extreme = (sign * x.detach()).masked_fill(empty, -math.inf).amax(-1, keepdim=True) * sign
    centred = (scale * x - scale * extreme).masked_fill(empty, 0)
    most = scale * torch.finfo(beta.dtype).max  # a steeper β is of no use, as β/s would be ∞
    tilted = mass.masked_fill(empty, 0) * torch.exp(beta.clamp(-most, most) / scale * centred)
    return tilted, centred, extreme, scale


def pooling_weights(x: Tensor, mass: Tensor, beta: Tensor) -> Tensor:
    """Γ of adaptive pooling, m e^{βx} / Σ m e^{βx}.

    Args:
        x: (..., k), the pixels of each window.
        mass: (..., k), their overlaps m ≥ 0 with the interval, not all 0 in a window.
        beta: (..., 1) or broadcastable to it.
    Returns:
        (..., k), with sum 1 along the last axis, 0 where m = 0, and finite gradients.

    >>> pooling_weights(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0]), torch.tensor(1.0))
    tensor([0.2689, 0.7311])
    """
    tilted, *_ = _tilted(x, mass, beta)
    return tilted / tilted.sum(-1, keepdim=True)


def softmax_pool(x: Tensor, mass: Tensor, beta: Tensor) -> Tensor:
    """Expectation of each window under `pooling_weights`: (..., k) → (...).

    It is the mean at β = 0 and tends to the maximum or minimum as β → ±∞, with an error of at
    most log(Σm / m)/|β|, where m is the mass of the extreme pixel: log(k)/|β| for k whole pixels.
    It is fastest if the last axis has the largest stride in memory, because every pass then runs
    over contiguous rows.

    >>> x, mass = torch.tensor([0.0, 1.0, 2.0]), torch.ones(3)
    >>> [softmax_pool(x, mass, torch.tensor(beta)).item() for beta in (0.0, 1000.0)]
    [1.0, 2.0]
    """
    tilted, centred, extreme, scale = _tilted(x, mass, beta)
    half = (tilted * centred).sum(-1) / tilted.sum(-1) / (2 * scale)
    return extreme.squeeze(-1) + half + half  # twice the half may exceed the largest number
