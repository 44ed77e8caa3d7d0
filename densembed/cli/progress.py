"""How a training on the command line is followed and interrupted."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from densembed.runs import Run
from densembed.training.errors import Errors

LOOK_EVERY = 0.2
"""Seconds between looks at what a run has done."""


class Interrupt:
    """While it is entered, the first Ctrl-C only asks for a stop, so that a snapshot is saved.

    The second ends at once, for whatever does not stop.
    """

    def __init__(self, ask: Callable[[], None] = lambda: None):
        self.ask = ask
        self.heard = False
        self._here = threading.current_thread() is threading.main_thread()  # others get no signals

    def __enter__(self) -> "Interrupt":
        if self._here:
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._here:
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, *_: object) -> None:
        self.heard = True
        signal.signal(signal.SIGINT, self._before)
        self.ask()


class Bar:
    """A progress bar that follows the events of a training; a line per epoch where no one looks."""

    def __init__(self, epochs: int):
        self.epochs = epochs
        self.epoch = self.step = self.steps = 0
        self.error = ""
        self.begun = time.monotonic()
        self.console = Console()
        columns = (
            TextColumn("{task.description}"), BarColumn(16), TaskProgressColumn(),
            TextColumn("{task.fields[text]}"), TimeRemainingColumn(),
        )  # fmt: skip
        self.bar = RichProgress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task(f"epoch 1/{epochs:,}", total=None, text="")

    def __enter__(self) -> "Bar":
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    @contextmanager
    def following(self, run: Run) -> Iterator[None]:
        """Show what happens in a run, whatever process trains it, until the block ends."""
        over = threading.Event()
        thread = threading.Thread(target=self._follow, args=(run, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _follow(self, run: Run, over: threading.Event) -> None:
        offset, ended = 0, False
        while not ended:
            ended = over.wait(LOOK_EVERY)  # and one look more: the last epoch is shown, too
            events, offset = run.events_since(offset)
            for event in events:
                self.show(event["kind"], event)

    def show(self, kind: str, event: dict) -> None:
        """Show an event, by its kind and what a run's record has of it."""
        if kind == "progress":
            self.step, self.steps = event["step"], event["steps"]
        elif kind == "epoch" and event["epoch"] > self.epoch:  # after a kill, some are done again
            self.epoch = event["epoch"]
            self.error = f"error {Errors(event['test_error']).text()}"
            if not self.console.is_terminal:
                print(self._line(), flush=True)
        else:
            return
        now = min(self.epochs, math.ceil(self.step * self.epochs / max(self.steps, 1)) or 1)
        text = "  ".join(filter(None, [f"step {self.step:,}/{self.steps:,}", self.error]))
        self.bar.update(
            self.task, completed=self.step, total=self.steps or None, text=text,
            description=f"epoch {now:,}/{self.epochs:,}",
        )  # fmt: skip

    def _line(self) -> str:
        done = self.step / self.steps if self.steps else 0.0
        parts = [
            f"epoch {self.epoch:,}/{self.epochs:,}", f"step {self.step:,}/{self.steps:,}",
            f"{100 * done:.0f} %", self.error,
        ]  # fmt: skip
        if 0 < done < 1:
            left = round((time.monotonic() - self.begun) * (1 - done) / done)
            parts.append(f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left")
        return "  ".join(parts)
