"""The search for the tuned recipe: what is tried, and how it is judged."""

import pytest

from densembed.cli.main import main
from densembed.data import load_dataset
from densembed.experiments import search
from densembed.experiments.recipes import RECIPES
from densembed.experiments.report import Settings
from densembed.runs.jobs import hold_out
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, train


def test_the_tuned_recipe_was_a_candidate():
    candidates = search.candidates()
    assert RECIPES["tuned"] in candidates
    assert candidates == search.candidates()  # the draws are repeatable
    assert len(candidates) == 12 + 4 + 64 + len(search.NEAR)
    for change in candidates:
        assert RunConfig(**change).location_start == "grid"


def test_the_colour_recipe_was_a_candidate():
    candidates = search.candidates(channels=3)
    assert candidates[0] == RECIPES["tuned"]
    assert RECIPES["colour"] in candidates
    assert len({RunConfig(**change) for change in candidates}) == len(candidates)


def test_networks_in_the_frame_of_the_mass_have_their_own_candidates():
    candidates = search.candidates(models=["logistic-el-mnn-mass-10-5"])
    assert candidates[0] == RECIPES["tuned"]
    assert RECIPES["mass"] in candidates
    assert len({RunConfig(**change) for change in candidates}) == len(candidates)
    for others in (["logistic-el-mnn-mass-10-5", "linear"], ["linear"], ["logistic-el-3"]):
        assert search.candidates(models=others) == search.candidates()


def test_candidates_are_judged_on_held_out_images(tmp_path, monkeypatch, capsys):
    tried = [{"learning_rate": rate, "epochs": 2} for rate in (1e-6, 0.05)]
    monkeypatch.setattr(search, "candidates", lambda channels, models: tried)
    arguments = ["--dataset", "digits", "--rows", "logistic-el-3", "--seeds", "1"]
    arguments += ["--device", "cpu", "--processes", "1"]
    assert main(["reproduce", "search", *arguments, "--out", str(tmp_path)]) == 0
    errors = []
    for change in tried:
        config = RunConfig(model="logistic-el-3", device="cpu", **change)
        events = train(config, hold_out(load_dataset("digits")))
        errors.append([e.test_error[0] for e in events if isinstance(e, Epoch)][-1])
    assert errors[1] < errors[0]
    lines = (tmp_path / "search-digits.md").read_text().splitlines()
    assert lines[4:] == [
        f"| learning_rate 0.05, epochs 2 | {errors[1]:.2f} |",
        f"| learning_rate 1e-06, epochs 2 | {errors[0]:.2f} |",
    ]
    assert "held-out" in capsys.readouterr().out


def test_a_training_that_did_not_finish_counts_as_all_wrong(tmp_path):
    settings = Settings(dataset="digits", rows=("linear",), seeds=1, out=tmp_path)
    report = search.Search().report(settings)
    assert all(row["errors"] == [100.0] for row in report["rows"])
    assert search.Search().markdown(report).splitlines()[-1].endswith("| 100.00 |")
    (jobs,) = search.Search().jobs(settings)
    assert all(job.held_out for job in jobs)
    assert jobs[0].config.learning_rate == pytest.approx(0.005)
