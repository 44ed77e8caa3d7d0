"""Γ for densities without a closed-form primitive, by numerical integration (Section 2.1).

It is also the baseline for the closed form. In every step it evaluates the density at `order`
points per pixel on each axis and stores them for the gradient. The closed form F(n) − F(n−1)
evaluates the primitive once per edge and is exact.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from densembed.functional.arguments import axis_sizes, check_input, per_axis, widened
from densembed.functional.uniform import cell_centres


def legendre_rule(order: int) -> tuple[list[float], list[float]]:
    """Nodes and weights of the Gauss–Legendre rule on [0, 1], exact to degree 2·order − 1."""
    if order < 1:
        raise ValueError(f"Expected an order of at least 1; got {order}.")
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


# The effect of torch.compiler.assume_constant_result, without its import of the compiler, which
# would add a second to every start.
legendre_rule._dynamo_marked_constant = True  # type: ignore[attr-defined]


def on_grid(pdf: Callable[..., Tensor], points: list[Tensor]) -> Tensor:
    """φ on the product of the points of each axis (rows, then columns).

    Calls pdf(t) or pdf(t, u) with broadcastable tensors, t along the last axis and u along the one
    before it.

    Returns:
        (..., P) or (..., P_rows, P_columns). Raises ValueError if `pdf` returns any other shape.
    """
    arguments = points if len(points) == 1 else [points[1][None, :], points[0][:, None]]
    phi = pdf(*arguments)
    grid = tuple(len(axis) for axis in points)
    if tuple(phi.shape[-len(grid) :]) != grid:
        raise ValueError(
            f"Expected densities of shape (..., {', '.join(map(str, grid))}) from the pdf; "
            f"got {tuple(phi.shape)}."
        )
    return phi


def gamma_by_quadrature(
    pdf: Callable[..., Tensor],
    sizes: tuple[int, ...],
    *,
    order: int = 8,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Γ_in ≈ ∫_{n−1}^{n} φ_i(t) dt by a Gauss–Legendre rule on every pixel (Section 2.1).

    The error decreases fast with the order if φ is smooth on the scale of a pixel. It stays large
    if φ is much narrower than the distance of the nodes or has a jump inside a pixel.

    Args:
        pdf: φ, called as pdf(t) with t of shape (P,) for one axis, or as pdf(t, u) with t of shape
            (1, P_columns) and u of shape (P_rows, 1) for two. It returns (..., *points) and need
            not be separable.
        sizes: length of each axis, (N,) or (H, W).
        order: nodes per pixel on each axis.
        dtype, device: of the nodes.
    Returns:
        (..., *sizes), differentiable with respect to all tensors that `pdf` uses.

    >>> masses = gamma_by_quadrature(lambda t: torch.exp(-t), (3,))
    >>> [round(mass, 4) for mass in masses.tolist()]
    [0.6321, 0.2325, 0.0855]
    """
    nodes, weights = (
        torch.tensor(numbers, dtype=dtype, device=device) for numbers in legendre_rule(order)
    )
    points = [
        (torch.arange(size, dtype=nodes.dtype, device=device)[:, None] + nodes).flatten()
        for size in sizes
    ]
    gamma = on_grid(pdf, points)
    for size in reversed(sizes):  # integrates the last remaining axis and moves it first
        # Autocast would round a product of matrices.
        gamma = (gamma.unflatten(-1, (size, order)) * weights.to(gamma.dtype)).sum(-1)
        gamma = gamma.movedim(-1, -len(sizes))
    return gamma


class QuadratureEmbedding(nn.Module):
    """Receptive field action R(x) = Γx for any densities, with numerical Γ (Section 2.1).

    Args:
        pdf: a module or function as in `gamma_by_quadrature` that returns (C or 1, K, *points).
            The parameters of a module become parameters of the layer.
        sizes: length of each axis, (N,) or (H, W).
        in_channels: number of channels C.
        order: nodes per pixel on each axis; the cost is order^axes times that of a midpoint rule.

    >>> def pdf(t):
    ...     return torch.exp(-((t - 2) ** 2)).expand(1, 1, -1)
    >>> QuadratureEmbedding(pdf, (5,))(torch.rand(4, 1, 5)).shape
    torch.Size([4, 1, 1])
    """

    _origin: Tensor

    def __init__(
        self,
        pdf: Callable[..., Tensor],
        sizes: int | Sequence[int],
        in_channels: int = 1,
        *,
        order: int = 8,
    ):
        super().__init__()
        self.sizes = axis_sizes(sizes)
        (self.in_channels,) = per_axis(in_channels, 1, "in_channels", 1)
        (self.order,) = per_axis(order, 1, "order", 1)
        self.pdf = pdf
        # A buffer, because .to() then sets the dtype and device of the nodes of a function.
        self.register_buffer("_origin", torch.zeros(()), persistent=False)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        if self._origin.is_meta:  # other layers may have left the device meta with assign=True
            self._origin = torch.zeros((), dtype=self._origin.dtype)

    @property
    def origin(self) -> Tensor:
        """A tensor with the dtype and device of the layer: those of the density, if it has any."""
        own = self.pdf if isinstance(self.pdf, nn.Module) else None
        tensors = chain(own.parameters(), own.buffers()) if own else iter(())
        return next((one for one in tensors if one.is_floating_point()), self._origin)

    def _check(self, phi: Tensor) -> Tensor:
        if phi.dim() != len(self.sizes) + 2 or phi.shape[0] not in (1, self.in_channels):
            raise ValueError(
                f"Expected densities of shape ({self.in_channels} or 1, K, *points) from the "
                f"pdf; got {tuple(phi.shape)}."
            )
        return phi

    def _wide(self) -> tuple[Callable[..., Tensor], Tensor]:
        """The density and its origin in at least float32, in which nodes have distinct places."""
        pdf, origin = self.pdf, widened(self.origin)
        if origin is self.origin or not isinstance(pdf, nn.Module):
            return pdf, origin
        tensors = chain(pdf.named_parameters(), pdf.named_buffers())
        wide = {name: widened(part) for name, part in tensors if part.is_floating_point()}
        return lambda *points: functional_call(pdf, wide, points), origin

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ, (1, C or 1, K, *sizes), in at least float32. `x` is ignored."""
        pdf, like = self._wide()
        gamma = gamma_by_quadrature(
            pdf, self.sizes, order=self.order, dtype=like.dtype, device=like.device
        )
        return self._check(gamma)[None]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, C, *sizes) → (batch, C, K), in the dtype of x."""
        check_input(x, self.origin)
        expected = (self.in_channels, *self.sizes)
        if tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"Expected an input of shape (batch, {', '.join(map(str, expected))}); "
                f"got {tuple(x.shape)}."
            )
        gamma = widened(self.gamma()[0]).flatten(2).expand(self.in_channels, -1, -1)
        return torch.einsum("ncx,ckx->nck", widened(x).flatten(2), gamma).to(x.dtype)

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities per (square) pixel at the centres of `resolution` cells per pixel.

        Returns:
            (1, C or 1, K, *sizes · resolution); `x` is ignored.
        """
        pdf, like = self._wide()
        points = [cell_centres(size, resolution, like) for size in self.sizes]
        return self._check(on_grid(pdf, points))[None]

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}, in_channels={self.in_channels}, order={self.order}"
