"""Run by Dask when a worker of this machine starts: the kernels compile before a run needs them."""

import logging
import threading
from typing import Any

from densembed.training.warm_up import compile_kernels


def dask_setup(worker: Any) -> None:
    """Start the compilation, which takes seconds on a machine that has never trained."""
    logging.getLogger("distributed.worker").addFilter(is_worth_showing)
    threading.Thread(target=compile_kernels, name="densembed-kernels", daemon=True).start()


def is_worth_showing(record: logging.LogRecord) -> bool:
    """Whether a message of a worker is not about its heartbeat.

    When a command ends, its scheduler may end in the middle of a heartbeat. Dask would print a
    traceback then, although every training is complete.
    """
    return "during heartbeat" not in record.getMessage()
