import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call, vmap

from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    DensityConv1d,
    DensityConv2d,
    DensityLinear,
)

# Said of the reference, for an even kernel with padding "same".
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")

DENSITY = {nn.Conv1d: DensityConv1d, nn.Conv2d: DensityConv2d}
ADAPTIVE = {nn.Conv1d: AdaptiveConv1d, nn.Conv2d: AdaptiveConv2d}
MODES = [
    {"amplitude": amplitude, "stride_mode": stride_mode}
    for amplitude in ("layer", "channel")
    for stride_mode in ("fixed", "proportional")
]


@st.composite
def convolutions(draw, dilated):
    """A torch convolution in float64 and an input that it accepts."""
    kind = draw(st.sampled_from([nn.Conv1d, nn.Conv2d]))
    axes = 1 if kind is nn.Conv1d else 2

    def per_axis(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(axes))

    groups = draw(st.integers(1, 2))
    kernel, stride = per_axis(1, 4), per_axis(1, 3)
    padding = draw(st.sampled_from(["valid", "same", per_axis(0, 3)]))
    if padding == "same":
        stride = (1,) * axes
    module = kind(
        groups * draw(st.integers(1, 2)),
        groups * draw(st.integers(1, 2)),
        kernel,
        stride,
        padding,
        per_axis(1, 3) if dilated else 1,
        groups,
        draw(st.booleans()),
    ).double()
    sizes = per_axis(1, 9)
    around = [0] * axes if isinstance(padding, str) else [2 * pad for pad in padding]
    spans = [d * (k - 1) + 1 for d, k in zip(module.dilation, kernel, strict=True)]
    if padding == "same":
        around = [span - 1 for span in spans]
    assume(all(n + a >= span for n, a, span in zip(sizes, around, spans, strict=True)))
    x = torch.randn(draw(st.integers(0, 2)), module.in_channels, *sizes).double()
    return module, x


def assert_same(layer, reference, x):
    """Equal values, and equal gradients of the input, the weights and the bias."""
    x.requires_grad_()
    y, expected = layer(x), reference(x)
    assert y.shape == expected.shape
    assert torch.allclose(y, expected, atol=1e-12)
    grad = torch.randn_like(y)
    shared = [p for name, p in layer.named_parameters() if name != "amplitude_logit"]
    for got, want in zip(
        torch.autograd.grad(y, [x, *shared], grad),
        torch.autograd.grad(expected, [x, *reference.parameters()], grad),
        strict=True,
    ):
        assert torch.allclose(got, want, atol=1e-12)


@settings(max_examples=60)
@given(convolutions(dilated=True))
def test_density_convolution_equals_torch(drawn):
    reference, x = drawn
    layer = DENSITY[type(reference)].from_torch(reference)
    assert layer.state_dict().keys() == reference.state_dict().keys()
    assert_same(layer, reference, x)


@settings(max_examples=60)
@given(convolutions(dilated=True), st.sampled_from(MODES), st.booleans())
def test_adaptive_convolution_equals_torch_where_p_is_k(drawn, mode, normalize):
    reference, x = drawn
    layer = ADAPTIVE[type(reference)].from_torch(reference, normalize=normalize, **mode)
    assert torch.equal(layer.amplitude()[0], torch.tensor(reference.kernel_size).double())
    assert_same(layer, reference, x)


def printed_gamma(layer, axis, channel, count, size):
    """Γ^l_in(p) of Section 3.3, term by term, in Python's floats."""
    K, S = layer.kernel_size[axis], layer.stride[axis]
    amplitude = layer.amplitude().tolist()
    p = amplitude[channel % len(amplitude)][axis]
    if layer.stride_mode == "proportional":
        S = S * p / K
    height = K / p if layer.normalize else 1
    before = layer.padding[axis][0]
    table = torch.zeros(count, K, size).double()
    for l in range(1, count + 1):  # noqa: E741 - the paper's name
        for i in range(1, K + 1):
            for n in range(1, size + 1):
                at = n + before  # the same pixel, counted from the padded edge
                start = layer.dilation[axis] * (i - 1)
                upper = min(at, (l - 1) * S + p / K * (start + 1))
                lower = max(at - 1, (l - 1) * S + p / K * start)
                table[l - 1, i - 1, n - 1] = height * max(0.0, upper - lower)
    return table


