"""What is kept is counted in bytes, and the longest unused goes first."""

import numpy as np
import pytest

from densembed.cache import SizedCache
from densembed.training.checkpoint import Checkpoint
from densembed.training.checkpoint import _networks as networks


def test_many_values_stay_within_the_budget():
    kept, made = SizedCache(10_000_000), []
    for number in range(100):
        kept.get(number, lambda: made.append(1) or np.zeros(1_000_000, np.uint8))
        kept.get(0, lambda: pytest.fail("what is used often is kept"))
        assert kept.used <= kept.budget
    assert len(made) == 100
    kept.get(1, lambda: made.append(1) or np.zeros(1))
    assert len(made) == 101


def test_what_is_too_large_is_not_kept():
    kept = SizedCache(1000)
    assert kept.get("large", lambda: np.ones(2000)).sum() == 2000
    assert kept.used == 0


def test_networks_of_many_checkpoints_stay_within_the_budget(trained, monkeypatch):
    monkeypatch.setattr(networks, "budget", 1_000_000)
    for k in range(1, 20):  # the first may be kept already
        tensors = {name: value + k for name, value in trained.tensors.items()}
        checkpoint = Checkpoint(trained.header, tensors)
        for index in range(len(checkpoint.steps)):
            checkpoint.network(index)
        assert networks.used <= 1_000_000
