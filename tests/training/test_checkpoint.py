"""One file holds a training: what was written is what is read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

import densembed
from densembed import files
from densembed.models.registry import build, parameter_count
from densembed.training.checkpoint import Checkpoint, load
from densembed.training.header import CheckpointError, Header
from tests.training.files import (
    PROVENANCE,
    content,
    header,
    made,
    tensors,
)


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
        ({"steps": [0, 3.5]}, "has a damaged header: The field 'steps.1'"),
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


def test_provenance_names_no_person_and_no_folder(trained):
    text = trained.header.model_dump_json()
    assert os.path.expanduser("~") == "/" or os.path.expanduser("~") not in text
    assert os.getcwd() not in text
    assert os.uname().nodename not in text if hasattr(os, "uname") else True


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


def opened(data: bytes, folder) -> Checkpoint:
    (folder / "it.safetensors").write_bytes(data)
    return Checkpoint.open(folder / "it.safetensors")


def test_digest_tells_contents_apart(trained, trained_file):
    assert Checkpoint.open(trained_file).digest == trained.digest
    name = next(iter(trained.tensors))
    changed = {**trained.tensors, name: trained.tensors[name].clone()}
    changed[name].view(-1)[-1] += 1e-3
    assert Checkpoint(trained.header, changed).digest != trained.digest
    header = trained.header.model_copy(update={"outcome": "stopped"})
    assert Checkpoint(header, trained.tensors).digest != trained.digest


def test_opening_a_file_does_not_import_the_compiler(trained_file):
    """The import of the compiler takes one to two seconds of each start of an app or a worker."""
    opens = "import sys; from densembed.cli.main import main; main(['info', sys.argv[1]])"
    says = "; print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    command = [sys.executable, "-c", opens + says, str(trained_file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n")


def test_no_text_of_a_file_controls_a_terminal():
    head = header()
    head["classes"] = ["a\x1b[2J\u202e", *head["classes"][1:]]
    head["provenance"] = {**head["provenance"], "dataset_title": "x\x1b]0;own\x07\ny"}
    opened = Checkpoint.from_bytes(content(head), "it.safetensors").header
    assert opened.classes[0] == r"a\x1b[2J\u202e"
    assert opened.provenance.dataset_title.isprintable()


def test_opening_a_file_draws_no_random_numbers(trained_file):
    before = torch.get_rng_state()
    load(trained_file)
    Checkpoint.open(trained_file).network()
    assert torch.equal(torch.get_rng_state(), before)
