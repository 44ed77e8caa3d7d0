"""The experiment with other grids: its rows, its numbers, and its table."""

import json
from pathlib import Path

import pytest
from torch.nn.functional import avg_pool2d

from densembed.cli.main import main
from densembed.data import load_dataset
from densembed.experiments import resolution
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_resolution(tmp_path, capsys, monkeypatch):
    for name, value in (
        ("MODELS", ("logistic-el-2", "logistic-el-mnn-3-2")),
        ("MODEL", "logistic-el-mnn-3-2"),
        ("GRIDS", "14,data"),
        ("SIDES", (14, 28, 56)),
    ):
        monkeypatch.setattr(resolution, name, value)
    arguments = ["--dataset", "digits", "--seeds", "2", "--recipe", "tuned"]
    place = ["--out", str(tmp_path), "--device", "cpu", "--processes", "1"]
    assert main(["reproduce", "resolution", *arguments, *place]) == 0
    report = json.loads((tmp_path / "resolution-digits-tuned.json").read_text())
    assert [(row["model"], row["grids"]) for row in report["rows"]] == [
        ("logistic-el-2", "data"),
        ("logistic-el-mnn-3-2", "data"),
        ("logistic-el-mnn-3-2", "14,data"),
    ]
    assert report["own"] == [28, 28]
    test = load_dataset("digits").test
    small = avg_pool2d(test.images.float(), 2).round() / 255
    for row, folder in zip(report["rows"], ("tuned", "tuned", "tuned-grids"), strict=True):
        path = tmp_path / "digits" / folder / row["model"] / "1.safetensors"
        checkpoint = Checkpoint.open(path)
        assert checkpoint.config.grid == row["grids"]
        assert row["by_side"]["28"]["errors"] == row["errors"]
        # The same signal, so the same error but for images at the border of two classes.
        assert row["by_side"]["56"]["mean"] == pytest.approx(row["mean"], abs=0.3)
        model = build(row["model"], (1, 14, 14))  # the same weights in a model of that size
        model.load_state_dict(checkpoint.state())
        wrong = (model(small).argmax(1) != test.labels).float().mean()
        assert row["by_side"]["14"]["errors"][1] == pytest.approx(100 * wrong.item(), abs=1e-3)
    for row in report["milliseconds"]:
        assert list(row["by_side"]) == ["14", "28", "56"]
        assert all(value > 0 for value in row["by_side"].values())
    table = (tmp_path / "resolution-digits-tuned.md").read_text()
    assert table in capsys.readouterr().out
    assert f"{report['rows'][2]['by_side']['14']['mean']:.2f}" in table
    assert resolution.finding(report) in table


def row_of(grids: str, errors: dict[int, float], seeds: int = 1) -> dict:
    return {
        "model": "logistic-el-3",
        "grids": grids,
        "errors": [errors[28]] * seeds,
        "mean": errors[28],
        "by_side": {str(side): {"mean": error} for side, error in errors.items()},
    }


@pytest.mark.parametrize(("fine", "same"), [(8.0, True), (8.01, False)])
def test_the_finding_has_the_numbers_of_the_report(fine, same):
    rows = [
        row_of("data", {7: 30.0, 10: 20.0, 14: 9.0, 28: 8.0, 56: 8.0}),
        row_of("14,20x24,data", {7: 25.0, 10: 15.0, 14: 8.5, 28: 8.0, 56: fine}, seeds=5),
    ]
    one, several, *rest = resolution.finding({"own": [28, 28], "rows": rows}).splitlines()
    assert one.endswith(
        "trained on 28 × 28 pixels, has an error of 8.00 to 9.00 % on the grids from 14 × 14 to "
        "56 × 56 pixels. It is 30.00 % on 7 × 7 and 20.00 % on 10 × 10."
    )
    assert "trained on 14 × 14, 20 × 24 and 28 × 28 pixels" in several
    assert "8.00 to 8.50 %" in several
    assert "(mean over 5 seeds)" in several
    assert bool(rest) == same


def test_the_documentation_contains_the_shipped_report():
    report = json.loads((ROOT / "checkpoints/paper/resolution-mnist-tuned.json").read_text())
    documented = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert resolution.Resolution().markdown(report).strip() in documented
