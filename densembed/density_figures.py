"""Figures of single densities, of fields over their input, and of many small fields."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.figures import (
    AFTER,
    BEFORE,
    DENSITY_SCALE,
    FIELD_HEIGHT,
    _bar,
    _square,
    field_figure,
    picture_figure,
)
from densembed.meaning import Densities

AGAINST, FOR = "#5aa9e6", "#ff9d5c"
"""Weights under and over zero: blue and orange, apart for colour-blind eyes as well."""
SIGNED = [[0, AGAINST], [0.5, "#55595e"], [1, FOR]]
DIM = 0.4
"""Brightness of the input under its densities."""
ROUND = np.linspace(0, 2 * np.pi, 25)
SHADES = 6
"""Groups of the ellipses by the size of their weight: a trace each, whatever their number."""


def over_input_figure(
    pixels: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray, top: float,
    opacity: float,
) -> go.Figure:  # fmt: skip
    """A field (C, H · r, W · r) laid over the picture (C, H, W) of uint8 that it belongs to."""
    figure = picture_figure(pixels)
    figure.data[0].update(hoverinfo="skip", hovertemplate=None)
    if figure.data[0].type == "heatmap":
        figure.data[0].showscale = False
    return figure.add_trace(field_figure(values, x, y, top).data[0].update(opacity=opacity))


def channels_figure(values: np.ndarray, x: np.ndarray, y: np.ndarray, top: float) -> go.Figure:
    """The fields of three channels (3, H · r, W · r) as one picture: each in its own light.

    Red where the densities of the red channel lie, white where all three do; `top` per square
    pixel is full light.
    """
    light = np.rint(255 * np.clip(values / (top or 1), 0, 1)).astype(np.uint8)
    trace = go.Image(
        z=np.moveaxis(light, 0, -1), x0=x[0], y0=y[0], dx=x[1] - x[0], dy=y[1] - y[0],
        customdata=np.moveaxis(values, 0, -1),
        hovertemplate="column %{x:.2f}, row %{y:.2f}<br>red %{customdata[0]:.4f}, "
        "green %{customdata[1]:.4f}, blue %{customdata[2]:.4f} per pixel²<extra></extra>",
    )  # fmt: skip
    return _square(go.Figure(trace), float(x[0] + x[-1]), float(y[0] + y[-1]))


def densities_figure(
    pixels: np.ndarray, shown: Densities, label: int, name: str, bound: float,
    chosen: int | None = None,
) -> go.Figure:  # fmt: skip
    """Each density as an ellipse at (μ, s) over the input, coloured by its weight for a class.

    The dot at μ is larger the larger the weight; it is the last trace but for the mark of the
    chosen density, and its `customdata` has the density's number, from 1.

    Args:
        label, name: index of the class and its name.
        bound: end of the colour scale, for weights of both signs.
    """
    weights = np.zeros(len(shown.loc)) if shown.weights is None else shown.weights[label]
    share = np.clip(weights / (bound or 1), -1, 1)
    figure = picture_figure((pixels * DIM).astype(np.uint8))
    figure.data[0].update(hoverinfo="skip", hovertemplate=None)
    if figure.data[0].type == "heatmap":
        figure.data[0].showscale = False
    for sign, colour in ((-1, AGAINST), (1, FOR)):
        shade = np.ceil(abs(share) * SHADES).clip(1).astype(int) * np.where(share < 0, -1, 1)
        for level in range(1, SHADES + 1):
            members = np.flatnonzero(shade == sign * level)
            if len(members):
                figure.add_trace(_ellipses(shown, members, colour, level / SHADES))
    figure.add_scatter(
        x=shown.loc[:, 0],
        y=shown.loc[:, 1],
        mode="markers",
        marker={
            "size": 6 + 8 * np.sqrt(abs(share)),
            "color": weights.astype(np.float32),
            "colorscale": SIGNED,
            "cmin": -bound,
            "cmax": bound,
            "line": {"width": 0},
            "colorbar": _bar(f"weight for {name}"),
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=np.stack((np.arange(1, len(share) + 1), *shown.scale.T), 1),
        hovertemplate="density %{customdata[0]}<br>column %{x:.2f}, row %{y:.2f}<br>"
        "scale %{customdata[1]:.2f} × %{customdata[2]:.2f} pixels<br>weight %{marker.color:+.3f}"
        "<extra></extra>",
        showlegend=False,
    )
    if chosen is not None:
        figure.add_scatter(
            x=shown.loc[chosen : chosen + 1, 0], y=shown.loc[chosen : chosen + 1, 1],
            mode="markers", hoverinfo="skip", showlegend=False,
            marker={"size": 20, "color": "rgba(0,0,0,0)", "line": {"color": "#fff", "width": 2}},
        )  # fmt: skip
    return figure.update_layout(dragmode=False, clickmode="event+select")


def _ellipses(shown: Densities, members: np.ndarray, colour: str, strength: float) -> go.Scatter:
    gap = np.full((len(members), 1), np.nan)
    outlines = [
        np.hstack((shown.loc[members, axis, None] + shown.scale[members, axis, None] * wave, gap))
        for axis, wave in enumerate((np.cos(ROUND), np.sin(ROUND)))
    ]
    return go.Scatter(
        x=outlines[0].ravel().astype(np.float32),
        y=outlines[1].ravel().astype(np.float32),
        mode="lines",
        line={"color": colour, "width": 1 + strength},
        opacity=0.15 + 0.85 * strength,
        hoverinfo="none",
        showlegend=False,
    )


def path_figure(
    places: np.ndarray, steps: Sequence[int], size: tuple[float, float], now: int
) -> go.Figure:
    """Where one density was at each step: places (steps, 2), columns and rows, in pixels."""
    figure = go.Figure(
        go.Scatter(
            x=places[:, 0],
            y=places[:, 1],
            mode="lines+markers",
            line={"color": BEFORE, "width": 1},
            marker={
                "size": [14 if k == now else 6 for k in range(len(steps))],
                "color": [AFTER if k == now else BEFORE for k in range(len(steps))],
                "opacity": 1,
            },
            customdata=list(steps),
            hovertemplate="step %{customdata:,}<br>column %{x:.2f}, row %{y:.2f}<extra></extra>",
        )
    )
    width, height = size
    figure = _square(figure, width, height)
    frame = {"type": "rect", "x0": 0, "y0": 0, "x1": width, "y1": height}
    return figure.add_shape(**frame, line={"color": BEFORE, "width": 1})


def weights_figure(weights: np.ndarray, classes: Sequence[str]) -> go.Figure:
    """What one density weighs for each class, as bars to both sides of zero."""
    figure = go.Figure(
        go.Bar(
            x=weights,
            y=list(classes),
            orientation="h",
            marker={"color": [FOR if w > 0 else AGAINST for w in weights], "line": {"width": 0}},
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="weight", fixedrange=True)
    figure.update_yaxes(autorange="reversed", fixedrange=True, type="category")
    return figure.update_layout(
        height=FIELD_HEIGHT,
        margin={"l": 8, "r": 8, "t": 28, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )


def atlas_figure(
    fields: Sequence[np.ndarray], names: Sequence[str], size: tuple[float, float], top: float,
    name: str, columns: int = 5,
) -> go.Figure:  # fmt: skip
    """Fields (H · r, W · r), one for each class, on one colour scale."""
    rows = -(-len(fields) // columns)
    figure = make_subplots(
        rows, columns, subplot_titles=list(names), horizontal_spacing=0.01, vertical_spacing=0.08
    )
    width, height = size
    for k, values in enumerate(fields):
        trace = go.Heatmap(
            z=values.astype(np.float32),
            x=(np.arange(values.shape[1]) + 0.5) * width / values.shape[1],
            y=(np.arange(values.shape[0]) + 0.5) * height / values.shape[0],
            coloraxis="coloraxis",
            hovertemplate="column %{x:.1f}, row %{y:.1f}<br>%{z:.4f} per pixel²<extra></extra>",
        )
        figure.add_trace(trace, k // columns + 1, k % columns + 1)
    figure.update_xaxes(visible=False, constrain="domain", fixedrange=True, range=[0, width])
    figure.update_yaxes(visible=False, constrain="domain", fixedrange=True, range=[height, 0])
    for k in range(1, len(fields) + 1):
        figure.update_layout({f"yaxis{k if k > 1 else ''}": {"scaleanchor": f"x{k}"}})
    return figure.update_layout(
        height=170 * rows + 70,
        margin={"l": 4, "r": 4, "t": 24, "b": 56},
        coloraxis={"cmin": 0, "cmax": top, "colorscale": DENSITY_SCALE, "colorbar": _bar(name)},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
