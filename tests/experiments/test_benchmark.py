"""The baselines compute what we compute; the report has the promised form."""

import json
import subprocess
import sys

import pytest
import torch

from densembed.cli.main import main
from densembed.experiments import benchmark
from densembed.experiments.baselines import Baseline, UserStep, by_autograd, by_formulas, user_epoch
from densembed.models.registry import build

MODELS = ["logistic-el-3", "logistic-el-mnn-4-2"]


@pytest.mark.parametrize("act", [by_formulas, by_autograd])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 8, 12)])
def test_baselines_give_our_logits(model, act, shape):
    ours = build(model, shape).double()
    x = torch.rand(5, *shape, dtype=torch.float64)
    expected = ours(x)
    torch.testing.assert_close(Baseline(ours, act)(x), expected)


@pytest.mark.parametrize("model", MODELS)
def test_the_users_loop_sees_every_image_once(model):
    images = torch.randint(256, (20, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(10, (20,))
    losses = list(user_epoch(Baseline(build(model), by_autograd), images, labels, 8))
    assert len(losses) == 3
    assert all(0 < loss < 10 for loss in losses)


def test_the_users_step_learns():
    torch.manual_seed(0)
    x, labels = torch.rand(32, 1, 28, 28), torch.randint(10, (32,))
    step = UserStep(build("linear"), 100)
    first, *_, last = (step(x, labels).item() for _ in range(30))
    assert last < first


def test_measure_takes_turns_and_gives_medians():
    calls = []
    variants = {
        name: benchmark.Variant(lambda name=name: calls.append(name)) for name in ("a", "b")
    }
    first, second = benchmark.measure(variants, 3, calls=2)
    assert calls == ["a", "b"] + ["a", "a", "b", "b"] * 3  # once to warm up
    assert (first.case, second.case, first.n, first.unit) == ("a", "b", 3, "ms")
    assert first.value > 0


def test_the_floor_of_the_largest_model():
    """The contraction alone is 4 · 128 · 100 · 29² FLOPs: the most of it."""
    work, traffic = benchmark.floor("logistic-el-mnn-10-5", 128)
    contraction = 4 * 128 * 100 * 29**2
    assert contraction < work < 2 * contraction
    assert traffic > 128 * 784 + 4 * 6510


def test_the_report(monkeypatch):
    monkeypatch.setattr(benchmark, "machine", lambda device: {"device": "x"})
    report = benchmark.report([benchmark.Case("step.x", 1.0, "ms", 0.1, 3)])
    assert json.loads(json.dumps(report)) == {
        "machine": {"device": "x"},
        "cases": [{"case": "step.x", "value": 1.0, "unit": "ms", "spread": 0.1, "n": 3}],
    }


def test_the_report_for_people_divides():
    values = {
        "step.logistic-el-15.128.linear": 0.5,
        "step.logistic-el-15.128.ours": 1.0,
        "step.logistic-el-15.128.formulas": 8.0,
        "epoch.logistic-el-15.99.ours": 2.0,
        "epoch.logistic-el-15.99.user-formulas": 30.0,
        "members.logistic-el-15.1.ours": 1.0,
        "members.logistic-el-15.5.ours": 0.4,
    }
    cases = [
        {"case": name, "value": value, "unit": "ms", "spread": 0.0, "n": 1}
        for name, value in values.items()
    ]
    text = benchmark.markdown({"machine": {"device": "x"}, "cases": cases})
    for row in (
        "| step.logistic-el-15.128.formulas / step.logistic-el-15.128.ours | 8.00 |",
        "| step.logistic-el-15.128.ours / step.logistic-el-15.128.linear | 2.00 |",
        "| epoch.logistic-el-15.99.user-formulas / epoch.logistic-el-15.99.ours | 15.00 |",
        "| members.logistic-el-15.5.ours / members.logistic-el-15.1.ours, per member | 0.40 |",
    ):
        assert row in text


def test_quick_runs_from_the_command_line(tmp_path):
    """Only a part, in a separate process: all of it takes a minute."""
    code = (
        "import sys; from densembed.cli.main import main;"
        "from densembed.experiments import benchmark;"
        "benchmark.run = lambda quick, device: benchmark.fields(2);"
        f"sys.exit(main(['benchmark', '--quick', '--json', {str(tmp_path / 'b.json')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    report = json.loads((tmp_path / "b.json").read_text())
    assert {case["case"] for case in report["cases"]} == {f"fields.{n}" for n in (1, 10, 100, 1000)}
    assert report["machine"]["torch"] == torch.__version__
    assert "fields.1000" in done.stdout


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_file_that_cannot_be_written_is_said_before_it_measures(
    tmp_path, capsys, monkeypatch, option
):
    monkeypatch.setattr(benchmark, "run", lambda *_: pytest.fail("measured"))
    assert main(["benchmark", "--quick", option, str(tmp_path / "gone/b")]) == 2
    assert "cannot be written" not in capsys.readouterr().out


def test_its_files_do_not_depend_on_the_locale(tmp_path, monkeypatch):
    """A terminal without UTF-8 had no ±, and the measurements were lost."""
    monkeypatch.setattr(benchmark, "run", lambda *_: iter(()))
    monkeypatch.setattr(benchmark, "markdown", lambda _: "±\n")
    monkeypatch.setattr("io.text_encoding", lambda *_: "ascii")  # of `Path.write_text`
    assert main(["benchmark", "--device", "cpu", "--markdown", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_bytes() == "±\n".encode()
