"""The experiment with framed densities: its rows, its numbers, and its table."""

import json
import statistics
from pathlib import Path

import pytest

from densembed.cli.main import main
from densembed.data import load_dataset
from densembed.data.transform import Transform
from densembed.experiments.frames import Frames, finding, framed
from densembed.training.checkpoint import Checkpoint

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("logistic-el-3", "logistic-el-mass-3"),
        ("logistic-el-mnn-6-3", "logistic-el-mnn-mass-6-3"),
        ("stages-2-gaussian-el-2", "stages-2-gaussian-el-mass-2"),
    ],
)
def test_the_same_network_in_another_frame(name, other):
    assert framed(name, "mass") == other
    assert framed(other, "input") == name
    assert framed(name, "input") == name


@pytest.mark.slow
def test_frames(tmp_path, capsys):
    arguments = ["--dataset", "digits", "--rows", "logistic-el-3", "--seeds", "1"]
    place = ["--out", str(tmp_path), "--device", "cpu", "--processes", "1"]
    place += ["--gallery", str(tmp_path / "gallery")]
    assert main(["reproduce", "frames", "--recipe", "tuned", *arguments, *place]) == 0
    report = json.loads((tmp_path / "frames-digits-tuned.json").read_text())
    plain, mass = report["rows"]
    assert [plain["model"], mass["model"]] == ["logistic-el-3", "logistic-el-mass-3"]
    assert plain["parameters"] == mass["parameters"] == 136
    assert plain["follows"] == pytest.approx(0, abs=1e-6)
    assert mass["follows"] > 0.8
    checkpoint = Checkpoint.open(tmp_path / "digits/tuned/logistic-el-mass-3/0.safetensors")
    test = load_dataset("digits").test
    images = Transform(size=0.7)(test.images)
    wrong = (checkpoint.model()(images / 255).argmax(1) != test.labels).float().mean()
    assert mass["scale"]["0.7"] == pytest.approx(100 * wrong.item(), abs=1e-3)
    assert mass["scale"]["0.7"] < plain["scale"]["0.7"]
    assert [row["paper_mean"] for row in report["rows"]] == [17.8, 17.8]
    assert set(mass["shift"]) == {"2", "4", "6"}
    table = (tmp_path / "frames-digits-tuned.md").read_text()
    assert table in capsys.readouterr().out
    assert f"{mass['mean']:.2f}" in table
    assert finding(report) in table
    (shipped,) = (tmp_path / "gallery").glob("*.safetensors")
    assert shipped.name == "logistic-el-mass-3-digits.safetensors"
    assert Checkpoint.open(shipped).digest == checkpoint.digest


def row(model: str, mean: float, shift4: float, scale: float, follows: float, noise: float) -> dict:
    return {
        "model": model,
        "errors": [mean - 0.1, mean + 0.1],
        "mean": mean,
        "deviation": 0.14,
        "shift": {"2": mean, "4": shift4, "6": 90.0},
        "scale": {"0.5": scale, "0.7": mean, "0.8": mean, "1.2": mean, "1.3": mean},
        "rotation": {"15": mean + 3},
        "noise": {"0.1": noise},
        "follows": follows,
    }


def test_the_finding_is_that_of_the_rows():
    rows = [
        row("logistic-el-3", 14.0, 80.0, 74.0, 0.0, 25.0),
        row("logistic-el-mass-3", 12.0, 12.5, 12.25, 0.97, 50.0),
        row("logistic-el-mnn-6-3", 3.0, 40.0, 63.0, 0.2, 4.0),
        row("logistic-el-mnn-mass-6-3", 3.5, 3.75, 4.5, 0.99, 20.0),
        row("logistic-el-5", 9.0, 9.0, 9.0, 0.5, 9.0),  # without its framed network
    ]
    first, rise, moved, turned, noisy = finding({"rows": rows}).splitlines()
    assert "1 of 2 networks have a lower error" in first
    assert "3.50 ± 0.14 % (Logistic-EL with mNN, frame of the mass, B = 6, B₀ = 3)" in first
    assert first.endswith("in the frame of the input, that network has 3.00 ± 0.14 %.")
    assert "at most 1.00 points" in rise  # 4.5 - 3.5: not the shift by 6 pixels
    assert "by as much as 60 to 66 points" in rise
    assert "0.97 to 0.99 pixels in the frame of the mass" in moved
    assert "0.00 to 0.20 pixels in the frame of the input" in moved
    assert "is 6.50 % in the frame of the mass and 6.00 %" in turned
    assert "is 20.00 % in the frame of the mass and 4.00 %" in noisy
    assert finding({"rows": rows[:1]}) == ""


def test_an_error_that_no_change_raises_rises_by_nothing():
    rows = [row(name, 5.0, 4.0, 4.0, 0.5, 5.0) for name in ("logistic-el-3", "logistic-el-mass-3")]
    _, rise, *_ = finding({"rows": rows}).splitlines()
    assert "at most 0.00 points" in rise


def test_a_row_without_densities_is_refused(tmp_path, capsys):
    assert main(["reproduce", "frames", "--rows", "linear", "--out", str(tmp_path)]) == 2
    assert "they are logistic-el-3" in capsys.readouterr().err


def test_the_documentation_contains_the_shipped_report():
    report = json.loads((ROOT / "checkpoints/paper/frames-mnist-tuned.json").read_text())
    documented = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert Frames().markdown(report).strip() in documented
    for each in report["rows"]:
        assert each["parameters"] == each["paper_parameters"]
        assert each["mean"] == pytest.approx(statistics.mean(each["errors"]), abs=1e-3)
        assert each["deviation"] == pytest.approx(statistics.stdev(each["errors"]), abs=1e-3)
