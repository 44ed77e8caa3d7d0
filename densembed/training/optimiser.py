"""Adam with a one-cycle schedule, on one flat vector of parameters per member.

torch has both, but as Python code that runs between steps. Here an update is a few tensor
operations that can be compiled with the rest of the step: the position in the schedule is a tensor,
too, and each parameter of each member may have its own rate. In float64, the result equals
`torch.optim.Adam` with `OneCycleLR` up to rounding.
"""

import math

import torch
from torch import Tensor

import densembed.kernels as kernels

EPS = 1e-8
BETA2 = 0.999
WARM_UP = 0.3
"""Fraction of the steps before the maximum (torch's `pct_start`)."""
START_DIVISOR, END_DIVISOR = 25.0, 1e4
MOMENTUM = (0.85, 0.95)
"""β₁ falls from the upper to the lower value while the rate rises, and back (torch's default)."""


def one_cycle(total: int) -> tuple[list[float], list[float]]:
    """Rates as fractions of the maximum, and β₁, for each of `total` steps: two half cosines.

    A single step has the maximum rate, as the last rate of a cycle is almost 0.
    """
    if total == 1:
        return [1.0], [MOMENTUM[0]]
    top = WARM_UP * total - 1
    low, high = MOMENTUM
    rates, momenta = [], []
    for step in range(total):
        if step <= top:
            share = step / top if top else 1.0
            rate = (1 / START_DIVISOR, 1.0)
            momentum = (high, low)
        else:
            share = (step - top) / (total - 1 - top)
            rate = (1.0, 1 / START_DIVISOR / END_DIVISOR)
            momentum = (low, high)
        rates.append(_cosine(*rate, share))
        momenta.append(_cosine(*momentum, share))
    return rates, momenta


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


class Adam:
    """Adam's moments and schedule for a parameter tensor (members, P).

    Args:
        parameters: the tensor that steps change in place.
        rate: maximum learning rate, (members, 1) or (members, P).
        total: number of steps of the schedule.
        decay: decoupled weight decay of each parameter, of the shape of `rate`, or None.
    """

    def __init__(self, parameters: Tensor, rate: Tensor, total: int, decay: Tensor | None = None):
        self.parameters = parameters
        self.by_kernel = parameters.device.type == "cpu" and kernels.available()
        self.first = torch.zeros_like(parameters)
        self.second = torch.zeros_like(parameters)
        self.rate = rate.expand_as(parameters).contiguous()
        self.decay = None if decay is None else decay.expand_as(parameters).contiguous()
        shares, momenta = one_cycle(total)
        rows = [
            (beta1, 1 / (1 - beta1 ** (step + 1)), (1 - BETA2 ** (step + 1)) ** -0.5, share)
            for step, (share, beta1) in enumerate(zip(shares, momenta, strict=True))
        ]
        self.shares = shares
        self.table = torch.tensor(rows, dtype=parameters.dtype, device=parameters.device)

    def update(self, gradient: Tensor, row: Tensor) -> None:
        """Update in place. `row` is the step's row of `table`: β₁, corrections of m and v, rate."""
        if self.by_kernel and not torch.compiler.is_compiling():
            self._update_by_kernel(gradient, row)
            return
        beta1, bias, correction, share = row.unbind()
        self.first.lerp_(gradient, 1 - beta1)
        self.second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = self.second.sqrt().mul_(correction).add_(EPS)
        rate = self.rate * share
        if self.decay is not None:
            self.parameters.sub_(self.parameters * (rate * self.decay))
        self.parameters.sub_((self.first * rate).mul_(bias).div_(denominator))

    def _update_by_kernel(self, gradient: Tensor, row: Tensor) -> None:
        decay = torch.zeros_like(self.rate) if self.decay is None else self.decay
        arrays = self.parameters, gradient.contiguous(), self.first, self.second, self.rate, decay
        kernels.steps.adam(*(array.detach().numpy() for array in arrays), row.numpy(), BETA2, EPS)
