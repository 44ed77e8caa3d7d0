"""One optimisation step of several members of the same shape at once.

The parameters of all members are one tensor (members, P), so the cost of the optimiser does not
depend on the number of layers. The whole step (forward, backward, update) is one function that
`torch.compile` can compile or CUDA capture as a graph.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

import densembed.kernels as kernels
from densembed.data import Split, as_input, full_scale
from densembed.functional.uniform import cell_means
from densembed.models.registry import at_grid
from densembed.training.optimiser import Adam


class StackedParameters:
    """The parameters of M modules of the same shape as one tensor (M, P).

    With one module, its parameters are views of this tensor. With several, the first module serves
    as the template for all.
    """

    def __init__(self, modules: list[nn.Module]):
        self.module = modules[0]
        self.on_grid: dict[tuple[int, ...], nn.Module] = {}
        shapes = {name: p.shape for name, p in self.module.named_parameters()}
        self.names = list(shapes)
        self.shapes = list(shapes.values())
        self.sizes = [shape.numel() for shape in self.shapes]
        self.values = torch.stack(
            [nn.utils.parameters_to_vector(module.parameters()).detach() for module in modules]
        ).requires_grad_()
        self.single = list(self.module.parameters()) if len(modules) == 1 else []
        for name, part in self.named(self.values.detach()[0]).items() if self.single else ():
            self.module.get_parameter(name).data = part

    def __len__(self) -> int:
        return self.values.shape[0]

    def named(self, values: Tensor) -> dict[str, Tensor]:
        """(..., P) → name: (..., *shape)."""
        parts = values.split(self.sizes, -1)
        return {
            name: part.reshape((*part.shape[:-1], *shape))
            for name, part, shape in zip(self.names, parts, self.shapes, strict=True)
        }

    def add_grid(self, sizes: tuple[int, ...]) -> None:
        """Let `logits` take inputs of another size. Raises ValueError for a model of one grid."""
        self.on_grid[sizes] = at_grid(self.module, sizes)

    def logits(self, x: Tensor, sizes: tuple[int, ...] | None = None) -> Tensor:
        """(M, N, C, H, W) → (M, N, classes); each member has its own inputs.

        Args:
            sizes: another grid, of `add_grid`, to which the inputs are scaled.
        """
        module = self.module
        if sizes:
            module, x = self.on_grid[sizes], cell_means(x, sizes)
        if self._direct:
            return module(x[0])[None]
        if len(self) == 1:
            return functional_call(module, self.named(self.values[0]), (x[0],))[None]
        return vmap(lambda values, x: functional_call(module, values, (x,)))(
            self.named(self.values), x
        )

    def gradient(self, value: Tensor, by_value: Tensor | None = None) -> Tensor:
        """Gradient with respect to all parameters, (M, P).

        Args:
            value: a loss of `logits`, or the logits themselves with the loss's gradient `by_value`.
        """
        if self._direct:
            # A parameter that does not affect the loss has a gradient of zeros.
            parts = torch.autograd.grad(value, self.single, by_value, materialize_grads=True)
            return torch.cat([part.flatten() for part in parts])[None]
        return torch.autograd.grad(value, self.values, by_value)[0]

    @property
    def _direct(self) -> bool:
        """Whether to skip the functional call, which takes as long as a linear layer.

        The compiler needs the call, as it does not notice that the module's parameters are views.
        """
        return bool(self.single) and not torch.compiler.is_compiling()

    @torch.no_grad()
    def state(self) -> dict[str, Tensor]:
        """A copy on the CPU, name: (M, *shape)."""
        return {name: part.to("cpu", copy=True) for name, part in self.named(self.values).items()}

    @torch.no_grad()
    def member(self, index: int) -> nn.Module:
        """The template module with the parameters of one member; the next call overwrites them."""
        for name, part in self.named(self.values[index]).items():
            self.module.get_parameter(name).copy_(part)
        return self.module


Step = Callable[[Tensor, Tensor], Tensor]
"""Takes image indices (M, N) and a row of the optimiser's table; returns the losses (M,)."""


