"""Γ, the mass of each density in each pixel: Section 2 of the paper as functions on tensors.

The input is the piecewise constant x(t) = Σ_n x_n Δ(t; [n-1, n]) on [0, N], so
Γ_in = ∫_{n-1}^{n} φ_i(t) dt = F_i(n) − F_i(n−1), and Γx is the expectation of x under φ_i.
Images use separable densities: Γ_imn = Γ_im Γ_in, one factor per axis.

Axes: `loc[..., 0]`, `scale[..., 0]` run along the last axis of the signal (t, the columns of an
image), `[..., 1]` along the one before (u, the rows). Lengths are in pixels.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.forward_ad import _set_fwd_grad_enabled, unpack_dual

from densembed.functional.densities import Density


class _IntervalMass(Function):
    """Masses between consecutive edges, with the closed-form gradient.

    With z_e = (t_e − μ)/s, ∂F_e/∂μ = −f(z_e)/s and ∂F_e/∂s = −z_e f(z_e)/s, so the gradient needs
    only the pdf at the edges and no intermediate results. The branches of a family's `mass` are
    never differentiated, so there is no NaN at their boundaries.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(loc, scale, edges, density):
        z = (edges - loc[..., None]) / scale[..., None]
        # `mass` rounds the other end of the interval. So it is mirrored, which the symmetry of the
        # densities allows, where its right end is nearer to the location than its left one: then
        # the intervals on both sides of an edge beside the location have the same z there.
        nearer = torch.maximum(z[..., :-1], -z[..., 1:])
        return density.mass(nearer, edges.diff() / scale[..., None])

    @staticmethod
    def setup_context(ctx, inputs, output):
        loc, scale, edges, density = inputs
        ctx.save_for_backward(loc, scale, edges)
        ctx.density = density

    @staticmethod
    def backward(ctx, grad):
        refuse_batched(grad)
        loc, scale, edges = ctx.saved_tensors
        z = (edges - loc[..., None]) / scale[..., None]
        zero = torch.zeros_like(grad[..., :1])
        by_cdf = torch.cat((zero, grad), -1) - torch.cat((grad, zero), -1)
        by_z = by_cdf * ctx.density.pdf(z) / scale[..., None]
        return -by_z.sum(-1), -(by_z * z).sum(-1), None, None


class _ForwardMass(_IntervalMass):
    """Adds forward mode, which torch.compile rejects; see `differentiable`."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _IntervalMass.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx, by_loc, by_scale, *unused):
        with in_forward_mode(*ctx.saved_tensors, by_loc, by_scale) as parts:
            return mass_tangent(ctx.density, *parts)


@contextmanager
def in_forward_mode(*parts: Tensor) -> Iterator[list[Tensor]]:
    """For a `jvp`: the tensors without their own tangents, while tangents of others are computed.

    Torch calls a `jvp` with forward mode off. So another forward mode around that of the `jvp`, as
    in jacfwd(jacfwd(f)), would take the result for a constant.

    Raises RuntimeError for tensors that `torch.autograd` batches.
    """
    for part in parts:
        refuse_batched(part)
    with _set_fwd_grad_enabled(True):
        yield [unpack_dual(part).primal for part in parts]


def differentiable(plain: type[Function], forward: type[Function], *inputs: Any) -> Any:
    """Applies a function, in the variant that the context accepts.

    Args:
        plain: for torch.compile, which does not accept a `jvp`. For torch.jit.trace, which cannot
            save a function of Python, its operations are recorded instead.
        forward: the same with a `jvp`.
    """
    if torch.jit.is_tracing():
        return plain.forward(*inputs)
    return (plain if torch.compiler.is_compiling() else forward).apply(*inputs)


def refuse_batched(part: Tensor) -> None:
    """Raises for a gradient or tangent of `torch.autograd`'s own vmap, which lacks operations."""
    if not torch.compiler.is_compiling() and torch._C._functorch.is_legacy_batchedtensor(part):
        raise RuntimeError(
            "Density embeddings support neither is_grads_batched nor vectorize of torch.autograd. "
            "Use jacrev, jacfwd, hessian or vmap of torch.func."
        )


def interval_mass(density: Density, loc: Tensor, scale: Tensor, edges: Tensor) -> Tensor:
    """Mass of each density between consecutive edges.

    Args:
        loc, scale: (...) in pixels, scale > 0.
        edges: (E,) increasing.
    Returns:
        (..., E − 1), each entry F(edges[e + 1]) − F(edges[e]).
    """
    loc, scale = torch.broadcast_tensors(loc, scale)
    return differentiable(_IntervalMass, _ForwardMass, loc, scale, edges, density)


def mass_tangent(
    density: Density, loc: Tensor, scale: Tensor, edges: Tensor, by_loc: Tensor, by_scale: Tensor
) -> Tensor:
    """Directional derivative of `interval_mass` along (by_loc, by_scale), (..., E − 1)."""
    z = (edges - loc[..., None]) / scale[..., None]
    slope = -density.pdf(z) / scale[..., None]
    return (slope * (by_loc[..., None] + z * by_scale[..., None])).diff(dim=-1)


def gamma(
    density: Density, loc: Tensor, scale: Tensor, size: int, *, truncate: bool = False
) -> Tensor:
    """Γ_in = F_i(n) − F_i(n − 1) for n = 1 … size (Section 2.1).

    Args:
        loc, scale: (...) in pixels, scale > 0.
        size: N, the number of pixels along the axis.
        truncate: divide by the mass in [0, N], which is below 1 for densities that extend
            beyond the domain. The paper does not. A density with `negligible` mass there becomes
            uniform, 1/N.
    Returns:
        (..., size), entries in [0, 1].

    >>> from densembed.functional.densities import density
    >>> gamma(density("uniform"), torch.tensor(1.5), torch.tensor(1.0), 4)  # on [0.5, 2.5]
    tensor([0.2500, 0.5000, 0.2500, 0.0000])
    """
    edges = torch.arange(size + 1, dtype=loc.dtype, device=loc.device)
    masses = interval_mass(density, loc, scale, edges)
    if not truncate:
        return masses
    total = interval_mass(density, loc, scale, edges[:: max(size, 1)])
    empty = negligible(total)
    return torch.where(empty, 1 / size, masses / total.masked_fill(empty, 1))


def negligible(total: Tensor) -> Tensor:
    """Whether a mass is too small to divide by: its parts would be subnormal and lose digits."""
    dtype = torch.finfo(total.dtype)
    return total < dtype.tiny / dtype.eps


def axes_gamma(
    density: Density, loc: Tensor, scale: Tensor, sizes: tuple[int, ...], *, truncate: bool = False
) -> list[Tensor]:
    """One factor of a separable Γ for each axis, in the order of `sizes` (rows, then columns).

    Args:
        loc, scale: (..., d) for d axes.
        sizes: length of each of the d axes, such as (H, W).
    Returns:
        d tensors (..., size).
    """
    last = len(sizes) - 1
    return [
        gamma(density, loc[..., last - axis], scale[..., last - axis], size, truncate=truncate)
        for axis, size in enumerate(sizes)
    ]


def outer(factors: list[Tensor]) -> Tensor:
    """Product over the axes: [(..., H), (..., W)] → (..., H, W); likewise φ(t, u) from pdfs."""
    product = factors[0]
    for factor in factors[1:]:
        product = product[..., None] * factor.reshape(
            factor.shape[:-1] + (1,) * (product.dim() - factor.dim() + 1) + factor.shape[-1:]
        )
    return product
