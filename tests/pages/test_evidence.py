"""The Paper page's sections beyond Table 1: each with its results, none without."""

import json
import shutil
from statistics import mean, stdev

import pytest

from densembed.experiments import families, frames, frontier, resolution, robustness, signals
from densembed.experiments.frontier import Candidate, Choice
from densembed.experiments.paper import TABLES
from densembed.experiments.report import Settings
from densembed.experiments.reproduce import result, table_report
from densembed.functional.densities import FAMILIES
from densembed.runs.jobs import Job, together
from densembed.training.config import RunConfig
from tests.pages.conftest import ROOT, charts, settle, values, visit

SHIPPED = ROOT / "checkpoints" / "paper"
HEADINGS = {
    "table2": "Table 2",
    "families": "Which density?",
    "frontier": "How low can the error get with few parameters?",
    "robustness": "Does the field follow the digit?",
    "frames": "What if the densities follow the ink?",
    "resolution": "One network, any resolution",
    "signals": "One axis",
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory, trained, digits):
    """Reports of the form that the commands write, from two small networks."""
    folder = tmp_path_factory.mktemp("reports")
    jobs = [
        Job(
            RunConfig(model=f"{family}-el-mnn-8-4", epochs=1, device="cpu"),
            folder / f"{family}.safetensors",
        )
        for family in ("logistic", "laplace")
    ]
    for job in jobs:
        together([job])
    settings = Settings(
        dataset="digits", seeds=1, out=folder, recipe="tuned", rows=("logistic-el-3",)
    )
    for batch in frames.Frames().jobs(settings):
        for job in batch:
            together([job])
    results = [
        result(row, [row.error - 1, row.error + 0.5], parameters=row.parameters, seconds=2.0)
        for row in TABLES["cifar10"][:3]
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "FAMILIES", {k: FAMILIES[k] for k in ("logistic", "laplace")})
        patch.setattr(families, "TIMED", 1)
        patch.setattr(robustness, "FOLLOWED", 10)
        patch.setattr(frames, "FOLLOWED", 10)
        for name, value in (("MODELS", ()), ("MODEL", "logistic-el-3"), ("SIDES", (7, 14, 28))):
            patch.setattr(resolution, name, value)
        for batch in resolution.Resolution().jobs(settings):
            for job in batch:
                together([job])
        own = {
            "plain CNN, at most 2 parameters": ("cnn-2",),
            "stages, at most 2 parameters": ("stages-2-logistic-el-2",),
            "fixed densities": ("logistic-el-3",),
        }
        patch.setattr(signals, "CANDIDATES", own)
        patch.setattr(signals, "RECIPES", ({"epochs": 1, "learning_rate": 0.01},))
        series = Settings(dataset="mnist1d", seeds=2, out=folder)
        for batch in signals.Signals().jobs(series):
            for job in batch:
                together([job])
        choice = Choice(
            Candidate("densities", jobs[0].config.model, 3018, 3160),
            {"learning_rate": 0.01, "weight_decay": 0.0},
            9.0,
        )
        return {
            "table2-cifar-10-jpeg-tuned": table_report(
                results, dataset="CIFAR-10 (JPEG)", recipe="tuned"
            ),
            "families-digits-paper": families.families_report(
                jobs, digits, title="digits", recipe="paper"
            ),
            "frontier-digits": frontier.frontier_report(
                [choice], [choice], jobs[:1], title="digits"
            ),
            "robustness-digits": robustness.robustness_report(
                {"logistic-el-mnn-4-2": trained}, digits, title="digits"
            ),
            "frames-digits-tuned": frames.Frames().report(settings),
            "resolution-digits-tuned": resolution.Resolution().report(settings),
            "signals-mnist1d": signals.Signals().report(series),
        }


@pytest.fixture
def page(gallery_root, runs_root):
    """A gallery with the shipped tables, to which reports are added."""
    shutil.copy(SHIPPED / "table1-mnist-tuned.json", gallery_root)

    def opened(*added: tuple[str, dict]):
        for name, report in added:
            (gallery_root / f"{name}.json").write_text(json.dumps(report))
        return settle(visit("paper"))

    return opened


