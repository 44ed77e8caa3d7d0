"""Jobs, their resumption, and tables that are read from what they left."""

import json

import numpy as np
import pytest
import torch

from densembed import reproduce
from densembed.__main__ import main
from densembed.checkpoint import Checkpoint
from densembed.config import RunConfig
from densembed.paper import TABLES
from densembed.reproduce import Job, as_json, as_markdown, do, hold_out, merge, results, table_jobs

ROWS = TABLES["mnist"][2:3]  # logistic-el-3


@pytest.fixture
def short(monkeypatch):
    """A recipe of one epoch."""
    monkeypatch.setitem(reproduce.RECIPES, "paper", {"epochs": 1, "device": "cpu"})


def test_the_papers_numbers():
    """A few of them, as printed."""
    assert len(TABLES["mnist"]) == len(TABLES["cifar10"]) == 9
    assert (TABLES["mnist"][8].error, TABLES["mnist"][8].deviation) == (2.91, 0.16)
    assert sum(row.parameters for row in TABLES["mnist"]) == 62898
    assert sum(row.parameters for row in TABLES["cifar10"]) == 276790


def test_the_papers_recipe_is_the_default():
    config = table_jobs(["linear"], "mnist", "paper", 1, reproduce.Path("x"))[0].config
    assert config == RunConfig(model="linear", dataset="mnist")
    assert (config.epochs, config.batch_size, config.learning_rate) == (20, 128, 0.002)


def test_a_row_from_its_jobs(short, tmp_path):
    jobs = table_jobs(["logistic-el-3"], "digits", "paper", 2, tmp_path)
    assert [job.checkpoint() for job in jobs] == [None, None]
    assert [do(job) for job in jobs] == ["done", "done"]
    (row,) = results(ROWS, "digits", "paper", 2, tmp_path)
    errors = [Checkpoint.open(job.path).errors[0] for job in jobs]
    assert row.errors == errors
    assert row.parameters == 136
    assert row.mean == pytest.approx(sum(errors) / 2)
    assert row.deviation == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5)
    table = as_json([row], "digits", "paper")
    assert table["rows"][0]["paper_mean"] == 17.8
    assert f"{row.mean:.2f} ± {row.deviation:.2f}" in as_markdown(table)
    merged = merge(jobs)
    assert merged.members == 2
    for member, job in enumerate(jobs):
        alone = Checkpoint.open(job.path)
        for name, value in merged.state(-1, member).items():
            assert torch.equal(value, alone.state()[name])


def test_a_finished_job_is_not_run_again(short, tmp_path):
    jobs = table_jobs(["logistic-el-3"], "digits", "paper", 1, tmp_path)
    do(jobs[0])
    stamp = jobs[0].path.stat().st_mtime_ns
    seen = []
    reproduce.run(jobs, finished=seen.append)
    assert seen == jobs
    assert jobs[0].path.stat().st_mtime_ns == stamp
    other = Job(jobs[0].config.model_copy(update={"epochs": 2}), jobs[0].path)
    assert other.checkpoint() is None


def test_held_out_images_are_of_the_training_set(digits):
    part = hold_out(digits, 100)
    assert len(part.train) == len(digits.train) - 100
    assert torch.equal(part.test.images, digits.train.images[-100:])
    assert torch.equal(
        torch.cat((part.train.labels, part.test.labels)), digits.train.labels
    )  # fmt: skip


def test_the_command_writes_table_and_markdown(short, tmp_path, capsys):
    arguments = ["reproduce", "table1", "--rows", "logistic-el-3,linear", "--dataset", "digits"]
    assert main([*arguments, "--seeds", "1", "--out", str(tmp_path)]) == 0
    assert "logistic-el-3" in capsys.readouterr().out
    table = json.loads((tmp_path / "table1-digits-paper.json").read_text())
    assert [row["model"] for row in table["rows"]] == ["logistic-el-3", "linear"]
    assert (tmp_path / "table1-digits-paper.md").read_text().startswith("### digits, recipe paper")


@pytest.mark.parametrize("wrong", [["--rows", "resnet"], ["--seeds", "0"]])
def test_wrong_arguments_are_one_sentence(wrong, tmp_path, capsys):
    assert main(["reproduce", "table1", *wrong, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_figure1_has_the_fields_of_its_models(short, tmp_path, digits):
    jobs = {
        model: table_jobs([model], "digits", "paper", 1, tmp_path) for model in reproduce.FIGURE1
    }
    for (job,) in jobs.values():
        do(job)
    checkpoints = {model: merge(part) for model, part in jobs.items()}
    pictures = digits.test.images[:3]
    parts = reproduce.figure1_of(checkpoints, pictures)
    assert list(parts) == list(reproduce.FIGURE1)
    moving, *fixed = parts.values()
    heats = [trace.z for trace in moving.data]
    assert len(heats) == 3 * 3
    seen = [reproduce.view(checkpoints[reproduce.FIGURE1[0]], x, [0, -1]) for x in pictures]
    for k, (picture, of) in enumerate(zip(pictures, seen, strict=True)):
        assert (heats[3 * k] == picture[0].numpy() / np.float32(255)).all()
        assert (heats[3 * k + 1] == of.fields[0].sum(0)).all()
        assert (heats[3 * k + 2] == of.fields[-1].sum(0)).all()
    assert not (heats[2] == heats[5]).all()
    assert moving.layout.coloraxis.cmax == max(of.top for of in seen)
    assert [len(figure.data) for figure in fixed] == [2, 2]
    page = reproduce.figure1_page(parts)
    assert page.count("<h2>") == 3
    assert page.count("Plotly.newPlot") >= 3
    assert "<script src=" not in page  # it opens without a network
