"""The engine of the browser computes what torch computes, from the same files."""

import base64
import json
import math
import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from densembed.data import as_input
from densembed.data.transform import scaled_images
from densembed.fields.field import TOP_PERCENTILE, field, finite, logits, pixel_field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    field_statistics,
    input_gradient,
    mean_displacement,
    measure,
    on_pixels,
    weighted_field,
)
from densembed.functional.densities import FAMILIES
from densembed.functional.frame import mass_box
from densembed.functional.uniform import cell_means
from densembed.layers import FeatureEmbedding
from densembed.layers.features import places
from densembed.models.names import MODELS, describe
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError, Header
from tests.browser.gallery import FIXED, FRAMED, MOVING, PAPER, ROOT, made, sample
from tests.training import files

ENGINE = ROOT / "densembed/web/engine"
SHIPPED = sorted((ROOT / "checkpoints/paper").glob("*.safetensors"))
CLOSE = 1e-5
"""Largest error, relative to the largest value."""
LIBRARY = """async ([script, options]) => {
  const engine = await import("/densembed.js");
  const packed = (values) => {
    const bytes = new Uint8Array(Float32Array.from(values).buffer);
    let text = "";
    for (let at = 0; at < bytes.length; at += 4096)
      text += String.fromCharCode(...bytes.subarray(at, at + 4096));
    return btoa(text);
  };
  const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  // A picture's bytes are ink from 0 to 255; a signal has its values as they are.
  const inputOf = ([kind, text]) => kind === "signal" ? new Float32Array(bytes(text).buffer)
    : Float32Array.from(bytes(text), (each) => each / 255);
  return eval(script)({ engine, packed, bytes, inputOf }, options);
}"""
COMPUTE = """({ engine, packed, bytes, inputOf }, options) => {
  const { file, grid, snapshots, inputs, resolutions, label, density } = options;
  const opened = engine.readCheckpoint(bytes(file).buffer);
  const checkpoint = grid ? opened.at(grid) : opened;
  const { header, members, errors, typical, parameters, hasDensities, readsDigits } = checkpoint;
  const { adaptive, onPixels, linear, densities, axes } = checkpoint.network();
  const facts = {
    header, members, errors, typical, parameters, hasDensities, readsDigits,
    adaptive, onPixels, linear, densities, axes: [axes, checkpoint.axes],
    words: engine.describe(checkpoint.config.model),
    moments: checkpoint.steps.map((step) => checkpoint.moment(step)),
    epochTexts: [...checkpoint.steps, 123456].map((step) => checkpoint.epochText(step)),
    epochs: checkpoint.steps.map((step) => checkpoint.epochOf(step)),
  };
  const results = snapshots.flatMap((snapshot) => inputs.map((input) => {
    const network = checkpoint.network(snapshot);
    const pixels = inputOf(input);
    const result = network.run(pixels);
    const weights = network.classWeights(label);
    const features = network.features(pixels);
    const micro = network.micro(pixels);
    const numbers = {
      ...result,
      weights,
      contributions: network.contributions(result, label),
      pixels: network.pixelField(result),
      gamma: network.gamma(result, density),
      gradient: network.inputGradient(pixels),
      path: checkpoint.path(pixels, density),
      features: features.values,
      scores: features.bias.map((bias, c) => features.values.reduce((sum, value, k) =>
        sum + value * features.weight[c * features.values.length + k], bias)),
      "feature gradient": network.featureGradient(pixels, features.values.length - 1),
      "micro readings": micro && micro.readings,
      "micro locations": micro && micro.locations,
      "micro start": micro && micro.start.locations,
      alpha: micro && [...micro.bias].map((bias, entry) => micro.readings.reduce(
        (sum, reading, k) => sum + reading * micro.weight[entry * micro.readings.length + k],
        bias)),
    };
    for (const resolution of resolutions) {
      numbers[`field ${resolution}`] = network.field(result, { resolution });
      numbers[`last ${resolution}`] = network.field(result, { resolution, channel: 2 });
      numbers[`density ${resolution}`] = network.density(result, density, { resolution });
      numbers[`class ${resolution}`] = weights && network.field(result, { resolution, weights });
    }
    return Object.fromEntries(
      Object.entries(numbers).map(([key, values]) => [key, values && packed(values)]));
  }));
  return { facts, results };
}"""
READ = """({ engine, bytes }, texts) => texts.map((text) => {
  try {
    engine.readCheckpoint(bytes(text).buffer, "it.safetensors");
    return null;
  } catch (error) {
    return [error.name, error.message];
  }
})"""


