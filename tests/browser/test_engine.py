"""The engine of the browser computes what torch computes, from the same files."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from densembed.data import as_input
from densembed.fields.field import field, logits, pixel_field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    input_gradient,
    measure,
    weighted_field,
)
from densembed.functional.densities import FAMILIES
from densembed.models.names import build, describe
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
