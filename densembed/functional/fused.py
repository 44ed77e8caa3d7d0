"""Γ and its action in few passes over memory: the fast paths behind `densembed.functional.gamma`.

They use three facts:

1. Summation by parts. Σ_n (F(n) − F(n−1)) x_n = Σ_e F(e) (x_e − x_{e+1}) with x_0 = x_{N+1} = 0.
   So R = F_rowᵀ X″ F_col with X″ the second difference of the padded image: Γ is never
   differenced, and F and f are evaluated once per edge.
2. Diagonal Jacobian. R_k depends on the location and scale of density k alone, so the forward
   pass can return ∂R/∂μ and ∂R/∂s with R, and nothing of size batch · K · N is kept.
3. Folding. A linear map after fixed densities equals one image per output,
   K_o = Σ_i w_oi Γ_i, whose size does not depend on the number of densities.

They are exact up to rounding, with absolute accuracy, because F near 1 is rounded relative to 1.
`gamma.gamma` has relative accuracy.
"""

from collections.abc import Callable
from itertools import repeat

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from densembed.functional import formulas
from densembed.functional.densities import Density
from densembed.functional.gamma import differentiable, in_forward_mode, mass_tangent


def jumps(x: Tensor) -> Tensor:
    """Second difference of images, padded by zeros: (..., H, W) → (..., H + 1, W + 1)."""
    return torch.nn.functional.pad(x, (1, 1, 1, 1)).diff(dim=-1).diff(dim=-2)


def _edges(size: int, like: Tensor) -> Tensor:
    """The edges as a column, so that the densities are on the contiguous axis."""
    return torch.arange(size, dtype=like.dtype, device=like.device)[:, None]


def _standard(edges: Tensor, loc: Tensor, inverse: Tensor) -> Tensor:
    """z = (t − μ)/s: (..., K) → (..., E, K). A difference of t/s and μ/s would lose digits."""
    return (edges - loc[..., None, :]) * inverse[..., None, :]


