"""MNIST-1D against the authors' package, by recorded hashes of its output."""

import hashlib

import numpy as np
import torch

from densembed.data import is_available, load_dataset, mnist1d

PACKAGE = {
    "x": "2fd1f4398fe1d065207d59f58387cd64d20103c3c3f2f7c005ee2df0513a9182",
    "x_test": "7de877261337eac6fdc37c837d8c917ca1ba4b97a47626f01ba9cc43414ce9a1",
    "y": "d97dc7aecec8ad6b5d8f143ba3e9c4bd7e25c420d7dfc2eb990591cfc0ed3e15",
    "y_test": "8de99be3ff9dab15ae0dc072c3d6ced7cf6b33d365888ce4a386fc944489452c",
}
"""SHA-256 of the arrays (float64, int64) of `mnist1d.data.make_dataset()`, mnist1d 0.0.2.post1."""
ROUNDED = "f7e6b4ae1766612049bfa012eb07881b5a4d2a1f4c0fd4cc7ce4b79fb0853cdb"
"""SHA-256 of `x` and `x_test` in float32, then of `y` and `y_test`."""


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def test_the_signals_are_those_of_the_package_bit_for_bit():
    data = load_dataset("mnist1d")
    parts = [data.train.images, data.test.images, data.train.labels, data.test.labels]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.numpy().data)
    assert digest.hexdigest() == ROUNDED


def test_also_in_float64():
    """The last bits may differ between processors, so only labels are compared exactly there."""
    signals, labels = mnist1d.generate()
    assert sha256(labels[:4000]) == PACKAGE["y"]
    assert sha256(labels[4000:]) == PACKAGE["y_test"]
    exact = (sha256(signals[:4000]), sha256(signals[4000:])) == (PACKAGE["x"], PACKAGE["x_test"])
    rounded = torch.cat([part.images for part in parts(load_dataset("mnist1d"))])[:, 0].double()
    assert exact or np.abs(signals - rounded.numpy()).max() < 1e-6


def parts(data):
    return data.train, data.test


def test_form():
    data = load_dataset("mnist1d")
    assert is_available("mnist1d")
    assert (len(data.train), len(data.test), data.input_shape) == (4000, 1000, (1, 40))
    assert data.classes == tuple("0123456789")
    assert data.noun == "signal"
    values = torch.cat([part.images for part in parts(data)]).double()
    assert abs(values.mean().item()) < 1e-6
    assert abs(values.std(correction=0).item() - 1) < 1e-6
    assert (data.scaling.mean, data.scaling.std) == (0, 1)
    counts = torch.cat([part.labels for part in parts(data)]).bincount()
    assert counts.tolist() == [500] * 10


def test_the_random_numbers_of_others_are_left_alone():
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    mnist1d.generate()
    assert (np.random.get_state()[1] == before).all()
