"""Our flat Adam against torch's, in float64, through a whole cycle."""

import pytest
import torch

from densembed.training.optimiser import Adam, one_cycle


@pytest.mark.parametrize("total", [1, 2, 3, 4, 10, 97, 500])
def test_it_is_torchs_adam_under_torchs_cycle(total):
    generator = torch.Generator().manual_seed(total)
    start = torch.randn(2, 7, dtype=torch.float64, generator=generator)
    gradients = torch.randn(total, 2, 7, dtype=torch.float64, generator=generator)
    rates = torch.tensor([[0.002], [0.3]], dtype=torch.float64)
    ours = Adam(start.clone(), rates, total)
    theirs = [row.clone().requires_grad_() for row in start]
    optimisers = [
        torch.optim.Adam([row], lr=rate.item()) for row, rate in zip(theirs, rates, strict=True)
    ]
    if total > 1:
        schedules = [
            torch.optim.lr_scheduler.OneCycleLR(optimiser, rate.item(), total_steps=total)
            for optimiser, rate in zip(optimisers, rates, strict=True)
        ]
    for step in range(total):
        if total > 1:
            assert ours.shares[step] * 0.3 == pytest.approx(
                optimisers[1].param_groups[0]["lr"], rel=1e-9
            )
        ours.update(gradients[step], ours.table[step])
        for row, gradient, optimiser in zip(theirs, gradients[step], optimisers, strict=True):
            row.grad = gradient
            optimiser.step()
        if total > 1 and step + 1 < total:
            for schedule in schedules:
                schedule.step()
    if total > 1:
        torch.testing.assert_close(ours.parameters, torch.stack(theirs).detach())


def test_the_cycle_has_a_rate_for_every_step():
    for total in range(1, 60):
        rates, momenta = one_cycle(total)
        assert len(rates) == len(momenta) == total
        assert all(0 < rate <= 1 for rate in rates)
        assert all(0.85 <= beta <= 0.95 for beta in momenta)


@pytest.mark.parametrize("total", [1, 2, 7])
def test_a_short_training_moves(total):
    """Adam's first step is the rate, whatever the gradient: that of a single step, in full."""
    start = torch.ones(1, 3, dtype=torch.float64)
    adam = Adam(start.clone(), torch.tensor([[0.1]], dtype=torch.float64), total)
    adam.update(torch.tensor([[1e-3, -5.0, 70.0]], dtype=torch.float64), adam.table[0])
    moved = (start - adam.parameters).abs()
    torch.testing.assert_close(
        moved, torch.full_like(moved, 0.1 * adam.shares[0]), rtol=1e-4, atol=0
    )
    assert max(adam.shares) > 0.8
