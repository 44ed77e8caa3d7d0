"""Figures for print: their width, text that fits, and the colours of the values."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from plotly.colors import get_colorscale, sample_colorscale, unlabel_rgb

from densembed.fields.field import view
from densembed.figures.export import printed, write_printed
from densembed.figures.printed import DPI, KINDS, WIDTHS, sheet, sheet_figure
from densembed.figures.signals import signal_figure, signal_sheet
from densembed.markup import one_line
from densembed.models.names import describe

LONG = "Adaptive convolution and pooling, Logistic-EL with mNN, B = 8, B₀ = 4"
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


@pytest.fixture(scope="module")
def shown(trained, digits):
    pixels = digits.test.images[2]
    return pixels.numpy(), view(trained, pixels)


def fields_of(response) -> dict[str, np.ndarray]:
    return {
        "before training": response.fields[0].sum(0),
        f"{LONG}, after training": response.fields[-1].sum(0),
    }


def pictures(root: ElementTree.Element) -> list[np.ndarray]:
    """The images of an SVG, as they are seen: one is stored upside down and turned over."""
    images = []
    for image in root.iter(f"{SVG}image"):
        data = base64.b64decode(image.get(LINK).partition(",")[2])
        array = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), int)
        scales = re.findall(r"scale\(\S+ (\S+)\)", image.get("transform", ""))
        turned = np.prod([float(scale) for scale in scales]) < 0
        images.append(array[::-1] if turned else array)
    return images


def colour(scale: str, share: float) -> np.ndarray:
    """As the page has it, from Plotly."""
    (label,) = sample_colorscale(get_colorscale(scale), [float(np.clip(share, 0, 1))])
    return np.array(unlabel_rgb(label))


def test_other_kinds_and_widths_are_refused(shown, trained, digits, tmp_path):
    pixels, response = digits.test.images[2], shown[1]
    for name, got in (("a.jpg", "JPG"), ("a", "")):
        with pytest.raises(ValueError, match=rf"figure as SVG, PDF, PNG; got '{got}'\.$"):
            write_printed(tmp_path / name, trained, pixels, response)
    with pytest.raises(ValueError, match=r"one column, two columns; got 'three columns'\.$"):
        printed(trained, pixels, response, -1, "SVG", "three columns")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_svg_has_words_and_cells(shown, columns):
    pixels, response = shown
    fields = fields_of(response)
    before, after = fields.values()
    changes = {"second − first": after - before}
    root = ElementTree.fromstring(
        sheet(pixels, fields, response.top, LONG, "SVG", columns, changes)
    )
    wide = float(root.get("width").removesuffix("pt"))
    assert wide / 72 * 25.4 == pytest.approx(WIDTHS[columns], abs=0.01)
    words = " ".join(text.text for text in root.iter(f"{SVG}text"))
    words = words.replace("\N{NO-BREAK SPACE}", " ")
    for said in (
        "input",
        "before training",
        "second − first",
        "density per pixel²",
        "B₀ = 4",
        f"{response.top:.3g}",
        f"−{response.top:.3g}",
    ):
        assert said in words
    ink, *cells = pictures(root)
    np.testing.assert_array_equal(ink[..., 0], pixels[0])
    cells = [picture for picture in cells if picture.shape[:2] == before.shape]
    for picture, values, scale, low in zip(
        cells,
        (before, after, after - before),
        ("Cividis", "Cividis", "RdBu_r"),
        (0, 0, -response.top),
        strict=True,
    ):
        for row, column in ((10, 10), (56, 60), (100, 30), (40, 70)):
            share = (values[row, column] - low) / (response.top - low)
            assert abs(picture[row, column] - colour(scale, share)).max() <= 2


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("differ", [False, True])
def test_a_png_is_as_wide_in_print_and_nothing_is_cut(shown, columns, differ):
    pixels, response = shown
    fields = fields_of(response)
    changes = {"second − first": response.fields[-1].sum(0)} if differ else None
    data = sheet(pixels, fields, response.top, LONG, "PNG", columns, changes)
    check_png(data, columns)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("differ", [False, True])
def test_a_png_of_a_signal_is_as_wide_in_print_and_nothing_is_cut(columns, differ):
    values = np.linspace(0, 1, 40)[None]
    fields = {LONG: values[0], f"{LONG}, after training": values[0]}
    changes = {f"{LONG} − first": values[0]} if differ else None
    look = {"colours": ("red", "blue"), "changes": changes}
    check_png(signal_sheet(values, fields, f"{LONG}, 数字 {LONG}", "PNG", columns, **look), columns)
    made = signal_sheet(values, fields, "数字", "SVG", columns, **look)
    assert "数字" in "".join(ElementTree.fromstring(made).itertext()).split("Matplotlib")[-1]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_legend_lies_above_the_curves(columns):
    values = np.linspace(0, 1, 40)
    page = signal_figure(values[None], {LONG: values, "b": values}, "", columns)
    page.draw_without_rendering()
    plot = page.axes[1]
    assert plot.get_legend().get_window_extent().y0 >= plot.get_window_extent().y1


def check_png(data: bytes, columns: str) -> None:
    """That a figure has its width at its resolution, and that no letter meets the edge."""
    with Image.open(io.BytesIO(data)) as image:
        assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=0.1)
        assert image.width / DPI * 25.4 == pytest.approx(WIDTHS[columns], abs=0.1)
        page = np.asarray(image.convert("RGB"), int)
    dark = (page < 250).any(2)
    for side in (dark, dark.T):
        used = side.any(0).nonzero()[0]
        assert side.shape[1] * 0.002 < used.min() < used.max() < side.shape[1] * 0.998


def test_a_pdf_is_as_wide_in_print_and_has_its_words(shown):
    pixels, response = shown
    data = sheet(pixels, fields_of(response), response.top, "a", "PDF", "one column")
    assert data.startswith(b"%PDF-")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
    assert float(box[1]) * 25.4 / 72 == pytest.approx(85, abs=0.1)
    assert b"/Type0" in data or b"/TrueType" in data  # letters, no pixels
    assert data == sheet(pixels, fields_of(response), response.top, "a", "PDF", "one column")


def test_a_checkpoint_s_sheet_says_model_data_and_steps(trained, digits):
    pixels = digits.test.images[0]
    root = ElementTree.fromstring(printed(trained, pixels, view(trained, pixels), -1, "SVG"))
    words = {text.text for text in root.iter(f"{SVG}text")}
    assert {"before training, step 0", f"after training, step {trained.steps[-1]:,}"} <= words
    assert any(trained.header.provenance.dataset_title in word for word in words)


def test_a_file_has_the_title_of_its_figure(shown):
    pixels, response = shown
    made = {kind: sheet(pixels, fields_of(response), response.top, LONG, kind) for kind in KINDS}
    written = re.search(rb"/Title \((.*?)(?<!\\)\)", made["PDF"], re.DOTALL)[1]
    assert unescaped(written).decode("utf-16") == LONG
    root = ElementTree.fromstring(made["SVG"])
    assert root.find(f"{SVG}title").text == LONG
    with Image.open(io.BytesIO(made["PNG"])) as image:
        assert image.text["Title"] == LONG


def unescaped(written: bytes) -> bytes:
    """A string of a PDF without its backslashes."""
    octal = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), written)
    return re.sub(
        rb"\\(.)", lambda m: {b"n": b"\n", b"r": b"\r"}.get(m[1], m[1]), octal, flags=re.DOTALL
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error:Glyph")
def test_a_title_without_glyphs_leaves_no_empty_boxes(shown, kind):
    pixels, seen = shown
    fields, title = {"数字": seen.fields[0].sum(0)}, "é Γ₀² 数字 🦊"
    made = sheet(pixels, fields, seen.top, title, kind)
    if kind == "SVG":  # the viewer has the fonts
        assert title.encode() in made
    else:
        escaped = sheet(
            pixels,
            {"\\u6570\\u5b57": fields["数字"]},
            seen.top,
            "é Γ₀² \\u6570\\u5b57 \\U0001f98a",
            kind,
        )
        if kind == "PNG":
            one, other = (np.asarray(Image.open(io.BytesIO(file))) for file in (made, escaped))
            assert (one == other).all()
        assert len(made) == pytest.approx(len(escaped), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "title", ["$\\href{x}{y}$", "100 $ and $\\frac{1}$", "a\x00b\x0b\n<c>&", "\\"]
)
def test_a_title_is_no_formula_and_no_markup(shown, kind, title):
    """A checkpoint's title may come from anyone."""
    pixels, response = shown
    fields = {title: response.fields[0].sum(0)}
    made = sheet(pixels, fields, response.top, title, kind)
    if kind == "SVG":
        words = {text.text for text in ElementTree.fromstring(made).iter(f"{SVG}text")}
        assert one_line(title) in words


