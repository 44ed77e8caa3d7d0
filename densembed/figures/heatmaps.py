"""Arrays → Plotly figures. The same ones for pages, notebooks and files."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import plotly.graph_objects as go

DENSITY_SCALE, SIGNED_SCALE = "Cividis", "RdBu_r"
BEFORE, AFTER = "#9aa3ad", "#2f6f9f"
COLOURS = (AFTER, "#d1892b", "#3a9d78", "#b0609f")
"""Of what stands side by side: apart for colour-blind eyes, and in both themes."""
FIELD_HEIGHT = 380
MARGIN = {"l": 8, "r": 8, "t": 8, "b": 64}


def _square(figure: go.Figure, width: float, height: float) -> go.Figure:
    """Image orientation, square pixels, no axes: a picture and not a plot."""
    hidden = {"visible": False, "constrain": "domain", "fixedrange": True}
    figure.update_xaxes(range=[0, width], **hidden)
    # To the top, so that pictures with and without a colour bar under them stay in line.
    figure.update_yaxes(
        range=[height, 0], scaleanchor="x", scaleratio=1, constraintoward="top", **hidden
    )
    figure.update_layout(
        height=FIELD_HEIGHT,
        margin=MARGIN,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def picture_figure(pixels: np.ndarray) -> go.Figure:
    """A picture (C, H, W) of uint8, as the model gets it."""
    channels, height, width = pixels.shape
    if channels == 1:
        trace = go.Heatmap(
            z=pixels[0].astype(np.float32) / 255,
            x=np.arange(width) + 0.5,
            y=np.arange(height) + 0.5,
            zmin=0,
            zmax=1,
            colorscale="Greys_r",
            colorbar=_bar("ink, 0 to 1"),
            hovertemplate="column %{x:.0f}, row %{y:.0f}<br>ink %{z:.2f}<extra></extra>",
        )
    else:
        trace = go.Image(z=np.moveaxis(pixels[:3], 0, -1), x0=0.5, y0=0.5)
    return _square(go.Figure(trace), width, height)


def field_figure(
    values: np.ndarray, x: np.ndarray, y: np.ndarray, top: float, name: str = "density per pixel²"
) -> go.Figure:
    """A receptive field (C, H · r, W · r) as a heatmap, its channels added.

    `top` is the end of the colour scale: the same for all figures that are compared.
    """
    trace = go.Heatmap(
        z=values.sum(0).astype(np.float32),
        x=x,
        y=y,
        zmin=0,
        zmax=top,
        colorscale=DENSITY_SCALE,
        colorbar=_bar(name),
        hovertemplate="column %{x:.2f}, row %{y:.2f}<br>%{z:.4f} per pixel²<extra></extra>",
    )
    return _square(go.Figure(trace), _extent(x), _extent(y))


def difference_figure(
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    bound: float,
    name: str = "difference, density per pixel²",
    unit: str = "per pixel²",
) -> go.Figure:
    """A signed field (C, H · r, W · r), its channels added, on a scale from −bound to bound."""
    bound = bound or 1.0  # a checkpoint against itself
    trace = go.Heatmap(
        z=values.sum(0).astype(np.float32),
        x=x,
        y=y,
        zmin=-bound,
        zmax=bound,
        colorscale=SIGNED_SCALE,
        colorbar=_bar(name),
        hovertemplate="column %{x:.2f}, row %{y:.2f}<br>%{z:+.4f} " + unit + "<extra></extra>",
    )
    return _square(go.Figure(trace), _extent(x), _extent(y))


def _extent(centres: np.ndarray) -> float:
    return float(centres[0] + centres[-1])


def _bar(name: str) -> dict:
    return {
        "orientation": "h",
        "x": 0.5,
        "y": 0,
        "yanchor": "top",
        "thickness": 8,
        "len": 0.9,
        "outlinewidth": 0,
        "nticks": 4,
        "title": {"text": name, "side": "bottom", "font": {"size": 12}},
    }


def curves_figure(
    curves: Sequence[tuple[str, Sequence[float], Sequence[Sequence[float]]]],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Lines with a point at each measurement, and a band of ± a standard deviation.

    Args:
        curves: (name, x, members' values at each x) for each.
    """
    figure = go.Figure()
    for (name, x, values), colour in zip(curves, cycle(COLOURS), strict=False):
        middle = np.array([np.mean(members) for members in values])
        figure.add_scatter(
            x=list(x),
            y=middle,
            name=name,
            mode="lines+markers",
            marker_size=5,
            line_color=colour,
            hovertemplate="%{x:,}: %{y:.4g}<extra>" + name + "</extra>",
        )
        if values and len(values[0]) > 1:
            spread = np.array([np.std(members, ddof=1) for members in values])
            figure.add_scatter(
                x=[*x, *reversed(list(x))],
                y=np.concatenate((middle + spread, (middle - spread)[::-1])),
                fill="toself",
                fillcolor=colour,
                line={"width": 0},
                opacity=0.3,
                hoverinfo="skip",
                showlegend=False,
            )
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title=y_title, rangemode="tozero")
    figure.update_layout(
        height=FIELD_HEIGHT,
        margin={"l": 8, "r": 8, "t": 28, "b": 48},
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure
