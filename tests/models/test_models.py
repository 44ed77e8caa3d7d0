"""The paper's networks: sizes, start, and the forward pass against sums written out in full."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from densembed.data import as_input
from densembed.fields.field import field, view
from densembed.models.names import MODELS, check_name, describe, fill, parse, pattern
from densembed.models.registry import build, parameter_count
from densembed.text import quoted
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, build_seeded, train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)

# Cicala & Bortolussi (2020), Table 1 (MNIST) and Table 2 (CIFAR-10), column "parameters".
TABLES = [
    ("linear", 7850, 30730),
    ("mlp-50", 39760, 154160),
    ("logistic-el-3", 136, 388),
    ("logistic-el-5", 360, 1060),
    ("logistic-el-8", 906, 2698),
    ("logistic-el-15", 3160, 9460),
    ("logistic-el-mnn-6-3", 1198, 7462),
    ("logistic-el-mnn-8-4", 3018, 21322),
    ("logistic-el-mnn-10-5", 6510, 49510),
]


@pytest.mark.parametrize(("name", "mnist", "cifar"), TABLES)
def test_parameters_are_those_of_the_papers_tables(name, mnist, cifar):
    assert parameter_count(build(name, MNIST)) == mnist
    assert parameter_count(build(name, CIFAR)) == cifar


@pytest.mark.parametrize(
    "shape", [MNIST, CIFAR, (1, 5, 9)], ids=lambda shape: "x".join(map(str, shape))
)
def test_linear_is_torchs_linear_layer_on_the_pixels(shape):
    model = build("linear", shape, classes=7)
    reference = torch.nn.Linear(math.prod(shape), 7)
    reference.load_state_dict(model.classifier.state_dict())
    x = torch.rand(4, *shape)
    assert torch.equal(model(x), reference(x.flatten(1)))


def test_mlp_has_one_hidden_layer_with_relu():
    model = build("mlp-6", (1, 4, 5), classes=3).double()
    x = torch.rand(8, 1, 4, 5, dtype=torch.float64)
    (w1, b1, w2, b2) = (parameter.detach().numpy() for parameter in model.parameters())
    hidden = np.maximum(x.flatten(1).numpy() @ w1.T + b1, 0)
    assert 0 < (hidden == 0).mean() < 1
    np.testing.assert_allclose(model(x).detach(), hidden @ w2.T + b2, rtol=1e-12)


def logistic(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def normal(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


# A family's primitive and its factor on s: the logistic's standard deviation is π/√3.
PRIMITIVES = {"logistic": (logistic, 1.0), "gaussian": (normal, math.pi / math.sqrt(3))}


def embedded(x, alpha, beta, family) -> np.ndarray:
    """Γx of one picture (C, H, W), with α (C, K, 2) and β (C, K, 2): every mass, every product."""
    primitive, unit = PRIMITIVES[family]
    channels, height, width = x.shape
    result = np.zeros(alpha.shape[:2])
    for c in range(channels):
        for k in range(alpha.shape[1]):
            mu_t, mu_u = (
                size * logistic(4 * alpha[c, k, d]) for d, size in ((0, width), (1, height))
            )
            s_t, s_u = (
                size * logistic(beta[c, k, d]) * unit for d, size in ((0, width), (1, height))
            )
            for m in range(height):
                rows = primitive((m + 1 - mu_u) / s_u) - primitive((m - mu_u) / s_u)
                for n in range(width):
                    columns = primitive((n + 1 - mu_t) / s_t) - primitive((n - mu_t) / s_t)
                    result[c, k] += rows * columns * x[c, m, n]
    return result


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 5, 5), (1, 4, 9), (3, 7, 3)])
@pytest.mark.parametrize("name", ["logistic-el-3", "logistic-el-mnn-3-2", "gaussian-el-mnn-2-1"])
def test_forward_is_the_sum_over_densities_and_pixels(name, shape):
    torch.manual_seed(1)
    model = build(name, shape, classes=4).double()
    x = torch.rand(3, *shape, dtype=torch.float64)
    state = {key: value.numpy() for key, value in model.state_dict().items()}
    family = name.split("-")[0]
    expected = []
    for picture in x.numpy():
        beta = state["embedding.beta"]
        if "mnn" in name:
            inner = embedded(
                picture,
                state["embedding.locator.0.alpha"],
                state["embedding.locator.0.beta"],
                family,
            )
            alpha = state["embedding.locator.2.weight"] @ inner.ravel()
            alpha = (alpha + state["embedding.locator.2.bias"]).reshape(beta.shape)
        else:
            alpha = state["embedding.alpha"]
        embedding = embedded(picture, alpha, beta, family).ravel()
        expected.append(state["classifier.weight"] @ embedding + state["classifier.bias"])
    np.testing.assert_allclose(model(x).detach(), expected, rtol=1e-9, atol=1e-12)


def test_models_train_in_float32_as_they_do_in_float64():
    torch.manual_seed(2)
    model = build("logistic-el-mnn-4-2")
    x = torch.rand(5, *MNIST)
    single = model(x).detach()
    torch.testing.assert_close(single.double(), model.double()(x.double()), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "logistic-el-0",
        "logistic-el-65",
        "logistic-el-99999999999999999999",
        "logistic-el-" + "9" * 6000,
        "logistic-el-" + "0" * 6000 + "5",
        "logistic-el-5-",
        "logistic-el--5",
        "logistic-el-5.0",
        "logistic-el-mnn-10",
        "logistic-el-mnn-10-0",
        "logistic-el-mnn-0-5",
        "logistic-el-mnn-10-65",
        "poisson-el-5",
        "LOGISTIC-el-5",
        "logistic-el-٥",
        "logistic-el-５",
        "logistic-el-²",
        "logistic-el-5\n",
        "logistic-el-5\nlogistic-el-5",
        " logistic-el-5",
        "linear\x00",
        "linear-5",
        "mlp-0",
        "mlp-4097",
        "mlp",
        "adaptive-conv-pool",
        "adaptive-conv-pool-el-8",
        "adaptive-conv-pool-logistic-el-0",
        "adaptive-conv-pool-logistic-el-65",
        "adaptive-conv-pool-logistic-el-mnn-8",
        "adaptive-conv-pool-logistic-el-mnn-8-65",
        "{family}-el-{size}",
        "logistic-el-mass-",
        "logistic-el-mass",
        "mass-logistic-el-5",
        "../linear",
        "a" * 100_000,
    ],
    ids=lambda name: repr(name[:24]),
)
def test_bad_names_are_refused_with_a_sentence(name):
    for function in (build, check_name, describe):
        with pytest.raises(ValueError, match=r"model|sizes") as caught:
            function(name)
        assert is_sentence(str(caught.value))
        assert len(str(caught.value)) < 600  # all forms and families, and little of a long name


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("logistic-el-" + "9" * 20, 64),
        ("logistic-el-" + "9" * 6000, 64),
        ("stages-8-1000000000-logistic-el-4", 64),
        ("mlp-" + "0" * 12, 4096),
        ("mlp--3", 4096),
        ("logistic-el-mnn-9--1", 64),
        ("stages-8--2-logistic-el-4", 64),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_size_of_any_length_is_out_of_range(name, most):
    with pytest.raises(ValueError, match=f"must lie between 1 and {most}") as caught:
        check_name(name)
    assert str(caught.value).startswith(f"The sizes in {name[:60]!r} ")


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6), st.booleans())
def test_what_an_error_suggests_is_a_name(template, number, typo):
    name = template.replace("{family}", "logistic").replace("{frame}", "")
    name = re.sub(r"{\w+}", str(number), name)
    words, _ = said(check_name, name.replace("-", "--", 1) if typo else name)
    for meant in re.findall(r"did you mean '(.*?)'", words):
        assert check_name(meant) == meant


def said(function, name: str) -> tuple[str, bool]:
    """What comes of a name, and whether it is a refusal."""
    try:
        return function(name), False
    except ValueError as error:
        return str(error), True


@given(st.text(max_size=40))
def test_any_text_is_a_name_or_a_value_error(text):
    words, refused = said(check_name, text)
    assert is_sentence(words.replace(quoted(text), "it")) if refused else words == text


@given(st.from_regex("|".join(f"(?:{pattern(form)})" for form in MODELS), fullmatch=True))
def test_names_of_the_right_form_are_words_or_out_of_range(name):
    words, refused = said(describe, name)
    assert is_sentence(words) if refused else words[0].isupper()


def test_only_modules_have_parameters():
    with pytest.raises(TypeError, match=r"for example build\('logistic-el-5'\); got str\."):
        parameter_count("logistic-el-5")


def test_the_largest_sizes_can_be_built():
    assert build("logistic-el-64").embedding.num_densities == 64**2
    assert build("mlp-4096", (1, 2, 2)).classifier[0].out_features == 4096


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("linear", "Linear classifier"),
        ("mlp-50", "MLP with 50 hidden units"),
        ("mlp-1", "MLP with 1 hidden unit"),
        ("gaussian-el-8", "Gaussian-EL, B = 8"),
        ("logistic-el-mnn-10-5", "Logistic-EL with mNN, B = 10, B₀ = 5"),
        (
            "adaptive-conv-pool-cauchy-el-8",
            "Adaptive convolution and pooling, Cauchy-EL, B = 8",
        ),
        (
            "adaptive-conv-pool-logistic-el-mnn-8-4",
            "Adaptive convolution and pooling, Logistic-EL with mNN, B = 8, B₀ = 4",
        ),
        (
            "logistic-el-mnn-scale-8-4",
            "Logistic-EL with mNN of learned scales, B = 8, B₀ = 4",
        ),
        (
            "stages-4-5-6-logistic-el-2",
            "Adaptive stages of 4, 5 and 6 maps, Logistic-EL, B = 2",
        ),
        (
            "stages-8-12-logistic-el-mnn-4-2",
            "Adaptive stages of 8 and 12 maps, Logistic-EL with mNN, B = 4, B₀ = 2",
        ),
        ("stages-1-logistic-el-2", "One adaptive stage of 1 map, Logistic-EL, B = 2"),
        ("cnn-1", "Plain CNN of 1 map"),
        ("cnn-1-3", "Plain CNN of 1 and 3 maps"),
        ("cnn-2-3-4", "Plain CNN of 2, 3 and 4 maps"),
        ("raisedcosine-el-8", "Raised cosine-EL, B = 8"),
        ("hypsecant-el-mnn-8-4", "Hyperbolic secant-EL with mNN, B = 8, B₀ = 4"),
    ],
)
def test_names_in_words(name, words):
    assert describe(name) == words


@pytest.mark.parametrize("shape", [(0, 28, 28), (1, 0, 28), (1, 28, -1), (28,), (1, 1, 28, 28)])
def test_impossible_input_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="input_shape"):
        build("logistic-el-3", shape)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3"])
def test_impossible_class_counts_are_refused(count):
    with pytest.raises(ValueError, match=f"{count!r} classes"):
        build("linear", classes=count)


@pytest.mark.parametrize("name", ["linear", "logistic-el-3", "logistic-el-mnn-4-2"])
def test_inputs_of_another_shape_are_refused(name):
    model = build(name)
    for shape in ((2, 1, 28, 27), (2, 3, 28, 28), (28, 28)):
        with pytest.raises(ValueError, match="Expected an input of shape"):
            model(torch.rand(shape))


def test_start_is_that_of_the_appendix():
    """α ~ N(0, 0.4), β ~ N(−3, 0.3), over 4,096 × 2 draws each: 5 standard errors."""
    torch.manual_seed(0)
    embedding = build("logistic-el-64").embedding
    count = embedding.alpha.numel()
    for value, mean, std in ((embedding.alpha, 0.0, 0.4), (embedding.beta, -3.0, 0.3)):
        assert value.mean().item() == pytest.approx(mean, abs=5 * std / math.sqrt(count))
        assert value.std().item() == pytest.approx(std, abs=5 * std / math.sqrt(2 * count))


def test_start_of_the_adaptive_embedding():
    torch.manual_seed(0)
    embedding = build("logistic-el-mnn-64-40").embedding
    inner = embedding.locator[0]
    assert inner.alpha.std().item() == pytest.approx(0.4, abs=0.03)
    for beta in (embedding.beta, inner.beta):
        assert beta.mean().item() == pytest.approx(-3, abs=0.03)
        assert beta.std().item() == pytest.approx(0.3, abs=0.03)


def test_models_start_differently_and_repeat_by_seed():
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(build("logistic-el-mnn-4-2").state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not any(torch.equal(states[0][key], states[2][key]) for key in states[0])


@pytest.mark.parametrize(
    ("name", "shape", "field"),
    [
        ("logistic-el-3", (1, 6, 8), (1, 1, 9, 12, 16)),
        ("logistic-el-3", (3, 6, 8), (1, 3, 9, 12, 16)),
        ("logistic-el-mnn-3-2", (1, 6, 8), (5, 1, 9, 12, 16)),
        ("logistic-el-mnn-3-2", (3, 6, 8), (5, 3, 9, 12, 16)),
        ("linear", (3, 6, 8), (1, 1, 48, 12, 16)),
    ],
)
def test_shape_of_the_receptive_field(name, shape, field):
    model = build(name, shape)
    assert model.receptive_field(torch.rand(5, *shape), resolution=2).shape == field
    assert model.adaptive == ("mnn" in name)


def test_adaptive_fields_need_an_input():
    with pytest.raises(ValueError, match="pass x"):
        build("logistic-el-mnn-3-2").receptive_field()


def test_values_of_the_receptive_field():
    """φ(t, u) = f((t − μ)/s)/s · f((u − ν)/s)/s at the centres of the cells, f the logistic pdf."""
    model = build("logistic-el-1", (1, 4, 8)).double()
    with torch.no_grad():
        model.embedding.alpha[:] = torch.tensor([0.2, -0.3], dtype=torch.float64)
        model.embedding.beta[:] = torch.tensor([-2.0, -1.0], dtype=torch.float64)
    got = model.receptive_field(resolution=3)[0, 0, 0]
    mu, nu = 8 * logistic(4 * 0.2), 4 * logistic(4 * -0.3)
    s_t, s_u = 8 * logistic(-2.0), 4 * logistic(-1.0)

    def pdf(value, loc, scale):
        z = (value - loc) / scale
        return math.exp(-z) / (1 + math.exp(-z)) ** 2 / scale

    for row, column in ((0, 0), (5, 17), (11, 23), (1, 20)):
        t, u = (column + 0.5) / 3, (row + 0.5) / 3
        assert got[row, column].item() == pytest.approx(pdf(t, mu, s_t) * pdf(u, nu, s_u), rel=1e-9)


@pytest.mark.parametrize("resolution", [1, 2, 3, 4])
def test_linear_sees_every_place_once(resolution):
    field = build("linear", (3, 5, 7)).receptive_field(resolution=resolution)
    assert torch.equal(field.sum(2), torch.ones(1, 1, 5 * resolution, 7 * resolution))
    # Density i is on pixel i alone, in the order in which the classifier has the pixels.
    assert torch.equal(field[0, 0, 9].argmax() // (7 * resolution), torch.tensor(resolution))


def test_field_moves_with_the_input_only_where_it_should():
    torch.manual_seed(3)
    x = torch.rand(2, *MNIST)
    moving = build("logistic-el-mnn-4-2").receptive_field(x)
    assert not torch.allclose(moving[0], moving[1])
    still = build("logistic-el-4")
    assert torch.equal(still.receptive_field(x), still.receptive_field())


@pytest.mark.parametrize("name", [row[0] for row in TABLES])
def test_state_dict_round_trip(name):
    first, second = build(name), build(name)
    x = torch.rand(2, *MNIST)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))
    assert sum(value.numel() for value in first.state_dict().values()) == parameter_count(first)


@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("linear", True),
        ("logistic-el-3", True),
        ("mlp-5", False),
        ("logistic-el-mnn-3-2", False),
        ("adaptive-conv-pool-logistic-el-3", False),
    ],
)
def test_fixed_densities_and_a_linear_map_fold_into_one(name, linear):
    model = build(name, (3, 6, 8), classes=4).double()
    if not linear:
        with pytest.raises(ValueError, match="Only fixed densities"):
            model.fold()
        return
    for sizes in ((6, 8), (12, 8), (5, 11)):
        x = torch.rand(5, 3, *sizes).double()
        torch.testing.assert_close(model.at(sizes).fold()(x.flatten(1)), model.at(sizes)(x))


# The deeper network

DEEP = ["adaptive-conv-pool-logistic-el-5", "adaptive-conv-pool-logistic-el-mnn-5-3"]


@pytest.mark.parametrize("name", DEEP)
def test_deep_network_is_its_layers_in_turn(name):
    """At the start p = K and β = 0: torch's convolution and average pooling."""
    model = build(name, (3, 9, 12), classes=4)
    conv, _, pool = model.embedding.features
    assert conv.amplitude().tolist() == [[5, 5]]
    assert torch.equal(pool.beta, torch.zeros(8))
    x = torch.rand(3, 3, 9, 12)
    maps = torch.nn.functional.conv2d(x, conv.weight, conv.bias, padding=2).relu()
    maps = torch.nn.functional.avg_pool2d(maps, 2)
    embedded = (model.embedding.embedding.gamma(maps) * maps[:, :, None]).flatten(3).sum(-1)
    torch.testing.assert_close(
        model(x), model.classifier(embedded.flatten(1)), rtol=1e-4, atol=1e-5
    )


