"""Errors and fields of the families of densities."""

import plotly.graph_objects as go

from densembed.data.codec import decode_field
from densembed.experiments.families import of_kind
from densembed.experiments.report import deviation, plus_minus
from densembed.figures.densities import atlas_figure
from densembed.figures.theme import AFTER, BEFORE, themed
from densembed.functional.families import in_words


def families_figure(table: dict, kind: str) -> go.Figure:
    """Test error of each family in one kind of network, lowest first.

    Bars are ± one standard deviation. The paper's family is coloured.
    """
    rows = of_kind(table, kind)
    figure = go.Figure(
        go.Scatter(
            x=[row["mean"] for row in rows],
            y=[in_words(row["family"]) for row in rows],
            error_x={
                "array": [*map(deviation, rows)],
                "thickness": 1.5,
                "width": 4,
                "color": BEFORE,
            },
            mode="markers",
            marker={
                "size": 10,
                "color": [AFTER if row["family"] == "logistic" else BEFORE for row in rows],
            },
            customdata=[[plus_minus(row), row["step_ms"]] for row in rows],
            hovertemplate="%{y}: %{customdata[0]} %<br>"
            "%{customdata[1]:.2f} ms per step<extra></extra>",
        )
    )
    figure.update_xaxes(title="test error, %")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return themed(figure)


def family_fields_figure(table: dict, kind: str) -> go.Figure:
    """The trained fields of one kind of network for one input, lowest error first."""
    rows = of_kind(table, kind)
    height, width = table["picture"]["size"]
    figure = atlas_figure(
        [decode_field(row["field"]) for row in rows],
        [f"{in_words(row['family'])}, {row['mean']:.2f} %" for row in rows],
        (width, height),
        rows[0]["field"]["top"],
        "density per pixel²",
        columns=3,
    )
    return figure.update_annotations(font_size=12)  # so that they fit on a phone
