"""Test accuracy on signals by number of parameters, beside published accuracies."""

import plotly.graph_objects as go

from densembed.experiments.report import deviation
from densembed.experiments.signals import accuracy
from densembed.figures.theme import ACCENT, AFTER, BEFORE, LEGEND, SERIES, themed
from densembed.models.names import describe

LOOKS = {
    "density layers": (AFTER, "circle"),
    "plain CNN": (ACCENT, "square"),
    "linear, MLP": (SERIES[4], "triangle-up"),
}


def accuracy_figure(table: dict) -> go.Figure:
    """Test accuracy by parameters; bars are ± one standard deviation, lines are published."""
    figure = go.Figure()
    for name, (colour, symbol) in LOOKS.items():
        rows = [row for row in table["rows"] if _kind(row["model"]) == name]
        figure.add_scatter(
            x=[row["parameters"] for row in rows],
            y=[100 - row["mean"] for row in rows],
            error_y={"array": [*map(deviation, rows)], "thickness": 1.5, "width": 4},
            name=name,
            mode="markers",
            marker={"size": 10, "color": colour, "symbol": symbol},
            customdata=[[describe(row["model"]), accuracy(row)] for row in rows],
            hovertemplate="%{customdata[0]}<br>%{x:,} parameters<br>"
            "%{customdata[1]} %<extra>" + name + "</extra>",
        )
    for name, value in table["published"].items():
        figure.add_hline(
            y=value,
            line={"color": BEFORE, "dash": "dot", "width": 1},
            annotation={
                "text": f"{name}, published: {value:g} %",
                "font": {"size": 11},
                # The lines of a GRU, a CNN and people are close.
                "yanchor": "top" if name in ("GRU", "CNN") else "bottom",
            },
            annotation_position="top left",
        )
    figure.update_xaxes(
        title="parameters (logarithmic)",
        type="log",
        tickvals=[300, 1000, 3000],
        tickangle=0,
        tickformat=",d",
    )
    figure.update_yaxes(title="test accuracy, %", range=[20, 101])
    return themed(figure, height=480, top=32, legend=LEGEND)


def _kind(model: str) -> str:
    if model.startswith("cnn-"):
        return "plain CNN"
    return "linear, MLP" if model == "linear" or model.startswith("mlp-") else "density layers"
