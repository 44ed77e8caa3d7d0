"""What the server computes for a view whose network the browser cannot compute."""

import json

import numpy as np
import pytest
import torch

from densembed.data import as_input
from densembed.fields.field import field, logits, pixel_field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    input_gradient,
    weighted_field,
)
from tests.pages.conftest import get, sample

LABEL, DENSITY = 3, 2


def asked(what: str, pixels: torch.Tensor, shape: tuple[int, ...] = (-1,)) -> np.ndarray:
    answer = get(f"/networks/small/{what}", pixels.numpy().tobytes())
    assert answer.status == 200, answer.text
    return np.frombuffer(answer.body, np.float32).reshape(shape)


def same(own: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(own, expected, 1e-6, 1e-6)


def test_facts(small_gallery, trained):
    facts = json.loads(get("/networks/small").body)
    assert facts["header"] == json.loads(trained.header.model_dump_json())
    assert facts["parameters"] == trained.parameters
    assert facts["members"] == trained.members
    assert facts["hasDensities"]
    for index, weights in enumerate(facts["weights"]):
        same(np.array(weights), class_weights(trained.network(index)).flatten(1).numpy())
    assert facts["densities"] == len(facts["weights"][0][0])


def test_numbers_are_those_of_python(small_gallery, trained):
    pixels, count = sample(5), len(trained.steps)
    x = as_input(pixels[None])
    predictions = asked("predictions", pixels, (count, -1))
    fields = asked("fields", pixels, (count, 112, 112))
    weighted = asked(f"fields?label={LABEL}", pixels, (count, 112, 112))
    masses = asked("pixel-fields", pixels, (count, 28, 28))
    for index in range(count):
        model = trained.network(index)
        scores, placed = logits(model, x)[0], densities(model, x)
        same(
            predictions[index],
            np.concatenate(
                [
                    scores,
                    scores.softmax(0),
                    placed.loc.ravel(),
                    placed.scale.ravel(),
                ]
            ),
        )
        same(fields[index], field(model, x).values[0].sum(0))
        same(weighted[index], weighted_field(model, x, class_weights(model)[LABEL]).sum(0))
        same(masses[index], pixel_field(model, x)[0].sum(0))
        query = f"snapshot={index}"
        same(
            asked(f"density?{query}&density={DENSITY}", pixels, (112, 112)),
            density_field(model, x, DENSITY)[0],
        )
        same(asked(f"gradient?{query}", pixels, (10, 1, 28, 28)), input_gradient(model, x))
        both = torch.stack([pixels, sample(8)])
        same(
            asked(f"mean-field?{query}", both, (112, 112)),
            field(model, as_input(both)).values.sum(1).mean(0),
        )


@pytest.mark.parametrize(
    ("url", "body", "sentence"),
    [
        ("/networks/nothing", None, "This model was deleted."),
        ("/networks/nothing/fields", bytes(784), "This model was deleted."),
        ("/networks/small/weather", bytes(784), "There are no such numbers."),
        ("/networks/small/fields", b"", "The request is not one of a view."),
        ("/networks/small/fields", bytes(785), "The request is not one of a view."),
        ("/networks/small/fields", bytes(784 * 65), "The request is not one of a view."),
        ("/networks/small/fields?label=10", bytes(784), "The request is not one of a view."),
        ("/networks/small/density?density=x", bytes(784), "The request is not one of a view."),
        (
            "/networks/small/density?snapshot=99&density=0",
            bytes(784),
            "The request is not one of a view.",
        ),
    ],
)
def test_other_requests_are_refused(small_gallery, url, body, sentence):
    answer = get(url, body)
    assert (answer.status, answer.text) == (404, sentence)
