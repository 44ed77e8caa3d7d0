"""What came of a sweep, as a Plotly figure."""

from collections import defaultdict
from collections.abc import Sequence

import plotly.graph_objects as go

from densembed.markup import for_plotly
from densembed.runs.sweep import Row

HEIGHT = 420
MOST_TICKS = 8
COLOURS = ("#2f6f9f", "#c0713a", "#5f8f63", "#8a6fa8", "#9aa3ad", "#b59a3c")


def label(change: dict) -> str:
    """A combination in words: logistic-el-5, learning rate 0.01."""
    return ", ".join(
        str(value) if name == "model" else f"{name.replace('_', ' ')} {value}"
        for name, value in change.items()
    )


def sweep_figure(rows: Sequence[Row]) -> go.Figure:
    """Error against parameters, one point a combination, bars of ± one standard deviation.

    Combinations that differ in other fields than the model are series of their own. Where all have
    the same number of parameters, they stand beside each other in the order of the grid.
    """
    done = [row for row in rows if row.errors]
    same = len({row.parameters for row in done}) <= 1
    series = defaultdict(list)
    for row in done:
        rest = {name: value for name, value in row.change.items() if name != "model"}
        series["" if same else label(rest)].append(row)
    figure = go.Figure()
    for name, part in series.items():
        figure.add_scatter(
            x=[for_plotly(label(row.change)) if same else row.parameters for row in part],
            y=[row.errors.mean for row in part],
            error_y={
                "type": "data",
                "array": [row.errors.deviation for row in part],
                "thickness": 1.2,
            },
            mode="markers",
            marker_size=8,
            name=for_plotly(name) or "all",
            text=[
                f"{for_plotly(label(row.change))}<br>{len(row.errors)} of {row.seeds} seeds"
                for row in part
            ],
            hovertemplate="%{text}<br>%{y:.2f} %<extra></extra>",
        )
    if same:
        figure.update_xaxes(type="category")
    else:
        counts = sorted({row.parameters for row in done})
        shown = counts if len(counts) <= MOST_TICKS else None
        figure.update_xaxes(
            type="log", title="parameters", tickvals=shown,
            ticktext=shown and [f"{count:,}" for count in shown],
        )  # fmt: skip
    figure.update_yaxes(title="test error, %", rangemode="tozero")
    figure.update_layout(
        height=HEIGHT,
        colorway=COLOURS,
        margin={"l": 8, "r": 8, "t": 28, "b": 48},
        showlegend=len(series) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure
