"""Paper: its table is the file's, its figure is that of the gallery's models."""

import json

import numpy as np
import pytest

from densembed import gallery
from densembed.checkpoint import Checkpoint
from densembed.data import load_dataset
from densembed.fields import view
from densembed.reproduce import FIGURE1
from tests.pages.conftest import ROOT, charts, pills, settle, values, visit

SHIPPED = ROOT / "checkpoints/paper"
RECIPES = sorted(path.stem.rpartition("-")[2] for path in SHIPPED.glob("table1-mnist-*.json"))


@pytest.fixture
def shipped(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(SHIPPED))


def table(recipe: str) -> list[dict]:
    return json.loads((SHIPPED / f"table1-mnist-{recipe}.json").read_text())["rows"]


def test_the_tuned_table_ships_whole():
    assert "tuned" in RECIPES
    assert len(table("tuned")) == 9


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plot_is_the_table(shipped, recipe):
    app = visit("paper", recipe=recipe)
    drawn = charts(app)["table"]
    theirs, ours = drawn["data"]
    rows = table(recipe)
    assert list(values(drawn, "x", 0)) == [row["paper_mean"] for row in rows]
    assert list(values(drawn, "x", 1)) == [row["mean"] for row in rows]
    assert list(ours["error_x"]["array"]) == [row["deviation"] for row in rows]
    assert (theirs["name"], ours["name"]) == ("the paper", "ours")
    below = sum(row["mean"] < row["paper_mean"] for row in rows)
    assert any(f"**{below}" in text.value for text in app.markdown)


def test_a_table_is_consistent_with_itself():
    for recipe in RECIPES:
        for row in table(recipe):
            assert row["parameters"] == row["paper_parameters"]
            assert len(row["errors"]) == 5
            assert row["mean"] == pytest.approx(np.mean(row["errors"]), abs=1e-3)
            assert row["deviation"] == pytest.approx(np.std(row["errors"], ddof=1), abs=1e-3)


def test_shipped_members_are_the_nearest_to_the_mean():
    for row in table("tuned"):
        shipped = Checkpoint.open(SHIPPED / f"{row['model']}.safetensors")
        nearest = min(row["errors"], key=lambda error: abs(error - row["mean"]))
        assert shipped.errors == [pytest.approx(nearest, abs=1e-3)]
        assert shipped.parameters == row["parameters"]
        assert row["model"] in gallery.STORIES


def test_the_figure_is_of_the_chosen_inputs(shipped):
    app = visit("paper", input1="4")
    test = load_dataset("digits").test
    picture = test.images[(test.labels == 4).nonzero()[0, 0]]
    figure = charts(app)["figure1"]
    np.testing.assert_allclose(values(figure, trace=0), picture[0] / 255, atol=1e-6)
    seen = view(Checkpoint.open(SHIPPED / f"{FIGURE1[0]}.safetensors"), picture, [0, -1])
    np.testing.assert_allclose(values(figure, trace=2), seen.fields[-1].sum(0), 1e-5, 1e-7)
    app.selectbox(key="input1").select("5").run()
    settle(app)
    assert not (values(charts(app)["figure1"]) == values(figure)).all()


def test_without_results_it_says_how_to_make_them(small_gallery):
    app = visit("paper")
    assert "reproduce table1" in app.info[0].value
    assert "table" not in charts(app)


def test_every_recipe_can_be_chosen(shipped):
    app = visit("paper")
    assert pills(app, "recipe").value == "tuned"
    for recipe in RECIPES:
        pills(app, "recipe").set_value(recipe).run()
        drawn = list(values(charts(app)["table"], "x", 1))
        assert drawn == [row["mean"] for row in table(recipe)]
