"""CPU threads and memory of a process that trains."""

import os

import torch

from densembed.cache import MMAP_THRESHOLD, call_glibc
from densembed.kernels import threads as kernel_threads

TRIM_THRESHOLD = -1
"""Option of glibc's mallopt."""
REUSED_BYTES = 2**30
GLIBC_BYTES = 2**25
"""The largest value of glibc's dynamic threshold for blocks that are returned on free."""
THREADS = torch.get_num_threads()


def limit_threads() -> None:
    """Use one CPU thread for torch, and reuse the memory that a step frees in the next step.

    The steps of these models are too small for the threads of OpenMP: a second thread hardly helps,
    and while another process is busy, a step takes ten times as long. The compiled kernels use all
    cores, as their threads do not wait for one another in a loop. OMP_NUM_THREADS takes precedence,
    and `DENSEMBED_THREADS` for the kernels alone. By default, glibc returns freed blocks of about
    100 kB to the system, as Dask lowers its threshold, and touching fresh pages takes up to half of
    a step's time.
    """
    _use(1, REUSED_BYTES, REUSED_BYTES)
    kernel_threads.use(kernel_threads.allowed())


def restore_threads() -> None:
    """Restore torch's number of threads and glibc's usual thresholds."""
    _use(THREADS, GLIBC_BYTES, 2 * GLIBC_BYTES)
    kernel_threads.use(None)


def _use(threads: int, mapped: int, trimmed: int) -> None:
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)
    call_glibc("mallopt", MMAP_THRESHOLD, mapped)
    call_glibc("mallopt", TRIM_THRESHOLD, trimmed)
