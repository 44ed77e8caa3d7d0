"""Candidates, the choice on held-out images, and the table of what few parameters can do."""

import json

import numpy as np
import pytest

from densembed.cli.main import main
from densembed.experiments import frontier
from densembed.experiments.frontier import Candidate, Choice, best, budget_of, finalists, finding
from densembed.experiments.report import Settings
from densembed.figures.frontier import frontier_figure
from densembed.models.registry import build, parameter_count
from densembed.training.checkpoint import Checkpoint


def test_budgets_are_the_papers_rows():
    assert budget_of(136) == 136
    assert budget_of(137) == 360
    assert budget_of(6510) == 6510
    assert budget_of(6511) is None


def test_every_candidate_fits_a_budget_and_every_budget_has_some():
    names = {model for models in frontier.CANDIDATES.values() for model in models}
    assert len(names) == sum(map(len, frontier.CANDIDATES.values()))
    budgets = [budget_of(parameter_count(build(model))) for model in names]
    assert None not in budgets
    assert set(budgets) == set(frontier.BUDGETS)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The command on the embedded digits: two networks of densities and one CNN, short."""
    out = tmp_path_factory.mktemp("frontier")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            frontier,
            "CANDIDATES",
            {"densities": ("logistic-el-3", "gaussian-el-3"), "cnn": ("cnn-2-2-2",)},
        )
        patch.setattr(frontier, "SEARCH", {"learning_rate": (0.01, 0.05), "density_rate": (2.0,)})
        patch.setattr(frontier, "SCREEN_EPOCHS", 1)
        patch.setattr(frontier, "SEARCH_EPOCHS", 1)
        patch.setattr(frontier, "EPOCHS", 2)
        command = [
            "reproduce",
            "frontier",
            "--dataset",
            "digits",
            "--seeds",
            "2",
            "--processes",
            "1",
        ]
        command += ["--device", "cpu", "--out", str(out), "--gallery", str(out / "gallery")]
        assert main(command) == 0
        stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}
        kept = {path: stamp for path, stamp in stamps.items() if "gallery" not in path.parts}
        assert main(command) == 0  # nothing is trained twice
        assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())
    return json.loads((out / "frontier-digits.json").read_text()), out


def judged(path):
    """A checkpoint's error, once it is sure that held-out images gave it."""
    kept = Checkpoint.open(path)
    assert kept.header.provenance.train_images == 1438 - 287
    assert kept.header.provenance.test_images == 287
    return kept.errors[0]


def test_all_is_chosen_on_held_out_images(table):
    report, out = table
    for candidate in report["candidates"]:
        error = judged(out / f"digits/frontier/screen/{candidate['model']}.safetensors")
        assert candidate["held_out"] == pytest.approx(error, abs=1e-4)
    for entry in report["entries"]:
        errors = {
            rate: judged(out / f"digits/frontier/search/{rate}_2.0/{entry['model']}.safetensors")
            for rate in (0.01, 0.05)
        }
        assert entry["held_out"] == pytest.approx(min(errors.values()), abs=1e-4)
        assert errors[entry["recipe"]["learning_rate"]] == min(errors.values())


def test_only_the_best_of_a_budget_and_kind_is_judged(table):
    report, out = table
    own = [one for one in report["candidates"] if one["kind"] == "densities"]
    winner = min(own, key=lambda one: one["held_out"])
    assert [entry["model"] for entry in report["entries"]] == [winner["model"], "cnn-2-2-2"]
    searched = {path.stem for path in (out / "digits/frontier/search").rglob("*.safetensors")}
    assert searched == {winner["model"], "cnn-2-2-2"}
    folders = {path.name for path in (out / "digits/frontier/final").iterdir()}
    assert folders == {winner["model"], "cnn-2-2-2"}
    for entry in report["entries"]:
        paths = [out / f"digits/frontier/final/{entry['model']}/{k}.safetensors" for k in (0, 1)]
        kept = [Checkpoint.open(path) for path in paths]
        assert entry["errors"] == pytest.approx([one.errors[0] for one in kept], abs=1e-4)
        assert entry["mean"] == pytest.approx(np.mean(entry["errors"]), abs=1e-4)
        for one in kept:
            assert one.header.provenance.train_images == 1438
            assert one.config.learning_rate == entry["recipe"]["learning_rate"]
            assert one.config.epochs == 2
    assert (out / "gallery" / f"frontier-{winner['model']}-digits.safetensors").is_file()
    assert json.loads((out / "gallery/frontier-digits.json").read_text()) == report


def test_the_figure_and_the_words_are_of_the_report(table):
    report, out = table
    figure = frontier_figure(report)
    assert [list(trace.y) for trace in figure.data] == [[e["mean"]] for e in report["entries"]]
    text = finding(report)
    assert f"{best(report, 136)['mean']:.2f}" in text
    assert text in (out / "frontier-digits.md").read_text()


def choice(kind, model, parameters, error):
    candidate = Candidate(kind, model, parameters, budget_of(parameters))
    return Choice(candidate, {"learning_rate": 0.01}, error)


def test_finalists_are_the_lowest_of_each_budget_and_kind():
    a, b = choice("densities", "a", 130, 5.0), choice("densities", "b", 136, 4.0)
    c, d = choice("cnn", "c", 300, 3.0), choice("densities", "d", 300, 9.0)
    assert finalists([a, b, c, d]) == [b, c, d]


def test_a_smaller_network_may_be_the_best_of_a_larger_budget():
    entries = [
        {
            "kind": "densities",
            "model": "logistic-el-3",
            "parameters": 136,
            "mean": 3.0,
            "deviation": 0.1,
        },
        {
            "kind": "densities",
            "model": "logistic-el-5",
            "parameters": 360,
            "mean": 4.0,
            "deviation": 0.1,
        },
    ]
    table = {"entries": entries, "paper": [], "budgets": [136, 360]}
    assert best(table, 360) is entries[0]
    assert best(table, 100) is None
    assert finding(table).count("3.00 ± 0.10") == 2


def test_another_name_is_no_candidate(tmp_path, capsys):
    command = ["reproduce", "frontier", "--dataset", "digits", "--rows", "logistic-el-4"]
    assert main([*command, "--out", str(tmp_path)]) == 2
    assert "Unknown candidate" in capsys.readouterr().err


def test_the_rate_of_densities_is_searched_where_there_are_some(tmp_path):
    candidates = [
        Candidate("densities", "logistic-el-3", 136, 136),
        Candidate("mlp", "mlp-3", 2395, 3160),
    ]
    settings = Settings(dataset="digits", seeds=1, out=tmp_path)
    configs = [job.config for job in frontier.search_jobs(candidates, settings)]
    rates = {
        model: {config.density_rate for config in configs if config.model == model}
        for model in ("logistic-el-3", "mlp-3")
    }
    assert rates["logistic-el-3"] == set(frontier.SEARCH["density_rate"])
    assert len(rates["mlp-3"]) == 1
    candidates = {config.learning_rate for config in configs if config.model == "mlp-3"}
    assert candidates == set(frontier.SEARCH["learning_rate"])
