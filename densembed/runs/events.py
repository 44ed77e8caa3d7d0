"""The events of a run: events.jsonl, one line per event, oldest first."""

import json
import os
import time
from math import inf, isfinite
from pathlib import Path

MAX_EVENTS_BYTES = 64 * 2**20
TAIL_BYTES = 2**16
ENDS = ("done", "stopped", "diverged", "failed")


def append(path: Path, kind: str, /, **values) -> None:
    line = json.dumps({"kind": kind, "time": time.time(), **values}) + "\n"
    with open(path, "a+b") as file:
        if file.tell():  # a truncated last line must not damage this one
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode())


def read(path: Path) -> list[dict]:
    """All events.

    An unfinished last line is left out. So is the work of a process that died beyond the step from
    which the next process resumed, as that work was repeated.
    """
    try:
        if path.stat().st_size > MAX_EVENTS_BYTES:
            return []
        content = path.read_bytes()
    except OSError:
        return []
    events: list[dict] = []
    for event in _parsed(content):
        if event["kind"] == "start":
            step = event.get("step", 0)
            events = [other for other in events if other.get("step", 0) <= step]
        events.append(event)
    return events


def since(path: Path, offset: int) -> tuple[list[dict], int]:
    """The events of complete lines after `offset` bytes, and the offset of the next event."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            content = file.read()
    except OSError:
        return [], offset
    return _parsed(content), offset + content.rfind(b"\n") + 1


def last(path: Path) -> dict | None:
    """The last event, without reading the whole file: a list of runs needs many of these."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            events = _parsed(file.read())
    except OSError:
        return None
    if not events and size > TAIL_BYTES:
        events = read(path)
    return events[-1] if events else None


def _parsed(content: bytes) -> list[dict]:
    """The events of complete lines; all other lines are skipped."""
    events = []
    for line in content.split(b"\n")[:-1]:
        try:
            event = json.loads(line, parse_int=_number)
        except (ValueError, RecursionError):
            continue
        if _is_event(event):
            events.append(event)
    return events


def _number(digits: str) -> int | float:
    """A whole number; one of many digits, which no count has, as a float that may be infinite."""
    return int(digits) if len(digits) < 16 else float(digits)


def end_state(event: dict | None) -> str:
    """The final state if the last event of a run is an end, otherwise ""."""
    return event["state"] if event and event["kind"] == "end" else ""


def starts(events: list[dict]) -> int:
    """How often the run was started since the user's last request."""
    queued = [k for k, event in enumerate(events) if event["kind"] == "queue"]
    return sum(event["kind"] == "start" for event in events[queued[-1] if queued else 0 :])


def accepted_data(events: list[dict]) -> str:
    """The digest of the changed data with which the user agreed to continue, or ""."""
    queued = [event for event in events if event["kind"] == "queue"]
    return queued[-1].get("data", "") if queued else ""


def _is_event(event: object) -> bool:
    """Whether a JSON value has the form of an event."""
    if not isinstance(event, dict):
        return False

    def numbers(*names: str) -> bool:
        values = [event.get(name) for name in names]
        return all(isinstance(value, int | float) and 0 <= value < inf for value in values)

    match event.get("kind"):
        case "start":
            return numbers("time") and ("step" not in event or numbers("step"))
        case "queue":
            return isinstance(event.get("data", ""), str)
        case "data":
            counts = event.get("before"), event.get("now")
            return (
                numbers("epochs")
                and isinstance(event.get("changes"), str)
                and all(isinstance(count, int) and count > 0 for count in counts)
            )
        case "download":
            return numbers("received", "size")
        case "progress":
            values = numbers("time", "step", "steps", "images_per_second")
            return values and 0 < event["steps"] >= event["step"]
        case "epoch":
            errors, losses = event.get("test_error"), event.get("train_loss") or []
            if not isinstance(errors, list) or not errors or not isinstance(losses, list):
                return False
            return (
                numbers("time", "epoch", "step")
                and all(isinstance(error, int | float) and isfinite(error) for error in errors)
                and all(isinstance(loss, int | float) for loss in losses)
                and len(losses) in (0, len(errors))
            )
        case "end":
            texts = event.get("reason", ""), event.get("data", "")
            return event.get("state") in (*ENDS, "paused") and all(
                isinstance(text, str) for text in texts
            )
    return False
