"""CPU threads and memory of a process that trains."""

import os

import torch

from densembed.cache import MMAP_THRESHOLD, call_glibc

TRIM_THRESHOLD = -1
"""Option of glibc's mallopt."""
REUSED_BYTES = 2**30
GLIBC_BYTES = 2**25
"""The largest value of glibc's dynamic threshold for blocks that are returned on free."""
THREADS = torch.get_num_threads()


def limit_threads() -> None:
    """Use one CPU thread, and reuse the memory that a step frees in the next step.

    The steps of these models are too small for several threads: a second thread hardly helps, and
    makes a step ten times slower beside another busy process. OMP_NUM_THREADS takes precedence.
    By default, glibc returns freed blocks of about 100 kB to the system, as Dask lowers its
    threshold, and touching fresh pages takes up to half of a step's time.
    """
    _use(1, REUSED_BYTES, REUSED_BYTES)


def restore_threads() -> None:
    """Restore torch's number of threads and glibc's usual thresholds."""
    _use(THREADS, GLIBC_BYTES, 2 * GLIBC_BYTES)


def _use(threads: int, mapped: int, trimmed: int) -> None:
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)
    call_glibc("mallopt", MMAP_THRESHOLD, mapped)
    call_glibc("mallopt", TRIM_THRESHOLD, trimmed)
