"""Fashion-MNIST and CIFAR-10 through torchvision; missing files are reported."""

import gzip
import hashlib
import io
import lzma
import os
import pickle
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from torchvision.datasets import CIFAR10, FashionMNIST

from densembed.data import (
    DATASETS,
    DataError,
    cifar,
    download,
    fashion,
    is_available,
    load_dataset,
    mnist,
    title,
)
from densembed.data.download import Cancelled, watching
from tests.conftest import is_sentence
from tests.data.test_mnist import idx

OFFLINE = "http://127.0.0.1:9/"
"""Nothing listens on the port called discard."""


@pytest.fixture
def served(tmp_path_factory):
    """A folder, and the address where its files can be fetched."""
    folder = tmp_path_factory.mktemp("mirror")

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
    assert not fashion.DATA.available(tmp_path)
    for _ in range(2):
        data = fashion.DATA.load(tmp_path)
        assert (data.name, data.title, data.input_shape) == (
            "fashion-mnist",
            "Fashion-MNIST",
            (1, 28, 28),
        )
        assert data.train.images.numpy().tobytes() == clothes["train-images-idx3-ubyte"][16:]
        assert bytes(data.test.labels.tolist()) == clothes["t10k-labels-idx1-ubyte"][8:]
        assert data.classes[9] == "Ankle boot"
        monkeypatch.setattr(FashionMNIST, "mirrors", [OFFLINE])  # not asked again
    assert fashion.DATA.available(tmp_path)


def test_a_file_that_was_cut_short_is_named(clothes, tmp_path):
    fashion.DATA.load(tmp_path)
    cut = tmp_path / "FashionMNIST/raw/train-images-idx3-ubyte"
    cut.write_bytes(cut.read_bytes()[:50])
    assert f"{cut.name} in {cut.parent} is damaged" in local(fashion.DATA.load, tmp_path)
    cut.unlink()
    assert len(fashion.DATA.load(tmp_path).train) == 7


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
    assert not cifar.DATA.available(tmp_path)
    for _ in range(2):
        data = cifar.DATA.load(tmp_path)
        assert (data.name, data.title, data.input_shape) == ("cifar10", "CIFAR-10", (3, 32, 32))
        assert (len(data.train), len(data.test)) == (6, 3)
        assert data.train.images.dtype == torch.uint8
        pixels = pickle.loads(things["test_batch"])["data"][1].reshape(3, 32, 32)
        assert (data.test.images[1].numpy() == pixels).all()
        assert data.test.labels.tolist() == [0, 9, 3]
        monkeypatch.setattr(CIFAR10, "url", OFFLINE)
    assert cifar.DATA.available(tmp_path)


def test_a_damaged_cifar_is_one_sentence(things, tmp_path):
    cifar.DATA.load(tmp_path)
    (tmp_path / "cifar-10-batches-py/test_batch").write_bytes(b"not a pickle")
    with pytest.raises(DataError, match="damaged") as caught:
        cifar.DATA.load(tmp_path)
    assert is_sentence(str(caught.value))


def local(load, folder) -> str:
    with pytest.raises(DataError) as caught:
        load(folder)
    assert is_sentence(str(caught.value))
    assert "network" not in str(caught.value)
    return str(caught.value)


def test_the_damaged_file_is_named(things, tmp_path):
    cifar.DATA.load(tmp_path)
    (tmp_path / cifar.DATA.folder / "data_batch_2").write_bytes(b"")
    assert f"data_batch_2 in {tmp_path / cifar.DATA.folder} is damaged" in local(
        cifar.DATA.load, tmp_path
    )


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (".", str),
        ("cifar-10-batches-py/cifar-10-batches-py", str),
        ("a/b/cifar-10-batches-py", str),
        ("CIFAR-10-BATCHES-PY", str.upper),
        ("cifar-10-batches-py", str.upper),
    ],
)
def test_cifar_in_another_place(things, tmp_path, place, named):
    cifar.DATA.load(tmp_path / "right")
    wrong = tmp_path / "wrong"
    (wrong / place).mkdir(parents=True)
    for path in (tmp_path / "right" / cifar.DATA.folder).iterdir():
        path.rename(wrong / place / named(path.name))
    expected = wrong / cifar.DATA.folder / "data_batch_1"
    assert (
        f"needs the file {expected}: move {wrong / place / named('data_batch_1')} there"
    ) in local(cifar.DATA.load, wrong)


