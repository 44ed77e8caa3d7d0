"""Fashion-MNIST and CIFAR-10 through torchvision: what is there is read, what is not is said."""

import gzip
import hashlib
import io
import pickle
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from torchvision.datasets import CIFAR10, FashionMNIST

from densembed.data import DATASETS, DataError, cifar, fashion, is_available, load_dataset, title
from tests.conftest import is_sentence
from tests.data.test_mnist import idx

OFFLINE = "http://127.0.0.1:9/"
"""Nothing listens on the port called discard."""


@pytest.fixture
def served(tmp_path):
    """A folder, and the address where its files can be fetched."""
    folder = tmp_path / "mirror"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.fixture
def clothes(served, monkeypatch):
    """A small Fashion-MNIST in its four archives, as files that torchvision can fetch."""
    random = np.random.default_rng(3)
    counts = {"train": 7, "t10k": 4}
    monkeypatch.setattr(fashion, "SIZES", {})
    resources, unpacked = [], {}
    for part, count in counts.items():
        images = random.integers(0, 256, (count, 28, 28), np.uint8)
        labels = random.integers(0, 10, count, np.uint8)
        for kind, array in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            name, body = f"{part}-{kind}", idx(array)
            archive = gzip.compress(body)
            (served[0] / f"{name}.gz").write_bytes(archive)
            fashion.SIZES[name] = len(body)
            resources.append((f"{name}.gz", md5(archive)))
            unpacked[name] = body
    monkeypatch.setattr(FashionMNIST, "resources", resources)
    monkeypatch.setattr(FashionMNIST, "mirrors", [served[1]])
    return unpacked


def test_the_sizes_are_those_of_60_000_and_10_000_pictures():
    assert sorted(fashion.SIZES.values()) == [10_008, 60_008, 7_840_016, 47_040_016]


def test_fashion_mnist_is_fetched_once_and_read(clothes, tmp_path, monkeypatch):
    assert not fashion.available(tmp_path)
    for _ in range(2):
        data = fashion.load(tmp_path)
        assert (data.name, data.title, data.input_shape) == (
            "fashion-mnist", "Fashion-MNIST", (1, 28, 28),
        )  # fmt: skip
        assert data.train.images.numpy().tobytes() == clothes["train-images-idx3-ubyte"][16:]
        assert bytes(data.test.labels.tolist()) == clothes["t10k-labels-idx1-ubyte"][8:]
        assert data.classes[9] == "Ankle boot"
        monkeypatch.setattr(FashionMNIST, "mirrors", [OFFLINE])  # not asked again
    assert fashion.available(tmp_path)


def test_a_file_that_was_cut_short_is_fetched_anew(clothes, tmp_path):
    fashion.load(tmp_path)
    cut = tmp_path / "FashionMNIST/raw/train-images-idx3-ubyte"
    cut.write_bytes(cut.read_bytes()[:50])
    assert not fashion.available(tmp_path)
    assert len(fashion.load(tmp_path).train) == 7


@pytest.fixture
def things(served, monkeypatch):
    """A small CIFAR-10 as its archive."""
    random = np.random.default_rng(4)
    files, lists = {}, {"train_list": [], "test_list": []}
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        pixels = random.integers(0, 256, (3, 3072), np.uint8)
        files[name] = pickle.dumps({"data": pixels, "labels": [0, 9, 3]})
        which = "test_list" if name == "test_batch" else "train_list"
        lists[which].append([name, md5(files[name])])
    meta = pickle.dumps({"label_names": list(cifar.CLASSES)})
    with tarfile.open(served[0] / "cifar.tar.gz", "w:gz") as archive:
        for name, body in {**files, "batches.meta": meta}.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    for name, value in lists.items():
        monkeypatch.setattr(CIFAR10, name, value)
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": md5(meta)})
    monkeypatch.setattr(CIFAR10, "url", served[1] + "cifar.tar.gz")
    monkeypatch.setattr(CIFAR10, "tgz_md5", md5((served[0] / "cifar.tar.gz").read_bytes()))
    return files


def test_cifar_is_fetched_once_and_read(things, tmp_path, monkeypatch):
    assert not cifar.available(tmp_path)
    for _ in range(2):
        data = cifar.load(tmp_path)
        assert (data.name, data.title, data.input_shape) == ("cifar10", "CIFAR-10", (3, 32, 32))
        assert (len(data.train), len(data.test)) == (6, 3)
        assert data.train.images.dtype == torch.uint8
        pixels = pickle.loads(things["test_batch"])["data"][1].reshape(3, 32, 32)
        assert (data.test.images[1].numpy() == pixels).all()
        assert data.test.labels.tolist() == [0, 9, 3]
        monkeypatch.setattr(CIFAR10, "url", OFFLINE)
    assert cifar.available(tmp_path)