TITLE = """({ engine, bytes }, text) =>
  engine.readCheckpoint(bytes(text).buffer, "it.safetensors").provenance.dataset_title"""


class Engine:
    """A tab with the engine."""

    def __init__(self, page):
        self.page = page
        page.route("http://engine/**", self._serve)
        page.goto("http://engine/")

    def _serve(self, route) -> None:
        name = route.request.url.removeprefix("http://engine/")
        if name.endswith(".js"):
            route.fulfill(path=ENGINE / name, content_type="text/javascript")
        elif name:
            route.fulfill(path=ROOT / "checkpoints/paper" / name)
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    def evaluate(self, script: str, options):
        return self.page.evaluate(LIBRARY, [script, options])

    def compute(self, data: bytes, inputs: list[Tensor], **options) -> tuple[dict, list[dict]]:
        """The engine's facts about a file, and its numbers for each snapshot and input."""
        options |= {"file": text(data), "inputs": [packed(each) for each in inputs]}
        outcome = self.evaluate(COMPUTE, options)
        return outcome["facts"], [
            {key: each and numbers(each) for key, each in result.items()}
            for result in outcome["results"]
        ]


def text(data: bytes | Tensor) -> str:
    return base64.b64encode(data.numpy().tobytes() if isinstance(data, Tensor) else data).decode()


def packed(values: Tensor) -> tuple[str, str]:
    """An input for `inputOf`."""
    return "signal" if values.is_floating_point() else "picture", text(values)


def numbers(packed: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), "<f4")


@pytest.fixture(scope="module")
def engine(browser) -> Iterator[Engine]:
    page = browser.new_page()
    yield Engine(page)
    page.close()


# Networks


def facts_of(checkpoint: Checkpoint) -> dict:
    model = checkpoint.network()
    try:
        linear = model.fold() is not None
    except ValueError:
        linear = False
    return {
        "header": json.loads(checkpoint.header.model_dump_json()),
        "members": checkpoint.members,
        "errors": checkpoint.errors,
        "typical": checkpoint.typical,
        "parameters": checkpoint.parameters,
        "hasDensities": checkpoint.has_densities,
        "readsDigits": checkpoint.reads_digits,
        "adaptive": model.adaptive,
        "onPixels": on_pixels(model),
        "linear": linear,
        "densities": model.embedding.groups * model.embedding.num_densities,
        "axes": [len(checkpoint.header.input_shape) - 1] * 2,
        "words": describe(checkpoint.config.model),
        "moments": [checkpoint.moment(step) for step in checkpoint.steps],
        "epochTexts": [checkpoint.epoch_text(step) for step in (*checkpoint.steps, 123456)],
        "epochs": [checkpoint.epoch_of(step) for step in checkpoint.steps],
    }


def box(model: nn.Module, x: Tensor) -> Tensor | None:
    """Left and upper edge, width and height of the box of the densities, unless it is the input."""
    embedding, axes = model.embedding, x.dim() - 2
    stretch, offset = x.new_ones(axes), x.new_zeros(axes)
    if isinstance(embedding, FeatureEmbedding):
        stretch, offset = (part.flip(0).to(x) for part in places(embedding.features, axes))
        pixel = x.new_tensor(embedding.pixel[::-1])
        stretch, offset = stretch / pixel, offset / pixel
        x, embedding = maps_of(embedding, x), embedding.embedding
    if getattr(embedding, "frame", "input") == "input":
        return None
    lower, length = mass_box(x, embedding.pixel)
    return torch.cat([lower * stretch + offset, length * stretch], -1).flatten()


