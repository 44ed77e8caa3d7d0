"""Evaluation mode for a moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Set a module to evaluation mode; at the end, each part gets its own mode back.

    >>> network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())
    >>> with evaluating(network):
    ...     network.training
    False
    >>> network.training, network[1].training
    (True, False)
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
