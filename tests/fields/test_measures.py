"""Measures of fields, against sums over dense arrays, differences and SciPy's distributions."""

import numpy as np
import pytest
import torch
from scipy.stats import logistic, norm

from densembed.data import as_input
from densembed.fields.field import field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    mean_displacement,
    measure,
    weighted_field,
)
from densembed.models.registry import build

NAMES = ["logistic-el-4", "logistic-el-mnn-4-2", "adaptive-conv-pool-logistic-el-mnn-3-2", "linear"]
SHAPES = [(1, 12, 10), (3, 8, 12), (2, 20)]


def made(name, shape):
    torch.manual_seed(3)
    return build(name, shape, classes=4).eval().requires_grad_(False), torch.rand(1, *shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_class_weighted_field_is_the_sum_over_dense_densities(name, shape):
    model, x = made(name, shape)
    weights = class_weights(model)
    dense = model.receptive_field(x, resolution=2)[0]  # (channels or 1, K, H · r, W · r)
    matrix = model.classifier.weight.reshape(4, -1, model.embedding.num_densities)
    for label in range(4):
        expected = 0
        for channel, row in enumerate(matrix[label]):
            phi = dense[channel if len(dense) > 1 else 0]
            expected = expected + sum(w * each for w, each in zip(row, phi, strict=True))
        values = weighted_field(model, x, weights[label], 2).sum(0)
        np.testing.assert_allclose(values, expected.numpy(), 1e-4, 1e-6)


def test_the_field_of_every_pixel_needs_little_memory():
    """The densities of a long signal over its cells would take 4 GB."""
    model, x = made("linear", (1, 16384))
    assert (field(model, x).values == np.ones((1, 1, 65536), np.float32)).all()
    values = weighted_field(model, x, class_weights(model)[1])
    np.testing.assert_array_equal(values[0], model.classifier.weight[1].repeat_interleave(4))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES[:2])
def test_one_density_is_scipys(name, shape):
    model, x = made(name, shape)
    shown = densities(model, x)
    channels, *sizes = shape
    count = channels * 4 ** len(sizes)
    assert shown.loc.shape == shown.scale.shape == (count, len(sizes))
    assert shown.weights.shape == (4, count)
    for index in (0, 7, count - 1):
        factors = [
            logistic.pdf(grid(size, 2), mu, s)
            for size, mu, s in zip(sizes[::-1], shown.loc[index], shown.scale[index], strict=True)
        ]
        phi = np.outer(*factors[::-1]) if len(factors) == 2 else factors[0]
        np.testing.assert_allclose(density_field(model, x, index, 2)[0], phi, 1e-4, 1e-7)
        weight = model.classifier.weight[:, index].numpy()
        np.testing.assert_array_equal(shown.weights[:, index], weight)


@pytest.mark.parametrize("count", [0, 2])
def test_measures_of_one_input_refuse_a_batch(count):
    model, x = made(NAMES[0], (1, 6, 6))
    batch = x[:1].expand(count, -1, -1, -1)
    weights = class_weights(model)[0]
    for call in (
        lambda: densities(model, batch),
        lambda: weighted_field(model, batch, weights),
        lambda: density_field(model, batch, 0),
        lambda: input_gradient(model, batch),
    ):
        with pytest.raises(ValueError, match=f"Expected a batch of one input; got {count}"):
            call()


def test_a_hidden_layer_has_no_weights_of_classes():
    model, x = made("mlp-5", (1, 6, 6))
    assert class_weights(model) is None
    assert densities(model, x).weights is None


@pytest.mark.parametrize("name", ["logistic-el-4", "linear", "logistic-el-1"])
def test_gradient_of_a_static_network_is_its_folded_map(name):
    model, x = made(name, (1, 12, 10))
    kernel = model.fold().weight.detach().reshape(4, 1, 12, 10)
    np.testing.assert_allclose(input_gradient(model, x), kernel, 1e-4, 1e-6)
    np.testing.assert_allclose(input_gradient(model, x * 0.3), kernel, 1e-4, 1e-6)
    half = input_gradient(model.bfloat16(), x.bfloat16())  # NumPy has no such numbers
    np.testing.assert_allclose(half, kernel, 0.05, 0.05 * abs(kernel).max())


