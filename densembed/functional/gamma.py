"""Γ, and how it acts on a signal: Section 2 of the paper as functions on tensors.

The input is the piecewise constant x(t) = Σ_n x_n Δ(t; [n-1, n]) on [0, N], so
Γ_in = ∫_{n-1}^{n} φ_i(t) dt = F_i(n) − F_i(n−1), and Γx is the expectation of x under φ_i.
Images use separable densities: Γ_imn = Γ_im Γ_in, one factor an axis.

Axes: `loc[..., 0]`, `scale[..., 0]` run along the last axis of the signal (t, the columns of an
image), `[..., 1]` along the one before (u, the rows). Lengths are in pixels.
"""

import torch
from torch import Tensor

from densembed.functional import fused
from densembed.functional.densities import Density
from densembed.functional.masses import interval_mass


def gamma(
    density: Density, loc: Tensor, scale: Tensor, size: int, truncate: bool = False
) -> Tensor:
    """Γ_in = F_i(n) − F_i(n − 1) for n = 1 … size (Section 2.1).

    Args:
        loc, scale: (...) in pixels, scale > 0.
        size: N, the number of pixels along the axis.
        truncate: divide by the mass in [0, N], which is below 1 because a density reaches
            beyond the domain. The paper does not. A density with no mass there (see
            `negligible`) becomes the uniform one, 1/N.
    Returns:
        (..., size), entries in [0, 1].
    """
    edges = torch.arange(size + 1, dtype=loc.dtype, device=loc.device)
    masses = interval_mass(density, loc, scale, edges)
    if not truncate:
        return masses
    total = interval_mass(density, loc, scale, edges[:: max(size, 1)])
    empty = negligible(total)
    return torch.where(empty, 1 / size, masses / total.masked_fill(empty, 1))


def negligible(total: Tensor) -> Tensor:
    """Where a mass is too small to divide by: its parts would be subnormal, so lose digits."""
    dtype = torch.finfo(total.dtype)
    return total < dtype.tiny / dtype.eps


def axes_gamma(
    density: Density, loc: Tensor, scale: Tensor, sizes: tuple[int, ...], truncate: bool = False
) -> list[Tensor]:
    """One factor of a separable Γ for each axis, in the order of `sizes` (rows, then columns).

    Args:
        loc, scale: (..., d) for d axes.
        sizes: lengths of the d axes, e.g. (H, W).
    Returns:
        d tensors (..., size).
    """
    last = len(sizes) - 1
    return [
        gamma(density, loc[..., last - axis], scale[..., last - axis], size, truncate)
        for axis, size in enumerate(sizes)
    ]


def outer(factors: list[Tensor]) -> Tensor:
    """Product over the axes: [(..., H), (..., W)] → (..., H, W). Also turns pdfs into φ(t, u)."""
    product = factors[0]
    for factor in factors[1:]:
        product = product[..., None] * factor.reshape(
            factor.shape[:-1] + (1,) * (product.dim() - factor.dim() + 1) + factor.shape[-1:]
        )
    return product


def embed(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density, truncate: bool = False
) -> Tensor:
    """Receptive field action R(x) = Γx, for densities that are fixed or move with the input.

    Takes the fast path of `densembed.functional.fused` where there is one: images in float32 or
    float64 under densities that are not truncated.

    Args:
        x: (N, C, *sizes), sizes of one or two axes.
        loc, scale: (C, K, d) for fixed densities, (N, C, K, d) for ones that depend on the input
            (C may be 1: the same densities for every channel; N may be 1 in `scale`).
    Returns:
        (N, C, K): the expectation of every channel under every density.
    """
    if x.dim() == 4 and not truncate and _exact(x, loc, scale):
        act = fused.moving if loc.dim() == x.dim() else fused.fixed
        return act(x, loc, scale, density)
    return embed_plain(x, loc, scale, density, truncate)


def embed_plain(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density, truncate: bool = False
) -> Tensor:
    """`embed` by the formulas, one factor of Γ an axis: what the fast path is tested against."""
    factors = axes_gamma(density, loc, scale, tuple(x.shape[2:]), truncate)
    if loc.dim() < x.dim():  # one Γ for the whole batch: worth forming, it is a single product
        dense = outer(factors).flatten(2).expand(x.shape[1], -1, -1)
        return torch.einsum("ncx,ckx->nck", x.flatten(2), dense)
    if len(factors) == 1:
        return (factors[0] @ x[..., None]).squeeze(-1)
    rows, columns = factors
    return ((rows @ x) * columns).sum(-1)


def fold(
    weight: Tensor,
    loc: Tensor,
    scale: Tensor,
    density: Density,
    sizes: tuple[int, ...],
    truncate: bool = False,
) -> Tensor:
    """The linear map that a linear map of fixed densities is: K_o = Σ_i w_oi Γ_i.

    Args:
        weight: (O, C, K).
        loc, scale: (C or 1, K, d).
    Returns:
        (O, C, *sizes), so that y_o = Σ K_o x.
    """
    if len(sizes) == 2 and not truncate and _exact(weight, loc, scale):
        groups = (weight.shape[1], *loc.shape[1:])
        return fused.fold(weight, loc.expand(groups), scale.expand(groups), density, sizes)
    return fold_plain(weight, loc, scale, density, sizes, truncate)


def fold_plain(
    weight: Tensor,
    loc: Tensor,
    scale: Tensor,
    density: Density,
    sizes: tuple[int, ...],
    truncate: bool = False,
) -> Tensor:
    """`fold` by the formulas: what the fast path is tested against."""
    dense = outer(axes_gamma(density, loc, scale, sizes, truncate))
    dense = dense.expand(weight.shape[1], *dense.shape[1:])
    return torch.einsum("ock,ck...->oc...", weight, dense)


def _exact(*tensors: Tensor) -> bool:
    """Whether F near 1 has the digits that the fast paths need: not in half precision."""
    device = tensors[0].device.type
    autocast = device != "meta" and torch.is_autocast_enabled(device)
    return not autocast and all(
        tensor.dtype in (torch.float32, torch.float64) for tensor in tensors
    )
