"""One palette for all figures, which the app's configuration repeats."""

import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale, unlabel_rgb

from densembed.figures import theme

CONFIG = Path(__file__).parents[2] / ".streamlit" / "config.toml"


def test_the_app_has_the_colours_of_the_figures():
    colours = tomllib.loads(CONFIG.read_text())["theme"]
    assert colours["chartCategoricalColors"] == [theme.AFTER, theme.BEFORE]
    assert colours["light"]["primaryColor"] == theme.AFTER


def test_for_and_against_are_colours_of_the_signed_scale():
    stops = {unlabel_rgb(colour) for _, colour in get_colorscale(theme.SIGNED_SCALE)}
    for colour in (theme.FOR, theme.AGAINST):
        rgb = tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))
        assert min(np.abs(np.subtract(rgb, stop)).max() for stop in stops) <= 1


def test_a_themed_figure_is_transparent_and_small():
    figure = theme.themed(go.Figure(), height=100, bottom=20, showlegend=True)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == theme.CLEAR
    assert (figure.layout.height, figure.layout.margin.b, figure.layout.margin.l) == (100, 20, 8)
    assert figure.layout.template.layout.colorway == theme.SERIES
    assert len(figure.to_json()) < 2000  # a live page sends it every second


def test_translucent_colours():
    assert theme.translucent("#2f6f9f", 0.2) == "rgba(47,111,159,0.2)"
