"""Receptive fields as files to take away."""

import io
from pathlib import Path

import numpy as np
from plotly.subplots import make_subplots
from torch import Tensor

from densembed.checkpoint import Checkpoint, replace_file
from densembed.fields import View
from densembed.figures import field_figure, picture_figure
from densembed.models import describe


def write_npz(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """`before`, `after` (channels, H · r, W · r), cell centres `x`, `y` in pixels, `input`."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        before=seen.fields[0],
        after=seen.fields[-1],
        x=seen.x,
        y=seen.y,
        input=pixels.numpy(),
    )
    replace_file(path, file.getvalue())


def write_html(path: Path, checkpoint: Checkpoint, pixels: Tensor, seen: View) -> None:
    """Input, field before and after on one scale, as a page that needs no network."""
    titles = ("the input", "before training", "after training")
    figure = make_subplots(1, 3, subplot_titles=titles, horizontal_spacing=0.04)
    panels = [picture_figure(pixels.numpy())] + [
        field_figure(values, seen.x, seen.y, seen.top)
        for values in (seen.fields[0], seen.fields[-1])
    ]
    for column, panel in enumerate(panels, 1):
        trace = panel.data[0]
        if column < 3 and trace.type == "heatmap":
            trace.showscale = False
        figure.add_trace(trace, 1, column)
        axes = {"row": 1, "col": column, "visible": False, "constrain": "domain"}
        figure.update_xaxes(range=panel.layout.xaxis.range, **axes)
        anchor = "x" if column == 1 else f"x{column}"
        figure.update_yaxes(range=panel.layout.yaxis.range, scaleanchor=anchor, **axes)
    figure.data[-1].colorbar = {"title": {"text": "density per pixel²", "side": "right"}}
    figure.update_layout(title=describe(checkpoint.config.model), height=460)
    page = figure.to_html(include_plotlyjs=True, full_html=True)
    replace_file(path, page.encode())
