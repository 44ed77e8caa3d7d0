"""Figures of the Lab: a signal with its densities on one t axis, an image with its factors."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale

from densembed.figures.theme import (
    ACCENT,
    AFTER,
    BEFORE,
    CLEAR,
    DENSITY_SCALE,
    INK_SCALE,
    colour_bar,
    rgb,
    themed,
    translucent,
)
from densembed.lab import Picture, Reading

CHOSEN, OTHERS, TORCH = AFTER, BEFORE, ACCENT
MARKS = {1: ["diamond"], 3: ["triangle-down", "circle", "triangle-up"]}
STRIP_HEIGHTS = {"x": 96, "phi": 130, "gamma": 190, "action": 110, "output": 110}
STRIP_GAP = 30
UNDER_IMAGE: dict[str, Any] = {"x": 0.61, "len": 0.7}
"""Place of a colour bar under the image, which has its row factor to the left."""


def strips_figure(reading: Reading, *, row: int, position: int | None = None) -> go.Figure:
    """x(t), φ_i(t), Γ, Γx, and y if the layer has a kernel, stacked on one t axis.

    Args:
        row: index of the density to highlight, with its row of Γ and its bar.
        position: index of the output that the densities belong to, if there are several.
    """
    names = [name for name in STRIP_HEIGHTS if name != "output" or reading.weights is not None]
    figure = go.Figure()
    height = _place_strips(figure, names, reading)
    axis = {name: f"y{k}" for k, name in enumerate(names, 1)}
    _signal(figure, reading, axis["x"])
    _densities(figure, reading, row, axis["phi"])
    _gamma(figure, reading, row, axis["gamma"])
    _action(figure, reading, row, axis["action"])
    if "output" in axis:
        _outputs(figure, reading, position, axis["output"])
    _references(figure, reading, axis.get("output", axis["action"]))
    return themed(
        figure,
        height=height,
        left=44,
        right=58,
        top=24,
        bottom=84,
        hovermode="closest",
        barmode="overlay",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": -56 / height, "yanchor": "top"},
    )


def action(reading: Reading) -> str:
    """The meaning of Γx, which is a mean only under densities of mass 1; it fits on a phone."""
    if not reading.unit_mass:
        return "sum of x weighted by rows of Γ"
    inside = np.allclose(reading.mass, 1)
    return "mean of x under each density" if inside else "mean of x (0 outside) per density"


def _place_strips(figure: go.Figure, names: list[str], reading: Reading) -> int:
    """Add axes and titles, and return the height of the figure in pixels."""
    size = len(reading.x)
    inner = sum(STRIP_HEIGHTS[name] for name in names) + STRIP_GAP * (len(names) - 1)
    titles = {
        "x": "<b>x(t)</b>, the signal",
        "phi": "<b>φᵢ(t)</b>, density per pixel",
        "gamma": "<b>Γ</b>, one row per density",
        "action": f"<b>Γx</b>, {action(reading)}",
        "output": "<b>y = wᵀΓx + b</b>, per position (b = 0)",
    }
    top = inner
    for k, name in enumerate(names, 1):
        bottom = top - STRIP_HEIGHTS[name]
        _set_axis(
            figure,
            f"y{k}",
            domain=[max(0.0, bottom / inner), min(1.0, top / inner)],
            anchor="x",
            fixedrange=True,
            nticks=4,
            zeroline=name in ("action", "output"),
            title="",
        )
        _heading(figure, titles[name], 0, top / inner)
        top = bottom - STRIP_GAP
    figure.update_xaxes(
        range=[0, size],
        anchor=f"y{len(names)}",
        fixedrange=True,
        title={"text": "t, pixels", "standoff": 4},
        showgrid=True,
        zeroline=False,
        showspikes=True,
        spikemode="across",
        spikesnap="cursor",
        spikethickness=1,
        spikedash="solid",
        spikecolor=OTHERS,
    )
    return inner + 24 + 84


def _signal(figure: go.Figure, reading: Reading, axis: str) -> None:
    x, size = reading.x, len(reading.x)
    figure.add_scatter(
        x=np.arange(size + 1),
        y=np.append(x, x[-1]),
        yaxis=axis,
        mode="lines",
        line={"shape": "hv", "color": CHOSEN, "width": 1.5},
        fill="tozeroy",
        fillcolor=translucent(CHOSEN, 0.15),
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=np.arange(size) + 0.5,
        y=x,
        yaxis=axis,
        mode="markers",
        showlegend=False,
        marker={"color": CHOSEN, "size": 4 if size <= 32 else 2},
        hovertemplate="pixel %{customdata}: x = %{y:.4g}<extra></extra>",
        customdata=np.arange(size) + 1,
    )
    _set_axis(figure, axis, range=_range(x))


def _densities(figure: go.Figure, reading: Reading, row: int, axis: str) -> None:
    shape = "hvh" if reading.stepped else "linear"
    count = len(reading.phi)
    others = [k for k in range(count) if k != row]
    if others:  # a single trace, with gaps between the densities
        gap = np.full((len(others), 1), np.nan)
        figure.add_scatter(
            x=np.hstack([np.tile(reading.t, (len(others), 1)), gap]).ravel(),
            y=np.hstack([reading.phi[others], gap]).ravel(),
            yaxis=axis,
            mode="lines",
            line={"shape": shape, "color": OTHERS, "width": 1.2},
            customdata=np.repeat(np.array(others) + 1, len(reading.t) + 1),
            hovertemplate="density %{customdata}<br>φ(%{x:.2f}) = %{y:.4g}<extra></extra>",
            showlegend=False,
        )
    figure.add_scatter(
        x=reading.t,
        y=reading.phi[row],
        yaxis=axis,
        mode="lines",
        fill="tozeroy",
        line={"shape": shape, "color": CHOSEN, "width": 2},
        fillcolor=translucent(CHOSEN, 0.3),
        hovertemplate=f"density {row + 1}<br>φ(%{{x:.2f}}) = %{{y:.4g}}<extra></extra>",
        showlegend=False,
    )
    top = float(reading.phi.max()) or 1.0
    _set_axis(figure, axis, range=[0, 1.1 * top])


def _gamma(figure: go.Figure, reading: Reading, row: int, axis: str) -> None:
    count, size = reading.gamma.shape
    expectation, mass = reading.expectation[:, None], reading.mass[:, None]
    about = np.broadcast_arrays(reading.x, reading.gamma * reading.x, expectation, mass)
    low, high = figure.layout[_layout_key(axis)].domain
    figure.add_heatmap(
        z=reading.gamma,
        x=np.arange(size) + 0.5,
        y=np.arange(count) + 1,
        yaxis=axis,
        zmin=0,
        zmax=max(float(reading.gamma.max()), 1e-9),
        colorscale=DENSITY_SCALE,
        customdata=np.stack(about, -1),
        xgap=1 if size <= 32 else 0,
        ygap=1 if count <= 32 else 0,
        hovertemplate=(
            "<b>row %{y}</b>, pixel %{x:.0f}<br>Γ = %{z:.4g}, x = %{customdata[0]:.4g}, "
            "Γ·x = %{customdata[1]:.4g}<br>whole row: mass %{customdata[3]:.4g}, "
            "Γx = %{customdata[2]:.4g}<extra></extra>"
        ),
        colorbar={
            "title": {"text": "mass", "side": "top", "font": {"size": 12}},
            "thickness": 8,
            "outlinewidth": 0,
            "nticks": 4,
            "x": 1,
            "xpad": 8,
            "y": high,
            "yanchor": "top",
            "len": high - low,
            "ypad": 0,
        },
    )
    figure.add_shape(
        type="rect",
        x0=0,
        x1=size,
        y0=row + 0.5,
        y1=row + 1.5,
        xref="x",
        yref=axis,
        line={"color": TORCH, "width": 1.5},
        fillcolor=CLEAR,
    )
    ticks = np.unique(np.linspace(1, count, count if count <= 8 else 5).round().astype(int))
    _set_axis(figure, axis, range=[count + 0.5, 0.5], tickvals=ticks, showgrid=False)


def _bars(
    figure: go.Figure, axis: str, x: np.ndarray, y: np.ndarray, chosen: int | None, **bar: Any
) -> None:
    colours = [CHOSEN if k == chosen else OTHERS for k in range(len(y))]
    marker = {"color": colours, "line": {"width": 0}}
    figure.add_bar(x=x, y=y, yaxis=axis, marker=marker, showlegend=False, **bar)


def _action(figure: go.Figure, reading: Reading, row: int, axis: str) -> None:
    _bars(
        figure,
        axis,
        reading.centres,
        reading.expectation,
        row,
        width=0.7 * reading.width,
        customdata=np.stack([np.arange(len(reading.mass)) + 1, reading.mass], -1),
        hovertemplate=(
            "(Γx) of density %{customdata[0]} = %{y:.4g}<br>mass: %{customdata[1]:.4g}"
            "<extra></extra>"
        ),
    )
    _set_axis(figure, axis, range=_range(reading.expectation, reading.x))


def _outputs(figure: go.Figure, reading: Reading, position: int | None, axis: str) -> None:
    _bars(
        figure,
        axis,
        reading.output_centres,
        reading.output,
        position,
        width=0.7 * reading.output_width,
        customdata=np.arange(len(reading.output)) + 1,
        hovertemplate="output %{customdata}: y = %{y:.4g}<extra></extra>",
    )
    _set_axis(
        figure, axis, range=_range(reading.output, *(each.values for each in reading.references))
    )


def _references(figure: go.Figure, reading: Reading, axis: str) -> None:
    marks = MARKS[len(reading.references)]
    for reference, mark in zip(reading.references, marks, strict=True):
        figure.add_scatter(
            x=reading.output_centres,
            y=reference.values,
            yaxis=axis,
            mode="markers",
            name=f"torch’s {reference.name}" if len(marks) == 1 else reference.name,
            marker={
                "symbol": mark,
                "size": 7,
                "color": TORCH,
                "opacity": 1 if reference.promise is not None else 0.7,
            },
            hovertemplate=f"{reference.name}: %{{y:.4g}}<extra></extra>",
        )


def _range(*values: np.ndarray) -> list[float]:
    """An axis range that includes 0, with a margin."""
    low = min(0.0, *(float(part.min()) for part in values))
    high = max(0.0, *(float(part.max()) for part in values))
    room = 0.08 * (high - low) or 0.1
    return [low - room if low < 0 else 0.0, high + room]


def _layout_key(axis: str) -> str:
    return axis.replace("y", "yaxis")


def _set_axis(figure: go.Figure, axis: str, **properties: Any) -> None:
    figure.update_layout({_layout_key(axis): properties})


def _heading(figure: go.Figure, text: str, x: float, y: float, **place: Any) -> None:
    """Add a text whose lower left corner is at a place of the figure, from 0 to 1."""
    anchors = {"xanchor": "left", "yanchor": "bottom", "xref": "paper", "yref": "paper"}
    figure.add_annotation(
        text=text, x=x, y=y, showarrow=False, font={"size": 13}, **anchors | place
    )


def product_figure(picture: Picture) -> go.Figure:
    """The image under the product of its factors, with the column factor above and the row factor
    on the left."""
    rows, columns = picture.pixels.shape
    across, down = np.arange(columns) + 0.5, np.arange(rows) + 0.5
    figure = go.Figure()
    figure.add_heatmap(
        z=picture.pixels,
        x=across,
        y=down,
        zmin=0,
        zmax=1,
        colorscale=INK_SCALE,
        showscale=False,
        hoverinfo="skip",
    )
    figure.add_heatmap(
        z=picture.gamma,
        x=across,
        y=down,
        zmin=0,
        zmax=float(picture.gamma.max()) or 1.0,
        colorscale=_veil(),
        customdata=np.stack([picture.pixels, picture.parts], -1),
        colorbar=colour_bar("Γₘₙ = Γₘ Γₙ, mass per pixel", **UNDER_IMAGE),
        hovertemplate=(
            "row %{y:.0f}, column %{x:.0f}<br>Γ = %{z:.4g}, x = %{customdata[0]:.3f}, "
            "Γ·x = %{customdata[1]:.4g}<extra></extra>"
        ),
    )
    bar = {"marker": {"color": CHOSEN, "line": {"width": 0}}, "width": 0.85, "showlegend": False}
    figure.add_bar(
        x=across,
        y=picture.columns,
        xaxis="x",
        yaxis="y2",
        **bar,
        hovertemplate="Γₙ of column %{x:.0f} = %{y:.4g}<extra></extra>",
    )
    figure.add_bar(
        y=down,
        x=picture.rows,
        orientation="h",
        xaxis="x2",
        yaxis="y",
        **bar,
        hovertemplate="Γₘ of row %{y:.0f} = %{x:.4g}<extra></extra>",
    )
    hidden = {"visible": False, "fixedrange": True}
    figure.update_layout(
        xaxis2={"range": [1.05 * picture.rows.max() or 1, 0], "domain": [0, 0.2], **hidden},
        yaxis2={"range": [0, 1.05 * picture.columns.max() or 1], "domain": [0.8, 1], **hidden},
    )
    _heading(figure, "<b>Γₙ, the columns</b>", 0.23, 1, yanchor="top")
    _heading(figure, "<b>Γₘ, the rows</b>", 0, 0.79)
    return _beside_factors(figure, rows, columns)


def _beside_factors(figure: go.Figure, rows: int, columns: int) -> go.Figure:
    """Image orientation and square pixels, with room for the factors above and on the left."""
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    figure.update_layout(
        xaxis={"range": [0, columns], "domain": [0.22, 1], "constraintoward": "left", **hidden},
        yaxis={
            "range": [rows, 0],
            "domain": [0, 0.78],
            "scaleanchor": "x",
            "constraintoward": "top",
            **hidden,
        },
    )
    return themed(figure, height=500, left=4, right=4, bottom=64, showlegend=False)


def parts_figure(picture: Picture) -> go.Figure:
    """Γ_mn x_mn, the contribution of each pixel to R(x)."""
    rows, columns = picture.pixels.shape
    figure = go.Figure(
        go.Heatmap(
            z=picture.parts,
            x=np.arange(columns) + 0.5,
            y=np.arange(rows) + 0.5,
            zmin=0,
            zmax=float(picture.parts.max()) or 1.0,
            colorscale=DENSITY_SCALE,
            colorbar=colour_bar("Γₘₙ xₘₙ, part of R(x)", **UNDER_IMAGE),
            hovertemplate="row %{y:.0f}, column %{x:.0f}<br>Γ·x = %{z:.4g}<extra></extra>",
        )
    )
    total = f"<b>R(x) = {picture.expectation:.4f}</b>"
    _heading(figure, f"<b>Γₘₙ xₘₙ</b>, which sums to {total}", 0.22, 0.79)
    return _beside_factors(figure, rows, columns)


def _veil() -> list[list]:
    """The colours of densities, with an opacity that grows with the mass."""
    stops = get_colorscale(DENSITY_SCALE)
    return [
        [at, "rgba({:.0f},{:.0f},{:.0f},{:.2f})".format(*rgb(colour), 0.75 * at**0.5)]
        for at, colour in stops
    ]
