"""Receptive fields in a notebook: what a cell returns."""

import base64
import gzip
import html
import math
import re
import warnings
from dataclasses import replace

import matplotlib
import nbformat
import numpy as np
import pytest
import torch
from PIL import Image

import densembed
from densembed.data import as_input
from densembed.data.images import ImageError, read_picture
from densembed.data.scaling import Scaling
from densembed.fields.field import view
from densembed.notebook import EXAMPLES, as_pixels, figure, show
from densembed.training.checkpoint import Checkpoint
from tests.tour import execute


def test_the_panel_contains_the_page(trained, digits):
    panel = densembed.show(trained, digits.test.images[3], height=500, step="20")
    (packed,) = re.findall(r'= "([\w+/=]{1000,})";', panel.html)
    assert Checkpoint.from_bytes(base64.b64decode(packed)).digest == trained.digest
    assert "explore?step=20" in panel.html
    cell = panel._repr_html_()
    assert 'height="500"' in cell
    (frame,) = re.findall(r'srcdoc="(.*?)"', cell, re.S)
    (packed,) = re.findall(r'atob\("(.*?)"\)', html.unescape(frame))
    assert gzip.decompress(base64.b64decode(packed)).decode() == panel.html


def test_frames_that_are_not_read_are_named(trained, pictures, tmp_path):
    page = Image.open(pictures["digit"])
    page.save(tmp_path / "a.gif", save_all=True, append_images=[page.rotate(20)])
    for function in (densembed.show, densembed.figure):
        with pytest.warns(UserWarning, match=r"^a\.gif has 2 frames: only the first was") as caught:
            function(trained, tmp_path / "a.gif")
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "1"])
def test_an_image_of_pil_is_read_as_its_file(trained, pictures, tmp_path, mode):
    image = Image.open(pictures["digit"]).convert(mode)
    path = tmp_path / "a.tiff"
    image.save(path)
    assert torch.equal(as_pixels(trained, image), as_pixels(trained, path))


@pytest.mark.parametrize(
    ("dtype", "most"), [("f4", 1), ("i4", 65535), ("u2", 65535), (">u2", 65535)]
)
def test_a_deep_image_of_pil_has_the_levels_of_its_file(trained, pictures, tmp_path, dtype, most):
    grey = np.asarray(Image.open(pictures["digit"]).convert("L")) / 255
    values = (grey * most).astype(dtype)
    if dtype == ">u2":
        deep = Image.frombytes("I;16B", grey.shape[::-1], values.tobytes())
    else:
        deep = Image.fromarray(values)
    deep.save(tmp_path / "a.tiff")
    opened = Image.open(tmp_path / "a.tiff")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for image in (deep, opened):
            read = as_pixels(trained, image)
            assert (read.int() - as_pixels(trained, pictures["digit"]).int()).abs().max() <= 1
            assert torch.equal(read, as_pixels(trained, tmp_path / "a.tiff"))


@pytest.mark.parametrize(("mode", "file"), [("La", "LA"), ("RGBa", "RGBA"), ("PA", "RGBA")])
def test_an_image_of_pil_keeps_what_is_transparent(trained, pictures, mode, file):
    ink = Image.open(pictures["digit"]).convert("L").point(lambda value: 255 - value)
    page = Image.new(file, ink.size, "black")
    page.putalpha(ink)
    if mode == "PA":
        image = Image.new("P", ink.size)
        image.putpalette([0, 0, 0])
        image.putalpha(ink)
    else:
        image = page.convert(mode)
    assert image.mode == mode
    assert torch.equal(as_pixels(trained, image), as_pixels(trained, page))
    assert as_pixels(trained, image).max() > 200


def test_an_image_of_pil_has_the_warnings_of_its_file(trained, pictures, tmp_path):
    page = Image.open(pictures["digit"]).convert("L")
    several = Image.new("L", (2 * page.width, page.height), 255)
    for k in range(2):
        several.paste(page, (k * page.width, 0))
    several.save(tmp_path / "a.png")
    for image in (several, tmp_path / "a.png"):
        with pytest.warns(UserWarning, match=r"^Several digits were found: the first in reading"):
            as_pixels(trained, image)


def test_a_photograph_of_pil_is_upright(trained, pictures, tmp_path):
    image = Image.open(pictures["digit"]).convert("L")
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    image.save(tmp_path / "a.png", exif=exif)
    opened = Image.open(tmp_path / "a.png")
    assert torch.equal(as_pixels(trained, opened), as_pixels(trained, tmp_path / "a.png"))
    assert not torch.equal(as_pixels(trained, opened), as_pixels(trained, image))


def test_a_picture_file_that_is_not_there_is_named(trained):
    with pytest.raises(ImageError, match=r"nowhere\.png cannot be read"):
        figure(trained, "nowhere.png")


def test_a_panel_is_small(trained):
    """A notebook stores it: the file of the model, the modules, and a few examples."""
    assert EXAMPLES < 5
    assert len(densembed.show(trained)._repr_html_()) < 200_000 + 2 * len(trained.to_bytes())


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_a_figure_has_the_fields(trained, digits, backend):
    pixels = digits.test.images[3]
    figure = densembed.figure(trained, pixels, backend=backend, resolution=2)
    fields = view(trained, pixels, [0, -1], resolution=2).fields
    if backend == "plotly":
        drawn = [np.array(trace.z) for trace in figure.data]
        assert figure.layout.coloraxis.cmin == 0
        assert figure.layout.yaxis.scaleanchor == "x"
    else:
        drawn = [image.get_array() for axes in figure.axes for image in axes.images]
    for values, field in zip(drawn[1:3], fields, strict=True):
        np.testing.assert_allclose(values, field[0], 1e-6)


