"""`from_torch`: the same map as a module of torch, or an error."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, weight_norm

from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    AdaptivePool1d,
    AdaptivePool2d,
    DensityConv1d,
    DensityConv2d,
    DensityLinear,
)

WITH_WEIGHTS = {
    DensityLinear: lambda: nn.Linear(7, 3),
    DensityConv1d: lambda: nn.Conv1d(2, 3, 3),
    AdaptiveConv1d: lambda: nn.Conv1d(2, 3, 3, bias=False),
    DensityConv2d: lambda: nn.Conv2d(2, 4, 3, groups=2),
    AdaptiveConv2d: lambda: nn.Conv2d(2, 4, 3, dilation=2),
}
ALL = WITH_WEIGHTS | {
    AdaptivePool1d: lambda: nn.AvgPool1d(3),
    AdaptivePool2d: lambda: nn.AvgPool2d(3),
}
each_layer = pytest.mark.parametrize("kind", ALL)
each_with_weights = pytest.mark.parametrize("kind", WITH_WEIGHTS)


def same(layer: nn.Module, module: nn.Module) -> bool:
    dtype = next(module.parameters(), torch.empty(())).dtype
    x = torch.randn(2, 2, *[7] * (2 if "2d" in type(layer).__name__ else 1), dtype=dtype)
    return torch.allclose(layer(x), module(x), atol=1e-6)


@each_with_weights
@pytest.mark.parametrize(
    "changed", [parametrizations.weight_norm, parametrizations.spectral_norm, nn.Module.double]
)
def test_weights_are_copied_as_they_are(kind, changed):
    module = changed(ALL[kind]()).eval()
    layer = kind.from_torch(module)
    assert same(layer, module)
    assert layer.weight.is_leaf
    with torch.no_grad():
        assert all(part.requires_grad for part in kind.from_torch(module).parameters())
    with torch.no_grad():
        layer.weight.zero_()
    assert not same(layer, module)


@each_with_weights
def test_copying_does_not_change_a_spectral_norm(kind):
    module = parametrizations.spectral_norm(ALL[kind]())
    before = {name: value.clone() for name, value in module.state_dict().items()}
    kind.from_torch(module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.parametrizations.weight.training


@each_with_weights
def test_weights_of_another_shape_are_a_sentence(kind):
    module = ALL[kind]()
    module.weight = nn.Parameter(module.weight[:1].detach())
    with pytest.raises(ValueError, match=r"^Expected a weight of shape \(.*\), by the sizes of"):
        kind.from_torch(module)


@each_layer
def test_the_mode_is_kept(kind):
    for module in (ALL[kind](), ALL[kind]().eval()):
        assert kind.from_torch(module).training == module.training


@each_with_weights
def test_frozen_weights_stay_frozen(kind):
    module = ALL[kind]()
    module.weight.requires_grad_(False)
    layer = kind.from_torch(module)
    assert not layer.weight.requires_grad
    assert all(part.requires_grad for name, part in layer.named_parameters() if name != "weight")


@each_layer
def test_a_module_with_its_own_forward_is_refused(kind):
    class Doubled(type(ALL[kind]())):
        def forward(self, x):
            return 2 * super().forward(x)

    module = ALL[kind]()
    module.__class__ = Doubled
    with pytest.raises(ValueError, match=r"^Expected nn\.\w+ itself; got Doubled with its own"):
        kind.from_torch(module)


@each_layer
def test_a_forward_of_one_module_is_refused(kind):
    module = ALL[kind]()
    forward = module.forward
    module.forward = lambda x: 2 * forward(x)
    with pytest.raises(ValueError, match="with its own forward, which would be lost"):
        kind.from_torch(module)


@each_layer
@pytest.mark.parametrize(
    "hook", ["register_forward_hook", "register_forward_pre_hook"], ids=["after", "before"]
)
def test_a_module_with_hooks_is_refused(kind, hook):
    module = ALL[kind]()
    handle = getattr(module, hook)(lambda *_: None)
    with pytest.raises(ValueError, match="has forward hooks, which would be lost"):
        kind.from_torch(module)
    handle.remove()
    assert same(kind.from_torch(module), module)


@each_with_weights
@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm`:FutureWarning")
def test_older_ways_to_change_weights_are_named(kind):
    for changed in (weight_norm(ALL[kind]()), prune.random_unstructured(ALL[kind](), "weight", 1)):
        with pytest.raises(ValueError, match=r"remove_weight_norm, .* or prune\.remove\.$"):
            kind.from_torch(changed)


def test_a_layer_is_copied_as_torch_s():
    class Mine(DensityLinear):
        pass

    layer = Mine(7, 3)
    assert same(DensityLinear.from_torch(layer), layer)
