"""The formulas of the action from one factor of Γ per axis, and gradients by differentiating them.

`fused` and `native` compute values and first gradients in other ways. Their double-backward
gradients are those of the formulas here.

Args of a formula:
    x, weight: the signal or the weights of the densities, in which it is linear.
    rows, columns: Γ along each axis, (..., K, H) and (..., K, W), from `factors`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from densembed.functional.densities import Density
from densembed.functional.gamma import interval_mass, refuse_batched


def see_moving(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Γx for densities of each input: (..., H, W) → (..., K)."""
    return ((rows @ x) * columns).sum(-1)


def see_fixed(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Γx for the same densities for every input: (..., N, C, H, W) → (..., N, C, K)."""
    dense = (rows[..., :, None] * columns[..., None, :]).flatten(-2)
    return torch.einsum("...ncx,...ckx->...nck", x.flatten(-2), dense)


def spread(weight: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Σ_k w_ok Γ_k for each output: (..., O, C, K) → (..., O, C, H, W)."""
    return torch.einsum("...ock,...ckh,...ckw->...ochw", weight, rows, columns)


def spread_each(weight: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Σ_k w_k Γ_k with densities of each input: (..., K) → (..., H, W)."""
    return torch.einsum("...k,...kh,...kw->...hw", weight, rows, columns)


def edges_by_axis(loc: Tensor, sizes: tuple[int, int]) -> Iterator[tuple[int, Tensor]]:
    """Index and edges of the rows, then of the columns."""
    for index, size in ((1, sizes[0]), (0, sizes[1])):
        yield index, torch.arange(size + 1, dtype=loc.dtype, device=loc.device)


def differentiated(*parts: Tensor) -> bool:
    """Whether the gradient is itself differentiated, in reverse or forward mode.

    Raises RuntimeError if it is batched by `torch.autograd`.
    """
    for part in parts:
        refuse_batched(part)
    if torch.is_grad_enabled():
        return True
    return not torch.compiler.is_compiling() and any(
        unpack_dual(part).tangent is not None for part in parts
    )


def double_backward(
    formula: Callable[[Tensor, Tensor, Tensor], Tensor],
    ctx: Any,
    grad: Tensor,
    inputs: tuple[Tensor, Tensor, Tensor],
    sizes: tuple[int, int],
) -> list[Tensor | None]:
    """Gradients of a formula that can be differentiated again, None where they are not needed.

    Args:
        ctx: of the function, with its `density`.
        inputs: signal or weights, locations and scales.
    """
    needed = ctx.needs_input_grad[: len(inputs)]

    def value(*wanted: Tensor) -> Tensor:
        replacements = iter(wanted)
        signal, loc, scale = (
            next(replacements) if needs else part
            for part, needs in zip(inputs, needed, strict=True)
        )
        return formula(signal, *factors(ctx.density, loc, scale, sizes))

    wanted = [part for part, needs in zip(inputs, needed, strict=True) if needs]
    pull: Callable[[Tensor], tuple[Tensor, ...]] = torch.func.vjp(value, *wanted)[1]
    gradients = iter(pull(grad))
    return [next(gradients) if needs else None for needs in needed]


def factors(density: Density, loc: Tensor, scale: Tensor, sizes: tuple[int, int]) -> list[Tensor]:
    """Γ along the rows and along the columns, (..., K, size) each."""
    return [
        interval_mass(density, loc[..., k], scale[..., k], edges)
        for k, edges in edges_by_axis(loc, sizes)
    ]


def in_front(dims: tuple, *parts: Tensor) -> list[Tensor]:
    """Moves the axis that vmap maps over to the front, so that one call handles all members."""
    return [
        part[None] if dim is None else part.movedim(dim, 0)
        for part, dim in zip(parts, dims, strict=False)
    ]
