"""A sweep on the Train page, without starting a worker."""

import csv
import re
from urllib.parse import parse_qs, urlsplit

import filelock
import pytest

from densembed.cli.sweep import _line as in_terminal
from densembed.experiments.report import plus_minus, summary
from densembed.figures.sweep import sweep_figure
from densembed.runs import Run
from densembed.runs.sweep import Row, Sweep, all_sweeps, train_group
from densembed.runs.sweep_plan import make_plan
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from pages.widgets.train import sweep_view
from pages.widgets.train.sweep_summary import heading
from tests.conftest import is_sentence
from tests.pages.conftest import as_read, charts, component, settle, values, visit, warnings

BASE = {"epochs": 1, "batch_size": 256, "device": "cpu", "seeds": 2}
GRID = {"model": ["logistic-el-2", "linear"], "learning_rate": [0.002, 0.05]}


@pytest.fixture
def handed(monkeypatch) -> list:
    """Groups that were handed to the cluster, which is not there."""
    groups = []
    monkeypatch.setattr(
        "densembed.workers.cluster.Cluster.submit",
        lambda self, group, train, data_dir=None: groups.append((group, train)),
    )
    return groups


@pytest.fixture
def sweep(small_gallery, runs_root) -> Sweep:
    return Sweep.create(make_plan(BASE, GRID))


@pytest.mark.parametrize(
    ("grid", "title"),
    [
        ({"model": ["linear"]}, "Linear classifier"),
        (
            {"model": ["logistic-el-2", "logistic-el-3"]},
            "Logistic-EL, B = 2; Logistic-EL, B = 3",
        ),
        (
            {"model": [f"mlp-{n}" for n in range(4, 8)], "learning_rate": [0.1]},
            "4 models · 1 value of learning rate",
        ),
    ],
)
def test_the_title_of_a_sweep(grid, title):
    assert heading(make_plan(BASE, grid)) == title


def test_one_training_has_no_deviation():
    one, two = (Row({"model": "linear"}, 7850, Errors(e), 0, 2) for e in ([8.0], [8.0, 9.0]))
    assert in_terminal(one).endswith("  8.00 %")
    assert in_terminal(two).endswith("  8.50 ± 0.71 %")
    (drawn,) = sweep_figure([one, two]).data
    assert drawn.error_y.array[0] is None
    assert drawn.error_y.array[1] == pytest.approx(0.5**0.5)
    assert plus_minus(summary([8.0])) == "8.00"
    assert plus_minus(summary([8.0, 9.0])) == "8.50 ± 0.71"


def train_first(sweep: Sweep, count: int) -> None:
    for group in sweep.groups()[:count]:
        group.path.mkdir(exist_ok=True)
        assert train_group(str(group.path)) == "done"


def text(app) -> str:
    said = [e.value for kind in (app.info, app.success, app.warning, app.caption) for e in kind]
    return " ".join([*said, *(bar.proto.text for bar in app.get("progress"))])


def open_tab(app):
    app.session_state["kind"] = "A sweep"
    return settle(app.run())


def test_the_form_starts_what_it_says(small_gallery, runs_root, handed):
    app = open_tab(visit("train"))
    app.number_input(key="sweep-epochs").set_value(1)
    app.text_input(key="sweep-learning_rate").set_value("0.002, 0.05,0.1")
    settle(app.run())
    assert "18 trainings" in text(app)
    settle(app.button(key="start-sweep").click().run())
    (sweep,) = all_sweeps()
    assert sweep.plan.grid == {
        "model": ["logistic-el-3", "logistic-el-5"],
        "learning_rate": ["0.002", "0.05", "0.1"],
    }
    assert [(group.path, train) for group, train in handed] == [
        (group.path, train_group) for group in sweep.groups()
    ]
    assert sweep.identifier in str(app.query_params["sweep"])


@pytest.mark.parametrize("wrong", ["", "fast", "0.1, 0.1", "-1", "nan"])
def test_invalid_values_get_one_sentence(small_gallery, runs_root, wrong):
    app = open_tab(visit("train"))
    app.text_input(key="sweep-learning_rate").set_value(wrong)
    settle(app.run())
    assert is_sentence(app.error[0].value)
    assert not [button for button in app.button if button.key == "start-sweep"]


def test_a_value_out_of_range_is_told_the_range(small_gallery, runs_root):
    app = open_tab(visit("train"))
    app.text_input(key="sweep-learning_rate").set_value("0.1, fast")
    settle(app.run())
    assert as_read(app.error[0].value) == (
        "Learning rate takes a number above 0 and up to 1,000,000; got 'fast'."
    )


def test_a_sweep_half_way(sweep, handed):
    train_first(sweep, 1)
    app = visit("train", sweep=sweep.identifier)
    assert "4 of 8 trainings are finished and saved." in text(app)
    table = app.dataframe[0].value
    rows = sweep.rows()
    assert list(table["parameters"].dropna()) == [rows[0].parameters] * 2
    assert list(table["finished"]) == ["2 of 2", "2 of 2", "0 of 2", "0 of 2"]
    assert table["test error, %"][1] == pytest.approx(rows[1].errors.mean, abs=0.005)
    assert len(charts(app)["sweep-plot"]["data"]) == 1
    settle(app.button(key="resume-sweep").click().run())
    assert [group for group, _ in handed] == sweep.groups()[1:]


