"""The model's input in the browser is that of Python: of drawings, and of changed pictures."""

import base64
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as configure
from hypothesis import strategies as some

from densembed.data.images import read_picture
from densembed.data.transform import Transform, scaled_images
from densembed.fields.field import logits
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import ROOT
from tests.browser.drawings import digit

MODULES = ROOT / "densembed/web/input"
PAPER = ROOT / "checkpoints/paper/logistic-el-mnn-10-5.safetensors"
# As the pad of the app draws and sends it. The second input is of the strokes alone, which grow.
DRAW = """async ([cases, height, width]) => {
  const { Raster, toInput } = await import("/strokes.js");
  const inkOf = ({ data, width, height }) =>
    Float32Array.from({ length: width * height }, (_, i) => {
      const [red, green, blue, alpha] = data.subarray(4 * i, 4 * i + 4);
      return ((1 - (0.299 * red + 0.587 * green + 0.114 * blue) / 255) * alpha) / 255;
    });
  const canvas = (side) => Object.assign(document.createElement("canvas"),
    { width: side, height: side });
  const plain = ({ pixels, content, clean }) => ({ pixels: Array.from(pixels), content, clean });
  const raster = new Raster();
  return cases.map((strokes) => {
    const pad = canvas(560), sent = canvas(280);
    const pen = pad.getContext("2d"), small = sent.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 560, 560);
    pen.lineCap = pen.lineJoin = "round";
    for (const { width, points } of strokes) {
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(points[0], points[1]);
      if (points.length === 2) pen.lineTo(points[0] + 0.01, points[1]);
      for (let k = 2; k < points.length; k += 2) pen.lineTo(points[k], points[k + 1]);
      pen.stroke();
    }
    small.drawImage(pad, 0, 0, 280, 280);
    raster.draw([]);
    const growing = strokes.map((stroke) => ({ ...stroke, points: [] }));
    strokes.forEach((stroke, k) => {
      for (let i = 0; i < stroke.points.length; i += 2) {
        growing[k].points.push(...stroke.points.slice(i, i + 2));
        raster.draw(growing.slice(0, k + 1));
      }
    });
    const grown = Array.from(raster.ink);
    const again = new Raster().draw([...strokes, { width: 30, points: [1, 2, 300, 400] }]);
    const undone = new Raster();
    undone.draw([...growing, { width: 30, points: [1, 2, 300, 400] }]);
    return {
      png: sent.toDataURL("image/png").split(",")[1],
      painted: plain(toInput(inkOf(small.getImageData(0, 0, 280, 280)), height, width)),
      drawn: plain(toInput(raster.ink, height, width)),
      longer: again.some((value, i) => value !== grown[i]),
      undone: undone.draw(growing).every((value, i) => value === grown[i]),
    };
  });
}"""
TRANSFORM = """async ([pixels, shape, how]) => {
  const { transform, transformed } = await import("/transform.js");
  const given = Uint8Array.from(pixels);
  return [transform(given, shape, how), transformed(given, shape, how)].map((v) => Array.from(v));
}"""
MORPH = """async ([a, b, shape, ways]) => {
  const { morph } = await import("/morph.js");
  const [from, to] = [Uint8Array.from(a), Uint8Array.from(b)];
  const [there, back] = [morph(from, to, shape), morph(to, from, shape)];
  return ways.map((t) => [Array.from(there(t)), Array.from(back(1 - t))]);
}"""
NOTHING: list[dict] = []
DOT = [{"width": 44, "points": [200, 300]}]


def serve(route) -> None:
    name = route.request.url.removeprefix("http://input/")
    if name:
        folder = MODULES.parent if "/" in name else MODULES
        route.fulfill(path=folder / name, content_type="text/javascript")
    else:
        route.fulfill(body="<!doctype html>", content_type="text/html")


@pytest.fixture(scope="module")
def page(browser) -> Iterator:
    page = browser.new_page()
    page.route("http://input/**", serve)
    page.goto("http://input/")
    yield page
    page.close()


