"""The action of two-dimensional densities and its adjoint by compiled kernels, on a CPU.

`see` and `spread` are each the other's derivative (`densembed.kernels.gamma`). The kernels are used
where `usable` holds; `densembed.functional.action` chooses.
"""

import sys
from collections.abc import Callable, Sequence
from inspect import signature
from math import prod
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

import densembed.kernels as kernels
from densembed.functional import formulas
from densembed.functional.densities import FAMILIES, Density
from densembed.kernels import threads

PRECISIONS = (torch.float32, torch.float64)


def usable(density: Density, *parts: Tensor) -> bool:
    """Whether the kernels apply: plain tensors on a CPU, and one of the package's families.

    They do not while torch traces, compiles, exports or differentiates forward. A process that has
    computed no gradient yet does not import Numba for a few predictions.
    """
    return (
        not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not is_in_torch_dispatch_mode()
        and forward_ad._current_level < 0  # `linearize` hides the tangents
        and all(part.device.type == "cpu" for part in parts)
        and parts[0].dtype == parts[1].dtype == parts[2].dtype
        and parts[0].dtype in PRECISIONS
        and density.name in kernels.FAMILIES
        and type(density) is type(FAMILIES.get(density.name))
        and not vars(density)  # nothing of it is replaced
        and getattr(density, "edge", kernels.EDGE) == kernels.EDGE
        and kernels.available()
        and (torch.is_grad_enabled() or "densembed.kernels.gamma" in sys.modules)
    )


def see(x: Tensor, loc: Tensor, scale: Tensor, density: Density) -> Tensor:
    """R(x) = Γx, (..., N, C, K).

    Args:
        x: (..., N, C, H, W).
        loc, scale: (..., N or 1, C or 1, K, 2).
    """
    return _See.apply(x, loc, scale, density, torch.is_grad_enabled())[0]


def spread(
    weight: Tensor, loc: Tensor, scale: Tensor, density: Density, sizes: tuple[int, int]
) -> Tensor:
    """Σ_k w_k Γ_k, (..., N, C, H, W): the adjoint of `see`.

    Args:
        weight: (..., N, C, K).
        loc, scale: (..., N or 1, C or 1, K, 2).
    """
    return _Spread.apply(weight, loc, scale, density, sizes)


class _See(Function):
    """R, with its diagonal Jacobian as a further output for the backward pass."""

    @staticmethod
    def forward(x, loc, scale, density, slopes):
        return _call_see(x, loc, scale, density, slopes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, loc, scale, ctx.density, _ = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)  # zeros in the shape of the slopes take time
        ctx.save_for_backward(x, loc, scale, output[1])

    @staticmethod
    def backward(ctx, grad, *unused):
        if grad is None:
            return (None,) * 5
        x, loc, scale, slopes = ctx.saved_tensors
        if formulas.differentiated(x, loc, scale, grad):
            inputs = x, loc, scale
            return (
                *formulas.double_backward(formulas.see_moving, ctx, grad, inputs, x.shape[-2:]),
                None,
                None,
            )
        by_x = None
        if ctx.needs_input_grad[0]:
            by_x = _call_spread(grad, loc, scale, ctx.density, x.shape[-2:]).sum_to_size(x.shape)
        return by_x, *_call_pull(grad, slopes, loc, scale), None, None

    @staticmethod
    def vmap(info, dims, x, loc, scale, density, slopes):
        return _See.apply(*formulas.in_front(dims, x, loc, scale), density, slopes), (0, 0)


