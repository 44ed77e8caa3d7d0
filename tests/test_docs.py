"""The examples for engineers run as they are printed."""

import re
from pathlib import Path

import pytest

from tests.registry import restored

PAGE = (Path(__file__).parents[1] / "docs" / "engineers.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^## ([^\n]+)$(?:(?!^## ).)*?^```python\n(.*?)^```$", re.M | re.S)
EXAMPLES = dict(EXAMPLE.findall(PAGE))


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where an example writes
    with restored():
        yield


def test_there_is_one_example_under_every_heading():
    assert list(EXAMPLES) == re.findall(r"^## (.*)$", PAGE, re.M)
    assert len(EXAMPLES) == PAGE.count("```python") >= 6


@pytest.mark.parametrize("title", EXAMPLES)
def test_example_runs(title):
    name = "example_" + re.sub(r"\W+", "_", title.lower())
    exec(compile(EXAMPLES[title], f"{title}, docs/engineers.md", "exec"), {"__name__": name})