def test_a_damaged_cifar_is_one_sentence(things, tmp_path):
    cifar.load(tmp_path)
    (tmp_path / "cifar-10-batches-py/test_batch").write_bytes(b"not a pickle")
    with pytest.raises(DataError, match="damaged") as caught:
        cifar.load(tmp_path)
    assert is_sentence(str(caught.value))


def local(load, folder) -> str:
    with pytest.raises(DataError) as caught:
        load(folder)
    assert is_sentence(str(caught.value))
    assert "network" not in str(caught.value)
    return str(caught.value)


def test_the_damaged_file_is_named(things, tmp_path):
    cifar.load(tmp_path)
    (tmp_path / cifar.FOLDER / "data_batch_2").write_bytes(b"")
    assert f"data_batch_2 in {tmp_path / cifar.FOLDER} is damaged" in local(cifar.load, tmp_path)


@pytest.mark.parametrize("place", [".", "cifar-10-batches-py", "cifar-10-python"])
def test_cifar_in_another_place(things, tmp_path, monkeypatch, place):
    """In the data folder itself, one level too deep, or in the archive's folder."""
    cifar.load(tmp_path / "right")
    there = tmp_path / "wrong" if place == "." else tmp_path / "wrong" / place / cifar.FOLDER
    there.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "right" / cifar.FOLDER).rename(there)
    sentence = local(cifar.load, tmp_path / "wrong")
    assert f"is in {there}, but it is expected in {tmp_path / 'wrong' / cifar.FOLDER}" in sentence


@pytest.mark.parametrize("name", ["data_batch_2", "batches.meta"])
def test_a_file_of_cifar_is_missing(things, tmp_path, monkeypatch, name):
    cifar.load(tmp_path)
    (tmp_path / cifar.FOLDER / name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(CIFAR10, "url", OFFLINE)
        with pytest.raises(DataError) as caught:
            cifar.load(tmp_path)
    assert str(caught.value).startswith(
        f"CIFAR-10 is incomplete: {tmp_path / cifar.FOLDER} lacks {name}. It could not be "
    )
    assert "Check the network" in str(caught.value)
    assert len(cifar.load(tmp_path).train) == 6  # with a network, it is downloaded


def test_cifar_in_its_archive_needs_no_network(things, served, tmp_path, monkeypatch):
    monkeypatch.setattr(CIFAR10, "url", OFFLINE)
    archive = tmp_path / CIFAR10.filename
    archive.write_bytes((served[0] / "cifar.tar.gz").read_bytes())
    assert len(cifar.load(tmp_path).train) == 6


@pytest.mark.parametrize("load", [cifar.load, fashion.load])
def test_a_data_folder_that_is_a_file(things, clothes, tmp_path, load):
    (tmp_path / "file").write_text("in the way")
    assert "Not a directory" in local(load, tmp_path / "file")


def test_a_misnamed_file_of_clothes(clothes, tmp_path):
    fashion.load(tmp_path)
    raw = tmp_path / fashion.RAW
    (raw / "t10k-labels-idx1-ubyte").rename(raw / "t10k-labels.idx1-ubyte")
    sentence = local(fashion.load, tmp_path)
    assert (
        f"rename the file {raw / 't10k-labels.idx1-ubyte'} to t10k-labels-idx1-ubyte." in sentence
    )


def test_a_folder_in_place_of_a_file_of_clothes(clothes, tmp_path):
    place = tmp_path / fashion.RAW / "t10k-labels-idx1-ubyte"
    place.mkdir(parents=True)
    assert f"{place}, but that is a folder" in local(fashion.load, tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_a_data_folder_that_only_its_owner_may_look_into(tmp_path, monkeypatch, name):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    monkeypatch.setattr(type(tmp_path), "stat", refuse)
    assert not is_available(name)
    assert "Permission denied" in local(lambda _: load_dataset(name), tmp_path)


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10"])
def test_offline_is_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.setattr(FashionMNIST, "mirrors", [OFFLINE])
    monkeypatch.setattr(CIFAR10, "url", OFFLINE)
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    assert not is_available(name)
    with pytest.raises(DataError, match="could not be downloaded") as caught:
        load_dataset(name)
    assert is_sentence(str(caught.value))
    assert "digits" in str(caught.value)
    assert title(name) == DATASETS[name].title


def test_the_files_of_mnist_are_not_taken_for_fashion_mnist(clothes, tmp_path, monkeypatch):
    """Both have files of one name and one size."""
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    fashion.load(tmp_path)
    labels = (tmp_path / fashion.RAW / "train-labels-idx1-ubyte").read_bytes()
    monkeypatch.setattr(fashion, "MNIST_LABELS", hashlib.sha256(labels).hexdigest())
    with pytest.raises(DataError, match="are those of MNIST") as caught:
        fashion.load(tmp_path)
    assert is_sentence(str(caught.value))
