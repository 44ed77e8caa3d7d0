"""Run by Dask when a worker of this machine starts: the kernels compile before a run needs them."""

import logging
import threading
from typing import Any

from densembed.training.warm_up import compile_kernels


def dask_setup(worker: Any) -> None:
    """Start the compilation, which takes seconds on a machine that has never trained."""
    for name in ("distributed.worker", "distributed.worker.state_machine"):
        logging.getLogger(name).addFilter(is_worth_showing)
    threading.Thread(target=compile_kernels, name="densembed-kernels", daemon=True).start()


def is_worth_showing(record: logging.LogRecord) -> bool:
    """Whether a message of a worker is not about the end of its command.

    The scheduler may then end in the middle of a heartbeat, for which Dask would print a traceback
    although every training is complete. After Ctrl-C, Dask cancels the trainings.
    """
    message = record.getMessage()
    return "during heartbeat" not in message and "ended with CancelledError" not in message
