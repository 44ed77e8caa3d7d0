"""The file from which a run resumes."""

import json
import os
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import save

from densembed.data import Dataset, Split
from densembed.training.config import RunConfig
from densembed.training.loop import Resume
from densembed.training.resume import (
    Data,
    carry_over,
    code_path,
    differences,
    load_resume,
    save_resume,
)
from tests.conftest import is_sentence

CODE = {"device": "cpu", "threads": "1"}
DATA = Data("0a1b", ["cat", "dog\udcff"], [3, 8, 8], 30, 7, 12)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "resume.safetensors"


def test_what_is_saved_is_loaded(path):
    state = {
        "values": torch.randn(2, 5),
        "high": torch.tensor([0, 7]),
        "seconds": torch.tensor(0.1),
        "generators": torch.stack([torch.Generator().get_state()] * 2),
    }
    save_resume(path, Resume(17, state), CODE, DATA)
    resume, code, data = load_resume(path)
    assert data == DATA
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
    save_resume(place, Resume(3, {"values": torch.ones(2)}), CODE, DATA)
    assert load_resume(place)[0].step == 3


def test_a_missing_resume_state_is_none(path):
    assert load_resume(path) is None


GOOD = {"format": "densembed-resume", "version": "1", "step": "3", "path": "{}"}


@pytest.mark.parametrize(
    "change",
    [
        {"format": "densembed"}, {"version": "2"}, {"step": "many"}, {"step": "0"}, {"step": "-1"},
        {"path": "["}, {"path": "[]"}, {"path": "[" * 100_000},
        {"data": ""}, {"data": "[]"}, {"data": "{}"}, {"data": "[" * 100_000},
        {"data": json.dumps(asdict(DATA) | {"train": "many"})},
        {"data": json.dumps(asdict(DATA) | {"train": 0})},
        {"data": json.dumps(asdict(DATA) | {"classes": [1]})},
        {"data": json.dumps(asdict(DATA) | {"shape": [8]})},
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


def test_the_change_of_the_code_path_is_described():
    assert differences(CODE, CODE) == ""
    assert differences(CODE, CODE | {"threads": "4"}) == "threads 1 → 4"
    assert differences({}, CODE) == "device ? → cpu, threads ? → 1"


def test_the_code_path_of_this_machine():
    code = code_path(RunConfig(device="cpu"))
    assert code["device"] == "cpu"
    assert code["threads"] == str(torch.get_num_threads())
    assert code["torch"] == torch.__version__


def test_a_file_of_an_older_version_knows_no_data(path):
    path.write_bytes(save({"x": torch.zeros(1)}, GOOD))
    assert load_resume(path)[2] is None


def small(classes=("cat", "dog"), train=4, test=2) -> Dataset:
    random = torch.Generator().manual_seed(0)

    def split(count):
        images = torch.randint(0, 256, (count, 1, 3, 3), dtype=torch.uint8, generator=random)
        return Split(images, torch.arange(count) % len(classes))

    return Dataset("small", "Small", classes, split(train), split(test))


def with_pixel(dataset: Dataset) -> Dataset:
    images = dataset.train.images.clone()
    images[3, 0, 2, 2] ^= 1
    return replace(dataset, train=Split(images, dataset.train.labels))


def with_label(dataset: Dataset) -> Dataset:
    labels = dataset.test.labels.clone()
    labels[1] = 0
    return replace(dataset, test=Split(dataset.test.images, labels))


def in_another_order(dataset: Dataset) -> Dataset:
    train = dataset.train
    return replace(dataset, train=Split(train.images.flip(0), train.labels.flip(0)))


SAME = "the same number of images, but other pixels, labels or order"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_pixel, SAME),
        (with_label, SAME),
        (in_another_order, SAME),
        (lambda _: small(train=1304), "4 training images before, 1,304 now"),
        (lambda _: small(test=3), "2 test images before, 3 now"),
        (lambda data: replace(data, classes=("dog", "cat")), "the order of the classes"),
        (lambda _: small(("ape", "cat", "dog")), "new classes 'ape'"),
        (lambda _: small(("cat", "eel")), "new classes 'eel'; missing classes 'dog'"),
    ],
)
def test_changed_data_are_told_apart_and_named(change, said):
    before, now = Data.of(small()), Data.of(change(small()))
    assert before.digest == Data.of(small()).digest
    assert before.digest != now.digest
    assert before.changes(now) == said


def test_changed_signals_are_named():
    before = Data("a", ["x", "y"], [1, 40], 8, 2)
    assert before.changes(replace(before, digest="b", shape=[1, 41], train=9)) == (
        "signals of 1 × 40 before, of 1 × 41 now; 8 training signals before, 9 now"
    )
    assert Data("b", ["x", "y"], [1, 9, 8], 8, 3).changes(before) == (
        "images of 1 × 9 × 8 before, signals of 1 × 40 now; 3 test inputs before, 2 now"
    )
    same = "the same number of signals, but other values, labels or order"
    assert before.changes(replace(before, digest="b")) == same


def test_a_model_fits_data_of_its_shape_and_number_of_classes():
    data = Data.of(small())
    assert data.compatible(Data.of(small(("eel", "fox"), 9, 9)))
    assert not data.compatible(Data.of(small(("cat", "dog", "fox"))))
    assert not data.compatible(replace(data, shape=[3, 3, 3]))


@pytest.mark.parametrize("images", [359, 1077, 1437, 2874, 3000])
def test_steps_are_counted_in_the_epochs_of_the_new_data(trained, images):
    """Whole epochs stay whole, and nothing that lies within one leaves it."""
    old = -(-1437 // trained.config.batch_size)
    new = -(-images // trained.config.batch_size)
    before = replace(DATA, train=1437)
    for step in range(1, 3 * old):
        resume, moved, data = carry_over(
            Resume(step, {}), trained, before, replace(DATA, train=images)
        )
        assert data.since == resume.step
        assert 1 <= resume.step < 3 * new
        assert (step - 1) // old <= resume.step / new <= step / old + 1 / new
        if step % old == 0:
            assert resume.step == step // old * new
    assert moved.header.steps_per_epoch == new
    assert [epoch.step for epoch in moved.header.epochs] == [new, 2 * new, 3 * new]
    assert moved.steps == sorted(set(moved.steps))
    assert (moved.steps[0], moved.steps[-1]) == (0, 3 * new)
    for name, tensor in trained.tensors.items():
        assert torch.equal(moved.tensors[name][-1], tensor[-1])
        assert torch.equal(moved.tensors[name][0], tensor[0]) or 1 * new // old == 0
