"""A server that accepts and stays silent, or sends drop by drop: an end within the limits."""

import socket
import threading
from contextlib import contextmanager, suppress

import filelock
import pytest

from densembed.data import DataError, cifar, download, fashion, mnist
from densembed.data.download import Cancelled, watching
from tests.conftest import is_sentence

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@contextmanager
def server(behaviour):
    """An address where `behaviour(connection, over)` answers each connection in a thread."""
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.05)
    asked = threading.Event()

    def answer(connection):
        with connection, suppress(OSError):  # the other side has had enough
            behaviour(connection, over)

    def accept():
        while not over.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            asked.set()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", asked
    finally:
        over.set()
        thread.join(10)
        listening.close()


def silent(connection, over):
    over.wait(60)


def closing(connection, over):
    connection.shutdown(socket.SHUT_RDWR)


def silent_after_the_head(connection, over):
    connection.sendall(HEAD)
    over.wait(60)


def dripping(connection, over):
    connection.sendall(HEAD)
    while not over.wait(0.02):
        connection.sendall(b"x")


def dripping_head(connection, over):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not over.wait(0.02):
        connection.sendall(b"X")


def cut_short(connection, over):
    connection.recv(2**16)
    connection.sendall(HEAD + bytes(1000))


def cut_in_a_chunk(connection, over):
    connection.recv(2**16)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n"
    connection.sendall(head + bytes(1000))


def endless(connection, over):
    connection.recv(2**16)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        connection.sendall(bytes(10_000))


def to_itself(connection, over):
    connection.recv(2**16)
    port = connection.getsockname()[1]
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\n\r\n" % port)


def refusing_proxy(connection, over):
    connection.recv(2**16)
    connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")


def steady(connection, over):
    connection.sendall(HEAD)
    while not over.wait(0.01):
        connection.sendall(bytes(1000))


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.setattr(download, "CONNECT", 0.3)
    monkeypatch.setattr(download, "SILENCE", 0.4)
    monkeypatch.setattr(download, "POLL", 0.02)


def point_to(address: str, monkeypatch) -> None:
    from torchvision.datasets import CIFAR10, MNIST, FashionMNIST

    monkeypatch.setattr(MNIST, "mirrors", [address])
    monkeypatch.setattr(FashionMNIST, "mirrors", [address])
    monkeypatch.setattr(CIFAR10, "url", address + "cifar.tar.gz")


