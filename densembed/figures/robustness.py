"""Errors on transformed images, and the field of a shifted digit."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.data.codec import decode_field
from densembed.figures.theme import (
    ACCENT,
    AFTER,
    BEFORE,
    DENSITY_SCALE,
    INK_SCALE,
    LEGEND,
    themed,
)
from densembed.models.names import describe

COLOURS = (BEFORE, ACCENT, AFTER)
DASHES = ("dot", "dash", "solid")


def robustness_figure(table: dict) -> go.Figure:
    """Test error of each model by the amount of each transform, one panel per kind."""
    changes = table["changes"]
    figure = make_subplots(
        2,
        2,
        subplot_titles=list(changes),
        shared_yaxes=True,
        horizontal_spacing=0.06,
        vertical_spacing=0.24,
    )
    for place, (name, change) in enumerate(changes.items()):
        row, column = divmod(place, 2)
        for k, result in enumerate(table["rows"]):
            words = describe(result["model"])
            figure.add_scatter(
                x=change["amounts"],
                y=result["errors"][name],
                name=words,
                legendgroup=words,
                mode="lines+markers",
                showlegend=place == 0,
                line={"color": COLOURS[k % 3], "dash": DASHES[k % 3]},
                hovertemplate=f"{words}<br>{name} %{{x}}: %{{y:.1f}} %<extra></extra>",
                row=row + 1,
                col=column + 1,
            )
        unit = change["unit"].replace(", ", ",<br>")  # a chart is narrow on a phone
        figure.update_xaxes(title=unit, row=row + 1, col=column + 1)
        if column == 0:
            figure.update_yaxes(title="test error, %", row=row + 1, col=1)
    figure.update_yaxes(rangemode="tozero")
    return themed(figure, height=640, top=72, legend={**LEGEND, "y": 1.08})


def following_figure(table: dict, model: str) -> go.Figure:
    """One digit at several horizontal shifts, and its field at each of them."""
    (row,) = [row for row in table["rows"] if row["model"] == model]
    shots = row["pictures"]
    titles = [f"{shot['shift']:+d}".replace("-", "−") if shot["shift"] else "0" for shot in shots]
    figure = make_subplots(
        2,
        len(shots),
        column_titles=titles,
        row_titles=["input", "field"],
        horizontal_spacing=0.01,
        vertical_spacing=0.02,
    )
    for column, shot in enumerate(shots, 1):
        for line, (part, colours) in enumerate(
            (("picture", INK_SCALE), ("field", DENSITY_SCALE)), 1
        ):
            values = decode_field(shot[part])
            figure.add_heatmap(
                z=values,
                colorscale=colours,
                zmin=0,
                zmax=shot[part]["top"],
                showscale=False,
                hoverinfo="skip",
                row=line,
                col=column,
            )
            axis = figure.get_subplot(line, column).yaxis.anchor
            # Keeps the two rows together on a narrow page, where the images are small.
            towards = "bottom" if part == "picture" else "top"
            figure.update_yaxes(
                autorange="reversed",
                scaleanchor=axis,
                constraintoward=towards,
                row=line,
                col=column,
            )
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, constrain="domain")
    return themed(figure, height=460, right=32, top=32, bottom=8)
