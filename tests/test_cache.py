"""The cache is limited in bytes and drops the least recently used values."""

import subprocess
import sys
import weakref

import numpy as np
import pytest

from densembed.cache import SizedCache, drop, size
from densembed.training.checkpoint import Checkpoint
from densembed.training.checkpoint import _networks as networks


def test_many_values_stay_within_the_budget():
    cache, made = SizedCache(10_000_000), []
    for number in range(100):
        cache.get((number,), lambda: made.append(1) or np.zeros(1_000_000, np.uint8))
        cache.get((0,), lambda: pytest.fail("a value in frequent use was dropped"))
        assert cache.used <= cache.budget
    assert len(made) == 100
    cache.get((1,), lambda: made.append(1) or np.zeros(1))
    assert len(made) == 101


def test_a_value_larger_than_the_budget_is_not_cached():
    cache = SizedCache(1000)
    assert cache.get(("large",), lambda: np.ones(2000)).sum() == 2000
    assert cache.used == 0


def test_networks_of_many_checkpoints_stay_within_the_budget(trained, monkeypatch):
    monkeypatch.setattr(networks, "budget", 1_000_000)
    for k in range(1, 20):  # the first may be cached already
        tensors = {name: value + k for name, value in trained.tensors.items()}
        checkpoint = Checkpoint(trained.header, tensors)
        for index in range(len(checkpoint.steps)):
            checkpoint.network(index)
        assert networks.used <= 1_000_000


def test_what_belongs_to_a_part_is_dropped_from_all_caches():
    caches = [SizedCache(10_000), SizedCache(10_000)]
    for cache in caches:
        for part in ("a", "b"):
            cache.get(("view", part, 1), lambda: np.zeros(1000, np.uint8))
    gone = [weakref.ref(cache.get(("view", "a", 1), pytest.fail)) for cache in caches]
    drop(["a"])
    assert [value() for value in gone] == [None, None]
    for cache in caches:
        assert cache.used == size(cache.get(("view", "b", 1), pytest.fail))


def test_a_long_training_is_counted_with_its_epochs(trained):
    epoch = trained.header.epochs[0]
    long = trained.header.model_copy(update={"epochs": [epoch] * 10_000})
    more = size(Checkpoint(long, trained.tensors)) - size(trained)
    assert more > 10_000 * len(epoch.model_dump_json())


HEAPS = """
import ctypes, os, tempfile, threading
from densembed.cache import prepare_server
prepare_server()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fdopen.restype = ctypes.c_void_p
together = threading.Barrier(16)
def work():
    together.wait()
    libc.malloc(1000)
    together.wait()
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
    assert libc.malloc_info(0, stream) == 0
    libc.fclose(stream)
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="These are options of glibc's.")
def test_threads_of_a_server_share_their_heaps():
    out = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, text=True, check=True)
    assert int(out.stdout) <= 2
