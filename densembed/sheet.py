"""A figure for print, one column of a journal wide or two: the input and its fields in a row."""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from unicodedata import decomposition, normalize

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from densembed.fields import View
from densembed.pictures import coloured

WIDTHS = {"one column": 85.0, "two columns": 178.0}
"""Millimetres of one column and of two, as most journals have them."""
SIZES = {"one column": 7.0, "two columns": 8.0}
"""Points of the text: what journals ask for at the least, and what fits over a panel."""
POINT = 25.4 / 72  # mm
GAP = 2.0  # mm between panels, and around the figure
BAR = 2.0  # mm that the colour bar is high
DPI = 300
KINDS = ("SVG", "PDF", "PNG")
WIDE = 0.55
"""Width of a letter on average, as a share of its size."""


@dataclass(frozen=True)
class _Page:
    """What is where, in mm: images (x, y, width, height) and texts (centre x, centre y, mm)."""

    width: float
    height: float
    images: list[tuple[Image.Image, float, float, float, float]]
    texts: list[tuple[str, float, float, float]]


def sheet(
    pixels: np.ndarray, seen: View, indices: Sequence[int], names: Sequence[str], title: str,
    kind: str, columns: str = "two columns",
) -> bytes:  # fmt: skip
    """The input (C, H, W) uint8 and fields at some snapshots in a row, on one colour scale.

    Args:
        indices, names: the snapshots and what stands over each.
        kind: "SVG", whose text and size are exact and whose cells are pixels of an image; or
            "PNG" or "PDF", pixels at 300 dpi.
        columns: "one column", 85 mm wide, or "two columns", 178 mm.
    """
    page = _page(pixels, seen, indices, names, title, WIDTHS[columns], SIZES[columns] * POINT)
    return _svg(page) if kind == "SVG" else _raster(page, kind)


def _page(pixels, seen, indices, names, title, width, size) -> _Page:
    array = np.moveaxis(pixels, 0, -1)
    ink = Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)
    panels = [ink, *(coloured(seen.fields[index].sum(0), seen.top) for index in indices)]
    each = (width - GAP * (len(panels) + 1)) / len(panels)
    high = each * pixels.shape[1] / pixels.shape[2]
    line = 1.6 * size
    upper = GAP + 2 * line
    lower = upper + high + GAP
    images, texts = [], [(title, width / 2, GAP + line / 2, min(size, _fitting(title, width)))]
    for number, (panel, name) in enumerate(zip(panels, ("the input", *names), strict=True)):
        left = GAP + number * (each + GAP)
        images.append((panel, left, upper, each, high))
        texts.append((name, left + each / 2, GAP + 1.5 * line, min(size, _fitting(name, each))))
    bar = coloured(np.linspace(0, seen.top, 256)[None], seen.top)
    images.append((bar, left, lower, each, BAR))
    for share, inset in ((0, 1), (0.5, 0), (1, -1)):
        text = f"{share * seen.top:.3g}"
        place = left + share * each + inset * WIDE * size * len(text) / 2
        texts.append((text, place, lower + BAR + line / 2, size))
    texts.append(("density per pixel²", left + each / 2, lower + BAR + 1.5 * line, size))
    return _Page(width, lower + BAR + 2 * line + GAP, images, texts)


def _fitting(text: str, width: float) -> float:
    """The size in mm at which a text is about as wide as that."""
    return width / (WIDE * max(1, len(text)))


def _svg(page: _Page) -> bytes:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{page.width:g}mm" '
        f'height="{page.height:.4g}mm" viewBox="0 0 {page.width:g} {page.height:.4g}" '
        'font-family="Helvetica, Arial, sans-serif" text-anchor="middle" '
        'dominant-baseline="central"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    for image, x, y, width, height in page.images:
        file = io.BytesIO()
        image.save(file, "PNG")
        url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
        parts.append(
            f'<image href="{url}" x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" '
            f'height="{height:.4g}" preserveAspectRatio="none" style="image-rendering: pixelated"/>'
        )
    for text, x, y, size in page.texts:
        parts.append(f'<text x="{x:.4g}" y="{y:.4g}" font-size="{size:.4g}">{escape(text)}</text>')
    return "".join([*parts, "</svg>"]).encode()


def _runs(text: str) -> Iterator[tuple[str, float, float]]:
    """Pieces of a text, their share of its size and how far up they stand, in sizes.

    Pillow's font has no small digits.
    """
    kinds = {"<sub>": (0.65, -0.2), "<super>": (0.65, 0.3)}
    for kind, letters in groupby(text, lambda letter: decomposition(letter).split(" ")[0]):
        run = "".join(letters)
        yield (normalize("NFKD", run), *kinds[kind]) if kind in kinds else (run, 1.0, 0.0)


def _raster(page: _Page, kind: str) -> bytes:
    def dots(length: float) -> int:
        return round(length * DPI / 25.4)

    canvas = Image.new("RGB", (dots(page.width), dots(page.height)), "white")
    draw = ImageDraw.Draw(canvas)
    for image, x, y, width, height in page.images:
        shown = image.resize((dots(width), dots(height)), Image.Resampling.NEAREST)
        canvas.paste(shown, (dots(x), dots(y)))
    for text, x, y, size in page.texts:
        runs = [
            (run, ImageFont.load_default(share * dots(size)), up) for run, share, up in _runs(text)
        ]
        left = dots(x) - sum(font.getlength(run) for run, font, _ in runs) / 2
        for run, font, up in runs:
            draw.text((left, dots(y - up * size)), run, "black", font, anchor="lm")
            left += font.getlength(run)
    file = io.BytesIO()
    canvas.save(file, kind, **({"resolution": DPI} if kind == "PDF" else {"dpi": (DPI, DPI)}))
    return file.getvalue()
