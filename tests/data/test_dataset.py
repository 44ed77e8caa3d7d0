"""What the parts of a data set must have in common."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from densembed.data import DataError, Dataset, as_input, load_dataset
from densembed.data.dataset import Split
from densembed.data.scaling import Scaling


@pytest.mark.parametrize("labels", [[0, 1, 2], [-1, 0, 1], [0, 1, 10**6]])
@pytest.mark.parametrize("part", ["train", "test"])
def test_labels_are_indices_of_classes(digits, part, labels):
    """The compiled step would read and write elsewhere in the memory."""
    wrong = Split(digits.train.images[:3], torch.tensor(labels))
    right = Split(digits.train.images[:2], torch.tensor([0, 1]))
    splits = {"train": right, "test": right, part: wrong}
    message = f"labels from 0 to 1, the indices of the classes; got {min(labels)} to {max(labels)}"
    with pytest.raises(ValueError, match=message):
        Dataset("mine", "Mine", ("a", "b"), **splits)


@pytest.mark.parametrize(
    "labels", [torch.zeros(2, dtype=torch.int64), torch.zeros(3), torch.zeros(3, 1).long()]
)
def test_every_input_has_one_label(digits, labels):
    with pytest.raises(ValueError, match=r"one label per input as int64, \(3,\); got"):
        Split(digits.train.images[:3], labels)


@pytest.mark.parametrize("convert", [np.asarray, torch.Tensor.tolist])
@pytest.mark.parametrize("name", ["images", "labels"])
def test_arrays_are_converted_by_the_caller(digits, name, convert):
    parts = {"images": digits.train.images[:3], "labels": digits.train.labels[:3]}
    wrong = parts | {name: convert(parts[name])}
    with pytest.raises(
        TypeError, match=rf"^Expected {name} as a torch\.Tensor \(N.*; got"
    ) as error:
        Split(**wrong)
    assert f"torch.as_tensor({name}) converts an array." in str(error.value)
    again = Split(**wrong | {name: torch.as_tensor(wrong[name], dtype=parts[name].dtype)})
    assert torch.equal(getattr(again, name), parts[name])


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_part_is_a_split(digits, part):
    pair = digits.train.images.numpy(), digits.train.labels.numpy()
    word = {"train": "training", "test": "test"}[part]
    with pytest.raises(
        TypeError, match=rf"the {word} part as Split\(images, labels\).*; got tuple"
    ):
        replace(digits, **{part: pair})


def test_images_have_channels(digits):
    flat = Split(digits.train.images[:, 0], digits.train.labels)
    with pytest.raises(ValueError, match=r"axis of channels; got .*images\[:, None\] adds"):
        replace(digits, train=flat, test=flat)
    whole = Split(flat.images[:, None], flat.labels)
    assert replace(digits, train=whole, test=whole).input_shape == digits.input_shape


@pytest.mark.parametrize("classes", [("a", "a"), (0, 1)])
def test_classes_have_different_names(digits, classes):
    split = Split(digits.train.images[:2], torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="classes of different names"):
        Dataset("mine", "Mine", classes, split, split)


@pytest.mark.parametrize("part", ["train", "test"])
def test_no_part_is_empty(digits, part):
    empty = Split(digits.train.images[:0], digits.train.labels[:0])
    with pytest.raises(ValueError, match="inputs; got none"):
        replace(digits, **{part: empty})


@pytest.mark.parametrize("shape", [(4, 1, 28, 12), (4, 3, 28, 28), (4, 1, 28), (4, 28)])
def test_both_parts_have_inputs_of_one_size(digits, shape):
    labels = torch.zeros(4, dtype=torch.int64)
    other = Split(torch.zeros(shape, dtype=torch.uint8), labels)
    for part in ("train", "test"):
        with pytest.raises(ValueError, match=r"of one size; got \(.*\) and \(.*\)\.$"):
            replace(digits, **{part: other})
    if len(shape) == 2:
        with pytest.raises(ValueError, match=r"of one size; got \(4, 28\) and \(4, 28\)\."):
            replace(digits, train=other, test=other)


def test_images_are_bytes(digits):
    """A division by 255 takes place when they become inputs."""
    floats = Split(digits.train.images.float(), digits.train.labels)
    with pytest.raises(ValueError, match=r"uint8 from 0 to 255; got torch\.float32"):
        replace(digits, train=floats)


def test_the_name_of_a_data_set_is_text(tmp_path):
    with pytest.raises(TypeError, match=r"such as 'digits' .*; got PosixPath\."):
        load_dataset(tmp_path)


def test_the_data_folder_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data" / "photos").mkdir(parents=True)
    with pytest.raises(DataError, match="at least two subfolders"):
        load_dataset("folder:photos", "~/data")


def test_signals_need_their_scaling_and_finite_values():
    labels, scaling = torch.tensor([0, 1]), Scaling(mean=0.0, std=1.0)
    good = torch.rand(2, 1, 5)
    for values, own, message in (
        (good, None, "Expected a scaling for signals"),
        (good.double(), scaling, "training signals as float32; got torch.float64"),
        (good.masked_fill(good == good[1, 0, 3], math.nan), scaling, "signal 1 has others"),
    ):
        split = Split(values, labels)
        with pytest.raises(ValueError, match=message):
            Dataset("mine", "Mine", ("a", "b"), split, split, scaling=own)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint16])
def test_pixels_of_another_type_are_refused(dtype):
    with pytest.raises(ValueError, match=rf"pixels in torch\.uint8, .*; got {dtype}\.$"):
        as_input(torch.ones(1, 2, 2).to(dtype))
