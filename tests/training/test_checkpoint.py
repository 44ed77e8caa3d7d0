"""One file holds a training, and nothing else passes for one."""

import json
import os
import struct
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import densembed
from densembed import files
from densembed.models.registry import build, parameter_count
from densembed.training import header as module
from densembed.training.checkpoint import Checkpoint, load
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError, Header
from densembed.training.loop import Diverged, Epoch, Resume, Snapshot, train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence

PROVENANCE = {
    "created": "2024-05-01T12:00:00+00:00",
    "densembed": "0.1.0",
    "torch": "2.4.0",
    "python": "3.11.9",
    "machine": "Linux x86_64",
    "device": "cpu",
    "threads": 1,
    "dataset_title": "digits",
    "train_images": 1438,
    "test_images": 359,
}


def header(members: int = 1, **values) -> dict:
    """The JSON of a header, with two epochs, as a dictionary to spoil."""
    epochs = [
        {
            "epoch": epoch,
            "step": 10 * epoch,
            "train_loss": [1.5] * members,
            "test_error": [30.0 + 2 * member - epoch for member in range(members)],
            "learning_rate": 0.002,
            "seconds": 0.5,
        }
        for epoch in (1, 2)
    ]
    return {
        "config": {"model": "logistic-el-2"},
        "input_shape": [1, 28, 28],
        "classes": list("0123456789"),
        "steps_per_epoch": 10,
        "steps": [0, 1, 10, 20],
        "epochs": epochs,
        "outcome": "done",
        "provenance": PROVENANCE,
    } | values


def tensors(members: int = 1, snapshots: int = 4, model: str = "logistic-el-2", **shape) -> dict:
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.randn(snapshots, members, *value.shape, generator=generator)
        for name, value in build(model, **shape).state_dict().items()
    }


def content(head=None, parts=None, **metadata) -> bytes:
    """A file's bytes; what is given replaces what a whole one would have."""
    head = header() if head is None else head
    metadata = {
        "format": "densembed",
        "version": "1",
        "header": head if isinstance(head, str) else json.dumps(head),
    } | metadata
    metadata = {key: value for key, value in metadata.items() if value is not None}
    return safetensors.torch.save(tensors() if parts is None else parts, metadata)


def made(members: int = 1, **values) -> Checkpoint:
    return Checkpoint(Header(**header(members, **values)), tensors(members))


def refused(data: bytes, name: str = "it.safetensors") -> str:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.from_bytes(data, name)
    sentence = str(caught.value)
    assert is_sentence(sentence), sentence
    assert sentence.startswith(name)
    assert len(sentence) < 600
    return sentence


# What was written is what is read


def test_round_trip(tmp_path):
    first = made(members=3)
    first.save(tmp_path / "a.safetensors")
    second = Checkpoint.open(tmp_path / "a.safetensors")
    assert second.header == first.header
    assert second.tensors.keys() == first.tensors.keys()
    assert all(torch.equal(second.tensors[key], first.tensors[key]) for key in first.tensors)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_file_and_upload_are_read_alike(trained_file):
    opened = Checkpoint.open(trained_file)
    uploaded = Checkpoint.from_bytes(trained_file.read_bytes())
    assert opened.header == uploaded.header


def test_it_is_an_ordinary_safetensors_file(trained, trained_file):
    plain = safetensors.torch.load_file(trained_file)
    name = "embedding.beta"
    assert torch.equal(plain[name], trained.tensors[name])
    assert plain[name].shape == (len(trained.steps), 1, 1, 16, 2)


