"""Files to take away: whole, self-contained, and the arrays that are shown."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from densembed.export import (
    cells,
    compared_html,
    compared_npz,
    compared_snippet,
    csv,
    snippet,
    write_html,
    write_npz,
)
from densembed.fields import view


@pytest.fixture(scope="module")
def shown(trained, digits):
    pixels = digits.test.images[2]
    return pixels, view(trained, pixels, [0, -1], resolution=3)


def test_npz_has_the_arrays_and_their_places(trained, shown, tmp_path):
    pixels, seen = shown
    write_npz(tmp_path / "a.npz", trained, pixels, seen)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert sorted(file.files) == ["after", "before", "input", "x", "y"]
        assert file["before"].shape == file["after"].shape == (1, 84, 84)
        assert file["x"].shape == file["y"].shape == (84,)
        assert file["input"].shape == (1, 28, 28)
        assert file["input"].dtype == np.uint8
        np.testing.assert_array_equal(file["before"], seen.fields[0])
        np.testing.assert_array_equal(file["after"], seen.fields[1])
        np.testing.assert_array_equal(file["input"], pixels.numpy())
        np.testing.assert_allclose(file["x"], (np.arange(84) + 0.5) / 3)
        np.testing.assert_array_equal(file["x"], file["y"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_a_failed_npz_leaves_the_old_file(trained, shown, tmp_path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(b"the old one")

    def full(file, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        write_npz(tmp_path / "a.npz", trained, *shown)
    assert (tmp_path / "a.npz").read_bytes() == b"the old one"


@pytest.fixture(scope="module")
def page(trained, shown, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "a.html"
    write_html(path, trained, *shown)
    return path.read_text(encoding="utf-8")


def test_html_needs_no_network(page):
    # Those of plotly's own code are names and map tiles that only other kinds of figure fetch.
    for tag in ("script", "link", "img", "iframe"):
        for attributes in re.findall(rf"<{tag}\b([^>]*)>", page):
            assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", attributes)
    assert len(page) > 1_000_000  # plotly itself is inside


def test_html_is_in_a_known_encoding(page):
    assert re.search(r"<meta charset=[\"']?utf-8", page, re.IGNORECASE)
    assert page.lower().startswith(("<!doctype html>", "<html"))
    assert page.rstrip().endswith("</html>")


def figure_of(page) -> tuple[list, dict]:
    """The data and the layout that the page gives to plotly."""
    start = page.rindex("Plotly.newPlot(")
    decoder = json.JSONDecoder()
    data_at = page.index("[{", start)
    data, end = decoder.raw_decode(page, data_at)
    layout, _ = decoder.raw_decode(page, page.index("{", end))
    return data, layout


def values(trace) -> np.ndarray:
    """The z of a trace: plain, or packed in base 64."""
    z = trace["z"]
    if isinstance(z, dict):
        import base64

        flat = np.frombuffer(base64.b64decode(z["bdata"]), np.dtype(z["dtype"]))
        return flat.reshape([int(n) for n in z["shape"].split(",")])
    return np.asarray(z)


def test_html_shows_the_input_and_both_fields_on_one_scale(page, shown):
    """mllam/neural-lam#377: what was compared had scales of its own."""
    pixels, seen = shown
    data, layout = figure_of(page)
    assert len(data) == 3
    np.testing.assert_allclose(values(data[0]), pixels[0] / 255, atol=1e-6)
    np.testing.assert_allclose(values(data[1]), seen.fields[0][0], rtol=1e-6)
    np.testing.assert_allclose(values(data[2]), seen.fields[1][0], rtol=1e-6)
    for trace in data[1:]:
        assert (trace["zmin"], trace["zmax"]) == (0, pytest.approx(seen.top))
    assert [trace.get("showscale") for trace in data[:2]] == [False, False]
    assert data[2]["colorbar"]["title"]["text"] == "density per pixel²"
    titles = [note["text"] for note in layout["annotations"]]
    assert titles == ["the input", "before training", "after training"]
    assert layout["title"]["text"] == "Logistic-EL with mNN, B = 4, B₀ = 2"
    for number, anchor in (("", "x"), ("2", "x2"), ("3", "x3")):
        axis = layout[f"yaxis{number}"]
        assert axis["range"] == [28, 0]
        assert axis["scaleanchor"] == anchor
        assert stretch(layout, f"xaxis{number}", "width", "lr") == pytest.approx(
            stretch(layout, f"yaxis{number}", "height", "tb")
        )  # square, so that the bar is as high as the picture
    bar = data[2]["colorbar"]
    assert bar["len"] == pytest.approx(stretch(layout, "yaxis3", "height", "tb"))
    assert bar["y"] == pytest.approx(np.mean(layout["yaxis3"]["domain"]))


