"""The engine of the browser computes what torch computes, from the same files."""

import base64
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from densembed.data import as_input
from densembed.fields.field import field, pixel_field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    input_gradient,
    weighted_field,
)
from densembed.functional.densities import FAMILIES
from densembed.models.names import build
from densembed.training.checkpoint import Checkpoint, CheckpointError
from tests.browser.conftest import ROOT
from tests.training import test_checkpoint as files

ENGINE = ROOT / "densembed/web/engine"
SHIPPED = sorted((ROOT / "checkpoints/paper").glob("*.safetensors"))
CLOSE = 1e-5
"""Largest error, relative to the largest value."""
SCRIPT = """async ({ snapshots, pictures, resolutions, label, density }) => {
  const { readCheckpoint } = await import("/densembed.js");
  const packed = (values) => {
    const bytes = new Uint8Array(Float32Array.from(values).buffer);
    let text = "";
    for (let at = 0; at < bytes.length; at += 4096)
      text += String.fromCharCode(...bytes.subarray(at, at + 4096));
    return btoa(text);
  };
  const unpacked = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const checkpoint = readCheckpoint(await (await fetch("/file")).arrayBuffer());
  return snapshots.flatMap((snapshot) => pictures.map((picture) => {
    const network = checkpoint.network(snapshot);
    const pixels = Float32Array.from(unpacked(picture), (each) => each / 255);
    const result = network.run(pixels);
    const weights = network.classWeights(label);
    const numbers = {
      ...result,
      weights,
      contributions: network.contributions(result, label),
      pixels: network.pixelField(result),
      gamma: network.gamma(result, density),
      gradient: network.inputGradient(pixels),
      path: checkpoint.path(pixels, density),
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
}"""


READ = """async (texts) => {
  const { readCheckpoint } = await import("/densembed.js");
  return texts.map((text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    try {
      readCheckpoint(bytes.buffer, "it.safetensors");
      return null;
    } catch (error) {
      return [error.name, error.message];
    }
  });
}"""


class Engine:
    """A tab with the engine, and files that it can fetch."""

    def __init__(self, page):
        self.page = page
        self.files: dict[str, bytes] = {}
        page.route("http://engine/**", self._serve)
        page.goto("http://engine/")

    def compute(self, data: bytes, pictures: list[Tensor], **options) -> list[dict]:
        """What the engine computes for each snapshot and picture."""
        self.files["file"] = data
        texts = [base64.b64encode(picture.numpy().tobytes()).decode() for picture in pictures]
        outcome = self.page.evaluate(SCRIPT, {"pictures": texts, **options})
        return [
            {
                key: None if text is None else np.frombuffer(base64.b64decode(text), "<f4")
                for key, text in numbers.items()
            }
            for numbers in outcome
        ]

    def _serve(self, route) -> None:
        name = route.request.url.removeprefix("http://engine/")
        if name.endswith(".js"):
            route.fulfill(path=ENGINE / name, content_type="text/javascript")
        elif name:
            route.fulfill(body=self.files[name], content_type="application/octet-stream")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")


@pytest.fixture(scope="module")
def engine(browser) -> Iterator[Engine]:
    page = browser.new_page()
    yield Engine(page)
    page.close()


def expected(
    checkpoint: Checkpoint,
    index: int,
    picture: Tensor,
    label: int,
    density: int,
    resolutions: list[int],
) -> dict:
    """The same numbers by torch in float64."""
    model, x = checkpoint.model(index).double(), as_input(picture[None], torch.float64)
    placed, weights = densities(model, x), class_weights(model)
    with torch.inference_mode():
        scores, readings = model(x)[0], model.embedding(x)[0].flatten()
        gamma = model.embedding.gamma(x)[0].flatten(0, 1)[density]
    numbers = {
        "logits": scores,
        "probabilities": scores.softmax(0),
        "readings": readings,
        "locations": placed.loc,
        "scales": placed.scale,
        "weights": None if weights is None else weights[label],
        "contributions": None,
        "pixels": pixel_field(model, x)[0].sum(0),
        "gamma": gamma,
        "gradient": input_gradient(model, x),
        "path": [
            densities(checkpoint.model(k), x.float()).loc[density]
            for k in range(len(checkpoint.steps))
        ],
    }
    if weights is not None:
        terms = model.classifier.weight[label] * readings
        shape = len(weights[label].flatten())
        numbers["contributions"] = terms.detach().reshape(-1, shape).sum(0)
    for resolution in resolutions:
        values = field(model, x, resolution).values[0]
        numbers |= {
            f"field {resolution}": values.sum(0),
            f"last {resolution}": values[2 % len(values)],
            f"density {resolution}": density_field(model, x, density, resolution)[0],
            f"class {resolution}": None
            if weights is None
            else weighted_field(model, x, weights[label], resolution).sum(0),
        }
    return numbers


def agrees(engine: Engine, data: bytes, pictures: list[Tensor], **options) -> None:
    checkpoint = Checkpoint.from_bytes(data)
    options = {"snapshots": [0], "label": 1, "density": 1, "resolutions": [1, 3, 4]} | options
    results = iter(engine.compute(data, pictures, **options))
    for snapshot in options.pop("snapshots"):
        for picture in pictures:
            close(next(results), expected(checkpoint, snapshot, picture, **options))