def step(
    stacked: StackedParameters,
    adam: Adam,
    images: Tensor,
    labels: Tensor,
    row: Tensor,
    sizes: tuple[int, ...] | None = None,
) -> Tensor:
    """Forward, backward and update.

    Args:
        images: (M, N, C, H, W) uint8, or signals (M, N, C, L); labels: (M, N).
        row: the step's row of the optimiser's table.
        sizes: another grid to which the images are scaled.
    Returns:
        The loss of each member, (M,).
    """
    logits = stacked.logits(as_input(images, stacked.values.dtype), sizes)
    losses = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    losses = losses.view(labels.shape).mean(1)
    gradient = stacked.gradient(losses.sum())
    with torch.no_grad():
        adam.update(gradient, row)
    return losses.detach()


def stepper(
    stacked: StackedParameters,
    adam: Adam,
    split: Split,
    batch: int,
    compiled: bool = False,
    sizes: tuple[int, ...] | None = None,
) -> Step:
    """The fastest available step on a split's images, scaled to another grid if `sizes` are given.

    On a CPU, compiled kernels compute what surrounds the network. Otherwise full batches use a CUDA
    graph on CUDA, and the compiled step if `compiled`, and the shorter last batch of an epoch uses
    the eager step.
    """
    if adam.by_kernel and not compiled:
        return _by_kernels(stacked, adam, split, sizes)

    def on_split(function: Callable) -> Step:
        return lambda index, row: function(
            stacked, adam, split.images[index], split.labels[index], row, sizes
        )

    short = on_split(step)
    full = on_split(torch.compile(step, dynamic=False)) if compiled else short
    if stacked.values.is_cuda and batch <= len(split):
        full = _captured(full, stacked, adam, batch)
    return lambda index, row: (full if index.shape[1] == batch else short)(index, row)


def _by_kernels(
    stacked: StackedParameters, adam: Adam, split: Split, sizes: tuple[int, ...] | None
) -> Step:
    """`step` with the batch, the loss and the update in one pass over memory each."""
    shape, dtype = split.images.shape[1:], stacked.values.dtype
    images, labels = split.images.flatten(1).numpy(), split.labels.numpy()
    full = full_scale(split.images)

    def take(index: Tensor, row: Tensor) -> Tensor:
        x = torch.empty(*index.shape, *shape, dtype=dtype)
        places = index.contiguous().numpy()
        kernels.steps.gather(images, places, full, x.flatten(2).numpy())
        logits = stacked.logits(x, sizes)
        losses, by_logits = torch.empty(len(index), dtype=dtype), torch.empty_like(logits)
        values = logits.detach().numpy()
        kernels.steps.cross_entropy(values, labels, places, losses.numpy(), by_logits.numpy())
        adam.update(stacked.gradient(logits, by_logits), row)
        return losses

    return take


WARM_UP_STEPS = 3


def _captured(function: Step, stacked: StackedParameters, adam: Adam, batch: int) -> Step:
    """A CUDA graph of a step, which replaces about a hundred kernel launches by one.

    The parameters and moments are restored after the warm-up steps. A replay overwrites the loss
    that the previous one returned.
    """
    changed = stacked.values, adam.first, adam.second
    saved = [part.detach().clone() for part in changed]
    index = torch.zeros(len(stacked), batch, dtype=torch.int64, device=adam.table.device)
    row = adam.table[0].clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_STEPS):
            function(index, row)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = function(index, row)
    with torch.no_grad():
        for part, value in zip(changed, saved, strict=True):
            part.copy_(value)

    def replay(new_index: Tensor, new_row: Tensor) -> Tensor:
        index.copy_(new_index)
        row.copy_(new_row)
        graph.replay()
        return loss

    return replay
