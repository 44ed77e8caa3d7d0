"""Receptive fields as arrays: sums, coordinates, mass."""

import copy
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import softmax

from densembed.fields import field as module
from densembed.fields.field import View, field, pixel_field, view
from densembed.layers import PixelEmbedding
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint

MODELS = ["linear", "logistic-el-3", "gaussian-el-4", "logistic-el-mnn-3-2"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(4)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 8, 8), (1, 5, 9), (3, 9, 4), (2, 17)])
@pytest.mark.parametrize("name", MODELS)
def test_field_is_the_sum_of_the_densities(name, shape):
    model = build(name, shape).double()
    x = torch.rand(3, *shape, dtype=torch.float64)
    result = field(model, x, resolution=2)
    expected = model.receptive_field(x, resolution=2).sum(2).detach()
    assert result.values.shape == expected.shape
    np.testing.assert_allclose(result.values, expected, rtol=1e-5, atol=1e-9)
    assert result.values.dtype == np.float32
    masses = model.embedding.gamma(x).sum(2).detach()
    np.testing.assert_allclose(pixel_field(model, x), masses, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("resolution", [1, 2, 3, 4, 7])
def test_coordinates_are_the_centres_of_the_cells(resolution):
    result = field(build("logistic-el-2", (1, 6, 10)), resolution=resolution)
    assert result.values.shape == (1, 1, 6 * resolution, 10 * resolution)
    for places, size in ((result.x, 10), (result.y, 6)):
        assert len(places) == size * resolution
        assert places[0] == pytest.approx(0.5 / resolution)
        assert places[-1] == pytest.approx(size - 0.5 / resolution)
        np.testing.assert_allclose(np.diff(places), 1 / resolution)


@pytest.mark.parametrize("name", ["logistic-el-3", "gaussian-el-3", "logistic-el-mnn-3-2"])
def test_integral_is_the_mass_of_all_densities(name):
    """∫∫ Σ φ = Σ_i Σ_mn Γ_imn, and the paper's densities reach beyond the domain."""
    model = build(name, (1, 12, 16))
    x = torch.rand(2, 1, 12, 16)
    resolution = 16
    integral = field(model, x, resolution).values.sum((2, 3)) / resolution**2
    mass = model.embedding.gamma(x).sum((2, 3, 4)).detach().numpy()
    np.testing.assert_allclose(integral, mass, rtol=2e-3)
    assert (mass < model.embedding.num_densities).all()


def test_linear_is_one_everywhere():
    result = field(build("linear", (3, 5, 7)), torch.rand(2, 3, 5, 7))
    assert result.values.shape == (1, 1, 20, 28)
    np.testing.assert_allclose(result.values, 1, atol=1e-6)


TILED = [
    ("linear", (3, 32, 32), (28, 28)),
    ("linear", (3, 32, 32), (20, 20)),
    ("linear", (1, 28, 28), (14, 14)),
    ("linear", (1, 16, 16), (28, 28)),
    ("linear", (1, 8, 8), (7, 7)),
    ("linear", (1, 24, 26), (23, 10)),
    ("linear", (1, 40), (30,)),
    ("linear", (1, 1000), (999,)),
    ("cnn-2", (1, 32, 32), (28, 20)),
]


@pytest.mark.parametrize("resolution", [1, 2, 3, 4])
@pytest.mark.parametrize(("name", "shape", "grid"), TILED)
def test_densities_on_tiles_have_a_constant_field_on_every_grid(name, shape, grid, resolution):
    """As many as there are, over the area: also where a cell's centre is on a shared edge."""
    model = build(name, shape).at(grid)
    values = field(model, torch.zeros(1, shape[0], *grid), resolution).values
    expected = model.embedding.num_densities / math.prod(grid)
    np.testing.assert_allclose(values, np.full_like(values, expected), rtol=1e-5)
    assert values.dtype == np.float32


def test_a_tile_has_its_mean_over_each_cell():
    """Thirds of the domain [0, 2]: the second one covers half of the cells that meet at 1."""
    (factor,) = PixelEmbedding((3,)).at(2).pdf_axes(resolution=2)
    expected = [[1.5, 0.5, 0, 0], [0, 1, 1, 0], [0, 0, 0.5, 1.5]]
    torch.testing.assert_close(factor[0, 0], torch.tensor(expected))
    layer = PixelEmbedding((3, 2)).double().at((2, 2))
    values = layer.receptive_field(resolution=2)
    assert values.dtype == torch.float64
    torch.testing.assert_close(values[0, 0, 2, :, 1], torch.tensor([0, 1, 1, 0]).double())


def at(model, t: float, u: float, spread: float = 0.5):
    """Put the only density at column t and row u, in pixels."""
    height, width = model.embedding.sizes
    with torch.no_grad():
        share = torch.tensor([t / width, u / height])
        model.embedding.alpha[:] = torch.logit(share) / 4
        model.embedding.beta[:] = torch.logit(torch.tensor([spread / width, spread / height]))
    return model


@pytest.mark.parametrize(("t", "u"), [(2.5, 9.5), (13.1, 1.4), (8.0, 6.0), (0.6, 0.6)])
def test_a_density_peaks_where_it_was_put(t, u):
    """x and columns go with the first axis of α, y and rows with the second."""
    result = field(at(build("logistic-el-1", (1, 12, 16)), t, u), resolution=8)
    row, column = np.unravel_index(result.values[0, 0].argmax(), result.values.shape[2:])
    assert result.x[column] == pytest.approx(t, abs=1 / 16 + 1e-6)
    assert result.y[row] == pytest.approx(u, abs=1 / 16 + 1e-6)
    # f(0) = 1/4 on each axis, per pixel.
    assert result.values.max() == pytest.approx(1 / (16 * 0.5**2), rel=0.02)


def test_channels_have_fields_of_their_own():
    model = build("logistic-el-1", (3, 12, 16))
    at(model, 4, 4)
    with torch.no_grad():
        model.embedding.alpha[1] = torch.logit(torch.tensor([12 / 16, 9 / 12])) / 4
    result = field(model, resolution=4)
    assert result.values.shape == (1, 3, 48, 64)
    np.testing.assert_allclose(result.values[0, 0], result.values[0, 2], rtol=1e-6)
    row, column = np.unravel_index(result.values[0, 1].argmax(), (48, 64))
    assert (result.x[column], result.y[row]) == pytest.approx((12, 9), abs=0.13)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("logistic-el-mnn-4-2", (1, 28, 28)),
        ("logistic-el-mnn-4-2", (3, 8, 12)),
        ("logistic-el-mass-3", (3, 8, 12)),
        ("stages-2-3-logistic-el-mnn-3-3", (3, 12, 20)),
    ],
)
def test_many_inputs_are_as_one_by_one(monkeypatch, name, shape):
    model = build(name, shape)
    x = torch.rand(11, *shape)
    alone = np.concatenate([field(model, one[None]).values for one in x])
    whole = field(model, x).values
    # Three inputs a chunk: 3 + 3 + 3 + 2.
    embedding = model.embedding
    cells = embedding.in_channels * 16 * int(np.prod(embedding.sizes))
    monkeypatch.setattr(module, "CHUNK_CELLS", 3 * cells + 1)
    chunked = field(model, x).values
    assert chunked.shape == whole.shape == alone.shape
    np.testing.assert_allclose(chunked, alone, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(whole, alone, rtol=1e-4, atol=1e-6)
    monkeypatch.setattr(module, "CHUNK_CELLS", 1)
    np.testing.assert_allclose(field(model, x).values, alone, rtol=1e-4, atol=1e-6)


def test_no_inputs_give_no_fields():
    assert field(build("logistic-el-mnn-4-2"), torch.rand(0, 1, 28, 28)).values.shape[0] == 0


def test_adaptive_fields_need_an_input():
    with pytest.raises(ValueError, match="pass x"):
        field(build("logistic-el-mnn-4-2"))


# A checkpoint's view of a picture


def test_view_has_the_models_opinions_and_fields(trained, digits):
    pixels = digits.test.images[5]
    response = view(trained, pixels)
    assert response.steps == trained.steps
    assert len(response.fields) == len(response.probabilities) == len(trained.steps)
    for index in range(len(trained.steps)):
        model = trained.model(index)
        x = pixels[None].float() / 255
        probabilities = softmax(model(x), 1)[0].numpy()
        np.testing.assert_allclose(response.probabilities[index], probabilities, rtol=1e-5)
        expected = model.receptive_field(x).sum(2)[0].numpy()
        np.testing.assert_allclose(response.fields[index], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(response.probabilities.sum(1), 1, rtol=1e-5)
    assert not np.allclose(response.fields[0], response.fields[-1])


def test_view_of_some_snapshots(trained, digits):
    pixels = digits.test.images[0]
    every, ends = view(trained, pixels), view(trained, pixels, [0, -1], resolution=4)
    assert ends.steps == [trained.steps[0], trained.steps[-1]]
    np.testing.assert_array_equal(ends.fields[0], every.fields[0])
    np.testing.assert_array_equal(ends.fields[1], every.fields[-1])
    assert view(trained, pixels, [2]).steps == [trained.steps[2]]
    assert view(trained, pixels, [0], resolution=2).fields[0].shape == (1, 56, 56)


def test_a_view_has_a_snapshot(trained, digits):
    with pytest.raises(ValueError, match="at least one snapshot; got none"):
        view(trained, digits.test.images[0], [])


def test_a_snapshot_that_does_not_exist_is_an_error(trained, digits):
    """Another one was shown, the index modulo their number."""
    pixels, count = digits.test.images[0], len(trained.steps)
    last = view(trained, pixels, [-1]).fields[0]
    np.testing.assert_array_equal(view(trained, pixels, [count - 1]).fields[0], last)
    np.testing.assert_array_equal(view(trained, pixels, [-count]).steps, [0])
    for index in (count, -count - 1, 1000):
        says = f"^There is no snapshot {index:,}: a checkpoint with {count} snapshots has the indi"
        for call in (
            lambda index=index: view(trained, pixels, [0, index]),
            lambda index=index: trained.network(index),
            lambda index=index: trained.state(index),
        ):
            with pytest.raises(ValueError, match=says):
                call()
    with pytest.raises(ValueError, match="There is no member 1: a checkpoint with 1 member has"):
        trained.network(0, 1)


def test_view_of_another_member(trained, digits):
    """Two members whose order is reversed: each one is shown as it is."""
    pixels = digits.test.images[0]
    other = {name: tensor.flip(0) for name, tensor in trained.tensors.items()}
    both = {name: torch.cat((trained.tensors[name], other[name]), 1) for name in other}
    checkpoint = Checkpoint(trained.header, both)
    first, second = (view(checkpoint, pixels, [0], member=member) for member in (0, 1))
    np.testing.assert_array_equal(first.fields[0], view(trained, pixels, [0]).fields[0])
    np.testing.assert_array_equal(second.fields[0], view(trained, pixels, [-1]).fields[0])


def test_top_of_the_scale_is_shared_by_all_steps():
    flat, high = np.full((1, 10, 100), 0.5, np.float32), np.ones((1, 10, 100), np.float32)
    high[0, 0, 0] = 1000  # one cell of a thousand: beyond the percentile
    response = View([0, 1], np.arange(100), np.arange(10), [flat, high], np.ones((2, 10)))
    assert response.top == pytest.approx(1)
    channels = View(
        [0], np.arange(100), np.arange(10), [np.concatenate((flat, flat))], np.ones((1, 10))
    )
    assert channels.top == pytest.approx(1)


@pytest.mark.parametrize(
    "name", ["logistic-el-mnn-3-2", "logistic-el-3", "adaptive-conv-pool-logistic-el-mnn-3-2"]
)
@pytest.mark.parametrize("weight", [1e30, 3e38])
@pytest.mark.parametrize("beta", [-90.0, -3e38, 3e38])
def test_extreme_finite_parameters_give_finite_fields(name, weight, beta):
    """Sums of weights overflow float32; locations at the domain's edge are what they mean."""
    torch.manual_seed(0)
    model = build(name, (1, 8, 8))
    with torch.no_grad():
        for each, parameter in model.named_parameters():
            if each.endswith("embedding.beta"):
                parameter.fill_(beta)
            elif not each.endswith("beta"):
                parameter.copy_(weight * parameter.sign())
    x = torch.rand(2, 1, 8, 8)
    values = field(model, x).values
    assert np.isfinite(values).all()
    assert np.isfinite(pixel_field(model, x)).all()
    if "conv" in name:  # maps of 1e30 cancel to all digits that float32 has
        return
    shown = field(copy.deepcopy(model).double(), x.double()).values
    np.testing.assert_allclose(values, shown, rtol=1e-3, atol=1e-6 * max(1.0, shown.max()))
