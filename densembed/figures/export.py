"""Receptive fields as files: NPZ, CSV, figures for print and Python programs."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from densembed.data.codec import to_text
from densembed.data.scaling import Scaling
from densembed.fields.field import View
from densembed.figures.printed import sheet
from densembed.figures.signals import signal_sheet
from densembed.files import replace_file
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint


def write_npz(path: Path, checkpoint: Checkpoint, pixels: Tensor, views: View) -> None:
    """Write `before`, `after` (C, H · r, W · r), cell centres `x`, `y` in pixels, and `input`.

    Those of a signal are (C, L · r), without `y`, and the `input` is scaled. If the first snapshot
    is that of a later step n, its field is `step_n` instead of `before`.
    """
    replace_file(path, npz(pixels, views))


def npz(pixels: Tensor, views: View, index: int = -1, **more: np.ndarray) -> bytes:
    """The content of an NPZ file as in `write_npz`; `after` is the snapshot `index`."""
    return _compressed(_before_and_after(views, index) | more, views.x, views.y, pixels)


def _compressed(arrays: Mapping[str, Any], x: np.ndarray, y: np.ndarray, pixels: Tensor) -> bytes:
    file = io.BytesIO()
    places: dict[str, Any] = {"x": x, "y": y} if y.size else {"x": x}
    np.savez_compressed(file, **arrays, **places, input=pixels.numpy())
    return file.getvalue()


def csv(views: View, index: int = -1, **more: np.ndarray) -> str:
    """CSV with one line per cell: its column and row in pixels, and both fields.

    Fields are summed over channels.

    Args:
        more: further columns, arrays (C, H · r, W · r) on the same cells.
    """
    return cells(views.x, views.y, _before_and_after(views, index) | more)


def _before_and_after(views: View, index: int) -> dict[str, np.ndarray]:
    """The first field and that of the snapshot `index`. A first step n above 0 is "step_n"."""
    first = views.steps[0]
    return {f"step_{first}" if first else "before": views.fields[0], "after": views.fields[index]}


def cells(x: np.ndarray, y: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """CSV with one line per cell: its column and row in pixels, and each array's value.

    Cells of a signal have their place t in samples.

    Args:
        arrays: (C, H · r, W · r) by name, summed over channels; (C, L · r) of a signal.
    """
    places = dict(zip(("column", "row"), np.meshgrid(x, y), strict=True)) if y.size else {"t": x}
    columns = places | {name: values.sum(0) for name, values in arrays.items()}
    table = np.stack(list(columns.values()), -1)
    file = io.StringIO()
    rows = table.reshape(-1, table.shape[-1])
    np.savetxt(file, rows, "%.9g", ",", header=",".join(columns), comments="")
    return file.getvalue()


def snippet(file_name: str, pixels: Tensor, step: int, grid: tuple[int, ...] | None = None) -> str:
    """A program that computes the field of this input at a step, and draws it.

    Args:
        grid: height and width to which the input is scaled.
    """
    scaling = "from densembed.data.transform import scaled_images\n" if grid else ""
    scaled = f"pixels = scaled_images(pixels, {grid})\n" if grid else ""
    return f"""\
from densembed.training.checkpoint import Checkpoint
from densembed.data.codec import from_text
{scaling}from densembed.fields.field import view
from densembed.figures.export import write_printed

checkpoint = Checkpoint.open({file_name!r})
pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
{scaled}views = view(checkpoint, pixels)
index = views.steps.index({step})
after = views.fields[index]  # (channels, rows, columns), per square pixel
write_printed("field.pdf", checkpoint, pixels, views, index)
"""


def signal_csv(signal: Tensor, scaling: Scaling) -> str:
    """The measured values of a scaled signal (C, L), one line per channel."""
    file = io.StringIO()
    np.savetxt(file, scaling.measured(signal.double().numpy()), "%.9g", ",")
    return file.getvalue()


def signal_snippet(file_name: str, step: int) -> str:
    """A program that computes the field of the signal in the file input.csv at a step."""
    return f"""\
import numpy as np
import torch

from densembed.training.checkpoint import Checkpoint
from densembed.fields.field import view
from densembed.figures.export import write_printed

