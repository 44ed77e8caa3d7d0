"""Paper as a visitor sees it: Figure 1's cells are square and close, wide and narrow."""

import itertools
import json

import numpy as np
import pytest

from densembed.data import load_dataset
from densembed.experiments import frames, signals
from densembed.experiments.report import formatted
from densembed.experiments.reproduce import BESIDE_THE_PAPER
from densembed.fields.field import view
from densembed.figures.paper import FIGURE1
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import ROOT, chart, expect, places, settle, width_needed

SHIPPED = ROOT / "checkpoints/paper"


def boxes(page, part: str) -> list[dict]:
    """Where the cells of a part of the figure are."""
    selector = f".st-key-figure1-{part} .js-plotly-plot .heatmaplayer image"
    expect(page.locator(selector)).to_have_count(9 if part == "a" else 2)
    return places(page, selector)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (420, "dark")])
def test_figure1_is_close_and_square(visit, width, theme):
    page = visit("/paper", width, theme)
    for part, columns in (("a", 3), ("b", 2), ("c", 2)):
        cells = boxes(page, part)
        for cell in cells:
            assert cell["width"] == pytest.approx(cell["height"], abs=1.5)
        gaps = [
            lower["y"] - upper["y"] - upper["height"]
            for upper, lower in zip(cells, cells[columns:], strict=False)
        ]
        assert all(0 < gap < 25 for gap in gaps)
        expect(chart(page, f"figure1-{part}").get_by_text("density per pixel²")).to_be_visible()
    assert width_needed(page) <= width


def test_figure1_shows_the_fields_of_the_models(visit):
    page = visit("/paper?input1=3")
    test = load_dataset("digits").test
    picture = test.images[(test.labels == 3).nonzero()[0, 0]]
    settle(page)
    boxes(page, "a")
    heats = chart(page, "figure1-a").evaluate(
        "plot => [1, 2].map(k => plot._fullData[k].z.map(row => Array.from(row)))"
    )
    expected_view = view(Checkpoint.open(SHIPPED / f"{FIGURE1[0]}.safetensors"), picture, [0, -1])
    for drawn, expected in zip(heats, expected_view.fields, strict=True):
        np.testing.assert_allclose(drawn, expected.sum(0), 1e-4, 1e-6)


def test_tables_are_printed_with_all_rows_and_columns(visit):
    """On the screen they scroll, so that on paper columns and rows were missing."""
    page = visit("/paper")
    tables = page.locator(".on-paper table")
    expect(tables).to_have_count(4)
    expect(page.get_by_test_id("stDataFrame")).to_have_count(4)
    expect(tables.filter(visible=True)).to_have_count(0)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 750, "height": 1000})
    expect(page.get_by_test_id("stDataFrame").filter(visible=True)).to_have_count(0)
    cells = (
        "all => all.map(table => [...table.rows].map(row => [...row.cells].map(e => e.innerText)))"
    )
    printed = tables.evaluate_all(cells)
    for columns, file in (
        ({**BESIDE_THE_PAPER, **frames.TRANSFORMED}, "frames-mnist-tuned"),
        (signals.RESULTS, "signals-mnist1d"),
    ):
        rows = json.loads((SHIPPED / f"{file}.json").read_text())["rows"]
        rows = formatted(columns, [{**row, "model": describe(row["model"])} for row in rows])
        assert [[*columns], *([*row.values()] for row in rows)] in printed
    differences = [
        row[table[0].index("difference")]
        for table in printed
        if "difference" in table[0]
        for row in table[1:]
    ]
    assert differences
    assert [text for text in differences if text[0] not in "+−-"] == []
    wide = tables.filter(visible=True).evaluate_all(
        "all => all.map(table => table.scrollWidth - table.parentElement.clientWidth)"
    )
    assert max(wide) <= 1


def test_one_scale_is_a_click_away(visit):
    page = visit("/paper")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="All three on one scale").click()
    compared = opened.value
    for side, model in zip(("first", "second", "third"), FIGURE1, strict=True):
        name = f"the densities, {describe(model)}, {side}, after training"
        expect(compared.get_by_role("img", name=name)).to_be_visible()
    compared.close()


@pytest.mark.parametrize("width", [320, 1440])
def test_the_names_beside_a_table_do_not_overlap(visit, width):
    page = visit("/paper", width)
    for key in ("table1", "table2"):
        names = f".st-key-{key} .ytick text"
        expect(page.locator(names)).to_have_count(9)
        for upper, lower in itertools.pairwise(places(page, names)):
            assert upper["y"] + upper["height"] <= lower["y"]
