"""Receptive fields as files to take away."""

import io
from pathlib import Path
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from torch import Tensor

from densembed.checkpoint import Checkpoint, replace_file
from densembed.data.compact import to_text
from densembed.fields import View
from densembed.figures import difference_figure, field_figure, picture_figure
from densembed.models import describe
from densembed.sheet import sheet


def write_npz(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """`before`, `after` (channels, H · r, W · r), cell centres `x`, `y` in pixels, `input`."""
    replace_file(path, npz(pixels, seen))


def npz(pixels: Tensor, seen: View, index: int = -1, **more: np.ndarray) -> bytes:
    """The content of an NPZ file: as `write_npz`, `after` being the snapshot `index`."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        before=seen.fields[0],
        after=seen.fields[index],
        x=seen.x,
        y=seen.y,
        input=pixels.numpy(),
        **more,
    )
    return file.getvalue()


def csv(seen: View, index: int = -1, **more: np.ndarray) -> str:
    """A line for each cell: its column and row in pixels, and both fields, channels added.

    Args:
        more: other arrays (C, H · r, W · r) on the same cells, each a further column.
    """
    return cells(seen.x, seen.y, {"before": seen.fields[0], "after": seen.fields[index], **more})


def cells(x: np.ndarray, y: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """CSV with a line for each cell: its column and row in pixels, and each array there.

    Args:
        arrays: (C, H · r, W · r) by name; channels are added.
    """
    across, down = np.meshgrid(x, y)
    table = np.stack([across, down, *(values.sum(0) for values in arrays.values())], -1)
    file = io.StringIO()
    header = ",".join(["column", "row", *arrays])
    places = ["%.9g", "%.9g", *["%.9g"] * len(arrays)]
    np.savetxt(file, table.reshape(-1, table.shape[-1]), places, ",", header=header, comments="")
    return file.getvalue()


def snippet(file_name: str, pixels: Tensor, step: int) -> str:
    """A program that makes the field of this input at a step, and its figure, from the file."""
    return f"""\
from densembed.checkpoint import Checkpoint
from densembed.data.compact import from_text
from densembed.fields import view
from densembed.figures import field_figure

checkpoint = Checkpoint.open({file_name!r})
pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
seen = view(checkpoint, pixels)
after = seen.fields[seen.steps.index({step})]  # (channels, rows, columns), per square pixel
field_figure(after, seen.x, seen.y, seen.top).write_html("field.html")
"""


def compared_npz(
    pixels: Tensor, x: np.ndarray, y: np.ndarray, fields: dict[str, np.ndarray],
    steps: dict[str, int],
) -> bytes:  # fmt: skip
    """The content of an NPZ file of several models' fields for one input.

    `field_NAME` (channels, H · r, W · r) and `step_NAME` of each, the cells' centres `x` and `y` in
    pixels, and the `input`.
    """
    file = io.BytesIO()
    arrays = {f"field_{name}": values for name, values in fields.items()}
    marks = {f"step_{name}": np.array(step) for name, step in steps.items()}
    np.savez_compressed(file, **arrays, **marks, x=x, y=y, input=pixels.numpy())
    return file.getvalue()


def compared_snippet(
    files: dict[str, str], pixels: Tensor, steps: dict[str, int], parts: dict[str, int]
) -> str:
    """A program that makes the fields of several models' files for one input, and differences.

    Args:
        parts: what each model's sum is divided by: 1, or the number of its densities for a mean.
    """
    shown = "".join(f"    ({files[name]!r}, {steps[name]}, {parts[name]}),\n" for name in files)
    return f"""\
from densembed.checkpoint import Checkpoint
from densembed.data.compact import from_text
from densembed.fields import view
from densembed.figures import difference_figure

fields = []
for file, step, parts in [
{shown}]:
    checkpoint = Checkpoint.open(file)
    pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
    seen = view(checkpoint, pixels)
    fields.append(seen.fields[seen.steps.index(step)] / parts)  # (channels, rows, columns)
for k, field in enumerate(fields[1:], 2):
    change = difference_figure(field - fields[0], seen.x, seen.y, abs(field - fields[0]).max())
    change.write_html(f"model-{{k}}-less-the-first.html")
"""


def write_html(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """Input, field before and after on one scale, as a page that needs no network."""
    replace_file(path, html(checkpoint, pixels, seen).encode())


def write_printed(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """`printed`, of the kind that the path ends in."""
    replace_file(path, printed(checkpoint, pixels, seen, -1, path.suffix[1:].upper()))


def printed(
    checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int, kind: str,
    columns: str = "two columns",
) -> bytes:  # fmt: skip
    """Input, field before training and at a snapshot as `sheet` has them."""
    fields = {  # one of them where they are the same
        _moment(checkpoint, seen.steps[k]): seen.fields[k].sum(0) for k in (0, index)
    }
    title = f"{describe(checkpoint.config.model)}, {checkpoint.header.provenance.dataset_title}"
    return sheet(pixels.numpy(), fields, seen.top, title, kind, columns)


def _moment(checkpoint: Checkpoint, step: int) -> str:
    words = checkpoint.moment(step)
    return words if f"{step:,}" in words else f"{words}, step {step:,}"


def html(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int = -1) -> str:
    """Input, field before and after on one scale, as a page that needs no network."""
    after = checkpoint.moment(seen.steps[index])
    panels = [picture_figure(pixels.numpy())] + [
        field_figure(values, seen.x, seen.y, seen.top)
        for values in (seen.fields[0], seen.fields[index])
    ]
    figure = _side_by_side([panels], ["the input", "before training", after])
    figure.update_layout(title={"text": describe(checkpoint.config.model), "x": 0.01})
    return figure.to_html(include_plotlyjs=True, full_html=True)


def compared_html(
    pixels: Tensor, x: np.ndarray, y: np.ndarray, fields: dict[str, np.ndarray],
    titles: dict[str, str], top: float, unit: str = "density per pixel²",
) -> str:  # fmt: skip
    """Input and fields of several models on one scale, and what each has more than the first.

    A page that needs no network.

    Args:
        fields: (C, H · r, W · r) of each model by its name, `first` among them.
        titles: what stands over each field.
        top: end of the colour scale, per square pixel.
        unit: the name of that scale.
    """
    names = [name for name in fields if name != "first"]
    shown = [field_figure(values, x, y, top, unit) for values in fields.values()]
    changes = [
        difference_figure(fields[name] - fields["first"], x, y, top, f"difference, {unit}")
        for name in names
    ]
    words = ["the input", *titles.values(), "", "", *(f"{name} − first" for name in names)]
    panels = [[picture_figure(pixels.numpy()), *shown], [None, None, *changes]]
    figure = _side_by_side(panels if changes else panels[:1], words)
    return figure.to_html(include_plotlyjs=True, full_html=True)


SIDE, GAP, OVER, BAR = 260, 20, 72, 130
"""Pixels: a picture's width, between two, over a row for its titles, at the right for the bars."""


def _side_by_side(rows: list[list[go.Figure | None]], titles: list[str]) -> go.Figure:
    """Pictures in rows of as many columns, a colour bar as high as they are at the end of each row.

    Of a fixed size, which a page of its own can scroll. None leaves a place free.
    """
    axes = rows[0][0].layout
    ratio = abs(np.ptp(axes.yaxis.range) / np.ptp(axes.xaxis.range))
    columns, high = len(rows[0]), SIDE * ratio
    width = columns * SIDE + (columns - 1) * GAP
    height = len(rows) * high + (len(rows) - 1) * OVER
    figure = make_subplots(
        len(rows), columns, horizontal_spacing=GAP / width, vertical_spacing=OVER / height,
        subplot_titles=[
            "<br>".join(line for part in title.split("<br>") for line in wrap(part, 40))
            for title in titles
        ],
    )  # fmt: skip
    figure.update_annotations(font_size=13)
    for number, row in enumerate(rows):
        for column, panel in enumerate(row, 1):
            place = {"row": number + 1, "col": column, "visible": False, "constrain": "domain"}
            if panel is None:
                figure.update_xaxes(**place)
                figure.update_yaxes(**place)
                continue
            trace = panel.data[0]
            if trace.type == "heatmap":
                middle = 1 - (number * (high + OVER) + high / 2) / height
                trace.update(showscale=column == columns)
                trace.colorbar.update(
                    orientation="v", lenmode="pixels", len=high, ypad=0, y=middle, yanchor="middle",
                    x=1, xref="paper", xanchor="left", thickness=12, title_side="right",
                )  # fmt: skip
            figure.add_trace(trace, number + 1, column)
            figure.update_xaxes(range=panel.layout.xaxis.range, **place)
            at = columns * number + column
            anchor = "x" if at == 1 else f"x{at}"
            figure.update_yaxes(range=panel.layout.yaxis.range, scaleanchor=anchor, **place)
    return figure.update_layout(
        width=width + BAR + GAP, height=height + 2 * OVER,
        margin={"l": GAP, "r": BAR, "t": 1.5 * OVER, "b": OVER / 2}, autosize=False,
    )  # fmt: skip