def maps_of(embedding: FeatureEmbedding, x: Tensor) -> Tensor:
    """The features of an input, which is scaled to their own grid."""
    with torch.inference_mode():
        return embedding.features(cell_means(x, embedding.cells))


def expected(
    checkpoint: Checkpoint,
    snapshot: int,
    values: Tensor,
    label: int,
    density: int,
    resolutions: list[int],
    grid: tuple[int, ...] | None = None,
) -> dict:
    """The numbers of `COMPUTE`, by torch in float64."""

    def on_grid(model: nn.Module) -> nn.Module:
        return model.at(grid) if grid else model

    model = on_grid(checkpoint.model(snapshot)).double()
    x = as_input(values[None], torch.float64)
    placed, weights = densities(model, x), class_weights(model)
    with torch.inference_mode():
        scores, readings = model(x)[0], model.embedding(x)[0].flatten()
        gamma = model.embedding.gamma(x)[0].flatten(0, 1)[density]
    places = [
        densities(on_grid(checkpoint.network(k)), x.float()).loc[density]
        for k in range(len(checkpoint.steps))
    ]
    wanted = {
        "logits": scores,
        "probabilities": scores.softmax(0),
        "readings": readings,
        "locations": placed.loc,
        "scales": placed.scale,
        "box": box(model, x),
        "weights": None,
        "contributions": None,
        "pixels": pixel_field(model, x)[0].sum(0),
        "gamma": gamma,
        "gradient": input_gradient(model, x),
        "path": places,
        "scores": scores,
        **features(model, x),
        **micro_network(model, x),
    }
    if weights is not None:
        terms = model.classifier.weight[label] * readings
        wanted["weights"] = weights[label]
        wanted["contributions"] = terms.reshape(-1, weights[label].numel()).sum(0)
    for resolution in resolutions:
        values = field(model, x, resolution).values[0]
        wanted |= {
            f"field {resolution}": values.sum(0),
            f"last {resolution}": values[2 % len(values)],
            f"density {resolution}": density_field(model, x, density, resolution),
            f"class {resolution}": None
            if weights is None
            else weighted_field(model, x, weights[label], resolution).sum(0),
        }
    return wanted


def features(model, x: Tensor) -> dict:
    """What the last linear map gets, and the gradient of its last entry (before ReLU)."""
    x = x.clone().requires_grad_()
    layers = [layer for layer in model.classifier.modules() if isinstance(layer, torch.nn.Linear)]
    values = model.embedding(x).flatten(1)
    if len(layers) > 1:
        values = layers[0](values)
    (gradient,) = torch.autograd.grad(values[0, -1], x)
    return {
        "features": (values.relu() if len(layers) > 1 else values)[0].detach(),
        "feature gradient": gradient[0],
    }


def micro_network(model, x: Tensor) -> dict:
    """The readings and places of the micro network, α, and the locations for a blank picture."""
    names = ["micro readings", "micro locations", "micro start", "alpha"]
    embedding = model.embedding
    inner = embedding if on_pixels(model) else embedding.embedding
    if not hasattr(inner, "locator"):
        return dict.fromkeys(names)
    with torch.inference_mode():
        if on_pixels(model):
            maps, locator = x, inner.locator
            micro = locator[0]
        else:
            maps, locator = maps_of(embedding, x), inner.locator
            sizes, channels = embedding.cells, x.shape[1]
            micro = FeatureEmbedding(
                embedding.features, locator[0], sizes=sizes, in_channels=channels
            ).at(x.shape[2:])
        values = [
            locator[0](maps)[0].flatten(),
            micro.placement(x)[0][0].flatten(),
            densities(model, torch.zeros_like(x)).loc,
            locator(maps)[0],
        ]
    return dict(zip(names, values, strict=True))


