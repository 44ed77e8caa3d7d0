"""Run by Dask when a worker of this machine starts: the kernels compile before a run needs them."""

import logging
import re
import threading
from typing import Any

from densembed.training.warm_up import compile_kernels
from densembed.workers.scheduler import SchedulerError


def dask_setup(worker: Any) -> None:
    """Start the compilation, which takes seconds on a machine that has never trained."""
    for name in ("distributed.worker", "distributed.worker.state_machine"):
        logging.getLogger(name).addFilter(is_worth_showing)
    threading.Thread(target=compile_kernels, name="densembed-kernels", daemon=True).start()


EXPLAINED = re.compile(rf"Exception: .{SchedulerError.__name__}\(")


def is_worth_showing(record: logging.LogRecord) -> bool:
    """Whether a message of a worker is not about the end of its command, or an explained error.

    The scheduler may end in the middle of a heartbeat, for which Dask would print a traceback
    although every training is complete. After Ctrl-C, Dask cancels the trainings. An error with a
    known cause reaches the command, which prints one sentence about it.
    """
    message = record.getMessage()
    at_end = "during heartbeat" in message or "ended with CancelledError" in message
    return not at_end and not EXPLAINED.search(message)
