"""Files that are no checkpoint, or a damaged one: each gets one sentence."""

import json
import os
import struct
from copy import deepcopy

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from densembed.models.registry import build
from densembed.training import header as module
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError
from tests.conftest import is_sentence
from tests.training.files import (
    BAD_HEADERS,
    BAD_TENSORS,
    NOT_ONE,
    PROVENANCE,
    WHOLE,
    content,
    header,
    spoilt,
    tensors,
)


def refused(data: bytes, name: str = "it.safetensors") -> str:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.from_bytes(data, name)
    sentence = str(caught.value)
    assert is_sentence(sentence), sentence
    assert sentence.startswith(name)
    assert len(sentence) < 600
    return sentence


def torch_saved(tmp_path) -> bytes:
    torch.save(build("logistic-el-2").state_dict(), tmp_path / "it.pt")
    return (tmp_path / "it.pt").read_bytes()


@pytest.mark.parametrize("kind", NOT_ONE)
def test_a_file_that_is_no_checkpoint_is_refused(kind):
    says = "is empty (0 bytes)" if kind == "empty" else "is not a densembed checkpoint"
    assert says in refused(NOT_ONE[kind])


@pytest.mark.parametrize("read", [Checkpoint.open, Checkpoint.peek])
def test_an_empty_file_is_said_to_be_empty(tmp_path, read):
    (tmp_path / "it.safetensors").touch()
    with pytest.raises(CheckpointError, match=r"^it.safetensors is empty \(0 bytes\)\. Choose"):
        read(tmp_path / "it.safetensors")


def test_a_renamed_pickle_is_refused_and_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    torch.save({"weights": Trap()}, tmp_path / "trap.safetensors")
    assert "is not a densembed checkpoint" in refused((tmp_path / "trap.safetensors").read_bytes())
    assert "is not a densembed checkpoint" in refused(torch_saved(tmp_path))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("version", ["0", "2", "1.0", "", None, "x" * 10_000, "1\n2"])
def test_another_version_says_so(version):
    sentence = refused(content(version=version))
    assert "version" in sentence
    assert "Update densembed" in sentence


@pytest.mark.parametrize("kind", BAD_HEADERS)
def test_a_bad_header_is_refused(kind):
    head = BAD_HEADERS[kind]
    assert "has a damaged header" in refused(
        content(header=None) if head is None else content(head)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": ["a", "b\ud800"]}, r"The field 'classes.1' is not valid Unicode: b\ud800."),
        ({"config": {"model": "\udcff"}}, r"Model is not valid UTF-8: \xff."),
        (
            {"provenance": PROVENANCE | {"machine": "\udcff"}},
            r"The field 'provenance.machine' is not valid Unicode: \xff.",
        ),
    ],
)
def test_a_text_that_is_not_unicode_is_named(changes, words):
    assert words in refused(content(header(**changes)))


@pytest.mark.parametrize(
    "shape",
    [
        [10**6, 10**6, 10**6],
        [1, 2**31, 2**31],
        [1, 2**62, 2**62],
        [1, 28, 10**12],
        [2**63, 2**63, 2**63],
        [1, 28, 10**30],
        [1, 28, 10**400],
    ],
    ids=str,
)
@pytest.mark.parametrize("model", ["linear", "mlp-50", "logistic-el-2", "logistic-el-mnn-4-2"])
def test_absurd_sizes_cost_no_memory(shape, model):
    refused(content(header(config={"model": model}, input_shape=shape)))


@pytest.mark.parametrize("kind", BAD_TENSORS)
def test_bad_tensors_are_refused(kind):
    change, words = BAD_TENSORS[kind]
    assert words in refused(spoilt(change))


def test_the_way_to_convert_that_the_sentence_names_works(tmp_path):
    path = tmp_path / "own.safetensors"
    doubles = {name: tensor.double() + 2**-40 for name, tensor in tensors().items()}
    path.write_bytes(content(parts=doubles))
    assert ".float()" in refused(path.read_bytes())
    with safetensors.safe_open(path, "pt") as file:
        told = file.metadata()
    singles = {name: tensor.float() for name, tensor in doubles.items()}
    safetensors.torch.save_file(singles, path, told)
    assert Checkpoint.open(path).tensors.keys() == singles.keys()


def test_metrics_of_other_members_are_refused():
    assert "metrics" in refused(content(header(members=2)))
    head = header()
    head["epochs"][1]["train_loss"] = []
    assert "metrics" in refused(content(head))


@pytest.mark.parametrize("steps", [[0, 10, 1, 20], [0, 1, 1, 2], [20, 10, 1, 0]])
def test_steps_out_of_order_are_refused(steps):
    assert "snapshots that are not in order" in refused(content(header(steps=steps)))


def test_steps_without_one_from_before_training_are_refused():
    assert "no snapshot of step 0" in refused(content(header(steps=[1, 2, 10, 20])))