def test_recorder_keeps_a_training(digits, tmp_path):
    config = RunConfig(model="logistic-el-2", epochs=2, batch_size=100, device="cpu")
    recorder, events = Recorder(config, digits), []
    for event in train(config, digits):
        recorder.add(event)
        events.append(event)
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    kept = Checkpoint.open(tmp_path / "a.safetensors")
    snapshots = [event for event in events if isinstance(event, Snapshot)]
    epochs = [event for event in events if isinstance(event, Epoch)]
    assert kept.config == config
    assert kept.steps == [event.step for event in snapshots] == [0, 1, 2, 4, 8, 15, 30]
    for index, event in enumerate(snapshots):
        state = kept.state(index)
        assert all(torch.equal(state[name], event.state[name][0]) for name in event.state)
    assert [e.test_error for e in kept.header.epochs] == [event.test_error for event in epochs]
    assert kept.errors == epochs[-1].test_error
    assert kept.header.steps_per_epoch == 15
    assert kept.header.outcome == "done"
    origin = kept.header.provenance
    assert (origin.train_images, origin.test_images) == (1438, 359)
    assert (origin.device, origin.torch, origin.densembed) == (
        "cpu",
        torch.__version__,
        densembed.__version__,
    )


def test_a_record_begins_before_training(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    with pytest.raises(ValueError, match=r"first snapshot of step 0, .* got one of step 1,200"):
        recorder.add(Snapshot(1200, {}))
    with pytest.raises(ValueError, match="at least one snapshot"):
        recorder.checkpoint()


def test_a_record_is_in_order(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    with pytest.raises(TypeError, match="event of train; got str"):
        recorder.add("x")
    recorder.add(Snapshot(0, {}))
    recorder.add(Snapshot(45, {}))
    for step in (45, 44):
        with pytest.raises(ValueError, match=f"next snapshot above 45; got {step}"):
            recorder.add(Snapshot(step, {}))
    epoch = Epoch(1, 45, train_loss=[1.0], test_error=[1.0], learning_rate=0.1, seconds=1.0)
    recorder.add(epoch)
    with pytest.raises(ValueError, match="next epoch above 1; got 1"):
        recorder.add(epoch)


@pytest.mark.parametrize("step", [3.0, 10**13, -1, "3", None])
def test_a_step_that_could_not_be_saved_is_not_added(digits, step):
    recorder = Recorder(RunConfig(model="linear"), digits)
    recorder.add(Snapshot(0, {}))
    with pytest.raises(
        ValueError, match=r"whole number from 0 to 1,000,000,000,000; got"
    ) as caught:
        recorder.add(Snapshot(step, {}))
    assert is_sentence(str(caught.value))
    with pytest.raises(ValueError, match=r"^The epoch does not fit a checkpoint: The field 'step'"):
        recorder.add(Epoch(1, step, [1.0], [1.0], learning_rate=0.1, seconds=1.0))


def test_a_recorder_keeps_copies(digits):
    """All snapshots were the last one, if they were not cloned."""
    recorder, model = Recorder(RunConfig(model="logistic-el-2"), digits), build("logistic-el-2")
    for step in range(2):
        recorder.add(Snapshot(step, {k: v[None] for k, v in model.state_dict().items()}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    first, second = (snapshot.state["embedding.alpha"] for snapshot in recorder.snapshots)
    torch.testing.assert_close(second, first + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("embedding.beta"), "has embedding.beta not at all, and the first"),
        (
            lambda state: state.update(more=torch.zeros(1, 1)),
            r"has more of shape \(1, 1\), and the",
        ),
        (
            lambda state: state.update({"embedding.beta": torch.zeros(2, 1)}),
            r"has embedding.beta of shape \(2, 1\), and",
        ),
    ],
    ids=["missing", "additional", "shape"],
)
def test_snapshots_have_the_same_parameters(digits, change, words):
    recorder = Recorder(RunConfig(model="logistic-el-2"), digits)
    state = {name: part[0] for name, part in tensors().items()}
    recorder.add(Snapshot(0, state))
    change(state)
    recorder.add(Snapshot(45, state))
    with pytest.raises(ValueError, match=f"that of step 45 {words}") as caught:
        recorder.checkpoint()
    assert is_sentence(str(caught.value))


def test_a_step_may_be_a_numpy_integer(digits, tmp_path):
    recorder = Recorder(RunConfig(model="logistic-el-2"), digits)
    state = {name: part[0] for name, part in tensors().items()}
    for step in np.arange(2):
        recorder.add(Snapshot(step, state))
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    assert Checkpoint.open(tmp_path / "a.safetensors").steps == [0, 1]


def test_a_record_has_a_limit(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    for step in range(1000):
        recorder.add(Snapshot(step, {}))
    with pytest.raises(ValueError, match=r"at most 1,000 snapshots, .* add fewer of them\.$"):
        recorder.add(Snapshot(1000, {}))
    epochs = [Epoch(k, k, [1.0], [1.0], 0.1, 1.0) for k in range(1, 10_002)]
    for epoch in epochs[:-1]:
        recorder.add(epoch)
    with pytest.raises(ValueError, match=r"at most 10,000 epochs, .* add fewer of them\.$"):
        recorder.add(epochs[-1])
    assert (len(recorder.snapshots), len(recorder.header.epochs)) == (1000, 10_000)


@pytest.mark.parametrize("outcome", ["done", "stopped"])
def test_a_training_that_diverged_is_not_done(digits, outcome):
    config = RunConfig(model="mlp-50", epochs=15, learning_rate=3000, batch_size=16, device="cpu")
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    assert isinstance(event, Diverged)
    checkpoint = recorder.checkpoint(outcome)
    assert checkpoint.header.outcome == "diverged"
    assert checkpoint.moment(checkpoint.steps[-1]) != "after training"
    assert checkpoint.novelty is None


def test_an_outcome_is_one_of_five(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    recorder.add(Snapshot(0, {}))
    with pytest.raises(
        ValueError, match=r"running, done, stopped, diverged, failed; got 'finished'"
    ):
        recorder.checkpoint("finished")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (
            {"steps": list(range(1001))},
            "has 1,001 snapshots, but a checkpoint has at most 1,000. K",
        ),
        ({"epochs": 10_001}, "has 10,001 epochs, but a checkpoint has at most 10,000. K"),
        (
            {"epochs": 9000, "members": 20},
            "has too many numbers in its 9,000 epochs of 20 members. K",
        ),
        ({"steps": [0, 3.0]}, "has a damaged header: The field 'steps.1'"),
        ({"steps": [0, 10**13]}, "has a damaged header: The field 'steps.1'"),
        ({"outcome": "finished"}, "has a damaged header: The field 'outcome'"),
    ],
)
def test_a_header_that_could_not_be_opened_is_not_saved(tmp_path, values, fault):
    members = values.pop("members", 1)
    head = Header(**header(members))
    if count := values.pop("epochs", 0):
        epoch = head.epochs[0]
        numbers = [1 / 3] * members
        values["epochs"] = [
            epoch.model_copy(update={"epoch": k, "step": k, "train_loss": numbers})
            for k in range(1, count + 1)
        ]
    head = head.model_copy(update=values)
    parts = tensors(members, snapshots=len(head.steps))
    with pytest.raises(CheckpointError, match=f"^a.safetensors {fault}"):
        Checkpoint(head, parts).save(tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_too_large_to_open_is_not_saved(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("densembed.training.checkpoint.MAX_BYTES", 1000)
    with pytest.raises(CheckpointError, match=r"too large for a checkpoint. Keep fewer snapshots"):
        trained.save(tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["not finite", "not in order", "lacks the tensor"])
def test_what_could_not_be_opened_is_not_saved(trained, tmp_path, wrong):
    header, tensors = trained.header.model_copy(deep=True), dict(trained.tensors)
    name = next(iter(tensors))
    if wrong == "not finite":
        tensors[name] = tensors[name] * torch.nan
    elif wrong == "not in order":
        header.steps[1] = header.steps[0]
    else:
        del tensors[name]
    with pytest.raises(CheckpointError, match=f"^a.safetensors .*{wrong}"):
        Checkpoint(header, tensors).save(tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_recorder_keeps_all_members(digits, tmp_path):
    config = RunConfig(
        model="logistic-el-2", epochs=2, batch_size=200, seed=4, seeds=3, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    kept = Checkpoint.open(tmp_path / "a.safetensors")
    assert kept.members == len(kept.errors) == 3
    assert kept.parameters == 66
    x = digits.test.images / 255
    for member, error in enumerate(kept.errors):
        answers = kept.model(member=member)(x).argmax(1)
        wrong = (answers != digits.test.labels).sum().item()
        assert error == pytest.approx(100 * wrong / 359)
        torch.manual_seed(4 + member)
        fresh = build("logistic-el-2").state_dict()
        assert all(torch.equal(kept.state(0, member)[name], fresh[name]) for name in fresh)


def test_provenance_names_no_person_and_no_folder(trained):
    text = trained.header.model_dump_json()
    assert os.path.expanduser("~") == "/" or os.path.expanduser("~") not in text
    assert os.getcwd() not in text
    assert os.uname().nodename not in text if hasattr(os, "uname") else True


def test_settings_that_changed_before_a_training_resumes_are_named(trained, digits):
    config = trained.config.model_copy(update={"epochs": 9, "learning_rate": 0.01})
    with pytest.raises(ValueError, match=r": epochs \(3 before\), learning_rate \(0.05 before\)\."):
        Recorder(config, digits).resume(trained, trained.steps[-1])


def test_recorder_gives_what_is_known_so_far(digits):
    config = RunConfig(model="logistic-el-2", epochs=2, batch_size=100, device="cpu")
    recorder = Recorder(config, digits)
    events = train(config, digits)
    recorder.add(next(events))
    early = recorder.checkpoint()
    assert early.steps == [0]
    assert early.errors is None
    assert early.typical == 0
    assert early.header.outcome == "running"


def test_the_last_snapshot_of_a_training_that_goes_on_is_where_it_is(digits, tmp_path):
    """The snapshots that are kept of a thousand epochs lie forty apart."""
    config = RunConfig(
        model="logistic-el-mnn-2-1", epochs=1000, batch_size=1438, seeds=2, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
        if isinstance(event, Resume) and event.step == 5:
            break
    now = recorder.checkpoint()
    assert now.steps == [0, 5]
    stopped = [
        event for event in train(config, digits, stop=_stop_after(5)) if type(event) is Snapshot
    ]
    assert [event.step for event in stopped] == [0, 5]
    for name, tensor in stopped[-1].state.items():
        assert torch.equal(now.tensors[name][-1], tensor)
    now.save(tmp_path / "a.safetensors")
    assert Checkpoint.open(tmp_path / "a.safetensors").steps == [0, 5]
    assert recorder.checkpoint("diverged").steps == [0]
    again = Recorder(config, digits)
    again.resume(now, 5)
    assert [snapshot.step for snapshot in again.snapshots] == [0]
    recorder.position.state["values"][0, 3] = torch.nan
    assert recorder.checkpoint().steps == [0]


def _stop_after(epochs: int):
    """What a training asks at the end of each epoch."""
    asked = iter(range(1, epochs + 1))
    return lambda: next(asked) == epochs


def test_model_gives_the_training_s_answers(trained, digits):
    """The error in the header is the error of the network in the file."""
    model = trained.model()
    x = digits.test.images / 255
    error = 100 * (model(x).argmax(1) != digits.test.labels).double().mean().item()
    assert error == pytest.approx(trained.errors[0], abs=1e-9)
    assert error < 40
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_the_first_and_last_snapshots_differ(trained):
    before, after = trained.state(0), trained.state(-1)
    assert not any(torch.equal(before[name], after[name]) for name in before)
    torch.manual_seed(0)
    fresh = build(trained.config.model).state_dict()
    assert all(torch.equal(before[name], fresh[name]) for name in fresh)


def test_load_gives_the_trained_network(trained, trained_file):
    x = torch.rand(3, 1, 28, 28)
    assert torch.equal(load(trained_file)(x), trained.model()(x))
    assert torch.equal(densembed.load(str(trained_file))(x), trained.model()(x))


def test_a_loaded_network_is_frozen_until_it_is_trained_further(trained_file):
    network = load(trained_file)
    assert parameter_count(network) == 378
    before = network.embedding.beta.clone()
    assert not network(torch.rand(2, 1, 28, 28)).requires_grad
    optimiser = torch.optim.SGD(network.requires_grad_().train().parameters(), lr=1.0)
    network(torch.rand(2, 1, 28, 28)).square().sum().backward()
    optimiser.step()
    assert not torch.equal(network.embedding.beta, before)
    assert torch.equal(load(trained_file).embedding.beta, before)
    for function in (load, Checkpoint.model):
        assert ".requires_grad_()" in function.__doc__


def test_the_summary_of_a_checkpoint(trained):
    assert trained.parameters == parameter_count(build("logistic-el-mnn-4-2")) == 378
    assert trained.members == 1
    assert trained.reads_digits
    assert trained.epoch_of(trained.header.steps_per_epoch * 2) == 2
    assert not made(classes=list("0123456798")).reads_digits


def test_the_typical_member_is_nearest_the_mean():
    checkpoint = made(members=4)
    checkpoint.header.epochs[-1].test_error = [9.0, 10.0, 11.5, 17.0]  # mean 11.875
    assert checkpoint.typical == 2
    torch.testing.assert_close(
        checkpoint.state()["embedding.alpha"], checkpoint.tensors["embedding.alpha"][-1, 2]
    )
    torch.testing.assert_close(
        checkpoint.state(1, member=3)["embedding.beta"], checkpoint.tensors["embedding.beta"][1, 3]
    )


def test_errors_are_those_of_the_last_snapshot():
    """After a divergence, epochs may have come whose weights were not kept."""
    assert made().errors == [28.0]
    assert made(steps=[0, 1, 2, 10]).errors == [29.0]
    assert made(steps=[0, 1, 2, 9]).errors is None


@pytest.mark.parametrize(
    ("device", "config"), [("NVIDIA H100 80GB HBM3", "cuda"), ("mps", "mps"), ("cpu", "auto")]
)
def test_the_device_of_origin_does_not_matter(device, config, tmp_path):
    """hkchengrex/Cutie#37: what was saved on a GPU did not load on a CPU."""
    head = header(
        config={"model": "logistic-el-2", "device": config},
        provenance=PROVENANCE | {"device": device},
    )
    (tmp_path / "a.safetensors").write_bytes(content(head))
    model = load(tmp_path / "a.safetensors")
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 10)


def test_other_shapes_and_classes(tmp_path):
    head = header(
        config={"model": "logistic-el-mnn-3-2"}, input_shape=[3, 8, 12], classes=["cat", "dog"]
    )
    parts = tensors(model="logistic-el-mnn-3-2", input_shape=(3, 8, 12), classes=2)
    kept = Checkpoint.from_bytes(content(head, parts))
    assert kept.model()(torch.rand(2, 3, 8, 12)).shape == (2, 2)
    assert not kept.reads_digits


def test_classes_of_the_same_name_are_refused():
    """Their bars would lie on one another."""
    with pytest.raises(CheckpointError, match="two classes have the same name"):
        Checkpoint.from_bytes(content(header(classes=["7"] * 10)))


def test_an_included_model_is_loaded_by_its_name(monkeypatch):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(Path(__file__).parents[2] / "checkpoints/paper"))
    assert parameter_count(load("logistic-el-5")) == 360
    with pytest.raises(CheckpointError, match=r"an included model \(did you mean 'logistic-el-5'"):
        load("logistic-el5")


# Saving


def test_saving_replaces_the_old_one_at_once(tmp_path):
    path = tmp_path / "a.safetensors"
    made().save(path)
    made(outcome="stopped").save(path)
    assert Checkpoint.open(path).header.outcome == "stopped"


@pytest.mark.parametrize("stage", ["write", "fsync", "replace"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, stage):
    path = tmp_path / "a.safetensors"
    made().save(path)
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    if stage == "write":
        real = open

        def failing(name, mode="r", *rest):
            file = real(name, mode, *rest)
            if "w" in mode:
                file.write(b"half")
                file.flush()
                full()
            return file

        monkeypatch.setattr(files, "open", failing, raising=False)
    else:
        monkeypatch.setattr(files.os, stage, full)
    with pytest.raises(OSError, match="No space left") as caught:
        made(outcome="stopped").save(path)
    assert str(caught.value.filename) == str(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named_by_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        made().save(tmp_path / "no" / "a.safetensors")
    assert str(caught.value.filename) == str(tmp_path / "no" / "a.safetensors")


# What is not a checkpoint


def zeros(**shapes):
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


def with_length(length: int) -> bytes:
    return struct.pack("<Q", length) + content()[8:]


def raw(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def torch_saved(tmp_path) -> bytes:
    torch.save(build("logistic-el-2").state_dict(), tmp_path / "it.pt")
    return (tmp_path / "it.pt").read_bytes()


NOT_ONE = {
    "empty": b"",
    "one byte": b"x",
    "eight zeros": bytes(8),
    "many zeros": bytes(10_000),
    "a web page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>" * 20,
    "text": "Liebe Grüße\n".encode() * 100,
    "noise": np.random.default_rng(0).bytes(5000),
    "header as long as can be": with_length(2**64 - 1),
    "header longer than the file": with_length(len(content())),
    "header of half the integers": with_length(2**63),
    "header of length zero": with_length(0),
    "header cut": with_length(10),
    "header not JSON": raw(b"{" * 100),
    "header nested deeply": raw(b"[" * 100_000),
    "header a list": raw(b"[1, 2, 3]   "),
    "header a number": raw(b"1" * 10_000),
    "header null": raw(b"null    "),
    "header not UTF-8": raw(b'{"\xff\xfe": 1}'),
    "metadata a list": raw(b'{"__metadata__": [1]}  '),
    "metadata null": raw(b'{"__metadata__": null} '),
    "no metadata": safetensors.torch.save(tensors()),
    "another program's": safetensors.torch.save(zeros(w=(3, 3)), {"format": "pt"}),
    "wrong format": content(format="densembedding"),
    "no format": content(format=None),
}


@pytest.mark.parametrize("kind", NOT_ONE)
def test_a_file_that_is_no_checkpoint_is_refused(kind):
    assert "is not a densembed checkpoint" in refused(NOT_ONE[kind])


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


BAD_HEADERS = {
    "missing": None,
    "empty": "",
    "not JSON": "{",
    "a list": "[]",
    "null": "null",
    "empty object": "{}",
    "deep": "[" * 50_000,
    "a surplus field": header(colour="red"),
    "a surplus field with a long name": header(**{"colour" * 500: 1}),
    "a surplus field with lines": header(**{"a\nb\nc": 1}),
    "unknown model": header(config={"model": "transformer"}),
    "a model of absurd size": header(config={"model": "logistic-el-99999"}),
    "a model of endless size": header(config={"model": "logistic-el-" + "9" * 5000}),
    "a model with lines": header(config={"model": "logistic-el-2\nrm"}),
    "shape of two": header(input_shape=[28, 28]),
    "shape of zero": header(input_shape=[1, 0, 28]),
    "negative shape": header(input_shape=[1, -28, 28]),
    "a large shape": header(input_shape=[1, 28, 257]),
    "an image with a scaling": header(scaling={"mean": 0.5, "std": 2.0}),
    "a signal of many channels": header(input_shape=[257, 9], scaling={"mean": 0.5, "std": 2.0}),
    "a long signal": header(input_shape=[1, 16_385], scaling={"mean": 0.5, "std": 2.0}),
    "a scaling without spread": header(input_shape=[1, 9], scaling={"mean": 0.5, "std": 0.0}),
    "a scaling that overflows": header(input_shape=[1, 9], scaling={"mean": -1e300, "std": 1.0}),
    "a tiny deviation": header(input_shape=[1, 9], scaling={"mean": 0.0, "std": 1e-300}),
    "a huge deviation": header(input_shape=[1, 9], scaling={"mean": 0.0, "std": 1e300}),
    "half a scaling": header(input_shape=[1, 9], scaling={"mean": 0.5}),
    "text as shape": header(input_shape="abc"),
    "no classes": header(classes=[]),
    "too many classes": header(classes=["x"] * 1001),
    "a long class": header(classes=["x" * 201]),
    "a number as class": header(classes=[1]),
    "a class without a name": header(classes=[*"012345678", " "]),
    "no steps": header(steps=[]),
    "negative step": header(steps=[-1, 0, 1, 2]),
    "half a step": header(steps=[0, 0.5, 1, 2]),
    "steps as text": header(steps="0123"),
    "too many steps": header(steps=list(range(1001))),
    "no steps an epoch": header(steps_per_epoch=0),
    "unknown outcome": header(outcome="wonderful"),
    "NaN": json.dumps(header()).replace("30.0", "NaN").replace("29.0", "NaN"),
    "infinite": json.dumps(header()).replace("29.0", "1e999"),
    "a number as a change of the data": header(data_changes=[1]),
    "a long change of the data": header(data_changes=["x" * 2001]),
    "no provenance": header(provenance={}),
    "long provenance": header(provenance=PROVENANCE | {"machine": "x" * 201}),
}


def test_a_model_of_signals_keeps_its_scaling():
    head = header(input_shape=[2, 300], scaling={"mean": -0.25, "std": 2.0})
    opened = Checkpoint.from_bytes(content(head, tensors(input_shape=(2, 300))))
    assert opened.header.scaling(1.75) == 1.0
    assert opened.model()(torch.rand(3, 2, 300)).shape == (3, 10)
    assert not opened.reads_digits
    again = Checkpoint.from_bytes(opened.to_bytes())
    assert again.header == opened.header
    assert again.digest == opened.digest


def test_the_header_of_an_ordinary_model_of_images_has_the_fields_of_older_versions():
    fields = Checkpoint.from_bytes(content()).header.model_dump()
    assert not {"scaling", "data_changes"} & set(fields)


def test_a_header_keeps_the_changes_of_the_data():
    changes = ["after epoch 1: 80 training images before, 200 now"]
    opened = Checkpoint.from_bytes(content(header(data_changes=changes)))
    assert Checkpoint.from_bytes(opened.to_bytes()).header.data_changes == changes


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


def spoilt(change) -> bytes:
    parts = tensors()
    change(parts)
    return content(parts=parts)


def set_value(name, index, value):
    def change(parts):
        parts[name][index] = value

    return change


BAD_TENSORS = {
    "missing": (lambda p: p.pop("embedding.beta"), "lacks the tensor embedding.beta"),
    "all missing": (lambda p: p.clear(), "lacks the tensor classifier.bias"),
    "extra": (lambda p: p.update(extra=torch.zeros(4, 1)), "'extra'"),
    "extra with a long name": (lambda p: p.update({"e" * 5000: torch.zeros(4, 1)}), "'eeee"),
    "extra with lines": (lambda p: p.update({"e\nf": torch.zeros(4, 1)}), r"'e\nf'"),
    "other shape": (
        lambda p: p.update({"embedding.beta": torch.zeros(4, 1, 1, 5, 2)}),
        "tensor embedding.beta of the wrong shape: expected (4, 1, 1, 4, 2), got (4, 1, 1, 5, 2)",
    ),
    "no members' axis": (
        lambda p: p.update({"embedding.beta": torch.zeros(4, 1, 4, 2)}),
        "of the wrong shape",
    ),
    "other snapshots": (
        lambda p: p.update({"classifier.bias": torch.zeros(3, 1, 10)}),
        "tensor classifier.bias of the wrong shape",
    ),
    "other members": (
        lambda p: p.update({"classifier.bias": torch.zeros(4, 2, 10)}),
        "tensor classifier.bias of the wrong shape",
    ),
    "no members": (
        lambda p: p.update({k: v[:, :0] for k, v in p.items()}),
        "of the wrong shape",
    ),
    "no axes": (lambda p: p.update({k: torch.tensor(0.0) for k in p}), "of the wrong shape"),
    "float64": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].double() + 2**-40}),
        "float64 values in embedding.beta that are not exact in float32. Convert",
    ),
    "float64 beyond float32": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].double() + 1e300}),
        "float64 values in embedding.beta that are not exact in float32. Convert",
    ),
    "int": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].int()}),
        "int32 values in embedding.beta, where a model has floating-point numbers. "
        "Convert its tensors with .float(), and multiply quantised ones by their scale",
    ),
    "bool": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].bool()}),
        "bool values in embedding.beta, where a model has floating-point numbers",
    ),
    "float16 NaN": (
        lambda p: p.update({"classifier.bias": p["classifier.bias"].half() / 0}),
        "not finite",
    ),
    "float64 NaN": (
        lambda p: p.update({"classifier.bias": p["classifier.bias"].double() * float("nan")}),
        "not finite",
    ),
    "NaN": (set_value("classifier.weight", (2, 0, 3, 1), float("nan")), "not finite"),
    "infinite": (set_value("embedding.alpha", (0, 0, 0, 0, 0), float("-inf")), "not finite"),
}


