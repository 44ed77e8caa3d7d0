"""Plotly figures as one HTML page that works offline and on any screen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from densembed.markup import for_html

CONFIG = {
    "modeBarButtons": [["toImage"]],
    "displaylogo": False,
    "showSendToCloud": False,
    "toImageButtonOptions": {"format": "svg", "filename": "densembed"},
}
"""Only the toolbar button that saves the image, so that no button uploads the figure."""
STYLE = """
body {font: 15px/1.4 system-ui, sans-serif; margin: 16px; color: #222; background: #fff;}
h1 {font-size: 20px;}
h2 {font-size: 14px; font-weight: 600; text-align: center; margin: 0 0 4px;}
/* The columns are set in advance, since Plotly draws each figure as soon as it is parsed. */
.row {display: grid; gap: 0 16px; grid-template-columns: repeat(var(--columns), minmax(0, 480px));}
.panel {display: grid; grid-template-rows: subgrid; grid-row: span 2; margin-bottom: 16px;}
.panel h2 {align-self: end;}
.plot {container-type: inline-size; min-width: 0;}
.wide {grid-template-columns: minmax(0, 1fr);}
@media (max-width: 560px) {.row {grid-template-columns: minmax(0, 1fr);}}
@media (min-width: 561px) and (max-width: 900px) {
  .row {grid-template-columns: repeat(min(2, var(--columns)), minmax(0, 1fr));}
}
"""


@dataclass(frozen=True)
class Panel:
    """A figure with its heading.

    `ratio` is the height of its plot divided by the width, so that it scales with the page. A
    figure without a ratio keeps its height and is as wide as the page.
    """

    title: str
    figure: go.Figure
    ratio: float | None = None

    @classmethod
    def square(cls, title: str, figure: go.Figure) -> "Panel":
        """A panel for a figure with one pair of axes and square pixels."""
        axes = figure.layout
        return cls(title, figure, float(abs(np.ptp(axes.yaxis.range) / np.ptp(axes.xaxis.range))))


def html_page(title: str, rows: Iterable[Sequence[Panel]]) -> str:
    """A page with a title and rows of panels, which wrap on a narrow screen."""
    panels, scripts = "", True
    for row in rows:
        kind = "row" if all(panel.ratio for panel in row) else "row wide"
        panels += f'<div class="{kind}" style="--columns: {len(row)}">'
        for panel in row:
            panels += _panel(panel, scripts)
            scripts = False  # Plotly is included once
        panels += "</div>"
    words = for_html(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{words}</title><style>{STYLE}</style></head>"
        f"<body><h1>{words}</h1>{panels}</body></html>\n"
    )


def _panel(panel: Panel, scripts: bool) -> str:
    figure, height = panel.figure, "100%"
    if panel.ratio is not None:
        margin = figure.layout.margin
        beside, over = margin.l + margin.r, margin.t + margin.b
        height = f"calc((100cqw - {beside}px) * {panel.ratio:.6f} + {over}px)"
        figure = go.Figure(figure).update_layout(height=None, width=None, margin_autoexpand=False)
    drawn = figure.to_html(
        CONFIG, auto_play=False, include_plotlyjs=scripts, full_html=False, default_height=height
    )
    heading = f"<h2>{for_html(panel.title)}</h2>"
    return f'<div class="panel">{heading}<div class="plot">{drawn}</div></div>'
