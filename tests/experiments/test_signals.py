"""The experiment with signals: what is chosen on which signals, and the table."""

import json
from statistics import mean, stdev

import pytest
import torch

from densembed.cli.main import main
from densembed.data import load_dataset
from densembed.experiments import signals
from densembed.models.registry import build, parameter_count
from densembed.training.checkpoint import Checkpoint

FAST, SLOW = {"epochs": 2, "learning_rate": 0.05}, {"epochs": 1, "learning_rate": 1e-6, "shift": 1}


def command(out, *arguments):
    place = ["--out", str(out), "--device", "cpu", "--processes", "1"]
    return ["reproduce", "signals", *arguments, *place]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The command on MNIST-1D with two rows of small networks, trained for one or two epochs."""
    out = tmp_path_factory.mktemp("signals")
    with pytest.MonkeyPatch.context() as patch:
        rows = {"linear": ("linear",), "stages": ("stages-2-logistic-el-2", "logistic-el-3")}
        patch.setattr(signals, "CANDIDATES", rows)
        patch.setattr(signals, "RECIPES", (SLOW, FAST))
        assert main(command(out, "--seeds", "3")) == 0
        stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}
        assert main(command(out, "--seeds", "3")) == 0  # nothing is trained twice
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")} == stamps
    return json.loads((out / "signals-mnist1d.json").read_text()), out / "mnist1d/signals"


def held_out_accuracy(folder, model):
    """The mean over the seeds, once it is sure that the last 800 training signals gave it."""
    paths = sorted((folder / model).glob("*.safetensors"))
    assert len(paths) == signals.SEARCH_SEEDS
    train = load_dataset("mnist1d").train
    correct = []
    for path in paths:
        checkpoint = Checkpoint.open(path)
        assert checkpoint.header.provenance.train_images == 3200
        logits = checkpoint.model()(train.images[-800:])
        correct += (logits.argmax(1) == train.labels[-800:]).double().tolist()
    return 100 * mean(correct)


def test_networks_and_recipes_are_chosen_on_held_out_signals(table):
    report, folder = table
    assert {choice["model"] for choice in report["screened"]} == {
        "linear",
        "stages-2-logistic-el-2",
        "logistic-el-3",
    }
    for choice in report["screened"]:
        expected = held_out_accuracy(folder / "search-0", choice["model"])
        assert choice["accuracy"] == pytest.approx(expected, abs=0.13)  # a signal on a border
        assert choice["recipe"] == SLOW
    stages = [choice for choice in report["screened"] if choice["row"] == "stages"]
    winner = max(stages, key=lambda choice: choice["accuracy"])["model"]
    searched = {path.name for path in (folder / "search-1").iterdir()}
    assert searched == {"linear", winner}
    assert [row["model"] for row in report["rows"]] == ["linear", winner]
    for row in report["rows"]:
        tried = [choice for choice in report["tried"] if choice["model"] == row["model"]]
        assert sorted(choice["recipe"]["epochs"] for choice in tried) == [1, 2]
        assert row["accuracy"] == max(choice["accuracy"] for choice in tried)


def test_only_the_chosen_ones_see_the_test_signals(table):
    report, folder = table
    test = load_dataset("mnist1d").test
    finals = {path.name for path in (folder / "final").iterdir()}
    assert finals == {row["model"] for row in report["rows"]}
    for row in report["rows"]:
        members = [
            Checkpoint.open(folder / "final" / row["model"] / f"{seed}.safetensors")
            for seed in range(3)
        ]
        errors = []
        for checkpoint in members:
            assert checkpoint.header.provenance.train_images == 4000
            assert checkpoint.config.model_dump().items() >= row["recipe"].items()
            model = build(row["model"], (1, 40))
            model.load_state_dict(checkpoint.state())
            with torch.inference_mode():
                wrong = model(test.images).argmax(1) != test.labels
            errors.append(100 * wrong.double().mean().item())
        assert row["errors"] == pytest.approx(errors, abs=0.11)  # a signal on a border
        assert row["mean"] == pytest.approx(mean(row["errors"]), abs=1e-3)
        assert row["deviation"] == pytest.approx(stdev(row["errors"]), abs=1e-3)
        assert row["parameters"] == parameter_count(build(row["model"], (1, 40)))
        seconds = mean(sum(epoch.seconds for epoch in one.header.epochs) for one in members)
        assert row["seconds"] == pytest.approx(seconds, abs=0.051)


def test_the_table_has_the_numbers_of_the_report(table, capsys):
    report, _ = table
    text = signals.Signals().markdown(report)
    for row in report["rows"]:
        line = f"| {row['row']} | {row['model']} | {row['parameters']:,} | "
        assert (
            f"{line}{100 - row['mean']:.2f} ± {row['deviation']:.2f} | {row['accuracy']:.2f} |"
            in text
        )
    assert "logistic regression 32 %, MLP 68 %, GRU 91 %, CNN 94 %, human 96 %" in text
    assert "epochs 2, learning_rate 0.05" in text


def test_every_row_says_its_own_budget():
    for row, models in signals.CANDIDATES.items():
        sizes = [parameter_count(build(model, (1, 40))) for model in models]
        budget = int(row.split()[-2].replace(",", "")) if "at most" in row else 5000
        assert max(sizes) <= budget, row


def test_only_signals_and_candidates_are_taken(tmp_path, capsys):
    assert main(command(tmp_path, "--dataset", "digits")) == 2
    assert "signals needs a data set of signals, unlike digits." in capsys.readouterr().err
    assert main(command(tmp_path, "--rows", "logistic-el-4")) == 2
    assert "Unknown candidate" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
