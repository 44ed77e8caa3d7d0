"""Receptive fields in a notebook: the live panel of the pages, and figures.

>>> from densembed import Checkpoint
>>> from densembed.notebook import figure, show
>>> checkpoint = Checkpoint.open("a.safetensors")  # doctest: +SKIP
>>> show(checkpoint, "photo.jpg")  # doctest: +SKIP
>>> figure(checkpoint, "photo.jpg")  # doctest: +SKIP
"""

import base64
import gzip
import io
import os
import sys
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import PIL.Image
import PIL.ImageOps
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from densembed.data import load_dataset
from densembed.data.decode import as_rgba, read_bytes
from densembed.data.frames import frames_note
from densembed.data.images import read_picture
from densembed.data.levels import FULL, levels
from densembed.fields.field import RESOLUTION, view
from densembed.figures.export import by_moment, title_of
from densembed.figures.printed import sheet_figure
from densembed.figures.theme import DENSITY_SCALE, INK_SCALE, clipped_ticks, themed
from densembed.functional.arguments import as_tensor, per_axis
from densembed.models.defaults import float32_on_cpu
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import view_page

Image = Tensor | np.ndarray | PIL.Image.Image | str | os.PathLike | None
HEIGHT = 1000
SCREEN_DPI = 110
EXAMPLES = 3
"""Test images per class in a panel, which a notebook stores."""
# The page is compressed, and a few lines of JavaScript unpack it into the frame that they are in.
# It gets an address of its own there, as the page keeps its state in its link.
UNPACK = """<!doctype html><meta charset="utf-8"><script type="module">
const bytes = Uint8Array.from(atob("CONTENT"), (c) => c.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const page = await new Response(stream).blob();
location.replace(URL.createObjectURL(page.slice(0, page.size, "text/html;charset=utf-8")));
</script>"""


@dataclass(frozen=True)
class NotebookFrame:
    """A page in a frame of a notebook. `html` is the page, which also works as a file."""

    html: str
    height: int = HEIGHT

    def _repr_html_(self) -> str:
        packed = base64.b64encode(gzip.compress(self.html.encode(), mtime=0)).decode()
        frame = escape(UNPACK.replace("CONTENT", packed))
        return (
            f'<iframe srcdoc="{frame}" width="100%" height="{self.height}" '
            'style="border: 0" title="densembed"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<live panel, {len(self.html) / 1e6:.1f} MB; a notebook displays it>"


@float32_on_cpu()
def show(
    checkpoint: Checkpoint, x: Image = None, *, height: int = HEIGHT, **link: str
) -> NotebookFrame:
    """The live view of Explore for an input, which works in any notebook without a server.

    The browser computes the network: the step, the input and the views can be changed in place.

    Args:
        x: the input: pixels (C, H, W) or (1, C, H, W), uint8, bool or with ink from 0 to 1; an
            image of PIL; or the path of an image file. By default the first test image of the
            built-in digits, or a blank image if the model takes images of another shape.
        height: height of the frame in pixels, an integer.
        link: parameters of the view, as in the links of the page: `step="100"`.
    """
    per_axis(height, 1, "height", 1)
    pixels = as_pixels(checkpoint, x)
    models = {checkpoint.config.model: checkpoint}
    return NotebookFrame(view_page(models, pixels, link, examples=EXAMPLES), height)


@float32_on_cpu()
def figure(
    checkpoint: Checkpoint,
    x: Image = None,
    *,
    backend: Literal["matplotlib", "plotly"] = "matplotlib",
    snapshot: int = -1,
    resolution: int = RESOLUTION,
) -> Any:
    """The input and its receptive fields before training and at a snapshot, on one colour scale.

    Args:
        x: the input, as for `show`.
        backend: "matplotlib" returns a `matplotlib.figure.Figure` for print, "plotly" a
            `plotly.graph_objects.Figure` with values under the pointer.
        snapshot: index of the snapshot, −1 for the last one.
        resolution: cells per pixel on each axis.
    """
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"Expected the backend matplotlib or plotly; got {backend!r:.40}.")
    pixels = as_pixels(checkpoint, x)
    views = view(checkpoint, pixels, [0, snapshot], resolution=resolution)
    fields, title = by_moment(checkpoint, views), title_of(checkpoint)
    if backend == "plotly":
        return _plotly(pixels, fields, views.x, views.y, views.top, title)
    page = sheet_figure(pixels.numpy(), fields, views.top, title)
    page.set_dpi(SCREEN_DPI)
    _load_backend()
    return page