@settings(max_examples=40)
@given(
    convolutions(dilated=True),
    st.sampled_from(MODES),
    st.booleans(),
    st.sampled_from([(0.1, 3.0), (0.5, 1.5), (0.9, 2.05)]),
    st.integers(0, 99),
)
def test_adaptive_convolution_equals_the_printed_gamma(drawn, mode, normalize, bounds, seed):
    reference, x = drawn
    layer = ADAPTIVE[type(reference)].from_torch(
        reference, normalize=normalize, bounds=bounds, **mode
    )
    noise = torch.randn(layer.amplitude_logit.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        layer.amplitude_logit += 2 * noise
    y = layer(x)
    counts, sizes = y.shape[2:], x.shape[2:]
    assert counts == reference(x).shape[2:]  # L does not depend on p
    gammas = layer.gamma(x)
    inputs = x.unflatten(1, (layer.groups, -1))
    outputs_per_group = layer.out_channels // layer.groups
    for o in range(layer.out_channels):
        tables = []
        for axis, (count, size) in enumerate(zip(counts, sizes, strict=True)):
            table = printed_gamma(layer, axis, o, count, size)
            assert torch.allclose(gammas[axis][o % len(gammas[axis])], table, atol=1e-12)
            tables.append(table)
        rule = "bcn,lin,ci->bl" if len(counts) == 1 else "bcmn,kim,ljn,cij->bkl"
        expected = torch.einsum(rule, inputs[:, o // outputs_per_group], *tables, layer.weight[o])
        if layer.bias is not None:
            expected = expected + layer.bias[o]
        assert torch.allclose(y[:, o], expected, atol=1e-11)


def test_density_convolution_has_the_printed_gamma():
    layer = DensityConv1d(1, 1, 3, stride=2, padding=1, dilation=2)
    (table,) = layer.gamma(torch.zeros(1, 1, 8))
    expected = torch.zeros(1, 3, 3, 8)
    for position in range(3):
        for tap in range(3):
            pixel = 2 * position + 2 * tap - 1
            if 0 <= pixel < 8:
                expected[0, position, tap, pixel] = 1
    assert torch.equal(table, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("start", [0.61, 1.0, 1.37])
@pytest.mark.parametrize("kind", [AdaptiveConv1d, AdaptiveConv2d])
def test_gradients(kind, mode, start):
    """At p = K there is a kink; the central difference is the mean that the gradient takes."""
    torch.manual_seed(0)
    layer = kind(2, 2, 3, stride=2, padding=1, start=start, normalize=True, **mode).double()
    names = [name for name, _ in layer.named_parameters()]
    x = torch.randn(1, 2, *[5] * layer.axes).double().requires_grad_()

    def call(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert gradcheck(call, (x, *values))


def test_fixed_stride_reads_no_more_pixels_than_the_bound():
    # The convolution that runs has ⌈b⌉ taps: independent of L, and exact.
    layer = AdaptiveConv1d(1, 1, 4, bounds=(0.5, 1.6))
    assert layer.gamma()[0].shape == (1, 1, 4, 7)
    with torch.no_grad():
        layer.amplitude_logit.fill_(1e9)
    assert layer.amplitude().item() == pytest.approx(6.4)
    x = torch.zeros(1, 1, 10)
    x[..., 6] = 1
    assert torch.allclose(
        layer(x)[0, 0, 0], layer.bias[0] + layer.weight[0, 0, 3] * torch.tensor(0.4)
    )


def test_amplitude_is_learned_within_its_bounds():
    """A wide box filter is matched by three taps, with a stock optimiser and no clamp."""
    torch.manual_seed(0)
    target = nn.Conv1d(1, 1, 4, bias=False)
    nn.init.ones_(target.weight)
    layer = AdaptiveConv1d(1, 1, 3, bias=False, lr_scale=3.0)
    nn.init.ones_(layer.weight)
    layer.weight.requires_grad_(False)
    optimiser = torch.optim.Adam([layer.amplitude_logit], lr=0.02)
    for _ in range(150):
        x = torch.randn(32, 1, 20)
        loss = (layer(x)[..., :17] - target(x)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert layer.amplitude().item() == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize("logit", [-1e9, 1e9])
@pytest.mark.parametrize("mode", MODES)
def test_extreme_logits_stay_finite(mode, logit):
    layer = AdaptiveConv2d(1, 2, 3, bounds=(0.1, 2.5), normalize=True, **mode)
    with torch.no_grad():
        layer.amplitude_logit.fill_(logit)
    y = layer(torch.randn(2, 1, 7, 6))
    y.sum().backward()
    assert y.shape == (2, 2, 5, 4)
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


def test_lr_scale_leaves_the_function():
    torch.manual_seed(0)
    reference = nn.Conv1d(1, 2, 3)
    x = torch.randn(2, 1, 9)
    one, ten = (
        AdaptiveConv1d.from_torch(reference, start=1.2, lr_scale=scale) for scale in (1.0, 10.0)
    )
    assert torch.allclose(one(x), ten(x), atol=1e-6)
    assert torch.allclose(one.amplitude_logit, 10 * ten.amplitude_logit)


def test_receptive_field_of_one_position():
    layer = AdaptiveConv2d(1, 3, (2, 1), stride=2, padding=1, start=0.75, normalize=True)
    x = torch.zeros(1, 1, 6, 5)
    field = layer.receptive_field(x, resolution=8, position=(1, 2))
    assert field.shape == (1, 1, 2, 48, 40)
    rows, columns = layer.gamma(x)
    by_pixel = field.reshape(2, 6, 8, 5, 8).mean((2, 4))  # ends are eighths: cells are exact
    expected = torch.einsum("im,jn->ijmn", rows[0, 1], columns[0, 2]).flatten(0, 1)
    assert torch.allclose(by_pixel, expected, atol=1e-6)
    middle = layer.receptive_field(
        x, resolution=8, position=tuple(n // 2 for n in layer(x).shape[2:])
    )
    assert torch.equal(layer.receptive_field(x, resolution=8), middle)
    with pytest.raises(ValueError, match=r"Expected a position below \(4, 4\); got \(4, 0\)"):
        layer.receptive_field(x, position=(4, 0))


@pytest.mark.parametrize("amplitude", ["layer", "channel"])
def test_views_without_an_input_show_one_whole_window(amplitude):
    layer = AdaptiveConv2d(1, 3, (3, 2), padding=1, amplitude=amplitude, start=1.25)
    channels = 1 if amplitude == "layer" else 3
    assert [tuple(table.shape) for table in layer.gamma()] == [
        (channels, 1, 3, 5),
        (channels, 1, 2, 3),
    ]
    field = layer.receptive_field(resolution=16)
    assert field.shape == (1, channels, 6, 80, 48)
    mass = field.sum((-1, -2)) / 16**2
    assert torch.allclose(mass, torch.tensor(1.25**2), atol=0.15)  # height 1, area (p/K)²


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [AdaptiveConv1d, AdaptiveConv2d])
def test_vmap_over_members(kind, mode):
    layer = kind(2, 4, 3, padding=1, groups=2, **mode)
    members = {
        name: torch.stack([p, p + 0.3 * torch.randn_like(p)])
        for name, p in layer.named_parameters()
    }
    x = torch.randn(3, 2, *[6] * layer.axes)
    together = vmap(lambda p: functional_call(layer, p, (x,)))(members)
    for m in range(2):
        alone = functional_call(layer, {name: p[m] for name, p in members.items()}, (x,))
        assert torch.allclose(together[m], alone, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_compiles_as_one_graph(mode):
    torch._dynamo.reset()
    layer = AdaptiveConv2d(2, 4, 3, padding=1, groups=2, normalize=True, **mode)
    x = torch.randn(2, 2, 6, 5)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    compiled(x).sum().backward()
    grads = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    layer(x).sum().backward()
    assert all(
        torch.allclose(p.grad, g, atol=1e-5) for p, g in zip(layer.parameters(), grads, strict=True)
    )


@pytest.mark.parametrize("mode", MODES)
def test_bfloat16(mode):
    layer = AdaptiveConv1d(2, 4, 3, start=1.3, **mode)
    x = torch.randn(2, 2, 20)
    expected = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = layer(x)
    assert cast.dtype == torch.bfloat16
    assert torch.allclose(cast.float(), expected, atol=0.05)
    half = layer.to(torch.bfloat16)(x.bfloat16())
    assert half.dtype == torch.bfloat16
    assert torch.allclose(half.float(), expected, atol=0.05)


@pytest.mark.parametrize("mode", MODES)
def test_follows_to_device(mode):
    layer = AdaptiveConv2d(2, 4, 3, padding=1, normalize=True, **mode).to("meta")
    x = torch.empty(2, 2, 6, 5, device="meta")
    y = layer(x)
    y.sum().backward()
    views = [y, layer.receptive_field(x), layer.receptive_field(), *layer.gamma(x)]
    assert {view.device.type for view in views} == {"meta"}
    assert DensityConv2d(2, 4, 3).to("meta")(x).device.type == "meta"


def test_state_dict_round_trip_and_torch_weights():
    layer = AdaptiveConv1d(2, 4, 3, amplitude="channel", start=0.8)
    other = AdaptiveConv1d(2, 4, 3, amplitude="channel")
    other.load_state_dict(layer.state_dict())
    x = torch.randn(1, 2, 9)
    assert torch.equal(layer(x), other(x))
    assert set(layer.state_dict()) == {"weight", "bias", "amplitude_logit"}
    reference = nn.Conv1d(2, 4, 3)
    DensityConv1d(2, 4, 3).load_state_dict(reference.state_dict())
    torch.manual_seed(5)
    reference = nn.Conv1d(2, 4, 3)
    torch.manual_seed(5)
    assert torch.equal(AdaptiveConv1d(2, 4, 3).weight, reference.weight)


@pytest.mark.parametrize("kind", [DensityConv1d, AdaptiveConv1d])
@pytest.mark.parametrize(("kernel", "padding", "length"), [(1, 0, 7), (4, 0, 4), (4, 2, 8)])
def test_kernel_of_one_and_of_even_size(kind, kernel, padding, length):
    assert kind(1, 1, kernel, padding=padding)(torch.zeros(1, 1, 7)).shape == (1, 1, length)


@pytest.mark.parametrize("kind", [DensityConv2d, AdaptiveConv2d])
def test_inputs_that_do_not_fit(kind):
    layer = kind(2, 1, (3, 5), padding=1)
    with pytest.raises(ValueError, match=r"at least 5 pixels.*got 2 with padding \(1, 1\)"):
        layer(torch.zeros(1, 2, 4, 2))
    with pytest.raises(ValueError, match=r"\(batch, 2, height, width\); got \(1, 3, 9, 9\)"):
        layer(torch.zeros(1, 3, 9, 9))
    with pytest.raises(ValueError, match=r"got \(2, 9, 9\)"):
        layer(torch.zeros(2, 9, 9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": 0}, "kernel_size to be an integer of at least 1"),
        ({"kernel_size": 2.5}, "kernel_size"),
        ({"stride": 0}, "stride"),
        ({"dilation": 0}, "dilation to be an integer of at least 1"),
        ({"padding": -1}, "padding to be an integer of at least 0"),
        ({"padding": "reflect"}, "'same', 'valid' or integers; got 'reflect'"),
        ({"padding": "same", "stride": 2}, "stride 1 with padding 'same'"),
        ({"groups": 3}, "divisible by groups"),
        ({"out_channels": 0}, "out_channels"),
        ({"amplitude": "pixel"}, "'layer' or 'channel'; got 'pixel'"),
        ({"stride_mode": "free"}, "'fixed' or 'proportional'; got 'free'"),
        ({"bounds": (0, 2)}, "0 < a < b"),
        ({"bounds": (1, math.inf)}, "0 < a < b"),
        ({"bounds": 1.5}, "0 < a < b, as multiples of K; got 1.5"),
        ({"bounds": (0.5, 1, 2)}, "0 < a < b"),
        ({"start": 1.5}, "strictly between 0.5 and 1.5; got 1.5"),
        ({"lr_scale": 0}, "positive lr_scale"),
        ({"lr_scale": "2"}, "positive lr_scale; got '2'"),
        ({"start": "1"}, "positive start; got '1'"),
        ({"in_channels": 0}, "in_channels to be an integer of at least 1; got 0"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    arguments = {"in_channels": 2, "out_channels": 2, "kernel_size": 3} | arguments
    with pytest.raises(ValueError, match=message):
        AdaptiveConv2d(**arguments)


def test_modules_that_are_refused():
    with pytest.raises(ValueError, match=r"Expected nn\.Conv1d; got Conv2d"):
        DensityConv1d.from_torch(nn.Conv2d(1, 1, 3))
    for lazy, kind in (
        (nn.LazyConv2d(1, 3), DensityConv2d),
        (nn.LazyConv2d(1, 3), AdaptiveConv2d),
        (nn.LazyLinear(3), DensityLinear),
    ):
        with pytest.raises(ValueError, match=r"This Lazy\w+ has no weights yet: call it once"):
            kind.from_torch(lazy)
    with pytest.raises(ValueError, match="padding_mode 'zeros'; got 'circular'"):
        DensityConv1d.from_torch(nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular"))
