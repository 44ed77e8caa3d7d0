"""Downloads of data sets: each only once, with time limits, also if several processes need it.

Code that loads data inside `watching` can be stopped at any moment. For this, a transfer runs in a
thread, which is abandoned if it does not end.
"""

import errno
import http.client
import os
import re
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

import filelock

from densembed.data.names import DataError

CONNECT = 20.0
"""Time limit for the start of a server's response, in seconds."""
SILENCE, SLOWEST = 30.0, 30 * 2**10
"""A server has to send at least `SLOWEST` bytes in `SILENCE` seconds."""
TOTAL = 3600.0
"""Time limit for all files of a data set, and for another process that downloads them, in
seconds."""
LARGEST = 2**28
"""Most bytes of a file, more than any published one has, packed or not. A server that sends without
end would fill the disk, and an archive can unpack to any size."""
POLL = 0.1
CHUNK = 2**16
PART = 2**20
"""Bytes that are unpacked between two looks at the stop."""

ELSEWHERE = (
    "Another data folder can be named with --data-dir or DENSEMBED_DATA; the built-in data set "
    "'digits' needs no download."
)

T = TypeVar("T")


class NetworkFault(Exception):
    """A server cannot be reached or sends a wrong file. The message names server and fault."""


class Cancelled(Exception):
    """Loading was stopped by the `stop` of `watching`."""


@dataclass(frozen=True)
class Watch:
    """Callbacks of a download: whether to stop, and one for the bytes received and expected."""

    stop: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda received, size: None


NOBODY = Watch()
_WATCH: ContextVar[Watch] = ContextVar("watch", default=NOBODY)


@contextmanager
def watching(
    stop: Callable[[], bool], progress: Callable[[int, int], None] = NOBODY.progress
) -> Iterator[None]:
    """Loading data in this context raises `Cancelled` as soon as `stop` returns true."""
    token = _WATCH.set(Watch(stop, progress))
    try:
        yield
    finally:
        _WATCH.reset(token)


def stoppable(items: Iterable[T]) -> Iterator[T]:
    """Iterate over items; raises `Cancelled` when loading is stopped."""
    for item in items:
        check_stop()
        yield item


