"""Receptive fields as pictures without a browser: a film over training, a sheet for print."""

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from plotly.colors import get_colorscale, sample_colorscale, unlabel_rgb

from densembed.fields import View
from densembed.figures import DENSITY_SCALE

PANEL = 448  # pixels of a field's longer side
MARGIN = 24
LINE = 40  # height of a line of text
SHADES = 256
FRAME, REST = 120, 1500  # ms that a step is shown, and the last one
DPI = 300


def coloured(values: np.ndarray, top: float) -> Image.Image:
    """A field (H · r, W · r) in the colours of the page's figures, its longer side 448 pixels."""
    shares = np.linspace(0, 1, SHADES)
    labels = sample_colorscale(get_colorscale(DENSITY_SCALE), shares)
    colours = np.array([unlabel_rgb(label) for label in labels])
    index = np.rint(np.clip(values / top, 0, 1) * (SHADES - 1)).astype(int)
    return _enlarged(Image.fromarray(np.rint(colours[index]).astype(np.uint8)))


def _enlarged(image: Image.Image) -> Image.Image:
    factor = PANEL / max(image.size)
    size = (round(image.width * factor), round(image.height * factor))
    return image.resize(size, Image.Resampling.NEAREST)


def film(seen: View, kind: str) -> bytes:
    """The field at every step, channels added, as an animated GIF or WebP (`kind`), for ever."""
    frames = []
    for step, values in zip(seen.steps, seen.fields, strict=True):
        panel = coloured(values.sum(0), seen.top)
        frame = Image.new("RGB", (panel.width, panel.height + LINE), "white")
        frame.paste(panel)
        _write(frame, f"step {step:,}", panel.width / 2, panel.height + LINE / 2)
        frames.append(frame)
    durations = [FRAME] * (len(frames) - 1) + [REST]
    file = io.BytesIO()
    frames[0].save(
        file, kind, save_all=True, append_images=frames[1:], duration=durations, loop=0,
        **({"lossless": True} if kind == "WEBP" else {}),
    )  # fmt: skip
    return file.getvalue()


def sheet(
    pixels: np.ndarray, seen: View, indices: Sequence[int], names: Sequence[str], title: str,
    kind: str,
) -> bytes:  # fmt: skip
    """The input (C, H, W) uint8 and fields at some snapshots in a row, for print: 300 dpi.

    Args:
        indices, names: the snapshots and what stands over each.
        kind: "PNG" or "PDF".
    """
    array = np.moveaxis(pixels, 0, -1)
    ink = _enlarged(Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array))
    panels = [ink, *(coloured(seen.fields[index].sum(0), seen.top) for index in indices)]
    width = MARGIN + sum(panel.width + MARGIN for panel in panels)
    upper = 2 * LINE + MARGIN
    lower = upper + panels[0].height
    image = Image.new("RGB", (width, lower + 3 * LINE), "white")
    _write(image, title, width / 2, LINE)
    left = MARGIN
    for panel, name in zip(panels, ("the input", *names), strict=True):
        image.paste(panel, (left, upper))
        _write(image, name, left + panel.width / 2, upper - LINE / 2)
        left += panel.width + MARGIN
    bar = coloured(np.linspace(0, seen.top, PANEL)[None], seen.top).resize((PANEL, LINE // 3))
    start = left - MARGIN - PANEL
    image.paste(bar, (start, lower + LINE // 2))
    for share in (0, 0.5, 1):
        _write(
            image, f"{share * seen.top:.3g}", start + share * (PANEL - 40) + 20, lower + 1.4 * LINE
        )
    _write(image, "density per pixel²", start + PANEL / 2, lower + 2.2 * LINE)
    file = io.BytesIO()
    image.save(file, kind, **({"resolution": DPI} if kind == "PDF" else {"dpi": (DPI, DPI)}))
    return file.getvalue()


def _write(image: Image.Image, text: str, x: float, y: float) -> None:
    font = ImageFont.load_default(size=22)
    ImageDraw.Draw(image).text((x, y), text, "black", font, anchor="mm")