def shown(app) -> set[str]:
    titles = [title.value for title in app.header]
    return {key for key, words in HEADINGS.items() if any(words in title for title in titles)}


def test_without_results_there_are_no_sections(page):
    assert shown(page()) == set()


def test_each_section_comes_with_its_own_results(page, reports):
    there = set()
    for name, report in reports.items():
        there.add(name.partition("-")[0])
        assert shown(page((name, report))) == there


def test_sections_show_their_reports(page, reports):
    app = page(*reports.items())
    drawn, text = charts(app), " ".join(part.value for part in app.markdown)
    rows = reports["table2-cifar-10-jpeg-tuned"]["rows"]
    assert list(values(drawn["table2"], "x", 1)) == [row["mean"] for row in rows]
    assert "Table 2: CIFAR-10 (JPEG)" in [title.value for title in app.header]
    assert "All **3** models" in text
    # 0.25 points, less than the deviations: nothing follows from the linear model.
    assert "compressed as JPEG" in text
    assert "set-ups" not in text
    table = reports["families-digits-paper"]
    assert families.finding(table) in text
    moving = families.of_kind(table, "moving")
    assert list(values(drawn["families-errors-moving"], "x")) == [row["mean"] for row in moving]
    assert "families-moving" in drawn
    assert "families-fixed" not in drawn
    entry = reports["frontier-digits"]["entries"][0]
    assert list(values(drawn["frontier"], "y", 0)) == [entry["mean"]]
    assert f"{entry['mean']:.2f}" in text
    # One training has no deviation.
    assert drawn["frontier"]["data"][0]["error_y"]["array"] == [None]
    assert drawn["frontier"]["data"][0]["customdata"][0][1] == f"{entry['mean']:.2f}"
    assert drawn["families-errors-moving"]["data"][0]["error_x"]["array"] == [None, None]
    assert any("Recipe paper, 1 seed, " in part.value for part in app.caption)
    assert robustness.finding(reports["robustness-digits"]) in text
    assert {"following", "robustness"} <= drawn.keys()
    table = reports["frames-digits-tuned"]
    assert frames.finding(table) in text
    (caption,) = (part.value for part in app.caption if "reproduce frames" in part.value)
    assert "(8×8, upscaled). The paper's errors are of MNIST. No network" in caption
    numbers = app.dataframe[-2].value
    assert list(numbers["model"]) == [
        "Logistic-EL, B = 3",
        "Logistic-EL, frame of the mass, B = 3",
    ]
    for row, shown in zip(table["rows"], numbers.to_dict("records"), strict=True):
        assert shown["ours, test error %"] == f"{row['mean']:.2f}"
        assert shown["paper, test error %"] == "17.80 ± 0.93"
        assert shown["scale 0.5"] == f"{row['scale']['0.5']:.2f}"
    (row,) = reports["resolution-digits-tuned"]["rows"]
    errors = [row["by_side"][side]["mean"] for side in ("7", "14", "28")]
    assert list(values(drawn["resolution"], "y")) == errors
    assert f"It is {errors[0]:.2f} % on 7 × 7." in text
    for error in errors[1:]:
        assert f"{error:.2f}" in text
    table = reports["signals-mnist1d"]
    plain, stages, fixed = ([100 - error for error in row["errors"]] for row in table["rows"])
    assert (
        f"Test accuracy with at most 2 parameters: **{mean(stages):.2f} ± {stdev(stages):.2f} %** "
        f"(One adaptive stage of 2 maps, Logistic-EL, B = 2, {table['rows'][1]['parameters']}); "
        f"a plain CNN: {mean(plain):.2f} ± {stdev(plain):.2f} %."
    ) in text
    assert f"without stages: fixed densities: {mean(fixed):.2f} ± {stdev(fixed):.2f} %." in text
    drawn_accuracies = list(values(drawn["signals"], "y", 0))
    assert drawn_accuracies == pytest.approx([mean(stages), mean(fixed)])
    (said,) = (part.value for part in app.caption if "reproduce frames" in part.value)
    assert "`python -m densembed reproduce frames --recipe tuned --seeds 1`" in said
