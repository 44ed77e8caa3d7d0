"""The log of a run: one line of text per event."""

from datetime import datetime

from densembed.text import in_seconds
from densembed.training.errors import Errors

SHOWN = 200
VERSIONS = ("torch", "densembed")


def log_lines(events: list[dict]) -> list[str]:
    """One line per event except progress reports, oldest first; the last `SHOWN` of them."""
    lines = [f"{_timestamp(event)}  {line}" for event in events if (line := _line(event))]
    return lines[-SHOWN:]


def _timestamp(event: dict) -> str:
    try:
        return f"{datetime.fromtimestamp(event['time']):%Y-%m-%d %H:%M:%S}"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return "—"


def _line(event: dict) -> str:
    match event["kind"]:
        case "queue":
            return "resume requested" + (" with the changed data" if event.get("data") else "")
        case "start":
            return f"started at step {event.get('step', 0):,}{_machine(event.get('path'))}" + (
                f"; changed: {event['changed']}" if event.get("changed") else ""
            )
        case "data":
            return data_line(event)
        case "epoch":
            seconds = event.get("seconds")
            took = f", {in_seconds(seconds)}" if isinstance(seconds, int | float) else ""
            return (
                f"epoch {event['epoch']:,}: test error {Errors(event['test_error']).text()}{took}"
            )
        case "end":
            state = "training diverged" if event["state"] == "diverged" else event["state"]
            return ": ".join(filter(None, (state, event.get("reason", ""))))
    return ""


def data_line(event: dict) -> str:
    """What changed in the data set during the run, without a full stop."""
    text = f"after epoch {event['epochs']:,}, the data set changed: {event['changes']}"
    if event["before"] == event["now"]:
        return text
    return (
        f"{text}. Since then, steps are counted as if every epoch had had {event['now']:,} steps "
        f"instead of {event['before']:,}"
    )


def _machine(path: object) -> str:
    """ ": CPU (1 thread, AVX2, Numba 0.68.1), torch 2.14.1", …, from `resume.code_path`."""
    if not isinstance(path, dict) or not path:
        return ""
    device = path.get("device", "?")
    if device == "cpu":
        threads = f"{path.get('threads', '?')} thread{'' if path.get('threads') == '1' else 's'}"
        instructions = str(path.get("instructions", "?")).rpartition(" ")[2]
        kernels = path.get("kernels", "none")
        parts = [threads, instructions, *([str(kernels)] if kernels != "none" else [])]
        device = f"CPU ({', '.join(parts)})"
    versions = (f"{name} {path[name]}".split("+")[0] for name in VERSIONS if name in path)
    return ": " + ", ".join((str(device), *versions))
