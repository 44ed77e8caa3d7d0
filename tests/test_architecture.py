"""The packages of `densembed` depend on one another in one direction."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("densembed/**/*.py"), *ROOT.glob("pages/**/*.py")])
MODULES = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(node: ast.AST) -> list[str]:
    """The modules of this repository that a statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        found = [name if name in MODULES else node.module for name in names]
    elif isinstance(node, ast.Import):
        found = [alias.name for alias in node.names]
    else:
        found = []
    return [name for name in found if name.split(".")[0] in ("densembed", "pages")]


def package(name: str) -> str:
    """What is below the top: `densembed.layers.linear` belongs to `densembed.layers`."""
    return ".".join(name.split(".")[:2])


def dependencies() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = defaultdict(set)
    for file in FILES:
        own = package(module(file))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            graph[own] |= {package(name) for name in imports(node)} - {own}
    return graph


def check(graph: dict[str, set[str]]) -> None:
    """Raise AssertionError for a cycle, or a package that imports from above."""
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(f"These packages import one another: {error.args[1]}") from error
    for own, others in graph.items():
        above = {name for name in others if name == "densembed.cli" or name.startswith("pages")}
        inside = own.startswith("pages") or own in ("densembed.cli", "densembed.__main__")
        assert inside or not above, f"{own} imports {above}"


def test_packages_depend_in_one_direction():
    graph = dependencies()
    assert {"densembed.functional", "densembed.layers", "densembed.models"} <= set(graph)
    check(graph)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("densembed.functional", "densembed.layers"),
        ("densembed.runs", "densembed.experiments"),
        ("densembed.figures", "densembed.cli"),
        ("densembed.fields", "pages.widgets"),
    ],
)
def test_a_step_back_up_is_noticed(own, other):
    graph = dependencies()
    graph[own] = graph[own] | {other}
    with pytest.raises(AssertionError):
        check(graph)


@pytest.mark.parametrize("file", FILES, ids=module)
def test_imports_of_the_project_are_at_the_top(file):
    """One within a function would hide a cycle."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inner = [
        (node.lineno, name)
        for node in ast.walk(tree)
        if node not in tree.body
        for name in imports(node)
    ]
    assert not inner
