"""A cache that is limited in bytes, not in entries."""

import atexit
import ctypes
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from threading import RLock
from typing import Any

import numpy as np
from torch import Tensor, nn

OVERHEAD = 1000
MODULE = 20_000
"""Bytes of an object and of a torch module besides its arrays, measured roughly."""
TRIM_BYTES = 32 * 2**20


class SizedCache:
    """A cache of values within a budget of bytes, which drops the least recently used first.

    Values are shared by all callers, so they must not be modified. A value that is larger than the
    budget is not cached.

    >>> cache = SizedCache(1000)
    >>> cache.get("key", lambda: "value")
    'value'
    >>> cache.used
    5
    """

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()
        self._freed = 0
        # The interpreter hangs at exit if torch modules are still alive.
        atexit.register(self._values.clear)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
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
                _, (_, freed) = self._values.popitem(last=False)
                self.used -= freed
                self._freed += freed
            if self._freed >= TRIM_BYTES:
                self._freed = 0
                trim_memory()
        return value


def size(value: Any) -> int:
    """Approximate bytes of a value; exact for its arrays and texts."""
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
    if is_dataclass(value):
        return OVERHEAD + sum(size(getattr(value, field.name)) for field in fields(value))
    return 64


def trim_memory() -> None:
    """Return freed memory to the system, as glibc keeps what lies between used blocks."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):  # another C library
            return