@pytest.mark.parametrize("shape", [(200, 2), (2, 200), (64, 4)])
def test_panels_keep_the_shape_of_the_picture_on_a_page(shape):
    pixels = np.zeros((2, *shape), np.uint8)
    figure = sheet_figure(pixels, {"field": np.ones(shape)}, 1.0, "A title")
    width, height = figure.get_size_inches() * 25.4
    assert width == pytest.approx(178)
    assert height < 247  # of a page of A4 between margins
    panels = [axes.get_position() for axes in figure.axes[:2]]
    for panel in panels:
        ratio = panel.height * height / (panel.width * width)
        assert ratio == pytest.approx(shape[0] / shape[1])


def test_channels_that_are_no_colours_are_printed_as_their_mean():
    pixels = np.array([[[0, 100]], [[50, 200]]], np.uint8)
    figure = sheet_figure(pixels, {"field": np.ones((1, 2))}, 1.0, "A title")
    ink = figure.axes[0].images[0].get_array()
    assert ink.tolist() == [[[25] * 3, [150] * 3]]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", ["logistic-el-mnn-mass-6-3", "stages-4-5-7-logistic-el-2"])
def test_a_title_is_not_cut_at_the_sides(columns, name):
    pixels, field = np.zeros((1, 4, 4), np.uint8), np.ones((4, 4))
    page = sheet_figure(pixels, {"after": field}, 1.0, f"{describe(name)}, MNIST", columns)
    FigureCanvasAgg(page).draw()
    title = page.texts[0].get_window_extent()
    assert 0 < title.x0 < title.x1 < page.bbox.width
