"""The statistics of the training images that a checkpoint has."""

import json

import numpy as np
import pytest
import torch

from densembed.data.dataset import Split
from densembed.training import novelty as module
from densembed.training.checkpoint import Checkpoint, novelty_file
from densembed.training.header import CheckpointError
from densembed.training.novelty import Novelty, image_features, logits_of


@pytest.fixture(scope="module")
def fitted(trained, digits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST_IMAGES", 1000)
        patch.setattr(module, "HELD_OUT", 400)
        return Novelty.fit(trained.model(), digits)


def test_few_training_images_are_not_enough(trained, digits):
    assert Novelty.fit(trained.model(), digits) is None


def test_distances_are_those_of_brute_force(fitted, trained, digits):
    images = digits.test.images[:20]
    classes = logits_of(trained.model(), images).argmax(1)
    for image, label, found in zip(images, classes, fitted.distances(images, classes), strict=True):
        feature = image_features(image[None])[0].astype(float)
        cosines = [
            feature @ one / np.linalg.norm(one)
            for one in fitted.prototypes[label].astype(float)
            if one.any()
        ]
        assert found == pytest.approx(1 - max(cosines), abs=1e-5)


def test_test_images_are_like_and_noise_is_unlike(fitted, trained, digits):
    model = trained.model()
    images = digits.test.images
    assert fitted.is_novel(images, logits_of(model, images)).mean() < 0.1
    noise = torch.randint(0, 256, (40, 1, 28, 28), dtype=torch.uint8)
    assert fitted.is_novel(noise, logits_of(model, noise)).mean() > 0.9


def test_it_travels_in_the_file(fitted, trained, tmp_path):
    path = tmp_path / "a.safetensors"
    Checkpoint(trained.header, trained.tensors, fitted).save(path)
    found = Checkpoint.open(path).novelty
    np.testing.assert_array_equal(found.prototypes, fitted.prototypes)
    assert (found.distance_limit, found.logit_limit) == (
        fitted.distance_limit,
        fitted.logit_limit,
    )


def test_an_older_file_has_it_beside_it_or_does_without(fitted, trained, tmp_path):
    path = tmp_path / "a.safetensors"
    trained.save(path)
    assert Checkpoint.open(path).novelty is None
    novelty_file(path).write_text(fitted.to_json())
    assert Checkpoint.open(path).novelty.logit_limit == fitted.logit_limit
    novelty_file(path).write_text("{")
    assert Checkpoint.open(path).novelty is None


def test_statistics_beside_a_file_are_not_those_of_the_next_one(fitted, trained, tmp_path):
    path = tmp_path / "a.safetensors"
    trained.save(path)
    novelty_file(path).write_text(fitted.to_json())
    trained.save(path)
    assert Checkpoint.open(path).novelty is None


@pytest.mark.parametrize(
    "change",
    [
        {"prototypes": "AAAA"},
        {"shape": (10, 12, 4)},
        {"logit_limit": float("nan")},
        {"more": 1},
        {"prototypes": None},
    ],
    ids=str,
)
def test_a_damaged_one_is_an_error(fitted, trained, change, monkeypatch):
    text = json.dumps(json.loads(fitted.to_json()) | change)
    monkeypatch.setattr(Novelty, "to_json", lambda self: text)
    data = Checkpoint(trained.header, trained.tensors, fitted).to_bytes()
    with pytest.raises(CheckpointError, match="damaged statistics"):
        Checkpoint.from_bytes(data)


def test_a_training_ends_with_it(digits, monkeypatch):
    from densembed.training.config import RunConfig
    from densembed.training.loop import train
    from densembed.training.recorder import Recorder

    monkeypatch.setattr(module, "LEAST_IMAGES", 1000)
    monkeypatch.setattr(module, "HELD_OUT", 400)
    config = RunConfig(model="linear", epochs=1)
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    assert recorder.checkpoint().novelty is None
    assert recorder.checkpoint("done").novelty is not None
    assert isinstance(digits.train, Split)
