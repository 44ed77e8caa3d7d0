"""Γ and its action in few passes over memory: the fast paths behind `densembed.gamma`.

Three facts make them:

1. Summation by parts. Σ_n (F(n) − F(n−1)) x_n = Σ_e F(e) (x_e − x_{e+1}) with x_0 = x_{N+1} = 0.
   So R = F_rowᵀ X″ F_col with X″ the second difference of the padded picture: Γ is never
   differenced, and F and f are evaluated once at each edge.
2. Diagonal Jacobian. R_k depends on the location and scale of density k alone, so the forward
   pass can return ∂R/∂μ and ∂R/∂s with R, and nothing of size batch · K · N is kept.
3. Folding. A linear map after fixed densities is one picture for each of its outputs,
   K_o = Σ_i w_oi Γ_i, whose size does not depend on the number of densities.

They are exact up to rounding, but to an absolute accuracy: F near 1 has lost what distinguishes
it from 1. `gamma.gamma` keeps the relative one.
"""

import torch
from torch import Tensor

from densembed.densities import Density


def jumps(x: Tensor) -> Tensor:
    """Second difference of pictures, padded by zeros: (..., H, W) → (..., H + 1, W + 1)."""
    return torch.nn.functional.pad(x, (1, 1, 1, 1)).diff(dim=-1).diff(dim=-2)


def _edges(size: int, like: Tensor) -> Tensor:
    return torch.arange(size, dtype=like.dtype, device=like.device)


def _standard(edges: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """z = (t − μ)/s, in one pass where μ has the larger shape."""
    inverse = scale.reciprocal()
    return edges * inverse[..., None] - (loc * inverse)[..., None]


def moving_value(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R for densities of each input, without gradients. Shapes as in `moving`."""
    jump = jumps(x)
    rows, columns = (
        density.cdf(_standard(_edges(jump.shape[axis], loc), loc[..., k], scale[..., k]))
        for k, axis in ((1, -2), (0, -1))
    )
    return ((rows @ jump) * columns).sum(-1)


class _Moving(torch.autograd.Function):
    """R, and its diagonal Jacobian as two more outputs that only the backward pass sees."""

    @staticmethod
    def forward(x, loc, scale, density):
        jump = jumps(x)
        row_edges, column_edges = (_edges(jump.shape[axis], loc) for axis in (-2, -1))
        columns, pdf_columns = density.cdf_pdf(_standard(column_edges, loc[..., 0], scale[..., 0]))
        rows, pdf_rows = density.cdf_pdf(_standard(row_edges, loc[..., 1], scale[..., 1]))
        seen = rows @ jump
        # The pdfs are ours alone, so they hold the products: fresh memory costs page faults.
        slopes = (
            _slopes(pdf_columns.mul_(seen), column_edges, loc[..., 0], scale[..., 0]),
            _slopes(pdf_rows.mul_(columns @ jump.mT), row_edges, loc[..., 1], scale[..., 1]),
        )
        by_loc, by_scale = (torch.stack(parts, -1) for parts in zip(*slopes, strict=True))
        return seen.mul_(columns).sum(-1), by_loc, by_scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, loc, scale, density = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, loc, scale, *output[1:])
        ctx.density = density

    @staticmethod
    def backward(ctx, grad, *unused):
        x, loc, scale, by_loc, by_scale = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody differentiates the gradient: the plain way can
            from densembed.gamma import embed_plain

            value = embed_plain(x, loc, scale, ctx.density)
            return None, *torch.autograd.grad(value, (loc, scale), grad, create_graph=True), None
        grad = grad[..., None]
        return None, grad * by_loc, (grad * by_scale).sum_to_size(scale.shape), None

    @staticmethod
    def vmap(info, dims, x, loc, scale, density):
        """Members: every tensor gets the mapped axis in front, and one call does them all."""
        parts = [
            part[None] if dim is None else part.movedim(dim, 0)
            for part, dim in zip((x, loc, scale), dims, strict=False)
        ]
        return _Moving.apply(*parts, density), (0, 0, 0)


def _slopes(weighted: Tensor, edges: Tensor, loc: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """∂R/∂μ = −Σ_e y_e f(z_e) / s and ∂R/∂s = −Σ_e y_e f(z_e) z_e / s, in one product."""
    total, moment = (weighted @ torch.stack((torch.ones_like(edges), edges), -1)).unbind(-1)
    return -total / scale, (loc * total - moment) / scale.square()


def moving(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R(x) = Γ(x) x for two-dimensional densities that differ from input to input.

    Args:
        x: (..., C, H, W), without a gradient of its own.
        loc: (..., C, K, 2); scale: the same or with axes of length 1 in front.
    Returns:
        (..., C, K).
    """
    if not (torch.is_grad_enabled() and (loc.requires_grad or scale.requires_grad)):
        return moving_value(x, loc, scale, density)
    return _Moving.apply(x, loc, scale, density)[0]


class _Cdf(torch.autograd.Function):
    """F at edges, with the closed-form gradient from the pdf there."""

    generate_vmap_rule = True

    @staticmethod
    def forward(loc, scale, edges, density):
        return density.cdf(_standard(edges, loc, scale))

    @staticmethod
    def setup_context(ctx, inputs, output):
        loc, scale, edges, density = inputs
        ctx.save_for_backward(loc, scale, edges)
        ctx.density = density

    @staticmethod
    def backward(ctx, grad):
        loc, scale, edges = ctx.saved_tensors
        z = _standard(edges, loc, scale)
        by_z = grad * ctx.density.pdf(z) / scale[..., None]
        return -by_z.sum(-1), -(by_z * z).sum(-1), None, None


def fold(
    weight: Tensor, loc: Tensor, scale: Tensor, density: Density, sizes: tuple[int, int]
) -> Tensor:
    """K_o = Σ_i w_oi Γ_i as pictures: (O, C, K), (C or 1, K, 2) → (O, C, H, W)."""
    height, width = sizes
    columns = _Cdf.apply(loc[..., 0], scale[..., 0], _edges(width + 1, loc), density)
    rows = _Cdf.apply(loc[..., 1], scale[..., 1], _edges(height + 1, loc), density)
    weighted = (weight.permute(1, 2, 0)[..., None] * columns[:, :, None, :]).flatten(2)
    folded = (rows.mT @ weighted).unflatten(-1, (weight.shape[0], width + 1))
    return folded.permute(2, 0, 1, 3).diff(dim=-1).diff(dim=-2)
