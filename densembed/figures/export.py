"""Receptive fields as files to take away."""

import io
from pathlib import Path

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
"""Cells of all steps in a page: some 20 MB. Beyond that, steps are left out evenly."""
FRAME = 120  # ms that a step is shown
UNDER = 92  # pixels under a colour bar for a slider


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
from densembed.training.checkpoint import Checkpoint
from densembed.data.codec import from_text
from densembed.fields.field import view
from densembed.figures.heatmaps import field_figure
from densembed.figures.web import Panel, html_page

checkpoint = Checkpoint.open({file_name!r})
pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
seen = view(checkpoint, pixels)
after = seen.fields[seen.steps.index({step})]  # (channels, rows, columns), per square pixel
figure = field_figure(after, seen.x, seen.y, seen.top)
with open("field.html", "w", encoding="utf-8") as file:
    file.write(html_page("Receptive field", [[Panel.square("at step {step:,}", figure)]]))
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
    seen = view(checkpoint, pixels)
    fields.append(seen.fields[seen.steps.index(step)] / parts)  # (channels, rows, columns)
panels = []
for k, field in enumerate(fields[1:], 2):
    change = difference_figure(field - fields[0], seen.x, seen.y, abs(field - fields[0]).max())
    panels.append(Panel.square(f"model {{k}} minus the first", change))
with open("differences.html", "w", encoding="utf-8") as file:
    file.write(html_page("Differences of receptive fields", [panels]))
"""


def write_html(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """`html`, at the last step."""
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
    return sheet(pixels.numpy(), fields, seen.top, title_of(checkpoint), kind, columns)


def title_of(checkpoint: Checkpoint) -> str:
    """What stands over a figure of a checkpoint: its model, and the data that it learned from."""
    return f"{describe(checkpoint.config.model)}, {checkpoint.header.provenance.dataset_title}"


def _moment(checkpoint: Checkpoint, step: int) -> str:
    words = checkpoint.moment(step)
    return words if f"{step:,}" in words else f"{words}, step {step:,}"


def html(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int = -1) -> str:
    """Input, field before training and at every step on one scale, as a page without a network.

    The page's slider and its button "Play" move through the steps, from the snapshot `index`.
    """
    index %= len(seen.steps)
    before, after = (
        field_figure(seen.fields[k], seen.x, seen.y, seen.top) for k in (0, index)
    )  # fmt: skip
    moves = any(not np.array_equal(values, seen.fields[0]) for values in seen.fields[1:])
    heading = checkpoint.moment(seen.steps[index])
    if moves:
        heading = "at the slider's step"
        _add_slider(after, seen, index)
    panels = [
        Panel.square("the input", picture_figure(pixels.numpy())),
        Panel.square("before training", before),
        Panel.square(heading, after),
    ]
    return html_page(title_of(checkpoint), [panels])


def _add_slider(figure: go.Figure, seen: View, index: int) -> None:
    """Let a field's figure show every step, by a slider and a button to play them."""
    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    kept = _kept(seen, index)
    figure.frames = [
        go.Frame(
            name=str(seen.steps[k]),
            data=[go.Heatmap(z=seen.fields[k].sum(0).astype(np.float32))],
            traces=[0],
        )
        for k in kept
    ]
    below = {"y": 0, "xanchor": "left", "yanchor": "top"}
    slider = {
        **below, "x": 0.2, "len": 0.8, "pad": {"t": 66}, "active": kept.index(index),
        "ticklen": 0, "minorticklen": 0,
        "currentvalue": {"prefix": "step ", "xanchor": "right"}, "font": {"size": 12},
        "steps": [
            {
                "label": f"{seen.steps[k]:,}", "method": "animate",
                "args": [[str(seen.steps[k])], at_once | {"frame": {"duration": 0}}],
            }
            for k in kept
        ],
    }  # fmt: skip
    play = {"frame": {"duration": FRAME, "redraw": True}, "fromcurrent": True}
    button = {"label": "Play", "method": "animate", "args": [None, at_once | play]}
    buttons = {
        **below, "x": 0, "type": "buttons", "pad": {"t": 72}, "showactive": False,
        "buttons": [button],
    }  # fmt: skip
    figure.update_layout(
        sliders=[slider], updatemenus=[buttons],
        margin={"b": figure.layout.margin.b + UNDER, "autoexpand": False},
    )  # fmt: skip


def steps_in_page(seen: View, index: int) -> str:
    """How many steps `html` holds, in words."""
    kept, count = len(_kept(seen, index)), len(seen.steps)
    return "all saved steps" if kept == count else f"{kept:,} of {count:,} saved steps"


def _kept(seen: View, index: int) -> list[int]:
    """Snapshots that a page holds: all, or as many as it has room for, `index` among them."""
    count = len(seen.steps)
    index %= count
    most = max(2, MOST_CELLS // (len(seen.x) * len(seen.y)))
    evenly = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return sorted({*evenly.tolist(), index})


def compared_html(
    pixels: Tensor, x: np.ndarray, y: np.ndarray, fields: dict[str, np.ndarray],
    titles: dict[str, str], top: float, unit: str = "density per pixel²",
    title: str = "Receptive fields for one input",
) -> str:  # fmt: skip
    """Input and fields of several models on one scale, and what each has more than the first.

    A page that needs no network.

    Args:
        fields: (C, H · r, W · r) of each model by its name, `first` among them.
        titles: what stands over each field.
        top: end of the colour scale, per square pixel.
        unit: the name of that scale.
        title: of the page.
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
    ink = Panel.square("the input", picture_figure(pixels.numpy()))
    return html_page(title, [[ink, *shown], *([changes] if changes else [])])
