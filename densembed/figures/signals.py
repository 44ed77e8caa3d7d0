"""A signal and the receptive fields on its axis as a figure for print."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

from densembed.figures.printed import (
    DPI,
    INCH,
    LINE,
    POINT,
    drawable,
    letters,
    saved,
    size_of,
    styled,
    wrapped,
)
from densembed.figures.theme import AFTER, BEFORE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 0.3
"""Of each plot, relative to the width."""
TILE = 64
"""Pixels of the small picture of a signal."""


def signal_sheet(
    values: np.ndarray,
    fields: Mapping[str, np.ndarray],
    title: str,
    kind: str,
    columns: str = "two columns",
    colours: Sequence[str] = (BEFORE, AFTER),
    changes: Mapping[str, np.ndarray] | None = None,
    unit: str = "density per sample",
) -> bytes:
    """The file of a `signal_figure`; `kind` is "SVG", "PDF" or "PNG"."""
    page = signal_figure(values, fields, title, columns, colours, changes, unit, letters(kind))
    return saved(page, title, kind)


@styled
def signal_figure(
    values: np.ndarray,
    fields: Mapping[str, np.ndarray],
    title: str,
    columns: str = "two columns",
    colours: Sequence[str] = (BEFORE, AFTER),
    changes: Mapping[str, np.ndarray] | None = None,
    unit: str = "density per sample",
    drawn: Callable[[str], str] = drawable,
) -> "Figure":
    """The signal as the step function that the layers see, and below it the fields.

    Args:
        values: measured values (C, L); sample n is the step from n to n + 1.
        fields: densities per sample (L · r) by name.
        columns: "one column", 85 mm wide, or "two columns", 178 mm.
        colours: of the fields; of the last ones if there are fewer fields.
        changes: differences of the last fields from the first, drawn below in their colours.
        unit: of the fields.
        drawn: converts titles to what is drawn, by default `drawable`.
    """
    from matplotlib.figure import Figure  # takes half a second

    width, size = size_of(columns)
    high = HEIGHT * width
    plots = [fields, changes] if changes else [fields]
    heading = wrapped(drawn(title), width, size + 1)
    labels = {name: wrapped(drawn(name), 0.7 * width, size) for curves in plots for name in curves}
    lines = sum(1 + labels[name].count("\n") for curves in plots for name in curves)
    tall = high * (1 + len(plots)) + (heading.count("\n") + lines) * LINE * (size + 1) * POINT
    page = Figure((width / INCH, tall / INCH), dpi=DPI, layout="constrained")
    axes: Any = page.subplots(1 + len(plots), sharex=True)
    length = values.shape[1]
    for channel in values:
        axes[0].stairs(channel, np.arange(length + 1), baseline=None, color=AFTER, linewidth=1)
    own = colours[-len(fields) :]
    for plot, curves in zip(axes[1:], plots, strict=True):
        for (name, field), colour in zip(curves.items(), own[-len(curves) :], strict=True):
            t = (np.arange(len(field)) + 0.5) * length / len(field)
            plot.plot(t, field, color=colour, linewidth=1, label=labels[name])
        # Above the axes, as the curves take all of a small one.
        plot.legend(
            fontsize=size,
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.1,
            borderpad=0.1,
            labelspacing=0.2,
        )
    page.suptitle(heading, fontsize=size + 1)
    axes[0].set_ylabel("signal", fontsize=size)
    axes[1].set_ylabel(wrapped(unit, 0.7 * high, size), fontsize=size)
    axes[1].set_ylim(bottom=0)
    if changes:
        axes[2].set_ylabel(wrapped(f"difference, {unit}", 0.7 * high, size), fontsize=size)
    axes[-1].set_xlabel("t in samples", fontsize=size)
    axes[-1].set_xlim(0, length)
    for each in axes:
        each.tick_params(labelsize=size)
    return page


def signal_tile(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """A small picture (4, H, W) uint8 of step functions on a transparent ground.

    Args:
        values: (C, L).
        low: the value at the lower edge.
        high: the value at the upper edge.
    """
    side = 4 * TILE  # drawn larger, for smooth lines
    picture = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(picture)
    edges = side * (0.05 + 0.9 * np.arange(values.shape[1] + 1) / values.shape[1])
    heights = side * (0.9 - 0.8 * (values - low) / ((high - low) or 1))
    for row in heights:
        steps = np.column_stack([np.repeat(edges, 2)[1:-1], np.repeat(row, 2)])
        pen.line([(x, y) for x, y in steps.tolist()], AFTER, side // 20)
    return np.moveaxis(np.array(picture.resize((TILE, TILE), Image.Resampling.BOX)), -1, 0).copy()
