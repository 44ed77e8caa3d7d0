"""What torch offers for a module, with every public layer: the table of docs/engineers.md."""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.exc import InternalTorchDynamoError, Unsupported
from torch.autograd.functional import jacobian
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vmap

from densembed import build, layers
from densembed.functional.densities import FAMILIES
from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    AdaptiveDensityEmbedding,
    AdaptiveDensityEmbedding1d,
    AdaptiveDensityEmbedding2d,
    AdaptivePool1d,
    AdaptivePool2d,
    DensityConv1d,
    DensityConv2d,
    DensityEmbedding,
    DensityEmbedding1d,
    DensityEmbedding2d,
    DensityLinear,
    FeatureEmbedding,
    PixelEmbedding,
    QuadratureEmbedding,
)

PAGE = (Path(__file__).parents[2] / "docs" / "engineers.md").read_text(encoding="utf-8")


def located(kind: type, sizes: tuple[int, ...], **options) -> nn.Module:
    parts = 2 if options.get("adaptive_scale") else 1
    count = parts * 2 * 3 * len(sizes)
    locator = nn.Sequential(nn.Flatten(), nn.Linear(2 * math.prod(sizes), count))
    return kind(locator, sizes, 2, num_densities=3, **options)


class Gaussians(nn.Module):
    """Three densities with locations, for the quadrature."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.tensor([1.2, 2.6, 3.1]))

    def forward(self, t):
        return torch.exp(-((t - self.place[:, None]) ** 2))[None]


def on_maps(kind: type) -> FeatureEmbedding:
    features = nn.Sequential(AdaptiveConv2d(2, 2, 3, padding=1), nn.Tanh(), AdaptivePool2d(2))
    inner = (
        kind((3, 4), 2, num_densities=3) if kind is DensityEmbedding2d else located(kind, (3, 4))
    )
    return FeatureEmbedding(features, inner, sizes=(6, 8), in_channels=2)


# Inputs are (batch, 2, *sizes); a name after the layer's is an option.
LAYERS = {
    "DensityEmbedding": (lambda: DensityEmbedding((5, 4), 2, num_densities=3), (5, 4)),
    "DensityEmbedding1d": (lambda: DensityEmbedding1d(6, 2, num_densities=3), (6,)),
    "DensityEmbedding2d": (lambda: DensityEmbedding2d((5, 4), 2, num_densities=3), (5, 4)),
    "DensityEmbedding2d shared": (
        lambda: DensityEmbedding2d(5, 2, num_densities=3, shared=True),
        (5, 5),
    ),
    "DensityEmbedding2d truncate": (
        lambda: DensityEmbedding2d(4, 2, num_densities=3, truncate=True),
        (4, 4),
    ),
    "AdaptiveDensityEmbedding": (lambda: located(AdaptiveDensityEmbedding, (5, 4)), (5, 4)),
    "AdaptiveDensityEmbedding1d": (lambda: located(AdaptiveDensityEmbedding1d, (6,)), (6,)),
    "AdaptiveDensityEmbedding2d": (lambda: located(AdaptiveDensityEmbedding2d, (5, 4)), (5, 4)),
    "AdaptiveDensityEmbedding2d adaptive_scale": (
        lambda: located(AdaptiveDensityEmbedding2d, (5, 4), adaptive_scale=True),
        (5, 4),
    ),
    "FeatureEmbedding": (lambda: on_maps(DensityEmbedding2d), (6, 8)),
    "FeatureEmbedding adaptive": (lambda: on_maps(AdaptiveDensityEmbedding2d), (6, 8)),
    "PixelEmbedding": (lambda: PixelEmbedding((5, 4), 2), (5, 4)),
    "QuadratureEmbedding": (lambda: QuadratureEmbedding(Gaussians(), (5,), 2, order=4), (5,)),
    "DensityLinear": (lambda: DensityLinear(6, 3), (6,)),
    "DensityConv1d": (lambda: DensityConv1d(2, 3, 3, padding=1), (6,)),
    "DensityConv2d": (lambda: DensityConv2d(2, 3, 2, dilation=2), (5, 4)),
    "AdaptiveConv1d": (lambda: AdaptiveConv1d(2, 3, 3, padding=1, start=1.2), (6,)),
    "AdaptiveConv1d proportional": (
        lambda: AdaptiveConv1d(2, 3, 3, start=1.2, stride_mode="proportional"),
        (6,),
    ),
    "AdaptiveConv2d": (lambda: AdaptiveConv2d(2, 3, 2, start=1.2, dilation=2), (6, 5)),
    "AdaptivePool1d": (lambda: AdaptivePool1d(3, 2), (7,)),
    "AdaptivePool2d": (lambda: AdaptivePool2d(2, learn_intervals=True), (4, 6)),
}
each_layer = pytest.mark.parametrize("name", LAYERS)
# A layer and those derived from it, which only give the number of axes: what takes seconds is
# done with the derived ones alone.
WITH_AXES = {
    DensityEmbedding: (DensityEmbedding1d, DensityEmbedding2d),
    AdaptiveDensityEmbedding: (AdaptiveDensityEmbedding1d, AdaptiveDensityEmbedding2d),
}
each_path = pytest.mark.parametrize(
    "name", [name for name in LAYERS if name not in {kind.__name__ for kind in WITH_AXES}]
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def made(name: str, dtype: torch.dtype = torch.float64, batch: int = 2):
    """The layer, its parameters off every kink, and an input."""
    create, sizes = LAYERS[name]
    layer = create().to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += 0.1 * torch.rand_like(parameter)
    return layer, torch.rand(batch, 2, *sizes, dtype=dtype)


def as_function(layer: nn.Module):
    """The layer as a function of its input and its parameters."""
    names = [name for name, _ in layer.named_parameters()]
    values = [value.detach().clone() for value in layer.parameters()]

    def call(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    return call, values


def differences(call, point, direction, step=1e-6):
    """Directional derivative by central differences."""
    ahead = call(*(p + step * d for p, d in zip(point, direction, strict=True)))
    behind = call(*(p - step * d for p, d in zip(point, direction, strict=True)))
    return (ahead - behind) / (2 * step)


def test_every_public_layer_is_here():
    assert {name.partition(" ")[0] for name in LAYERS} == set(layers.__all__)


@pytest.mark.parametrize(
    ("kind", "derived"), [(kind, each) for kind, kinds in WITH_AXES.items() for each in kinds]
)
def test_a_layer_with_a_number_of_axes_is_the_one_without(kind, derived):
    assert derived.__mro__[1] is kind
    assert {name for name in vars(derived) if not name.startswith("__")} == {"axes"}
    # Only the constructor reads it, to compare it with the sizes.
    for each in kind.__mro__[: kind.__mro__.index(nn.Module)]:
        source, constructor = inspect.getsource(each), inspect.getsource(each.__init__)
        assert source.count(".axes") == constructor.count(".axes")


@each_layer
def test_jvp(name):
    layer, x = made(name)
    call, values = as_function(layer)
    point = (x, *values)
    direction = tuple(torch.randn_like(part) for part in point)
    value, tangent = jvp(call, point, direction)
    torch.testing.assert_close(value, layer(x))
    torch.testing.assert_close(tangent, differences(call, point, direction), rtol=1e-5, atol=1e-7)
    # Of the input alone, as for a Jacobian of what a layer sees.
    _, tangent = jvp(layer, (x,), direction[:1])
    expected = differences(layer, (x,), direction[:1])
    torch.testing.assert_close(tangent, expected, rtol=1e-5, atol=1e-7)


@each_layer
def test_jacobians_for_the_input_and_each_parameter(name):
    layer, x = made(name, batch=1)
    call, values = as_function(layer)
    point = (x, *values)
    for index, part in enumerate(point):
        by_rows = jacrev(call, argnums=index)(*point)
        torch.testing.assert_close(jacfwd(call, argnums=index)(*point), by_rows)
        direction = [torch.zeros_like(other) for other in point]
        direction[index] = torch.randn_like(part)
        got = (by_rows * direction[index]).flatten(by_rows.dim() - part.dim()).sum(-1)
        expected = differences(call, point, direction)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@each_path
def test_linearize(name):
    layer, x = made(name)
    slope = grad(lambda x: layer(x).square().sum())
    for call in (layer, slope):
        value, along = linearize(call, x)
        torch.testing.assert_close(value, call(x))
        for _ in range(2):  # the second call shows that the first one changed nothing
            direction = torch.randn_like(x)
            torch.testing.assert_close(along(direction), jvp(call, (x,), (direction,))[1])


@each_layer
def test_second_derivatives(name):
    layer, x = made(name, batch=1)
    call, values = as_function(layer)
    point = tuple(part.requires_grad_() for part in (x, *values))
    assert torch.autograd.gradgradcheck(call, point, atol=1e-4, fast_mode=True)
    # Forward over reverse, both ways round, and the way without torch.func.
    point = tuple(part.detach() for part in point)
    last = len(point) - 1

    def loss(*parts):
        return call(*parts).square().sum()

    expected = hessian(loss, last)(*point)
    got = jacrev(jacfwd(loss, last), last)(*point)
    torch.testing.assert_close(got, expected)
    direction = torch.randn_like(point[last])
    with torch.autograd.forward_ad.dual_level():
        leaf = point[last].clone().requires_grad_()
        dual = torch.autograd.forward_ad.make_dual(leaf, direction)
        (slope,) = torch.autograd.grad(loss(*point[:last], dual), dual)
        got = torch.autograd.forward_ad.unpack_dual(slope).tangent
    flat = expected.reshape(direction.numel(), -1)
    if got is None:
        assert not flat.any()
    else:
        torch.testing.assert_close(got.flatten(), flat @ direction.flatten())


@each_layer
def test_vmap_over_members_and_their_gradients(name):
    layer, x = made(name)
    call, values = as_function(layer)
    members = [torch.stack([value, value + 0.1]) for value in values]
    together = vmap(call, in_dims=(None, *(0 for _ in members)))(x, *members) if members else None

    def loss(x, *values):
        return call(x, *values).square().sum()

    for member in range(2 if members else 0):
        own = [value[member] for value in members]
        torch.testing.assert_close(together[member], call(x, *own))
    each = vmap(grad(loss), in_dims=(0, *(None for _ in values)))(x[:, None], *values)
    for picture, slope in zip(x, each, strict=True):
        torch.testing.assert_close(slope, grad(loss)(picture[None], *values))


@each_path
@pytest.mark.parametrize("training", [False, True])
def test_export_with_a_free_batch(name, training):
    layer, x = made(name, torch.float32, batch=3)
    layer.train(training)
    batch = torch.export.Dim("batch")
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: batch},)).module()
    for count in (1, 2, 300):
        other = torch.rand(count, *x.shape[1:])
        torch.testing.assert_close(exported(other), layer(other), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "linear",
        "mlp-7",
        "logistic-el-3",
        "gaussian-el-8",
        "logistic-el-mnn-4-2",
        "logistic-el-mnn-10-5",
        "cauchy-el-mnn-scale-3-2",
        "adaptive-conv-pool-logistic-el-3",
        "adaptive-conv-pool-logistic-el-mnn-3-2",
        "stages-3-4-logistic-el-mnn-3-2",
        "cnn-3-4",
    ],
)
def test_export_of_networks_with_a_free_batch(name):
    model = build(name)
    batch = torch.export.Dim("batch")
    x = torch.rand(2, 1, 28, 28)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},)).module()
    for count in (1, 5, 200):  # more than the fast path takes at a time
        other = torch.rand(count, 1, 28, 28)
        torch.testing.assert_close(exported(other), model(other), rtol=1e-4, atol=1e-5)


def test_an_exported_layer_learns():
    layer, x = made("AdaptiveDensityEmbedding2d", torch.float32)
    dynamic = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(layer, (x,), dynamic_shapes=dynamic).module()
    for module in (layer, exported):
        module(x).square().sum().backward()
    for name, parameter in layer.named_parameters():
        torch.testing.assert_close(dict(exported.named_parameters())[name].grad, parameter.grad)


@each_layer
@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_trace(name, tmp_path):
    layer, x = made(name, torch.float32)
    torch.jit.trace(layer, (x,)).save(tmp_path / "traced.pt")
    traced = torch.jit.load(tmp_path / "traced.pt")
    x = torch.rand(5, *x.shape[1:])
    torch.testing.assert_close(traced(x), layer(x))
    parameters = dict(layer.named_parameters())
    if parameters:
        for module in (layer, traced):
            module(x).square().sum().backward()
    for key, parameter in traced.named_parameters():
        torch.testing.assert_close(parameter.grad, parameters[key].grad, rtol=1e-4, atol=1e-4)


@each_layer
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_script_is_refused(name):
    layer, _ = made(name)
    with pytest.raises((RuntimeError, torch.jit.frontend.NotSupportedError)):
        torch.jit.script(layer)


@each_layer
def test_symbolic_trace_takes_layers_as_leaves(name):
    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, module, name):
            return type(module) is type(layer) or super().is_leaf_module(module, name)

    layer, x = made(name)
    with pytest.raises(TypeError, match=r"leaf module of the Tracer, or use torch\.export"):
        torch.fx.symbolic_trace(layer)
    network = nn.Sequential(layer, nn.Flatten())
    traced = torch.fx.GraphModule(network, Tracer().trace(network))
    assert torch.equal(traced(x), network(x))


@each_path
def test_compile_as_one_graph(name):
    layer, x = made(name)
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))
    parameters = list(layer.parameters())
    if parameters:
        got = torch.autograd.grad(compiled(x).square().sum(), parameters)
        expected = torch.autograd.grad(layer(x).square().sum(), parameters)
        torch.testing.assert_close(got, expected)


@each_path
def test_compile_around_gradients_of_each_input(name):
    """The compiler has no vmap for functions with gradients of their own, such as those of Γ."""
    layer, x = made(name)
    values = {each: part.detach().expand(2, *part.shape) for each, part in layer.named_parameters()}
    if not values:
        return

    def loss(values, x):
        return functional_call(layer, values, (x[None],)).square().sum()

    def summed(values, x):
        return vmap(loss)(values, x).sum()

    expected = vmap(grad(loss))(values, x)
    torch._dynamo.reset()
    try:
        got = torch.compile(vmap(grad(loss)), backend="aot_eager", fullgraph=True)(values, x)
    except (InternalTorchDynamoError, Unsupported):
        if "Embedding" not in name:
            raise
    else:
        torch.testing.assert_close(got, expected)
    torch._dynamo.reset()
    got = torch.compile(grad(summed), backend="aot_eager", fullgraph=True)(values, x)
    torch.testing.assert_close(got, expected)


# Untruncated images take a path of their own, from `cdf`; everything else takes `mass`, for which
# the second axis only repeats the graph of the first.
DYNAMIC = [
    *((DensityEmbedding2d, family, False) for family in FAMILIES),
    *((DensityEmbedding1d, family, True) for family in FAMILIES),
    (DensityEmbedding1d, "logistic", False),
    (DensityEmbedding2d, "logistic", True),
]


@pytest.mark.parametrize(("kind", "family", "truncate"), DYNAMIC)
def test_compile_with_dynamic_shapes(kind, family, truncate):
    """One graph for every size of the batch."""
    torch._dynamo.reset()
    sizes = (5, 4)[: kind.axes]
    layer = kind(sizes, 2, num_densities=3, family=family, truncate=truncate)
    with torch._dynamo.config.patch(specialize_float=truncate, error_on_recompile=True):
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
        # A first batch as large as another axis would be taken for that axis.
        for count in (3, 7, 2):
            x = torch.rand(count, 2, *sizes)
            torch.testing.assert_close(compiled(x), layer(x))


def with_densities_that_place_densities(axes: int) -> AdaptiveDensityEmbedding:
    sizes = (5, 4)[:axes]
    inner = DensityEmbedding(sizes, 2, num_densities=3)
    locator = nn.Sequential(inner, nn.Flatten(), nn.Linear(6, 6 * axes))
    return AdaptiveDensityEmbedding(locator, sizes, 2, num_densities=3)


@pytest.mark.parametrize("axes", [1, 2])
def test_compile_of_a_micro_network_with_dynamic_shapes(axes):
    torch._dynamo.reset()
    layer = with_densities_that_place_densities(axes)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (3, 7):
        x = torch.rand(count, 2, *(5, 4)[:axes])
        torch.testing.assert_close(compiled(x), layer(x))
        slopes = [
            torch.autograd.grad(network(x).sin().sum(), tuple(layer.parameters()))
            for network in (compiled, layer)
        ]
        torch.testing.assert_close(*slopes)


@each_layer
def test_forward_modes_within_one_another(name):
    """Torch calls the jvp of a function with forward mode off."""
    layer, x = made(name)
    along, along_too = torch.rand_like(x), torch.rand_like(x)

    def first(x):
        return torch.func.jvp(lambda x: layer(x).sin().sum(), (x,), (along,))[1]

    def second(x):
        return torch.func.jvp(first, (x,), (along_too,))[1]

    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(layer(x).sin().sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad((slope * along).sum(), x, create_graph=True)
    wanted = (curve * along_too).sum()
    torch.testing.assert_close(second(x.detach()), wanted.detach())
    third = torch.func.jvp(second, (x.detach(),), (along,))[1]
    (twist,) = torch.autograd.grad(wanted, x)
    torch.testing.assert_close(third, (twist * along).sum(), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("truncate", [False, True])
def test_forward_modes_within_one_another_by_parameters(truncate):
    layer = DensityEmbedding2d(5, num_densities=2, truncate=truncate).double()
    x, beta = torch.rand(3, 1, 5, 5).double(), layer.beta.detach()

    def loss(alpha):
        values = {"alpha": alpha, "beta": beta}
        return torch.func.functional_call(layer, values, (x,)).sin().sum()

    alpha = layer.alpha.detach()
    forward = torch.func.jacfwd(torch.func.jacfwd(loss))(alpha)
    backward = torch.func.jacrev(torch.func.jacrev(loss))(alpha)
    torch.testing.assert_close(forward, backward)


@each_layer
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_batched_gradients_of_autograd(name, strategy):
    layer, x = made(name)
    y = layer(x)
    inputs = [*layer.parameters(), x.requires_grad_()]
    expected = jacobian(layer, x)
    each = torch.eye(y.numel(), dtype=y.dtype).unflatten(-1, y.shape)
    calls = [
        lambda: jacobian(layer, x, vectorize=True, strategy=strategy),
        lambda: torch.autograd.grad(layer(x), inputs, each, is_grads_batched=True)[-1],
    ]
    for call in calls:
        try:
            got = call().reshape(expected.shape)
        except RuntimeError as error:
            if "Embedding" not in name or "Use jacrev, jacfwd, hessian or vmap" not in str(error):
                raise
        else:
            torch.testing.assert_close(got, expected)


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@each_layer
@pytest.mark.parametrize("own", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_an_input_of_another_dtype_is_refused(name, own, other):
    layer, x = made(name, own)
    if own == other or name == "PixelEmbedding":
        assert layer(x.to(other)).dtype == other
        return
    message = (
        f"Expected an input of {own}, the dtype of the layer's parameters; got {other}. "
        f"Convert the input with x.to({own}) or the layer with layer.to({other})."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        layer(x.to(other))


@each_layer
@pytest.mark.parametrize("other", [torch.uint8, torch.int8, torch.int64, torch.bool])
def test_integers_are_refused(name, other):
    layer, x = made(name, torch.float32)
    message = (
        rf"^Expected a floating-point input; got {other}\. Convert it with "
        r"x\.to\(torch\.float32\), and divide pixel values of 0 to 255 by 255\.$"
    )
    with pytest.raises(ValueError, match=message):
        layer(x.to(other))


@each_layer
def test_complex_inputs_are_refused(name):
    layer, x = made(name, torch.float32)
    with pytest.raises(
        ValueError, match=r"^Expected a real input; got torch\.complex64\. Give its"
    ):
        layer(torch.complex(x, x))


@each_layer
def test_an_input_that_is_no_tensor_is_refused(name):
    layer, x = made(name, torch.float32)
    for wrong, message in (
        (x.numpy(), "got numpy.ndarray. Convert it with torch.from_numpy(x)."),
        (x.tolist(), "got builtins.list. Convert it with torch.tensor(x)."),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            layer(wrong)


@each_layer
@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about the kinds of tensors
def test_an_input_that_is_not_dense_is_refused(name):
    layer, x = made(name, torch.float32)
    quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    for wrong, message in (
        (x.to_sparse(), "got a torch.sparse_coo tensor. Convert it with x.to_dense()."),
        (x.to_mkldnn(), "got a torch._mkldnn tensor. Convert it with x.to_dense()."),
        (x[:, 0].flatten(1).to_sparse_csr(), "got a torch.sparse_csr tensor."),
        (torch.nested.nested_tensor([*x]), "got a nested tensor. Convert it with x.to_padded"),
        (quantized, "got a quantized tensor. Convert it with x.dequantize()."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            layer(wrong)


@each_layer
def test_an_input_on_another_device_is_refused(name):
    layer, x = made(name, torch.float32)
    if name == "PixelEmbedding":  # it has no parameters
        assert layer(x.to("meta")).is_meta
        return
    message = (
        "Expected an input on cpu, the device of the layer's parameters; got meta. "
        "Move the input with x.to('cpu') or the layer with layer.to('meta')."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        layer(x.to("meta"))
    assert layer.to("meta")(x.to("meta")).is_meta


@each_layer
@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_autocast_takes_what_it_converts(name, given):
    layer, x = made(name, torch.float32)
    exact = layer(x.to(given).float())
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x.to(given))
    torch.testing.assert_close(y.float(), exact, rtol=0.05, atol=0.05)
    parameters = list(layer.parameters())
    if parameters:
        slopes = torch.autograd.grad(y.float().sum(), parameters)
        assert all(slope.isfinite().all() for slope in slopes)
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="float64"):
            layer(x.double())


@each_layer
def test_weights_are_loaded_into_a_layer_without_memory(name, monkeypatch):
    """Buffers that are not in the state were left unset, or on the device meta."""
    create, _ = LAYERS[name]
    layer, x = made(name)
    expected, state = layer(x), layer.state_dict()
    with torch.device("meta"):
        emptied, assigned = create(), create()
    empty_like = torch.empty_like  # any memory may be uninitialised
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: empty_like(*a, **k).fill_(math.nan))
    emptied = emptied.double().to_empty(device="cpu")
    emptied.load_state_dict(state)
    torch.testing.assert_close(emptied(x), expected, rtol=0, atol=0)
    assigned.load_state_dict(state, assign=True)
    torch.testing.assert_close(assigned(x), expected, rtol=0, atol=0)
    wide = create()  # in float32, before the parameters are replaced
    wide.load_state_dict(state, assign=True)
    torch.testing.assert_close(wide(x), expected, rtol=0, atol=0)
    if hasattr(layer, "receptive_field"):
        for one in (emptied, assigned, wide):
            field = layer.receptive_field(x)
            torch.testing.assert_close(one.receptive_field(x), field, check_dtype=False)


# The rows of the table, each with the test that shows it, for every layer.
ROWS = {
    "`torch.func.jvp`": test_jvp,
    "`torch.func.jacfwd`, `jacrev`": test_jacobians_for_the_input_and_each_parameter,
    "`torch.func.linearize`": test_linearize,
    "second derivatives, `hessian`": test_second_derivatives,
    "`torch.func.vmap`": test_vmap_over_members_and_their_gradients,
    "`torch.export`, free batch": test_export_with_a_free_batch,
    "`torch.jit.trace`": test_trace,
    "`torch.jit.script`": test_script_is_refused,
    "`torch.fx.symbolic_trace`": test_symbolic_trace_takes_layers_as_leaves,
    "`torch.compile`": test_compile_as_one_graph,
    "`torch.compile`, `dynamic=True`": test_compile_with_dynamic_shapes,
    "`torch.compile` around `vmap(grad(loss))`": test_compile_around_gradients_of_each_input,
    "`is_grads_batched`, `vectorize` of `torch.autograd`": test_batched_gradients_of_autograd,
    "the device `meta`, `to_empty`, `load_state_dict(assign=True)`": (
        test_weights_are_loaded_into_a_layer_without_memory
    ),
    "autocast": test_autocast_takes_what_it_converts,
    "an input of another dtype": test_an_input_of_another_dtype_is_refused,
    "an input of integers": test_integers_are_refused,
    "a sparse, nested or quantized input": test_an_input_that_is_not_dense_is_refused,
    "an array or a list as input": test_an_input_that_is_no_tensor_is_refused,
    "an input on another device": test_an_input_on_another_device_is_refused,
}


@each_layer
def test_is_built_on_the_default_device_and_dtype(name):
    with torch.device("meta"):
        layer = LAYERS[name][0]()
    assert all(part.is_meta for part in (*layer.parameters(), *layer.buffers()))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        create, sizes = LAYERS[name]
        assert create()(torch.rand(2, 2, *sizes)).dtype == torch.float64
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("resolution", [0, -1, 1.5, "2", True])
@each_layer
def test_a_resolution_is_a_positive_integer(name, resolution):
    layer, x = made(name)
    if hasattr(layer, "receptive_field"):
        with pytest.raises(ValueError, match=rf"resolution .*; got {resolution!r}\.$"):
            layer.receptive_field(x, resolution=resolution)


@each_layer
def test_a_resolution_may_be_a_numpy_integer(name):
    """The product of one with a size wrapped around."""
    layer, x = made(name)
    if hasattr(layer, "receptive_field"):
        field = layer.receptive_field(x, resolution=np.uint8(50))
        assert torch.equal(field, layer.receptive_field(x, resolution=50))


@each_layer
def test_a_resolution_has_a_limit(name):
    layer, x = made(name)
    if hasattr(layer, "receptive_field"):
        with pytest.raises(ValueError, match=r"more than 16,777,216 cells along an axis: lower"):
            layer.receptive_field(x, resolution=2**24)


def test_the_table_has_a_row_for_each_test():
    table = PAGE.partition("| interface |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (.*?) \| ", table, re.M)[1:] == list(ROWS)