def agree(engine: Engine, data: bytes, inputs: list[Tensor], **options) -> None:
    checkpoint = Checkpoint.from_bytes(data)
    facts = facts_of(checkpoint)
    facts["header"]["input_shape"] = list(inputs[0].shape)
    last = {"label": len(facts["header"]["classes"]) - 1, "density": facts["densities"] - 1}
    options = {"snapshots": [0], "resolutions": [2]} | last | options
    answer, numbers_of = engine.compute(data, inputs, **options)
    assert answer == facts
    results = iter(numbers_of)
    for snapshot in options.pop("snapshots"):
        for values in inputs:
            answer, wanted = next(results), expected(checkpoint, snapshot, values, **options)
            assert answer.keys() == wanted.keys()
            for name in wanted:
                close(name, answer[name], wanted[name])


def close(name: str, values, wanted, tolerance: float = CLOSE) -> None:
    if wanted is None:
        assert values is None, name
        return
    wanted = np.asarray(wanted, np.float64).ravel()
    assert values.shape == wanted.shape, name
    # the engine's numbers are float32: what is below its normal ones may be zero
    largest = max(abs(wanted).max(), np.finfo(np.float32).tiny)
    np.testing.assert_allclose(values / largest, wanted / largest, 0, tolerance, err_msg=name)


