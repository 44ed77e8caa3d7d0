"""Networks for inputs with one axis, against sums written out in full."""

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d, max_pool1d, relu

from densembed.fields.field import field
from densembed.models.names import MODELS, fill, parts
from densembed.models.registry import build, parameter_count
from tests.conftest import is_sentence

SIGNAL = (2, 40)
ARGUMENTS = {"{family}": "gaussian", "{frame}": "input", "{size}": 4, "{maps}": (3, 5)}
NAMES = [fill(form, [ARGUMENTS[part] for part in parts(form)]) for form in MODELS]
MASS = [name.replace("-4", "-mass-4", 1) for name in NAMES if "-el-" in name and "mnn" not in name]


def signals(count: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, *SIGNAL, generator=generator, dtype=torch.float64)


def logistic(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def test_fixed_densities_are_sums_over_one_axis():
    model = build("logistic-el-7", SIGNAL, classes=3).double()
    assert parameter_count(model) == 2 * 2 * 7 + 3 * 2 * 7 + 3
    x = signals()
    loc, scale = (part.detach().numpy()[0, :, :, 0] for part in model.embedding.placement())
    edges = np.arange(41)
    mass = np.diff(logistic((edges - loc[..., None]) / scale[..., None]), axis=-1)
    features = np.einsum("ckn,bcn->bck", mass, x.numpy()).reshape(3, -1)
    weight, bias = (part.detach().numpy() for part in model.classifier.parameters())
    np.testing.assert_allclose(model(x).detach(), features @ weight.T + bias, rtol=1e-10)


def test_a_plain_cnn_has_torchs_layers():
    model = build("cnn-3-5", SIGNAL, classes=4).double()
    w1, b1, w2, b2, weight, bias = model.parameters()
    maps = max_pool1d(relu(conv1d(signals(), w1, b1, padding=1)), 2)
    maps = max_pool1d(relu(conv1d(maps, w2, b2, padding=1)), 2)
    torch.testing.assert_close(model(signals()), maps.flatten(1) @ weight.T + bias)


@pytest.mark.parametrize("name", [*NAMES, *MASS])
def test_every_form_has_one_field_per_signal_and_the_same_result_on_a_finer_grid(name):
    model = build(name, SIGNAL, classes=3).double()
    x = signals()
    assert model(x).shape == (3, 3)
    found = field(model, x, resolution=3)
    assert found.values.shape[2:] == (120,)
    assert found.x.tolist() == pytest.approx([(k + 0.5) / 3 for k in range(120)])
    assert found.y.size == 0
    expected = model.receptive_field(x, resolution=3).sum(2).detach().numpy()
    np.testing.assert_allclose(found.values, expected, rtol=1e-5, atol=1e-7)
    finer = model.at(80)(x.repeat_interleave(2, -1))
    torch.testing.assert_close(finer, model(x), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["gaussian-el-mass-5", "logistic-el-mnn-mass-5-3"])
def test_the_frame_of_the_mass_follows_a_shift(name):
    model = build(name, (1, 60)).double()
    x = torch.zeros(1, 1, 60, dtype=torch.float64)
    x[..., 20:30] = signals(1)[:, :1, :10]
    moved = x.roll(7, -1)
    torch.testing.assert_close(model(moved), model(x))
    loc, (shifted, _) = model.embedding.placement(x)[0], model.embedding.placement(moved)
    torch.testing.assert_close(shifted, loc + 7)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("cnn-2-2-2", (1, 7)), ("stages-2-2-logistic-el-2", (1, 3)), ("linear", (5,))],
)
def test_a_signal_that_is_too_short_is_refused(name, shape):
    with pytest.raises(ValueError, match=r"signals of at least|channels, length") as error:
        build(name, shape)
    assert is_sentence(str(error.value))
