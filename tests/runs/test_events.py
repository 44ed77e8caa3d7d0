"""Lines of events.jsonl that are no events, as a person or a damaged disk may leave them."""

import json

import pytest

from densembed.figures.curves import Course, course_figure
from densembed.runs import events
from densembed.runs.log_lines import log_lines
from densembed.runs.time_left import seconds_after
from densembed.training.config import RunConfig

PROGRESS = {"kind": "progress", "step": 5, "steps": 9, "images_per_second": 1, "time": 1}
EPOCH = {"kind": "epoch", "epoch": 1, "step": 5, "test_error": [5.0], "train_loss": [1], "time": 1}
MANY = 10**400
ODD = [
    PROGRESS | {"step": MANY},
    PROGRESS | {"steps": MANY},
    PROGRESS | {"step": 10},
    PROGRESS | {"time": "noon"},
    {key: value for key, value in PROGRESS.items() if key != "time"},
    EPOCH | {"epoch": MANY},
    EPOCH | {"test_error": [MANY]},
    EPOCH | {"train_loss": "small"},
    EPOCH | {"train_loss": ["small"]},
    EPOCH | {"train_loss": [1, 2]},
    EPOCH | {"time": None},
    {"kind": "start", "step": MANY, "time": 1},
    {"kind": "start", "step": 0},
    {"kind": "download", "received": MANY, "size": 1, "time": 1},
]


@pytest.mark.parametrize("odd", ODD)
def test_a_line_with_an_impossible_value_is_skipped(tmp_path, odd):
    path = tmp_path / "events.jsonl"
    lines = [{"kind": "start", "step": 0, "time": 0}, PROGRESS, odd, EPOCH]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = events.read(path)
    assert [event["kind"] for event in read] == ["start", "progress", "epoch"]
    assert events.last(path) == EPOCH


def test_numbers_of_many_digits_that_nothing_needs(tmp_path):
    path = tmp_path / "events.jsonl"
    odd = PROGRESS | {"loss": MANY, "learning_rate": 1}, EPOCH | {"train_loss": [MANY]}
    path.write_text("".join(json.dumps(line) + "\n" for line in odd))
    read = events.read(path)
    assert len(log_lines(read)) == 1
    assert seconds_after(read, RunConfig(model="linear", batch_size=8)) == 4 * 8
    course_figure(Course.of_events(read)).to_json()