@pytest.mark.slow
def test_a_notebook_displays_a_figure_without_pyplot(trained, tmp_path):
    """In a cell that draws nothing else, as the backend would be loaded by pyplot's figures."""
    trained.save(tmp_path / "a.safetensors")
    code = "import densembed\ndensembed.figure(densembed.Checkpoint.open('a.safetensors'))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    execute(notebook, tmp_path)
    (output,) = notebook.cells[0].outputs
    assert "image/png" in output.data


def test_a_figure_leaves_the_settings_of_matplotlib(trained, digits):
    before = dict(matplotlib.rcParams)
    drawn = figure(trained, digits.test.images[0], backend="matplotlib")
    assert dict(matplotlib.rcParams) == before
    assert not any(text.get_parse_math() for text in drawn.texts)
    assert drawn.texts


def test_an_unknown_backend_is_named(trained):
    with pytest.raises(ValueError, match="matplotlib or plotly; got 'bokeh'"):
        densembed.figure(trained, backend="bokeh")


@pytest.mark.parametrize("snapshot", [1000, -1000])
def test_a_figure_of_no_snapshot_is_an_error(trained, snapshot):
    with pytest.raises(ValueError, match=f"There is no snapshot {snapshot:,}: a checkpoint with "):
        densembed.figure(trained, snapshot=snapshot)


@pytest.mark.parametrize("snapshot", [1.5, "1", None, True])
def test_the_index_of_a_snapshot_is_an_integer(trained, snapshot):
    for function in (lambda: figure(trained, snapshot=snapshot), lambda: trained.model(snapshot)):
        with pytest.raises(
            ValueError, match=rf"integer as the index of a snapshot; got {snapshot!r}"
        ):
            function()


@pytest.mark.parametrize("height", [math.nan, -5, "a"])
def test_the_height_of_a_panel_is_a_positive_integer(trained, height):
    with pytest.raises(ValueError, match=rf"height .*; got {height!r}\.$"):
        show(trained, height=height)


def test_inputs_in_any_form_are_the_same_pixels(trained, digits, tmp_path):
    pixels = digits.test.images[3]
    for given in (
        pixels,
        pixels[None],
        pixels.numpy(),
        as_input(pixels),
        as_input(pixels[None], torch.float64),
        as_input(pixels).numpy(),
    ):
        assert torch.equal(as_pixels(trained, given), pixels)
    assert torch.equal(as_pixels(trained), digits.test.images[0])
    assert torch.equal(as_pixels(trained, pixels > 99), (pixels > 99).to(torch.uint8) * 255)
    path = tmp_path / "a.png"
    Image.fromarray(255 - pixels[0].numpy()).resize((280, 280)).save(path)
    assert torch.equal(as_pixels(trained, path), read_picture(path).pixels)


@pytest.mark.filterwarnings("error")
def test_arrays_of_any_layout_are_the_same_pixels(trained, digits):
    pixels = digits.test.images[3]
    array = pixels.numpy()
    mirrored = np.ascontiguousarray(array[..., ::-1])
    for given in (
        np.asarray(Image.fromarray(array[0]))[None],  # read-only
        mirrored[..., ::-1],
        as_input(pixels).numpy().astype(">f4"),
        np.asfortranarray(array),
        pixels.to_sparse(),
        as_input(pixels).to_sparse(),
    ):
        assert torch.equal(as_pixels(trained, given), pixels)
    taken = as_pixels(trained, mirrored)
    mirrored[:] = 0
    assert taken.any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (torch.zeros(28, 28, dtype=torch.uint8), r"shape \(1, 28, 28\), or one in a batch"),
        (torch.zeros(2, 1, 28, 28), "or one in a batch; got"),
        (torch.full((1, 28, 28), 200.0), "ink from 0 to 1"),
        (torch.full((1, 28, 28), torch.nan), "ink from 0 to 1"),
        (torch.zeros(1, 28, 28, dtype=torch.int64), "Expected pixels in uint8"),
        (torch.zeros(1, 28, 28, dtype=torch.uint16), "uint16 from 0 to 0"),
        (torch.zeros(1, 28, 28, dtype=torch.complex64), r"complex64\. Divide"),
        (
            torch.nested.nested_tensor([torch.zeros(28, 28)], layout=torch.jagged),
            "a nested one. Convert it with",
        ),
    ],
)
def test_other_inputs_are_refused_in_a_sentence(trained, given, words):
    with pytest.raises(ValueError, match=words):
        as_pixels(trained, given)


@pytest.mark.parametrize("function", [show, figure])
def test_a_path_is_no_checkpoint(function, trained_file, pictures):
    with pytest.raises(TypeError, match=r"Checkpoint\.open.*; got PosixPath\.$"):
        function(trained_file, pictures["digit"])


@pytest.mark.parametrize("resolution", [0, 1.5, None, "2"])
def test_a_figure_has_at_least_one_cell_per_pixel(trained, resolution):
    with pytest.raises(ValueError, match=rf"resolution .*; got {resolution!r}\.$"):
        figure(trained, resolution=resolution)


def test_a_figure_that_would_exhaust_the_memory_is_refused(trained):
    with pytest.raises(ValueError, match=r"resolution of 1,000,000 makes more than 67,108,864"):
        figure(trained, resolution=10**6)


def test_a_model_of_signals_is_refused(trained):
    header = trained.header.model_copy(
        update={"input_shape": (1, 784), "scaling": Scaling(mean=0.0, std=1.0)}
    )
    with pytest.raises(ValueError, match="models of images"):
        as_pixels(replace(trained, header=header))
