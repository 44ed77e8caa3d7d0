"""What is computed once and kept as long as there is room: counted in bytes, not in entries."""

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
"""Bytes of an object, and of one of torch's modules, beside its numbers: measured, roughly."""
TRIM_BYTES = 32 * 2**20


class SizedCache:
    """Values by their keys within a budget of bytes, the longest unused given up first.

    They are shared by all who ask: to be read, never changed. What alone is larger than the budget
    is not kept.
    """

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()
        self._freed = 0
        # Modules of torch that are still alive when the interpreter is torn down make it hang.
        atexit.register(self._values.clear)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
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
                _, (_, freed) = self._values.popitem(last=False)
                self.used -= freed
                self._freed += freed
            if self._freed >= TRIM_BYTES:
                self._freed = 0
                give_back()
        return value


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
    if is_dataclass(value):
        return OVERHEAD + sum(size(getattr(value, field.name)) for field in fields(value))
    return 64


def give_back() -> None:
    """Give freed memory back to the system: glibc keeps what lies between blocks in use."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):  # another C library
            return
