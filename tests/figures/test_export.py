"""Files to take away: whole, self-contained, and the arrays that are shown."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from densembed.data.transform import scaled_images
from densembed.fields.field import view
from densembed.figures.export import (
    cells,
    compared_npz,
    compared_snippet,
    csv,
    snippet,
    write_npz,
)


@pytest.fixture(scope="module")
def shown(trained, digits):
    pixels = digits.test.images[2]
    return pixels, view(trained, pixels, [0, -1], resolution=3)


def test_npz_has_the_arrays_and_their_places(trained, shown, tmp_path):
    pixels, fields = shown
    write_npz(tmp_path / "a.npz", trained, pixels, fields)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert sorted(file.files) == ["after", "before", "input", "x", "y"]
        assert file["before"].shape == file["after"].shape == (1, 84, 84)
        assert file["x"].shape == file["y"].shape == (84,)
        assert file["input"].shape == (1, 28, 28)
        assert file["input"].dtype == np.uint8
        np.testing.assert_array_equal(file["before"], fields.fields[0])
        np.testing.assert_array_equal(file["after"], fields.fields[1])
        np.testing.assert_array_equal(file["input"], pixels.numpy())
        np.testing.assert_allclose(file["x"], (np.arange(84) + 0.5) / 3)
        np.testing.assert_array_equal(file["x"], file["y"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_the_field_of_a_later_step_is_not_that_before_training(trained, digits, tmp_path):
    pixels = digits.test.images[2]
    views = view(trained, pixels, [1, -1], resolution=1)
    name = f"step_{trained.steps[1]}"
    write_npz(tmp_path / "a.npz", trained, pixels, views)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert sorted(file.files) == sorted([name, "after", "input", "x", "y"])
        np.testing.assert_array_equal(file[name], views.fields[0])
    header, *lines = csv(views).splitlines()
    assert header == f"column,row,{name},after"
    assert float(lines[0].split(",")[2]) == pytest.approx(views.fields[0][0, 0, 0], rel=1e-6)


def test_a_failed_npz_leaves_the_old_file(trained, shown, tmp_path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(b"the old one")

    def full(file, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        write_npz(tmp_path / "a.npz", trained, *shown)
    assert (tmp_path / "a.npz").read_bytes() == b"the old one"


def test_csv_has_a_line_for_each_cell(shown):
    _, fields = shown
    header, *lines = csv(fields, 0, other=2 * fields.fields[1]).splitlines()
    assert header == "column,row,before,after,other"
    table = np.array([line.split(",") for line in lines], float).reshape(84, 84, 5)
    np.testing.assert_allclose(table[5, :, 0], fields.x)
    np.testing.assert_allclose(table[:, 9, 1], fields.y)
    for column, values in ((2, fields.fields[0]), (3, fields.fields[0]), (4, 2 * fields.fields[1])):
        np.testing.assert_allclose(table[..., column], values.sum(0), 1e-7)


GRIDS = {"own": None, "other": (14, 20)}


@pytest.fixture(scope="module")
def made(trained, trained_file, digits, tmp_path_factory) -> Path:
    """What the program of a field makes on each grid, run by one process that starts for both."""
    folder = tmp_path_factory.mktemp("programs")
    run = "import os, sys\nfor folder, program in zip(sys.argv[1::2], sys.argv[2::2]):\n"
    run += "    os.chdir(folder)\n    exec(program, {'__name__': '__main__'})\n"
    save = 'import numpy; numpy.savez("made", after=after, x=views.x, pixels=pixels)\n'
    programs = []
    for name, grid in GRIDS.items():
        (folder / name).mkdir()
        (folder / name / trained_file.name).write_bytes(trained_file.read_bytes())
        program = snippet(trained_file.name, digits.test.images[2], trained.steps[3], grid)
        assert len(program.splitlines()) <= 14
        programs += [str(folder / name), program + save]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", run, *programs], cwd=folder, check=True, env=environment)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
def test_snippet_runs_and_makes_the_same_numbers(trained, digits, made, grid):
    pixels = digits.test.images[2]
    if GRIDS[grid]:
        pixels = scaled_images(pixels, GRIDS[grid])
    fields = view(trained, pixels)
    with np.load(made / grid / "made.npz") as arrays:
        # but for rounding: kernels computed the one, as this process has trained, torch the other
        rounding = 3e-6 * float(abs(fields.fields[3]).max())
        np.testing.assert_allclose(arrays["after"], fields.fields[3], 0, rounding)
        np.testing.assert_array_equal(arrays["x"], fields.x)
        np.testing.assert_array_equal(arrays["pixels"], pixels)
    assert (made / grid / "field.pdf").read_bytes().startswith(b"%PDF")


def test_what_is_compared_goes_into_files(shown):
    pixels, response = shown
    fields = {"first": response.fields[1], "second": response.fields[0]}
    with np.load(
        io.BytesIO(compared_npz(pixels, response.x, response.y, fields, {"first": 9, "second": 0}))
    ) as file:
        np.testing.assert_array_equal(file["field_first"], response.fields[1])
        np.testing.assert_array_equal(file["field_second"], response.fields[0])
        assert (file["step_first"], file["step_second"]) == (9, 0)
        np.testing.assert_array_equal(file["x"], response.x)
        np.testing.assert_array_equal(file["input"], pixels.numpy())
    header, *lines = cells(response.x, response.y, fields).splitlines()
    assert header == "column,row,first,second"
    table = np.array([line.split(",") for line in lines], float).reshape(84, 84, 4)
    np.testing.assert_allclose(table[..., 2], response.fields[1].sum(0), 1e-6)
    np.testing.assert_allclose(table[0, :, 0], response.x)
    np.testing.assert_allclose(table[:, 0, 1], response.y)


@pytest.mark.slow
def test_the_program_of_a_comparison_runs(trained_file, trained, shown, tmp_path):
    files = {"first": trained_file.name, "second": trained_file.name}
    steps = {"first": trained.steps[-1], "second": trained.steps[0]}
    parts = {"first": 1, "second": 16}
    program = compared_snippet(files, shown[0], steps, parts)
    program += "print(abs(fields['second']).sum())\n"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=trained_file.parent,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert result.returncode == 0, result.stderr
    expected = abs(view(trained, shown[0], [0]).fields[0]).sum() / 16
    assert float(result.stdout) == pytest.approx(float(expected), rel=1e-4)
    assert (trained_file.parent / "differences.pdf").exists()
