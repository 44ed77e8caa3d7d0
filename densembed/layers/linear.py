"""The fully connected layer as a density-embedding layer (Section 3.1)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from densembed.functional.arguments import check_input, check_source, per_axis, take_weights
from densembed.functional.uniform import indicator, overlap


class DensityLinear(nn.Linear):
    """y = wᵀ Γ x + b with uniform densities on the pixels themselves (Section 3.1).

    Each density Δ(t; [i−1, i]) covers one element, so Γ is the identity and the layer computes what
    its base class `nn.Linear` does. It adds `gamma` and `receptive_field`.

    Args:
        in_features, out_features: N and the number of neurons, at least 1.
        bias: add b.

    >>> layer = DensityLinear(6, 2)
    >>> layer(torch.rand(4, 6)).shape
    torch.Size([4, 2])
    >>> bool((layer.gamma() == torch.eye(6)).all())
    True
    """

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True):
        (inputs,) = per_axis(in_features, 1, "in_features", 1)
        (outputs,) = per_axis(out_features, 1, "out_features", 1)
        super().__init__(inputs, outputs, bias)

    @classmethod
    def from_torch(cls, module: nn.Linear) -> "DensityLinear":
        """The same map with a copy of the weights, on the same device, in the same dtype.

        Raises ValueError for a module that computes another map: a subclass with its own forward,
        or one with forward hooks.
        """
        check_source(module, nn.Linear)
        layer = cls(module.in_features, module.out_features, bias=module.bias is not None)
        take_weights(layer, module)
        return layer

    def _ends(self) -> tuple[Tensor, Tensor]:
        weight = self.weight
        lower = torch.arange(self.in_features, dtype=torch.float32, device=weight.device)
        return lower, lower + 1

    def forward(self, x: Tensor) -> Tensor:
        """(..., N) → (..., out_features)."""
        check_input(x, self.weight)
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise ValueError(
                f"Expected an input of shape (..., {self.in_features}); got {tuple(x.shape)}."
            )
        return F.linear(x, self.weight, self.bias)

    def gamma(self, x: Tensor | None = None) -> Tensor:
        """Γ, (N, N): the overlaps of the densities with the pixels. `x` is ignored."""
        lower, upper = self._ends()
        return overlap(lower, upper, lower).to(self.weight.dtype)

    def receptive_field(self, x: Tensor | None = None, *, resolution: int = 4) -> Tensor:
        """Densities per pixel at the centres of `resolution` cells per pixel.

        Returns:
            (1, 1, N, N · resolution), zeros and ones; `x` is ignored.
        """
        lower, upper = self._ends()
        field = indicator(lower, upper, self.in_features, resolution)
        return field[None, None].to(self.weight.dtype)
