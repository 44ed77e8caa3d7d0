"""The settings of a run."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from densembed.training.config import RunConfig, explain, takes
from tests.conftest import is_sentence


def test_defaults_are_the_papers_training():
    config = RunConfig()
    assert (config.model, config.dataset) == ("logistic-el-mnn-10-5", "digits")
    assert (config.epochs, config.learning_rate, config.seed) == (20, 0.002, 0)


BAD = [
    ("model", "logistic-el-0"),
    ("model", "transformer"),
    ("model", "logistic-el-" + "0" * 60 + "5"),
    ("model", 5),
    ("dataset", "x" * 1001),
    ("dataset", None),
    ("grid", ""),
    ("grid", "0"),
    ("grid", "14,,28"),
    ("grid", "1025"),
    ("grid", "14x28x56"),
    ("grid", 14),
    ("epochs", 0),
    ("epochs", 10_001),
    ("epochs", 2.5),
    ("epochs", "many"),
    ("epochs", True),
    ("learning_rate", True),
    ("batch_size", 0),
    ("batch_size", 100_001),
    ("learning_rate", 0),
    ("learning_rate", -0.1),
    ("learning_rate", 2e6),
    ("learning_rate", float("nan")),
    ("learning_rate", float("inf")),
    ("seed", -1),
    ("seed", 2**31),
    ("seeds", 0),
    ("seeds", 101),
    ("compile", "perhaps"),
    ("device", "tpu"),
    ("device", "cuda:1"),
    ("colour", "red"),
]


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: str(value)[:20])
def test_bad_values_are_named_in_one_sentence(field, value):
    with pytest.raises(ValidationError) as caught:
        RunConfig(**{field: value})
    sentence = explain(caught.value)
    assert field.replace("_", " ") in sentence.lower() or repr(value) in sentence
    assert is_sentence(sentence)
    assert not re.search("input|valid|should|permitted", sentence, re.IGNORECASE)
    assert str(value)[:20] in sentence or field == "colour"


RANGES = [
    ("epochs", "0", "Epochs takes a whole number from 1 to 10,000; got '0'."),
    ("seed", -1, "Seed takes a whole number from 0 to 2,147,483,647; got -1."),
    (
        "learning_rate",
        "fast",
        "Learning rate takes a number above 0 and up to 1,000,000; got 'fast'.",
    ),
    ("scale_start", 5.0, "Scale start takes a number from -8 to 4; got 5.0."),
    (
        "grid",
        "14,2.5",
        "Grid takes sizes separated by commas, as in 14,28x20,data, each from 1 to 1024 pixels; "
        "got '14,2.5'.",
    ),
    ("device", "tpu", "Device takes one of auto, cpu, cuda, mps; got 'tpu'."),
    ("compile", "perhaps", "Compile takes true or false; got 'perhaps'."),
]


@pytest.mark.parametrize(("field", "value", "sentence"), RANGES, ids=lambda value: str(value)[:20])
def test_the_sentence_has_the_range(field, value, sentence):
    with pytest.raises(ValidationError) as caught:
        RunConfig(**{field: value})
    assert explain(caught.value) == sentence


@pytest.mark.parametrize("field", [name for name in RunConfig.model_fields if name != "model"])
def test_the_range_that_is_said_is_the_one_that_holds(field):
    """The ends of it are taken, and the next number beyond is not."""
    numbers = [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*", takes(field))]
    if "number" not in takes(field):
        return
    low, high = numbers
    beyond = 1 if "whole" in takes(field) else 1e-6
    RunConfig(**{field: high})
    RunConfig(**{field: low + beyond if "above" in takes(field) else low})
    for outside in (
        low if "above" in takes(field) else low - beyond,
        high + max(beyond, high * 1e-9),
    ):
        with pytest.raises(ValidationError):
            RunConfig(**{field: outside})


def test_several_faults_are_one_sentence():
    with pytest.raises(ValidationError) as caught:
        RunConfig(epochs=0, seed=-1, colour="red")
    assert is_sentence(explain(caught.value))


def test_an_invalid_config_gets_one_sentence():
    for text in ("", "{", "[]", "null", "\x00"):
        with pytest.raises(ValidationError) as caught:
            RunConfig.model_validate_json(text)
        assert explain(caught.value) == "The field 'config' is missing or damaged."
        assert is_sentence(explain(caught.value))


configs = st.builds(
    RunConfig,
    model=st.sampled_from(["linear", "mlp-7", "logistic-el-5", "plateau-el-mnn-6-3"]),
    dataset=st.text(max_size=200),
    epochs=st.integers(1, 10_000),
    batch_size=st.integers(1, 100_000),
    learning_rate=st.floats(0, 1e6, exclude_min=True),
    seed=st.integers(0, 2**31 - 1),
    seeds=st.integers(1, 100),
    device=st.sampled_from(["auto", "cpu", "cuda", "mps"]),
    compile=st.booleans(),
)


@given(configs)
def test_json_round_trip_is_exact(config):
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_text_from_the_command_line_becomes_numbers():
    config = RunConfig(epochs="3", batch_size="64", learning_rate="1e-3", seed="7")
    assert config == RunConfig(epochs=3, batch_size=64, learning_rate=0.001, seed=7)


def test_the_same_grids_make_the_same_config():
    assert RunConfig(grid=" 14x14, data,028x20") == RunConfig(grid="14,data,28x20")


def test_a_config_cannot_be_changed():
    with pytest.raises(ValidationError):
        RunConfig().epochs = 3


def test_every_field_says_what_it_is():
    assert all(field.description for field in RunConfig.model_fields.values())