def two_digits(rng: np.random.Generator) -> list[dict]:
    """A small digit on the left, another one on the right."""

    def half(label: int, left: int) -> list[dict]:
        drawing = digit(rng, label, width=20)
        return [
            stroke
            | {"points": [p // 2 + (0 if k % 2 else left) for k, p in enumerate(stroke["points"])]}
            for stroke in drawing
        ]

    return half(3, 0) + half(8, 280)


@pytest.mark.parametrize(("size", "count"), [((28, 28), 10), ((20, 31), 1), ((56, 56), 1)], ids=str)
def test_a_drawing_becomes_the_input_that_python_reads(page, size, count):
    rng = np.random.default_rng(15)
    cases = [digit(rng, label) for label in range(count)] + [two_digits(rng), NOTHING]
    contents = ["digit"] * count + ["several digits", "no ink"]
    checkpoint = Checkpoint.open(PAPER)
    for result, content in zip(page.evaluate(DRAW, [cases, *size]), contents, strict=True):
        picture = read_picture(base64.b64decode(result["png"]), (1, *size))
        assert picture.content == content
        for own in (result["painted"], result["drawn"]):
            assert (own["content"], own["clean"]) == (content, picture.clean)
        painted, drawn = (
            np.reshape(result[key]["pixels"], (1, *size)) for key in ("painted", "drawn")
        )
        if content == "several digits":
            continue  # a photograph is read digit by digit, a drawing is asked for one at a time
        expected = picture.pixels.numpy().astype(int)
        np.testing.assert_allclose(painted, expected, atol=1)
        assert np.mean(painted != expected) < 0.01
        assert np.abs(drawn - expected).mean() < 0.005 * 255
        assert result["longer"]
        assert result["undone"]
        if size == (28, 28) and content == "digit":
            batch = torch.from_numpy(np.stack([drawn, expected])).float() / 255
            own, theirs = logits(checkpoint.network(-1), batch).argmax(1)
            assert own == theirs


def test_a_dot_is_no_digit(page):
    (result,) = page.evaluate(DRAW, [[DOT], 28, 28])
    assert result["drawn"] == {"pixels": [0] * 784, "content": "no ink", "clean": True}


def test_strokes_are_drawn_over_a_picture(page):
    least, most, over = page.evaluate(
        """async (strokes) => {
          const { Raster } = await import("/strokes.js");
          const alone = new Raster().draw(strokes);
          const base = alone.map((_, i) => (i % 7) / 10);
          const raster = new Raster();
          raster.draw(strokes);
          const both = raster.draw(strokes, base);
          const over = both.every((value, i) => value === Math.max(alone[i], base[i]));
          return [Math.min(...alone), Math.max(...alone), over];
        }""",
        DOT,
    )
    assert (least, most, over) == (0, 1, True)


def test_the_order_of_shuffled_images_is_that_of_numpy(page):
    """Links of earlier versions show the images that Python chose."""
    cases = [[0, 1], [0, 36], [4, 20], [123_456, 1000], [999_999, 5421]]
    orders = page.evaluate(
        """async (cases) => {
          const { permutation } = await import("/permutation.js");
          return cases.map(([seed, count]) => permutation(seed, count));
        }""",
        cases,
    )
    for (seed, count), order in zip(cases, orders, strict=True):
        assert order == np.random.default_rng(seed).permutation(count).tolist()


def steps(low: float, high: float, step: float) -> some.SearchStrategy[float]:
    """The values of a slider, and others."""
    whole = some.integers(round(low / step), round(high / step)).map(lambda k: round(k * step, 2))
    return whole | some.floats(low, high, width=32)


@configure(max_examples=40)
@given(
    shape=some.tuples(some.sampled_from([1, 3]), some.integers(4, 32), some.integers(4, 32)),
    seed=some.integers(0, 99),
    how=some.fixed_dictionaries(
        {},
        optional={
            "right": steps(-8, 8, 0.5),
            "down": steps(-8, 8, 0.5),
            "size": steps(0.5, 1.5, 0.05),
            "turn": steps(-90, 90, 5),
            "blur": some.just(0.0) | steps(0.25, 3, 0.25),
            "noise": steps(0, 0.5, 0.05),
        },
    ),
)
def test_a_picture_is_transformed_as_in_python(page, shape, seed, how):
    generator = np.random.default_rng(seed)
    pixels = (255 * (generator.random(shape) > 0.4) * generator.random(shape)).astype(np.uint8)
    expected = Transform(**how)(torch.from_numpy(pixels)).numpy().ravel()
    whole, exact = map(np.array, page.evaluate(TRANSFORM, [pixels.ravel().tolist(), shape, how]))
    exact = exact.clip(0, 255)
    assert np.abs(exact - expected).max() <= 0.5 + 255e-5  # the limits of rounding, and of floats
    np.testing.assert_array_equal(whole, np.rint(exact))


@configure(max_examples=40)
@given(
    shape=some.tuples(some.sampled_from([1, 3]), some.integers(1, 32), some.integers(1, 32)),
    sizes=some.tuples(some.integers(1, 60), some.integers(1, 60)),
    seed=some.integers(0, 99),
)
def test_a_picture_on_another_grid_is_that_of_python(page, shape, sizes, seed):
    """Both are the means by exact fractions."""
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    shown = page.evaluate(
        """async ([pixels, shape, sizes]) => {
          const { onGrid } = await import("/grid.js");
          return Array.from(onGrid(Uint8Array.from(pixels), shape, sizes));
        }""",
        [pixels.ravel().tolist(), shape, sizes],
    )
    shown = np.reshape(shown, (shape[0], *sizes))
    # Each pixel as sizes × sizes cells, so that those of the other grid are whole blocks of them.
    blocks = pixels.astype(int).repeat(sizes[0], 1).repeat(sizes[1], 2)
    blocks = blocks.reshape(shape[0], sizes[0], shape[1], sizes[1], shape[2]).sum((2, 4))
    means = blocks / (shape[1] * shape[2])
    np.testing.assert_array_equal(shown, np.rint(means))
    np.testing.assert_array_equal(shown, scaled_images(torch.from_numpy(pixels), sizes))


def bar(column: int) -> np.ndarray:
    picture = np.zeros((28, 28), np.uint8)
    picture[6:22, column : column + 3] = 255
    return picture


WAYS = [0, 0.1, 0.25, 0.5, 0.8, 1]


def morph(page, a: np.ndarray, b: np.ndarray, shape=(1, 28, 28)) -> np.ndarray:
    """The inputs at each of `WAYS`; the way back is the same."""
    results = page.evaluate(MORPH, [a.ravel().tolist(), b.ravel().tolist(), shape, WAYS])
    there, back = np.array(results).swapaxes(0, 1).astype(int)
    np.testing.assert_allclose(there, back, atol=1)
    np.testing.assert_array_equal(there[0], a.ravel())
    np.testing.assert_array_equal(there[-1], b.ravel())
    return there.reshape(len(WAYS), *shape)


def test_a_bar_moves_and_stays_a_bar(page):
    for t, (picture,) in zip(WAYS, morph(page, bar(5), bar(17)), strict=True):
        total = picture.sum()
        columns, rows = picture.sum(0) @ np.arange(28) / total, picture.sum(1) @ np.arange(28)
        assert columns == pytest.approx(6 + 12 * t, abs=0.1)
        assert rows / total == pytest.approx(13.5, abs=0.1)
        assert total == pytest.approx(48 * 255, rel=0.02)
        if 12 * t == int(12 * t):
            shared = np.minimum(picture, bar(5 + int(12 * t))).sum()
            assert shared > 0.9 * total  # a cross-fade shares nothing


def test_between_two_digits_the_ink_is_between(page):
    rng = np.random.default_rng(8)
    drawings = page.evaluate(DRAW, [[digit(rng, 3), digit(rng, 8)], 28, 28])
    three, eight = (np.array(drawing["drawn"]["pixels"], np.uint8) for drawing in drawings)
    for t, picture in zip(WAYS, morph(page, three, eight), strict=True):
        between = (1 - t) * three.sum(dtype=float) + t * eight.sum(dtype=float)
        assert picture.sum() == pytest.approx(between, rel=0.02)


@pytest.mark.parametrize("channels", [1, 3])
def test_without_ink_or_in_colours_pictures_are_faded(page, channels):
    a = np.zeros((channels, 5, 4), np.uint8)
    b = np.arange(a.size, dtype=np.uint8).reshape(a.shape)
    for t, picture in zip(WAYS, morph(page, a, b, a.shape), strict=True):
        np.testing.assert_allclose(picture, t * b, atol=0.5)


SIGNALS = {  # texts of a signal of four values, what is read, and what is said of it
    "a row": ("1, 2, 3, 4,", [1, 2, 3, 4], ""),
    "a list": ("[.5 1. +2\n -3e-2]", [0.5, 1, 2, -0.03], ""),
    "the sign of a typesetter": ("−1 2 3 4", [-1, 2, 3, 4], ""),
    "that sign in an exponent": ("−1e−2 2 3 4", [-0.01, 2, 3, 4], ""),
    "spaces that do not break": ("1,5\u00a02\u202f3 4", [1.5, 2, 3, 4], ""),
    "lines of an old computer": ("1\r2\r3\r4", [1, 2, 3, 4], ""),
    "decimal commas": ("0,5 1,5 2 3", [0.5, 1.5, 2, 3], ""),
    "a column of them": ("value\n0,5\n1,5\n2\n3,25", [0.5, 1.5, 2, 3.25], ""),
    "rows of two": ("index,value\n0,5\n1,7\n2,9", [0, 0, 5, 5],
                    "2 numbers, resampled to 4. This is the first of 3 rows."),
    "the first row": ("9;2;3;4\n5;6;7;8\n", [9, 2, 3, 4], "This is the first of 2 rows."),
    "too few": ("1 3", [1, 1, 3, 3], "2 numbers, resampled to 4."),
    "a class": ("1,2,3,4,high", [1, 2, 3, 4], ""),
    "a class with a semicolon": ('1,2,3,4,"a;b"', [1, 2, 3, 4], ""),
    "a class in quotes": ('"1","2","3","4","a,b"', [1, 2, 3, 4], ""),
    "a class that is a number": ("1 2 3 4 7", [1, 2, 3, 4],
                                 "The last of 5 numbers, 7, is read as the class."),
    "the class in the first column": ("label,a,b,c,d\n7,1,2,3,4", [7, 1, 2, 3],
                                      "The last of 5 columns, “d”, is read as the class."),
    "numbers of rows and classes": (",a,b,c,d,y\n0,9,8,7,6,5", [9, 8, 7, 6],
                                    "The last of 5 columns, “y”, is read as the class."),
    "a class in place of a number": ("1,3,3,0.5o", [1, 7 / 3, 3, 3],
                                     "“0.5o” is read as the class. 3 numbers, resampled to 4."),
    "counted headings": (",0,1,2,3\n0,9,8,7,6", [9, 8, 7, 6], ""),
    "numbers of rows": (",a,b,c,d,class\n0,9,8,7,6,x", [9, 8, 7, 6], ""),
    "counted headings and a column split": ("0,1,2,3,y,split\n9,8,7,6,b,test", [9, 8, 7, 6], ""),
    "numbers of rows, too": (",0,1,2,3,split,y\n5,9,8,7,6,test,b", [9, 8, 7, 6], ""),
    "a column split": ("Split,a,b,c,d\ntest,9,8,7,6", [9, 8, 7, 6], ""),
    "a missing number": ("1,,3,4", None, "Value 2 is missing."),
    "a word in a column": ("1\n2\nnone\n4", None, "Value 3, “none”, is not a number."),
    "a word in a row": ("1 2 three 4", None, "Value 3, “three”, is not a number."),
    "a comma and a point": ("1.5;2,5;3;4", None, "Value 2, “2,5”, is not a number."),
    "another base": ("0x10 2 3 4", None, "Value 1, “0x10”, is not a number."),
    "not finite": ("inf 2 3 4", None, "Value 1, “inf”, is not a number."),
    "no numbers at all": ("nan " * 30, None, "Value 1, “nan”, is not a number."),
    "a column that begins with none": ("NaN\n-Infinity\n1\n2\n3\n4", None,
                                       "Value 1, “NaN”, is not a number."),
    "the last of a row": ("1 2 3 nan", None, "Value 4, “nan”, is not a number."),
    "a class that is missing": ("1,2,3,4,nan", [1, 2, 3, 4], ""),
    "a last one that is missing": ("1,2,3,N/A", None, "Value 4, “N/A”, is not a number."),
    "the error of a spreadsheet": ("1,2,3,#DIV/0!", None, "Value 4, “#DIV/0!”, is not a number."),
    "the sign for infinity": ("1,2,3,−∞", None, "Value 4, “−∞”, is not a number."),
    "a last one that is too large": ("1,2,3,1e400", None, "Value 4, “1e400”, is too large."),
    "too large": ("1e31 2 3 4", None, "Value 1, “1e31”, is too large."),
    "far too large": ("1e999 2 3 4", None, "Value 1, “1e999”, is too large."),
    "one number": ("5", None, "A signal has at least two numbers."),
    "UTF-16": ("1\0 \x002\0", None, "This is not UTF-8 text: save the table as CSV."),
}  # fmt: skip
READ_SIGNAL = """async ([text, whole]) => {
  const { readSignal } = await import("/numbers.js");
  try {
    const { values, note } = readSignal(text, 4, whole);
    return [Array.from(values), note];
  } catch (error) {
    return [null, error.message];
  }
}"""


@pytest.mark.parametrize("kind", SIGNALS)
def test_numbers_in_a_text_are_a_signal_or_a_sentence(page, kind):
    text, values, note = SIGNALS[kind]
    read, said = page.evaluate(READ_SIGNAL, [text, True])
    if values is None:
        assert (read, said) == (None, note)
        return
    np.testing.assert_allclose(read, values, 1e-6)
    assert said == note


@pytest.mark.parametrize(
    ("text", "values"), [("5 2 3 4\n5 6 7 8\n5", [5, 2, 3, 4]), ("1\n2\n3\n4", None), ("123", None)]
)
def test_a_signal_that_is_cut_is_refused(page, text, values):
    read, said = page.evaluate(READ_SIGNAL, [text, False])
    many = "The signal is too long: keep fewer numbers or digits."
    assert (read, said) == (values, "This is the first of many rows." if values else many)
