"""Tables in Markdown, and the dispersion of few values."""

import pytest

from densembed.experiments.report import deviation, markdown_table, plus_minus, summary


@pytest.mark.parametrize("text", ["a|b", "*a*", "[a](b)", "`a`", "<b>", "two\nlines", "www.a.b"])
def test_text_cannot_become_markup(text):
    (line,) = markdown_table({"name": "{name}"}, [{"name": text}]).splitlines()[2:]
    assert text not in line
    assert line.replace(r"\|", "").count("|") == 2


def test_plain_text_stays_readable():
    cells = ["logistic-el-mnn-10-5", "2.91 ± 0.16", "6,510", "step.linear.128 / step.linear.512"]
    row = dict(zip("abcd", cells, strict=True))
    table = markdown_table(dict(zip("abcd", ["{a}", "{b}", "{c}", "{d}"], strict=True)), [row])
    *_, line = table.splitlines()
    assert line == f"| {' | '.join(cells)} |"


def test_one_value_has_no_deviation():
    assert summary([3.0]) == {"errors": [3.0], "mean": 3.0, "deviation": None}
    assert summary([1.0, 3.0]) == {"errors": [1.0, 3.0], "mean": 2.0, "deviation": 1.4142}


@pytest.mark.parametrize("stored", [0.0, None])
def test_one_training_is_written_without_a_deviation(stored):
    """Files of earlier versions have 0 for it."""
    row = {"errors": [3.0], "mean": 3.0, "deviation": stored}
    row |= {"paper_mean": 4.0, "paper_deviation": 0.5}
    assert (deviation(row), plus_minus(row)) == (None, "3.00")
    assert (deviation(row, "paper_"), plus_minus(row, "paper_")) == (0.5, "4.00 ± 0.50")
    equal = {"errors": [3.0, 3.0], "mean": 3.0, "deviation": 0.0}
    assert (deviation(equal), plus_minus(equal)) == (0.0, "3.00 ± 0.00")