def test_parameters_of_the_deep_network():
    """Convolution, its amplitude, 8 β; densities that the maps share; the classifier."""
    trunk = 8 * 25 + 8 + 2 + 8
    assert parameter_count(build(DEEP[0])) == trunk + 4 * 25 + 10 * 8 * 25 + 10
    micro = 4 * 9 + (8 * 9) * (2 * 25) + 2 * 25
    assert parameter_count(build(DEEP[1])) == trunk + micro + 2 * 25 + 10 * 8 * 25 + 10


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("shape", [MNIST, (3, 9, 12), (1, 2, 2)])
def test_field_of_the_deep_network_lies_on_the_input(name, shape):
    model = build(name, shape)
    x = torch.rand(4, *shape)
    result = field(model, x, resolution=3)
    inputs = 4 if "mnn" in name else 1
    assert model.adaptive == ("mnn" in name)
    assert result.values.shape == (inputs, 1, 3 * shape[1], 3 * shape[2])
    assert (result.x[-1], result.y[-1]) == (shape[2] - 0.5 / 3, shape[1] - 0.5 / 3)
    densities = model.receptive_field(x, resolution=3)
    np.testing.assert_allclose(result.values, densities.sum(2).detach(), rtol=1e-4, atol=1e-6)
    # All the mass on the maps is on the input, up to the cells' rule (and an odd last pixel).
    mass = densities.sum((-1, -2)) / 9
    on_maps = model.embedding.embedding.gamma(model.embedding.features(x)).sum((-1, -2))
    if shape == MNIST:
        torch.testing.assert_close(mass, on_maps, rtol=0.05, atol=0.02)


