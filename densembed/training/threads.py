"""How a process that trains treats the machine."""

import ctypes
import os
import sys

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**30
GLIBC_BYTES = 2**25
"""Where glibc's own threshold for blocks that it gives back at once stops growing."""
THREADS = torch.get_num_threads()


def limit_threads() -> None:
    """Train on one CPU thread, and keep the memory that a step frees for the next one.

    The steps of these models are too small to share: beside another busy process, a second thread
    that waits for the first made them ten times slower, and alone it hardly helps. OMP_NUM_THREADS
    overrules it. And glibc gives blocks of some 100 kB back to the system at once (Dask tells it
    to), so that every step pays for touching fresh pages: up to half of its time.
    """
    _use(1, KEPT_BYTES, KEPT_BYTES)


def restore_threads() -> None:
    """The threads that torch took, and memory as an ordinary process comes to treat it."""
    _use(THREADS, GLIBC_BYTES, 2 * GLIBC_BYTES)


def _use(threads: int, mapped: int, trimmed: int) -> None:
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL(None).mallopt
        except (OSError, AttributeError):  # another C library
            return
        mallopt(M_MMAP_THRESHOLD, mapped)
        mallopt(M_TRIM_THRESHOLD, trimmed)
