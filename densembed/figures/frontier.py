"""Test error by number of parameters, next to the paper's and plain networks."""

import plotly.graph_objects as go

from densembed.experiments.frontier import KINDS
from densembed.experiments.report import deviation, plus_minus
from densembed.figures.paper import TICKS
from densembed.figures.theme import ACCENT, AFTER, BEFORE, LEGEND, SERIES, themed
from densembed.models.names import describe

LOOKS = {
    "densities": (AFTER, "circle", "solid"),
    "cnn": (ACCENT, "square", "dash"),
    "mlp": (SERIES[4], "triangle-up", "dot"),
}


def frontier_figure(table: dict) -> go.Figure:
    """Test error by parameters, both logarithmic; bars are ± one standard deviation."""
    figure = go.Figure()
    if table["paper"]:
        _series(figure, "the paper's rows", table["paper"], (BEFORE, "diamond-open", None))
    for kind, look in LOOKS.items():
        own = [entry for entry in table["entries"] if entry["kind"] == kind]
        if own:
            _series(figure, KINDS[kind], sorted(own, key=lambda e: e["parameters"]), look)
    figure.update_xaxes(
        title="parameters (logarithmic)",
        type="log",
        tickvals=[100, 300, 1000, 3000, 10_000, 30_000],
        tickangle=0,
        tickformat=",d",
    )
    figure.update_yaxes(
        title="test error, % (logarithmic)", type="log", tickvals=[0.5, 0.7, *TICKS]
    )
    return themed(figure, height=480, top=32, legend=LEGEND)


def _series(figure: go.Figure, name: str, rows: list[dict], look) -> None:
    colour, symbol, dash = look
    figure.add_scatter(
        x=[row["parameters"] for row in rows],
        y=[row["mean"] for row in rows],
        error_y={"array": [*map(deviation, rows)], "thickness": 1.5, "width": 4},
        name=name,
        mode="lines+markers" if dash else "markers",
        line={"color": colour, "dash": dash or "solid", "width": 1.5},
        marker={"size": 10, "color": colour, "symbol": symbol},
        customdata=[[describe(row["model"]), plus_minus(row)] for row in rows],
        hovertemplate="%{customdata[0]}<br>%{x:,} parameters<br>"
        "%{customdata[1]} %<extra>" + name + "</extra>",
    )
