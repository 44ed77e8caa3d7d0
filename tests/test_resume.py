"""The file that a run goes on from."""

import os

import pytest
import torch
from safetensors.torch import save

from densembed.config import RunConfig
from densembed.resume import code_path, differences, load_resume, save_resume
from densembed.training import Resume
from tests.conftest import is_sentence

CODE = {"device": "cpu", "threads": "1"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "resume.safetensors"


def test_what_is_saved_is_loaded(path):
    state = {
        "values": torch.randn(2, 5), "high": torch.tensor([0, 7]), "seconds": torch.tensor(0.1),
        "generators": torch.stack([torch.Generator().get_state()] * 2),
    }  # fmt: skip
    save_resume(path, Resume(17, state), CODE)
    resume, code = load_resume(path)
    assert resume.step == 17
    assert code == CODE
    assert resume.state.keys() == state.keys()
    for name, value in state.items():
        assert resume.state[name].dtype == value.dtype
        assert torch.equal(resume.state[name], value)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_folder_whose_name_is_not_unicode(tmp_path):
    place = tmp_path / os.fsdecode(b"caf\xe9") / "resume.safetensors"
    place.parent.mkdir()
    save_resume(place, Resume(3, {"values": torch.ones(2)}), CODE)
    assert load_resume(place)[0].step == 3


def test_none_is_none(path):
    assert load_resume(path) is None


GOOD = {"format": "densembed-resume", "version": "1", "step": "3", "path": "{}"}


@pytest.mark.parametrize(
    "change",
    [
        {"format": "densembed"}, {"version": "2"}, {"step": "many"}, {"step": "0"}, {"step": "-1"},
        {"path": "["}, {"path": "[]"}, {"path": "[" * 100_000},
    ],
)  # fmt: skip
def test_another_file_is_refused(path, change):
    path.write_bytes(save({"x": torch.zeros(1)}, GOOD))
    assert load_resume(path)[0].step == 3
    path.write_bytes(save({"x": torch.zeros(1)}, GOOD | change))
    with pytest.raises(ValueError, match="damaged") as caught:
        load_resume(path)
    assert is_sentence(str(caught.value))


@pytest.mark.parametrize("length", [0, 1, 8, 40, -1])
def test_a_part_of_a_file_is_refused(path, length):
    path.write_bytes(save({"x": torch.zeros(9)}, GOOD)[:length])
    with pytest.raises(ValueError, match="damaged"):
        load_resume(path)


def test_a_huge_file_is_not_read(path):
    with open(path, "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match="damaged"):
        load_resume(path)


def test_what_changed_is_said():
    assert differences(CODE, CODE) == ""
    assert differences(CODE, CODE | {"threads": "4"}) == "threads 1 → 4"
    assert differences({}, CODE) == "device ? → cpu, threads ? → 1"


def test_the_code_path_of_this_machine():
    code = code_path(RunConfig(device="cpu"))
    assert code["device"] == "cpu"
    assert code["threads"] == str(torch.get_num_threads())
    assert code["torch"] == torch.__version__
