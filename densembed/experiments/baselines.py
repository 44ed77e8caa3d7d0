"""What a reader of the paper would write first: the other side of every speed claim.

Each takes a network of `densembed` for its parameters and computes the same logits, by plain
autograd. They are slow on purpose and used by the benchmark and the tests alone.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from densembed.models.architectures import DensityNetwork


def _factor(loc: Tensor, scale: Tensor, size: int) -> Tensor:
    """Γ_n = F(n) − F(n − 1) of logistic densities, (...) → (..., size)."""
    edges = torch.arange(size + 1, dtype=loc.dtype, device=loc.device)
    cdf = torch.sigmoid((edges - loc[..., None]) / scale[..., None])
    return cdf[..., 1:] - cdf[..., :-1]


def _factors(embedding: nn.Module, x: Tensor | None) -> tuple[Tensor, Tensor]:
    loc, scale = embedding.placement(x)
    height, width = embedding.sizes
    return (
        _factor(loc[..., 1], scale[..., 1], height),
        _factor(loc[..., 0], scale[..., 0], width),
    )


def by_formulas(embedding: nn.Module, x: Tensor) -> Tensor:
    """R(x) with the whole Γ as it is written: (B², H, W) fixed, (N, B², H, W) moving."""
    rows, columns = _factors(embedding, x)
    gamma = rows[..., :, None] * columns[..., None, :]
    if gamma.shape[0] == 1:
        return torch.einsum("ckhw,bchw->bck", gamma[0], x)
    return torch.einsum("bckhw,bchw->bck", gamma, x)


def by_autograd(embedding: nn.Module, x: Tensor) -> Tensor:
    """R(x) with separable factors, differentiated by torch."""
    rows, columns = _factors(embedding, x)
    return ((rows @ x) * columns).sum(-1)


class Baseline(nn.Module):
    """A network of ours whose embeddings act by one of the functions above."""

    def __init__(self, network: DensityNetwork, act):
        super().__init__()
        self.network = network
        self.act = act
        if network.adaptive:
            inner = network.embedding.locator[0]
            network.embedding.locator[0] = _Acting(inner, act)

    def forward(self, x: Tensor) -> Tensor:
        return self.network.classifier(self.act(self.network.embedding, x).flatten(1))


class _Acting(nn.Module):
    def __init__(self, embedding: nn.Module, act):
        super().__init__()
        self.embedding = embedding
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.embedding, x)


class UserStep:
    """The ordinary step: zero_grad, forward, backward, Adam, one-cycle."""

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
    """The loop a user would write: a DataLoader of pictures through ToTensor, `.item()` a step.

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
    """As torchvision's MNIST gives them: a PIL picture, transformed at each access."""

    def __init__(self, pictures, labels, transform):
        super().__init__(labels)
        self.pictures, self.transform = pictures, transform

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), self.tensors[0][index]