def stretch(layout: dict, axis: str, side: str, margins: str) -> float:
    """Pixels that an axis covers."""
    low, high = layout[axis]["domain"]
    return (high - low) * (layout[side] - sum(layout["margin"][edge] for edge in margins))


def test_csv_has_a_line_for_each_cell(shown):
    _, seen = shown
    header, *lines = csv(seen, 0, other=2 * seen.fields[1]).splitlines()
    assert header == "column,row,before,after,other"
    table = np.array([line.split(",") for line in lines], float).reshape(84, 84, 5)
    np.testing.assert_allclose(table[5, :, 0], seen.x)
    np.testing.assert_allclose(table[:, 9, 1], seen.y)
    for column, values in ((2, seen.fields[0]), (3, seen.fields[0]), (4, 2 * seen.fields[1])):
        np.testing.assert_allclose(table[..., column], values.sum(0), 1e-7)


def test_snippet_runs_and_makes_the_same_numbers(trained, trained_file, digits, tmp_path):
    pixels, step = digits.test.images[2], trained.steps[3]
    (tmp_path / trained_file.name).write_bytes(trained_file.read_bytes())
    program = snippet(trained_file.name, pixels, step)
    assert len(program.splitlines()) <= 11
    save = 'import numpy; numpy.savez("made", after=after, x=seen.x, pixels=pixels)\n'
    command = [sys.executable, "-c", program + save]
    root = Path(__file__).parents[1]
    subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    seen = view(trained, pixels)
    with np.load(tmp_path / "made.npz") as made:
        np.testing.assert_array_equal(made["after"], seen.fields[3])
        np.testing.assert_array_equal(made["x"], seen.x)
        np.testing.assert_array_equal(made["pixels"], pixels)
    assert "<html>" in (tmp_path / "field.html").read_text(encoding="utf-8")


def test_what_is_compared_goes_into_files(shown):
    pixels, seen = shown
    fields = {"first": seen.fields[1], "second": seen.fields[0]}
    with np.load(
        io.BytesIO(compared_npz(pixels, seen.x, seen.y, fields, {"first": 9, "second": 0}))
    ) as file:
        np.testing.assert_array_equal(file["field_first"], seen.fields[1])
        np.testing.assert_array_equal(file["field_second"], seen.fields[0])
        assert (file["step_first"], file["step_second"]) == (9, 0)
        np.testing.assert_array_equal(file["x"], seen.x)
        np.testing.assert_array_equal(file["input"], pixels.numpy())
    header, *lines = cells(seen.x, seen.y, fields).splitlines()
    assert header == "column,row,first,second"
    table = np.array([line.split(",") for line in lines], float).reshape(84, 84, 4)
    np.testing.assert_allclose(table[..., 2], seen.fields[1].sum(0), 1e-6)
    np.testing.assert_allclose(table[0, :, 0], seen.x)
    np.testing.assert_allclose(table[:, 0, 1], seen.y)


def test_the_program_of_a_comparison_runs(trained_file, trained, shown, tmp_path):
    files = {"first": trained_file.name, "second": trained_file.name}
    steps = {"first": trained.steps[-1], "second": trained.steps[0]}
    parts = {"first": 1, "second": 16}
    program = compared_snippet(files, shown[0], steps, parts) + "\nprint(abs(fields[1]).sum())\n"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=trained_file.parent, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    expected = abs(view(trained, shown[0], [0]).fields[0]).sum() / 16
    assert float(result.stdout) == pytest.approx(float(expected), rel=1e-4)
    assert (trained_file.parent / "model-2-less-the-first.html").exists()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_html_of_several_models_shows_their_fields_and_differences(trained, shown, count):
    pixels, seen = shown
    names = ("first", "second", "third", "fourth")[:count]
    fields = {name: (k + 1) * seen.fields[k % 2] for k, name in enumerate(names)}
    titles = {name: f"{name}, after training" for name in names}
    page = compared_html(pixels, seen.x, seen.y, fields, titles, 0.5)
    data, layout = figure_of(page)
    assert len(data) == 1 + count + count - 1
    np.testing.assert_allclose(values(data[0]), pixels[0] / 255, atol=1e-6)
    for k, name in enumerate(names):
        np.testing.assert_allclose(values(data[1 + k]), fields[name][0], rtol=1e-6)
        assert (data[1 + k]["zmin"], data[1 + k]["zmax"]) == (0, 0.5)
    for k, name in enumerate(names[1:]):
        change = values(data[1 + count + k])
        np.testing.assert_allclose(change, (fields[name] - fields["first"])[0], rtol=1e-6)
        assert (data[1 + count + k]["zmin"], data[1 + count + k]["zmax"]) == (-0.5, 0.5)
    words = [note["text"] for note in layout["annotations"]]
    changes = [f"{name} − first" for name in names[1:]]
    assert words == ["the input", *titles.values(), *changes]
    assert [bool(trace.get("showscale")) for trace in data].count(True) == (2 if count > 1 else 1)