@pytest.mark.parametrize("kind", BAD_TENSORS)
def test_bad_tensors_are_refused(kind):
    change, words = BAD_TENSORS[kind]
    assert words in refused(spoilt(change))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_numbers_that_float32_holds_exactly_are_read(dtype, tmp_path):
    """A file that somebody has converted to save room, or to compute with more digits."""
    whole = Checkpoint.from_bytes(content())
    rounded = {name: tensor.to(dtype) for name, tensor in whole.tensors.items()}
    data = content(parts=rounded)
    for checkpoint in (Checkpoint.from_bytes(data), opened(data, tmp_path)):
        for name, tensor in checkpoint.tensors.items():
            assert tensor.dtype == torch.float32
            assert tensor.tolist() == rounded[name].tolist()
        assert checkpoint.model()(torch.rand(1, 1, 28, 28)).isfinite().all()


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


def opened(data: bytes, folder) -> Checkpoint:
    (folder / "it.safetensors").write_bytes(data)
    return Checkpoint.open(folder / "it.safetensors")


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


WHOLE = content()


@settings(max_examples=150)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_anywhere_is_refused(length):
    refused(WHOLE[:length])


@given(st.binary(min_size=1, max_size=64))
def test_a_file_with_more_behind_it_is_refused(more):
    refused(WHOLE + more)


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


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    refused(data)
    refused(struct.pack("<Q", len(data)) + data)