def content(read: Callable[[int], bytes]) -> bytes:
    """The first `LARGEST` bytes that `read` returns; raises `Cancelled` when loading is stopped."""
    parts = iter(lambda: read(PART), b"")
    return b"".join(stoppable(islice(parts, LARGEST // PART)))


def check_stop() -> None:
    if _WATCH.get().stop():
        raise Cancelled


@contextmanager
def reading(title: str, folder: Path) -> Iterator[None]:
    """Turn an OSError while files are read into a DataError that names the path."""
    try:
        yield
    except OSError as error:
        raise refused(f"{title} cannot be read from", folder, error) from error


@contextmanager
def locked(lock: Path, title: str) -> Iterator[float]:
    """Hold the lock that allows one process at a time to download; gives the deadline for that.

    Raises DataError if another process holds it for longer than the time limit of a download.
    """
    held = filelock.FileLock(lock)
    end = time.monotonic() + TOTAL
    while True:
        check_stop()
        try:
            held.acquire(timeout=POLL)
            break
        except filelock.Timeout as error:
            if time.monotonic() > end:
                raise DataError(
                    f"Another process has held {lock}, the lock for downloading {title}, for "
                    f"{duration(TOTAL)}: end that process, and try again. {ELSEWHERE}"
                ) from error
    try:
        yield time.monotonic() + TOTAL
    finally:
        held.release()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents. The error names a file or link that is in the way."""
    for place in (folder, *folder.parents):
        # Another process may create it between the two looks, so the type is looked at last.
        exists = os.path.lexists(place)
        if place.is_dir():
            break
        if exists:
            broken = "a broken link has this name: move it away"
            reason = os.strerror(errno.ENOTDIR) if place.exists() else broken
            raise NotADirectoryError(errno.ENOTDIR, reason, str(place))
    folder.mkdir(parents=True, exist_ok=True)


def refused(what: str, folder: Path, error: OSError) -> DataError:
    place = str(error.filename or folder)
    named = "" if place == str(folder) else f"{place}: "
    reason = error.strerror or "it cannot be used"
    return DataError(f"{what} {folder}: {named}{reason}. {ELSEWHERE}")


@contextmanager
def fetched(
    addresses: Iterable[str], folder: Path, right: Callable[[Path], bool], deadline: float
) -> Iterator[Path]:
    """A temporary file with the content of the first address that sends the right file.

    Raises NetworkFault with the fault of each address if none does.
    """
    part = folder / f".{secrets.token_hex(4)}.part"
    faults = []
    try:
        for address in addresses:
            try:
                _transfer(address, part, deadline)
                if right(part):
                    break
                faults.append(f"{_server(address)} sent another file than the published one")
            except NetworkFault as fault:
                faults.append(str(fault))
        else:
            raise NetworkFault("; ".join(dict.fromkeys(faults)))
        yield part
    finally:
        part.unlink(missing_ok=True)


def _transfer(address: str, part: Path, deadline: float) -> None:
    """Download an address to a file, within the time limits."""
    server, watch = _server(address), _WATCH.get()
    with open(part, "wb") as file:
        transfer = _Transfer(address, file)
        begun = window = time.monotonic()
        counted = 0
        try:
            transfer.start()
            while transfer.is_alive():
                transfer.join(POLL)
                check_stop()
                now, received = time.monotonic(), transfer.received
                watch.progress(received, transfer.size)
                if now > deadline:
                    raise NetworkFault(f"{server} was not done after {duration(TOTAL)}")
                if not transfer.answered:
                    if now - begun > CONNECT:
                        raise NetworkFault(f"{server} did not answer within {duration(CONNECT)}")
                    window = now
                elif now - window > SILENCE:
                    if received - counted < SLOWEST:
                        raise NetworkFault(
                            f"{server} sent {received - counted:,} bytes in {duration(SILENCE)}"
                        )
                    window, counted = now, received
        finally:
            transfer.abandoned.set()
        check_stop()  # also if the transfer failed or ended before the first look
        if transfer.error is not None:
            raise transfer.error


class _Transfer(threading.Thread):
    """A thread that downloads an address to a file.

    Python has no time limit for looking up a host, and a server that sends single bytes satisfies
    every timeout of a socket. An abandoned thread ends with the next byte or after `SILENCE`
    seconds; as a daemon, it does not keep the process from ending.
    """

    def __init__(self, address: str, file: BinaryIO):
        super().__init__(daemon=True)
        self.address, self.file = address, file
        self.answered, self.received, self.size = False, 0, 0
        self.error: Exception | None = None
        self.abandoned = threading.Event()

    def run(self) -> None:
        try:
            self._copy()
        except Exception as error:
            self.error = error

    def _copy(self) -> None:
        request = urllib.request.Request(self.address, headers={"User-Agent": "densembed"})
        with _network(self.address):
            # Unlike urlopen, a new opener uses the proxies that `_server` names.
            response = urllib.request.build_opener().open(request, timeout=SILENCE)
        with response:
            self.size = response.length or 0
            self.answered = True
            while not self.abandoned.is_set():
                with _network(self.address):
                    chunk = response.read1(CHUNK)
                if not chunk:
                    break
                self.file.write(chunk)
                self.received += len(chunk)
                if self.received > LARGEST:
                    raise NetworkFault(
                        f"{_server(self.address)} sent more than {LARGEST:,} bytes, so not the "
                        "published file"
                    )
        if self.received < self.size and not self.abandoned.is_set():
            raise NetworkFault(
                f"{_server(self.address)} ended the transfer early, after {self.received:,} of "
                f"{self.size:,} bytes"
            )


@contextmanager
def _network(address: str) -> Iterator[None]:
    """Raise NetworkFault for errors of the network, which Python does not tell from the disk's."""
    server = _server(address)
    try:
        yield
    except urllib.error.HTTPError as error:
        redirect = "a redirect that leads to no file, " if 300 <= error.code < 400 else ""
        raise NetworkFault(f"{server} answered with {redirect}status {error.code}") from error
    except http.client.IncompleteRead as error:
        raise NetworkFault(f"{server} ended the transfer early") from error
    except TimeoutError as error:
        raise NetworkFault(f"{server} did not answer within {duration(SILENCE)}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)
        tunnel = re.search(r"Tunnel connection failed: .*", str(cause))  # the answer of a proxy
        reason = getattr(cause, "strerror", None) or (tunnel and tunnel[0]) or "no valid answer"
        raise NetworkFault(f"{server}: {reason}") from error


def _server(address: str) -> str:
    """The host of an address, and the proxy through which it is reached."""
    parts = urlsplit(address)
    host = parts.hostname or address
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.netloc):
        return host
    # A proxy may be written without a scheme, and with a password, which is not shown.
    return f"{host} through the proxy {re.split('//|@', proxy)[-1].strip('/')}"


def duration(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} minutes"