def _load_backend() -> None:
    """Load matplotlib's backend in a notebook, which only then knows how to display figures.

    `sheet_figure` draws without pyplot, which would load it with its first figure.
    """
    if "IPython" in sys.modules:
        from matplotlib import get_backend, pyplot

        pyplot.switch_backend(get_backend())


def as_pixels(checkpoint: Checkpoint, x: Image = None) -> Tensor:
    """An input as the pixels (C, H, W) uint8 that a checkpoint's network takes; see `show`."""
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(
            "Expected a checkpoint, for example Checkpoint.open('a.safetensors'); got "
            f"{type(checkpoint).__name__}."
        )
    shape = checkpoint.header.input_shape
    if checkpoint.header.scaling:
        raise ValueError(
            "A notebook shows models of images. For a signal, use densembed.fields.field.view or "
            "the command render."
        )
    if x is None:
        images = load_dataset("digits").test.images
        same = tuple(images.shape[1:]) == shape
        return images[0] if same else torch.zeros(shape, dtype=torch.uint8)
    if isinstance(x, (PIL.Image.Image, str, os.PathLike)):
        if isinstance(x, PIL.Image.Image):
            name, data = "The image", _as_file(x)
        else:
            name, data = printable(Path(x).name or x), read_bytes(x)
        image = read_picture(data, shape, checkpoint.reads_digits)
        for note in (frames_note(name, data), image.note):
            if note:
                warnings.warn(note, stacklevel=4)  # at the call of `show` or `figure`, decorated
        return image.pixels
    tensor = as_tensor(x).detach().cpu()
    pixels = tensor[0] if tensor.dim() == 4 and len(tensor) == 1 else tensor
    if tuple(pixels.shape) != shape:
        raise ValueError(
            f"Expected an image of shape {shape}, or one in a batch; got {tuple(tensor.shape)}."
        )
    if pixels.dtype == torch.uint8:
        return pixels
    ink = pixels if pixels.is_complex() else pixels.double()
    if pixels.dtype != torch.bool and (
        not pixels.is_floating_point() or not ((ink >= 0) & (ink <= 1)).all()
    ):
        span = "" if pixels.is_complex() else f" from {ink.min():g} to {ink.max():g}"
        raise ValueError(
            "Expected pixels in uint8 from 0 to 255, or floating-point ink from 0 to 1; got "
            f"{pixels.dtype}{span}. Divide values of 0 to 255 by 255."
        )
    return (ink * 255).round().to(torch.uint8)


def _as_file(image: PIL.Image.Image) -> bytes:
    """An image as a file with the same colours, upright as a page shows it."""
    upright = PIL.ImageOps.exif_transpose(image)
    deep = levels(image)  # before it was turned, as a TIFF says what its values mean
    if deep:
        grey = np.rint(deep.grey(upright) * FULL).astype(np.uint16)
        upright = PIL.Image.fromarray(grey)
    else:
        upright = as_rgba(upright)
    file = io.BytesIO()
    upright.save(file, "PNG")
    return file.getvalue()


def _plotly(
    pixels: Tensor,
    fields: dict[str, np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    top: float,
    title: str,
) -> go.Figure:
    """Heatmaps in a row, in single precision, which is half as large in a notebook."""
    made = make_subplots(1, 1 + len(fields), subplot_titles=["input", *fields])
    ink = {"colorscale": INK_SCALE, "zmin": 0, "zmax": 255, "showscale": False}
    made.add_heatmap(z=pixels.numpy().mean(0), x0=0.5, y0=0.5, **ink, row=1, col=1)
    place = {"x": x.astype("float32"), "y": y.astype("float32"), "coloraxis": "coloraxis"}
    for column, (name, values) in enumerate(fields.items(), 2):
        made.add_heatmap(z=values.astype("float32"), name=name, **place, row=1, col=column)
    places, labels = clipped_ticks(0.0, top)
    bar = {"title": {"text": "density per pixel²"}, "tickvals": places, "ticktext": labels}
    made.update_xaxes(showgrid=False, zeroline=False, constrain="domain")
    for column in range(1, 2 + len(fields)):
        anchor = f"x{column if column > 1 else ''}"
        made.update_yaxes(
            autorange="reversed",
            scaleanchor=anchor,
            constrain="domain",
            showgrid=False,
            zeroline=False,
            row=1,
            col=column,
        )
    return themed(
        made,
        top=64,
        title={"text": title, "font": {"size": 14}},
        coloraxis={"colorscale": DENSITY_SCALE, "cmin": 0, "cmax": top, "colorbar": bar},
    )