@pytest.mark.parametrize(
    "name",
    [
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-bin/data_batch_1.bin",
        "cifar-10-python.tar",  # as Safari unpacks it
        "cifar-10-python.zip",
    ],
)
def test_another_format_of_cifar_is_named(things, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"binary")
    sentence = local(cifar.DATA.load, tmp_path)
    assert f"is not read from {tmp_path / name}" in sentence
    assert "cifar-10-batches-py" in sentence


@pytest.mark.parametrize("name", ["data_batch_2", "batches.meta"])
def test_a_file_of_cifar_is_missing(things, tmp_path, monkeypatch, name):
    cifar.DATA.load(tmp_path)
    (tmp_path / cifar.DATA.folder / name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(CIFAR10, "url", OFFLINE)
        with pytest.raises(DataError) as caught:
            cifar.DATA.load(tmp_path)
    assert str(caught.value).startswith(
        f"CIFAR-10 is incomplete: {tmp_path / cifar.DATA.folder} lacks {name}. It could not be "
    )
    assert "Check the network" in str(caught.value)
    assert len(cifar.DATA.load(tmp_path).train) == 6  # with a network, it is downloaded


@pytest.mark.parametrize("repacked", [False, True])
def test_cifar_in_its_archive_needs_no_network(things, served, tmp_path, monkeypatch, repacked):
    """Nor does a copy in another format beside it matter."""
    (tmp_path / "cifar-10-python.tar").touch()
    monkeypatch.setattr(CIFAR10, "url", OFFLINE)
    body = (served[0] / "cifar.tar.gz").read_bytes()
    body = gzip.compress(gzip.decompress(body), 1) if repacked else body
    (tmp_path / CIFAR10.filename).write_bytes(body)
    assert (md5(body) != CIFAR10.tgz_md5) == repacked
    assert len(cifar.DATA.load(tmp_path).train) == 6


@pytest.mark.parametrize("place", [".", "archive"])
def test_an_archive_of_cifar_that_cannot_be_used_is_named(things, served, tmp_path, place):
    """Damaged in its place, or intact in another one."""
    body = (served[0] / "cifar.tar.gz").read_bytes()
    archive = tmp_path / place / CIFAR10.filename
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(body[: len(body) // 2] if place == "." else body)
    expected = tmp_path / CIFAR10.filename
    assert {
        ".": f"{CIFAR10.filename} in {tmp_path} is damaged",
        "archive": f"needs the file {expected}: move {archive} there",
    }[place] in local(cifar.DATA.load, tmp_path)


def tar_of(**change) -> bytes:
    """A tar file with an entry for each file of CIFAR-10, without content."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in cifar.DATA.names():
            entry = tarfile.TarInfo(f"{cifar.DATA.folder}/{name}")
            for key, value in {"linkname": entry.name.rpartition("/")[2], **change}.items():
                setattr(entry, key, value)
            archive.addfile(entry)
    return file.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        lambda: lzma.compress(tar_of())[:-20] + bytes(20),
        lambda: gzip.compress(tar_of(type=tarfile.SYMTYPE)),
        lambda: gzip.compress(tar_of(type=tarfile.LNKTYPE)),
        lambda: gzip.compress(tar_of(size=2**70)),
        lambda: gzip.compress(tar_of())[:-20],
    ],
    ids=["damaged xz", "links to themselves", "hard links", "a size beyond 64 bits", "cut"],
)
def test_an_archive_that_cannot_be_unpacked_is_damaged(things, tmp_path, body):
    (tmp_path / CIFAR10.filename).write_bytes(body())
    assert f"{CIFAR10.filename} in {tmp_path} is damaged" in local(cifar.DATA.load, tmp_path)


@pytest.mark.parametrize("name", [CIFAR10.filename, "cifar-10-batches-py/data_batch_1"])
def test_a_file_larger_than_the_memory_is_not_read(things, tmp_path, name):
    """A sparse one, which takes no space on the disk."""
    cifar.DATA.load(tmp_path / "right")
    (tmp_path / "right" / cifar.DATA.folder / "data_batch_1").unlink()
    for place in ("right", "right/deeper"):
        huge = tmp_path / place / name
        huge.parent.mkdir(parents=True, exist_ok=True)
        huge.touch()
        os.truncate(huge, 2**42)
    assert f"{huge.name} in {(tmp_path / 'right' / name).parent} is damaged" in local(
        cifar.DATA.load, tmp_path / "right"
    )
    (tmp_path / "right" / name).unlink()
    assert len(cifar.DATA.load(tmp_path / "right").train) == 6  # the other one is no file of ours


def test_unpacking_is_stopped_at_any_moment(things, served, tmp_path, monkeypatch):
    (tmp_path / CIFAR10.filename).write_bytes((served[0] / "cifar.tar.gz").read_bytes())
    unpacked, read = [], gzip.GzipFile.read
    monkeypatch.setattr(
        gzip.GzipFile, "read", lambda self, size: unpacked.append(size) or read(self, size)
    )
    with watching(lambda: bool(unpacked)), pytest.raises(Cancelled):
        cifar.DATA.load(tmp_path)
    assert len(unpacked) == 1
    assert not cifar.DATA.available(tmp_path)


def test_an_archive_that_unpacks_without_end(things, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 2 * download.PART)
    (tmp_path / CIFAR10.filename).write_bytes(gzip.compress(bytes(5 * download.PART)))
    with gzip.open(tmp_path / CIFAR10.filename) as packed:
        assert len(download.content(packed.read)) == 2 * download.PART
    assert "is damaged" in local(cifar.DATA.load, tmp_path)


@pytest.mark.parametrize("pipe", [False, True])
def test_a_file_or_a_pipe_in_place_of_a_folder(things, tmp_path, monkeypatch, pipe):
    monkeypatch.setattr(CIFAR10, "url", OFFLINE)  # nothing is downloaded
    place = tmp_path / cifar.DATA.folder
    os.mkfifo(place) if pipe else place.write_text("in the way")
    assert f"{place}: Not a directory" in local(cifar.DATA.load, tmp_path)


def test_a_broken_link_in_place_of_a_folder(things, tmp_path):
    place = tmp_path / cifar.DATA.folder
    place.symlink_to(tmp_path / "gone")
    assert f"{place}: a broken link has this name: move it away." in local(
        cifar.DATA.load, tmp_path
    )


def test_a_pipe_in_place_of_a_file(things, tmp_path):
    place = tmp_path / cifar.DATA.folder / "test_batch"
    place.parent.mkdir()
    os.mkfifo(place)
    assert f"needs the file {place}, but a folder, a named pipe" in local(cifar.DATA.load, tmp_path)


@pytest.mark.parametrize("load", [cifar.DATA.load, fashion.DATA.load])
def test_a_data_folder_that_is_a_file(things, clothes, tmp_path, load):
    (tmp_path / "file").write_text("in the way")
    assert "Not a directory" in local(load, tmp_path / "file")


@pytest.mark.parametrize("place", ["fashion-mnist", "data/FashionMNIST/Raw", "FashionMNIST"])
@pytest.mark.parametrize("packed", [False, True])
def test_clothes_in_another_place(clothes, served, tmp_path, place, packed):
    ending = ".gz" if packed else ""
    (tmp_path / place).mkdir(parents=True)
    for name, body in clothes.items():
        (tmp_path / place / f"{name}{ending}").write_bytes(
            gzip.compress(body, 1) if packed else body
        )
    name = f"train-images-idx3-ubyte{ending}"
    expected = tmp_path / fashion.DATA.folder / name
    assert f"needs the file {expected}: move {tmp_path / place / name} there" in local(
        fashion.DATA.load, tmp_path
    )


def test_files_of_a_third_data_set_are_not_taken_for_clothes(clothes, tmp_path):
    """KMNIST has files of the same names and sizes."""
    (tmp_path / "KMNIST" / "raw").mkdir(parents=True)
    for name, body in clothes.items():
        (tmp_path / "KMNIST" / "raw" / name).write_bytes(body[:-1] + bytes((body[-1] ^ 1,)))
    assert len(fashion.DATA.load(tmp_path).train) == 7


def test_a_misnamed_file_of_clothes(clothes, tmp_path):
    fashion.DATA.load(tmp_path)
    raw = tmp_path / fashion.DATA.folder
    (raw / "t10k-labels-idx1-ubyte").rename(raw / "t10k-labels.idx1-ubyte")
    assert f"move {raw / 't10k-labels.idx1-ubyte'} there" in local(fashion.DATA.load, tmp_path)


def test_a_folder_in_place_of_a_file_of_clothes(clothes, tmp_path):
    place = tmp_path / fashion.DATA.folder / "t10k-labels-idx1-ubyte"
    place.mkdir(parents=True)
    assert f"{place}, but a folder, " in local(fashion.DATA.load, tmp_path)


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
    fashion.DATA.load(tmp_path)
    name = "train-labels-idx1-ubyte"
    labels = (tmp_path / fashion.DATA.folder / name).read_bytes()
    monkeypatch.setitem(mnist.SHA256, name, hashlib.sha256(labels).hexdigest())
    assert f"{name} in {tmp_path / fashion.DATA.folder} is damaged or belongs to another" in local(
        fashion.DATA.load, tmp_path
    )
