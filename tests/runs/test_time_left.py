"""Waits that a person can work out on paper."""

import pytest

from densembed.runs import Run
from densembed.runs.time_left import seconds_after, seconds_left, waiting_seconds
from densembed.training.config import RunConfig

CONFIG = RunConfig(model="logistic-el-2", batch_size=10, seeds=2)


@pytest.mark.parametrize(
    ("lefts", "at_once", "expected"),
    [
        ([], 1, 0),
        ([5], 1, 5),
        ([5, 7], 1, 12),
        ([5, 7], 2, 5),
        ([5, 7, 1], 2, 6),  # the third follows the first
        ([5, 7], 3, 0),
        ([10, 1, 1, 1], 2, 3),
    ],
)
def test_waiting_seconds(lefts, at_once, expected):
    assert waiting_seconds(lefts, at_once) == expected


def test_what_is_left_at_the_last_speed(runs_root):
    run = Run.create(CONFIG)
    assert seconds_left(run, lambda config: 42.0 if config == CONFIG else 0.0) == 42.0
    run.append("progress", step=5, steps=105, images_per_second=999.0)
    run.append("progress", step=55, steps=105, images_per_second=100.0)
    run.append("epoch", epoch=1, step=55, test_error=[1.0, 2.0])
    assert seconds_left(run, lambda _: 0.0) == 50 * 10 * 2 / 100
    run.append("progress", step=56, steps=105, images_per_second=0.0)
    assert seconds_left(run, lambda _: 42.0) == 42.0
    assert seconds_after(run.events(), CONFIG) is None


def test_what_is_left_is_measured_with_evaluations():
    """Ten steps per second, and two seconds of evaluation after every 50 steps."""
    events = [{"kind": "start", "time": 0.0, "step": 0}]
    for step in range(1, 301):
        time = step / 10 + 2 * (step // 50)
        events.append(
            {
                "kind": "progress",
                "time": time,
                "step": step,
                "steps": 1000,
                "images_per_second": 1.0,
            }
        )
        if step % 50 == 0:
            events.append({"kind": "epoch", "time": time, "step": step})
    assert seconds_after(events, CONFIG) == pytest.approx(700 * (0.1 + 2 / 50), rel=0.1)
    again = [*events, {"kind": "start", "time": 900.0, "step": 300}]
    assert seconds_after(again, CONFIG) is None  # the time between two processes does not count
