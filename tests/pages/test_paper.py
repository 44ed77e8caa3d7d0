"""Paper: its table is the file's, its figure is that of the gallery's models."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from densembed.cli.main import build_parser
from densembed.cli.reproduce import EXPERIMENTS, reproduce_command
from densembed.data import load_dataset, slug
from densembed.experiments.recipes import RECIPES as SETTINGS
from densembed.experiments.report import Settings, summary
from densembed.experiments.reproduce import table_jobs
from densembed.fields.field import view
from densembed.figures.paper import FIGURE1
from densembed.models.names import describe
from densembed.runs import gallery
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from pages.widgets.paper import figure1, tables
from tests.pages.conftest import ROOT, as_read, charts, pills, settle, values, visit, warnings

SHIPPED = ROOT / "checkpoints/paper"
RECIPES = sorted(path.stem.rpartition("-")[2] for path in SHIPPED.glob("table1-mnist-*.json"))
TABLE2 = sorted(path.stem.rpartition("-")[2] for path in SHIPPED.glob("table2-*.json"))
SETS = {"table1": ("mnist", "recipe"), "table2": ("cifar-10-jpeg", "recipe2")}
EVERY = [*(("table1", recipe) for recipe in RECIPES), *(("table2", recipe) for recipe in TABLE2)]


@pytest.fixture
def shipped(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(SHIPPED))


def table(recipe: str, name: str = "table1") -> list[dict]:
    return json.loads((SHIPPED / f"{name}-{SETS[name][0]}-{recipe}.json").read_text())["rows"]


def test_the_tuned_table_ships_whole():
    assert "tuned" in RECIPES
    assert len(table("tuned")) == 9


@pytest.mark.parametrize(
    ("name", "recipes"), [("table1", ("paper", "tuned")), ("table2", ("paper", "colour"))]
)
def test_the_plot_is_the_table_with_both_recipes(shipped, name, recipes):
    app = visit("paper")
    drawn = charts(app)[name]
    theirs, *ours = drawn["data"]
    rows = table("paper", name)
    assert theirs["name"] == "the paper"
    assert [each["name"] for each in ours] == [f"ours, recipe {recipe}" for recipe in recipes]
    assert list(values(drawn, "x", 0)) == [row["paper_mean"] for row in rows]
    log = drawn["layout"]["xaxis"].get("type") == "log"  # from 1.6 to 24 %, from 48 to 66 %
    assert log == (name == "table1")
    low, high = drawn["layout"]["xaxis"]["range"]
    if log:
        low, high = 10**low, 10**high
    for k, recipe in enumerate(recipes, 1):
        of = table(recipe, name)
        marks = list(values(drawn, "x", k))
        for n, (mark, row) in enumerate(zip(marks, of, strict=True)):
            inside = row["mean"] <= high
            assert mark == (row["mean"] if inside else high)
            assert drawn["data"][k]["text"][n] == ("" if inside else f"{row['mean']:.2f} % →")
            assert inside or "-el-" not in row["model"]
            assert low < mark
        assert round(sum(values(drawn, "y", k)) - sum(range(len(of)))) == pytest.approx(0, abs=2)
    labels = drawn["layout"]["yaxis"]["ticktext"]
    for row, label in zip(rows, labels, strict=True):
        assert label.replace("<br>B", " B").startswith(describe(row["model"]))
        assert f"{row['parameters']:,} parameters" in label
    text = " ".join(part.value for part in app.markdown)
    for recipe in recipes:
        of = table(recipe, name)
        below = sum(row["mean"] < row["paper_mean"] for row in of)
        words = "the paper's own recipe" if recipe == "paper" else f"recipe {recipe}"
        assert f"**{below} of {len(of)}** with {words}" in text
    marks = [part.value for part in app.caption if "Our marks" in part.value]
    assert log == ("logarithmic" in marks[list(SETS).index(name)])


@pytest.fixture
def own_gallery(gallery_root, runs_root):
    """Writes shipped results with other rows, or fewer seeds, into a gallery of their own."""

    def write(recipe: str, models: list[str], seeds: int = 5, name: str = "table1", **change):
        content = json.loads((SHIPPED / f"{name}-{SETS[name][0]}-{recipe}.json").read_text())
        rows = {row["model"]: row for row in content["rows"]}
        content["rows"] = [
            {**rows[model], **summary(rows[model]["errors"][:seeds])} for model in models
        ]
        content |= change
        path = gallery_root / f"{name}-{slug(content['dataset'])}-{recipe}.json"
        path.write_text(json.dumps(content))
        return content["rows"]

    return write


@pytest.mark.parametrize(
    ("paper", "tuned"),
    [
        (["linear"], ["logistic-el-3"]),
        (["logistic-el-3", "linear"], ["linear", "mlp-50", "logistic-el-3"]),
        (["linear", "mlp-50", "logistic-el-3"], ["logistic-el-3"]),
        ([], ["mlp-50"]),
    ],
    ids=["apart", "fewer", "more", "none"],
)
def test_tables_with_different_rows_are_joined_by_model(own_gallery, paper, tuned):
    own = {"paper": own_gallery("paper", paper), "tuned": own_gallery("tuned", tuned)}
    drawn = charts(visit("paper"))["table1"]
    order = [row["model"] for row in table("paper") if row["model"] in {*paper, *tuned}]
    labels = drawn["layout"]["yaxis"]["ticktext"]
    assert [label.partition("<br><span")[0] for label in labels] == [*map(describe, order)]
    traces = {trace["name"]: k for k, trace in enumerate(drawn["data"])}
    seen = {}
    for name, k in traces.items():
        for x, y in zip(values(drawn, "x", k), values(drawn, "y", k), strict=True):
            seen[name, order[round(y)]] = x
    high = 10 ** drawn["layout"]["xaxis"]["range"][1]
    if drawn["layout"]["xaxis"].get("type") != "log":
        high = drawn["layout"]["xaxis"]["range"][1]
    every = [row for rows in own.values() for row in rows]
    assert seen == {("the paper", row["model"]): row["paper_mean"] for row in every} | {
        (f"ours, recipe {recipe}", row["model"]): min(row["mean"], high)
        for recipe, rows in own.items()
        for row in rows
    }


def texts(app) -> str:
    return " ".join(part.value for part in (*app.markdown, *app.caption))


@pytest.mark.parametrize("stored", [0.0, None], ids=["older", "new"])
def test_a_single_training_has_no_deviation(own_gallery, gallery_root, stored):
    (row,) = own_gallery("tuned", ["linear"], 1)
    path = gallery_root / "table1-mnist-tuned.json"
    content = json.loads(path.read_text())
    content["rows"][0]["deviation"] = stored
    path.write_text(json.dumps(content))
    app = visit("paper")
    text = texts(app)
    assert "We trained some models of their Table 1 once from scratch." in text
    assert (
        "Each of our marks is a single training; the paper's bars are ± one standard deviation."
    ) in text
    assert "Linear classifier has a lower error than in the paper, with the same number" in text
    assert "Each of our errors is that of a single training, with seed 0." in text
    (numbers,) = app.dataframe[0].value.to_dict("records")
    assert numbers["ours, %"] == f"{row['mean']:.2f}"
    assert numbers["paper, %"] == "7.34 ± 0.09"
    assert numbers["command"].endswith("table1 --recipe tuned --seeds 1 --rows linear")
    theirs, ours = charts(app)["table1"]["data"]
    assert theirs["error_x"]["array"] == [0.09]
    assert ours["error_x"]["array"] == [None]
    assert ours["customdata"] == [["Linear classifier", f"{row['mean']:.2f}"]]


def test_rows_with_one_and_several_trainings(own_gallery):
    own_gallery("paper", ["linear", "mlp-50", "logistic-el-3"], 1)
    own_gallery("tuned", ["linear", "logistic-el-3"], 3)
    text = texts(visit("paper"))
    assert "We trained some models of their Table 1 once or several times from scratch." in text
    assert (
        "Our marks are means of 1 to 3 trainings; bars are ± one standard deviation. A single "
        "training has no bar."
    ) in text
    below = [row["errors"][0] < row["paper_mean"] for row in table("paper")[:3]]
    assert f"**{sum(below)} of 3** models {'has' if sum(below) == 1 else 'have'} a lower" in text


def test_all_models_were_trained_several_times(shipped):
    assert "We trained every model of their tables several times from scratch." in texts(
        visit("paper")
    )


def test_without_results_nothing_was_trained(small_gallery):
    assert "We trained" not in texts(visit("paper"))


def test_one_training_of_the_linear_model_of_table2(own_gallery):
    own_gallery("paper", ["linear"], 1, "table2")
    assert re.search(r"points lower than in the paper \(\d+\.\d\d % instead", texts(visit("paper")))


def test_results_of_other_data_are_not_compared_with_the_papers(own_gallery):
    own_gallery("tuned", ["linear", "logistic-el-3"], 1, dataset="digits")
    own_gallery("paper", ["linear"], 1, "table2", dataset="folder *cats*")
    app = visit("paper")
    text = as_read(" ".join(part.value for part in app.markdown))
    assert "lower error" not in text
    assert (
        "- Table 1, scikit-learn digits (8×8, upscaled): the results are not compared with the "
        "paper's. The paper's errors are of MNIST.\n- Table 2, folder *cats*: the results are not "
        "compared with the paper's. The paper's errors are of CIFAR-10."
    ) in text
    assert "There are no results of MNIST yet" in app.info[0].value
    assert not {"table1", "table2"} & charts(app).keys()
    assert "#table-2" not in text
    # Those of MNIST are compared, though their file comes later.
    (row,) = own_gallery("tuned", ["linear"])
    app = visit("paper")
    text = " ".join(part.value for part in app.markdown)
    assert "Table 1, MNIST: models with a lower error than published: **1 of 1** with" in text
    assert "The paper's errors are of MNIST." in text
    assert list(values(charts(app)["table1"], "x", 1)) == [row["mean"]]


def test_the_contents_name_the_sections(shipped):
    app = visit("paper")
    (contents,) = (part.value for part in app.markdown if part.value.startswith("On this page"))
    anchors = {part.proto.anchor for part in app.header}
    assert set(re.findall(r"\(#([\w-]+)\)", contents)) == anchors - {""}
    assert len(anchors) >= 8


def test_a_network_without_densities_is_not_judged_by_a_recipe_for_them(shipped):
    text = " ".join(part.value for part in visit("paper").markdown)
    every = {
        recipe: {row["model"]: row["mean"] for row in table(recipe, "table2")} for recipe in TABLE2
    }
    assert every["colour"]["mlp-50"] > every["paper"]["mlp-50"]
    assert f"with recipe paper its error is {every['paper']['mlp-50']:.2f} %" in text
    assert f"against {every['colour']['mlp-50']:.2f} %" not in text


def test_the_finding_names_the_network_and_the_failed_trainings(shipped):
    text = " ".join(part.value for part in visit("paper").markdown)
    own, colour = text[text.index("small colour photographs") :].split("**Recipe colour**")
    (dense,) = (row for row in table("colour", "table2") if row["model"] == "mlp-50")
    assert "lower error than the paper’s MLP" in colour
    assert "lower error than the paper’s MLP" not in own
    failed = [error for error in dense["errors"] if error == 90]
    assert f"{len(failed)} of the 5 trainings of MLP with 50 hidden units did not learn" in colour
    assert "did not learn" not in own


def test_the_linear_model_shows_that_the_set_ups_differ(shipped):
    (linear,) = (row for row in table("paper", "table2") if row["model"] == "linear")
    text = " ".join(part.value for part in visit("paper").markdown)
    points = linear["paper_mean"] - linear["mean"]
    assert f"is {points:.1f} points lower than in the paper" in text
    assert "cannot be compared with the published ones row by row" in text


@pytest.mark.parametrize(("name", "recipe"), EVERY)
def test_a_table_is_consistent_with_itself(name, recipe):
    for row in table(recipe, name):
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
        assert row["model"] in gallery.DESCRIPTIONS


def test_the_links_of_a_table_lie_below_the_path_of_the_server(shipped, monkeypatch):
    monkeypatch.setattr(tables, "base_path", lambda: "/fields")
    app = visit("paper", **{SETS["table1"][1]: "tuned"})
    links = app.dataframe[0].value["typical run"].dropna()
    assert links.str.startswith("/fields/?model=").all()
    assert len(links)


def test_the_links_of_figure_1_lie_below_the_path_of_the_server(shipped, monkeypatch):
    monkeypatch.setattr(figure1, "base_path", lambda: "/fields")
    (caption,) = (each.value for each in visit("paper").caption if "In Explore" in each.value)
    links = re.findall(r"\]\((.*?)\)", caption)
    assert len(links) == 4
    assert all(link.startswith(("/fields/?model=", "/fields/compare?")) for link in links)


@pytest.mark.parametrize(("name", "recipe"), EVERY)
def test_every_number_names_its_source(shipped, name, recipe):
    """A row links to a checkpoint only if that one made one of its numbers."""
    data, key = SETS[name]
    app = visit("paper", **{key: recipe})
    numbers = app.dataframe[list(SETS).index(name)]
    # A column without a link would read "None" in every row.
    linked = "typical run" in numbers.value
    assert linked == ((name, recipe) == ("table1", "tuned"))
    for row, shown in zip(table(recipe, name), numbers.value.to_dict("records"), strict=True):
        assert shown["command"].endswith(f"--recipe {recipe} --rows {row['model']}")
        link = shown.get("typical run")
        file = row["model"] if data == "mnist" else f"{row['model']}-{data}"
        path = SHIPPED / f"{file}.safetensors"
        if not path.exists():
            assert link is None
            continue
        kept = Checkpoint.open(path)
        of_this = RunConfig(**SETTINGS[recipe], **_told(kept.config)) == kept.config
        assert link == (f"/?model={file}" if of_this else None)
        if link:
            assert round(kept.errors[0], 2) in [round(error, 2) for error in row["errors"]]
    command = main_parser_arguments(numbers.value["command"].iloc[0])
    where = [] if name == "table1" else ["--dataset", "folder:PATH"]
    assert command == ["reproduce", name, *where, "--recipe", recipe, "--rows", "linear"]


def test_the_command_under_figure_1_trains_what_is_shown(shipped):
    (said,) = (text.value for text in visit("paper").caption if "reproduce figure1" in text.value)
    command = re.search("`(python -m densembed reproduce table1.*?)`", said)[1]
    options = build_parser().parse_args(main_parser_arguments(command))
    assert options.rows.split(",") == list(FIGURE1)
    for model in FIGURE1:
        kept = Checkpoint.open(SHIPPED / f"{model}.safetensors").config
        settings = Settings(
            dataset="mnist", recipe=options.recipe, seeds=options.seeds or 5, out=Path()
        )
        (job, *_) = table_jobs([model], settings)
        assert job.config.model_copy(update=_told(kept)) == kept


def test_the_command_under_a_result_has_its_seeds(shipped):
    said = " ".join(text.value for text in visit("paper").caption)
    for what, key in (("families", "rows"), ("frontier", "entries")):
        (file,) = SHIPPED.glob(f"{what}-mnist*.json")
        (seeds,) = {len(row["errors"]) for row in json.loads(file.read_text())[key]}
        command = re.search(f"`(python -m densembed reproduce {what}.*?)`", said)[1]
        options = build_parser().parse_args(main_parser_arguments(command))
        assert (options.seeds or EXPERIMENTS[what].seeds) == seeds


def _told(config: RunConfig) -> dict:
    return config.model_dump(include={"model", "dataset", "seed", "seeds", "device"})


def main_parser_arguments(command: str) -> list[str]:
    prefix = "python -m densembed "
    assert command.startswith(prefix)
    return command.removeprefix(prefix).split()


def test_the_figure_is_of_the_chosen_inputs(shipped):
    app = visit("paper", input1="4")
    test = load_dataset("digits").test
    picture = test.images[(test.labels == 4).nonzero()[0, 0]]
    figure = charts(app)["figure1-a"]
    np.testing.assert_allclose(values(figure, trace=0), picture[0] / 255, atol=1e-6)
    expected_view = view(Checkpoint.open(SHIPPED / f"{FIGURE1[0]}.safetensors"), picture, [0, -1])
    np.testing.assert_allclose(values(figure, trace=1), expected_view.fields[0].sum(0), 1e-5, 1e-7)
    np.testing.assert_allclose(values(figure, trace=2), expected_view.fields[-1].sum(0), 1e-5, 1e-7)
    app.selectbox(key="input1").select("5").run()
    settle(app)
    assert not (values(charts(app)["figure1-a"]) == values(figure)).all()


def test_before_and_after_of_a_model_share_a_scale_of_its_own(shipped):
    drawn = charts(visit("paper"))
    picture = load_dataset("digits").test.images[0]
    tops = []
    for part, model in zip("bc", FIGURE1[1:], strict=True):
        figure = drawn[f"figure1-{part}"]
        expected_view = view(Checkpoint.open(SHIPPED / f"{model}.safetensors"), picture, [0, -1])
        assert [trace["coloraxis"] for trace in figure["data"]] == ["coloraxis"] * 2
        for k, expected in enumerate(expected_view.fields):
            np.testing.assert_allclose(values(figure, trace=k), expected.sum(0), 1e-5, 1e-7)
        axis = figure["layout"]["coloraxis"]
        assert (axis["cmin"], axis["cmax"]) == (0, pytest.approx(expected_view.top))
        assert axis["colorbar"]["title"]["text"] == "density per pixel²"
        tops.append(axis["cmax"])
    assert tops[1] > 3 * tops[0]  # why one scale for both would leave the first dark


def test_an_input_that_is_not_there_is_named(shipped):
    app = visit("paper", input2="eleven")
    assert "“eleven”" in warnings(app)[0]


def test_without_results_it_says_how_to_make_them(small_gallery):
    app = visit("paper")
    assert "reproduce table1" in app.info[0].value
    assert "table1" not in charts(app)


def test_the_numbers_of_every_recipe_can_be_chosen(shipped):
    app = visit("paper")
    assert pills(app, "recipe").value == pills(app, "recipe2").value == "paper"
    for recipe in RECIPES:
        pills(app, "recipe").set_value(recipe).run()
        ours = app.dataframe[0].value["ours, %"]
        assert list(ours) == [
            f"{row['mean']:.2f} ± {row['deviation']:.2f}" for row in table(recipe)
        ]


@pytest.mark.parametrize("link", [{}, {"input1": "4", "input3": "0"}])
def test_the_command_under_figure_1_makes_that_figure(shipped, tmp_path, link):
    app = visit("paper", **link)
    (said,) = (text.value for text in app.caption if "reproduce figure1" in text.value)
    command = re.search("`(python -m densembed reproduce figure1.*?)`", said)[1]
    options = [*main_parser_arguments(command), "--out", str(tmp_path)]
    reproduce_command(build_parser().parse_args(options))
    (page,) = tmp_path.glob("*.html")
    text = page.read_text().replace("\\u002f", "/")
    # Sums may differ in their last bits, for example with another alignment of the memory.
    made = [
        np.frombuffer(base64.b64decode(numbers), dtype)
        for dtype, numbers in re.findall(r'"z":\{"dtype":"(\w+)","bdata":"([^"]+)"', text)
    ]
    drawn = charts(app)
    for part in "abc":
        for trace in range(len(drawn[f"figure1-{part}"]["data"])):
            wanted = values(drawn[f"figure1-{part}"], trace=trace).ravel()
            assert any(
                wanted.size == found.size and np.allclose(found, wanted, 1e-5, 1e-7)
                for found in made
            )
