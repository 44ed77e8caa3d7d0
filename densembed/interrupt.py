"""Ctrl-C, SIGTERM and SIGHUP where Python's own answer would lose results or break a library."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import NoReturn

ENDS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, the end that a scheduler or `timeout` asks for, and a terminal that is closed."""


class Interrupt:
    """Context manager in which the first Ctrl-C requests a stop, so that a snapshot is saved.

    The second Ctrl-C raises KeyboardInterrupt as usual, unless `finishing` is set, as while results
    are saved. Further signals of other kinds change nothing: a terminal and a scheduler may both
    send one.

    Args:
        request_stop: called at the first Ctrl-C.
        signals: those that count as Ctrl-C, unless the process ignores them, as under `nohup`.
    """

    def __init__(
        self,
        request_stop: Callable[[], None] = lambda: None,
        signals: Sequence[signal.Signals] = (signal.SIGINT,),
    ):
        self.request_stop = request_stop
        self.signals = signals
        self.requested = False
        self.finishing = False
        # Python handles signals in the main thread only.
        self._main_thread = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Interrupt":
        if self._main_thread:
            self._before = [
                (each, signal.signal(each, self._handle))
                for each in self.signals
                # A script starts what runs in the background with SIGINT ignored, and may send it.
                if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN
            ]
        return self

    def __exit__(self, *error: object) -> None:
        if self._main_thread:
            for each, before in self._before:
                signal.signal(each, before)

    def _handle(self, number: int, _: object) -> None:
        if not self.requested:
            self.requested = True
            self.request_stop()
        elif number == signal.SIGINT and not self.finishing:
            raise KeyboardInterrupt


def as_ctrl_c(signals: Sequence[signal.Signals]) -> Interrupt:
    """Context manager in which the first of these signals raises KeyboardInterrupt."""

    def stop() -> NoReturn:
        raise KeyboardInterrupt

    return Interrupt(stop, signals)


@contextmanager
def postponed(signals: Sequence[signal.Signals] = ()) -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C was pressed in it.

    Torch swallows the exception while it imports NumPy, which cannot be used afterwards.

    Args:
        signals: others that count as Ctrl-C.
    """
    with Interrupt(signals=[*{signal.SIGINT, *signals}]) as interrupt:
        yield
    if interrupt.requested:
        raise KeyboardInterrupt


@contextmanager
def blocked() -> Iterator[None]:
    """Processes that threads of this block start do not get Ctrl-C.

    A terminal sends it to all its processes, although only one of them ends the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # multiprocessing unblocks Ctrl-C when it starts this process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
