"""MNIST with a mirror of our own, which answers as bad mirrors do."""

import gzip
import hashlib
import os
import struct
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import filelock
import numpy as np
import pytest
import torch
from torchvision.datasets import MNIST

from densembed.data import DataError, fashion, is_available, load_dataset, mnist
from densembed.data.download import make_folder
from tests.conftest import is_sentence

NAMES = tuple(mnist.SHA256)
HTML = b"<!DOCTYPE html><html><body>Please sign in to this network.</body></html>"


def idx(array: np.ndarray) -> bytes:
    """MNIST's file format: a type, the number of axes, their lengths, the bytes."""
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """A small data set in MNIST's four files, unpacked."""
    random = np.random.default_rng(5)
    result = {}
    for part, count in (("train", 12), ("t10k", 6)):
        images = random.integers(0, 256, (count, 28, 28), np.uint8)
        result[f"{part}-images-idx3-ubyte"] = idx(images)
        result[f"{part}-labels-idx1-ubyte"] = idx(random.integers(0, 10, count, np.uint8))
    return result


class Mirror:
    """A server of the four archives. `answer` turns a name and a good body into status and body."""

    def __init__(self, files):
        self.archives = {f"{name}.gz": gzip.compress(body) for name, body in files.items()}
        self.answer = lambda name, body: (200, body)
        self.asked = []

    @contextmanager
    def serving(self):
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.rsplit("/", 1)[-1]
                mirror.asked.append(name)
                status, body = mirror.answer(name, mirror.archives[name])
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            server.server_close()


@pytest.fixture
def mirror(files, monkeypatch):
    """Replaces torchvision's mirrors, with the checksums of our files in place of MNIST's."""
    mirror = Mirror(files)
    hashes = {name: hashlib.sha256(files[name]).hexdigest() for name in NAMES}
    monkeypatch.setattr(mnist, "SHA256", hashes)
    sums = [
        (name, hashlib.md5(mirror.archives[name], usedforsecurity=False).hexdigest())
        for name in (f"{name}.gz" for name in NAMES)
    ]
    monkeypatch.setattr(MNIST, "resources", sums)
    with mirror.serving() as address:
        monkeypatch.setattr(MNIST, "mirrors", [address])
        yield mirror


def put(files, folder):
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, body in files.items():
        (raw / name).write_bytes(body)
    return raw


def check(data, files):
    assert (data.name, data.title, data.input_shape) == ("mnist", "MNIST", (1, 28, 28))
    assert (len(data.train), len(data.test)) == (12, 6)
    for split, part in ((data.train, "train"), (data.test, "t10k")):
        assert split.images.dtype == torch.uint8
        assert split.labels.dtype == torch.int64
        assert split.images.numpy().tobytes() == files[f"{part}-images-idx3-ubyte"][16:]
        assert bytes(split.labels.tolist()) == files[f"{part}-labels-idx1-ubyte"][8:]


def fails(folder) -> str:
    with pytest.raises(DataError) as caught:
        mnist.DATA.load(folder)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert "'digits'" in sentence
    assert "DENSEMBED_DATA" in sentence
    assert not any(word in sentence for word in ("Traceback", "Error", "urlopen", "HTTP"))
    return sentence


