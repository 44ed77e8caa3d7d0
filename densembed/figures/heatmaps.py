"""Images and fields as Plotly heatmaps, for notebooks and HTML exports.

The pages draw on a canvas instead, and `printed` and `film` use matplotlib.
"""

import numpy as np
import plotly.graph_objects as go

from densembed.figures.theme import DENSITY_SCALE, INK_SCALE, SIGNED_SCALE, colour_bar, themed


def as_image(figure: go.Figure, width: float, height: float) -> go.Figure:
    """Image orientation, square pixels, no axes."""
    hidden = {"visible": False, "constrain": "domain", "fixedrange": True}
    figure.update_xaxes(range=[0, width], **hidden)
    # Aligned at the top, so that images with and without a colour bar stay in line.
    figure.update_yaxes(
        range=[height, 0], scaleanchor="x", scaleratio=1, constraintoward="top", **hidden
    )
    return themed(figure, bottom=64)


def picture_figure(pixels: np.ndarray) -> go.Figure:
    """An image (C, H, W) of uint8, as the model receives it."""
    channels, height, width = pixels.shape
    if channels == 1:
        trace = go.Heatmap(
            z=pixels[0].astype(np.float32) / 255,
            x=np.arange(width) + 0.5,
            y=np.arange(height) + 0.5,
            zmin=0,
            zmax=1,
            colorscale=INK_SCALE,
            colorbar=colour_bar("ink, 0 to 1"),
            hovertemplate="column %{x:.0f}, row %{y:.0f}<br>ink %{z:.2f}<extra></extra>",
        )
    else:
        trace = go.Image(z=np.moveaxis(pixels[:3], 0, -1), x0=0.5, y0=0.5)
    return as_image(go.Figure(trace), width, height)


def field_figure(
    values: np.ndarray, x: np.ndarray, y: np.ndarray, top: float, name: str = "density per pixel²"
) -> go.Figure:
    """A receptive field (C, H · r, W · r), summed over channels.

    Args:
        top: end of the colour scale, the same for all figures that are compared.
    """
    trace = go.Heatmap(
        z=values.sum(0).astype(np.float32),
        x=x,
        y=y,
        zmin=0,
        zmax=top,
        colorscale=DENSITY_SCALE,
        colorbar=colour_bar(name, (0, top)),
        hovertemplate="column %{x:.2f}, row %{y:.2f}<br>%{z:.4f} per pixel²<extra></extra>",
    )
    return as_image(go.Figure(trace), _extent(x), _extent(y))


def difference_figure(
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    bound: float,
    name: str = "difference, density per pixel²",
    unit: str = "per pixel²",
) -> go.Figure:
    """A signed field (C, H · r, W · r), summed over channels, on a scale from −bound to bound."""
    bound = bound or 1.0  # equal fields
    trace = go.Heatmap(
        z=values.sum(0).astype(np.float32),
        x=x,
        y=y,
        zmin=-bound,
        zmax=bound,
        colorscale=SIGNED_SCALE,
        colorbar=colour_bar(name, (-bound, bound)),
        hovertemplate="column %{x:.2f}, row %{y:.2f}<br>%{z:+.4f} " + unit + "<extra></extra>",
    )
    return as_image(go.Figure(trace), _extent(x), _extent(y))


def _extent(centres: np.ndarray) -> float:
    return float(centres[0] + centres[-1])
