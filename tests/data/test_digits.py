"""The embedded data set: which digits, and how they lie in the picture."""

import hashlib

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from densembed.data import DataError, as_input, default_data_dir, is_available, load_dataset


def test_form(digits):
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    for split in (digits.train, digits.test):
        assert split.images.dtype == torch.uint8
        assert split.images.shape == (len(split), 1, 28, 28)
        assert split.labels.dtype == torch.int64
    assert digits.input_shape == (1, 28, 28)
    assert digits.classes == tuple("0123456789")


def test_split_is_fixed(digits):
    """Checkpoints name their error on it: another order or split would make them all wrong."""
    digests = [
        hashlib.sha256(split.labels.numpy().astype("<i8").tobytes()).hexdigest()[:16]
        for split in (digits.train, digits.test)
    ]
    assert digests == ["d88bc14b5455324f", "5b60d960d691c63f"]
    # Not a hash of the pixels: interpolation may round otherwise elsewhere.
    for split, mean in ((digits.train, 44.39), (digits.test, 44.00)):
        assert split.images.double().mean().item() == pytest.approx(mean, abs=0.5)


def test_every_fifth_picture_is_for_the_test(digits):
    labels = load_digits().target
    assert digits.test.labels.tolist() == labels[4::5].tolist()
    assert digits.train.labels.tolist() == [y for k, y in enumerate(labels) if k % 5 != 4]


def test_no_picture_is_in_both(digits):
    train, test = (
        {image.numpy().tobytes() for image in split.images} for split in (digits.train, digits.test)
    )
    assert len(train) == 1438
    assert len(test) == 359
    assert not train & test


def test_classes_are_balanced(digits):
    training = [151, 161, 143, 131, 147, 154, 150, 136, 127, 138]
    assert torch.bincount(digits.train.labels).tolist() == training
    assert torch.bincount(digits.test.labels).tolist() == [27, 21, 34, 52, 34, 28, 31, 43, 47, 42]


def test_centre_of_mass_is_in_the_middle(digits):
    images = torch.cat((digits.train.images, digits.test.images))[:, 0].double()
    places = torch.arange(28) + 0.5
    mass = images.sum((1, 2))
    rows = (images.sum(2) * places).sum(1) / mass
    columns = (images.sum(1) * places).sum(1) / mass
    for centre in (rows, columns):
        assert (centre - 14).abs().max() < 1
        assert (centre - 14.5).abs().mean() < 0.1  # MNIST's is the middle of pixel 14


def test_ink_is_in_a_box_of_twenty(digits):
    """Faint ink apart; white on black, with the darkest at 255."""
    for image in digits.train.images[::10, 0]:
        rows, columns = np.nonzero(image.numpy() > 64)
        longer = max(np.ptp(rows), np.ptp(columns)) + 1
        assert 18 <= longer <= 21
        assert image.max() == 255
        assert (image == 0).double().mean() > 0.3


def test_they_still_look_like_their_source(digits):
    """Each picture, averaged over 8×8 parts of its box, correlates with the one it came from."""
    source = load_digits().images[4::5]
    for image, small in zip(digits.test.images[::6, 0].numpy(), source[::6], strict=True):
        rows, columns = np.nonzero(image > 64)
        box = image[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        ink = small > 4
        rows, columns = np.nonzero(ink)
        part = small[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        grid = [np.linspace(0, n - 1, 8).round().astype(int) for n in box.shape]
        other = [np.linspace(0, n - 1, 8).round().astype(int) for n in part.shape]
        correlation = np.corrcoef(box[np.ix_(*grid)].ravel(), part[np.ix_(*other)].ravel())[0, 1]
        assert correlation > 0.5


def test_as_input_divides_and_does_nothing_else():
    pixels = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    torch.testing.assert_close(as_input(pixels), torch.tensor([[0, 0.2, 1.0]]))
    assert as_input(pixels, torch.float64).dtype == torch.float64


def test_it_needs_no_folder_and_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("It uses the network."))
    assert is_available("digits")
    load_dataset("digits", tmp_path / "not there")
    assert list(tmp_path.iterdir()) == []


def test_it_is_read_once():
    assert load_dataset("digits") is load_dataset("digits")


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("cats", ""),
        ("", ""),
        ("../digits", " (did you mean 'digits'?)"),
        ("DIGITS", " (did you mean 'digits'?)"),
        ("minst", " (did you mean 'mnist'?)"),
        ("cifar-10", " (did you mean 'cifar10'?)"),
    ],
)
def test_unknown_names(name, guess):
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    names = "digits, mnist, fashion-mnist, cifar10, mnist1d, folder:PATH"
    assert str(caught.value).startswith(f"Unknown data set {name!r}{guess}; choose from {names}")
    assert not is_available(name)


def test_where_data_is(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    assert default_data_dir() == tmp_path / "data"
    monkeypatch.delenv("DENSEMBED_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_data_dir() == tmp_path / "cache" / "densembed"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / ".cache" / "densembed"


def test_moving_a_data_set_moves_its_tensors(digits):
    moved = digits.to("meta")
    assert moved.train.images.is_meta
    assert moved.test.labels.is_meta
    assert (moved.name, moved.title) == (digits.name, digits.title)
    assert not digits.train.images.is_meta