def test_the_sums_are_mnists():
    """SHA-256 of the four unpacked files, as they are published: names and form, at least."""
    assert NAMES == (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    assert all(len(value) == 64 and int(value, 16) for value in mnist.SHA256.values())


def test_an_empty_cache_is_filled(mirror, files, tmp_path):
    assert not mnist.DATA.available(tmp_path)
    check(mnist.DATA.load(tmp_path), files)
    assert mnist.DATA.available(tmp_path)
    assert set(mirror.asked) == set(mirror.archives)
    mirror.asked.clear()
    check(mnist.DATA.load(tmp_path), files)
    assert mirror.asked == []


def test_by_name_and_variable(mirror, files, tmp_path, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    assert not is_available("mnist")
    check(load_dataset("mnist"), files)
    assert is_available("mnist")


def tree(folder) -> dict:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }


def test_a_folder_that_is_there_is_used_untouched(mirror, files, tmp_path, monkeypatch):
    put(files, tmp_path)
    before = tree(tmp_path)
    real = os.open

    def reading(path, flags, *rest, **more):
        assert not (str(path).startswith(str(tmp_path)) and flags & (os.O_WRONLY | os.O_RDWR))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", reading)
    monkeypatch.setattr(os, "mkdir", lambda *_: pytest.fail("It makes a folder."))
    check(mnist.DATA.load(tmp_path), files)
    assert tree(tmp_path) == before
    assert mirror.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda name, body: (403, b"Forbidden"),
        lambda name, body: (404, HTML),
        lambda name, body: (503, b"Service Unavailable"),
        lambda name, body: (200, HTML),
        lambda name, body: (200, b""),
        lambda name, body: (200, body[: len(body) // 2]),
        lambda name, body: (200, body[:-1] + b"x"),
    ],
    ids=["403", "404", "503", "HTML", "nothing", "half", "altered"],
)
def test_what_a_mirror_does_is_one_sentence(mirror, files, tmp_path, answer):
    mirror.answer = answer
    sentence = fails(tmp_path)
    assert sentence.startswith("MNIST could not be downloaded (127.0.0.1 ")
    assert "Check the network" in sentence
    # And nothing is left behind that would stop a later try.
    mirror.answer = lambda name, body: (200, body)
    check(mnist.DATA.load(tmp_path), files)


def test_a_mirror_that_fails_half_way(mirror, files, tmp_path):
    mirror.answer = lambda name, body: (200, body) if name.startswith("train") else (503, b"")
    fails(tmp_path)
    mirror.answer = lambda name, body: (200, body)
    mirror.asked.clear()
    check(mnist.DATA.load(tmp_path), files)
    assert set(mirror.asked) == {f"{name}.gz" for name in NAMES if "t10k" in name}


def test_no_network_at_all(mirror, files, tmp_path, monkeypatch):
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    assert fails(tmp_path).startswith(
        "MNIST could not be downloaded (127.0.0.1: Connection refused). Check the network"
    )
    assert is_sentence(fails(tmp_path))


def test_an_archive_whose_sum_is_right_and_which_does_not_unpack(
    mirror, files, tmp_path, monkeypatch
):
    """torchvision would leave an incomplete file there and use it the next time."""
    name = f"{NAMES[0]}.gz"
    whole = mirror.archives[name]
    half = whole[: len(whole) // 2]
    mirror.archives[name] = half
    sums = dict(MNIST.resources)
    sums[name] = hashlib.md5(half, usedforsecurity=False).hexdigest()
    monkeypatch.setattr(MNIST, "resources", list(sums.items()))
    fails(tmp_path)
    mirror.archives[name] = whole
    sums[name] = hashlib.md5(whole, usedforsecurity=False).hexdigest()
    monkeypatch.setattr(MNIST, "resources", list(sums.items()))
    check(mnist.DATA.load(tmp_path), files)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "altered", "empty"])
def test_damage_is_found(mirror, files, tmp_path, name, damage):
    raw = put(files, tmp_path)
    body = files[name]
    spoilt = {"cut": body[:-1], "altered": body[:-1] + bytes((body[-1] ^ 1,)), "empty": b""}
    (raw / name).write_bytes(spoilt[damage])
    before = tree(tmp_path)
    sentence = fails(tmp_path)
    assert f"{name} in " in sentence
    assert "damaged" in sentence
    assert tree(tmp_path) == before
    (raw / name).unlink()
    check(mnist.DATA.load(tmp_path), files)


@pytest.mark.parametrize("harm", ["label", "size"])
def test_files_of_the_right_length_with_another_content(harm, files, tmp_path):
    """As Fashion-MNIST is known by the lengths of its files."""
    name = "t10k-labels-idx1-ubyte" if harm == "label" else "t10k-images-idx3-ubyte"
    body = bytearray(files[name])
    if harm == "label":
        body[-1] = 10
    else:
        body[8:16] = (14).to_bytes(4, "big") + (56).to_bytes(4, "big")
    for each, content in (files | {name: bytes(body)}).items():
        path = tmp_path / fashion.DATA.folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged or belongs to another data set"):
        fashion.DATA.load(tmp_path)


