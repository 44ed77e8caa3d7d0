"""One optimisation step of several members of the same shape at once.

All parameters of all members are one tensor (members, P), so the optimiser's work does not
depend on how many layers there are, and the whole step (forward, backward, update) is one
function that `torch.compile` can take.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from densembed.data import as_input
from densembed.optimiser import Adam


class Flat:
    """The parameters of M modules of the same shape as one tensor (M, P)."""

    def __init__(self, modules: list[nn.Module]):
        self.module = modules[0]
        shapes = {name: p.shape for name, p in self.module.named_parameters()}
        self.names = list(shapes)
        self.shapes = list(shapes.values())
        self.sizes = [shape.numel() for shape in self.shapes]
        self.values = torch.stack(
            [nn.utils.parameters_to_vector(module.parameters()).detach() for module in modules]
        ).requires_grad_()

    def __len__(self) -> int:
        return self.values.shape[0]

    def named(self, values: Tensor) -> dict[str, Tensor]:
        """(..., P) → name: (..., *shape)."""
        parts = values.split(self.sizes, -1)
        return {
            name: part.unflatten(-1, shape)
            for name, part, shape in zip(self.names, parts, self.shapes, strict=True)
        }

    def logits(self, x: Tensor) -> Tensor:
        """(M, N, C, H, W) → (M, N, classes), each member on its own inputs."""
        if len(self) == 1:
            return functional_call(self.module, self.named(self.values[0]), (x[0],))[None]
        return vmap(lambda values, x: functional_call(self.module, values, (x,)))(
            self.named(self.values), x
        )

    @torch.no_grad()
    def state(self) -> dict[str, Tensor]:
        """A copy on the CPU, name: (M, *shape)."""
        return {name: part.to("cpu", copy=True) for name, part in self.named(self.values).items()}

    @torch.no_grad()
    def member(self, index: int) -> nn.Module:
        """The module with the parameters of one member, until the next call."""
        for name, part in self.named(self.values[index]).items():
            self.module.get_parameter(name).copy_(part)
        return self.module


def step(flat: Flat, adam: Adam, images: Tensor, labels: Tensor, row: Tensor) -> Tensor:
    """Forward, backward and update.

    Args:
        images: (M, N, C, H, W) uint8; labels: (M, N).
        row: the step's line of the optimiser's table.
    Returns:
        The loss of each member, (M,).
    """
    logits = flat.logits(as_input(images, flat.values.dtype))
    losses = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    losses = losses.view(labels.shape).mean(1)
    (gradient,) = torch.autograd.grad(losses.sum(), flat.values)
    with torch.no_grad():
        adam.update(gradient, row)
    return losses.detach()