@pytest.mark.parametrize(
    ("field", "numbers"),
    [("epoch", [2, 1]), ("epoch", [1, 1]), ("step", [20, 10]), ("step", [9, 9])],
)
def test_epochs_out_of_order_are_refused(field, numbers):
    head = header()
    for epoch, number in zip(head["epochs"], numbers, strict=True):
        epoch[field] = number
    assert "epochs that are not in order" in refused(content(head))


@settings(max_examples=150)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_anywhere_is_refused(length):
    refused(WHOLE[:length])


@given(st.binary(min_size=1, max_size=64))
def test_a_file_with_more_behind_it_is_refused(more):
    refused(WHOLE + more)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    refused(data)
    refused(struct.pack("<Q", len(data)) + data)


@pytest.mark.parametrize(
    ("field", "value"),
    [("test_error", [1e308]), ("test_error", [-3.0]), ("seconds", -1.0), ("step", 10**30)],
)
def test_impossible_numbers_of_an_epoch_are_refused(field, value):
    head = header()
    head["epochs"][-1][field] = value
    assert "epochs.1" in refused(content(head))


@pytest.mark.parametrize("field", ["train_images", "test_images"])
def test_impossible_counts_are_refused(field):
    head = header()
    head["provenance"] = {**head["provenance"], field: -5}
    assert field in refused(content(head))


@pytest.mark.parametrize("value", [True, "1", 1.5, None])
@pytest.mark.parametrize(
    "path", ["steps_per_epoch", "steps.0", "input_shape.1", "epochs.0.step", "provenance.threads"]
)
def test_only_numbers_are_numbers(path, value):
    head = deepcopy(header())
    *place, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    part = head
    for name in place:
        part = part[name]
    part[last] = value
    assert path in refused(content(head))


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_only_another_number(place, change):
    data = bytearray(WHOLE)
    data[place] ^= change
    try:
        opened = Checkpoint.from_bytes(bytes(data), "it.safetensors")
    except CheckpointError as error:
        text = str(error)
        assert text.startswith("it.safetensors ")
        assert text.endswith(".")
        assert "\n" not in text
    else:
        assert opened.model()(torch.rand(1, *opened.header.input_shape)).shape == (1, 10)


def test_files_that_cannot_be_read(tmp_path):
    for path, words in ((tmp_path / "no.safetensors", "No such file"), (tmp_path, "directory")):
        with pytest.raises(CheckpointError, match=words) as caught:
            Checkpoint.open(path)
        assert is_sentence(str(caught.value))


def test_huge_files_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", len(WHOLE) - 1)
    (tmp_path / "a.safetensors").write_bytes(WHOLE)
    with pytest.raises(CheckpointError, match=r"^a.safetensors is too large for a checkpoint\.$"):
        Checkpoint.open(tmp_path / "a.safetensors")
    monkeypatch.setattr(module, "MAX_BYTES", len(WHOLE))
    assert Checkpoint.open(tmp_path / "a.safetensors").steps == [0, 1, 10, 20]


def test_an_error_is_a_value_error():
    assert issubclass(CheckpointError, ValueError)


@pytest.mark.parametrize("entry", [5, {}, {"data_offsets": 3}, {"data_offsets": [0]}, None])
def test_peek_refuses_a_file_whose_tensors_are_not_described(tmp_path, entry):
    metadata = {"format": "densembed", "version": "1", "header": json.dumps(header())}
    told = json.dumps({"__metadata__": metadata, "alpha": entry}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(told)) + told)
    with pytest.raises(CheckpointError, match=r"^a.safetensors is damaged or incomplete\.$"):
        Checkpoint.peek(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": [20, 10, 1, 0]}, "snapshots that are not in order"),
        ({"steps": [0, 0, 0, 0]}, "snapshots that are not in order"),
        ({"steps": [1, 2, 10, 20]}, "no snapshot of step 0"),
        ({"steps": [0, 1, 20]}, "damaged or incomplete"),
        ({"epochs": header()["epochs"][::-1]}, "epochs that are not in order"),
        ({"members": 2}, "metrics for another number of members"),
    ],
)
def test_peek_refuses_a_course_of_training_that_cannot_be(tmp_path, changes, words):
    path = tmp_path / "it.safetensors"
    path.write_bytes(content(header(**changes)))
    with pytest.raises(CheckpointError, match=words):
        Checkpoint.peek(path)


def test_peek_refuses_a_truncated_file(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(WHOLE)
    assert Checkpoint.peek(path) == Checkpoint.open(path).header
    path.write_bytes(WHOLE[:-1])
    with pytest.raises(CheckpointError, match="damaged or incomplete"):
        Checkpoint.peek(path)


def test_a_named_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (Checkpoint.open, Checkpoint.peek):
        with pytest.raises(CheckpointError, match="pipe cannot be read: Not a regular file"):
            read(tmp_path / "pipe")