def local(folder) -> str:
    """The sentence about a fault that no network can mend."""
    sentence = fails(folder)
    assert is_sentence(sentence)
    assert "network" not in sentence
    return sentence


def test_a_data_folder_that_is_a_file(mirror, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        sentence = local(folder)
        assert f"{tmp_path / 'file'}" in sentence
        assert "Not a directory" in sentence
    assert mirror.asked == []


def test_a_data_folder_that_cannot_be_made(mirror):
    assert "/proc/densembed: No such file or directory" in local(Path("/proc/densembed/data"))


def test_a_folder_of_the_files_name(mirror, files, tmp_path):
    raw = put(files, tmp_path)
    (raw / NAMES[2]).unlink()
    (raw / NAMES[2]).mkdir()
    sentence = local(tmp_path)
    assert f"{raw / NAMES[2]}, but a folder, " in sentence
    assert mirror.asked == []


@pytest.mark.parametrize("name", ["train-images.idx3-ubyte", "Train_Images-idx3-ubyte"])
def test_a_file_of_another_name(mirror, files, tmp_path, name):
    raw = put(files, tmp_path)
    (raw / NAMES[0]).rename(raw / name)
    assert f"needs the file {raw / NAMES[0]}: move {raw / name} there" in local(tmp_path)
    assert mirror.asked == []
    (raw / name).rename(raw / NAMES[0])
    check(mnist.DATA.load(tmp_path), files)


@pytest.mark.parametrize(
    "place",
    [
        ".",
        "MNIST",
        "MNIST/raw/raw",
        "MNIST/MNIST/raw",
        "raw",
        "mnist",
        "mnist/raw",
        "MNIST/Raw",
        "archive",
        "archive/train-images-idx3-ubyte",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files_in_another_place(mirror, files, tmp_path, place, packed):
    elsewhere = tmp_path / place
    elsewhere.mkdir(parents=True, exist_ok=True)
    ending = ".gz" if packed else ""
    for name, body in files.items():
        (elsewhere / f"{name}{ending}").write_bytes(gzip.compress(body, 1) if packed else body)
    name = f"{NAMES[0]}{ending}"
    expected = tmp_path / mnist.DATA.folder / name
    assert f"needs the file {expected}: move {elsewhere / name} there" in local(tmp_path)
    assert mirror.asked == []


def test_files_of_another_data_set_are_no_misplaced_ones(mirror, files, tmp_path):
    """Fashion-MNIST's files have the same names and sizes."""
    for name, body in files.items():
        (tmp_path / name).write_bytes(body[:-1] + bytes((body[-1] ^ 1,)))
    check(mnist.DATA.load(tmp_path), files)


def test_files_of_another_user_are_passed_by(mirror, files, tmp_path, monkeypatch):
    """In a folder that may be listed but not entered, and two that may not be read."""
    closed = tmp_path / "other" / "closed"
    closed.mkdir(parents=True)
    (closed / "f.txt").write_text("not for us")
    unread = [tmp_path / "other" / NAMES[0], tmp_path / f"{NAMES[1]}.gz"]
    for path in unread:
        path.write_bytes(files[path.stem])
    stat, read = os.stat, Path.read_bytes

    def refuse(path, *more, **options):
        if isinstance(path, (str, Path)) and Path(path).parent == closed:
            raise PermissionError(13, os.strerror(13), str(path))
        return stat(path, *more, **options)

    def refuse_reading(path):
        if path in unread:
            raise PermissionError(13, os.strerror(13), str(path))
        return read(path)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse_reading)
    check(mnist.DATA.load(tmp_path), files)
    assert len(mirror.asked) == 4


def test_a_part_of_the_files_without_a_network(mirror, files, tmp_path, monkeypatch):
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    raw = put(files, tmp_path)
    (raw / NAMES[3]).unlink()
    sentence = fails(tmp_path)
    assert sentence.startswith(f"MNIST is incomplete: {raw} lacks {NAMES[3]}. It could not be")
    assert "Connection refused" in sentence


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, lambda body: gzip.compress(body, 1), bytes],
    ids=["published", "repacked", "unpacked by a browser"],
)
def test_archives_that_lie_there_need_no_network(mirror, files, tmp_path, pack):
    (tmp_path / mnist.DATA.folder).mkdir(parents=True)
    for name, body in files.items():
        (tmp_path / mnist.DATA.folder / f"{name}.gz").write_bytes(pack(body))
    check(mnist.DATA.load(tmp_path), files)
    assert mirror.asked == []


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_that_was_cut_is_named(mirror, tmp_path, name):
    """Before the others are downloaded."""
    archive = tmp_path / mnist.DATA.folder / f"{name}.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(mirror.archives[archive.name][:-20])
    assert f"{archive.name} in {archive.parent} is damaged" in local(tmp_path)
    assert mirror.asked == []


