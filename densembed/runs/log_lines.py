"""What happened in a run, in lines for a person."""

from datetime import datetime

from densembed.training.errors import Errors

SHOWN = 200


def log_lines(events: list[dict]) -> list[str]:
    """A line for each event but reports of progress, oldest first, the last `SHOWN` of them."""
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
            return "asked to go on" + (" with the changed data" if event.get("data") else "")
        case "start":
            path = event.get("path")
            where = ", ".join(map(str, path.values())) if isinstance(path, dict) else ""
            changed = f"; changed since: {event['changed']}" if event.get("changed") else ""
            return (
                f"process {event.get('process', '?')} trains from step {event.get('step', 0):,}"
                f"{' on ' if where else ''}{where}{changed}"
            )
        case "epoch":
            seconds = event.get("seconds")
            took = f", {seconds:.1f} s" if isinstance(seconds, int | float) else ""
            return (
                f"epoch {event['epoch']:,}: test error {Errors(event['test_error']).text()}{took}"
            )
        case "end":
            return ": ".join(filter(None, (event["state"], event.get("reason", ""))))
    return ""
