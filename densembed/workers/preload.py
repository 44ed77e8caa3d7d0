"""Run by Dask when a worker of this machine starts: the kernels compile before a run needs them."""

import threading
from typing import Any

from densembed.training.warm_up import compile_kernels


def dask_setup(worker: Any) -> None:
    """Start the compilation, which takes seconds on a machine that has never trained."""
    threading.Thread(target=compile_kernels, name="densembed-kernels", daemon=True).start()
