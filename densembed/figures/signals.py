"""A signal and the receptive fields on its axis as a figure for print."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from densembed.figures.printed import INCH, SETTINGS, SIZES, WIDTHS, drawable, saved
from densembed.figures.theme import AFTER, BEFORE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 0.6
"""Relative to the width."""


def signal_sheet(
    values: np.ndarray,
    fields: Mapping[str, np.ndarray],
    title: str,
    kind: str,
    columns: str = "two columns",
) -> bytes:
    """The file of a `signal_figure`; `kind` is "SVG", "PDF" or "PNG"."""
    return saved(signal_figure(values, fields, title, columns), title, kind)


def signal_figure(
    values: np.ndarray,
    fields: Mapping[str, np.ndarray],
    title: str,
    columns: str = "two columns",
) -> "Figure":
    """The signal as the step function that the layers see, and below it the fields.

    Args:
        values: measured values (C, L); sample n is the step from n to n + 1.
        fields: densities per sample (L · r) by name, the first one before training.
        columns: "one column", 85 mm wide, or "two columns", 178 mm.
    """
    import matplotlib  # takes half a second
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(SETTINGS)
    width, size = WIDTHS[columns] / INCH, SIZES[columns]
    page = Figure((width, HEIGHT * width), layout="constrained")
    axes: Any = page.subplots(2, sharex=True)
    length = values.shape[1]
    for channel in values:
        axes[0].stairs(channel, np.arange(length + 1), baseline=None, color=AFTER, linewidth=1)
    for (name, field), colour in zip(fields.items(), (BEFORE, AFTER)[-len(fields) :], strict=True):
        t = (np.arange(len(field)) + 0.5) * length / len(field)
        axes[1].plot(t, field, color=colour, linewidth=1, label=drawable(name))
    axes[0].set_title(drawable(title), fontsize=size + 1)
    axes[0].set_ylabel("signal", fontsize=size)
    axes[1].set_ylabel("density per sample", fontsize=size)
    axes[1].set_xlabel("t in samples", fontsize=size)
    axes[1].set_xlim(0, length)
    axes[1].set_ylim(bottom=0)
    axes[1].legend(fontsize=size, frameon=False)
    for each in axes:
        each.tick_params(labelsize=size)
    return page
