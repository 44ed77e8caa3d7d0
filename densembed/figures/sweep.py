"""The results of a sweep."""

from collections import defaultdict
from collections.abc import Sequence

import plotly.graph_objects as go

from densembed.figures.theme import LEGEND, themed
from densembed.markup import for_plotly
from densembed.runs.sweep import Row
from densembed.text import setting

HEIGHT = 420
MOST_TICKS = 8


def label(change: dict) -> str:
    """A combination of settings as text: "logistic-el-5, learning rate 0.01"."""
    return ", ".join(
        value if name == "model" else f"{name.replace('_', ' ')} {setting(value)}"
        for name, value in change.items()
    )


def sweep_figure(rows: Sequence[Row]) -> go.Figure:
    """Test error by parameters, one point per combination, with bars of ± one standard deviation.

    Each combination of settings other than the model is a series. If all combinations have the
    same number of parameters, they are drawn side by side in the order of the grid.
    """
    done = [row for row in rows if row.errors]
    sizes = sorted({row.parameters for row in done if row.parameters is not None})
    same = len(sizes) <= 1
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
                "array": [row.errors.deviation if len(row.errors) > 1 else None for row in part],
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
        ticks = sizes if len(sizes) <= MOST_TICKS else None
        figure.update_xaxes(
            type="log",
            title="parameters",
            tickvals=ticks,
            ticktext=[f"{count:,}" for count in ticks] if ticks else None,
        )
    figure.update_yaxes(title="test error, %", rangemode="tozero")
    return themed(figure, height=HEIGHT, top=28, showlegend=len(series) > 1, legend=LEGEND)
