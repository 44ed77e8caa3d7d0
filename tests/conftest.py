"""Fixtures of all tests. Nothing here reads or writes outside of pytest's temporary folders."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from PIL import Image

from densembed.data import Dataset, load_dataset
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder

torch.set_num_threads(1)
# No test fails because its machine is busy.
settings.register_profile("no deadline", settings(), deadline=None)
settings.load_profile("no deadline")

TESTS = Path(__file__).parent
QUICK = {"data", "fields", "figures", "functional", "layers", "models", "training"}
"""The folders whose tests are `quick`, but for those that are `slow`."""


def pytest_ignore_collect(collection_path, config):
    """Do not collect other tests for `-m quick`, as their imports take seconds."""
    if config.option.markexpr == "quick" and collection_path.is_dir():
        return (collection_path.parent == TESTS and collection_path.name not in QUICK) or None
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        # torch.compile and torch.export take seconds.
        traced = any(word in item.name for word in ("compile", "test_export_", "exported"))
        slow = "slow" in item.keywords or traced
        if item.path.parent.name in QUICK and not slow:
            item.add_marker("quick")


@pytest.fixture(scope="session", autouse=True)
def isolated(tmp_path_factory):
    """No test uses the runs, the gallery or the cache of the user who starts it."""
    root = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DENSEMBED_RUNS", str(root / "runs"))
        patch.setenv("DENSEMBED_GALLERY", str(root / "gallery"))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setenv("no_proxy", "127.0.0.1,localhost")
        patch.delenv("DENSEMBED_DATA", raising=False)
        yield root


@pytest.fixture
def runs_root(tmp_path, monkeypatch) -> Path:
    """An empty folder of runs for one test."""
    monkeypatch.setenv("DENSEMBED_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def gallery_root(tmp_path, monkeypatch) -> Path:
    """An empty gallery for one test."""
    folder = tmp_path / "gallery"
    folder.mkdir()
    monkeypatch.setenv("DENSEMBED_GALLERY", str(folder))
    return folder


@pytest.fixture
def mounted(tmp_path):
    """Mounts a file system of a size, such as "256k"; the test is skipped where none may be."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("No file system may be mounted here.")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return load_dataset("digits")


@pytest.fixture(scope="session")
def trained(digits) -> Checkpoint:
    """A small network after three epochs on the digits; on the CPU, so the same everywhere."""
    config = RunConfig(
        model="logistic-el-mnn-4-2", epochs=3, learning_rate=0.05, batch_size=64, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    return recorder.checkpoint("done")


@pytest.fixture(scope="session")
def trained_file(trained, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("trained") / "small.safetensors"
    trained.save(path)
    return path


@pytest.fixture(scope="session")
def pictures(digits, tmp_path_factory) -> dict[str, Path]:
    """Files to read: a test digit as dark ink on paper, an empty page, and no picture at all."""
    folder = tmp_path_factory.mktemp("pictures")
    ink = digits.test.images[0, 0].numpy()
    page = 255 - np.pad(ink, 14).repeat(4, 0).repeat(4, 1)
    Image.fromarray(page).save(folder / "digit.png")
    Image.fromarray(np.full((60, 60), 255, np.uint8)).save(folder / "empty.png")
    (folder / "letter.png").write_text("Dear reader, this is no picture.")
    return {path.stem: path for path in folder.iterdir()}


def is_sentence(text: str) -> bool:
    """One line for a person that ends in a period, with no trace of a program in it."""
    return (
        text.endswith(".")
        and "\n" not in text
        and text.strip() == text
        and len(text.split()) >= 3
        and not any(trace in text for trace in ("Traceback", "Error(", "pydantic", "sys.", "0x"))
    )
