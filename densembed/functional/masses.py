"""Masses of densities between edges, and what moving or widening a density changes in them."""

import torch
from torch import Tensor

from densembed.functional.densities import Density


class _IntervalMass(torch.autograd.Function):
    """Masses between consecutive edges, with the closed-form gradient.

    With z_e = (t_e − μ)/s, ∂F_e/∂μ = −f(z_e)/s and ∂F_e/∂s = −z_e f(z_e)/s: the gradient needs
    the pdf at the edges and nothing that the forward pass kept. It is never differentiated
    through the branches of a family's `mass`, so it has no NaN where those are stitched.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(loc, scale, edges, density):
        z = (edges[:-1] - loc[..., None]) / scale[..., None]
        return density.mass(z, edges.diff() / scale[..., None])

    @staticmethod
    def setup_context(ctx, inputs, output):
        loc, scale, edges, density = inputs
        ctx.save_for_backward(loc, scale, edges)
        ctx.density = density

    @staticmethod
    def backward(ctx, grad):
        loc, scale, edges = ctx.saved_tensors
        z = (edges - loc[..., None]) / scale[..., None]
        zero = torch.zeros_like(grad[..., :1])
        by_cdf = torch.cat((zero, grad), -1) - torch.cat((grad, zero), -1)
        by_z = by_cdf * ctx.density.pdf(z) / scale[..., None]
        return -by_z.sum(-1), -(by_z * z).sum(-1), None, None


class _ForwardMass(_IntervalMass):
    """With forward mode, which the compiler refuses to see: see `forward_mode`."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _IntervalMass.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx, by_loc, by_scale, *unused):
        return mass_tangent(ctx.density, *ctx.saved_tensors, by_loc, by_scale)


def forward_mode(plain: type, forward: type) -> type:
    """A function with forward mode where it may be: torch.compile takes none with a `jvp`."""
    return plain if torch.compiler.is_compiling() else forward


def interval_mass(density: Density, loc: Tensor, scale: Tensor, edges: Tensor) -> Tensor:
    """Mass of each density between consecutive edges.

    Args:
        loc, scale: (...) in pixels, scale > 0.
        edges: (E,) increasing.
    Returns:
        (..., E − 1), each entry F(edges[e + 1]) − F(edges[e]).
    """
    loc, scale = torch.broadcast_tensors(loc, scale)
    return forward_mode(_IntervalMass, _ForwardMass).apply(loc, scale, edges, density)


def mass_tangent(
    density: Density, loc: Tensor, scale: Tensor, edges: Tensor, by_loc: Tensor, by_scale: Tensor
) -> Tensor:
    """Directional derivative of `interval_mass` along (by_loc, by_scale), (..., E − 1)."""
    z = (edges - loc[..., None]) / scale[..., None]
    slope = -density.pdf(z) / scale[..., None]
    return (slope * (by_loc[..., None] + z * by_scale[..., None])).diff(dim=-1)
