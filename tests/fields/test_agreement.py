"""Where two models disagree, against the textbook's formula and a loop."""

from math import comb

import numpy as np
import pytest

from densembed.data import as_input, load_dataset
from densembed.fields.agreement import (
    UNITS,
    align_steps,
    confusion_matrix,
    disagreement,
    predict,
    summary,
    verdict,
)
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder


def test_answers_are_the_networks(trained, digits):
    images = digits.test.images[:700]  # more than a batch
    for snapshot in (0, -1):
        expected = [trained.model(snapshot)(as_input(x[None])).argmax().item() for x in images]
        assert predict(trained, images, snapshot).tolist() == expected


@pytest.mark.parametrize(("b", "c"), [(0, 0), (5, 5), (1, 9), (12, 3), (0, 6), (40, 61)])
def test_mcnemars_test_is_the_binomials_two_tails(b, c):
    labels = np.zeros(b + c + 7, int)
    first, second = labels.copy(), labels.copy()
    second[:b] = 1
    first[b : b + c] = 2
    first[-3:] = second[-3:] = 4
    result = disagreement(first, second, labels)
    n, k = b + c, min(b, c)
    expected = min(1, 2 * sum(comb(n, j) for j in range(k + 1)) / 2**n)
    assert result.p == pytest.approx(expected)
    assert result.first_only.tolist() == list(range(b))
    assert result.second_only.tolist() == list(range(b, b + c))
    assert (result.both, result.neither) == (4, 3)


@pytest.mark.parametrize(
    ("b", "c", "said"),
    [
        (5, 5, "both are right equally often (p = 1)"),
        (0, 0, "both are right equally often (p = 1)"),
        (40, 44, "this difference could be due to chance (p = 0.74)"),
        (1, 9, "a difference this large is unlikely to be due to chance (p = 0.021)"),
        (0, 50, "a difference this large is unlikely to be due to chance (p < 0.0001)"),
    ],
)
def test_the_verdict_is_what_the_test_says(b, c, said):
    labels = np.zeros(b + c, int)
    first, second = labels.copy(), labels.copy()
    second[:b] = 1
    first[b:] = 1
    assert verdict(disagreement(first, second, labels)) == f"McNemar's exact test: {said}."


@pytest.mark.parametrize(
    ("model", "densities"),
    [
        ("linear", "none learned: a weight for each pixel"),
        ("cnn-2-3-2", "none learned: a weight for each cell of the last feature maps"),
    ],
)
def test_a_network_without_densities_says_what_it_has(model, densities):
    config = RunConfig(model=model, device="cpu")
    recorder = Recorder(config, load_dataset("digits"))
    recorder.add(next(train(config, load_dataset("digits"))))
    said = summary(recorder.checkpoint("done"))
    assert said["Densities"] == densities
    assert said["Density learning rate"] == said["Initialisation"] == "–"


def test_confusion_counts_every_answer_once():
    generator = np.random.default_rng(0)
    labels, said = generator.integers(0, 4, 300), generator.integers(0, 4, 300)
    expected = np.zeros((4, 4), int)
    for true, answer in zip(labels, said, strict=True):
        expected[true, answer] += 1
    assert np.array_equal(confusion_matrix(said, labels, 4), expected)
    assert confusion_matrix(said[:0], labels[:0], 4).shape == (4, 4)


@pytest.mark.parametrize("by", UNITS)
def test_places_along_a_training_rise_and_only_the_start_is_zero(trained, by):
    places = align_steps(trained, trained.steps, by)
    assert places == sorted(places)
    assert [place == 0 for place in places] == [step == 0 for step in trained.steps]
    whole = {"step": trained.steps[-1], "epoch": trained.config.epochs, "fraction": 1}[by]
    assert places[-1] == whole


def test_a_stopped_training_is_a_fraction_of_what_was_planned(trained):
    per_epoch = trained.header.steps_per_epoch
    assert align_steps(trained, [per_epoch, 2 * per_epoch], "fraction") == [0.333, 0.667]
    assert align_steps(trained, [per_epoch, 123 * per_epoch + 1], "epoch") == [
        1.0,
        round(123 + 1 / per_epoch, 2),
    ]


SETTINGS = {
    "epochs": 4, "grid": "14,28", "shift": 3, "batch_size": 96,
    "learning_rate": 0.1, "density_rate": 0.5, "weight_decay": 0.1, "locator_rate": 0.1,
    "locator_decay": 0.5, "location_start": "grid", "scale_start": -2.0, "seed": 7,
}  # fmt: skip
NO_FACTS = {"model", "dataset", "seeds", "device", "compile"}
"""They show in the tensors, the data's title, and the time per epoch on a device."""


@pytest.mark.parametrize("setting", sorted(RunConfig.model_fields.keys() - NO_FACTS))
def test_facts_tell_trainings_with_other_settings_apart(trained, setting):
    config = trained.config.model_copy(update={setting: SETTINGS[setting]})
    other = Checkpoint(trained.header.model_copy(update={"config": config}), trained.tensors)
    assert summary(other) != summary(trained)


def test_facts_of_a_checkpoint(trained):
    result = summary(trained)
    assert result["Parameters"] == f"{sum(p.numel() for p in trained.model().parameters()):,}"
    assert result["Epochs"] == "3 of 3"
    assert result["Seed"] == "0"  # not the number of seeds
    assert result["Learning rate"] == "at most 0.05"
    assert result["Densities"] == "16, moving with the input"
    assert result["Initialisation"] == "normal locations, β around −3"
    assert all(result.values())
