"""The receptive field over training as an animation."""

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from densembed.fields.field import View
from densembed.figures.printed import colour_map, drawable
from densembed.figures.theme import DENSITY_SCALE

if TYPE_CHECKING:
    from matplotlib.text import Text

KINDS = ("GIF", "WEBP")
PANEL = 448  # pixels of the field's longer side
NARROWEST = 280  # pixels that the texts above and below need
LINE = 40  # height of the line above and below the field
SIZE, SMALLEST = 20, 11  # height of letters, in pixels
FRAME, REST = 120, 1500  # ms for which a step is shown, and the last one


def film(views: View, kind: str, title: str) -> bytes:
    """The field at every step, summed over channels, as an endless GIF or WebP (`kind`).

    The title is above the field; the step and the end of the colour scale are below it.
    """
    if kind not in KINDS:
        raise ValueError(f"Expected an animation as {', '.join(KINDS)}; got {kind!r:.40}.")
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # takes half a second
    from matplotlib.figure import Figure

    rows, columns = views.fields[0].shape[-2:]
    factor = PANEL / max(rows, columns)
    wide, height = round(columns * factor), round(rows * factor) + 2 * LINE
    width = max(wide, NARROWEST)
    figure = Figure((width / 72, height / 72), dpi=72)  # one pixel per point
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes(
        ((1 - wide / width) / 2, LINE / height, wide / width, 1 - 2 * LINE / height)
    )
    axes.set_axis_off()
    image = axes.imshow(
        np.zeros((rows, columns)),
        aspect="auto",
        interpolation="nearest",
        cmap=colour_map(DENSITY_SCALE),
        vmin=0,
        vmax=views.top,
    )
    centre: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SIZE, "parse_math": False}
    heading, caption = (
        figure.text(0.5, y / height, "", **centre) for y in (height - LINE / 2, LINE / 2)
    )
    _fit(heading, title, width - LINE)
    frames = []
    for step, values in zip(views.steps, views.fields, strict=True):
        image.set_data(values.sum(0))
        _fit(caption, f"step {step:,} · yellow: ≥ {views.top:.3g} per pixel²", width - LINE)
        canvas.draw()
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    durations = [FRAME] * (len(frames) - 1) + [REST]
    file = io.BytesIO()
    lossless = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(
        file,
        kind,
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        **lossless,
    )
    return file.getvalue()


def _fit(label: "Text", words: str, room: float) -> None:
    """Set a text no wider than `room`: in smaller letters, in two lines, or shortened."""
    words = drawable(words)
    label.set(text=words, fontsize=SIZE)
    width = label.get_window_extent().width
    label.set_fontsize(max(SMALLEST, min(SIZE, SIZE * room / max(width, 1))))
    if label.get_window_extent().width > room and (spaces := [*re.finditer(" ", words)]):
        middle = min((space.start() for space in spaces), key=lambda k: abs(2 * k - len(words)))
        words = f"{words[:middle]}\n{words[middle + 1 :]}"
        label.set_text(words)
    while (width := label.get_window_extent().width) > room:
        words = words[: min(len(words) - 1, int(len(words) * room / width))]
        label.set_text(words + "…")
