"""Densities on feature maps: where they lie on the input."""

import math

import pytest
import torch
from torch import nn

from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    AdaptiveDensityEmbedding2d,
    AdaptivePool1d,
    AdaptivePool2d,
    DensityConv2d,
    DensityEmbedding1d,
    DensityEmbedding2d,
    FeatureEmbedding,
)
from densembed.layers.features import places


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def same(size: int = 5) -> AdaptiveConv2d:
    return AdaptiveConv2d(1, 2, size, padding="same")


def deep(adaptive: bool = False, sizes=(8, 12)) -> FeatureEmbedding:
    """Two maps of half the size under three densities that all maps share."""
    features = nn.Sequential(same(), nn.ReLU(), AdaptivePool2d(2))
    maps = tuple(size // 2 for size in sizes)
    if adaptive:
        locator = nn.Sequential(nn.Flatten(), nn.Linear(2 * math.prod(maps), 6))
        inner = AdaptiveDensityEmbedding2d(locator, maps, 2, num_densities=3, shared=True)
    else:
        inner = DensityEmbedding2d(maps, 2, num_densities=3, shared=True)
    return FeatureEmbedding(features, inner, sizes=sizes)


@pytest.mark.parametrize(
    ("layer", "stretch", "offset"),
    [
        (nn.ReLU(), (1, 1), (0, 0)),
        (same(), (1, 1), (0, 0)),
        (AdaptivePool2d(2), (2, 2), (0, 0)),
        (AdaptivePool2d((2, 3)), (2, 3), (0, 0)),
        (DensityConv2d(1, 1, 5), (1, 1), (2, 2)),
        (DensityConv2d(1, 1, 3, stride=2, padding=(0, 1)), (2, 2), (0.5, -0.5)),
        (DensityConv2d(1, 1, 3, dilation=2), (1, 1), (2, 2)),
        (AdaptiveConv2d(1, 1, 3, dilation=(1, 2), padding=1), (1, 1), (0, 1)),
        (nn.Conv2d(1, 1, 3, dilation=2), (1, 1), (2, 2)),
        (nn.MaxPool2d(3, 1, dilation=2), (1, 1), (2, 2)),
        (nn.Sequential(same(), nn.ReLU(), AdaptivePool2d(2)), (2, 2), (0, 0)),
        (nn.Sequential(DensityConv2d(1, 1, 5), AdaptivePool2d(2)), (2, 2), (2, 2)),
        (nn.Sequential(AdaptivePool2d(2), DensityConv2d(1, 1, 5)), (2, 2), (4, 4)),
        (
            nn.Sequential(nn.Sequential(AdaptivePool2d(2), DensityConv2d(1, 1, 3)), same(3)),
            (2, 2),
            (2, 2),
        ),
    ],
)
def test_places_of_the_cells(layer, stretch, offset):
    """Counted by hand: the middle of the window of the first cell, and of the next ones."""
    a, b = places(layer)
    assert tuple(a.tolist()) == stretch
    assert tuple(b.tolist()) == pytest.approx(offset)


@pytest.mark.parametrize(
    "layer",
    [
        same(3),
        nn.Sequential(same(), nn.ReLU(), AdaptivePool2d(2)),
        nn.Sequential(DensityConv2d(1, 1, 3), AdaptivePool2d((2, 3)), DensityConv2d(1, 1, (3, 1))),
        nn.Sequential(AdaptivePool2d(3, 2), DensityConv2d(1, 2, 3, stride=2)),
        nn.Sequential(AdaptiveConv2d(1, 1, 3, dilation=2), DensityConv2d(1, 2, 3, dilation=2)),
        nn.Conv2d(1, 1, (5, 3), dilation=(1, 2), padding="same"),
        nn.Sequential(nn.Conv2d(1, 1, 3, padding="valid"), nn.GELU(), nn.LPPool2d(2, 2)),
    ],
    ids=["one", "the model's", "three", "strides", "dilated", "torch same", "torch valid"],
)
def test_places_are_the_middles_of_what_the_cells_read(layer):
    """What a cell reads is where its derivative by the input is not zero."""
    layer = layer.double()
    for parameter in layer.parameters():
        if parameter.dim() == 4:
            nn.init.ones_(parameter)
    x = torch.rand(1, 1, 22, 24).double().requires_grad_()
    y = layer(x)[0, 0]
    stretch, offset = places(layer)
    for row, column in ((2, 2), (3, 2), (2, 3)):
        (slope,) = torch.autograd.grad(y[row, column], x, retain_graph=True)
        read = slope[0, 0] != 0
        middles = []
        for axis in (1, 0):
            pixels = read.any(axis).nonzero()
            middles.append((pixels.min() + pixels.max() + 1).item() / 2)
        expected = stretch * (torch.tensor([row, column]) + 0.5) + offset
        assert middles == pytest.approx(expected.tolist())


def test_places_follow_a_learned_amplitude():
    """A kernel of K = 5 that covers 6 pixels has its middle half a pixel further on."""
    layer = AdaptiveConv2d(1, 1, 5, padding="same", start=1.2)
    assert places(layer)[1].tolist() == pytest.approx([0.5, 0.5])


def test_places_follow_learned_intervals():
    """Of each window [4k, 4k + 4] the layer reads [4k + 1.75, 4k + 5.75], and so on."""
    layer = AdaptivePool2d(4, learn_intervals=True, min_length=0.5)
    nn.init.constant_(layer.ends_logit, 20.0)
    stretch, offset = places(layer)
    assert stretch.tolist() == [4, 4]
    assert offset.tolist() == pytest.approx([1.75, 1.75], abs=1e-5)
    nn.init.zeros_(layer.ends_logit)
    assert places(layer)[1].tolist() == pytest.approx([0, 0])


def test_places_follow_a_proportional_stride():
    """The window of the first cell covers 2 · 1.4 pixels, and the next begins where it ends."""
    layer = AdaptiveConv2d(1, 1, 2, stride=2, stride_mode="proportional", start=1.4)
    stretch, offset = places(layer)
    assert stretch.tolist() == pytest.approx([2.8, 2.8])
    assert offset.tolist() == pytest.approx([0, 0], abs=1e-6)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Conv2d(1, 1, 3, stride=2)

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize(
    "layer",
    [
        nn.AdaptiveAvgPool2d(4),
        nn.Upsample(scale_factor=2),
        nn.ConvTranspose2d(1, 1, 2, stride=2),
        nn.ZeroPad2d((4, 0, 4, 0)),
        nn.PixelShuffle(2),
        nn.FractionalMaxPool2d(2, 4),
        nn.GLU(),
        nn.GLU(-1),
        nn.MultiheadAttention(4, 2),
        nn.Flatten(),
        Block(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_whose_outputs_have_no_known_place_are_refused(layer):
    embedding = DensityEmbedding2d((4, 4), 1, num_densities=3)
    with pytest.raises(ValueError, match=rf"known place .*got {type(layer).__name__}\.$"):
        FeatureEmbedding(nn.Sequential(nn.ReLU(), layer), embedding, sizes=(8, 8))


@pytest.mark.parametrize("adaptive", [False, True])
def test_densities_are_those_on_the_maps_stretched(adaptive):
    layer = deep(adaptive).double()
    x = torch.rand(4, 1, 8, 12).double() if adaptive else None
    on_maps = layer.embedding.receptive_field(layer.features(x) if adaptive else None, resolution=4)
    field = layer.receptive_field(x, resolution=2)
    assert field.shape == (4 if adaptive else 1, 1, 3, 16, 24)
    # Two cells an input pixel are four a cell of the maps; a square of those is four pixels.
    torch.testing.assert_close(field, on_maps / 4)
    loc, scale = layer.placement(x)
    inner = layer.embedding.placement(layer.features(x) if adaptive else None)
    torch.testing.assert_close(loc, 2 * inner[0])
    torch.testing.assert_close(scale, 2 * inner[1])


@pytest.mark.parametrize("adaptive", [False, True])
def test_masses_on_the_input_add_up_to_those_on_the_maps(adaptive):
    layer = deep(adaptive).double()
    x = torch.rand(4, 1, 8, 12).double() if adaptive else None
    gamma = layer.gamma(x)
    on_maps = layer.embedding.gamma(layer.features(x) if adaptive else None)
    sums = gamma.unflatten(-2, (4, 2)).sum(-2).unflatten(-1, (6, 2)).sum(-1)
    torch.testing.assert_close(sums, on_maps)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_output_is_the_expectation_of_the_maps(adaptive, batch):
    layer = deep(adaptive)
    x = torch.rand(batch, 1, 8, 12)
    maps = layer.features(x)
    y = layer(x)
    assert y.shape == (batch, 2, 3)
    assert layer.out_features == 6
    gamma = layer.embedding.gamma(maps if adaptive else None)
    torch.testing.assert_close(y, (gamma * maps[:, :, None]).flatten(3).sum(-1))


def test_a_density_that_looks_at_a_place_answers_to_what_is_there():
    """The centre of mass of a density is that of its derivative by the input."""
    layer = deep(sizes=(16, 20)).double()
    conv = layer.features[0]
    with torch.no_grad():
        nn.init.ones_(conv.weight)
        nn.init.ones_(conv.bias)
        layer.embedding.alpha.normal_(0, 0.1)
        layer.embedding.beta.fill_(-3.5)
    x = torch.rand(1, 1, 16, 20).double().requires_grad_()
    y, field = layer(x)[0, 0], layer.receptive_field(resolution=4)[0, 0]
    for k in range(3):
        (slope,) = torch.autograd.grad(y[k], x, retain_graph=True)
        for axis, size in ((1, 16), (0, 20)):
            profile = slope[0, 0].sum(axis)
            told = field[k].sum(axis)
            middle = ((torch.arange(size) + 0.5) * profile).sum() / profile.sum()
            claimed = ((torch.arange(4 * size) + 0.5) / 4 * told).sum() / told.sum()
            assert claimed.item() == pytest.approx(middle.item(), abs=0.4)


def test_one_axis():
    features = nn.Sequential(AdaptiveConv1d(1, 2, 3, padding="same"), nn.ReLU(), AdaptivePool1d(2))
    layer = FeatureEmbedding(
        features, DensityEmbedding1d(6, 2, num_densities=3, shared=True), sizes=12
    )
    assert layer(torch.rand(2, 1, 12)).shape == (2, 2, 3)
    field = layer.receptive_field(resolution=2)
    assert field.shape == (1, 1, 3, 24)
    torch.testing.assert_close(field, layer.embedding.receptive_field(None, resolution=4) / 2)


def test_inputs_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(batch, 1, 8, 12\); got \(2, 1, 12, 8\)"):
        deep()(torch.zeros(2, 1, 12, 8))
    with pytest.raises(ValueError, match="pass x"):
        deep(adaptive=True).receptive_field()


@pytest.mark.parametrize("adaptive", [False, True])
def test_compiles_and_maps_over_members(adaptive):
    members = [deep(adaptive) for _ in range(2)]
    x = torch.rand(2, 1, 8, 12)
    torch._dynamo.reset()
    compiled = torch.compile(members[0], backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), members[0](x))
    state = torch.func.stack_module_state(members)

    def loss(parameters, buffers):
        return torch.func.functional_call(members[0], (parameters, buffers), (x,)).square().sum()

    slopes = torch.func.vmap(torch.func.grad(loss))(*state)
    members[1](x).square().sum().backward()
    for name, parameter in members[1].named_parameters():
        torch.testing.assert_close(slopes[name][1], parameter.grad, rtol=1e-4, atol=1e-5)


def test_a_gated_unit_over_the_channels_is_in_place():
    """It halves their number, and moves nothing."""
    assert [part.tolist() for part in places(nn.GLU(1))] == [[1, 1], [0, 0]]
    assert [part.tolist() for part in places(nn.GLU(-2), axes=1)] == [[1], [0]]


def test_the_text_of_a_layer_names_its_frame():
    embedding = DensityEmbedding2d(8, 4, num_densities=3, frame="mass")
    layer = FeatureEmbedding(nn.Conv2d(1, 4, 3, padding=1), embedding, sizes=8)
    assert "frame=mass" in layer.extra_repr()
    assert layer.sizes == (8, 8)  # as many axes as the maps have
