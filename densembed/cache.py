"""What is computed once and kept as long as there is room: counted in bytes, not in entries."""

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
"""Bytes of an object, and of one of torch's modules, beside its numbers: measured, roughly."""
JSON = 10
"""Bytes of a pydantic model for each byte of its JSON: measured, roughly."""
TRIM_BYTES = 32 * 2**20
ARENA_MAX, MMAP_THRESHOLD = -8, -3
"""Options of glibc's mallopt."""
_all: "WeakSet[Kept]" = WeakSet()


class Kept:
    """Values by their keys within a budget of bytes, the longest unused given up first.

    They are shared by all who ask: to be read, never changed. What alone is larger than the budget
    is not kept.
    """

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._values: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()
        self._freed = 0
        # Modules of torch that are still alive when the interpreter is torn down make it hang.
        atexit.register(self._values.clear)
        _all.add(self)

    def get(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The value of a key, made where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()  # not under the lock: others need not wait for it
        with self._lock:
            own = size(value)
            if key in self._values or own > self.budget:  # another was as quick, or it is too large
                return value
            self._values[key] = value, own
            self.used += own
            while self.used > self.budget:
                self._remove(next(iter(self._values)))
            if self._freed >= TRIM_BYTES:
                self._freed = 0
                give_back()
        return value

    def drop(self, part: Hashable) -> None:
        """Give up all values with this part in their keys."""
        with self._lock:
            for key in [key for key in self._values if part in key]:
                self._remove(key)

    def _remove(self, key: tuple) -> None:
        _, freed = self._values.pop(key)
        self.used -= freed
        self._freed += freed


def drop(parts: Iterable[Hashable]) -> None:
    """Give up, in all caches, what has one of these parts in its key, and its memory."""
    for part in parts:
        for kept in list(_all):
            kept.drop(part)
    give_back()


def size(value: Any) -> int:
    """Bytes that a value takes, roughly: of its arrays and texts exactly."""
    if isinstance(value, np.ndarray):
        return value.nbytes + OVERHEAD
    if isinstance(value, Tensor):
        return value.nbytes + OVERHEAD
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, nn.Module):
        numbers = sum(map(size, value.state_dict().values()))
        return numbers + MODULE * sum(1 for _ in value.modules())
    if isinstance(value, dict):
        return OVERHEAD + sum(map(size, value.values()))
    if isinstance(value, (list, tuple)):
        return OVERHEAD + sum(map(size, value))
    if isinstance(value, BaseModel):
        return JSON * len(value.model_dump_json())
    if is_dataclass(value):
        return OVERHEAD + sum(size(getattr(value, field.name)) for field in fields(value))
    return 64


def give_back() -> None:
    """Give freed memory back to the system: glibc keeps what lies between blocks in use."""
    _glibc("malloc_trim", 0)


def prepare_server() -> None:
    """Keep the memory of a server small, before its first visitor.

    Each click is a thread of its own, and for threads glibc makes up to eight heaps a processor:
    what one has freed no other one uses. Two are enough, and blocks of a megabyte have no part in
    them. Python's collector leaves alone what has been imported, several hundred thousand objects,
    so that it runs as soon as visitors have left a fraction of that behind.
    """
    _glibc("mallopt", ARENA_MAX, 2)
    _glibc("mallopt", MMAP_THRESHOLD, 2**20)
    gc.freeze()


def _glibc(name: str, *values: int) -> None:
    """Call one of its functions; nothing where there is another C library."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), name)(*values)
