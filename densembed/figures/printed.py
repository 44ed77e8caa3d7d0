"""Figures for print, one or two columns of a journal wide, drawn by matplotlib."""

import io
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from textwrap import fill
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
from plotly.colors import get_colorscale

from densembed.figures.theme import DENSITY_SCALE, SIGNED_SCALE, clipped_ticks, rgb
from densembed.markup import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

P = ParamSpec("P")
T = TypeVar("T")

WIDTHS = {"one column": 85.0, "two columns": 178.0}
"""Width in millimetres, as in most journals."""
SIZES = {"one column": 7.0, "two columns": 8.0}
"""Font size in points: the minimum of most journals, and one that fits above a panel."""
INCH, POINT = 25.4, 25.4 / 72  # mm
TALLEST = 100.0  # mm of a panel
GAP = 2.0  # mm between panels, and around the figure
BAR = 2.0  # height of a colour bar, mm
LINE = 1.4  # height of a line of text, relative to its font size
WIDE = 0.56  # average width of a letter, relative to its font size
DPI = 300
KINDS = ("SVG", "PDF", "PNG")
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "1",
    # Titles come from uploaded files, so "$" must not start a formula.
    "text.parse_math": False,
    "text.usetex": False,
}
DRAWING = RLock()
"""The settings are those of the process, so only one thread draws at a time."""
UNDATED = {"PNG": {}, "SVG": {"Date": None}, "PDF": {"CreationDate": None}}
"""Metadata that is left out, so that the same figure is the same file at any time."""


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Lets a function draw with `SETTINGS`, after which matplotlib's are as before."""

    @wraps(draw)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with DRAWING, matplotlib.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return within


def sheet(
    pixels: np.ndarray,
    fields: Mapping[str, np.ndarray],
    top: float,
    title: str,
    kind: str,
    columns: str = "two columns",
    changes: Mapping[str, np.ndarray] | None = None,
    unit: str = "density per pixel²",
) -> bytes:
    """The file of a `sheet_figure`.

    Args:
        kind: "SVG" or "PDF", with text as text and one image pixel per cell; "PNG" at 300 dpi.
    """
    page = sheet_figure(pixels, fields, top, title, columns, changes, unit, letters(kind))
    return saved(page, title, kind)