def test_a_picture_smaller_than_the_pooling_is_refused():
    with pytest.raises(ValueError, match="at least 2 × 2 pixels; got 1 × 28"):
        build(DEEP[0], (1, 1, 28))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [(DEEP[0], 25.0), (DEEP[1], 25.0)])
def test_deep_network_learns_and_is_opened_again(name, least, digits, tmp_path):
    """Trained in a run, kept, opened, and its fields looked at as Explore does."""
    config = RunConfig(model=name, epochs=3, learning_rate=0.02, batch_size=64, device="cpu")
    recorder = Recorder(config, digits)
    errors = []
    for event in train(config, digits):
        recorder.add(event)
        if isinstance(event, Epoch):
            errors += event.test_error
    assert errors[-1] < least
    assert errors[-1] < errors[0] / 2
    recorder.checkpoint("done").save(tmp_path / "deep.safetensors")
    checkpoint = Checkpoint.open(tmp_path / "deep.safetensors")
    start, end = checkpoint.model(0), checkpoint.model()
    for learned in ("features.0.amplitude_logit", "features.2.beta"):
        moved = end.embedding.get_parameter(learned) - start.embedding.get_parameter(learned)
        assert moved.abs().min() > 1e-3
    fields = view(checkpoint, digits.test.images[0], [0, -1], resolution=2)
    assert [values.shape for values in fields.fields] == [(1, 56, 56)] * 2
    assert np.abs(fields.fields[1] - fields.fields[0]).max() > 0.01
    logits = end(as_input(digits.test.images[:1]))[0].softmax(0)
    np.testing.assert_allclose(fields.probabilities[1], logits, rtol=1e-5)


