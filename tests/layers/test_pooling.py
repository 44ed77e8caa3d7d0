import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call, vmap

from densembed.layers import AdaptivePool1d, AdaptivePool2d

AVERAGE = {AdaptivePool1d: nn.AvgPool1d, AdaptivePool2d: nn.AvgPool2d}
KINDS = list(AVERAGE)


@st.composite
def pools(draw):
    """A kind of pooling, its (kernel_size, stride, padding), and an input that it accepts."""
    kind = draw(st.sampled_from(KINDS))

    def per_axis(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(kind.axes))

    kernel, stride = per_axis(1, 4), per_axis(1, 4)
    padding = tuple(draw(st.integers(0, size // 2)) for size in kernel)
    sizes = per_axis(1, 8)
    fits = zip(sizes, padding, kernel, strict=True)
    assume(all(size + 2 * pad >= taps for size, pad, taps in fits))
    x = torch.randn(draw(st.integers(0, 2)), draw(st.integers(1, 3)), *sizes).double()
    return kind, (kernel, stride, padding), x


def average(kind, x, window):
    if kind is AdaptivePool2d:
        return F.avg_pool2d(x, *window, count_include_pad=False)
    return F.avg_pool1d(x, *window, count_include_pad=False)


def extreme(kind, x, window, sign):
    pool = F.max_pool2d if kind is AdaptivePool2d else F.max_pool1d
    return sign * pool(sign * x, *window)


@settings(max_examples=60)
@given(pools(), st.booleans(), st.booleans())
def test_average_pooling_where_beta_is_zero(drawn, learn_intervals, by_channel):
    kind, window, x = drawn
    how = {"beta": "channel", "channels": x.shape[1]} if by_channel else {}
    layer = kind(*window[:2], padding=window[2], learn_intervals=learn_intervals, **how).double()
    x.requires_grad_()
    y, expected = layer(x), average(kind, x, window)
    assert y.shape == expected.shape
    assert torch.allclose(y, expected, atol=1e-12)
    grad = torch.randn_like(y)
    got, want = (torch.autograd.grad(out, x, grad)[0] for out in (y, expected))
    assert torch.allclose(got, want, atol=1e-12)


@settings(max_examples=60)
@given(pools(), st.sampled_from([-1e6, -1e3, -3.0, 3.0, 1e3, 1e6]))
def test_maximum_and_minimum_to_within_log_k_over_beta(drawn, beta):
    kind, window, x = drawn
    x = x.float().requires_grad_()
    layer = kind(*window[:2], padding=window[2])
    with torch.no_grad():
        layer.beta.fill_(beta)
    y = layer(x)
    sign = math.copysign(1, beta)
    below = sign * (extreme(kind, x, window, sign) - y)
    pixels = math.prod(window[0])
    assert (below >= -1e-5).all()
    assert (below <= math.log(pixels) / abs(beta) + 1e-5).all()
    y.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(layer.beta.grad).all()
    # Every output's weights sum to 1, so moving the whole signal moves every output.
    assert x.grad.sum().item() == pytest.approx(y.numel(), rel=1e-3, abs=1e-3)


def printed_pool(layer, x):
    """Σ_n Γ_in x_n of Section 3.4, pixel by pixel, in Python's floats: (batch, C, ΠL, *sizes)."""
    sizes = x.shape[2:]
    overlaps = []
    for axis, size in enumerate(sizes):
        K, S, P = layer.kernel_size[axis], layer.stride[axis], layer.padding[axis]
        a, b = (end.item() for end in layer.ends(axis))
        table = torch.zeros((size + 2 * P - K) // S + 1, size).double()
        for position in range(len(table)):
            start = position * S - P
            for n in range(1, size + 1):
                table[position, n - 1] = max(0.0, min(n, start + b) - max(n - 1, start + a))
        overlaps.append(table)
    mass = overlaps[0] if len(sizes) == 1 else torch.einsum("km,ln->klmn", *overlaps).flatten(0, 1)
    beta = layer.beta.reshape(1, -1, *[1] * (len(sizes) + 1)).double()
    tilted = mass * torch.exp(beta * x.unsqueeze(2))
    return tilted / tilted.sum(tuple(range(3, tilted.dim())), keepdim=True)


@settings(max_examples=50)
@given(pools(), st.booleans(), st.integers(0, 99))
def test_equals_the_printed_gamma(drawn, by_channel, seed):
    kind, window, x = drawn
    how = {"beta": "channel", "channels": x.shape[1]} if by_channel else {}
    layer = kind(
        *window[:2], padding=window[2], learn_intervals=True, min_length=0.3, **how
    ).double()
    torch.manual_seed(seed)
    with torch.no_grad():
        layer.beta += torch.randn_like(layer.beta)
        layer.ends_logit += 3 * torch.randn_like(layer.ends_logit)
    gamma = printed_pool(layer, x)
    assert torch.allclose(layer.gamma(x), gamma, atol=1e-12)
    expected = (gamma * x.unsqueeze(2)).flatten(3).sum(-1)
    assert torch.allclose(layer(x).flatten(2), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    torch.manual_seed(1)
    layer = kind(
        3, 2, padding=1, beta="channel", channels=2, learn_intervals=True, lr_scale=2.0
    ).double()
    x = torch.randn(1, 2, *[5] * kind.axes).double().requires_grad_()
    beta = torch.tensor([0.7, -1.1]).double().requires_grad_()
    ends = (torch.rand(kind.axes, 2).double() + 0.2).requires_grad_()  # off the pixels' edges

    def call(x, beta, ends):
        return functional_call(layer, {"beta": beta, "ends_logit": ends}, (x,))

    assert gradcheck(call, (x, beta, ends))


@pytest.mark.parametrize("logits", [(-1e9, -1e9), (-1e9, 1e9), (1e9, -1e9), (1e9, 1e9)])
@pytest.mark.parametrize("kind", KINDS)
def test_learned_ends_keep_the_least_length_at_any_logit(kind, logits):
    layer = kind(4, 1, padding=2, learn_intervals=True, min_length=0.5)
    with torch.no_grad():
        layer.ends_logit.copy_(torch.tensor(logits).expand(kind.axes, 2))
        layer.beta.fill_(50.0)
    lower, upper = layer.ends(0)
    assert 0.5 <= (upper - lower).item() <= 7.5
    x = torch.randn(2, 1, *[5] * kind.axes, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape[2:] == (6,) * kind.axes
    assert torch.isfinite(y).all()
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(layer.ends_logit.grad).all()


def test_no_nan_at_the_start_of_learned_ends():
    layer = AdaptivePool2d(2, learn_intervals=True)
    layer(torch.randn(2, 3, 6, 6)).square().sum().backward()
    assert torch.isfinite(layer.ends_logit.grad).all()
    assert (layer.ends_logit.grad != 0).all()


@pytest.mark.parametrize("sign", [-1, 1])
def test_beta_learns_the_kind_of_pooling(sign):
    torch.manual_seed(0)
    layer = AdaptivePool1d(4)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.2)
    first = None
    for _ in range(80):
        x = torch.randn(64, 1, 16)
        loss = (layer(x) - sign * F.max_pool1d(sign * x, 4)).square().mean()
        first = first or loss.item()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert sign * layer.beta.item() > 3
    assert loss.item() < first / 20


def test_ends_are_learned():
    """A window of 3 pixels finds that only its middle one matters."""
    torch.manual_seed(0)
    layer = AdaptivePool1d(3, learn_intervals=True, lr_scale=2.0)
    layer.beta.requires_grad_(False)
    optimiser = torch.optim.Adam([layer.ends_logit], lr=0.05)
    for _ in range(150):
        x = torch.randn(32, 1, 15)
        loss = (layer(x) - x[..., 1::3]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.02
    lower, upper = layer.ends(0)
    assert lower.item() > 0.9
    assert upper.item() < 2.1


@pytest.mark.parametrize("kind", KINDS)
def test_receptive_field_integrates_to_gamma(kind):
    layer = kind(3, 2, padding=1, learn_intervals=True)
    with torch.no_grad():
        layer.beta.fill_(0.8)
        # The ends then lie on quarters of a pixel: travel is 1.25, moved by −1 and −0.75.
        fraction = torch.tensor([0.1, 0.2])
        layer.ends_logit.copy_(torch.log(fraction / (1 - fraction)).expand(kind.axes, 2))
    x = torch.randn(2, 2, *[6] * kind.axes)
    gamma = layer.gamma(x)
    field = layer.receptive_field(x, resolution=4)
    assert field.shape == (2, 2, 3**kind.axes, *[24] * kind.axes)
    cells = field.unflatten(3, (6, 4)).mean(4)
    if kind.axes == 2:
        cells = cells.unflatten(4, (6, 4)).mean(5)
    assert torch.allclose(cells, gamma, atol=1e-5)
    assert torch.allclose(gamma.flatten(3).sum(-1), torch.tensor(1.0), atol=1e-5)


@pytest.mark.parametrize("view", ["gamma", "receptive_field"])
def test_views_need_the_input(view):
    with pytest.raises(ValueError, match="depend on the input; pass x"):
        getattr(AdaptivePool1d(2), view)()


@pytest.mark.parametrize("kind", KINDS)
def test_from_torch(kind):
    reference = AVERAGE[kind](3, 2, 1, count_include_pad=False)
    x = torch.randn(2, 3, *[7] * kind.axes)
    layer = kind.from_torch(reference, beta="channel", channels=3)
    assert torch.allclose(layer(x), reference(x), atol=1e-6)
    assert kind.from_torch(AVERAGE[kind](3)).stride == (3,) * kind.axes
    for module in (AVERAGE[kind](3, 2, 1), AVERAGE[kind](3, ceil_mode=True)):
        with pytest.raises(ValueError, match="without ceil_mode"):
            kind.from_torch(module)
    with pytest.raises(ValueError, match=r"Expected nn\.AvgPool.d; got Identity"):
        kind.from_torch(nn.Identity())


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_compile_and_state_dict(kind):
    torch._dynamo.reset()
    layer = kind(3, 2, padding=1, beta="channel", channels=2, learn_intervals=True)
    x = torch.randn(3, 2, *[6] * kind.axes)
    members = {name: torch.randn(2, *p.shape) for name, p in layer.named_parameters()}
    together = vmap(lambda p: functional_call(layer, p, (x,)))(members)
    for m in range(2):
        layer.load_state_dict({name: p[m] for name, p in members.items()})
        assert torch.allclose(together[m], layer(x), atol=1e-5)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x), atol=1e-6)


def test_bfloat16():
    layer = AdaptivePool2d(3, 2, learn_intervals=True)
    with torch.no_grad():
        layer.beta.fill_(2.0)
    x = torch.randn(2, 1, 7, 7).bfloat16()
    expected = layer(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = layer(x)
    half = layer.to(torch.bfloat16)(x)
    for y in (cast, half):
        assert y.dtype == torch.bfloat16
        assert torch.allclose(y.float(), expected, atol=0.02)


def test_float16_input_does_not_overflow_at_a_large_beta():
    layer = AdaptivePool1d(3).half()
    with torch.no_grad():
        layer.beta.fill_(6e4)
    x = torch.randn(2, 1, 9).half()
    for values in (x, 60000 * x.sign()):
        assert torch.equal(layer(values), F.max_pool1d(values, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_follows_to_device(kind):
    layer = kind(3, 2, padding=1, learn_intervals=True).to("meta")
    x = torch.empty(2, 1, *[6] * kind.axes, device="meta")
    y = layer(x)
    y.sum().backward()
    assert {y.device.type, layer.gamma(x).device.type, layer.receptive_field(x).device.type} == {
        "meta"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": 0}, "kernel_size"),
        ({"stride": 0}, "stride"),
        ({"padding": 2}, r"at most half the kernel \(3, 3\); got \(2, 2\)"),
        ({"beta": 1.0}, "'layer' or 'channel'; got 1.0"),
        ({"beta": "channel"}, "channels .* got None"),
        ({"channels": 16}, "beta='channel' only; got 16 with beta='layer'"),
        ({"channels": 16, "beta": "layer"}, "beta='channel' only; got 16 with beta='layer'"),
        ({"min_length": 3}, "min_length from 0.001 to below the kernel's 3; got 3"),
        ({"min_length": 1e-8}, "min_length from 0.001 to below the kernel's 3; got 1e-08"),
        ({"lr_scale": -1.0}, "positive lr_scale"),
        ({"min_length": "1"}, "positive min_length; got '1'"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdaptivePool2d(**({"kernel_size": 3} | arguments))


def test_inputs_that_do_not_fit():
    layer = AdaptivePool1d(4, padding=1, beta="channel", channels=2)
    with pytest.raises(ValueError, match=r"\(batch, 2, length\); got \(1, 3, 9\)"):
        layer(torch.zeros(1, 3, 9))
    with pytest.raises(ValueError, match=r"got \(2, 9\)"):
        layer(torch.zeros(2, 9))
    with pytest.raises(ValueError, match=r"\(batch, 1, length\); got \(1, 16, 9\)"):
        AdaptivePool1d(4, beta="channel", channels=1)(torch.zeros(1, 16, 9))
    with pytest.raises(ValueError, match="at least 4 pixels"):
        layer(torch.zeros(1, 2, 1))


def test_integers_are_refused():
    """They would come back cut to integers."""
    with pytest.raises(ValueError, match=r"floating-point input; got torch\.int64"):
        AdaptivePool2d(2)(torch.zeros(1, 1, 4, 4, dtype=torch.int64))


@pytest.mark.parametrize("beta", [0.0, 1e-30, -1e-20, 1.0])
def test_huge_values_have_the_gradient_of_their_multiples(beta):
    """Γ depends on βx alone, so the derivative by x is that for x · 10⁻³⁰ and β · 10³⁰."""
    layer, small = AdaptivePool1d(3).double(), AdaptivePool1d(3)
    x = torch.tensor([[[1.0, 0.6, -1.0, 0.0, 0.3, 0.9]]], requires_grad=True)
    huge = (1e30 * x.detach()).requires_grad_()
    with torch.no_grad():
        small.beta.fill_(beta)
        layer.beta.fill_(1e30 * beta)
    (expected,) = torch.autograd.grad(layer(x.double()).sum(), x)
    (slope,) = torch.autograd.grad(small(huge).sum(), huge)
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("beta", [0.0, 1e-39, -1e-38, 1e-30, -1.0, 3e38, -3e38])
@pytest.mark.parametrize("kind", KINDS)
def test_values_further_apart_than_the_largest_number(kind, beta, learned):
    layer = kind(2, learn_intervals=learned)
    with torch.no_grad():
        layer.beta.fill_(beta)
    exact = kind(2, learn_intervals=learned).double()
    exact.load_state_dict(layer.state_dict())
    part = torch.tensor([3.4e38, -3.4e38, -3.4e38, -3.3e38])
    x = torch.cat([part, part.flip(0), -part, part / 2] * 4 ** (kind.axes - 1))
    x = x.view(1, 4, *[4] * kind.axes).requires_grad_()
    wide = x.detach().double().requires_grad_()
    found, expected = layer(x), exact(wide)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e33)
    slopes = [torch.autograd.grad((y / 8).sum(), z)[0] for y, z in ((found, x), (expected, wide))]
    torch.testing.assert_close(slopes[0].double(), slopes[1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(layer.gamma(x).double(), exact.gamma(wide), rtol=1e-4, atol=1e-6)


values = st.floats(-1e15, 1e15)  # β's gradient is their variance


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.lists(values, min_size=4, max_size=4),
    st.floats(-3e38, 3e38),
    values,
    st.booleans(),
)
def test_any_finite_parameters_give_finite_values_and_gradients(kind, pixels, beta, end, learned):
    layer = kind(2, learn_intervals=learned)
    with torch.no_grad():
        layer.beta.fill_(beta)
        if learned:
            layer.ends_logit.fill_(end)
    x = torch.tensor(pixels).repeat(4 ** (kind.axes - 1)).view(1, 1, *[4] * kind.axes)
    x.requires_grad_()
    y = layer(x)
    assert y.isfinite().all()
    assert (y <= x.max()).all()
    assert (y >= x.min()).all()
    for slope in torch.autograd.grad(y.mean(), [x, layer.beta]):
        assert slope.isfinite().all()
