"""The command `render`."""

import re

import numpy as np
import pytest
from PIL import Image

from densembed.data.images import read_picture
from densembed.fields.field import view
from densembed.figures.export import printed
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from tests.cli.conftest import fails


def test_render_arrays(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.npz"
    result = run(
        "render", trained_file, "--image", pictures["digit"], "--out", out, "--resolution", "3"
    )
    assert result == (0, f"saved: {out}\n", "")
    with np.load(out) as file:
        assert sorted(file.files) == ["after", "before", "input", "x", "y"]
        assert file["before"].shape == file["after"].shape == (1, 84, 84)
        assert file["input"].shape == (1, 28, 28)
        assert not np.allclose(file["before"], file["after"])


def test_render_on_another_grid(run, trained_file, trained, pictures, tmp_path):
    out = tmp_path / "a.npz"
    arguments = ("--image", pictures["digit"], "--out", out, "--grid", "14×20")
    assert run("render", trained_file, *arguments) == (0, f"saved: {out}\n", "")
    model = build(trained.config.model, (1, 14, 20))  # the same weights in a model of that size
    model.load_state_dict(trained.state())
    pixels = read_picture(pictures["digit"], (1, 14, 20)).pixels
    with np.load(out) as file:
        assert (file["input"] == pixels.numpy()).all()
        field = model.receptive_field(pixels[None] / 255).sum(2)[0]
        np.testing.assert_allclose(file["after"], field.detach(), rtol=1e-4, atol=1e-5)


def test_render_a_page(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.html"
    status, _, errors = run("render", trained_file, "--image", pictures["digit"], "--out", out)
    assert (status, errors) == (0, "")
    page = out.read_text(encoding="utf-8")
    assert '"link": "explore?from=upload"' in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)\s*=\s*.(https?:)?//", page)


def test_render_an_empty_page_says_so(run, trained_file, pictures, tmp_path):
    out = tmp_path / "a.npz"
    status, _, errors = run("render", trained_file, "--image", pictures["empty"], "--out", out)
    assert status == 0
    assert errors == "densembed: No digit was found, so a blank image is used.\n"
    assert not np.load(out)["input"].any()


def test_render_of_several_digits_says_so(run, trained_file, pictures, tmp_path):
    one = Image.open(pictures["digit"]).convert("L")
    row = Image.new("L", (2 * one.width, one.height))
    for place in (0, one.width):
        row.paste(one, (place, 0))
    row.save(tmp_path / "row.png")
    inputs = []
    for image in (tmp_path / "row.png", pictures["digit"]):
        out = tmp_path / "a.npz"
        status, _, errors = run("render", trained_file, "--image", image, "--out", out)
        assert status == 0
        several = "densembed: Several digits were found: the first in reading order is used.\n"
        assert errors == (several if image.stem == "row" else "")
        inputs.append(np.load(out)["input"].astype(float))
    assert abs(inputs[0] - inputs[1]).mean() < 4


@pytest.mark.parametrize(
    "command",
    [("render", "--out", "a.npz"), ("export", "--to", "csv", "--out", "a.csv")],
    ids=["render", "export"],
)
def test_pages_that_are_not_read_are_named(run, trained_file, pictures, tmp_path, command):
    page = Image.open(pictures["digit"])
    page.save(tmp_path / "a.tif", save_all=True, append_images=[page.rotate(20), page.rotate(40)])
    name, *options, out = command
    arguments = ("--image", tmp_path / "a.tif", *options, tmp_path / out)
    status, _, errors = run(name, trained_file, *arguments)
    assert (status, errors) == (0, "densembed: a.tif has 3 pages: only the first was read.\n")
    if out == "a.npz":
        expected = read_picture(pictures["digit"]).pixels.numpy()
        assert (np.load(tmp_path / out)["input"] == expected).all()


@pytest.mark.parametrize("kind", [".svg", ".pdf", ".png", ".PNG"])
def test_render_for_print(run, trained_file, pictures, tmp_path, kind):
    out = tmp_path / f"a{kind}"
    status, _, _ = run("render", trained_file, "--image", pictures["digit"], "--out", out)
    checkpoint = Checkpoint.open(trained_file)
    pixels = read_picture(pictures["digit"], checkpoint.header.input_shape).pixels
    expected = view(checkpoint, pixels, [0, -1])
    assert status == 0
    assert out.read_bytes() == printed(checkpoint, pixels, expected, -1, kind[1:].upper())


@pytest.mark.parametrize("resolution", ["0", "33", "2.5", "many"])
def test_render_has_a_range_of_resolutions(run, trained_file, pictures, tmp_path, resolution):
    out = tmp_path / "a.npz"
    arguments = ["--image", pictures["digit"], "--out", out, "--resolution", resolution]
    status, _, errors = run("render", trained_file, *arguments)
    assert (status, out.exists()) == (2, False)
    assert f"takes a whole number from 1 to 32; got {resolution}" in errors


def test_render_refuses(run, trained_file, pictures, tmp_path):
    def render(image=pictures["digit"], out=tmp_path / "a.npz", *more):
        return fails(run("render", trained_file, "--image", image, "--out", out, *more))

    assert "must end in .html, .svg, .pdf, .png or .npz" in render(out=tmp_path / "a.txt")
    assert "--grid is not for pages" in render(
        pictures["digit"], tmp_path / "a.html", "--grid", "14"
    )
    assert "--resolution is not for pages" in render(
        pictures["digit"], tmp_path / "a.html", "--resolution", "4"
    )
    large = ("--grid", "1024", "--resolution", "9")
    assert "more than 8,192 cells along an axis" in render(
        pictures["digit"], tmp_path / "a.npz", *large
    )
    assert "not a picture" in render(image=pictures["letter"])
    assert "cannot be read" in render(image=tmp_path / "no.png")
    for name in ("a.npz", "a.html"):
        line = render(out=tmp_path / "no" / name)
        assert f"--out {tmp_path / 'no' / name} cannot be written" in line
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize("linked", [False, True])
def test_no_result_replaces_what_it_is_made_from(run, trained_file, pictures, tmp_path, linked):
    model, image = tmp_path / "a.safetensors", tmp_path / "a.png"
    model.write_bytes(trained_file.read_bytes())
    image.write_bytes(pictures["digit"].read_bytes())
    outs = {path: tmp_path / f"link{path.suffix}" if linked else path for path in (model, image)}
    if linked:
        for path, link in outs.items():
            link.symlink_to(path.name)
    commands = {
        image: ["render", model, "--image", image],
        model: ["export", model, "--to", "csv"],
    }
    for path, command in commands.items():
        before, out = path.read_bytes(), outs[path]
        line = fails(run(*command, "--out", out))
        assert line == (
            f"densembed: --out {out} would replace {path}, which the command reads: choose another "
            "path."
        )
        assert path.read_bytes() == before
    fails(run("export", model, "--to", "csv", "--image", image, "--out", outs[image]))
    assert image.read_bytes() == pictures["digit"].read_bytes()
