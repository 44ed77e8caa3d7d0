"""What the tests of all commands share."""

import numpy as np
import pytest
from PIL import Image

from densembed.cli.main import main

FAST = ["--epochs", "2", "--batch-size", "100", "--learning-rate", "0.02", "--device", "cpu"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing depends on the folder in which a command is given."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def run(capsys):
    """Gives a command; returns status, stdout and stderr."""

    def give(*arguments) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return give


def fails(result) -> str:
    """One sentence on stderr, status 2."""
    status, _, errors = result
    assert status == 2
    assert "Traceback" not in errors
    (line,) = errors.splitlines()
    assert line.startswith("densembed: ")
    assert line.endswith(".")
    return line


@pytest.fixture
def photos(tmp_path):
    """A folder of bright and dark pictures, and of a file that is not a picture."""
    random = np.random.default_rng(0)
    for name, bright in (("dark", 60), ("light", 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(20):
            pixels = (bright + random.integers(-40, 40, (9, 11, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    (tmp_path / "photos" / "dark" / "notes.txt").write_text("no picture")
    return tmp_path / "photos"
