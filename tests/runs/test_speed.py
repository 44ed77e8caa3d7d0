"""Durations that are learnt from earlier runs, against numbers worked out on paper."""

import json
import math
import platform

import pytest

from densembed.runs import Run, execute
from densembed.runs.speed import FILE, Speed, expected_seconds, measure, record, recorded
from densembed.training.config import RunConfig

CONFIG = RunConfig(model="logistic-el-2", batch_size=10)


def test_a_run_is_measured_from_its_last_start(runs_root, monkeypatch):
    run = Run.create(CONFIG)
    clock = iter([100.0, 103.0, 104.0, 200.0, 202.0, 204.0, 207.0])
    monkeypatch.setattr("densembed.runs.events.time.time", lambda: next(clock))
    run.append("start", process=1, step=0)
    for step in (1, 50):
        run.append("progress", step=step, steps=99, images_per_second=1.0)
    run.append("start", process=2, step=50)
    run.append("progress", step=51, steps=99, images_per_second=1.0)
    assert measure(run) is None  # too few steps
    run.append("progress", step=91, steps=99, images_per_second=1.0)
    run.append("epoch", epoch=1, step=91, test_error=[1.0])
    assert measure(run) == Speed(CONFIG, (207 - 202) / 40, 2.0)
    record(run)
    assert recorded() == [measure(run)]


def test_a_download_is_no_part_of_the_start(runs_root, monkeypatch):
    """It was added to every later estimate, as were the seconds of the first compilation."""
    run = Run.create(CONFIG)
    clock = iter([100.0, 101.0, 160.0, 163.0, 183.0])
    monkeypatch.setattr("densembed.runs.events.time.time", lambda: next(clock))
    run.append("start", process=1, step=0)
    for received in (0, 9):
        run.append("download", received=received, size=9)
    for step in (1, 41):
        run.append("progress", step=step, steps=99, images_per_second=1.0)
    assert measure(run) == Speed(CONFIG, 20 / 40, 3.0)
    first, second = Speed(CONFIG, 0.5, 33.0), Speed(CONFIG, 0.5, 3.0)
    assert expected(CONFIG, first, second) == 3 + 50


def test_a_finished_run_is_recorded_and_outlived(runs_root):
    run = Run.create(CONFIG.model_copy(update={"epochs": 2, "batch_size": 100, "device": "cpu"}))
    assert execute(str(run.path)) == "done"
    (speed,) = recorded()
    assert speed.config == run.config
    assert speed.per_step > 0
    run.delete()
    assert recorded() == [speed]


def test_damaged_lines_and_other_machines_are_left_out(runs_root):
    runs_root.mkdir(exist_ok=True)
    line = {"machine": "elsewhere", "config": {}, "per_step": 1.0, "start": 0.0}
    (runs_root / FILE).write_text(f"{json.dumps(line)}\nnot json\n[1]\n{{}}\n")
    assert recorded() == []


def timed(config: RunConfig) -> float:
    """A step of a timed batch: a millisecond per image, and ten for the large model."""
    return config.batch_size * (0.01 if config.model == "logistic-el-9" else 0.001)


def expected(config: RunConfig, *speeds: Speed) -> float:
    return expected_seconds(config, 100, 0.3, speeds, timed)


def test_the_expected_duration():
    other = CONFIG.model_copy(update={"batch_size": 20, "epochs": 7, "seed": 3})
    large = CONFIG.model_copy(update={"model": "logistic-el-9"})
    assert expected(CONFIG) == pytest.approx(100 * 0.01 * 1.1)
    # Alike: epochs, seed and learning rate do not change a step.
    alike = Speed(CONFIG.model_copy(update={"seed": 5, "epochs": 9}), 0.5, 2.0)
    assert expected(CONFIG, alike) == 2 + 50
    # Another batch: twice as many images, at the same share of the timed speed.
    assert expected(other, alike) == pytest.approx(2 + 100)
    # The same model counts, if there is one, and of several the median.
    slow = [Speed(large, factor * timed(large), 4.0) for factor in (2, 3, 9)]
    assert expected(large.model_copy(update={"batch_size": 30}), alike, *slow) == pytest.approx(
        4 + 100 * 3 * 0.3
    )
    assert expected(other, *slow) == pytest.approx(4 + 100 * 3 * 0.02)


def test_a_clock_that_is_set_back_measures_nothing(runs_root, monkeypatch):
    """Negative seconds per step made every later estimate of the model negative."""
    for times in ([1000.0, 1001.0, 400.0], [1000.0, 400.0, 500.0], [1000.0, 1010.0, 400.0, 1020.0]):
        run = Run.create(CONFIG)
        clock = iter(times)
        monkeypatch.setattr("densembed.runs.events.time.time", lambda clock=clock: next(clock))
        run.append("start", process=1, step=0)
        for step in range(1, 100 * (len(times) - 1), 100):
            run.append("progress", step=step, steps=999, images_per_second=1.0)
        assert measure(run) is None
        record(run)
    assert recorded() == []


def test_impossible_measurements_of_earlier_versions_are_left_out(runs_root):
    runs_root.mkdir(exist_ok=True)
    possible = Speed(CONFIG, 0.25, 0.0)
    pairs = [(-0.5, 1.0), (0.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (0.5, -1.0), (0.25, 0.0)]
    common = {"machine": platform.node(), "config": CONFIG.model_dump()}
    lines = [json.dumps(common | {"per_step": one, "start": start}) for one, start in pairs]
    (runs_root / FILE).write_text("\n".join(lines))
    assert recorded() == [possible]