def test_stages_are_their_layers_in_turn():
    """At the start p = K and β = 0: torch's convolutions and average pooling, the last without."""
    model = build("stages-2-3-4-logistic-el-2", (3, 9, 12), classes=5)
    maps = x = torch.rand(3, 3, 9, 12)
    layers = list(model.embedding.features)
    assert [type(layer).__name__ for layer in layers] == [
        "AdaptiveConv2d",
        "ReLU",
        "AdaptivePool2d",
        "AdaptiveConv2d",
        "ReLU",
        "AdaptivePool2d",
        "AdaptiveConv2d",
        "ReLU",
    ]
    for k, conv in enumerate((layers[0], layers[3], layers[6])):
        maps = torch.nn.functional.conv2d(maps, conv.weight, conv.bias, padding=1).relu()
        maps = torch.nn.functional.avg_pool2d(maps, 2) if k < 2 else maps
    assert maps.shape == (3, 4, 2, 3)
    embedded = (model.embedding.embedding.gamma() * maps[:, :, None]).flatten(3).sum(-1)
    torch.testing.assert_close(
        model(x), model.classifier(embedded.flatten(1)), rtol=1e-4, atol=1e-5
    )


def test_the_plain_cnn_is_torchs():
    model = build("cnn-2-3", (3, 9, 12), classes=5)
    maps = x = torch.rand(4, 3, 9, 12)
    for conv in (model.embedding.features[0], model.embedding.features[3]):
        maps = torch.nn.functional.conv2d(maps, conv.weight, conv.bias, padding=1).relu()
        maps = torch.nn.functional.max_pool2d(maps, 2)
    assert maps.shape == (4, 3, 2, 3)
    torch.testing.assert_close(model(x), model.classifier(maps.flatten(1)))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("stages-2-logistic-el-2", (9 * 2 + 2 + 2 + 2) + 4 * 4 + 10 * 2 * 4 + 10),
        (
            "stages-3-4-logistic-el-2",
            (27 + 3 + 2 + 3) + (9 * 12 + 4 + 2 + 4) + 4 * 4 + 10 * 4 * 4 + 10,
        ),
        (
            "stages-4-5-6-logistic-el-2",
            (36 + 4 + 2 + 4) + (180 + 5 + 2 + 5) + (270 + 6 + 2) + 4 * 4 + 10 * 6 * 4 + 10,
        ),
        ("logistic-el-mnn-scale-4-3", 4 * 9 + 9 * 4 * 16 + 4 * 16 + 2 * 16 + 10 * 16 + 10),
        ("logistic-el-mass-15", 3160),
        ("logistic-el-mnn-mass-10-5", 6510),
        ("cnn-2-3-2", (18 + 2) + (54 + 3) + (54 + 2) + 10 * 2 * 9 + 10),
    ],
)
def test_parameters_of_small_networks(name, count):
    assert parameter_count(build(name)) == count


