"""The cache is limited in bytes and drops the least recently used values."""

import numpy as np
import pytest

from densembed.cache import SizedCache
from densembed.training.checkpoint import Checkpoint
from densembed.training.checkpoint import _networks as networks


def test_many_values_stay_within_the_budget():
    cache, made = SizedCache(10_000_000), []
    for number in range(100):
        cache.get(number, lambda: made.append(1) or np.zeros(1_000_000, np.uint8))
        cache.get(0, lambda: pytest.fail("a value in frequent use was dropped"))
        assert cache.used <= cache.budget
    assert len(made) == 100
    cache.get(1, lambda: made.append(1) or np.zeros(1))
    assert len(made) == 101


def test_a_value_larger_than_the_budget_is_not_cached():
    cache = SizedCache(1000)
    assert cache.get("large", lambda: np.ones(2000)).sum() == 2000
    assert cache.used == 0


def test_networks_of_many_checkpoints_stay_within_the_budget(trained, monkeypatch):
    monkeypatch.setattr(networks, "budget", 1_000_000)
    for k in range(1, 20):  # the first may be cached already
        tensors = {name: value + k for name, value in trained.tensors.items()}
        checkpoint = Checkpoint(trained.header, tensors)
        for index in range(len(checkpoint.steps)):
            checkpoint.network(index)
        assert networks.used <= 1_000_000