# Files that cannot be read


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


def test_digest_tells_contents_apart(trained, trained_file):
    assert Checkpoint.open(trained_file).digest == trained.digest
    name = next(iter(trained.tensors))
    changed = {**trained.tensors, name: trained.tensors[name].clone()}
    changed[name].view(-1)[-1] += 1e-3
    assert Checkpoint(trained.header, changed).digest != trained.digest
    header = trained.header.model_copy(update={"outcome": "stopped"})
    assert Checkpoint(header, trained.tensors).digest != trained.digest


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


def test_opening_a_file_does_not_import_the_compiler(trained_file):
    """The import of the compiler takes one to two seconds of each start of an app or a worker."""
    opens = "import sys; from densembed.cli.main import main; main(['info', sys.argv[1]])"
    says = "; print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    command = [sys.executable, "-c", opens + says, str(trained_file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n")


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


def test_no_text_of_a_file_controls_a_terminal():
    head = header()
    head["classes"] = ["a\x1b[2J\u202e", *head["classes"][1:]]
    head["provenance"] = {**head["provenance"], "dataset_title": "x\x1b]0;own\x07\ny"}
    opened = Checkpoint.from_bytes(content(head), "it.safetensors").header
    assert opened.classes[0] == r"a\x1b[2J\u202e"
    assert opened.provenance.dataset_title.isprintable()


def test_a_named_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (Checkpoint.open, Checkpoint.peek):
        with pytest.raises(CheckpointError, match="pipe cannot be read: Not a regular file"):
            read(tmp_path / "pipe")


def test_opening_a_file_draws_no_random_numbers(trained_file):
    before = torch.get_rng_state()
    load(trained_file)
    Checkpoint.open(trained_file).network()
    assert torch.equal(torch.get_rng_state(), before)