def test_learned_scales_start_as_if_they_were_fixed(digits):
    """Whatever the input, and with a grid of locations, too."""
    config = RunConfig(model="logistic-el-mnn-scale-4-2", location_start="grid")
    model = build_seeded(config, digits)
    x = as_input(digits.test.images[:3])
    loc, scale = model.embedding.placement(x)
    assert torch.equal(scale[0], scale[1])
    expected = 28 * model.embedding.beta.sigmoid()
    torch.testing.assert_close(scale[0], expected)
    bias = model.embedding.locator[-1].bias.view(2, 16, 2)
    middles = 28 * torch.sigmoid(4 * bias[0])
    places = torch.tensor([3.5, 10.5, 17.5, 24.5])
    torch.testing.assert_close(middles, torch.cartesian_prod(places, places))
    assert not bias[1].any()
    assert not torch.equal(loc[0], loc[1])


@given(st.from_regex("|".join(f"(?:{pattern(form)})" for form in MODELS), fullmatch=True))
def test_a_name_is_filled_in_from_its_parts(name):
    try:
        template, arguments = parse(name)
    except ValueError:
        return  # out of range
    assert parse(fill(template, arguments)) == (template, arguments)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("logistic-el-mass-05", "logistic-el-mass-5"),
        ("mlp-0050", "mlp-50"),
        ("stages-08-010-logistic-el-mnn-10-05", "stages-8-10-logistic-el-mnn-10-5"),
    ],
)
def test_numbers_in_names_are_stored_without_leading_zeros(name, stored):
    assert check_name(name) == RunConfig(model=name).model == stored


SMALL = [
    "stages-2-logistic-el-2",
    "stages-2-2-3-logistic-el-2",
    "stages-3-4-logistic-el-mnn-2-1",
    "logistic-el-mnn-scale-4-2",
    "cnn-2-3",
    "cnn-2-2-3",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_members_of_small_networks_learn_together(name, digits):
    """As many members in one step as alone, and the loss falls; the field lies on the input."""
    config = RunConfig(
        model=name, epochs=2, batch_size=256, learning_rate=0.05, device="cpu", seeds=2
    )
    epochs = [event for event in train(config, digits) if isinstance(event, Epoch)]
    assert all(end < start for start, end in zip(*(e.train_loss for e in epochs), strict=True))
    model = build(name)
    values = field(model, torch.rand(2, 1, 28, 28), resolution=2).values
    assert values.shape == (2 if model.adaptive else 1, 1, 56, 56)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["stages-2-2-logistic-el-2", "cnn-2-2"])
def test_a_picture_that_the_stages_would_use_up_is_refused(name):
    with pytest.raises(ValueError, match="at least 4 × 4 pixels; got 3 × 28"):
        build(name, (1, 3, 28))
