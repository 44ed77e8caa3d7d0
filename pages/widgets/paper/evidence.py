"""Sections beyond the tables of the paper, shown if their results are in the gallery."""

import json
from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import streamlit as st

from densembed.cli.reproduce import EXPERIMENTS
from densembed.data import title
from densembed.experiments import families, frames, frontier, resolution, robustness, signals
from densembed.experiments.report import formatted
from densembed.experiments.reproduce import BESIDE_THE_PAPER, other_data
from densembed.figures.accuracy import accuracy_figure
from densembed.figures.families import families_figure, family_fields_figure
from densembed.figures.frontier import frontier_figure
from densembed.figures.resolution import resolution_figure
from densembed.figures.robustness import following_figure, robustness_figure
from densembed.models.names import describe
from densembed.runs.gallery import results
from densembed.text import counted
from pages.widgets.common.page import CHART
from pages.widgets.common.table import data_table

KINDS = {"fixed": "With fixed densities", "moving": "With a micro network"}

STYLE = """
<style>
/* Two rows of squares, whatever the width. */
.st-key-followed {container-type: inline-size;}
.st-key-following .stPlotlyChart {
  height: calc((100cqw - 40px) * 2 / COLUMNS + 40px) !important;
}
</style>
"""


def show() -> None:
    """Show all sections that have results."""
    for section in (
        families_section,
        frontier_section,
        robustness_section,
        frames_section,
        resolution_section,
        signals_section,
    ):
        section()


def _made_by(command: str, rows: Sequence[dict] = ()) -> str:
    """The command that reproduces these results, with its number of seeds if not the default.

    Args:
        rows: the results, each with its `errors`.
    """
    seeds = max((len(row["errors"]) for row in rows), default=0)
    if rows and seeds != EXPERIMENTS[command.split()[0]].seeds:
        command += f" --seeds {seeds}"
    return f"Reproduce with `python -m densembed reproduce {command}`."


def _figure(draw: Callable[[dict, str], go.Figure], table: dict, part: str) -> go.Figure:
    """A figure of fields, which is drawn once for each table."""
    return _drawn(draw.__name__, json.dumps(table), part, draw)


@st.cache_resource(show_spinner=False, max_entries=16)
def _drawn(name: str, table: str, part: str, _draw: Callable[[dict, str], go.Figure]) -> go.Figure:
    return _draw(json.loads(table), part)


def _following(table: dict, model: str) -> go.Figure:
    """The field that follows the digit, as high as its place."""
    return following_figure(table, model).update_layout(height=None)


def families_section() -> None:
    """A comparison of the families of densities, and their fields."""
    for table in results("families-")[:1]:
        st.header("Which density?", anchor="families")
        st.markdown(families.finding(table))
        columns = st.columns(2, gap="medium")
        for column, (kind, words) in zip(columns, KINDS.items(), strict=True):
            if not families.of_kind(table, kind):
                continue
            with column:
                first = families.of_kind(table, kind)[0]
                st.markdown(f"**{words}**, {first['parameters']:,} parameters")
                st.plotly_chart(
                    families_figure(table, kind),
                    key=f"families-errors-{kind}",
                    config=CHART,
                    alt=f"Test error of each family of densities. {words}",
                )
                st.markdown("Fields after training, for the first test image:")
                st.plotly_chart(
                    _figure(family_fields_figure, table, kind),
                    key=f"families-{kind}",
                    config=CHART,
                    alt=f"Receptive fields of every family. {words}",
                )
        st.caption(
            f"Recipe {table['recipe']}, {counted(len(table['rows'][0]['errors']), 'seed')}, "
            f"{title(table['dataset'])}. "
            + _made_by(f"families --recipe {table['recipe']}", table["rows"])
        )


def frontier_section() -> None:
    """The lowest error by number of parameters."""
    for table in results("frontier-")[:1]:
        st.header("How low can the error get with few parameters?", anchor="parameters")
        st.markdown(frontier.finding(table))
        st.plotly_chart(
            frontier_figure(table),
            key="frontier",
            config=CHART,
            alt="Test error against the number of parameters",
        )
        st.caption(
            f"Network and recipe were chosen on held-out training images; the test images of "
            f"{title(table['dataset'])} were used once. The training images were not augmented. "
            + _made_by("frontier", table["entries"])
        )