def sentence_of(load, folder) -> str:
    with pytest.raises(DataError) as caught:
        load(folder)
    assert is_sentence(str(caught.value))
    assert not list(folder.rglob("*.part"))
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("load", [mnist.DATA.load, fashion.DATA.load, cifar.DATA.load])
@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (silent, "127.0.0.1 did not answer within 0."),
        (dripping_head, "127.0.0.1 did not answer within 0.3 s"),
        (silent_after_the_head, "127.0.0.1 "),
        (dripping, " bytes in 0.4 s"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_server_that_keeps_one_waiting(limits, tmp_path, monkeypatch, load, behaviour, says):
    with server(behaviour) as (address, _):
        point_to(address, monkeypatch)
        sentence = sentence_of(load, tmp_path)
    assert says in sentence
    assert "Check the network" in sentence


@pytest.mark.parametrize("load", [mnist.DATA.load, fashion.DATA.load, cifar.DATA.load])
@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (cut_short, "127.0.0.1 ended the transfer early, after 1,000 of 1,000,000 bytes"),
        (cut_in_a_chunk, "127.0.0.1 ended the transfer early"),
        (to_itself, "127.0.0.1 answered with a redirect that leads to no file, status 302"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_server_that_sends_no_whole_file(tmp_path, monkeypatch, load, behaviour, says):
    with server(behaviour) as (address, _):
        point_to(address, monkeypatch)
        sentence = sentence_of(load, tmp_path)
    assert f"({says})" in sentence
    assert "another file" not in sentence


def test_a_server_that_sends_without_end(tmp_path, monkeypatch):
    """It would fill the disk for an hour."""
    monkeypatch.setattr(download, "LARGEST", 100_000)
    with server(endless) as (address, _):
        point_to(address, monkeypatch)
        sentence = sentence_of(mnist.DATA.load, tmp_path)
    assert "(127.0.0.1 sent more than 100,000 bytes, so not the published file)" in sentence


@pytest.mark.parametrize(
    ("scheme", "fault"),
    [
        ("http", " answered with status 407"),
        ("https", ": Tunnel connection failed: 407 Proxy Authentication Required"),
    ],
)
def test_the_fault_of_a_proxy_is_not_blamed_on_the_mirror(tmp_path, monkeypatch, scheme, fault):
    with server(refusing_proxy) as (address, _):
        proxy = address.removeprefix("http://").strip("/")
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:secret@{proxy}/")
        point_to(f"{scheme}://data.example/", monkeypatch)
        assert f"(data.example through the proxy {proxy}{fault})" in sentence_of(
            mnist.DATA.load, tmp_path
        )


def test_a_download_has_a_limit_in_all(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "TOTAL", 0.3)
    monkeypatch.setattr(download, "SLOWEST", 1)
    with server(steady) as (address, _):
        point_to(address, monkeypatch)
        assert "127.0.0.1 was not done after 0.3 s" in sentence_of(mnist.DATA.load, tmp_path)


@pytest.mark.parametrize("load", [mnist.DATA.load, fashion.DATA.load, cifar.DATA.load])
@pytest.mark.parametrize("behaviour", [silent, dripping, steady])
def test_a_download_is_stopped_at_any_moment(tmp_path, monkeypatch, load, behaviour):
    """With the limits as they are: only the stop ends it."""
    with server(behaviour) as (address, asked), watching(asked.is_set):
        point_to(address, monkeypatch)
        with pytest.raises(Cancelled):
            load(tmp_path)
    assert not list(tmp_path.rglob("*.part"))
    with filelock.FileLock(tmp_path / "mnist.lock", timeout=0):  # the next one need not wait
        pass


def test_a_stop_counts_more_than_a_fault(tmp_path, monkeypatch):
    """Of a transfer that is over before its first look at the stop."""
    start = threading.Thread.start

    def start_and_finish(transfer):
        start(transfer)
        transfer.join()

    monkeypatch.setattr(download._Transfer, "start", start_and_finish)
    with server(closing) as (address, asked), watching(asked.is_set):
        point_to(address, monkeypatch)
        with pytest.raises(Cancelled):
            mnist.DATA.load(tmp_path)


def test_what_has_been_received_is_told(tmp_path, monkeypatch):
    told = []

    def progress(received, size):
        told.append((received, size))

    with (
        server(steady) as (address, _),
        watching(lambda: any(received for received, _ in told), progress),
    ):
        point_to(address, monkeypatch)
        with pytest.raises(Cancelled):
            mnist.DATA.load(tmp_path)
    received, size = told[-1]
    assert 0 < received <= size == 1_000_000


def test_waiting_for_another_download_is_stopped(tmp_path):
    """And what watches inside is gone outside."""
    with filelock.FileLock(tmp_path / "mnist.lock"):
        asked = iter([False, False, True])
        with watching(lambda: next(asked)), pytest.raises(Cancelled):
            mnist.DATA.load(tmp_path)
    download.check_stop()


def test_waiting_for_another_download_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "TOTAL", 0.1)
    with filelock.FileLock(tmp_path / "mnist.lock"):
        sentence = sentence_of(mnist.DATA.load, tmp_path)
    assert f"has held {tmp_path / 'mnist.lock'}" in sentence
    assert "network" not in sentence


def test_the_limits_are_those_of_a_person_with_patience():
    assert download.CONNECT <= 30
    assert download.SILENCE <= 60
    assert download.TOTAL <= 3600
