"""A cache that is limited in bytes, not in entries."""

import atexit
import ctypes
import gc
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np
from pydantic import BaseModel
from torch import Tensor, nn

OVERHEAD = 1000
MODULE = 20_000
"""Bytes of an object and of a torch module besides its arrays, measured roughly."""
JSON = 10
"""Bytes of a pydantic model per byte of its JSON, measured roughly."""
TRIM_BYTES = 32 * 2**20
ARENA_MAX, MMAP_THRESHOLD = -8, -3
"""Options of glibc's mallopt."""
_all: "WeakSet[SizedCache]" = WeakSet()


class SizedCache:
    """A cache of values within a budget of bytes, which drops the least recently used first.

    Values are shared by all callers, so they must not be modified. A value that is larger than the
    budget is not cached.

    >>> cache = SizedCache(1000)
    >>> cache.get(("key",), lambda: "value")
    'value'
    >>> cache.used
    5
    """

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._values: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()
        self._freed = 0
        # The interpreter hangs at exit if torch modules are still alive.
        atexit.register(self._values.clear)
        _all.add(self)

    def get(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The value of a key, computed by `make` if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()  # without the lock, so that other threads need not wait
        with self._lock:
            own = size(value)
            # Another thread may have computed it meanwhile.
            if key in self._values or own > self.budget:
                return value
            self._values[key] = value, own
            self.used += own
            while self.used > self.budget:
                self._remove(next(iter(self._values)))
            if self._freed >= TRIM_BYTES:
                self._freed = 0
                trim_memory()
        return value

    def drop(self, part: Hashable) -> None:
        """Remove all values with this part in their keys."""
        with self._lock:
            for key in [key for key in self._values if part in key]:
                self._remove(key)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            for key in list(self._values):
                self._remove(key)

    def _remove(self, key: tuple) -> None:
        _, freed = self._values.pop(key)
        self.used -= freed
        self._freed += freed


def drop(parts: Iterable[Hashable]) -> None:
    """Remove all values with one of these parts in their keys from all caches, and free memory."""
    for part in parts:
        for cache in list(_all):
            cache.drop(part)
    trim_memory()


def clear() -> None:
    """Remove all values from all caches."""
    for cache in list(_all):
        cache.clear()


def size(value: Any) -> int:
    """Approximate bytes of a value; exact for its arrays and texts."""
    if isinstance(value, np.ndarray | Tensor):
        return value.nbytes + OVERHEAD
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, nn.Module):
        numbers = sum(map(size, value.state_dict().values()))
        return numbers + MODULE * sum(1 for _ in value.modules())
    if isinstance(value, dict):
        return size(list(value.values()))
    if isinstance(value, list | tuple):
        return OVERHEAD + sum(map(size, value))
    if isinstance(value, BaseModel):
        return JSON * len(value.model_dump_json())
    if is_dataclass(value):
        return OVERHEAD + sum(size(getattr(value, field.name)) for field in fields(value))
    return 64


def trim_memory() -> None:
    """Return freed memory to the system, as glibc keeps what lies between used blocks."""
    call_glibc("malloc_trim", 0)


def prepare_server() -> None:
    """Keep the memory of a server small, before its first visitor.

    Streamlit runs each click in a thread of its own, and glibc makes up to eight heaps per
    processor for threads: memory freed in one of them is not used by another. Two heaps are enough,
    and blocks of a megabyte or more are allocated outside of them. `gc.freeze` exempts the several
    hundred thousand imported objects from garbage collection, so that the collector runs as soon as
    visitors have left a fraction of that behind.
    """
    call_glibc("mallopt", ARENA_MAX, 2)
    call_glibc("mallopt", MMAP_THRESHOLD, 2**20)
    gc.freeze()


def call_glibc(name: str, *values: int) -> None:
    """Call a function of glibc; do nothing if there is another C library."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), name)(*values)