@pytest.fixture
def small_disk(mounted):
    return mounted("20k")


def test_a_disk_that_is_full(mirror, small_disk):
    sentence = local(small_disk)
    assert sentence.startswith(f"MNIST cannot be saved in {small_disk}: ")
    assert "No space left on device" in sentence
    assert not list(small_disk.rglob("*.part"))


def test_a_disk_that_may_only_be_read(mirror, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    sentence = local(small_disk)
    assert sentence.startswith(f"MNIST cannot be saved in {small_disk}: ")
    assert "Read-only file system" in sentence


def test_a_file_that_cannot_be_read(mirror, files, tmp_path, monkeypatch):
    raw = put(files, tmp_path)
    real = type(raw).read_bytes

    def refuse(path):
        if path.name == NAMES[1]:
            raise PermissionError(13, os.strerror(13), str(path))
        return real(path)

    monkeypatch.setattr(type(raw), "read_bytes", refuse)
    assert f"{raw / NAMES[1]}: Permission denied" in local(tmp_path)


def together(count: int, folder) -> list:
    results = []

    def work():
        try:
            results.append(mnist.DATA.load(folder))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_several_that_start_on_an_empty_cache_all_get_it(mirror, files, tmp_path):
    def slowly(name, body):
        time.sleep(0.05)
        return 200, body

    mnist.DATA.load(tmp_path / "alone")
    alone = sorted(mirror.asked)
    mirror.asked.clear()
    mirror.answer = slowly
    results = together(4, tmp_path / "together")
    assert len(results) == 4
    for result in results:
        assert not isinstance(result, Exception), (str(result), repr(result.__cause__))
        check(result, files)
    assert sorted(mirror.asked) == alone


def test_a_file_that_another_one_writes_meanwhile_is_no_fault(mirror, files, tmp_path, monkeypatch):
    raw = put(files, tmp_path)
    last = raw / NAMES[-1]
    last.unlink()
    exists = os.path.lexists

    def write_first(path):
        last.write_bytes(files[NAMES[-1]])
        return exists(path)

    monkeypatch.setattr("densembed.data.published.os.path.lexists", write_first)
    check(mnist.DATA.load(tmp_path), files)
    assert not mirror.asked


def test_a_folder_that_another_one_creates_meanwhile_is_no_fault(tmp_path, monkeypatch):
    folder, exists = tmp_path / "raw", os.path.lexists

    def create_first(path):
        folder.mkdir(exist_ok=True)
        return exists(path)

    monkeypatch.setattr("densembed.data.download.os.path.lexists", create_first)
    make_folder(folder)
    assert folder.is_dir()


def test_a_file_that_another_one_is_still_writing_is_waited_for(mirror, files, tmp_path):
    """All four files exist, the last one incomplete: another download is still running."""
    raw = put(files, tmp_path)
    last = raw / NAMES[-1]
    last.write_bytes(files[NAMES[-1]][:5])
    writing, over = threading.Event(), threading.Event()

    def write():
        with filelock.FileLock(tmp_path / "mnist.lock"):
            writing.set()
            over.wait(0.5)
            last.write_bytes(files[NAMES[-1]])

    thread = threading.Thread(target=write)
    thread.start()
    writing.wait(10)
    check(mnist.DATA.load(tmp_path), files)
    thread.join()
    assert mirror.asked == []
