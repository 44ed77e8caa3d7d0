"""Files to take away: whole, self-contained, and the arrays that are shown."""

import io
import json
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from densembed.fields.field import view
from densembed.figures import export
from densembed.figures.export import (
    cells,
    compared_html,
    compared_npz,
    compared_snippet,
    csv,
    html,
    snippet,
    write_html,
    write_npz,
)
from densembed.markup import one_line
from densembed.training.checkpoint import Checkpoint


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


def figures_of(page) -> list[tuple[dict, dict, dict]]:
    """The trace, the layout and the config of each figure that the page gives to plotly."""
    decoder, found = json.JSONDecoder(), []
    for call in re.finditer(r'Plotly\.newPlot\(\s*"[-0-9a-f]{36}",', page):
        data, end = decoder.raw_decode(page, page.index("[{", call.end()))
        layout, end = decoder.raw_decode(page, page.index("{", end))
        config, _ = decoder.raw_decode(page, page.index("{", end))
        (trace,) = data
        found.append((trace, layout, config))
    return found


def frames_of(page) -> list[dict]:
    start = page.rindex("Plotly.addFrames(")
    return json.JSONDecoder().raw_decode(page, page.index("[{", start))[0]


def headings_of(page) -> list[str]:
    return [unescape(text) for text in re.findall(r"<h2>([^<]*)</h2>", page)]


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
    traces = [trace for trace, *_ in figures_of(page)]
    assert len(traces) == 3
    np.testing.assert_allclose(values(traces[0]), pixels[0] / 255, atol=1e-6)
    np.testing.assert_allclose(values(traces[1]), seen.fields[0][0], rtol=1e-6)
    np.testing.assert_allclose(values(traces[2]), seen.fields[1][0], rtol=1e-6)
    for trace in traces[1:]:
        assert (trace["zmin"], trace["zmax"]) == (0, pytest.approx(seen.top))
        assert trace["colorbar"]["title"]["text"] == "density per pixel²"
    assert headings_of(page) == ["input", "before training", "at this step"]
    title = "Logistic-EL with mNN, B = 4, B₀ = 2, scikit-learn digits (8×8, upscaled)"
    assert unescape(re.search("<title>(.*)</title>", page)[1]) == title


def test_html_fits_any_screen_and_its_pixels_are_square(page):
    assert '<meta name="viewport" content="width=device-width' in page
    heights = re.findall(r"height:calc\(\(100cqw - (\d+)px\) \* ([\d.]+) \+ (\d+)px\)", page)
    assert len(heights) == len(figures_of(page)) == 3
    for (beside, ratio, over), (_, layout, config) in zip(heights, figures_of(page), strict=True):
        assert config["responsive"]
        assert not {"width", "height"} & set(layout)
        margin = layout["margin"]
        assert (int(beside), int(over)) == (margin["l"] + margin["r"], margin["t"] + margin["b"])
        assert margin["autoexpand"] is False
        assert float(ratio) == 1  # 28 × 28
        assert layout["yaxis"]["range"] == [28, 0]


def test_no_button_of_an_html_page_sends_the_figure_elsewhere(page):
    """Plotly's "Share chart ..." uploads it to a third party."""
    for _, _, config in figures_of(page):
        assert config["modeBarButtons"] == [["toImage"]]
        assert config["showSendToCloud"] is False
        assert config["displaylogo"] is False
        assert "plotlyServerURL" not in config


def test_html_has_a_slider_over_every_step(trained, digits):
    pixels = digits.test.images[2]
    seen = view(trained, pixels)
    page = html(trained, pixels, seen, 3)
    trace, layout, _ = figures_of(page)[2]
    np.testing.assert_allclose(values(trace), seen.fields[3][0], rtol=1e-6)
    frames = frames_of(page)
    assert [frame["name"] for frame in frames] == [str(step) for step in trained.steps]
    for frame, field in zip(frames, seen.fields, strict=True):
        np.testing.assert_allclose(values(frame["data"][0]), field[0], rtol=1e-6)
    (slider,) = layout["sliders"]
    assert slider["active"] == 3
    assert [step["args"][0] for step in slider["steps"]] == [[f["name"]] for f in frames]
    assert layout["updatemenus"][0]["buttons"][0]["label"] == "Play"
    assert "Plotly.animate(" not in page[page.rindex("Plotly.newPlot(") :]  # it waits for a click


def test_a_field_that_never_changes_has_no_slider(trained, digits):
    pixels = digits.test.images[2]
    page = html(trained, pixels, view(trained, pixels, [0, 0]))
    assert "sliders" not in figures_of(page)[2][1]
    assert headings_of(page)[2] == "before training"


