"""Straightforward implementations of the paper's formulas, as a baseline for speed.

Each takes the parameters of a network of `densembed` and computes the same logits with plain
autograd. They are used by the benchmark and the tests only.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

Action = Callable[[nn.Module, Tensor], Tensor]
"""Computes the action of an embedding on inputs."""


def _factor(loc: Tensor, scale: Tensor, size: int) -> Tensor:
    """Γ_n = F(n) − F(n − 1) of logistic densities, (...) → (..., size)."""
    edges = torch.arange(size + 1, dtype=loc.dtype, device=loc.device)
    cdf = torch.sigmoid((edges - loc[..., None]) / scale[..., None])
    return cdf[..., 1:] - cdf[..., :-1]


def _factors(embedding: Any, x: Tensor | None) -> tuple[Tensor, Tensor]:
    loc, scale = embedding.placement(x)
    height, width = embedding.sizes
    return (
        _factor(loc[..., 1], scale[..., 1], height),
        _factor(loc[..., 0], scale[..., 0], width),
    )


def by_formulas(embedding: nn.Module, x: Tensor) -> Tensor:
    """R(x) from the full Γ: (B², H, W) for fixed densities, (N, B², H, W) for moving ones."""
    rows, columns = _factors(embedding, x)
    gamma = rows[..., :, None] * columns[..., None, :]
    if gamma.shape[0] == 1:
        return torch.einsum("ckhw,bchw->bck", gamma[0], x)
    return torch.einsum("bckhw,bchw->bck", gamma, x)


def by_autograd(embedding: nn.Module, x: Tensor) -> Tensor:
    """R(x) from the separable factors of Γ, differentiated by torch."""
    rows, columns = _factors(embedding, x)
    return ((rows @ x) * columns).sum(-1)


class Baseline(nn.Module):
    """A network whose embeddings are computed by one of the functions above."""

    def __init__(self, network: nn.Module, act: Action):
        super().__init__()
        self.network: Any = network
        self.act = act
        if network.adaptive:
            embedding: Any = network.embedding
            inner = embedding.locator[0]
            embedding.locator[0] = _Acting(inner, act)

    def forward(self, x: Tensor) -> Tensor:
        return self.network.classifier(self.act(self.network.embedding, x).flatten(1))


class _Acting(nn.Module):
    def __init__(self, embedding: nn.Module, act: Action):
        super().__init__()
        self.embedding = embedding
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.embedding, x)


class UserStep:
    """The usual training step: zero_grad, forward, backward, Adam, one-cycle."""

    def __init__(self, model: nn.Module, total: int):
        self.model = model
        self.adam = torch.optim.Adam(model.parameters(), lr=0.002)
        self.cycle = torch.optim.lr_scheduler.OneCycleLR(self.adam, 0.002, total_steps=total)

    def __call__(self, x: Tensor, labels: Tensor) -> Tensor:
        loss = cross_entropy(self.model(x), labels)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        self.cycle.step()
        return loss


def user_epoch(model: nn.Module, images: Tensor, labels: Tensor, batch: int) -> Iterator[float]:
    """The usual training loop: a DataLoader of PIL images, and one `.item()` per step.

    Yields the loss of every step.
    """
    from torchvision.transforms.functional import to_pil_image, to_tensor

    pictures = [to_pil_image(image) for image in images]
    loader = DataLoader(
        _Pictures(pictures, labels, to_tensor), batch_size=batch, shuffle=True, num_workers=0
    )
    step = UserStep(model, len(loader))
    device = next(model.parameters()).device
    for x, label in loader:
        yield step(x.to(device), label.to(device)).item()


class _Pictures(TensorDataset):
    """Like torchvision's MNIST: PIL images that are transformed on each access."""

    def __init__(self, pictures: Sequence[Any], labels: Tensor, transform: Callable[[Any], Tensor]):
        super().__init__(labels)
        self.pictures, self.transform = pictures, transform

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.transform(self.pictures[index]), self.tensors[0][index]
