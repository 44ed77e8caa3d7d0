"""What a run can be told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from densembed.config import RunConfig, explain
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
    ("dataset", "x" * 201),
    ("dataset", None),
    ("epochs", 0),
    ("epochs", 10_001),
    ("epochs", 2.5),
    ("epochs", "many"),
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
    assert sentence.startswith(f"{field}: ")
    assert is_sentence(sentence)
    assert sentence.count(".") == 1 or "2.5" in sentence or "model" in field


def test_several_faults_are_one_sentence():
    with pytest.raises(ValidationError) as caught:
        RunConfig(epochs=0, seed=-1, colour="red")
    assert is_sentence(explain(caught.value))


def test_what_is_no_config_is_one_sentence():
    for text in ("", "{", "[]", "null", "\x00"):
        with pytest.raises(ValidationError) as caught:
            RunConfig.model_validate_json(text)
        assert explain(caught.value).startswith("config: ")
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


def test_a_config_cannot_be_changed():
    with pytest.raises(ValidationError):
        RunConfig().epochs = 3


def test_every_field_says_what_it_is():
    assert all(field.description for field in RunConfig.model_fields.values())
