"""The packages of `densembed` depend on one another in one direction."""

import ast
import functools
import re
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from densembed.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
FILES = sorted(
    [
        *ROOT.glob("densembed/**/*.py"),
        *ROOT.glob("densembed/**/*.pyi"),  # names of packages that are imported when used
        *ROOT.glob("pages/**/*.py"),
    ]
)
MAP = (ROOT / "docs/map.md").read_text(encoding="utf-8")
MODULES = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(node: ast.AST, inside: str = "") -> list[str]:
    """The modules of this repository that a statement imports, in a file of the package `inside`.

    The packages whose names are imported when they are used list them by relative imports.
    """
    if isinstance(node, ast.ImportFrom) and node.module:
        origin = f"{inside}.{node.module}" if node.level else node.module
        names = [f"{origin}.{alias.name}" for alias in node.names]
        modules = [name if name in MODULES else origin for name in names]
    elif isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = []
    return [name for name in modules if name.split(".")[0] in ("densembed", "pages")]


def package(name: str) -> str:
    """What is below the top: `densembed.layers.linear` belongs to `densembed.layers`."""
    return ".".join(name.split(".")[:2])


@functools.cache
def dependencies() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = defaultdict(set)
    for file in FILES:
        own = package(module(file))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            graph[own] |= {package(name) for name in imports(node, module(file))} - {own}
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
    graph = graph | {own: graph[own] | {other}}
    with pytest.raises(AssertionError):
        check(graph)


def test_the_map_names_every_package_below_those_that_it_imports():
    order = re.findall(r"^\| `([\w/]+)/` \|", MAP, re.M)
    packages = [name.replace("/", ".") for name in order if name != "tests"]
    graph = dependencies()
    folders = {".".join(file.parent.relative_to(ROOT).parts) for file in FILES}
    ours = {name for name in folders if re.fullmatch(r"densembed\.\w+", name)}
    assert set(packages) == ours | {"pages"}
    for k, name in enumerate(packages):
        assert not graph[name] & set(packages[k:])


def test_what_the_map_names_is_there():
    paths = re.findall(r"`((?:densembed|pages|tests)/[\w./]*)`", MAP)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("file", [file for file in FILES if file.stem != "__main__"], ids=module)
def test_imports_of_the_project_are_at_the_top(file):
    """One within a function would hide a cycle, except in `__main__`, which no module imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inner = [
        (node.lineno, name)
        for node in ast.walk(tree)
        if node not in tree.body
        for name in imports(node)
    ]
    assert not inner


def test_functions_of_commands_are_in_the_command_line():
    """Their modules are imported by name, which must not hide a step down from elsewhere."""
    for command in COMMANDS:
        name, _, function = command.run.partition(":")
        assert callable(getattr(import_module(f"densembed.cli.{name}"), function))
    text = "".join(file.read_text("utf-8") for file in FILES)
    assert text.count("import_module(") == 2  # those functions, and plugins


def test_no_class_name_is_used_twice():
    names = [
        node.name
        for file in FILES
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []
