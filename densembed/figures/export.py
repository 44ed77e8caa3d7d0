"""Receptive fields as files: NPZ, CSV, HTML pages, figures for print and Python programs."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from torch import Tensor

from densembed.data.codec import to_text
from densembed.fields.field import View
from densembed.figures.heatmaps import difference_figure, field_figure, picture_figure
from densembed.figures.printed import sheet
from densembed.figures.web import Panel, html_page
from densembed.files import replace_file
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint

MOST_CELLS = 4_000_000
"""Cells of all steps on a page, about 20 MB. Beyond that, only evenly spaced steps are kept."""
FRAME = 120  # ms for which a step is shown
UNDER = 92  # pixels for a slider below the colour bar


def write_npz(path: Path, checkpoint: Checkpoint, pixels: Tensor, views: View) -> None:
    """Write `before`, `after` (C, H · r, W · r), cell centres `x`, `y` in pixels, and `input`."""
    replace_file(path, npz(pixels, views))


def npz(pixels: Tensor, views: View, index: int = -1, **more: np.ndarray) -> bytes:
    """The content of an NPZ file as in `write_npz`; `after` is the snapshot `index`."""
    fields = {"before": views.fields[0], "after": views.fields[index]}
    return _compressed(fields | more, views.x, views.y, pixels)


def _compressed(arrays: Mapping[str, Any], x: np.ndarray, y: np.ndarray, pixels: Tensor) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays, x=x, y=y, input=pixels.numpy())
    return file.getvalue()


def csv(views: View, index: int = -1, **more: np.ndarray) -> str:
    """CSV with one line per cell: its column and row in pixels, and both fields.

    Fields are summed over channels.

    Args:
        more: further columns, arrays (C, H · r, W · r) on the same cells.
    """
    fields = {"before": views.fields[0], "after": views.fields[index]}
    return cells(views.x, views.y, fields | more)


def cells(x: np.ndarray, y: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """CSV with one line per cell: its column and row in pixels, and each array's value.

    Args:
        arrays: (C, H · r, W · r) by name, summed over channels.
    """
    across, down = np.meshgrid(x, y)
    table = np.stack([across, down, *(values.sum(0) for values in arrays.values())], -1)
    file = io.StringIO()
    header = ",".join(["column", "row", *arrays])
    places = ["%.9g", "%.9g", *["%.9g"] * len(arrays)]
    np.savetxt(file, table.reshape(-1, table.shape[-1]), places, ",", header=header, comments="")
    return file.getvalue()


def snippet(file_name: str, pixels: Tensor, step: int) -> str:
    """A program that computes the field of this input at a step, and draws it."""
    return f"""\
from densembed.training.checkpoint import Checkpoint
from densembed.data.codec import from_text
from densembed.fields.field import view
from densembed.figures.heatmaps import field_figure
from densembed.figures.web import Panel, html_page

checkpoint = Checkpoint.open({file_name!r})
pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
views = view(checkpoint, pixels)
after = views.fields[views.steps.index({step})]  # (channels, rows, columns), per square pixel
figure = field_figure(after, views.x, views.y, views.top)
with open("field.html", "w", encoding="utf-8") as file:
    file.write(html_page("Receptive field", [[Panel.square("at step {step:,}", figure)]]))
"""


def compared_npz(
    pixels: Tensor,
    x: np.ndarray,
    y: np.ndarray,
    fields: dict[str, np.ndarray],
    steps: dict[str, int],
) -> bytes:
    """The content of an NPZ file of several models' fields for one input.

    It contains `field_NAME` (channels, H · r, W · r) and `step_NAME` for each model, the cells'
    centres `x` and `y` in pixels, and the `input`.
    """
    arrays: dict[str, Any] = {f"field_{name}": values for name, values in fields.items()}
    arrays |= {f"step_{name}": step for name, step in steps.items()}
    return _compressed(arrays, x, y, pixels)


def compared_snippet(
    files: dict[str, str], pixels: Tensor, steps: dict[str, int], parts: dict[str, int]
) -> str:
    """A program that computes the fields of several models for one input, and their differences.

    Args:
        parts: divisor of each model's field: 1, or the number of its densities for a mean.
    """
    shown = "".join(f"    ({files[name]!r}, {steps[name]}, {parts[name]}),\n" for name in files)
    return f"""\
from densembed.training.checkpoint import Checkpoint
from densembed.data.codec import from_text
from densembed.fields.field import view
from densembed.figures.heatmaps import difference_figure
from densembed.figures.web import Panel, html_page

fields = []
for file, step, parts in [
{shown}]:
    checkpoint = Checkpoint.open(file)
    pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
    views = view(checkpoint, pixels)
    fields.append(views.fields[views.steps.index(step)] / parts)  # (channels, rows, columns)
panels = []
for k, field in enumerate(fields[1:], 2):
    change = difference_figure(field - fields[0], views.x, views.y, abs(field - fields[0]).max())
    panels.append(Panel.square(f"model {{k}} minus the first", change))
with open("differences.html", "w", encoding="utf-8") as file:
    file.write(html_page("Differences of receptive fields", [panels]))
