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

from itertools import repeat

import torch
from torch import Tensor

from densembed.densities import Density


def jumps(x: Tensor) -> Tensor:
    """Second difference of pictures, padded by zeros: (..., H, W) → (..., H + 1, W + 1)."""
    return torch.nn.functional.pad(x, (1, 1, 1, 1)).diff(dim=-1).diff(dim=-2)


def _edges(size: int, like: Tensor) -> Tensor:
    """The edges as a column, so that an axis of densities beside it is the one in memory order."""
    return torch.arange(size, dtype=like.dtype, device=like.device)[:, None]


def _standard(edges: Tensor, loc: Tensor, inverse: Tensor) -> Tensor:
    """z = (t − μ)/s: (..., K) → (..., E, K), in one pass where μ has the larger shape."""
    return edges * inverse[..., None, :] - (loc * inverse)[..., None, :]


def moving_value(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R for densities of each input, without gradients. Shapes as in `moving`."""
    jump, inverse = jumps(x), scale.reciprocal()
    rows, columns = (
        density.cdf(_standard(_edges(jump.shape[axis], loc), loc[..., k], inverse[..., k]))
        for k, axis in ((1, -2), (0, -1))
    )
    return (jump @ columns).mul_(rows).sum(-2)


CHUNK_CELLS = 3 * 2**18
"""Values of F held at once on a CPU: with what belongs to them they stay in a core's cache."""


class _Moving(torch.autograd.Function):
    """R, and its diagonal Jacobian as two more outputs that only the backward pass sees."""

    @staticmethod
    def forward(x, loc, scale, density):
        cells = loc[..., :1, :, :, 0].numel() * (x.shape[-1] + x.shape[-2] + 2)
        images = max(1, CHUNK_CELLS // max(1, cells))
        if loc.shape[-4] <= images or x.is_cuda:
            return _with_slopes(x, loc, scale, density)
        scales = repeat(scale) if scale.shape[-4] == 1 else scale.split(images, -4)
        chunks = [
            _with_slopes(*parts, density)
            for parts in zip(x.split(images, -4), loc.split(images, -4), scales, strict=False)
        ]
        dims = (-3, -4, -4)
        return tuple(
            torch.cat(c, dim) for c, dim in zip(zip(*chunks, strict=True), dims, strict=True)
        )

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
            return *_again("embed_plain", ctx, grad, (x, loc, scale), ctx.density), None
        by_x = None
        if ctx.needs_input_grad[0]:
            inverse = scale.reciprocal()
            columns, rows = (
                ctx.density.cdf(
                    _standard(_edges(x.shape[axis] + 1, loc), loc[..., k], inverse[..., k])
                ).diff(dim=-2)
                for k, axis in ((0, -1), (1, -2))
            )
            by_x = ((rows * grad[..., None, :]) @ columns.mT).sum_to_size(x.shape)
        grad = grad[..., None]
        return by_x, grad * by_loc, (grad * by_scale).sum_to_size(scale.shape), None

    @staticmethod
    def vmap(info, dims, x, loc, scale, density):
        return _Moving.apply(*_in_front(dims, x, loc, scale), density), (0, 0, 0)


def _with_slopes(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density
) -> tuple[Tensor, Tensor, Tensor]:
    """R, ∂R/∂μ and ∂R/∂s: (..., C, K), (..., C, K, 2), (..., C, K, 2)."""
    jump, inverse = jumps(x), scale.reciprocal()
    along, down = (_edges(jump.shape[axis], loc) for axis in (-1, -2))
    columns, pdf_columns = density.cdf_pdf(_standard(along, loc[..., 0], inverse[..., 0]))
    rows, pdf_rows = density.cdf_pdf(_standard(down, loc[..., 1], inverse[..., 1]))
    seen = jump.mT @ rows
    # The pdfs are ours alone, so they hold the products: fresh memory costs page faults.
    slopes = (
        _slopes(pdf_columns.mul_(seen), along, loc[..., 0], inverse[..., 0]),
        _slopes(pdf_rows.mul_(jump @ columns), down, loc[..., 1], inverse[..., 1]),
    )
    by_loc, by_scale = (torch.stack(parts, -1) for parts in zip(*slopes, strict=True))
    return seen.mul_(columns).sum(-2), by_loc, by_scale


def _slopes(weighted: Tensor, edges: Tensor, loc: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """∂R/∂μ = −Σ_e y_e f(z_e) / s and ∂R/∂s = −Σ_e y_e f(z_e) z_e / s; overwrites y · f."""
    total = weighted.sum(-2)
    moment = weighted.mul_(edges).sum(-2)
    by_loc = total * -inverse
    return by_loc, torch.addcmul(moment, loc, total, value=-1) * (-inverse * inverse)


def moving(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R(x) = Γ(x) x for two-dimensional densities that differ from input to input.

    Args:
        x: (..., C, H, W).
        loc: (..., C or 1, K, 2); scale: the same or with axes of length 1 in front.
    Returns:
        (..., C, K).
    """
    if not torch.is_grad_enabled():  # under vmap no tensor says whether it needs a gradient
        return moving_value(x, loc, scale, density)
    loc = loc.expand(*loc.shape[:-3], x.shape[-3], *loc.shape[-2:])
    return _Moving.apply(x, loc, scale, density)[0]


class _Fixed(torch.autograd.Function):
    """R of the same densities for every input, one matrix product, and its gradient, another.

    Both axes are evaluated in one tensor, on as many edges as the longer one has.
    """

    @staticmethod
    def forward(x, loc, scale, density):
        height, width = x.shape[-2:]
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()  # (..., C, 2, K)
        cdf, pdf = density.cdf_pdf(_standard(_edges(max(height, width) + 1, loc), loc, inverse))
        seen = x.flatten(-2).transpose(-3, -2) @ _dense(cdf, height, width)  # (..., C, N, K)
        return seen.transpose(-3, -2), cdf, pdf

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, loc, scale, density = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, loc, scale, *output[1:])
        ctx.density = density

    @staticmethod
    def backward(ctx, grad, *unused):
        x, loc, scale, cdf, pdf = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *_again("embed_plain", ctx, grad, (x, loc, scale), ctx.density), None
        height, width = x.shape[-2:]
        by_x = None
        if ctx.needs_input_grad[0]:
            by_x = grad.transpose(-3, -2) @ _dense(cdf, height, width).mT  # (..., C, N, H · W)
            by_x = by_x.transpose(-3, -2).unflatten(-1, (height, width)).sum_to_size(x.shape)
        columns, rows = cdf[..., 0, : width + 1, :], cdf[..., 1, : height + 1, :]
        by_gamma = grad.movedim(-3, -1) @ x.flatten(-2).transpose(-3, -2)  # (..., C, K, H · W)
        # Γ is a second difference, which is its own transpose, padded.
        by_gamma = jumps(by_gamma.unflatten(-1, (height, width))).movedim(-3, -1)
        by_cdf = torch.zeros_like(cdf)
        by_cdf[..., 0, : width + 1, :] = (by_gamma * rows[..., :, None, :]).sum(-3)
        by_cdf[..., 1, : height + 1, :] = (by_gamma * columns[..., None, :, :]).sum(-2)
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()
        slopes = _slopes(by_cdf.mul_(pdf), _edges(cdf.shape[-2], loc), loc, inverse)
        return by_x, *(slope.mT.sum_to_size(loc.mT.shape) for slope in slopes), None

    @staticmethod
    def vmap(info, dims, x, loc, scale, density):
        return _Fixed.apply(*_in_front(dims, x, loc, scale), density), (0, 0, 0)


def _dense(cdf: Tensor, height: int, width: int) -> Tensor:
    """Γ from F at the edges of both axes: (..., C, 2, E, K) → (..., C, H · W, K)."""
    mass = cdf.diff(dim=-2)
    gamma = mass[..., 1, :height, None, :] * mass[..., 0, None, :width, :]
    return gamma.flatten(-3, -2)


def fixed(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R(x) = Γx for two-dimensional densities that are the same for every input.

    Args:
        x: (..., N, C, H, W).
        loc, scale: (..., C or 1, K, 2).
    Returns:
        (..., N, C, K).
    """
    groups = (*loc.shape[:-3], x.shape[-3], *loc.shape[-2:])
    return _Fixed.apply(x, loc.expand(groups), scale.expand(groups), density)[0]


class _Fold(torch.autograd.Function):
    """K = Σ_i w_i Γ_i and its gradient, each as two matrix products and what surrounds them.

    Both axes are evaluated in one tensor, on as many edges as the longer one has.
    """

    @staticmethod
    def forward(weight, loc, scale, density, sizes):
        height, width = sizes
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()  # (..., C, 2, K)
        edges = _edges(max(sizes) + 1, loc)
        cdf, pdf = density.cdf_pdf(_standard(edges, loc, inverse))  # (..., C, 2, E, K)
        columns, rows = cdf[..., 0, : width + 1, :], cdf[..., 1, : height + 1, :]
        weighted = weight.movedim(-3, -2)[..., None, :] * columns[..., None, :, :]
        summed = weighted.flatten(-3, -2) @ rows.mT  # (..., C, O · (W + 1), H + 1)
        summed = summed.unflatten(-2, weighted.shape[-3:-1]).diff(dim=-1).diff(dim=-2)
        return summed.mT.movedim(-4, -3), cdf, pdf, weighted

    @staticmethod
    def setup_context(ctx, inputs, output):
        weight, loc, scale, density, sizes = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(weight, loc, scale, *output[1:])
        ctx.density, ctx.sizes = density, sizes

    @staticmethod
    def backward(ctx, grad, *unused):
        weight, loc, scale, cdf, pdf, weighted = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = (weight, loc, scale)
            return *_again("fold_plain", ctx, grad, inputs, ctx.density, ctx.sizes), None, None
        height, width = ctx.sizes
        columns, rows = cdf[..., 0, : width + 1, :], cdf[..., 1, : height + 1, :]
        # The second difference is its own transpose, padded.
        grad = jumps(grad).movedim(-3, -4).mT.flatten(-3, -2)  # (..., C, O · (W + 1), H + 1)
        by_weighted = (grad @ rows).view_as(weighted)
        by_cdf = torch.zeros_like(cdf)
        by_cdf[..., 1, : height + 1, :] = grad.mT @ weighted.flatten(-3, -2)
        by_weight = (by_weighted * columns[..., None, :, :]).sum(-2).movedim(-2, -3)
        by_weighted.mul_(weight.movedim(-3, -2)[..., None, :])
        by_cdf[..., 0, : width + 1, :] = by_weighted.sum(-3)
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()
        slopes = _slopes(by_cdf.mul_(pdf), _edges(cdf.shape[-2], loc), loc, inverse)
        by_loc, by_scale = (slope.mT.sum_to_size(loc.mT.shape) for slope in slopes)
        return by_weight.sum_to_size(weight.shape), by_loc, by_scale, None, None

    @staticmethod
    def vmap(info, dims, weight, loc, scale, density, sizes):
        return _Fold.apply(*_in_front(dims, weight, loc, scale), density, sizes), (0, 0, 0, 0)


def fold(
    weight: Tensor, loc: Tensor, scale: Tensor, density: Density, sizes: tuple[int, int]
) -> Tensor:
    """K_o = Σ_i w_oi Γ_i as pictures: (..., O, C, K), (..., C, K, 2) → (..., O, C, H, W)."""
    return _Fold.apply(weight, loc, scale, density, sizes)[0]


def _in_front(dims: tuple, *parts: Tensor) -> list[Tensor]:
    """Members: every tensor gets the mapped axis in front, and one call does them all."""
    return [
        part[None] if dim is None else part.movedim(dim, 0)
        for part, dim in zip(parts, dims, strict=False)
    ]


def _again(name: str, ctx, grad: Tensor, inputs: tuple[Tensor, ...], *others) -> list:
    """Gradients that can be differentiated again, for who asks: by the formulas, not by these."""
    from densembed import gamma

    # Aliases: one input may depend on another (locations on the picture), which is not meant here.
    inputs = [part.view_as(part) for part in inputs]
    value = getattr(gamma, name)(*inputs, *others)
    needed = ctx.needs_input_grad[: len(inputs)]
    wanted = [part for part, needs in zip(inputs, needed, strict=True) if needs]
    found = iter(torch.autograd.grad(value, wanted, grad, create_graph=True))
    return [next(found) if needs else None for needs in needed]