@styled
def saved(page: "Figure", title: str, kind: str) -> bytes:
    """The file of a figure, the same for the same figure at any time."""
    if kind not in KINDS:
        raise ValueError(f"Expected a figure as {', '.join(KINDS)}; got {kind!r:.40}.")
    file = io.BytesIO()
    metadata = {"Title": one_line(title), **UNDATED[kind]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of an SVG's letters
        page.savefig(file, format=kind.lower(), metadata=metadata)
    return file.getvalue()


def size_of(columns: str) -> tuple[float, float]:
    """The width in millimetres and the font size of a figure. Raises ValueError for another one."""
    if columns not in WIDTHS:
        raise ValueError(f"Expected a width of {', '.join(WIDTHS)}; got {columns!r:.40}.")
    return WIDTHS[columns], SIZES[columns]


@styled
def sheet_figure(
    pixels: np.ndarray,
    fields: Mapping[str, np.ndarray],
    top: float,
    title: str,
    columns: str = "two columns",
    changes: Mapping[str, np.ndarray] | None = None,
    unit: str = "density per pixel²",
    drawn: Callable[[str], str] | None = None,
) -> "Figure":
    """The input and fields in a row on one colour scale, with differences below.

    Args:
        pixels: the input (C, H, W) uint8.
        fields: values (H · r, W · r) per square pixel, by heading.
        top: end of the colour scale, per square pixel; differences range from −top to top.
        columns: "one column", 85 mm wide, or "two columns", 178 mm.
        changes: differences, drawn below the last fields.
        unit: title of the colour scale.
        drawn: converts titles to what is drawn, by default `drawable`.
    """
    from matplotlib.figure import Figure  # takes half a second

    drawn = drawn or drawable
    width, size = size_of(columns)
    each = (width - GAP * (2 + len(fields))) / (1 + len(fields))
    shape = pixels.shape[1] / pixels.shape[2]
    high = min(each * shape, TALLEST)
    wide = high / shape
    line = LINE * size * POINT
    heading = wrapped(drawn(title), width - 2 * GAP, size + 1)
    rows = [
        (
            {wrapped(drawn(name), each, size): values for name, values in row.items()},
            low,
            scale,
            wrapped(measured, len(row) * (each + GAP), size),
        )
        for row, low, scale, measured in (
            (fields, 0.0, DENSITY_SCALE, unit),
            (changes or {}, -top, SIGNED_SCALE, f"difference, {unit}"),
        )
        if row
    ]
    over = [line * max(map(_lines, names)) for names, *_ in rows]
    under = [GAP + BAR + line * (1.4 + _lines(measured)) for *_, measured in rows]
    above = GAP + line * _lines(heading) * (size + 1) / size
    height = above + sum(over) + sum(under) + len(rows) * high
    page = Figure((width / INCH, height / INCH), dpi=DPI)
    page.text(0.5, 1 - GAP / height, heading, ha="center", va="top", fontsize=size + 1)

    def place(left: float, upper: float, wide: float, tall: float) -> "Axes":
        return page.add_axes(
            (left / width, 1 - (upper + tall) / height, wide / width, tall / height)
        )

    def panel(number: int, upper: float, name: str, values: np.ndarray, **look: Any) -> "AxesImage":
        axes = place(GAP + number * (each + GAP) + (each - wide) / 2, upper, wide, high)
        axes.set_axis_off()
        axes.set_title(name, fontsize=size, pad=size * 0.3)
        return axes.imshow(values, aspect="auto", interpolation="none", **look)

    if len(pixels) not in (1, 3):  # neither ink nor colours
        pixels = pixels.mean(0, keepdims=True).round().astype(np.uint8)
    ink = np.broadcast_to(np.moveaxis(pixels, 0, -1), (*pixels.shape[1:], 3))
    panel(0, above + over[0], "input", ink)
    upper = above
    for (named, low, scale, measured), words, rest in zip(rows, over, under, strict=True):
        upper += words
        first = 1 + len(fields) - len(named)
        for number, (name, values) in enumerate(named.items(), first):
            image = panel(number, upper, name, values, cmap=colour_map(scale), vmin=low, vmax=top)
        upper += high
        left = GAP + first * (each + GAP)
        bar = place(left, upper + GAP, width - GAP - left, BAR)
        ends = "both" if low else "max"  # a few values lie beyond the scale
        key = page.colorbar(image, bar, orientation="horizontal", extend=ends)
        key.outline.set_linewidth(0.5)
        bar.set_xticks(*clipped_ticks(low, top))
        sides: tuple[Literal["left", "center", "right"], ...] = ("left", "center", "right")
        for label, side in zip(bar.get_xticklabels(), sides, strict=True):
            label.set_horizontalalignment(side)
        bar.tick_params(labelsize=size, length=2, width=0.5, pad=1)
        bar.set_xlabel(measured, fontsize=size, labelpad=1)
        upper += rest
    return page


def _lines(text: str) -> int:
    return 1 + text.count("\n")


def colour_map(scale: str) -> "Colormap":
    """One of Plotly's colour scales for matplotlib, so that figures look the same in print."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = [(at, [value / 255 for value in rgb(label)]) for at, label in get_colorscale(scale)]
    return LinearSegmentedColormap.from_list(scale, stops)


def letters(kind: str) -> Callable[[str], str]:
    """What converts a text to the letters that are drawn in a file of a kind.

    An SVG holds letters, for which every viewer has fonts; the others hold their shapes.
    """
    return one_line if kind == "SVG" else drawable


def drawable(text: str) -> str:
    r"""Text on one line in which characters that the figures' font lacks are escaped.

    >>> drawable("Γx of 数字")
    'Γx of \\u6570\\u5b57'
    """
    from matplotlib.font_manager import FontProperties, findfont, get_font

    glyphs = get_font(findfont(FontProperties())).get_charmap()
    return "".join(
        letter if ord(letter) in glyphs else letter.encode("unicode_escape").decode()
        for letter in one_line(text)
    )


def wrapped(text: str, width: float, size: float) -> str:
    """A text broken into lines of at most `width` mm."""
    whole = one_line(text).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return fill(whole, max(8, int(width / (WIDE * size * POINT))), break_long_words=False)
