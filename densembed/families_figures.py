"""The families' errors, and their fields side by side."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from densembed.density_figures import atlas_figure
from densembed.families import KINDS, of_kind
from densembed.figures import AFTER, BEFORE
from densembed.packed import unpack
from densembed.paper_figures import CLEAR

TITLES = {"fixed": "fixed densities, B = 8", "moving": "micro network, B = 8, B₀ = 4"}


def families_figure(table: dict) -> go.Figure:
    """Test error of each family, mean ± standard deviation, best first; the paper's in colour."""
    figure = make_subplots(1, len(KINDS), subplot_titles=list(TITLES.values()))
    for column, kind in enumerate(KINDS, 1):
        rows = of_kind(table, kind)
        figure.add_scatter(
            x=[row["mean"] for row in rows],
            y=[row["family"] for row in rows],
            error_x={"array": [row["deviation"] for row in rows], "thickness": 1.5, "width": 4},
            mode="markers",
            marker={
                "size": 10,
                "color": [AFTER if row["family"] == "logistic" else BEFORE for row in rows],
            },
            customdata=[[row["deviation"], row["step_ms"]] for row in rows],
            hovertemplate="%{y}: %{x:.2f} ± %{customdata[0]:.2f} %<br>"
            "%{customdata[1]:.2f} ms a step<extra></extra>",
            showlegend=False,
            row=1,
            col=column,
        )
    figure.update_xaxes(title="test error, %")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure.update_layout(height=400, margin={"l": 8, "r": 8, "t": 32, "b": 48}, **CLEAR)


def family_fields_figure(table: dict, kind: str) -> go.Figure:
    """What the trained fields of one kind of network look like for one input, best first."""
    rows = of_kind(table, kind)
    height, width = table["picture"]["size"]
    return atlas_figure(
        [unpack(row["field"]) for row in rows],
        [f"{row['family']}, {row['mean']:.2f} %" for row in rows],
        (width, height),
        rows[0]["field"]["top"],
        "density per pixel²",
        columns=3,
    )
