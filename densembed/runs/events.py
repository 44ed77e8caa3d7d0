"""What happened in a run: events.jsonl, a whole line at a time, oldest first."""

import json
import os
import time
from pathlib import Path

MAX_EVENTS_BYTES = 64 * 2**20
TAIL_BYTES = 2**16
ENDS = ("done", "stopped", "diverged", "failed")


def append(path: Path, kind: str, /, **values) -> None:
    line = json.dumps({"kind": kind, "time": time.time(), **values}) + "\n"
    with open(path, "a+b") as file:
        if file.tell():  # a line that was cut off must not spoil this one
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode())


def read(path: Path) -> list[dict]:
    """All of them.

    A line still being written is left out, and so is what a process that died had done after the
    step that the next one started from: it was done again.
    """
    try:
        if path.stat().st_size > MAX_EVENTS_BYTES:
            return []
        content = path.read_bytes()
    except OSError:
        return []
    events = []
    for event in _parsed(content):
        if event["kind"] == "start":
            events = [done for done in events if done.get("step", 0) <= event.get("step", 0)]
        events.append(event)
    return events


def since(path: Path, offset: int) -> tuple[list[dict], int]:
    """The events of the whole lines after `offset` bytes, and where the next ones will begin."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            content = file.read()
    except OSError:
        return [], offset
    return _parsed(content), offset + content.rfind(b"\n") + 1


def last(path: Path) -> dict | None:
    """The last one, without reading all the others: a list of runs asks for many of these."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            found = _parsed(file.read())
    except OSError:
        return None
    if not found and size > TAIL_BYTES:
        found = read(path)
    return found[-1] if found else None


def _parsed(content: bytes) -> list[dict]:
    """The events of the whole lines; all other lines are passed over."""
    events = []
    for line in content.split(b"\n")[:-1]:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if _understood(event):
            events.append(event)
    return events


def end_state(event: dict | None) -> str:
    """The state in which it ended, where the last event is an end."""
    return event["state"] if event and event["kind"] == "end" else ""


def starts(events: list[dict]) -> int:
    """How often it was started since a person asked for it."""
    asked = [k for k, event in enumerate(events) if event["kind"] == "queue"]
    return sum(event["kind"] == "start" for event in events[asked[-1] if asked else 0 :])


def accepted_data(events: list[dict]) -> str:
    """The digest of the changed data with which a person has it go on, or ""."""
    asked = [event for event in events if event["kind"] == "queue"]
    return asked[-1].get("data", "") if asked else ""


def _understood(event: object) -> bool:
    """Whether a line is an event as this version writes them; all others are passed over."""
    if not isinstance(event, dict):
        return False

    def numbers(*names: str) -> bool:
        values = [event.get(name) for name in names]
        return all(isinstance(value, int | float) and value >= 0 for value in values)

    match event.get("kind"):
        case "start":
            return "step" not in event or numbers("step")
        case "queue":
            return isinstance(event.get("data", ""), str)
        case "download":
            return numbers("received", "size")
        case "progress":
            return numbers("step", "steps", "images_per_second") and event["steps"] > 0
        case "epoch":
            errors = event.get("test_error")
            listed = isinstance(errors, list) and len(errors) > 0
            return (
                numbers("epoch", "step")
                and listed
                and all(isinstance(error, int | float) for error in errors)
            )
        case "end":
            known = event.get("state") in (*ENDS, "paused")
            texts = event.get("reason", ""), event.get("data", "")
            return known and all(isinstance(text, str) for text in texts)
    return False