def test_only_a_sweep_that_goes_on_promises_results(sweep, handed):
    promise = "Results appear here"
    assert promise in text(visit("train", sweep=sweep.identifier))
    sweep.stop()
    for group in sweep.groups():
        train_group(str(group.path))  # as its worker does, which finds the request
    assert sweep.state() == "stopped"
    assert promise not in text(visit("train", sweep=sweep.identifier))


def test_a_sweep_that_trains_shows_how_far_it_is(sweep, monkeypatch):
    first = sweep.groups()[0]
    first.path.mkdir()
    first.append("progress", step=3, steps=12, loss=1.0, learning_rate=0.1, images_per_second=9.0)
    monkeypatch.setattr("densembed.workers.cluster.Cluster.ahead", lambda self, group: [])
    with filelock.FileLock(first.path / "lock", thread_local=False):
        app = visit("train", sweep=sweep.identifier)
        (bar,) = app.get("progress")
        assert bar.proto.text == "training · 0 of 8 trainings are finished"
        assert bar.proto.value == round(100 * 4 * 3 / 12 / 8)
        first.append("download", received=10**6, size=10**7)
        (bar,) = settle(app.run()).get("progress")
        assert (bar.proto.value, "download" in bar.proto.text) == (10, True)


def test_a_sweep_that_is_done(sweep):
    train_first(sweep, 2)
    app = visit("train", sweep=sweep.identifier)
    assert app.success[0].value == "Done: 8 trainings."
    drawn = charts(app)["sweep-plot"]
    rows = sweep.rows()
    assert list(values(drawn, "y")) == [rows[0].errors.mean, rows[2].errors.mean]
    assert list(values(drawn, "x")) == [rows[0].parameters, rows[2].parameters]
    assert len(list(csv.DictReader(sweep.as_csv().splitlines()))) == 8


def nearest(sweep: Sweep) -> dict[str, Checkpoint]:
    """By its key the member of each row whose error is nearest the row's mean."""
    checkpoints = {}
    for k, row in enumerate(sweep.rows()):
        own = [Checkpoint.open(job.path) for job in sweep.jobs()[k * row.seeds :][: row.seeds]]
        distances = [abs(one.errors[0] - row.errors.mean) for one in own]
        place = distances.index(min(distances))
        checkpoints[f"{sweep.identifier}-{k * row.seeds + place + 1}"] = own[place]
    return checkpoints


def linked(app) -> dict[str, dict[str, list[str]]]:
    """The links of a page to other pages, what they ask for by their labels."""
    return {link.proto.label: parse_qs(link.proto.query_string) for link in app.get("page_link")}


def test_the_links_of_its_rows_lie_below_the_path_of_the_server(sweep, monkeypatch):
    train_first(sweep, 1)
    monkeypatch.setattr(sweep_view, "base_path", lambda: "/fields")
    assert [link.partition("=")[0] for link in shown_links(sweep)] == ["/fields/?model"] * 2


def test_its_rows_open_in_explore(sweep):
    train_first(sweep, 1)
    assert len(shown_links(sweep)) == 2
    train_first(sweep, 2)
    links = shown_links(sweep)
    members = nearest(sweep)
    assert [parse_qs(urlsplit(link).query) for link in links] == [{"model": [k]} for k in members]
    key, member = list(members.items())[1]
    app = visit("explore", model=key)
    assert not app.warning
    models = component(app, "live")["models"]
    (own,) = models.keys() - usual_models()
    assert own == key
    assert f"{member.errors[0]:.2f} % error" in models[own]["title"]


def shown_links(sweep: Sweep) -> list[str]:
    table = visit("train", sweep=sweep.identifier).dataframe[0].value
    return list(table["typical run"].dropna())


def usual_models() -> set[str]:
    """The list of Explore: no member of a sweep is in it."""
    return set(component(visit("explore"), "live")["models"])


def test_the_two_best_open_in_compare(sweep):
    label = "Compare the two best"
    assert label not in linked(visit("train", sweep=sweep.identifier))
    train_first(sweep, 2)
    rows = dict(zip(nearest(sweep), sweep.rows(), strict=True))
    first, second = sorted(rows, key=lambda key: rows[key].errors.mean)[:2]
    link = linked(visit("train", sweep=sweep.identifier))[label]
    assert link == {"first": [first], "second": [second], "field": ["mean"]}
    app = visit("compare", first=first, second=second)
    assert not app.warning
    assert {first, second} <= set(component(app, "live")["models"])


