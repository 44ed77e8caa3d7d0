"""The lab's arrays against torch's layers and the paper's statements."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.special import expit, logit
from scipy.stats import logistic

from densembed import lab
from densembed.functional.densities import FAMILIES
from tests.conftest import is_sentence

NOISE = lab.signal("noise", 23, seed=4)


def pixels_of(reading: lab.Reading) -> np.ndarray:
    """The mass in each pixel by adding up the drawn densities: what Γ should be."""
    cells = lab.resolution(len(reading.x))
    return reading.phi.reshape(len(reading.phi), -1, cells).mean(-1)


@pytest.mark.parametrize("name", [name for name in lab.SIGNALS if name not in ("digit", "own")])
@pytest.mark.parametrize("size", [2, 24, 64])
def test_signals_lie_within_0_and_1(name, size):
    x = lab.signal(name, size, seed=1)
    assert x.shape == (size,)
    assert x.min() >= 0
    assert x.max() <= 1
    assert np.array_equal(x, lab.signal(name, size, seed=1))


@pytest.mark.parametrize(
    "text",
    [
        "0 0.5 1",
        "0,0.5,1",
        " 0; 0.5 ;1 ",
        "0 5e-1 1.0",
        "0 0,5 1",
        "0;0,5;1",
        "0, 0.5, 1",
        "−0 0.5 1",
        "0\u00a00,5\u202f1",
    ],
)
def test_typed_values(text):
    assert lab.parse_values(text).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1 two",
        "1 nan",
        "1 inf",
        "1 1e9",
        "1 -1e-310",
        " ".join(["0"] * 65),
        "0 " * 5000,
        "1 ٣x",
    ],
)
def test_bad_values_are_one_sentence(text):
    with pytest.raises(ValueError, match=r"\.$") as error:
        lab.parse_values(text)
    assert is_sentence(str(error.value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan " * 30, "Value 1, “nan”, is not a number."),
        ("1 2 inf", "Value 3, “inf”, is not between −1000 and 1000."),
        ("1, ,2", "Value 2 is missing."),
        (";1 2", "Value 1 is missing."),
    ],
)
def test_a_value_that_is_no_number_is_told_its_place(text, said):
    with pytest.raises(ValueError, match="Value") as error:
        lab.parse_values(text)
    assert str(error.value) == said


def test_values_go_into_a_link_and_back():
    assert lab.format_values(lab.parse_values("0.12345 5.4321 -3 0.5")) == "0.12345 5.4321 -3 0.5"
    assert np.allclose(lab.parse_values(lab.format_values(NOISE)), NOISE, atol=1e-3)


@pytest.mark.filterwarnings("error")
def test_arrays_of_any_layout_give_the_same_reading():
    x, weights = np.linspace(0, 1, 8), np.array([0.2, 0.5, 0.3])
    expected = lab.convolution(x, weights, stride=1, position=2)
    turned = lab.convolution(
        x[::-1].copy()[::-1], weights.astype(">f8")[::-1][::-1], stride=1, position=2
    )
    np.testing.assert_array_equal(turned.output, expected.output)


def test_fully_connected_is_the_identity():
    reading = lab.fully_connected(NOISE)
    assert np.array_equal(reading.gamma, np.eye(23))
    assert np.array_equal(reading.expectation, NOISE)
    assert np.allclose(pixels_of(reading), reading.gamma)
    (reference,) = reading.references
    assert reference.difference == reference.promise == 0


@pytest.mark.parametrize("taps", [1, 3, 8])
@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("name", lab.KERNELS)
def test_convolution_is_torch(taps, stride, name):
    weights = lab.kernel(name, taps)
    expected = F.conv1d(
        torch.tensor(NOISE)[None, None], torch.tensor(weights)[None, None], stride=stride
    ).flatten()
    for position in range(len(expected)):
        reading = lab.convolution(NOISE, weights, stride=stride, position=position)
        assert np.allclose(reading.output, expected, atol=1e-12)
        assert math.isclose(weights @ reading.expectation, expected[position], abs_tol=1e-12)
        assert np.allclose(pixels_of(reading), reading.gamma)
        assert reading.references[0].difference == reading.references[0].promise == 0


@pytest.mark.parametrize("taps", [1, 2, 3, 5, 7, 8])
@pytest.mark.parametrize("normalize", [False, True])
def test_adaptive_convolution_is_torch_at_p_equal_k_alone(taps, normalize):
    weights = lab.kernel("bell", taps)
    place = {"stride": 1, "position": 2, "normalize": normalize}
    (same,) = lab.convolution(NOISE, weights, amplitude=float(taps), **place).references
    assert same.difference == same.promise == 0
    # One tap of mass 1 within its pixel is that pixel, at any p below 1.
    shorter = [] if normalize and taps == 1 else [0.5 * taps]
    for amplitude in (*shorter, taps + 0.05, 1.6 * taps):
        (other,) = lab.convolution(NOISE, weights, amplitude=amplitude, **place).references
        assert other.difference > 1e-4
        assert other.promise is None


@pytest.mark.parametrize(("normalize", "mass"), [(False, 4.5 / 3), (True, 1.0)])
def test_adaptive_convolution_has_the_printed_or_unit_mass(normalize, mass):
    reading = lab.convolution(
        NOISE, lab.kernel("edge", 3), stride=2, position=4, amplitude=4.5, normalize=normalize
    )
    assert np.allclose(reading.mass, mass)
    assert np.allclose(reading.centres, 8 + 1.5 * (np.arange(3) + 0.5))
    assert math.isclose(
        lab.kernel("edge", 3) @ reading.expectation, reading.output[4], abs_tol=1e-12
    )


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("beta", [0.5, 5.0, 100.0, 1000.0])
def test_pooling_reaches_its_limits(window, beta):
    average = lab.adaptive_pooling(NOISE, window=window, stride=2, beta=0.0)
    assert average.references[1].difference == average.references[1].promise == 0
    low = lab.adaptive_pooling(NOISE, window=window, stride=2, beta=-beta)
    high = lab.adaptive_pooling(NOISE, window=window, stride=2, beta=beta)
    for reading, reference in ((low, low.references[0]), (high, high.references[2])):
        assert reference.promise == math.log(window) / beta
        assert reference.difference <= reference.promise
        assert np.allclose(reading.mass, 1)
        assert np.allclose(reading.gamma @ NOISE, reading.output)
        assert np.allclose(pixels_of(reading), reading.gamma)
    if window > 1:
        assert high.references[1].difference > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("truncate", [False, True])
def test_embedding_stands_where_it_is_told(family, truncate):
    loc, scale = lab.grid_places(23, 5, family)
    loc[2], scale[2] = 0.0, 3.0  # the end of the domain, which μ(α) reaches only in the limit
    reading = lab.embedding(NOISE, family, loc=loc, scale=scale, truncate=truncate)
    density = FAMILIES[family]
    edges = (torch.arange(24, dtype=torch.float64)[:, None] - torch.tensor(loc)) / torch.tensor(
        scale
    )
    expected = density.cdf(edges).diff(dim=0).T.numpy()
    expected = expected / expected.sum(1, keepdims=True) if truncate else expected
    assert np.allclose(reading.gamma, expected, atol=1e-9)
    assert np.allclose(reading.expectation, expected @ NOISE, atol=1e-8)
    assert np.allclose(pixels_of(reading), reading.gamma, atol=0.03)


def test_uniform_densities_on_the_grid_are_adaptive_average_pooling():
    loc, scale = lab.grid_places(24, 6, "uniform")
    x = lab.signal("noise", 24)
    (reference,) = lab.embedding(x, "uniform", loc=loc, scale=scale).references
    assert reference.difference == reference.promise == 0
    loc[2] += 0.5
    (moved,) = lab.embedding(x, "uniform", loc=loc, scale=scale).references
    assert moved.promise is None
    assert moved.difference > 1e-3


@pytest.mark.parametrize("truncate", [False, True])
def test_a_picture_is_the_product_of_its_factors(digits, truncate):
    pixels = digits.test.images[3, 0].double().numpy() / 255
    embedded = lab.picture(pixels, "gaussian", loc=(20.0, 9.0), scale=(2.0, 5.0), truncate=truncate)
    assert np.allclose(embedded.gamma, np.outer(embedded.rows, embedded.columns), atol=1e-15)
    assert abs(embedded.columns.argmax() + 0.5 - 20) <= 0.5
    assert abs(embedded.rows.argmax() + 0.5 - 9) <= 0.5
    assert lab.rounded(embedded.expectation - embedded.parts.sum()) == 0
    assert embedded.gamma.sum() == pytest.approx(1, abs=1e-9 if truncate else 0.05)
    assert truncate or embedded.gamma.sum() < 1


@pytest.mark.parametrize("gain", [0.0, 2.0, -3.5])
def test_a_micro_network_moves_densities_by_its_readings(gain):
    size, count, inner = 23, 5, 3
    moved = lab.micro_network(NOISE, "logistic", count=count, inner=inner, gain=gain)

    def readings(loc: np.ndarray, spread: float) -> np.ndarray:
        # The deviation of a uniform density is spread / √3, of a logistic one scale · π / √3.
        edges = logistic.cdf(np.arange(size + 1), loc[:, None], spread / math.pi)
        return np.diff(edges) @ NOISE

    small = readings((np.arange(inner) + 0.5) * size / inner, size / inner / 2)
    np.testing.assert_allclose(moved.readings, small, 1e-9)
    grid = (np.arange(count) + 0.5) * size / count
    alpha = logit(grid / size) / 4 + gain * np.linspace(-1, 1, inner) @ small / inner
    places = size * expit(4 * alpha)
    np.testing.assert_allclose(moved.reading.centres, places, 1e-9)
    np.testing.assert_allclose(moved.shifts, places - grid, 0, 1e-9)
    np.testing.assert_allclose(moved.reading.expectation, readings(places, size / count / 2), 1e-9)


def test_a_micro_network_without_gain_is_average_pooling():
    moved = lab.micro_network(NOISE[:20], "uniform", count=5, inner=3, gain=0)
    (reference,) = moved.reading.references
    assert reference.promise == 0
    assert reference.difference == 0