@pytest.mark.parametrize("name", ["logistic-el-mnn-4-2", "mlp-5", NAMES[2]])
def test_gradient_is_what_small_changes_of_the_input_do(name):
    model, x = made(name, (1, 8, 6))
    model, x = model.double(), x.double()
    gradient = input_gradient(model, x)
    assert gradient.shape == (4, 1, 8, 6)
    for row, column in ((0, 0), (3, 2), (7, 5)):
        step = torch.zeros_like(x)
        step[0, 0, row, column] = 1e-5
        slope = (model(x + step) - model(x - step))[0] / 2e-5
        np.testing.assert_allclose(gradient[:, 0, row, column], slope, 1e-4, 1e-7)


def grid(size, resolution=4):
    return (np.arange(size * resolution) + 0.5) / resolution


def test_numbers_of_a_normal_density():
    x, y = grid(40), grid(60)
    values = np.exp(-(((x - 18) / 2) ** 2)[None] / 2 - (((y - 31) / 3) ** 2)[:, None] / 2)[None]
    measures = measure(values, np.roll(values, 24 * 4, 1), x, y)
    assert measures.centre == pytest.approx((18, 31), abs=1e-6)
    assert measures.spread == pytest.approx(np.sqrt(4 + 9), abs=0.01)
    assert measures.entropy == pytest.approx(np.log2(2 * np.pi * np.e * 6), abs=0.001)
    assert measures.area == pytest.approx(2 * np.pi * 6 * np.log(10), rel=0.01)  # χ² of 2 at 90 %
    assert measures.variation == pytest.approx(1, abs=0.001)


def test_numbers_of_a_normal_density_on_a_signal():
    x = grid(40)
    values = np.exp(-(((x - 18) / 2) ** 2) / 2)[None]
    measures = measure(values, np.roll(values, 24 * 4), x, np.empty(0))
    assert measures.centre == pytest.approx((18, 0.5), abs=1e-6)
    assert measures.spread == pytest.approx(2, abs=0.01)
    assert measures.entropy == pytest.approx(np.log2(2 * np.pi * np.e * 4) / 2, abs=0.001)
    assert measures.area == pytest.approx(2 * 2 * norm.ppf(0.95), abs=0.25)  # of one cell
    assert measures.variation == pytest.approx(1, abs=0.001)


def test_numbers_of_an_even_field():
    x, y = grid(28), grid(28)
    values = np.full((3, 112, 112), 0.7)
    measures = measure(values, values * 5, x, y)
    assert measures.centre == pytest.approx((14, 14))
    assert measures.entropy == pytest.approx(np.log2(784))
    assert measures.area == pytest.approx(0.9 * 784, abs=0.1)
    assert measures.variation == pytest.approx(0, abs=1e-12)


def test_distance_that_densities_moved():
    model, x = made("logistic-el-mnn-4-2", (1, 12, 10))
    first, second = densities(model, x), densities(model, 1 - x)
    steps = [np.hypot(*(b - a)) for a, b in zip(first.loc, second.loc, strict=True)]
    assert mean_displacement(first, second) == pytest.approx(np.mean(steps), rel=1e-5)
    assert mean_displacement(first, first) == 0


def test_no_inputs_have_no_statistics(trained):
    with pytest.raises(ValueError, match="at least one input"):
        field_statistics(trained.model(), torch.rand(0, 1, 28, 28))


def test_spread_over_inputs(trained, digits):
    model, x = trained.model(), as_input(digits.test.images[:12])
    mean, deviation = field_statistics(model, x, 2)
    each = np.stack(
        [model.receptive_field(one[None], resolution=2)[0].sum((0, 1)).numpy() for one in x]
    )
    np.testing.assert_allclose(mean, each.mean(0), 1e-4, 1e-6)
    np.testing.assert_allclose(deviation, each.std(0), 1e-3, 1e-5)
    assert deviation.max() > 0.01
    still, one = made("logistic-el-4", (1, 12, 10))
    assert not field_statistics(still, one.repeat(5, 1, 1, 1))[1].any()