def test_an_html_page_of_many_large_steps_leaves_some_out(trained, digits, monkeypatch):
    pixels = digits.test.images[2]
    seen = view(trained, pixels, resolution=1)
    monkeypatch.setattr(export, "MOST_CELLS", 4 * 28 * 28)
    names = [int(frame["name"]) for frame in frames_of(html(trained, pixels, seen, 1))]
    assert {0, trained.steps[1], trained.steps[-1]} <= set(names)
    assert 4 <= len(names) <= 5 < len(trained.steps)
    assert export.steps_in_page(seen, 1) == f"{len(names)} of {len(trained.steps)} saved steps"
    monkeypatch.undo()
    assert export.steps_in_page(seen, 1) == "all saved steps"


HOSTILE = (
    "</title><script>alert(1)</script> $\\href{x}{y}$ ![a](http://b.example) \x00\x0b\n&amp; 7"
)
"""A title that is markup in HTML, in Markdown, in TeX and in XML's sense no text at all."""


def test_a_title_is_no_markup_in_html(trained, digits):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = HOSTILE
    hostile = Checkpoint(header, trained.tensors)
    pixels = digits.test.images[2]
    page = html(hostile, pixels, view(hostile, pixels, [0, -1]))
    assert "alert(1)</script>" not in page
    assert one_line(HOSTILE) in unescape(re.search("<title>(.*)</title>", page)[1])
    assert one_line(HOSTILE) in unescape(re.search("<h1>(.*)</h1>", page)[1])


def test_a_title_is_no_markup_in_html_of_several_models(shown):
    pixels, seen = shown
    fields = {"first": seen.fields[0]}
    page = compared_html(pixels, seen.x, seen.y, fields, {"first": HOSTILE}, 0.5, title=HOSTILE)
    assert "alert(1)</script>" not in page
    assert headings_of(page)[1] == one_line(HOSTILE)


def test_csv_has_a_line_for_each_cell(shown):
    _, seen = shown
    header, *lines = csv(seen, 0, other=2 * seen.fields[1]).splitlines()
    assert header == "column,row,before,after,other"
    table = np.array([line.split(",") for line in lines], float).reshape(84, 84, 5)
    np.testing.assert_allclose(table[5, :, 0], seen.x)
    np.testing.assert_allclose(table[:, 9, 1], seen.y)
    for column, values in ((2, seen.fields[0]), (3, seen.fields[0]), (4, 2 * seen.fields[1])):
        np.testing.assert_allclose(table[..., column], values.sum(0), 1e-7)


@pytest.mark.slow
def test_snippet_runs_and_makes_the_same_numbers(trained, trained_file, digits, tmp_path):
    pixels, step = digits.test.images[2], trained.steps[3]
    (tmp_path / trained_file.name).write_bytes(trained_file.read_bytes())
    program = snippet(trained_file.name, pixels, step)
    assert len(program.splitlines()) <= 14
    save = 'import numpy; numpy.savez("made", after=after, x=views.x, pixels=pixels)\n'
    command = [sys.executable, "-c", program + save]
    root = Path(__file__).parents[2]
    subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    seen = view(trained, pixels)
    with np.load(tmp_path / "made.npz") as made:
        np.testing.assert_array_equal(made["after"], seen.fields[3])
        np.testing.assert_array_equal(made["x"], seen.x)
        np.testing.assert_array_equal(made["pixels"], pixels)
    assert "<html" in (tmp_path / "field.html").read_text(encoding="utf-8")


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


@pytest.mark.slow
def test_the_program_of_a_comparison_runs(trained_file, trained, shown, tmp_path):
    files = {"first": trained_file.name, "second": trained_file.name}
    steps = {"first": trained.steps[-1], "second": trained.steps[0]}
    parts = {"first": 1, "second": 16}
    program = compared_snippet(files, shown[0], steps, parts) + "\nprint(abs(fields[1]).sum())\n"
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
    assert (trained_file.parent / "differences.html").exists()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_html_of_several_models_shows_their_fields_and_differences(trained, shown, count):
    pixels, seen = shown
    names = ("first", "second", "third", "fourth")[:count]
    fields = {name: (k + 1) * seen.fields[k % 2] for k, name in enumerate(names)}
    titles = {name: f"{name}, after training" for name in names}
    page = compared_html(pixels, seen.x, seen.y, fields, titles, 0.5)
    data = [trace for trace, *_ in figures_of(page)]
    assert len(data) == 1 + count + count - 1
    np.testing.assert_allclose(values(data[0]), pixels[0] / 255, atol=1e-6)
    for k, name in enumerate(names):
        np.testing.assert_allclose(values(data[1 + k]), fields[name][0], rtol=1e-6)
        assert (data[1 + k]["zmin"], data[1 + k]["zmax"]) == (0, 0.5)
    for k, name in enumerate(names[1:]):
        change = values(data[1 + count + k])
        np.testing.assert_allclose(change, (fields[name] - fields["first"])[0], rtol=1e-6)
        assert (data[1 + count + k]["zmin"], data[1 + count + k]["zmax"]) == (-0.5, 0.5)
    changes = [f"{name} − first" for name in names[1:]]
    assert headings_of(page) == ["input", *titles.values(), *changes]