"""


def write_html(path: Path, checkpoint: Checkpoint, pixels: Tensor, views: View) -> None:
    """Write `html` for the last step."""
    replace_file(path, html(checkpoint, pixels, views).encode())


def write_printed(path: Path, checkpoint: Checkpoint, pixels: Tensor, views: View) -> None:
    """Write `printed` in the format of the file name extension."""
    replace_file(path, printed(checkpoint, pixels, views, -1, path.suffix[1:].upper()))


def printed(
    checkpoint: Checkpoint,
    pixels: Tensor,
    views: View,
    index: int,
    kind: str,
    columns: str = "two columns",
) -> bytes:
    """A figure for print of the input and the fields before training and at a snapshot."""
    fields = {  # a single entry if both have the same heading
        _moment(checkpoint, views.steps[k]): views.fields[k].sum(0) for k in (0, index)
    }
    return sheet(pixels.numpy(), fields, views.top, title_of(checkpoint), kind, columns)


def title_of(checkpoint: Checkpoint) -> str:
    """The title of a checkpoint's figures: its model and its training data."""
    return f"{describe(checkpoint.config.model)}, {checkpoint.header.provenance.dataset_title}"


def _moment(checkpoint: Checkpoint, step: int) -> str:
    words = checkpoint.moment(step)
    return words if f"{step:,}" in words else f"{words}, step {step:,}"


def html(checkpoint: Checkpoint, pixels: Tensor, views: View, index: int = -1) -> str:
    """A page with the input and the fields before training and at every step, on one scale.

    Its slider and the button "Play" move through the steps, starting at the snapshot `index`. It
    works offline.
    """
    index %= len(views.steps)
    before, after = (field_figure(views.fields[k], views.x, views.y, views.top) for k in (0, index))
    moves = any(not np.array_equal(values, views.fields[0]) for values in views.fields[1:])
    heading = checkpoint.moment(views.steps[index])
    if moves:
        heading = "at this step"
        _add_slider(after, views, index)
    panels = [
        Panel.square("input", picture_figure(pixels.numpy())),
        Panel.square("before training", before),
        Panel.square(heading, after),
    ]
    return html_page(title_of(checkpoint), [panels])


def _add_slider(figure: go.Figure, views: View, index: int) -> None:
    """Add a slider and a button to play the steps to the figure of a field."""
    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    kept = _kept(views, index)
    figure.frames = [
        go.Frame(
            name=str(views.steps[k]),
            data=[go.Heatmap(z=views.fields[k].sum(0).astype(np.float32))],
            traces=[0],
        )
        for k in kept
    ]
    below = {"y": 0, "xanchor": "left", "yanchor": "top"}
    slider = {
        **below,
        "x": 0.2,
        "len": 0.8,
        "pad": {"t": 66},
        "active": kept.index(index),
        "ticklen": 0,
        "minorticklen": 0,
        "currentvalue": {"prefix": "step ", "xanchor": "right"},
        "font": {"size": 12},
        "steps": [
            {
                "label": f"{views.steps[k]:,}",
                "method": "animate",
                "args": [[str(views.steps[k])], at_once | {"frame": {"duration": 0}}],
            }
            for k in kept
        ],
    }
    play = {"frame": {"duration": FRAME, "redraw": True}, "fromcurrent": True}
    button = {"label": "Play", "method": "animate", "args": [None, at_once | play]}
    buttons = {
        **below,
        "x": 0,
        "type": "buttons",
        "pad": {"t": 72},
        "showactive": False,
        "buttons": [button],
    }
    figure.update_layout(
        sliders=[slider],
        updatemenus=[buttons],
        margin={"b": figure.layout.margin.b + UNDER, "autoexpand": False},
    )


def steps_in_page(views: View, index: int) -> str:
    """The number of steps that `html` contains, in words."""
    kept, count = len(_kept(views, index)), len(views.steps)
    return "all saved steps" if kept == count else f"{kept:,} of {count:,} saved steps"


def _kept(views: View, index: int) -> list[int]:
    """The snapshots on a page: all, or as many as fit, including `index`."""
    count = len(views.steps)
    index %= count
    most = max(2, MOST_CELLS // (len(views.x) * len(views.y)))
    evenly = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return sorted({*evenly.tolist(), index})


def compared_html(
    pixels: Tensor,
    x: np.ndarray,
    y: np.ndarray,
    fields: dict[str, np.ndarray],
    titles: dict[str, str],
    top: float,
    unit: str = "density per pixel²",
    title: str = "Receptive fields for one input",
) -> str:
    """A page with the input and the fields of several models, and their differences from the first.

    It works offline.

    Args:
        fields: (C, H · r, W · r) by name of the model, including `first`.
        titles: heading of each field.
        top: end of the colour scale, per square pixel.
        unit: title of the colour scale.
        title: title of the page.
    """
    shown = [
        Panel.square(titles[name], field_figure(values, x, y, top, unit))
        for name, values in fields.items()
    ]
    changes = [
        Panel.square(
            f"{name} − first",
            difference_figure(values - fields["first"], x, y, top, f"difference, {unit}"),
        )
        for name, values in fields.items()
        if name != "first"
    ]
    ink = Panel.square("input", picture_figure(pixels.numpy()))
    return html_page(title, [[ink, *shown], *([changes] if changes else [])])
