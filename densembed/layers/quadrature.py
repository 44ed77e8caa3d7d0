"""Γ for densities that have no primitive: numerical integration (Section 2.1).

The fallback against which the closed form is measured. It evaluates the density at `order`
points a pixel on each axis, in every step, and keeps them for the gradient. The closed form
F(n) − F(n−1) evaluates the primitive once an edge, and is exact.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from densembed.functional.arguments import check_dtype


def legendre_rule(order: int) -> tuple[list[float], list[float]]:
    """Nodes and weights of the Gauss–Legendre rule on [0, 1], exact to degree 2·order − 1."""
    if order < 1:
        raise ValueError(f"Expected an order of at least 1; got {order}.")
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


# All that torch.compiler.assume_constant_result does, but for importing the compiler: that takes
# a second, at every start of everything.
legendre_rule._dynamo_marked_constant = True


def on_grid(pdf: Callable[..., Tensor], points: list[Tensor]) -> Tensor:
    """φ on the product of the points of each axis (rows, then columns).

    Calls pdf(t) or pdf(t, u), t along the last axis, u along the one before, broadcastable.

    Returns:
        (..., P) or (..., P_rows, P_columns). Raises ValueError if `pdf` returns another shape.
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
    order: int = 8,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Γ_in ≈ ∫_{n−1}^{n} φ_i(t) dt by a Gauss–Legendre rule on every pixel (Section 2.1).

    The error falls fast with the order where φ is smooth on the scale of a pixel. It stays
    large where φ is much narrower than the nodes lie apart, or jumps inside a pixel.

    Args:
        pdf: φ, called as pdf(t) with t (P,) for one axis, as pdf(t, u) with t (1, P_columns) and
            u (P_rows, 1) for two; it need not be separable. Returns (..., *points).
        sizes: length of each axis, (N,) or (H, W).
        order: nodes a pixel on each axis.
        dtype, device: of the nodes.
    Returns:
        (..., *sizes), differentiable in whatever `pdf` depends on.
    """
    nodes, weights = (
        torch.tensor(numbers, dtype=dtype, device=device) for numbers in legendre_rule(order)
    )
    points = [
        (torch.arange(size, dtype=nodes.dtype, device=device)[:, None] + nodes).flatten()
        for size in sizes
    ]
    gamma = on_grid(pdf, points)
    for size in reversed(sizes):  # each turn integrates the last axis left and puts it first
        gamma = gamma.unflatten(-1, (size, order)) @ weights.to(gamma.dtype)
        gamma = gamma.movedim(-1, -len(sizes))
    return gamma


class QuadratureEmbedding(nn.Module):
    """Receptive field action R(x) = Γx for any densities, Γ integrated numerically (Section 2.1).

    Args:
        pdf: a module or function as in `gamma_by_quadrature`; returns (C or 1, K, *points). The
            parameters of a module are learned with the layer's.
        sizes: length of each axis, (N,) or (H, W).
        in_channels: C.
        order: nodes a pixel on each axis; the cost is order^axes that of a midpoint rule.
    """

    def __init__(
        self,
        pdf: Callable[..., Tensor],
        sizes: tuple[int, ...],
        in_channels: int = 1,
        order: int = 8,
    ):
        super().__init__()
        self.sizes = tuple(int(size) for size in sizes)
        if len(self.sizes) not in (1, 2) or min(*self.sizes, in_channels, order) < 1:
            raise ValueError(
                "Expected one or two sizes, and sizes, in_channels and order of at least 1; "
                f"got {self.sizes}, {in_channels} and {order}."
            )
        self.pdf = pdf
        self.in_channels = in_channels
        self.order = order
        # Follows .to(), so that the nodes are made in the layer's dtype and on its device.
        self.register_buffer("origin", torch.zeros(()), persistent=False)

    def _check(self, phi: Tensor) -> Tensor:
        if phi.dim() != len(self.sizes) + 2 or phi.shape[0] not in (1, self.in_channels):
            raise ValueError(
                f"Expected densities of shape ({self.in_channels} or 1, K, *points) from the "
                f"pdf; got {tuple(phi.shape)}."
            )
        return phi

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ, (1, C or 1, K, *sizes). `x` is ignored."""
        gamma = gamma_by_quadrature(
            self.pdf, self.sizes, self.order, self.origin.dtype, self.origin.device
        )
        return self._check(gamma)[None]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, C, *sizes) → (batch, C, K)."""
        check_dtype(x, self.origin.dtype)
        expected = (self.in_channels, *self.sizes)
        if tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"Expected an input of shape (batch, {', '.join(map(str, expected))}); "
                f"got {tuple(x.shape)}."
            )
        gamma = self.gamma()[0].flatten(2).expand(self.in_channels, -1, -1)
        return torch.einsum("ncx,ckx->nck", x.flatten(2), gamma)

    def receptive_field(self, x: Tensor | None = None, resolution: int = 4) -> Tensor:
        """Densities per (square) pixel at the centres of `resolution` cells a pixel.

        Returns:
            (1, C or 1, K, *sizes · resolution); `x` is ignored.
        """
        points = [
            (torch.arange(size * resolution, dtype=self.origin.dtype, device=self.origin.device)
             + 0.5) / resolution
            for size in self.sizes
        ]  # fmt: skip
        return self._check(on_grid(self.pdf, points))[None]

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}, in_channels={self.in_channels}, order={self.order}"
