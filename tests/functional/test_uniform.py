import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck

from densembed.functional.arguments import per_axis, positions, positive
from densembed.functional.pooling import pooling_weights, softmax_pool
from densembed.functional.uniform import (
    bounded,
    bounded_logit,
    indicator,
    overlap,
    product,
    resample_kernel,
    resample_signal,
    step_scaled,
)


def printed_overlap(lower, upper, n):
    """Equation of Section 3.3 for the pixel [n−1, n]."""
    return max(0.0, min(n, upper) - max(n - 1, lower))


ends = st.floats(-3, 12, allow_nan=False)


@given(ends, ends)
def test_overlap_is_the_printed_formula(a, b):
    a, b = min(a, b), max(a, b)
    lower, upper = torch.tensor([a, b], dtype=torch.float64)
    masses = overlap(lower, upper, torch.arange(9.0).double())
    assert masses.tolist() == pytest.approx(
        [printed_overlap(a, b, n) for n in range(1, 10)], abs=1e-12
    )


def test_overlap_gradient_on_an_edge_is_the_mean_of_both_sides():
    # gradcheck's central difference is that mean, so it can be compared even at a kink.
    lower = torch.tensor([1.0, 2.0, 2.5]).double().requires_grad_()
    upper = torch.tensor([2.0, 4.0, 3.0]).double().requires_grad_()
    pixels = torch.arange(6.0).double()
    assert gradcheck(lambda a, b: overlap(a, b, pixels), (lower, upper))
    by_length = torch.autograd.grad(overlap(lower, upper, pixels).sum(), (lower, upper))
    assert by_length[0].tolist() == [-1, -1, -1]
    assert by_length[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [0.51, 1.0, 1.49])
def test_bounded_logit_inverts_bounded(value):
    logit = torch.tensor(bounded_logit(value, 0.5, 1.5)).double()
    assert bounded(logit, 0.5, 1.5).item() == pytest.approx(value)


def test_bounded_never_leaves_its_bounds():
    p = bounded(torch.tensor([-1e9, -30.0, 0.0, 30.0, 1e9]), 0.5, 1.5)
    assert p.min() == 0.5
    assert p.max() == 1.5
    assert p[2] == 1


@pytest.mark.parametrize("value", [0.5, 1.5, -1.0, math.nan])
def test_a_start_on_or_outside_the_bounds_is_refused(value):
    with pytest.raises(ValueError, match=r"strictly between 0.5 and 1.5"):
        bounded_logit(value, 0.5, 1.5)


@pytest.mark.parametrize(("optimiser", "power"), [(torch.optim.SGD, 2), (torch.optim.Adam, 1)])
def test_step_scaled_leaves_the_value_and_lengthens_the_step(optimiser, power):
    moved = []
    for scale in (1.0, 5.0):
        stored = nn.Parameter(torch.tensor(0.7).double() / scale)
        assert step_scaled(stored, scale).item() == pytest.approx(0.7)
        torch.sin(step_scaled(stored, scale)).backward()
        optimiser([stored], lr=1e-3).step()
        moved.append(step_scaled(stored, scale).item() - 0.7)
    assert moved[1] / moved[0] == pytest.approx(5.0**power, rel=1e-4)


def test_indicator_counts_a_centre_on_a_shared_end_once():
    lower, upper = torch.tensor([0.0, 1.5]), torch.tensor([1.5, 3.0])
    field = indicator(lower, upper, 4, 1)
    assert field.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]


def test_indicator_integrates_to_the_overlap():
    lower, upper = torch.tensor([0.25, -1.0]), torch.tensor([2.75, 9.0])
    masses = indicator(lower, upper, 5, 4).reshape(2, 5, 4).mean(-1)
    assert torch.equal(masses, overlap(lower, upper, torch.arange(5.0)))


def test_product_takes_every_pair_rows_first():
    rows, columns = torch.rand(2, 3, 5), torch.rand(2, 4, 6)
    table = product([rows, columns])
    assert table.shape == (2, 12, 5, 6)
    assert torch.equal(table[1, 2 * 4 + 3], torch.outer(rows[1, 2], columns[1, 3]))
    assert torch.equal(product([rows]), rows)


@pytest.mark.parametrize("channels", [1, 4])
def test_resample_kernel_is_a_sum_over_taps(channels):
    weight = torch.randn(4, 3, 2, 5).double()
    rows, columns = torch.rand(channels, 2, 6).double(), torch.rand(channels, 5, 7).double()
    expected = torch.einsum(
        "oikl,okm,oln->oimn", weight, rows.expand(4, -1, -1), columns.expand(4, -1, -1)
    )
    assert torch.allclose(resample_kernel(weight, [rows, columns]), expected)


@settings(max_examples=40)
@given(st.floats(0.05, 3.0), st.integers(1, 9), st.integers(1, 8), st.integers(0, 3))
def test_resample_signal_integrates_over_its_cells(width, cells, size, seed):
    x = torch.randn(2, 1, 3, size, generator=torch.Generator().manual_seed(seed)).double()
    widths = torch.tensor([width, 1.0], dtype=torch.float64)
    got = resample_signal(x, widths, cells, 3.0)
    assert got.shape == (2, 2, 3, cells)
    for cell in range(cells):
        for channel, w in enumerate((width, 1.0)):
            expected = sum(
                printed_overlap(cell * w, (cell + 1) * w, n) * x[:, 0, :, n - 1]
                for n in range(1, size + 1)
            )
            assert torch.allclose(got[:, channel, :, cell], expected, atol=1e-12)


