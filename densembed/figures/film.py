"""Receptive fields as pictures without a browser, and as a film over training."""

import io
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from plotly.colors import get_colorscale, sample_colorscale, unlabel_rgb

from densembed.fields.field import View
from densembed.figures.heatmaps import DENSITY_SCALE
from densembed.markup import one_line

PANEL = 448  # pixels of a field's longer side
LINE, SIZE, SMALLEST = 40, 20, 11  # height of a line of text, and of its letters
SHADES = 256
FRAME, REST = 120, 1500  # ms that a step is shown, and the last one


def coloured(values: np.ndarray, top: float) -> Image.Image:
    """A field (H · r, W · r) in the colours of the page's figures, a pixel a cell."""
    shares = np.linspace(0, 1, SHADES)
    labels = sample_colorscale(get_colorscale(DENSITY_SCALE), shares)
    colours = np.array([unlabel_rgb(label) for label in labels])
    index = np.rint(np.clip(values / top, 0, 1) * (SHADES - 1)).astype(int)
    return Image.fromarray(np.rint(colours[index]).astype(np.uint8))


def film(seen: View, kind: str, title: str) -> bytes:
    """The field at every step, channels added, as an animated GIF or WebP (`kind`), for ever.

    Under its title; the step, and where the colours end, under it.
    """
    frames = []
    for step, values in zip(seen.steps, seen.fields, strict=True):
        panel = coloured(values.sum(0), seen.top)
        factor = PANEL / max(panel.size)
        size = round(panel.width * factor), round(panel.height * factor)
        panel = panel.resize(size, Image.Resampling.NEAREST)
        frame = Image.new("RGB", (panel.width, panel.height + 2 * LINE), "white")
        frame.paste(panel, (0, LINE))
        _write(frame, title, LINE / 2)
        _write(frame, f"step {step:,} · yellow: {seen.top:.3g} per pixel²", -LINE / 2)
        frames.append(frame)
    durations = [FRAME] * (len(frames) - 1) + [REST]
    file = io.BytesIO()
    frames[0].save(
        file, kind, save_all=True, append_images=frames[1:], duration=durations, loop=0,
        **({"lossless": True} if kind == "WEBP" else {}),
    )  # fmt: skip
    return file.getvalue()


def _write(image: Image.Image, text: str, y: float) -> None:
    """A line in the middle, as large as there is room for; below 0, `y` is from the lower edge.

    What does not fit in the smallest letters is cut.
    """
    text, room = one_line(text), image.width - LINE
    length = _letters(SIZE).getlength(text)
    size = max(SMALLEST, min(SIZE, SIZE * room / max(length, 1)))
    letters = _letters(size)
    if letters.getlength(text) > room:
        while letters.getlength(text + "…") > room:
            text = text[:-1]
        text += "…"
    place = image.width / 2, y % image.height
    ImageDraw.Draw(image).text(place, text, "black", letters, anchor="mm")


@cache
def _letters(size: float) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with matplotlib and has the ₀, × and ² that Pillow's own lacks."""
    import matplotlib  # takes half a second, which only who makes a film has to wait

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), size)
