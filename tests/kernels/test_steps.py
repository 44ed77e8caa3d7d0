"""The kernels around the network against torch."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import densembed.kernels as kernels
from densembed.data import as_input, full_scale

pytestmark = pytest.mark.skipif(not kernels.available(), reason="needs Numba")
PRECISIONS = [torch.float32, torch.float64]


PIXELS = torch.arange(256, dtype=torch.uint8).repeat(3, 2)
SIGNALS = torch.linspace(-3, 3, 3 * 512).reshape(3, 512)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("values", [PIXELS, SIGNALS])
def test_a_batch_equals_that_of_torch_bit_for_bit(dtype, values):
    index = torch.tensor([[2, 0], [1, 1]])
    x = torch.empty(2, 2, 512, dtype=dtype)
    kernels.steps.gather(values.numpy(), index.numpy(), full_scale(values), x.numpy())
    assert torch.equal(x, as_input(values[index], dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("members", "batch", "classes"), [(1, 1, 1), (1, 7, 10), (3, 5, 2)])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_cross_entropy_equals_that_of_torch(dtype, members, batch, classes, spread):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(members, batch, classes, generator=generator, dtype=dtype) * spread
    labels = torch.randint(classes, (20,), generator=generator)
    index = torch.randint(20, (members, batch), generator=generator)
    losses, grad = torch.empty(members, dtype=dtype), torch.empty_like(logits)
    kernels.steps.cross_entropy(
        logits.numpy(), labels.numpy(), index.numpy(), losses.numpy(), grad.numpy()
    )
    logits.requires_grad_()
    expected = torch.stack([cross_entropy(logits[m], labels[index[m]]) for m in range(members)])
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(grad, torch.autograd.grad(expected.sum(), logits)[0])


def test_cross_entropy_of_logits_that_are_not_finite_is_not_finite():
    """So that a training that diverges is noticed."""
    for value in (np.nan, np.inf):
        logits = np.zeros((1, 2, 3), np.float32)
        logits[0, 1, 2] = value
        losses, grad = np.zeros(1, np.float32), np.zeros_like(logits)
        index, labels = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
        kernels.steps.cross_entropy(logits, labels, index, losses, grad)
        assert not np.isfinite(losses[0])