@pytest.mark.parametrize("width", [0.5, 0.77, 1.0, 2.0])  # some with cells on pixels' edges
def test_resample_signal_gradients(width):
    x = torch.randn(1, 1, 2, 6).double().requires_grad_()
    w = torch.tensor([width]).double().requires_grad_()
    assert gradcheck(lambda x, w: resample_signal(x, w, 5, 2.5), (x, w))


def test_resample_signal_keeps_its_digits_on_a_long_signal():
    # Differences of a float32 cumulative sum would be off by about 0.06 here.
    x = torch.full((1, 1, 1_000_000), 1.0)
    got = resample_signal(x, torch.tensor([1.0]), 1_000_000, 1.5)
    assert torch.equal(got, x)


def test_pooling_weights_are_the_printed_gamma():
    x, mass = torch.randn(7, 5).double(), torch.rand(7, 5).double()
    mass[:, 1] = 0
    for beta in (-2.0, 0.0, 3.0):
        tilted = mass * torch.exp(beta * x)
        expected = tilted / tilted.sum(-1, keepdim=True)
        got = pooling_weights(x, mass, torch.tensor([beta]).double())
        assert torch.allclose(got, expected)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=9),
    st.sampled_from([0.3, 1.0, 20.0, 1e3, 1e6]),
    st.sampled_from([-1, 1]),
)
def test_softmax_pool_lies_within_log_k_over_beta_of_the_extreme(values, size, sign):
    x = torch.tensor(values)
    y = softmax_pool(x, torch.ones_like(x), torch.tensor([sign * size]))
    extreme = x.max() if sign > 0 else x.min()
    rounding = 1e-5 * (1 + x.abs().max())
    assert -rounding <= sign * (extreme - y) <= math.log(len(values)) / size + rounding


@pytest.mark.parametrize("beta", [-1e6, -1e3, 0.0, 1e3, 1e6])
def test_softmax_pool_gradients_at_any_beta(beta):
    """Ties, empty pixels and a large offset: no NaN, and x's gradient sums to 1."""
    x = torch.tensor([[1000.25, 1000.25, 1000.25, 999.0, 5000.0, -5000.0]], requires_grad=True)
    mass = torch.tensor([[1.0, 1.0, 1.0, 0.5, 0.0, 0.0]], requires_grad=True)
    tilt = torch.tensor([[beta]], requires_grad=True)
    y = softmax_pool(x, mass, tilt)
    y.sum().backward()
    assert 999.0 <= y.item() <= 1000.25
    assert x.grad.sum().item() == pytest.approx(1, abs=1e-5)
    assert torch.equal(x.grad[0, 4:], torch.zeros(2))
    assert torch.isfinite(mass.grad).all()
    assert torch.isfinite(tilt.grad).all()
    if beta > 0:
        assert torch.allclose(x.grad[0, :3], torch.tensor(1 / 3), atol=1e-5)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 1.0])
def test_softmax_pool_does_not_see_an_empty_pixel(beta):
    x = torch.tensor([0.25, 0.75, 3e8, -3e8])
    y = softmax_pool(x, torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([beta]))
    assert y.item() == pytest.approx(
        softmax_pool(x[:2], torch.ones(2), torch.tensor([beta])).item()
    )
    assert 0.25 < y.item() < 0.75


def test_softmax_pool_gradients():
    x = torch.randn(3, 5).double().requires_grad_()
    mass = (torch.rand(3, 5).double() + 0.1).requires_grad_()
    beta = torch.randn(3, 1).double().requires_grad_()
    assert gradcheck(softmax_pool, (x, mass, beta))


@pytest.mark.parametrize("value", [0, (3,), (3, 0), (1, 2, 3), 2.5, None, "3", (1.0, 2), True])
def test_per_axis_names_what_it_expected(value):
    with pytest.raises(ValueError, match="Expected stride to be an integer of at least 1, or 2"):
        per_axis(value, 2, "stride", 1)


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "2", None, True])
def test_positive_names_what_it_expected(value):
    with pytest.raises(ValueError, match="Expected a positive start; got "):
        positive(value, "start")


def test_per_axis():
    assert per_axis(3, 2, "stride", 1) == (3, 3)
    assert per_axis([3, 4], 2, "stride", 1) == (3, 4)
    (converted,) = per_axis(np.int64(3), 1, "stride", 1)
    assert type(converted) is int
    with pytest.raises(ValueError, match=r"integer of at least 1; got 0\.$"):
        per_axis(0, 1, "stride", 1)


def test_positions():
    assert positions(7, 3, 2, (1, 0)) == 3
    assert positions(3, 3, 5, (0, 0)) == 1
    with pytest.raises(ValueError, match=r"at least 4 pixels.*got 1 with padding \(1, 1\)"):
        positions(1, 4, 1, (1, 1))
