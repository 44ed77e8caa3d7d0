"""Every family in the same networks: jobs, report, finding, figures."""

import json

import numpy as np
import pytest

from densembed.cli.main import main
from densembed.data.codec import decode_field, encode_field
from densembed.experiments import families, reproduce
from densembed.experiments.families import Families, finding, of_kind
from densembed.fields.field import view
from densembed.figures.families import families_figure, family_fields_figure
from densembed.functional.densities import FAMILIES
from densembed.training.checkpoint import Checkpoint


def test_packed_fields_keep_their_values():
    values = np.random.default_rng(0).random((9, 7)) * 0.3
    text = json.loads(json.dumps(encode_field(values, 0.25)))
    assert decode_field(text) == pytest.approx(values.clip(max=0.25), abs=0.25 / 255)
    assert decode_field(encode_field(np.zeros((2, 3)), 0.0)).tolist() == [[0] * 3] * 2


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The command's report for two families on the embedded digits, and where it worked."""
    out = tmp_path_factory.mktemp("families")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(reproduce.RECIPES, "paper", {"epochs": 1, "device": "cpu"})
        patch.setattr(families, "FAMILIES", {k: FAMILIES[k] for k in ("logistic", "uniform")})
        patch.setattr(families, "TIMED", 1)
        command = [
            "reproduce",
            "families",
            "--dataset",
            "digits",
            "--seeds",
            "2",
            "--processes",
            "1",
        ]
        assert main([*command, "--out", str(out)]) == 0
    return json.loads((out / "families-digits-paper.json").read_text()), out


def test_the_report_has_every_family_in_both_networks(table):
    report, out = table
    assert {(row["kind"], row["family"]) for row in report["rows"]} == {
        (kind, family) for kind in ("fixed", "moving") for family in ("logistic", "uniform")
    }
    for row in report["rows"]:
        folder = out / "digits" / "paper" / row["model"]
        errors = [Checkpoint.open(folder / f"{seed}.safetensors").errors[0] for seed in (0, 1)]
        assert row["errors"] == pytest.approx(errors, abs=1e-4)
        assert row["mean"] == pytest.approx(np.mean(errors), abs=1e-4)
        assert row["deviation"] == pytest.approx(np.std(errors, ddof=1), abs=1e-4)
        assert row["parameters"] == {"fixed": 906, "moving": 3018}[row["kind"]]
        assert row["step_ms"] > 0


def test_its_fields_are_those_of_a_kept_member(table, digits):
    report, out = table
    row = next(row for row in report["rows"] if row["model"] == "uniform-el-mnn-8-4")
    fields = []
    for seed in (0, 1):
        kept = Checkpoint.open(out / "digits/paper" / row["model"] / f"{seed}.safetensors")
        response = view(kept, digits.test.images[0], [-1], resolution=families.RESOLUTION)
        fields.append(response.fields[0].sum(0).clip(max=row["field"]["top"]))
    drawn = decode_field(row["field"])
    assert any(np.allclose(drawn, one, atol=row["field"]["top"] / 200) for one in fields)


def test_all_families_are_asked_for():
    assert len(list(families.models())) == 2 * len(FAMILIES) >= 18


def test_the_figures_show_the_report(table):
    report, _ = table
    for kind in ("fixed", "moving"):
        (trace,) = families_figure(report, kind).data
        assert list(trace.x) == sorted(row["mean"] for row in report["rows"] if row["kind"] == kind)
    shown = family_fields_figure(report, "fixed")
    assert len(shown.data) == 2
    best = of_kind(report, "fixed")[0]
    assert np.allclose(shown.data[0].z, decode_field(best["field"]))
    markdown = Families().markdown(report)
    assert f"| {best['family']} | {best['mean']:.2f} ± {best['deviation']:.2f} |" in markdown


def test_families_are_called_as_in_their_field():
    """What a person reads has no names of a program's."""
    rows = [
        {**row(family, place, 0.1), "model": family, "parameters": 1, "step_ms": 1, "errors": [1]}
        for place, family in enumerate(FAMILIES)
    ]
    machine = {"device": "a CPU"}
    table = {"rows": rows, "dataset": "MNIST", "recipe": "tuned", "machine": machine}
    said = Families().markdown(table) + " ".join(families_figure(table, "fixed").data[0].y)
    for code, words in {
        "hypsecant": "hyperbolic secant",
        "raisedcosine": "raised cosine",
        "cauchy": "Cauchy",
        "laplace": "Laplace",
        "gaussian": "Gaussian",
    }.items():
        assert code not in said
        assert said.count(words) >= 2


def row(family, mean, deviation):
    return {"kind": "fixed", "family": family, "mean": mean, "deviation": deviation}


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([("logistic", 3, 0.1), ("cauchy", 2, 0.1)], ["Cauchy", "2 of 2", "1.00", "more than"]),
        ([("logistic", 2.1, 0.1), ("cauchy", 2, 0.1)], ["Cauchy", "0.10", "within the spread"]),
        ([("logistic", 1, 0.1), ("cauchy", 2, 0.1)], ["logistic", "next is the Cauchy"]),
        (
            [("cauchy", 1, 0.1), ("logistic", 1, 0.1), ("laplace", 2, 0.1)],
            ["2 of 3 densities have the lowest error, 1.00 ± 0.10 %, among them the logistic"],
        ),
        (
            [("cauchy", 1, 0.1), ("laplace", 1, 0.1), ("logistic", 2, 0.1)],
            ["2 of 3 densities have the lowest error", "ranks 3 of 3 at 2.00 ± 0.10 %"],
        ),
    ],
)
def test_the_finding_says_how_the_logistic_does(rows, parts):
    text = finding({"rows": [row(*values) for values in rows]})
    assert all(part in text for part in parts)


def test_the_finding_of_single_trainings_has_no_spread():
    means = {"cauchy": 2.0, "logistic": 3.0}
    rows = [row(family, mean, 0.0) | {"errors": [mean]} for family, mean in means.items()]
    text = finding({"rows": rows})
    assert text.endswith("ranks 2 of 2 at 3.00 %, 1.00 points higher.")
