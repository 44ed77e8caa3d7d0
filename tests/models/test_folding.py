"""Fixed densities and a linear classifier, which are computed as one map of the pixels."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import prune

from densembed.layers import DensityEmbedding
from densembed.models.architectures import DensityNetwork
from tests.conftest import is_sentence


@pytest.mark.parametrize("bias", [True, False])
def test_a_folded_classifier_is_a_linear_layer_of_torch(bias):
    """Without a bias, too, and in the dtype that autocast gives to torch's own."""
    network = DensityNetwork(DensityEmbedding((6, 7), num_densities=(4, 5)), classes=3)
    network.classifier = torch.nn.Linear(20, 3, bias=bias)
    x = torch.rand(5, 1, 6, 7)
    expected = network.classifier(network.embedding(x).flatten(1))
    torch.testing.assert_close(network(x), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert network(x).dtype == torch.bfloat16
    torch.testing.assert_close(network.fold()(x.flatten(1)), network(x))


def small_network() -> DensityNetwork:
    """A network whose classifier is folded into its densities."""
    return DensityNetwork(DensityEmbedding((6, 7), num_densities=(4, 5)), classes=3)


def in_turn(network: DensityNetwork, x: Tensor) -> Tensor:
    """The logits by the modules themselves."""
    return network.classifier(network.embedding(x).flatten(1))


@pytest.mark.parametrize("part", ["embedding", "classifier"])
def test_hooks_of_the_modules_are_called(part):
    network, x, calls = small_network(), torch.rand(5, 1, 6, 7, requires_grad=True), []
    module = getattr(network, part)
    handles = [
        module.register_forward_pre_hook(lambda *arguments: calls.append("before")),
        module.register_forward_hook(lambda *arguments: calls.append("after")),
        module.register_full_backward_hook(lambda *arguments: calls.append("backward")),
        module.register_full_backward_pre_hook(lambda *arguments: calls.append("gradient")),
    ]
    network(x).sum().backward()
    assert calls == ["before", "after", "gradient", "backward"]
    for one in handles[1:]:
        one.remove()
    calls.clear()
    network(x)
    assert calls == ["before"]
    handles[0].remove()
    module.register_forward_hook(lambda module, inputs, output: 2 * output)
    torch.testing.assert_close(network(x), in_turn(network, x))


def test_hooks_of_all_modules_are_called():
    network, x, called = small_network(), torch.rand(5, 1, 6, 7), []
    whole = small_network()
    whole.load_state_dict(network.state_dict())

    def doubled(module, inputs, output):
        called.append(module)
        return 2 * output if module is network.embedding else None

    handle = register_module_forward_hook(doubled)
    try:
        found = network(x)
        assert called == [network.embedding, network.classifier, network]
        with pytest.raises(ValueError, match="hooks") as caught:
            network.fold()
        assert is_sentence(str(caught.value))
    finally:
        handle.remove()
    weight, bias = whole.classifier.weight, whole.classifier.bias
    torch.testing.assert_close(found, 2 * whole.embedding(x).flatten(1) @ weight.mT + bias)
    torch.testing.assert_close(network.fold()(x.flatten(1)), whole(x))


@pytest.mark.parametrize("part", ["embedding", "classifier", ""])
def test_what_folding_would_lose_is_refused(part):
    network = small_network()
    module = getattr(network, part) if part else network
    handle = module.register_forward_hook(lambda module, inputs, output: 2 * output)
    with pytest.raises(ValueError, match="A network with hooks"):
        network.fold()
    handle.remove()
    network.fold()
    module.forward = lambda x: x
    with pytest.raises(ValueError, match="replaced forward"):
        network.fold()


def test_modules_with_a_forward_of_their_own_are_called():
    class Twice(DensityEmbedding):
        def forward(self, x):
            return 2 * super().forward(x)

    class Shifted(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + 3

    x, twice, shifted, patched = torch.rand(5, 1, 6, 7), *(small_network() for _ in range(3))
    twice.embedding = Twice((6, 7), num_densities=(4, 5))
    shifted.classifier = Shifted(20, 3)
    patched.classifier.forward = lambda inputs: inputs[:, :3]
    for network in (twice, shifted, patched):
        torch.testing.assert_close(network(x), in_turn(network, x))
    for network in (twice, shifted):
        with pytest.raises(ValueError, match="Only fixed densities"):
            network.fold()


@pytest.mark.parametrize(("part", "name"), [("classifier", "weight"), ("embedding", "alpha")])
@pytest.mark.parametrize("how", ["prune", "norm", "parametrize"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_computed_parameters_are_computed_at_every_step(part, name, how):
    network, x = small_network(), torch.rand(5, 1, 6, 7)
    compute = {
        "prune": lambda *of: prune.l1_unstructured(*of, amount=0.3),
        "norm": torch.nn.utils.weight_norm,
        "parametrize": torch.nn.utils.parametrizations.weight_norm,
    }
    compute[how](getattr(network, part), name)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        network(x).square().sum().backward()
        optimiser.step()
        torch.testing.assert_close(network(x), in_turn(network, x))


@pytest.mark.parametrize("together", [True, False])
def test_a_functional_call_folds_as_well(together, monkeypatch):
    """With tensors for parameters, as members are trained together."""
    network, x, folded = small_network(), torch.rand(5, 1, 6, 7), []
    values = {name: torch.rand(2, *part.shape) for name, part in network.named_parameters()}
    fold = DensityEmbedding.fold
    monkeypatch.setattr(
        DensityEmbedding, "fold", lambda *arguments: folded.append(1) or fold(*arguments)
    )

    def logits(values, x):
        return functional_call(network, values, (x,))

    members = [{name: part[k] for name, part in values.items()} for k in range(2)]
    if together:
        result = vmap(logits, in_dims=(0, None))(values, x)
    else:
        result = torch.stack([logits(member, x) for member in members])
    assert folded
    for member, one in zip(members, result, strict=True):
        network.load_state_dict(member)
        torch.testing.assert_close(one, in_turn(network, x))
