"""Help, errors in arguments and `info` appear at once: torch is imported when it is used."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from densembed.__main__ import main
from densembed.cli import commands, render, reproduce
from densembed.data import DATASETS
from densembed.data.names import NAMES
from densembed.fields.field import RESOLUTION
from densembed.functional.densities import FAMILIES
from densembed.functional.families import WORDS
from densembed.models.names import MODELS
from densembed.models.registry import BUILDERS

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "scipy", "sklearn", "matplotlib", "plotly", "dask", "streamlit")
PROGRAM = f"""
import sys
from densembed.cli.main import main
for line in sys.argv[1].splitlines():
    try:
        status = main(line.split(";"))
    except SystemExit as error:
        status = error.code
    print(line, status, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
HELP = ["--help", "--version", *(f"{command.name};--help" for command in commands.COMMANDS)]
WRONG = [
    "fly",
    "train;logistc-el-5",
    "train;linear;--epochs;many",
    "train;linear;--dataset;minst",
    "sweep;linear;--seeds;2,x",
    "sweep;linear;--processes;0",
    "reproduce;table1;--seeds;0",
    "render;a;--image;b;--out;c.doc",
    "export;a;--to;onnx;--table;field",
    "export;a;--to;csv;--dtype;float64",
    "info;none.safetensors",
]


def python(*code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-Wignore", "-c", *code]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)


def test_help_errors_and_info_import_no_torch(trained_file):
    info = f"info;{trained_file}"
    lines = python(PROGRAM, "\n".join([*HELP, *WRONG, info])).stderr.splitlines()
    expected = [f"{line} 0" for line in HELP] + [f"{line} 2" for line in WRONG] + [f"{info} 0"]
    assert [line for line in lines if line in expected] == expected


def test_a_package_imports_torch_when_a_name_is_used_and_has_every_public_name():
    code = "import sys, densembed as d; print('torch' in sys.modules); d.build('linear')"
    code += "; print('torch' in sys.modules, *[n for n in d.__all__ if getattr(d, n, 0) is 0])"
    assert python(code).stdout == "False\nTrue\n"


def test_names_that_are_known_without_torch_are_those_that_exist():
    assert list(MODELS) == list(BUILDERS)
    assert list(WORDS) == list(FAMILIES)
    assert list(NAMES) == list(DATASETS)
    assert tuple(reproduce.EXPERIMENTS) == commands.EXPERIMENTS
    with_recipe = (name for name, each in reproduce.EXPERIMENTS.items() if each.uses_recipe)
    assert tuple(with_recipe) == commands.WITH_RECIPE
    assert set(commands.RENDERED) == {render.PAGE, *render.WRITERS}
    assert commands.RESOLUTION == RESOLUTION


def test_ctrl_c_while_the_program_is_imported(monkeypatch, capsys):
    """Pydantic's import turned the exception of Python into a panic."""

    class Interrupted:
        def __getattr__(self, name: str) -> None:
            if name != "main":
                raise AttributeError(name)
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pytest.fail("the library has seen it")

    monkeypatch.setitem(sys.modules, "densembed.cli.main", Interrupted())
    assert (main(), capsys.readouterr().err) == (130, "densembed: Interrupted.\n")
