"""The examples for engineers, and those in docstrings, run as they are printed."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

from densembed import layers
from tests.registry import restored

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "engineers.md").read_text(encoding="utf-8")
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


def test_the_table_of_arguments_is_that_of_the_signatures():
    table = PAGE.partition("| argument |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| ", table, re.M)
    documented: dict[str, set[str]] = {}
    for name in layers.__all__:
        layer = getattr(layers, name)
        if not isinstance(layer, type):
            continue
        for each, parameter in inspect.signature(layer.__init__).parameters.items():
            text = str(parameter).partition(":")[0].partition("=")[0].strip()
            if parameter.default is not inspect.Parameter.empty:
                default = repr(parameter.default).replace("'", '"')
                text = f"{each}={default}"
            documented.setdefault(each, set()).add(text)
    listed = [word for words in rows for word in re.findall(r"`([^`]+)`", words)]
    assert len(listed) >= 20
    for word in listed:
        assert word in documented[word.partition("=")[0]], word
    ours = {
        "sizes",
        "num_densities",
        "family",
        "shared",
        "truncate",
        "locator",
        "amplitude",
        "beta",
    }
    assert ours <= {word.partition("=")[0] for word in listed}


def modules_with_examples() -> list[str]:
    """Names of the package's modules that have examples in docstrings."""
    package = ROOT / "densembed"
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text("utf-8")
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed


def test_every_public_layer_has_an_example():
    assert not [name for name in layers.__all__ if ">>> " not in getattr(layers, name).__doc__]
