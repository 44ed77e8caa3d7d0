"""The action of densities on a signal, R(x) = Γx, by the fastest exact method (Section 2).

Images in float32 or float64 under densities that are not truncated take the fast paths of
`densembed.functional.fused`. Everything else is computed from the factors of Γ.
"""

import torch
from torch import Tensor

from densembed.functional import fused, native
from densembed.functional.densities import Density
from densembed.functional.gamma import axes_gamma, outer


def embed(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density, *, truncate: bool = False
) -> Tensor:
    """Receptive field action R(x) = Γx, for densities that are fixed or move with the input.

    Args:
        x: (N, C, *sizes), sizes of one or two axes.
        loc, scale: (C, K, d) for fixed densities, (N, C, K, d) for densities that depend on the
            input. C may be 1 for the same densities in all channels; N may be 1 in `scale`.
    Returns:
        (N, C, K), the expectation of each channel under each density.

    >>> from densembed.functional.densities import density
    >>> x = torch.tensor([[[0.0, 1.0, 1.0, 0.0]]])
    >>> loc, scale = torch.tensor([[[2.0], [3.0]]]), torch.ones(1, 2, 1)
    >>> embed(x, loc, scale, density("uniform"))  # the means of x on [1, 3] and on [2, 4]
    tensor([[[1.0000, 0.5000]]])
    """
    if x.dim() == 4 and not truncate and _exact(x, loc, scale):
        if native.usable(density, x, loc, scale):
            shared = loc.dim() < x.dim()
            return native.see(x, *((loc[None], scale[None]) if shared else (loc, scale)), density)
        act = fused.moving if loc.dim() == x.dim() else fused.fixed
        return act(x, loc, scale, density)
    return embed_plain(x, loc, scale, density, truncate=truncate)


def embed_plain(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density, *, truncate: bool = False
) -> Tensor:
    """`embed` from the factors of Γ: the reference for tests of the fast path."""
    factors = axes_gamma(density, loc, scale, tuple(x.shape[2:]), truncate=truncate)
    if loc.dim() < x.dim():  # one Γ for the whole batch: a single matrix product
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
    *,
    truncate: bool = False,
) -> Tensor:
    """The linear map on pixels K_o = Σ_i w_oi Γ_i of a linear map after fixed densities.

    Args:
        weight: (O, C, K).
        loc, scale: (C or 1, K, d).
    Returns:
        (O, C, *sizes), so that y_o = Σ K_o x.

    >>> from densembed.functional.densities import density
    >>> loc, scale = torch.tensor([[[2.0], [3.0]]]), torch.ones(1, 2, 1)
    >>> fold(torch.tensor([[[2.0, -2.0]]]), loc, scale, density("uniform"), (4,))
    tensor([[[ 0.,  1.,  0., -1.]]])
    """
    if len(sizes) == 2 and not truncate and _exact(weight, loc, scale):
        if native.usable(density, weight, loc, scale):
            return native.spread(weight, loc[None], scale[None], density, sizes)
        groups = (weight.shape[1], *loc.shape[1:])
        return fused.fold(weight, loc.expand(groups), scale.expand(groups), density, sizes)
    return fold_plain(weight, loc, scale, density, sizes, truncate=truncate)


def fold_plain(
    weight: Tensor,
    loc: Tensor,
    scale: Tensor,
    density: Density,
    sizes: tuple[int, ...],
    *,
    truncate: bool = False,
) -> Tensor:
    """`fold` from the factors of Γ: the reference for tests of the fast path."""
    dense = outer(axes_gamma(density, loc, scale, sizes, truncate=truncate))
    dense = dense.expand(weight.shape[1], *dense.shape[1:])
    return torch.einsum("ock,ck...->oc...", weight, dense)


def _exact(*tensors: Tensor) -> bool:
    """Whether the precision of F near 1 suffices for the fast paths: not in half precision."""
    device = tensors[0].device.type
    autocast = device != "meta" and torch.is_autocast_enabled(device)
    return not autocast and all(
        tensor.dtype in (torch.float32, torch.float64) for tensor in tensors
    )