checkpoint = Checkpoint.open({file_name!r})
values = np.loadtxt("input.csv", delimiter=",", ndmin=2)  # (channels, length), as measured
signal = torch.from_numpy(checkpoint.header.scaling(values)).float()
views = view(checkpoint, signal)
index = views.steps.index({step})
after = views.fields[index]  # (channels, cells), per sample
write_printed("field.pdf", checkpoint, signal, views, index)
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
    centres `x` and `y` in pixels, and the `input`. Those of a signal are (channels, L · r), without
    `y`, and the `input` has measured values.
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
    shown = "".join(f"    ({n!r}, {files[n]!r}, {steps[n]}, {parts[n]}),\n" for n in files)
    return f"""\
from densembed.training.checkpoint import Checkpoint
from densembed.data.codec import from_text
from densembed.fields.field import view
from densembed.figures.printed import sheet

fields = {{}}
for name, file, step, parts in [
{shown}]:
    checkpoint = Checkpoint.open(file)
    pixels = from_text({to_text(pixels)!r}, checkpoint.header.input_shape)
    views = view(checkpoint, pixels)
    fields[name] = views.fields[views.steps.index(step)].sum(0) / parts  # (rows, columns)
changes = {{f"{{name}} − first": fields[name] - fields["first"] for name in list(fields)[1:]}}
top = max(field.max() for field in fields.values())
with open("differences.pdf", "wb") as file:
    file.write(sheet(pixels.numpy(), fields, top, "Receptive fields", "PDF", changes=changes))
"""


def compared_signal_snippet(
    files: dict[str, str], steps: dict[str, int], parts: dict[str, int]
) -> str:
    """As `compared_snippet`, for the signal in the file input.csv."""
    shown = "".join(f"    ({n!r}, {files[n]!r}, {steps[n]}, {parts[n]}),\n" for n in files)
    return f"""\
import numpy as np
import torch

from densembed.training.checkpoint import Checkpoint
from densembed.fields.field import view
from densembed.figures.signals import signal_sheet
from densembed.figures.theme import SERIES

values = np.loadtxt("input.csv", delimiter=",", ndmin=2)  # (channels, length), as measured
fields = {{}}
for name, file, step, parts in [
{shown}]:
    checkpoint = Checkpoint.open(file)
    signal = torch.from_numpy(checkpoint.header.scaling(values)).float()
    views = view(checkpoint, signal)
    fields[name] = views.fields[views.steps.index(step)].sum(0) / parts  # (cells,)
changes = {{f"{{name}} − first": fields[name] - fields["first"] for name in list(fields)[1:]}}
with open("differences.pdf", "wb") as file:
    look = {{"colours": SERIES[:len(fields)], "changes": changes}}
    file.write(signal_sheet(values, fields, "Receptive fields", "PDF", **look))
"""


def write_printed(
    path: str | os.PathLike, checkpoint: Checkpoint, pixels: Tensor, views: View, index: int = -1
) -> None:
    """Write `printed` in the format of the file name extension."""
    path = Path(path)
    replace_file(path, printed(checkpoint, pixels, views, index, path.suffix[1:].upper()))


def printed(
    checkpoint: Checkpoint,
    pixels: Tensor,
    views: View,
    index: int,
    kind: str,
    columns: str = "two columns",
) -> bytes:
    """A figure for print of the input and the fields before training and at a snapshot."""
    fields = by_moment(checkpoint, views, index)
    if scaling := checkpoint.header.scaling:
        measured = scaling.measured(pixels.numpy())
        return signal_sheet(measured, fields, title_of(checkpoint), kind, columns)
    return sheet(pixels.numpy(), fields, views.top, title_of(checkpoint), kind, columns)


def by_moment(checkpoint: Checkpoint, views: View, index: int = -1) -> dict[str, np.ndarray]:
    """The fields before training and at a snapshot, summed over channels, by their headings.

    There is a single entry if both have the same heading.
    """
    return {_moment(checkpoint, views.steps[k]): views.fields[k].sum(0) for k in (0, index)}


def title_of(checkpoint: Checkpoint) -> str:
    """The title of a checkpoint's figures: its model, its training data, and which of several."""
    title = f"{describe(checkpoint.config.model)}, {checkpoint.header.provenance.dataset_title}"
    count = checkpoint.members
    return f"{title}, member {checkpoint.typical + 1} of {count}" if count > 1 else title


def _moment(checkpoint: Checkpoint, step: int) -> str:
    words = checkpoint.moment(step)
    return words if f"{step:,}" in words else f"{words}, step {step:,}"
