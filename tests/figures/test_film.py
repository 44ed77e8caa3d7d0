"""Animations contain every step, in the colours of its values."""

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from plotly.colors import get_colorscale, sample_colorscale, unlabel_rgb

from densembed.fields.field import view
from densembed.figures.film import LINE, PANEL, _fit, film


@pytest.fixture(scope="module")
def shown(trained, digits):
    pixels = digits.test.images[2]
    return pixels, view(trained, pixels)


def expected(values: np.ndarray, top: float, row: int, column: int) -> np.ndarray:
    share = float(np.clip(values.sum(0)[row, column] / top, 0, 1))
    (label,) = sample_colorscale(get_colorscale("Cividis"), [share])
    return np.array(unlabel_rgb(label))


@pytest.mark.parametrize(("kind", "tolerance"), [("WEBP", 2), ("GIF", 24)])
def test_a_film_has_every_step(shown, kind, tolerance):
    _, fields = shown
    with Image.open(io.BytesIO(film(fields, kind, "A model of some data"))) as image:
        assert image.format == kind
        assert image.n_frames == len(fields.steps)
        for index in (0, 3, len(fields.steps) - 1):
            image.seek(index)
            frame = np.asarray(image.convert("RGB"), int)
            for row, column in ((10, 10), (56, 60), (100, 30)):
                colour = frame[LINE + row * 4 + 2, column * 4 + 2]
                wanted = expected(fields.fields[index], fields.top, row, column)
                assert abs(colour - wanted).max() <= tolerance
            for line in (frame[:LINE], frame[-LINE:]):  # its title, the step: ink on white
                assert line.min() < 100
                assert (line[:, :8] > 200).all()


def test_another_kind_of_film_is_refused(shown):
    with pytest.raises(ValueError, match=r"as GIF, WEBP; got 'MP4'\.$"):
        film(shown[1], "MP4", "A model")


def test_a_film_says_that_its_scale_is_clipped(shown, monkeypatch):
    texts = set()
    monkeypatch.setattr("densembed.figures.film._fit", lambda label, words, room: texts.add(words))
    film(shown[1], "GIF", "A model")
    top = shown[1].top
    assert texts == {"A model"} | {
        f"step {step:,} · yellow: ≥ {top:.3g} per pixel²" for step in shown[1].steps
    }


@pytest.mark.parametrize("title", ["", "a" * 500, "two\nlines\x00", "$x$ <b>", "数字 🦊"])
@pytest.mark.filterwarnings("error")
def test_any_title_stands_over_a_film(shown, title):
    with Image.open(io.BytesIO(film(shown[1], "WEBP", title))) as image:
        line = np.asarray(image.convert("RGB"), int)[:LINE]
    assert (line.min() < 100) == bool(title)
    assert (line[:, :8] > 200).all()


def test_a_film_of_a_narrow_field_has_room_for_its_texts(shown):
    """The text was shortened for ever."""
    fields = [values[..., :4] for values in shown[1].fields]
    narrow = replace(shown[1], fields=fields)
    with Image.open(io.BytesIO(film(narrow, "WEBP", "A model of some data"))) as image:
        frame = np.asarray(image.convert("RGB"), int)
    assert frame[:LINE].min() < 100
    wide = 4 * PANEL // shown[1].fields[0].shape[-2]
    inked = (frame[LINE:-LINE] < 250).any(2).all(0).nonzero()[0]
    assert inked.size == pytest.approx(wide, abs=1)
    assert inked.mean() == pytest.approx((frame.shape[1] - 1) / 2, abs=1)


def test_a_long_title_takes_two_lines():
    title = "Logistic-EL with mNN, B = 8, B₀ = 4, MNIST, 1.87 % error, 5,150 parameters"
    canvas = FigureCanvasAgg(Figure((448 / 72, 528 / 72), dpi=72))
    label = canvas.figure.text(0.5, 0.9, "", parse_math=False)
    _fit(label, title, 408)
    first, second = label.get_text().split("\n")
    assert f"{first} {second}" == title
    box = label.get_window_extent()
    assert box.width <= 408
    assert box.height <= LINE
