"""The experiment with framed densities: its rows, its numbers, and its table."""

import json

import pytest

from densembed.cli.main import main
from densembed.data import load_dataset
from densembed.data.transform import Transform
from densembed.experiments.frames import framed
from densembed.training.checkpoint import Checkpoint


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
    table = (tmp_path / "frames-digits-tuned.md").read_text()
    assert table in capsys.readouterr().out
    assert f"{mass['mean']:.2f}" in table
    (shipped,) = (tmp_path / "gallery").glob("*.safetensors")
    assert shipped.name == "logistic-el-mass-3-digits.safetensors"
    assert Checkpoint.open(shipped).digest == checkpoint.digest


def test_a_row_without_densities_is_refused(tmp_path, capsys):
    assert main(["reproduce", "frames", "--rows", "linear", "--out", str(tmp_path)]) == 2
    assert "they are logistic-el-3" in capsys.readouterr().err