@pytest.mark.parametrize(
    ("base", "grid", "extent", "rest"),
    [
        (
            {"epochs": 3, "seeds": 3},
            {"model": ["linear"], "learning_rate": ["0.002", "0.01"]},
            "scikit-learn digits (8×8, upscaled) · 3 epochs · 3 seeds",
            "learning rate 0.002, 0.01",
        ),
        (
            {"dataset": "mnist", "batch_size": 64},
            {"epochs": [1, 2]},
            "MNIST · 1 seed",
            "batch size 64 · epochs 1, 2",
        ),
        (
            {"epochs": 1},
            {"model": [f"logistic-el-{size}" for size in range(1, 9)]},
            "scikit-learn digits (8×8, upscaled) · 1 epoch · 1 seed",
            "Logistic-EL, B = 1; Logistic-EL, B = 2; Logistic-EL, B = 3; Logistic-EL, B = 4; …; "
            "Logistic-EL, B = 8",
        ),
        (
            {},
            {"dataset": ["digits", "mnist"], "location_start": ["grid", "normal"]},
            "20 epochs · 1 seed",
            "dataset digits, mnist · location start grid, normal",
        ),
        (
            {"learning_rate": 2},
            {"scale_start": ["-3", "-0.5"], "density_rate": ["1e2", "1"]},
            "scikit-learn digits (8×8, upscaled) · 20 epochs · 1 seed",
            "learning rate 2 · scale start −3, −0.5 · density rate 100, 1",
        ),
    ],
)
def test_the_page_describes_the_sweep(small_gallery, runs_root, base, grid, extent, rest):
    sweep = Sweep.create(make_plan(base, grid))
    app = visit("train", sweep=sweep.identifier)
    captions, lines = (
        [re.sub(r"\\(\W)", r"\1", one.value) for one in kind]
        for kind in (app.caption, app.markdown)
    )
    assert f"{extent} · {rest}" in captions
    assert [one for one in lines if one.endswith(f" · {extent}")]


def test_nothing_is_downloaded_before_something_is_done(sweep):
    assert not visit("train", sweep=sweep.identifier).get("download_button")
    train_first(sweep, 1)
    (button,) = visit("train", sweep=sweep.identifier).get("download_button")
    assert button.proto.label == "Download as CSV"
    assert not button.proto.url  # a browser asks at once for what has an address


def test_a_sweep_that_failed_says_why(sweep):
    group = sweep.groups()[0]
    group.path.mkdir()
    group.append("end", state="failed", reason="The disk is full.")
    assert "The disk is full." in sweep.reason()
    sweep.groups()[1].path.mkdir()
    sweep.groups()[1].append("end", state="failed", reason="The disk is full.")
    assert "Failed: logistic-el-2: The disk is full. 0 of 8" in as_read(
        text(visit("train", sweep=sweep.identifier))
    )


def test_a_link_with_a_wrong_tab_is_told_the_one_that_it_opens(sweep):
    """It said that One model was shown."""
    for link, shown in (({"sweep": sweep.identifier}, "A sweep"), ({}, "One model")):
        (warning,) = warnings(visit("train", training="foo", **link))
        assert "“Training” to “foo”" in warning
        assert warning.endswith(f"Showing {shown}.")


def test_delete(sweep, handed):
    sweep.stop()
    app = visit("train", sweep=sweep.identifier)
    settle(app.button(key="delete-sweep").click().run())
    assert not sweep.path.exists()
    assert not app.warning


def test_a_sweep_that_another_tab_deletes_is_reported_as_deleted(sweep, handed):
    sweep.stop()
    app = visit("train", sweep=sweep.identifier)
    sweep.delete()
    (sentence,) = warnings(settle(app.run()))
    at = sweep.started
    assert sentence == f"The sweep of {at.day} {at:%B, %H:%M} was deleted. Showing the others."
    assert "sweep" not in app.query_params


@pytest.mark.parametrize("link", ["../../x", "20240101-000000-abcdef", "%00"])
def test_a_link_to_a_sweep_that_is_gone_is_named(small_gallery, runs_root, link):
    (warning,) = warnings(visit("train", sweep=link))
    assert is_sentence(warning)


def test_read_only(sweep, handed, monkeypatch):
    train_first(sweep, 1)
    monkeypatch.setenv("DENSEMBED_READ_ONLY", "1")
    app = visit("train", sweep=sweep.identifier)
    assert not app.button
    assert "sweep-plot" in charts(app)


def test_the_link_names_what_the_open_tab_shows(sweep):
    app = visit("train", sweep=sweep.identifier)
    run = Run.create(RunConfig(model="linear", epochs=1))
    app.session_state["kind"] = "One model"
    assert "sweep" not in settle(app.run()).query_params
    app.query_params["run"] = run.identifier
    settle(app.run())
    for kind, key, other, shown in (
        ("A sweep", "sweep", "run", sweep.identifier),
        ("One model", "run", "sweep", run.identifier),
    ):
        app.session_state["kind"] = kind
        settle(app.run())
        assert shown in app.query_params[key]
        assert other not in app.query_params
        settle(app.run())
        assert shown in app.query_params[key]
