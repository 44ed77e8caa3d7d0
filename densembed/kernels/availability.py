"""Whether there are kernels on this machine, without importing Numba."""

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from densembed.kernels.threads import limit
from densembed.text import counted

VARIABLE = "DENSEMBED_KERNELS"
FAMILIES = (
    "logistic", "gaussian", "laplace", "cauchy", "hypsecant", "uniform", "triangular",
    "raisedcosine", "plateau",
)  # fmt: skip
"""Names of the families of densities that have kernels, which take the index."""
EDGE = 0.1
"""Scale of the edges of the plateau that has a kernel."""


@cache
def available() -> bool:
    """Whether Numba is installed, and not switched off by `DENSEMBED_KERNELS=0`.

    Nor by its own `NUMBA_DISABLE_JIT=1`: kernels contain instructions that Python does not have.
    """
    uncompiled = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")
    return os.environ.get(VARIABLE, "") != "0" and not uncompiled and installed() != ""


@cache
def installed() -> str:
    """Version of Numba; empty if it is not installed."""
    try:
        return version("numba")
    except PackageNotFoundError:
        return ""


def name() -> str:
    """What computes on a CPU, for reports: "Numba 0.68.1" or "none"."""
    return f"Numba {installed()}" if available() else "none"


def described(threads: int) -> str:
    """`name` and the number of threads, given that of torch: "Numba 0.68.1, 2 threads"."""
    return f"{name()}, {counted(limit(threads), 'thread')}" if available() else ""