def close(found: dict, wanted: dict) -> None:
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        if values is None:
            assert found[key] is None, key
            continue
        values = np.asarray(values, np.float64).ravel()
        assert found[key].shape == values.shape, key
        error = abs(found[key] - values).max()
        ERRORS[key] = max(ERRORS.get(key, 0), error / (abs(values).max() or 1))
        assert error <= CLOSE * (abs(values).max() or 1), (key, error, abs(values).max())


ERRORS = {}


def pictures(shape: tuple[int, int, int], seed: int = 0) -> list[Tensor]:
    """Strokes, an empty and a full picture."""
    generator = torch.Generator().manual_seed(seed)
    some = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    some[:, : shape[1] // 2] = 0
    return [some, torch.zeros(shape, dtype=torch.uint8), torch.full(shape, 255, dtype=torch.uint8)]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_checkpoints(engine, path):
    agrees(engine, path.read_bytes(), pictures((1, 28, 28)), snapshots=[0, -1])


def network(model: str, shape: tuple[int, int, int] = (1, 28, 28), spread: float = 0.3) -> bytes:
    """A checkpoint of a network with parameters around their initial values."""
    generator = torch.Generator().manual_seed(len(model))
    torch.manual_seed(3)
    state = build(model, shape, 5).state_dict()
    parts = {
        name: (value + spread * torch.randn(value.shape, generator=generator))[None, None]
        for name, value in state.items()
    }
    head = files.header(
        config={"model": model}, input_shape=shape, classes=list("abcde"), steps=[0], epochs=[]
    )
    return files.content(head, parts)


KINDS = ("{}-el-3", "{}-el-mnn-3-2", "{}-el-mnn-scale-3-2")
MODELS = [
    *(kind.format(family) for family in FAMILIES for kind in KINDS),
    "linear",
    "mlp-7",
    "adaptive-conv-pool-logistic-el-3",
    "adaptive-conv-pool-gaussian-el-mnn-3-2",
    "stages-2-logistic-el-3",
    "stages-2-3-cauchy-el-mnn-3-2",
    "stages-2-3-4-logistic-el-mnn-2-2",
    "cnn-2-3",
]


@pytest.mark.parametrize("shape", [(1, 9, 9), (3, 12, 21)], ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_every_model(engine, model, shape):
    agrees(engine, network(model, shape), pictures(shape))


def outcome(data: bytes) -> list[str] | None:
    try:
        Checkpoint.from_bytes(data, "it.safetensors")
    except CheckpointError as error:
        return ["CheckpointError", str(error)]
    return None


def compare_sentences(engine: Engine, cases: dict[str, bytes]) -> list:
    texts = [base64.b64encode(data).decode() for data in cases.values()]
    found = engine.page.evaluate(READ, texts)
    return [
        (name, got, wanted)
        for (name, data), got in zip(cases.items(), found, strict=True)
        if got != (wanted := outcome(data))
    ]

def flipped(count: int) -> dict[str, bytes]:
    """Whole files with one byte changed."""
    random = np.random.default_rng(1)
    start = 8 + int.from_bytes(files.WHOLE[:8], "little")
    cases = {}
    for place, change in zip(random.integers(0, start + 40, count), random.integers(1, 256, count)):
        data = bytearray(files.WHOLE)
        data[place] ^= change
        cases[f"byte {place} changed by {change}"] = bytes(data)
    return cases

def test_damaged(engine):
    cases = {
        **files.NOT_ONE,
        **{f"version {v}": files.content(version=v) for v in ["0", "2", "", None, "x" * 100, "1\n2", "it's"]},
        **{f"header: {k}": files.content(header=None) if h is None else files.content(h) for k, h in files.BAD_HEADERS.items()},
        **{f"tensors: {k}": files.spoilt(c) for k, (c, _) in files.BAD_TENSORS.items()},
        "members": files.content(files.header(members=2)),
        **{f"steps {s}": files.content(files.header(steps=s)) for s in ([0, 10, 1, 20], [0, 1, 1, 2])},
        **{f"cut {n}": files.WHOLE[:n] for n in range(0, len(files.WHOLE), 97)},
        "more": files.WHOLE+b"x",
    }
    for config in [{"model": "logistic-el-2", k: v} for k, v in [("epochs", 0),("epochs", None), ("epochs", [1, "a'b"]), ("learning_rate", 0), ("learning_rate", -1.5),("weight_decay", 2), ("location_start","x"),("device","tpu"),("compile",3),("seed",-1),("seeds",101),("modle", 1), ("epoch",3), ("dataset","x"*201), ("dataset", True), ("scale_start", 5)]] + [{"model": m} for m in ["logistc-el-5", "logistic-el-mnn-5", "gauss-el-3", "mlp-0", "mlp-5000", "cnn-1-2-3-4", "stages-65-logistic-el-2", "LINEAR", "x"*61, "", "it's", 'a"b\'c', "logistic-el-2\n"]]:
        cases[f"config {config}"] = files.content(files.header(config=config))
    for shape in [[28,28],[1,28,28,28],"abc",[1,2,"x"],[257,1,1],[]]:
        cases[f"shape {shape}"] = files.content(files.header(input_shape=shape))
    cases["small"] = files.content(files.header(config={"model":"cnn-2-3-4"}, input_shape=[1,7,28]))
    cases |= flipped(400)
    bad = compare_sentences(engine, cases)
    for b in bad: print(b)
    assert not bad, len(bad)