def moving_value(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R for densities of each input, without gradients. Shapes as in `moving`."""
    jump, inverse = jumps(x), scale.reciprocal()
    rows, columns = (
        density.cdf(_standard(_edges(jump.shape[axis], loc), loc[..., k], inverse[..., k]))
        for k, axis in ((1, -2), (0, -1))
    )
    return _multiplied(jump @ columns, rows).sum(-2)


def _multiplied(product: Tensor, factor: Tensor) -> Tensor:
    """product · factor in the memory of the product, as new memory costs page faults.

    While a mode such as that of `torch.func.linearize` records the operations, it is a new tensor:
    a recorded change in place would be repeated with each call.
    """
    if not torch.compiler.is_compiling() and is_in_torch_dispatch_mode():
        return product * factor
    return product.mul_(factor)


CHUNK_CELLS = 3 * 2**18
"""Values of F computed at once on a CPU, so that all intermediate results fit into the cache."""


class _Moving(torch.autograd.Function):
    """R, with its diagonal Jacobian as two more outputs for the backward pass."""

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
        if formulas.differentiated(x, loc, scale, grad):
            inputs = x, loc, scale
            return *formulas.double_backward(
                formulas.see_moving, ctx, grad, inputs, x.shape[-2:]
            ), None
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
        return differentiable(
            _Moving, _ForwardMoving, *formulas.in_front(dims, x, loc, scale), density
        ), (
            0,
            0,
            0,
        )


def _with_slopes(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density
) -> tuple[Tensor, Tensor, Tensor]:
    """R, ∂R/∂μ and ∂R/∂s: (..., C, K), (..., C, K, 2), (..., C, K, 2)."""
    jump, inverse = jumps(x), scale.reciprocal()
    along, down = (_edges(jump.shape[axis], loc) for axis in (-1, -2))
    columns, pdf_columns = density.cdf_pdf(_standard(along, loc[..., 0], inverse[..., 0]))
    rows, pdf_rows = density.cdf_pdf(_standard(down, loc[..., 1], inverse[..., 1]))
    by_rows = jump.mT @ rows
    sums = (
        _sums(_multiplied(pdf_columns, by_rows), along),
        _sums(_multiplied(pdf_rows, jump @ columns), down),
    )
    total, moment = (torch.stack(parts, -1) for parts in zip(*sums, strict=True))
    by_loc, by_scale = _slopes(total, moment, loc, inverse)
    return _multiplied(by_rows, columns).sum(-2), by_loc, by_scale


def _sums(weighted: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_e y_e f(z_e) and Σ_e y_e f(z_e) e; overwrites y · f."""
    return weighted.sum(-2), _multiplied(weighted, edges).sum(-2)


def _slopes(total: Tensor, moment: Tensor, loc: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """∂R/∂μ = −Σ_e y_e f(z_e) / s and ∂R/∂s = −Σ_e y_e f(z_e) z_e / s from the sums.

    The second is Σ_e y_e f(z_e) (e − μ), a difference of the sums, whose rounding error divided by
    s² would dominate for a narrow density. For those, of a scale below 2⁻¹⁰ pixels, e − μ is that
    of the nearest edge, unless the other edges contribute more than the rounding error.
    """
    by_loc = total * -inverse
    spread = torch.addcmul(moment, loc, total, value=-1)
    nearest = loc.round()
    beyond = torch.addcmul(moment, nearest, total, value=-1).abs()
    # Not a constant of the module, which torch.compile with dynamic=True takes for a variable.
    narrow = inverse > 2**10
    lost = narrow & (beyond <= moment.abs() * (8 * torch.finfo(loc.dtype).eps))
    spread = torch.where(lost, (nearest - loc) * total, spread)
    return by_loc, spread * (-inverse * inverse)


def moving(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R(x) = Γ(x) x for two-dimensional densities that differ from input to input.

    Args:
        x: (..., C, H, W).
        loc: (..., C or 1, K, 2); scale: the same or with axes of length 1 in front.
    Returns:
        (..., C, K).
    """
    # Under vmap, tensors do not know whether they need gradients; exported code adds its own.
    exporting = torch.compiler.is_exporting() or torch.jit.is_tracing()
    if not torch.is_grad_enabled() or exporting:
        return moving_value(x, loc, scale, density)
    loc = loc.expand(*loc.shape[:-3], x.shape[-3], *loc.shape[-2:])
    return differentiable(_Moving, _ForwardMoving, x, loc, scale, density)[0]


class _Fixed(torch.autograd.Function):
    """R of the same densities for every input and its gradient, one matrix product each.

    Both axes are evaluated in one tensor, on the edges of the longer one.
    """

    @staticmethod
    def forward(x, loc, scale, density):
        height, width = x.shape[-2:]
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()  # (..., C, 2, K)
        cdf, pdf = density.cdf_pdf(_standard(_edges(max(height, width) + 1, loc), loc, inverse))
        action = x.flatten(-2).transpose(-3, -2) @ _dense(cdf, height, width)  # (..., C, N, K)
        return action.transpose(-3, -2), cdf, pdf

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, loc, scale, density = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, loc, scale, *output[1:])
        ctx.density = density

    @staticmethod
    def backward(ctx, grad, *unused):
        x, loc, scale, cdf, pdf = ctx.saved_tensors
        if formulas.differentiated(x, loc, scale, grad):
            inputs = x, loc, scale
            return *formulas.double_backward(
                formulas.see_fixed, ctx, grad, inputs, x.shape[-2:]
            ), None
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
        slopes = _slopes(*_sums(by_cdf.mul_(pdf), _edges(cdf.shape[-2], loc)), loc, inverse)
        return by_x, *(slope.mT.sum_to_size(loc.mT.shape) for slope in slopes), None

    @staticmethod
    def vmap(info, dims, x, loc, scale, density):
        return differentiable(
            _Fixed, _ForwardFixed, *formulas.in_front(dims, x, loc, scale), density
        ), (
            0,
            0,
            0,
        )


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
    return differentiable(
        _Fixed, _ForwardFixed, x, loc.expand(groups), scale.expand(groups), density
    )[0]


class _Fold(torch.autograd.Function):
    """K = Σ_i w_i Γ_i and its gradient, by two matrix products each.

    Both axes are evaluated in one tensor, on the edges of the longer one. F is differenced before
    the sum over the densities: their weights are large and cancel, and so would the rounding
    errors of the sum.
    """

    @staticmethod
    def forward(weight, loc, scale, density, sizes):
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()  # (..., C, 2, K)
        edges = _edges(max(sizes) + 1, loc)
        cdf, pdf = density.cdf_pdf(_standard(edges, loc, inverse))
        mass = cdf.diff(dim=-2)  # (..., C, 2, E − 1, K)
        columns, rows = _of_sizes(mass, sizes)
        weighted = weight.movedim(-3, -2)[..., None, :] * columns[..., None, :, :]
        summed = weighted.flatten(-3, -2) @ rows.mT  # (..., C, O · W, H)
        summed = summed.unflatten(-2, weighted.shape[-3:-1])
        # A copy, as torch's forward mode fails for an output that is a view of a view.
        return summed.mT.movedim(-4, -3).clone(), mass, pdf, weighted

    @staticmethod
    def setup_context(ctx, inputs, output):
        weight, loc, scale, density, sizes = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(weight, loc, scale, *output[1:])
        ctx.density, ctx.sizes = density, sizes

    @staticmethod
    def backward(ctx, grad, *unused):
        weight, loc, scale, mass, pdf, weighted = ctx.saved_tensors
        if formulas.differentiated(weight, loc, scale, grad):
            inputs = weight, loc, scale
            gradients = formulas.double_backward(formulas.spread, ctx, grad, inputs, ctx.sizes)
            return *gradients, None, None
        columns, rows = _of_sizes(mass, ctx.sizes)
        grad = grad.movedim(-3, -4).mT.flatten(-3, -2)  # (..., C, O · W, H)
        by_weighted = (grad @ rows).view_as(weighted)
        by_mass = torch.zeros_like(mass)
        by_columns, by_rows = _of_sizes(by_mass, ctx.sizes)
        by_rows[:] = grad.mT @ weighted.flatten(-3, -2)
        by_weight = (by_weighted * columns[..., None, :, :]).sum(-2).movedim(-2, -3)
        by_columns[:] = by_weighted.mul_(weight.movedim(-3, -2)[..., None, :]).sum(-3)
        by_cdf = -torch.nn.functional.pad(by_mass, (0, 0, 1, 1)).diff(dim=-2)
        loc, inverse = loc.mT.contiguous(), scale.mT.contiguous().reciprocal()
        slopes = _slopes(*_sums(by_cdf.mul_(pdf), _edges(pdf.shape[-2], loc)), loc, inverse)
        by_loc, by_scale = (slope.mT.sum_to_size(loc.mT.shape) for slope in slopes)
        return by_weight.sum_to_size(weight.shape), by_loc, by_scale, None, None

    @staticmethod
    def vmap(info, dims, weight, loc, scale, density, sizes):
        return differentiable(
            _Fold, _ForwardFold, *formulas.in_front(dims, weight, loc, scale), density, sizes
        ), (0, 0, 0, 0)


def _of_sizes(by_axis: Tensor, sizes: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Views of the parts of the columns and of the rows: (..., 2, E − 1, K) → (..., size, K)."""
    height, width = sizes
    return by_axis[..., 0, :width, :], by_axis[..., 1, :height, :]


def fold(
    weight: Tensor, loc: Tensor, scale: Tensor, density: Density, sizes: tuple[int, int]
) -> Tensor:
    """K_o = Σ_i w_oi Γ_i as images: (..., O, C, K), (..., C, K, 2) → (..., O, C, H, W)."""
    return differentiable(_Fold, _ForwardFold, weight, loc, scale, density, sizes)[0]


def _tangent(see: Callable, ctx, tangents: tuple[Tensor, ...], sizes: tuple[int, int]) -> Tensor:
    """Directional derivative of `see`, which is linear in the signal and in each factor."""
    with in_forward_mode(*ctx.saved_tensors, *tangents) as parts:
        signal, loc, scale, along_signal, along_loc, along_scale = parts
        rows, columns = formulas.factors(ctx.density, loc, scale, sizes)
        by_rows, by_columns = (
            mass_tangent(
                ctx.density,
                loc[..., k],
                scale[..., k],
                edges,
                along_loc[..., k],
                along_scale[..., k],
            )
            for k, edges in formulas.edges_by_axis(loc, sizes)
        )
        return (
            see(along_signal, rows, columns)
            + see(signal, by_rows, columns)
            + see(signal, rows, by_columns)
        )


class _ForwardMoving(_Moving):
    @staticmethod
    def setup_context(ctx, inputs, output):
        _Moving.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx, *tangents):
        sizes = ctx.saved_tensors[0].shape[-2:]
        return _tangent(formulas.see_moving, ctx, tangents[:3], sizes), None, None


class _ForwardFixed(_Fixed):
    @staticmethod
    def setup_context(ctx, inputs, output):
        _Fixed.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx, *tangents):
        sizes = ctx.saved_tensors[0].shape[-2:]
        return _tangent(formulas.see_fixed, ctx, tangents[:3], sizes), None, None


class _ForwardFold(_Fold):
    @staticmethod
    def setup_context(ctx, inputs, output):
        _Fold.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx, *tangents):
        return _tangent(formulas.spread, ctx, tangents[:3], ctx.sizes), None, None, None
