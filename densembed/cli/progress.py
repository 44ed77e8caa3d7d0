"""Progress of a training on the command line."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from densembed.runs import Run
from densembed.training.errors import Errors

POLL = 0.2
"""Seconds between two reads of a run's events."""


class Bar:
    """A progress bar for a training in a terminal, and one line per epoch elsewhere."""

    def __init__(self, epochs: int):
        self.epochs = epochs
        self.epoch = self.step = self.steps = 0
        self.error = ""
        self.begun = time.monotonic()
        self.console = Console()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(16),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
        )
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
        """Show the events of a run until the block ends, whichever process trains it."""
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
            ended = over.wait(POLL)  # then reads once more, for the last epoch
            events, offset = run.events_since(offset)
            for event in events:
                self.show(event["kind"], event)

    def show(self, kind: str, event: dict) -> None:
        """Show an event, given its kind and its fields as in a run's events.jsonl."""
        if kind == "progress":
            self.step, self.steps = event["step"], event["steps"]
        elif kind == "epoch" and event["epoch"] > self.epoch:  # epochs are repeated after a crash
            self.epoch = event["epoch"]
            self.error = f"error {Errors(event['test_error']).text()}"
            if not self.console.is_terminal:
                with suppress(OSError):  # a closed pipe, as of `head`, does not end a training
                    print(self._line(), flush=True)
        else:
            return
        now = min(self.epochs, math.ceil(self.step * self.epochs / max(self.steps, 1)) or 1)
        text = "  ".join(filter(None, [f"step {self.step:,}/{self.steps:,}", self.error]))
        self.bar.update(
            self.task,
            completed=self.step,
            total=self.steps or None,
            text=text,
            description=f"epoch {now:,}/{self.epochs:,}",
        )

    def _line(self) -> str:
        done = self.step / self.steps if self.steps else 0.0
        parts = [
            f"epoch {self.epoch:,}/{self.epochs:,}",
            f"step {self.step:,}/{self.steps:,}",
            f"{100 * done:.0f} %",
            self.error,
        ]
        if 0 < done < 1:
            left = round((time.monotonic() - self.begun) * (1 - done) / done)
            parts.append(f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left")
        return "  ".join(parts)
