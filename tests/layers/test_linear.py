import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, vmap

from densembed.layers import DensityLinear


@settings(max_examples=25)
@given(
    st.integers(1, 9),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([(), (0,), (1,), (3,), (2, 3)]),
)
def test_equals_nn_linear(inputs, outputs, bias, lead):
    reference = nn.Linear(inputs, outputs, bias=bias).double()
    layer = DensityLinear.from_torch(reference)
    x = torch.randn(*lead, inputs).double().requires_grad_()
    y, expected = layer(x), reference(x)
    through_gamma = x @ layer.gamma().T @ layer.weight.T
    if bias:
        through_gamma = through_gamma + layer.bias
    assert torch.allclose(y, expected)
    assert torch.allclose(y, through_gamma)
    grad = torch.randn_like(y)
    for got, want in zip(
        torch.autograd.grad(y, [x, *layer.parameters()], grad),
        torch.autograd.grad(expected, [x, *reference.parameters()], grad),
        strict=True,
    ):
        assert torch.allclose(got, want)


def test_starts_as_nn_linear_starts():
    torch.manual_seed(3)
    layer = DensityLinear(5, 4)
    torch.manual_seed(3)
    reference = nn.Linear(5, 4)
    assert torch.equal(layer.weight, reference.weight)
    layer.load_state_dict(reference.state_dict())


def test_gamma_is_the_identity():
    assert torch.equal(DensityLinear(6, 2).gamma(), torch.eye(6))


def test_receptive_field_is_one_density_a_pixel():
    field = DensityLinear(5, 2).receptive_field(resolution=3)
    assert field.shape == (1, 1, 5, 15)
    assert torch.equal(field[0, 0], torch.eye(5).repeat_interleave(3, -1))


def test_from_torch_copies():
    reference = nn.Linear(3, 2)
    layer = DensityLinear.from_torch(reference)
    before = copy.deepcopy(reference.weight)
    with torch.no_grad():
        layer.weight.zero_()
    assert torch.equal(reference.weight, before)


def test_vmap_over_members_and_compile():
    layer = DensityLinear(4, 2)
    members = {name: torch.stack([p, 2 * p]) for name, p in layer.named_parameters()}
    x = torch.randn(3, 4)
    y = vmap(lambda p: functional_call(layer, p, (x,)))(members)
    assert torch.allclose(y[1], 2 * layer(x), atol=1e-6)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x))


def test_errors():
    with pytest.raises(ValueError, match=r"\(\.\.\., 4\); got \(2, 3\)"):
        DensityLinear(4, 2)(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="in_features to be an integer of at least 1; got 0"):
        DensityLinear(0, 2)
    with pytest.raises(ValueError, match=r"Expected nn\.Linear; got Conv1d"):
        DensityLinear.from_torch(nn.Conv1d(1, 1, 1))
