"""The wheel, installed into an environment of its own and used in a folder of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from densembed.version import __version__
from tests.browser.conftest import expect, serve, visitor
from tests.browser.gallery import ROOT

pytestmark = pytest.mark.slow
PARTS = (
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "app.py",
    "densembed",
    "pages",
    ".streamlit",
    "checkpoints/paper",
)
PAGES = {
    "/": "What does this network look at?",
    "/train": "How does a receptive field learn?",
    "/compare": "What differs between these models?",
    "/paper": "Can the paper's results be reproduced?",
    "/lab": "How does a density become a layer?",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, as a build leaves files in the folder that it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy2(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", out, source], check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def program(wheel, tmp_path_factory) -> Path:
    """The installed program. The dependencies are those of the environment of the tests."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    # A path in such a file is searched for modules, but its own files of this kind, such as that
    # of an editable densembed, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin/densembed"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """An empty working directory, and a user who has no folders of densembed yet."""
    # With PYTHONPATH, the program would be that of another folder.
    for name in [n for n in os.environ if n.startswith("DENSEMBED_") or n == "PYTHONPATH"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    return tmp_path


def give(program: Path, *arguments: str, cwd: Path) -> str:
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_is_in_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {path.name for path in (ROOT / "checkpoints/paper").iterdir()}
    gallery = "densembed/app/checkpoints/paper/"
    assert {name.removeprefix(gallery) for name in names if name.startswith(gallery)} == shipped
    assert "densembed/app/.streamlit/config.toml" in names
    assert "densembed/web/app/site.html" in names
    assert all(name.startswith((f"densembed-{__version__}", "densembed/")) for name in names)
    assert not [name for name in names if "__pycache__" in name or "checkpoints/runs" in name]
    assert wheel.stat().st_size < 12e6


def test_the_program_from_any_folder(program, place):
    assert "densembed app" in give(program, cwd=place)
    assert __version__ in give(program, "--version", cwd=place)
    assert "360" in give(program, "info", "logistic-el-5", cwd=place)
    assert "saved: " in give(program, "site", "public", cwd=place)
    assert (place / "public/index.html").is_file()
    given = give(program, "train", "linear", "--epochs", "1", cwd=place)
    (config,) = (place / "user/densembed/runs").glob("*/config.json")
    assert str(config.parent) in given
    code = "import densembed, sys; print(densembed.__file__); print(densembed.build('linear'))"
    python = program.parent / "python"
    said = subprocess.run([python, "-c", code], cwd=place, capture_output=True, text=True).stdout
    assert said.startswith(str(program.parents[1]))


def test_the_pages_from_any_folder(browser, program, place):
    command = [program, "app", "--no-open", "--runs", place / "mine"]
    with serve(place, program=command) as address, visitor(browser, address) as visit:
        for link, title in PAGES.items():
            page = visit(link)
            expect(page.locator("h1")).to_have_text(title)
            if link == "/train":
                expect(page.get_by_role("button", name="Start training")).to_be_visible()
        page = visit("/?model=logistic-el-15-digits")
        expect(page.get_by_text("Fixed densities, trained on the built-in digits")).to_be_visible()


def test_a_public_demonstration(browser, program, place):
    command = [program, "app", "--no-open", "--read-only"]
    with serve(place, program=command) as address, visitor(browser, address) as visit:
        page = visit("/train")
        expect(page.get_by_text("public demonstration")).to_be_visible()
        assert not page.get_by_role("button", name="Start training").count()
    assert not (place / "user/densembed").exists()
