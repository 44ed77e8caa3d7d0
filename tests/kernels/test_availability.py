"""Where the kernels are not used, whatever is installed."""

import os
import subprocess
import sys

import pytest

import densembed.kernels as kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="needs Numba")
EMBED = """
import torch, densembed.kernels
from densembed.layers import DensityEmbedding2d
layer = DensityEmbedding2d(4, num_densities=3)
x = torch.arange(16.0).view(1, 1, 4, 4)
expected = (layer.gamma()[0, 0].detach() * x[0]).sum((-2, -1))
y = layer(x)
y.sum().backward()
assert torch.allclose(y[0, 0], expected, rtol=1e-5), (y, expected)
print(densembed.kernels.name())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value", "used"),
    [
        ("DENSEMBED_KERNELS", "0", False),
        ("NUMBA_DISABLE_JIT", "1", False),
        ("NUMBA_DISABLE_JIT", "0", True),
    ],
)
def test_kernels_that_are_switched_off(variable, value, used):
    """Numba's own switch runs its functions as plain Python, which the kernels are not."""
    environment = os.environ | {variable: value}
    out = subprocess.check_output([sys.executable, "-c", EMBED], env=environment, text=True)
    assert out.strip() == (kernels.name() if used else "none")