def pictures(shape: tuple[int, int, int]) -> list[Tensor]:
    """A picture with an empty part, an empty one and a full one."""
    some = torch.randint(
        0, 256, shape, generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    some[:, : shape[1] // 2] = 0
    return [some, torch.zeros_like(some), torch.full_like(some, 255)]


def signals(shape: tuple[int, int]) -> list[Tensor]:
    """A signal with an empty part, an empty one and a constant one."""
    some = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    some[:, : shape[1] // 3] = 0
    return [some, torch.zeros(shape), torch.full(shape, 1.5)]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_checkpoint(engine, path):
    shape = Checkpoint.peek(path).input_shape
    inputs = pictures(shape) if len(shape) == 3 else signals(shape)
    agree(engine, path.read_bytes(), inputs, snapshots=[0, -1], resolutions=[1, 3, 4])


NAMES = [
    template.format(size=3, maps=maps, family=family, frame=frame)
    for template in MODELS
    for frame in (("", "mass-") if "{frame}" in template else ("",))
    for maps in (("1", "2-3-4") if "{maps}" in template else ("",))
    for family in (FAMILIES if template.startswith("{family}") and not frame else ("gaussian",))
] + ["mlp-1"]


@pytest.mark.parametrize("shape", [(1, 9, 9), (3, 12, 21)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_model_and_family(engine, name, shape):
    agree(engine, made(name, shape), pictures(shape))


@pytest.mark.parametrize("shape", [(1, 40), (3, 21)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_model_and_family_of_signals(engine, name, shape):
    agree(engine, made(name, shape), signals(shape), resolutions=[1, 4])


@pytest.mark.parametrize("name", NAMES)
def test_every_model_and_family_on_another_grid(engine, name):
    """Pixels that are no squares on the grid for which the model was made, and a finer grid.

    Without the constant inputs: torch rounds their means, so maxima that are tied differ there.
    """
    data = made(name, (1, 9, 12))
    for grid in ((14, 7), (27, 24)):
        agree(engine, data, pictures((1, *grid))[:2], grid=grid)
    agree(engine, made(name, (2, 21)), signals((2, 40))[:2], grid=(40,))


@pytest.mark.parametrize(
    ("name", "shape", "grid"),
    [
        ("linear", (1, 8, 8), (7, 7)),
        ("linear", (3, 8, 8), (5, 5)),
        ("linear", (1, 8, 8), (4, 4)),
        ("linear", (1, 8, 8), (14, 14)),
        ("linear", (1, 40), (30,)),
        ("cnn-2", (1, 8, 8), (7, 5)),
    ],
)
def test_densities_on_tiles_of_another_grid(engine, name, shape, grid):
    """Also where the centres of cells lie on edges that two densities share."""
    data = made(name, shape)
    inputs = (signals if len(grid) == 1 else pictures)((shape[0], *grid))[:1]
    agree(engine, data, inputs, grid=grid, resolutions=[1, 3, 4])
    script = """({ engine, bytes }, [file, grid]) => {
      const checkpoint = engine.readCheckpoint(bytes(file).buffer).at(grid);
      const network = checkpoint.network();
      const pixels = new Float64Array(checkpoint.inputShape.reduce((a, b) => a * b));
      return [1, 2, 3, 4].map((resolution) =>
        Array.from(network.field(network.place(pixels), { resolution })));
    }"""
    sides = [side // 2 for side in shape[1:]] if name == "cnn-2" else shape[1:]
    for values in engine.evaluate(script, [text(data), grid]):
        assert values == pytest.approx([math.prod(sides) / math.prod(grid)] * len(values), 1e-6)


@pytest.mark.parametrize("side", [7, 14, 112])
@pytest.mark.parametrize("key", [MOVING, FRAMED, FIXED])
def test_shipped_checkpoints_on_another_grid(engine, key, side):
    digit = scaled_images(sample(), (side, side))
    data, resolution = (PAPER / f"{key}.safetensors").read_bytes(), 1 if side == 112 else 4
    agree(engine, data, [digit], grid=(side, side), snapshots=[0, -1], resolutions=[resolution])


def test_the_same_checkpoint_for_the_same_grid(engine):
    script = """({ engine, bytes }, [file]) => {
      const checkpoint = engine.readCheckpoint(bytes(file).buffer);
      const fine = checkpoint.at([27, 24]);
      return [fine === checkpoint.at([27, 24]), checkpoint === checkpoint.at([9, 12]),
        String(fine.at([14, 7]).inputShape), fine.parameters === checkpoint.parameters];
    }"""
    data = text(made("logistic-el-3", (1, 9, 12)))
    assert engine.evaluate(script, [data]) == [True, True, "1,14,7", True]


def test_several_snapshots_and_members_of_signals(engine):
    """The classes are the digits, as those of MNIST-1D, but these are not read from pictures."""
    name, shape = "stages-2-3-logistic-el-mnn-3-2", (1, 40)
    head = files.header(2, config={"model": name}, input_shape=shape, **SIGNALS)
    data = files.content(head, files.tensors(2, model=name, input_shape=shape))
    agree(engine, data, signals(shape), snapshots=[0, 1, -1])


@pytest.mark.parametrize("beta", [-9.0, -7.0, 8.0])
def test_narrow_and_wide_densities(engine, beta):
    """With −9 and −7, e^−z at the first pixel is beyond float64."""

    def change(name: str, value: Tensor) -> Tensor:
        return torch.full_like(value, beta) if name.endswith("beta") else 3 * value

    for name in ("logistic-el-3", "logistic-el-mnn-3-2", "gaussian-el-3"):
        agree(engine, made(name, (1, 9, 9), change), pictures((1, 9, 9)))
        agree(engine, made(name, (1, 9), change), signals((1, 9)))


@pytest.mark.parametrize("name", ["logistic-el-3", "cauchy-el-mnn-3-2", "mlp-7"])
def test_extreme_weights_are_clipped_as_in_python(engine, name):
    """The densities are narrow and lie on the centre of a cell; weights overflow float32."""
    extremes = {"alpha": 0.0, "beta": -20.0, "2.bias": 0.0}

    def change(name: str, value: Tensor) -> Tensor:
        (extreme, *_) = [x for end, x in extremes.items() if name.endswith(end)] or [1e38]
        return torch.sign(value) * extreme if extreme > 0 else torch.full_like(value, extreme)

    data = made(name, (1, 9, 9), change)
    checkpoint, (some, *_) = Checkpoint.from_bytes(data), pictures((1, 9, 9))
    options = {"snapshots": [0], "label": 0, "density": 0, "resolutions": [3]}
    _, (result,) = engine.compute(data, [some], **options)
    model, x = checkpoint.network(), as_input(some[None])
    scores = logits(model, x)[0].double()
    close("probabilities", result["probabilities"], scores.softmax(0))
    model, x = checkpoint.model().double(), x.double()  # where ∞ − ∞ does not occur
    close("field", result["field 3"], finite(field(model, x, 3).values[0].sum(0)))
    if (weights := class_weights(model)) is not None:
        wanted = finite(weighted_field(model, x, weights[0], 3).sum(0))
        close("class", result["class 3"], wanted)


def test_a_field_has_any_size_and_fills_the_array_that_is_passed(engine):
    """On cells that are no parts of pixels it is that of a larger picture's pixels, divided."""
    script = """({ engine, packed, bytes, inputOf }, [file, picture]) => {
      const network = engine.readCheckpoint(bytes(file).buffer).network();
      const result = network.run(inputOf(picture));
      const out = new Float32Array(7 * 5);
      const field = network.field(result, { height: 7, width: 5, out });
      return [field === out, packed(field)];
    }"""
    shape = (1, 9, 12)
    data = made("logistic-el-mnn-3-2", shape)
    some, *_ = pictures(shape)
    same, values = engine.evaluate(script, [text(data), packed(some)])
    assert same
    model, x = Checkpoint.from_bytes(data).model().double(), as_input(some[None], torch.float64)
    loc, scale = (each[0, 0] for each in model.embedding.placement(x))
    rows, columns = (
        model.embedding.family.pdf(((torch.arange(cells) + 0.5) * size / cells - mu) / s) / s
        for cells, size, mu, s in (
            (7, 9, loc[:, 1:], scale[:, 1:]),
            (5, 12, loc[:, :1], scale[:, :1]),
        )
    )
    close("field", numbers(values), rows.T @ columns)


# Files


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float64, torch.float8_e5m2, torch.float8_e4m3fn],
    ids=str,
)
def test_numbers_that_float32_represents_are_read(engine, dtype):
    """Also where they do not begin at a multiple of their size."""
    data = made("logistic-el-mnn-3-2", (1, 9, 9), lambda _, value: value.to(dtype).float())
    whole = Checkpoint.from_bytes(data)
    converted = {name: tensor.to(dtype) for name, tensor in whole.tensors.items()}
    data = files.content(whole.header.model_dump_json(), converted)
    size = int.from_bytes(data[:8], "little")
    shifted = (size + 1).to_bytes(8, "little") + data[8 : 8 + size] + b" " + data[8 + size :]
    for each in (data, shifted):
        agree(engine, each, pictures((1, 9, 9)))


def test_several_members(engine):
    several = files.made(members=4, outcome="stopped")
    several.header.epochs[-1].test_error = [9.0, 10.0, 11.5, 17.0]
    data = files.content(several.header.model_dump_json(), several.tensors)
    agree(engine, data, pictures((1, 28, 28)), snapshots=[0, 1])


def test_settings_are_stored_as_in_python(engine):
    config = {"model": "logistic-el-02", "grid": " 014x14, data,56x040,7x07 "}
    agree(engine, files.content(files.header(config=config)), pictures((1, 28, 28)))
    assert Header(**files.header(config=config)).config.grid == "14,data,56x40,7"


def test_members_are_separate(engine):
    script = """({ engine, packed, bytes, inputOf }, [file, picture]) => {
      const checkpoint = engine.readCheckpoint(bytes(file).buffer);
      return [0, 1, 2].map((member) =>
        packed(checkpoint.network(1, member).run(inputOf(picture)).logits));
    }"""
    several, (some, *_) = files.made(members=3), pictures((1, 28, 28))
    data = files.content(several.header.model_dump_json(), several.tensors)
    for member, values in enumerate(engine.evaluate(script, [text(data), packed(some)])):
        wanted = logits(several.model(1, member), as_input(some[None]))
        close(f"member {member}", numbers(values), wanted)


SETTINGS = [
    *({"model": name} for name in ("logistc-el-5", "logistic-el-mnn-5", "gauss-el-3", "LINEAR")),
    *({"model": name} for name in ("mlp-0", "mlp-5000", "cnn-1-2-3-4", "stages-65-logistic-el-2")),
    *({"model": f"{name}-{'9' * 20}"} for name in ("logistic-el", "logistik-el", "stages-8-16")),
    *({"model": name} for name in ("", "it's", "a\"b\\'c\x7f", "logistic-el-2\n", "é" * 61, 5)),
    *({"model": name} for name in ("logistic-el-00", "mlp-05001", "logistic-el-mnn-65-065")),
    *({"epochs": value} for value in (0, None, [1, "a'b"], {"a": 1.5})),
    *({"learning_rate": value} for value in (0, -1.5, "x" * 50)),
    *({"weight_decay": 2}, {"location_start": "x"}, {"device": "tpu"}, {"compile": 3}),
    *({"seed": -1}, {"seeds": 101}, {"modle": 1}, {"dataset": True}, {"scale_start": 5}),
    *(
        {"grid": value}
        for value in ("", "0", "14,,28", "14x2000", "14, a'b", "14×28,7", "14" * 51, 14)
    ),
]
SIGNALS = {"scaling": {"mean": 0.0, "std": 1.0}}
SHAPES = [[28, 28], [1, 28, 28, 28], "abc", [1, 2, "x"], [257, 1, 1], [1, 20_000, 1], [7], []]
"""Values of a header that are out of range, beside those of `files.BAD_HEADERS`."""


def flipped(count: int) -> list[bytes]:
    """Whole files with one byte of the header changed."""
    random = np.random.default_rng(1)
    end = 8 + int.from_bytes(files.WHOLE[:8], "little")
    cases = []
    for place, change in zip(
        random.integers(0, end, count), random.integers(1, 256, count), strict=True
    ):
        data = bytearray(files.WHOLE)
        data[place] ^= change
        cases.append(bytes(data))
    return cases


WRONG = {
    "no checkpoint": lambda: files.NOT_ONE.values(),
    "other versions": lambda: (
        files.content(version=version) for version in ("0", "", None, "x" * 100, "1\n2", "it's")
    ),
    "damaged headers": lambda: (
        files.content(header=None) if head is None else files.content(head)
        for head in files.BAD_HEADERS.values()
    ),
    "settings": lambda: (files.content(files.header(config=each)) for each in SETTINGS),
    "numbers": lambda: (
        files.content(json.dumps(files.header()).replace(str(number), written, 1))
        for number in (0.002, 0.5, 10, 28, 2)
        for written in ("7.0", "7.00", "7e0", "70E-1", "7.5", "-0.0", "1e999")
    ),
    "shapes": lambda: (files.content(files.header(input_shape=each)) for each in SHAPES),
    "too small for its network": lambda: (
        files.content(files.header(config={"model": "cnn-2-3-4"}, input_shape=shape, **own))
        for shape, own in (([1, 7, 28], {}), ([1, 7], SIGNALS))
    ),
    "tensors of images for signals": lambda: [
        files.content(files.header(input_shape=[1, 28], **SIGNALS)),
    ],
    "damaged tensors": lambda: (files.spoilt(change) for change, _ in files.BAD_TENSORS.values()),
    "other members": lambda: [files.content(files.header(members=2))],
    "disordered steps": lambda: (
        files.content(files.header(steps=steps))
        for steps in ([0, 10, 1, 20], [0, 1, 1, 2], [1, 2, 10, 20])
    ),
    "disordered epochs": lambda: (
        files.content(files.header(epochs=[first | {field: last[field]}, last]))
        for first, last in [files.header()["epochs"]]
        for field in ("epoch", "step")
    ),
    "cut": lambda: (files.WHOLE[:size] for size in range(0, len(files.WHOLE), 131)),
    "with more behind": lambda: [files.WHOLE + b"x"],
    "changed bytes": lambda: flipped(300),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_gets_the_sentence_of_python(engine, kind):
    cases = list(WRONG[kind]())
    errors = engine.evaluate(READ, [text(data) for data in cases])
    assert errors == [sentence(data) for data in cases]
    assert any(errors)


def sentence(data: bytes) -> list[str] | None:
    try:
        Checkpoint.from_bytes(data, "it.safetensors")
    except CheckpointError as error:
        return ["CheckpointError", str(error)]
    return None


@pytest.mark.parametrize("title", ["", "  ", " my digits "])
def test_a_title_is_that_of_python(engine, title):
    provenance = {**files.header()["provenance"], "dataset_title": title}
    data = files.content(files.header(provenance=provenance))
    found = engine.evaluate(TITLE, text(data))
    assert found == Checkpoint.from_bytes(data, "it.safetensors").header.provenance.dataset_title


def test_a_model_of_a_plugin_is_left_to_python(engine):
    head = files.header(config={"model": "my-net-3"}, plugins=["my_plugin.nets"])
    ((kind, told),) = engine.evaluate(READ, [text(files.content(head))])
    assert kind == "Unsupported"
    assert "my_plugin.nets" in told


def test_the_example_of_the_documentation(engine):
    (example,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs/browser.md").read_text(), re.S)
    some, *_ = pictures((1, 28, 28))
    engine.page.evaluate("pixels => { window.pixels = pixels; }", as_input(some).flatten().tolist())
    keep = "window.found = [name, [...result.probabilities]];"
    engine.page.add_script_tag(type="module", content=example + keep)
    engine.page.wait_for_function("window.found")
    name, probabilities = engine.page.evaluate("window.found")
    checkpoint = Checkpoint.open(ROOT / "checkpoints/paper" / name)
    wanted = logits(checkpoint.network(), as_input(some[None]))[0].softmax(0)
    close("probabilities", np.array(probabilities), wanted)


# Measures


@pytest.mark.parametrize(("shape", "height"), [((3, 12, 28), 36), ((3, 28), 1)], ids=str)
def test_measures(engine, shape, height):
    script = """({ engine, packed, bytes, inputOf }, [file, values, height, percent]) => {
      const checkpoint = engine.readCheckpoint(bytes(file).buffer);
      const cells = { width: 84, height };
      const inputs = values.map(inputOf);
      const [before, after] = [0, -1].map((snapshot) => checkpoint.network(snapshot));
      const placed = [before, after].map((network) => network.run(inputs[0]));
      const [first, last] = [before.field(placed[0], cells), after.field(placed[1], cells)];
      const { centre, ...rest } = engine.measure(last, first, cells, checkpoint.inputShape);
      const statistics = engine.fieldStatistics(after, inputs, { resolution: 2 });
      return {
        measures: [...centre, ...Object.values(rest)],
        tops: [0, 0.01, 50, percent, 99.99, 100].map((each) => engine.percentile(last, each)),
        zeros: engine.percentile([0, 0, 0, 1], percent),
        moved: engine.meanDisplacement(placed[0].locations, placed[1].locations, after.axes),
        difference: packed(engine.difference(first, last)),
        mean: packed(statistics.mean),
        deviation: packed(statistics.deviation),
      };
    }"""
    name = "logistic-el-mnn-3-2"
    own = SIGNALS if len(shape) == 2 else {}
    head = files.header(config={"model": name}, input_shape=shape, **own)
    data = files.content(head, files.tensors(model=name, input_shape=shape))
    inputs = (signals if own else pictures)(shape)
    arguments = [text(data), [*map(packed, inputs)], height, TOP_PERCENTILE]
    measures = engine.evaluate(script, arguments)
    checkpoint, x = Checkpoint.from_bytes(data), as_input(torch.stack(inputs))
    models = [checkpoint.model(0).double(), checkpoint.model(-1).double()]
    first, last = (field(model, x[:1].double(), 3) for model in models)
    wanted = measure(last.values[0], first.values[0], last.x, last.y)
    close(
        "measures",
        np.array(measures["measures"]),
        [*wanted.centre, wanted.spread, wanted.entropy, wanted.area, wanted.variation],
    )
    last_sum, first_sum = last.values[0].sum(0), first.values[0].sum(0)
    percents = [0, 0.01, 50, TOP_PERCENTILE, 99.99, 100]
    close("percentiles", np.array(measures["tops"]), np.percentile(last_sum, percents))
    assert measures["zeros"] == pytest.approx(np.percentile([0, 0, 0, 1], TOP_PERCENTILE))
    close("difference", numbers(measures["difference"]), last_sum - first_sum)
    moved = mean_displacement(*(densities(model, x[:1].double()) for model in models))
    assert measures["moved"] == pytest.approx(moved, CLOSE)
    mean, deviation = field_statistics(models[1], x.double())
    close("mean", numbers(measures["mean"]), mean)
    close("deviation", numbers(measures["deviation"]), deviation)