class _Spread(Function):
    """Σ_k w_k Γ_k; its backward pass sees the gradient."""

    @staticmethod
    def forward(weight, loc, scale, density, sizes):
        return _call_spread(weight, loc, scale, density, sizes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        weight, loc, scale, ctx.density, ctx.sizes = inputs
        ctx.save_for_backward(weight, loc, scale)

    @staticmethod
    def backward(ctx, grad):
        weight, loc, scale = ctx.saved_tensors
        if formulas.differentiated(weight, loc, scale, grad):
            inputs = weight, loc, scale
            return (
                *formulas.double_backward(formulas.spread_each, ctx, grad, inputs, ctx.sizes),
                None,
                None,
            )
        by_weight, slopes = _call_see(grad, loc, scale, ctx.density, True)
        by_weight = by_weight.sum_to_size(weight.shape)
        return by_weight, *_call_pull(weight, slopes, loc, scale), None, None

    @staticmethod
    def vmap(info, dims, weight, loc, scale, density, sizes):
        return _Spread.apply(*formulas.in_front(dims, weight, loc, scale), density, sizes), 0


for _function in (_See, _Spread):  # torch asks for it at every call, and inspecting takes long
    cast(Any, _function.forward).__signature__ = signature(_function.forward)


def _call_see(
    x: Tensor, loc: Tensor, scale: Tensor, density: Density, with_slopes: bool
) -> tuple[Tensor, Tensor]:
    """R, (..., N, C, K), and ∂R/∂μ along both axes and ∂R/∂s, (..., N, C, 4, K), or empty."""
    densities, (height, width) = loc.shape[-2], x.shape[-2:]
    lead = _broadcast(x, loc, scale, densities)
    value = x.new_empty(*lead, densities)
    slopes = x.new_empty(*lead, 4 if with_slopes else 0, densities)
    arrays = [_array(part, 4, lead) for part in (x, loc, scale)]
    arrays += [_array(value, 3, lead), _array(slopes, 4, lead)]
    cost = densities * (height * width // 32 * (1 + with_slopes) + _placing(x, loc, scale))
    _in_threads(kernels.gamma.see, cost, prod(lead), density, *arrays)
    return value, slopes


def _call_spread(
    weight: Tensor, loc: Tensor, scale: Tensor, density: Density, sizes: tuple[int, int]
) -> Tensor:
    """Σ_k w_k Γ_k, (..., N, C, H, W)."""
    lead = _broadcast(weight[..., None], loc, scale, weight.shape[-1])
    image = weight.new_empty(*lead, *sizes)
    arrays = [_array(weight, 3, lead), *(_array(part, 4, lead) for part in (loc, scale, image))]
    cost = loc.shape[-2] * (sizes[0] * sizes[1] // 16 + _placing(image, loc, scale))
    _in_threads(kernels.gamma.spread, cost, prod(lead), density, *arrays)
    return image


def _call_pull(grad: Tensor, slopes: Tensor, loc: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by locations and scales, summed over what the densities share."""
    lead = slopes.shape[:-2]
    members = prod(lead[:-2])
    by_loc, by_scale = (
        part.new_empty(members if part.dim() > 5 else prod(part.shape[:-4]), *part.shape[-4:])
        for part in (loc, scale)
    )
    arrays = _array(grad, 3, lead), _array(slopes, 4, lead), by_loc.numpy(), by_scale.numpy()
    kernels.gamma.pull(*arrays)
    return _unflattened(by_loc, loc, lead), _unflattened(by_scale, scale, lead)


def _unflattened(total: Tensor, like: Tensor, lead: Sequence[int]) -> Tensor:
    if like.dim() <= 5:
        return total.view(like.shape)
    return total.view(*lead[: like.dim() - 4], *like.shape[-4:]).sum_to_size(like.shape)


def _broadcast(signal: Tensor, loc: Tensor, scale: Tensor, densities: int) -> tuple[int, ...]:
    """Shape of (..., N, C) for parts (..., N or 1, C or 1, ·, ·), the signal with all C.

    Raises ValueError for other shapes: the kernels do not check the bounds of arrays.
    """
    fit = loc.shape[-2:] == scale.shape[-2:] == (densities, 2)
    if fit and signal.dim() == loc.dim() == scale.dim():
        lead = []
        for n, by_loc, by_scale in zip(signal.shape[:-2], loc.shape, scale.shape, strict=False):
            size = n if n != 1 else by_loc if by_loc != 1 else by_scale
            fit &= by_loc in (1, size) and by_scale in (1, size)
            lead.append(size)
        if fit and signal.shape[-3] == lead[-1]:
            return tuple(lead)
    expected = ", ".join(str(n) if n == 1 else f"{n} or 1" for n in signal.shape[:-2])
    raise ValueError(
        f"Expected locations and scales of shape ({expected}, {densities}, 2); got "
        f"{tuple(loc.shape)} and {tuple(scale.shape)}."
    )


def _array(part: Tensor, axes: int, lead: Sequence[int]) -> Any:
    """A tensor (..., N, C, …) as an array with one axis of members, perhaps of length 1."""
    part = part.detach()
    if part.dim() > axes + 1:  # nested vmap
        members = lead[: part.dim() - axes]
        rest = part.shape[-axes:]
        part = part.expand(*members, *rest).reshape(prod(members), *rest)
    array = part.contiguous().resolve_neg().numpy()
    return array if array.ndim > axes else array[None]


def _placing(signal: Tensor, *placed: Tensor) -> int:
    """Estimated nanoseconds per density and input for F and f at the edges."""
    moving = any(part.shape[-4] > 1 for part in placed)
    return signal.shape[-1] + signal.shape[-2] if moving else 0


def _in_threads(code: Callable, cost: int, pieces: int, density: Density, *arrays: Any) -> None:
    """Call a kernel for all pieces; `cost` is the estimated time of one in nanoseconds."""
    family = kernels.FAMILIES.index(density.name)

    def run(first: int, end: int) -> None:
        code(family, *arrays, first, end)

    threads.share(pieces, cost * pieces, torch.get_num_threads(), run)
