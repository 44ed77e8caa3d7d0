"""How fast runs trained on this machine, from which the duration of new ones is estimated."""

import contextlib
import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from densembed.runs.folder import Run, runs_folder
from densembed.runs.time_left import since_start
from densembed.training.config import RunConfig

FILE = "speed.jsonl"
"""The file with all measurements, in the folder of runs, so that they outlive their runs."""
MAX_BYTES = 2**18
LEAST_STEPS = 5
RECENT = 3
"""Number of measurements whose median is used."""
ALIKE = ("model", "dataset", "grid", "batch_size", "seeds", "device", "compile")
"""The settings that determine the time per step."""
EVALUATION = 1 / 3
"""Time of an image's forward pass in a training step."""


@dataclass(frozen=True)
class Speed:
    """What was measured of a run: seconds per step, evaluations and saving included.

    `start` are the seconds from the start of the process, or from the end of a download, to the
    first step.

    Raises ValueError for impossible numbers, as they would spoil every later estimate.
    """

    config: RunConfig
    per_step: float
    start: float

    def __post_init__(self) -> None:
        if not (0 < self.per_step < math.inf and 0 <= self.start < math.inf):
            raise ValueError("These are no durations.")


def measure(run: Run) -> Speed | None:
    """The speed of a run since its last start; None with too few steps.

    None, too, if the clock was set back meanwhile: the times of the events then measure nothing.
    """
    config, events = run.config, since_start(run.events())
    points = [event for event in events if event["kind"] in ("progress", "epoch")]
    if config is None or not points or events[0]["kind"] != "start":
        return None
    first, last = points[0], points[-1]
    steps = last["step"] - first["step"]
    begun = [event["time"] for event in events if event["kind"] in ("start", "download")][-1]
    times = [events[0]["time"], begun, *(point["time"] for point in points)]
    if steps < LEAST_STEPS or times != sorted(times) or first["time"] == last["time"]:
        return None
    return Speed(config, (last["time"] - first["time"]) / steps, first["time"] - begun)


def record(run: Run) -> None:
    """Add the speed of a run to the measurements. A folder that is full is no error."""
    speed = measure(run)
    if speed is None:
        return
    line = {
        "machine": platform.node(),
        "config": speed.config.model_dump(),
        "per_step": speed.per_step,
        "start": speed.start,
    }
    with contextlib.suppress(OSError):
        path = run.path.parent / FILE
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            path.write_bytes(path.read_bytes()[-MAX_BYTES // 2 :])
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def recorded(root: Path | None = None) -> list[Speed]:
    """The measurements of this machine, oldest first; damaged lines are skipped."""
    speeds = []
    try:
        text = ((root or runs_folder()) / FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    for line in text.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, ValidationError):
            entry = json.loads(line)
            if entry["machine"] == platform.node():
                config = RunConfig.model_validate(entry["config"])
                speeds.append(Speed(config, float(entry["per_step"]), float(entry["start"])))
    return speeds


def expected_seconds(
    config: RunConfig,
    steps: int,
    tested: float,
    speeds: Sequence[Speed],
    timed: Callable[[RunConfig], float | None],
) -> float:
    """Expected duration of a training.

    If earlier runs were alike, their time per step is used. Otherwise a few steps are timed here,
    and scaled as the recent runs took longer than such timed steps.

    Args:
        steps: number of training steps.
        tested: number of test images per training image.
        speeds: of earlier runs, oldest first.
        timed: seconds per step of a few steps, None where that cannot be timed.
    """
    alike = [speed for speed in speeds if _key(speed.config) == _key(config)][-RECENT:]
    if alike:
        return _least_start(alike) + steps * median(speed.per_step for speed in alike)
    near = [speed for speed in speeds if speed.config.device == config.device]
    # A run of the same model is the best measure: its steps have the same parts.
    same = [speed for speed in near if speed.config.model == config.model]
    factors = [
        speed.per_step / own for speed in (same or near)[-RECENT:] if (own := timed(speed.config))
    ]
    factor = median(factors) if factors else 1 + EVALUATION * tested
    return _least_start(near[-RECENT:]) + steps * factor * (timed(config) or 0.0)


def _key(config: RunConfig) -> tuple:
    return tuple(getattr(config, name) for name in ALIKE)


def _least_start(speeds: Sequence[Speed]) -> float:
    """The seconds to the first step without what is done once, such as to compile the kernels."""
    return min((speed.start for speed in speeds), default=0.0)
