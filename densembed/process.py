"""How a process that trains treats the machine."""

import ctypes
import os
import sys

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**30


def settle() -> None:
    """Train on one CPU thread, and keep the memory that a step frees for the next one.

    The steps of these models are too small to share: beside another busy process, a second thread
    that waits for the first made them ten times slower, and alone it hardly helps. OMP_NUM_THREADS
    overrules it. And glibc gives blocks of some 100 kB back to the system at once (Dask tells it
    to), so that every step pays for touching fresh pages: up to half of its time.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL(None).mallopt
        except (OSError, AttributeError):  # another C library
            return
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