def robustness_section() -> None:
    """Errors on transformed pictures, and the field that follows the digit."""
    for table in results("robustness-")[:1]:
        st.header("Does the field follow the digit?", anchor="robustness")
        st.markdown(robustness.finding(table))
        moving = [row for row in table["rows"] if "-mnn-" in row["model"]]
        for row in moving[:1]:
            figure = _figure(_following, table, row["model"])
            st.html(STYLE.replace("COLUMNS", str(len(row["pictures"]))))
            with st.container(key="followed"):
                st.plotly_chart(
                    figure,
                    key="following",
                    config=CHART,
                    height="stretch",
                    alt="A digit at several places, and the receptive field at each",
                )
            st.caption(
                f"{describe(row['model'])}: the field for one digit, shifted to the right by the "
                "number of pixels above it."
            )
        st.plotly_chart(
            robustness_figure(table),
            key="robustness",
            config=CHART,
            alt="Test error on shifted, scaled, rotated and noisy digits",
        )
        st.caption(
            f"{table['test_images']:,} test images of {title(table['dataset'])}. No network was "
            "trained on transformed pictures. " + _made_by("robustness")
        )


def frames_section() -> None:
    """Errors of networks whose densities lie in a box around the ink."""
    for table in results("frames-")[:1]:
        st.header("What if the densities follow the ink?", anchor="frames")
        st.markdown(
            "The densities of these networks lie in a box around the ink of each input (the frame "
            "of the mass), and no longer in the whole image (the frame of the input). Parameters "
            "and training are the same.\n\n" + frames.finding(table)
        )
        rows = [{**row, "model": describe(row["model"])} for row in table["rows"]]
        data_table(formatted({**BESIDE_THE_PAPER, **frames.TRANSFORMED}, rows))
        st.caption(
            "Test error in % on images that are shifted (pixels, in four directions), scaled, "
            "rotated (degrees, either way) or noisy (standard deviation, of full ink); the last "
            "column is how far the field shifts when the digit shifts by 1 pixel. "
            f"Mean over {counted(len(rows[0]['errors']), 'seed')}, {title(table['dataset'])}."
            f"{other_data(table['dataset'], EXPERIMENTS['frames'].dataset)} No network was trained "
            "on transformed pictures. " + _made_by(f"frames --recipe {table['recipe']}", rows)
        )


def resolution_section() -> None:
    """The test error of one set of weights by the grid of the images."""
    for table in results("resolution-")[:1]:
        st.header("One network, any resolution", anchor="resolution")
        st.markdown(
            "The places and widths of densities are shares of the picture, and a reading is a "
            "mean. So the same weights take pictures with more or fewer pixels. Each network below "
            "has one set of weights for all grids.\n\n" + resolution.finding(table)
        )
        st.plotly_chart(
            resolution_figure(table),
            key="resolution",
            config=CHART,
            alt="Test error against the pixels along each axis",
        )
        st.caption(
            f"Test images of {title(table['dataset'])}: each pixel of a grid is the mean of the "
            "image over its area. To see a network on another grid, choose a resolution in "
            "Explore, under “Move, turn, morph …”. "
            + _made_by(f"resolution --recipe {table['recipe']}", table["rows"])
        )


def signals_section() -> None:
    """Test accuracy on signals with one axis."""
    for table in results("signals-")[:1]:
        st.header("One axis", anchor="signals")
        st.markdown(
            "The paper begins with a signal x(t), a step function on one axis. Here the layers "
            f"read the signals of {title(table['dataset'])}.\n\n{signals.finding(table)}"
        )
        st.plotly_chart(
            accuracy_figure(table),
            key="signals",
            config=CHART,
            alt="Test accuracy on signals against the number of parameters",
        )
        rows = [{**row, "model": describe(row["model"])} for row in table["rows"]]
        data_table(formatted(signals.RESULTS, rows))
        over = "Results of" if table["seeds"] == 1 else "Mean ± standard deviation over"
        st.caption(
            f"{over} {counted(table['seeds'], 'seed')}, {title(table['dataset'])}. "
            "Network and recipe were chosen on held-out training signals; the test signals were "
            "used once. " + _made_by("signals", table["rows"])
        )
