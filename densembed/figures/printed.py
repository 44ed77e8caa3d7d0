"""A figure for print, one column of a journal wide or two: the input and its fields in a row."""

import io
from collections.abc import Mapping
from textwrap import fill

import numpy as np

from densembed.figures.heatmaps import DENSITY_SCALE, SIGNED_SCALE
from densembed.markup import one_line

WIDTHS = {"one column": 85.0, "two columns": 178.0}
"""Millimetres of one column and of two, as most journals have them."""
SIZES = {"one column": 7.0, "two columns": 8.0}
"""Points of the text: what journals ask for at the least, and what fits over a panel."""
INCH, POINT = 25.4, 25.4 / 72  # mm
GAP = 2.0  # mm between panels, and around the figure
BAR = 2.0  # mm that a colour bar is high
LINE = 1.4  # height of a line of text over its size
WIDE = 0.56  # width of a letter, on average, over its size
DPI = 300
KINDS = ("SVG", "PDF", "PNG")
SETTINGS = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "1",
    # A title may be a stranger's: "$" in it begins no formula.
    "text.parse_math": False,
    "text.usetex": False,
}
UNDATED = {"PNG": {}, "SVG": {"Date": None}, "PDF": {"CreationDate": None}}
"""Metadata without which the same figure would be another file each second."""


def sheet(
    pixels: np.ndarray, fields: Mapping[str, np.ndarray], top: float, title: str, kind: str,
    columns: str = "two columns", changes: Mapping[str, np.ndarray] | None = None,
    unit: str = "density per pixel²",
) -> bytes:  # fmt: skip
    """The input and fields in a row on one colour scale, and under them how they differ.

    Args:
        pixels: the input (C, H, W) uint8.
        fields: what stands over each, and its values (H · r, W · r) per square pixel.
        top: end of the colour scale, per square pixel; the differences' goes from −top to top.
        kind: "SVG" or "PDF", with text as text and a cell a pixel of an image; "PNG" at 300 dpi.
        columns: "one column", 85 mm wide, or "two columns", 178 mm.
        changes: differences that stand under the last fields, as `fields`.
        unit: the name of the colour scale.
    """
    import matplotlib  # takes half a second, which only who prints has to wait
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(SETTINGS)
    title = one_line(title)
    width, size = WIDTHS[columns], SIZES[columns]
    each = (width - GAP * (2 + len(fields))) / (1 + len(fields))
    high = each * pixels.shape[1] / pixels.shape[2]
    line = LINE * size * POINT
    heading = _wrapped(title, width, size)
    rows = [
        (
            {_wrapped(name, each, size): values for name, values in row.items()}, low, scale,
            _wrapped(measured, len(row) * (each + GAP), size),
        )
        for row, low, scale, measured in (
            (fields, 0.0, DENSITY_SCALE, unit),
            (changes or {}, -top, SIGNED_SCALE, f"difference, {unit}"),
        )
        if row
    ]  # fmt: skip
    over = [line * max(map(_lines, names)) for names, *_ in rows]
    under = [GAP + BAR + line * (1.4 + _lines(measured)) for *_, measured in rows]
    above = GAP + line * _lines(heading)
    height = above + sum(over) + sum(under) + len(rows) * high
    page = Figure((width / INCH, height / INCH), dpi=DPI)
    page.text(0.5, 1 - GAP / height, heading, ha="center", va="top", fontsize=size + 1)

    def place(left: float, upper: float, wide: float, tall: float):
        return page.add_axes(
            (left / width, 1 - (upper + tall) / height, wide / width, tall / height)
        )

    def panel(number: int, upper: float, name: str, values: np.ndarray, **look):
        axes = place(GAP + number * (each + GAP), upper, each, high)
        axes.set_axis_off()
        axes.set_title(name, fontsize=size, pad=size * 0.3)
        return axes.imshow(values, aspect="auto", interpolation="none", **look)

    ink = np.broadcast_to(np.moveaxis(pixels, 0, -1), (*pixels.shape[1:], 3))
    panel(0, above + over[0], "the input", ink)
    upper = above
    for (named, low, scale, measured), words, rest in zip(rows, over, under, strict=True):
        upper += words
        first = 1 + len(fields) - len(named)
        for number, (name, values) in enumerate(named.items(), first):
            image = panel(number, upper, name, values, cmap=_map(scale), vmin=low, vmax=top)
        upper += high
        left = GAP + first * (each + GAP)
        bar = place(left, upper + GAP, width - GAP - left, BAR)
        ends = "both" if low else "max"  # the few highest values lie beyond the scale
        key = page.colorbar(image, bar, orientation="horizontal", extend=ends)
        key.outline.set_linewidth(0.5)
        ticks = [low, (low + top) / 2, top]
        bar.set_xticks(ticks, [f"{tick:.3g}".replace("-", "−") for tick in ticks])
        for label, side in zip(bar.get_xticklabels(), ("left", "center", "right"), strict=True):
            label.set_ha(side)
        bar.tick_params(labelsize=size, length=2, width=0.5, pad=1)
        bar.set_xlabel(measured, fontsize=size, labelpad=1)
        upper += rest
    file = io.BytesIO()
    page.savefig(file, format=kind.lower(), metadata={"Title": title, **UNDATED[kind]})
    return file.getvalue()


def _lines(text: str) -> int:
    return 1 + text.count("\n")


def _map(scale: str) -> str:
    """Plotly's name of a colour map as matplotlib has it."""
    return scale if scale == SIGNED_SCALE else scale.lower()


def _wrapped(text: str, width: float, size: float) -> str:
    """A text in as many lines as a width in mm asks for."""
    whole = one_line(text).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return fill(whole, max(8, int(width / (WIDE * size * POINT))), break_long_words=False)
