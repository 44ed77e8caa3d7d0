"""The lists of runs and of sweeps on the Train page, without starting a worker."""

from collections.abc import Callable

import pytest

from densembed.runs import Run
from densembed.runs.sweep import Sweep
from densembed.runs.sweep_plan import make_plan
from densembed.training.config import RunConfig
from pages.widgets.train import listing
from tests.pages.conftest import as_read, settle, visit

QUICK = RunConfig(model="logistic-el-3", epochs=2, batch_size=256, device="cpu")


def test_runs_are_listed_newest_first_with_a_link(small_gallery, runs_root):
    first = Run.create(QUICK)
    second = Run.create(QUICK.model_copy(update={"dataset": "mnist"}))
    app = visit("train")
    shown = [link.proto.query_string for link in app.get("page_link")]
    order = sorted((first.identifier, second.identifier), reverse=True)
    assert shown == [f"run={identifier}" for identifier in order]
    lines = [line.value for line in app.markdown if "epochs" in line.value]
    line = as_read(lines[order.index(first.identifier)])
    assert "scikit-learn digits (8×8, upscaled)" in line


def test_many_runs_are_listed_in_pages(small_gallery, runs_root):
    identifiers = sorted((Run.create(QUICK).identifier for _ in range(23)), reverse=True)
    app = visit("train")

    def listed() -> list[str]:
        return [link.proto.query_string.removeprefix("run=") for link in app.get("page_link")]

    assert listed() == identifiers[:20]
    app.session_state["runs-page"] = 2
    settle(app.run())
    assert listed() == identifiers[20:]
    for identifier in identifiers[20:]:
        Run.find(identifier).delete()
    settle(app.run())
    assert listed() == identifiers[:20]


def test_runs_are_found_by_their_names(small_gallery, runs_root):
    runs = [Run.create(QUICK.model_copy(update={"epochs": k + 1})) for k in range(6)]
    runs[2].rename("Broad densities")
    app = visit("train")
    for words, found in (("broad", {2}), ("DENSITIES 3 epochs", {2}), ("4 epochs", {3}), ("x", ())):
        app.text_input(key="runs-search").set_value(words)
        settle(app.run())
        shown = {link.proto.query_string.removeprefix("run=") for link in app.get("page_link")}
        assert shown == {runs[k].identifier for k in found}
        assert any("No run has" in each.value for each in app.caption) == (not found)


def test_runs_of_tables_are_found_by_their_data(small_gallery, runs_root):
    runs = [
        Run.create(QUICK.model_copy(update={"dataset": f"csv:/data/{name}.csv"}))
        for name in ("one", "two", "three", "four", "five", "six")
    ]
    app = visit("train")
    app.text_input(key="runs-search").set_value("four.csv 2 epochs")
    settle(app.run())
    (link,) = app.get("page_link")
    assert link.proto.query_string == f"run={runs[3].identifier}"


def test_only_listed_runs_are_read(small_gallery, runs_root, monkeypatch):
    """Two hundred old runs cost a visit no more than twenty do."""
    for k in range(200):
        path = runs_root / f"202401{k % 28 + 1:02d}-0000{k % 60:02d}-{k:06x}"
        path.mkdir(parents=True)
        (path / "config.json").write_text(QUICK.model_dump_json())
    read = []
    config, last = Run.config, Run.last
    monkeypatch.setattr(Run, "config", property(lambda run: read.append(run) or config.fget(run)))
    monkeypatch.setattr(Run, "last", property(lambda run: read.append(run) or last.fget(run)))
    visit("train")
    assert len(set(read)) == 20
    assert len(read) == 80  # a name and a state each, when drawn and by the first look of the watch


def test_sweeps_are_listed_in_pages_and_a_damaged_one_is_left_out(small_gallery, runs_root):
    plan = make_plan({"epochs": 1}, {"model": ["linear"]})
    sweeps = [Sweep.create(plan) for _ in range(22)]
    (max(sweeps, key=lambda sweep: sweep.identifier).path / "plan.json").write_text("{")
    app = visit("train", training="sweep")
    assert len(app.get("page_link")) == 19
    app.session_state["sweeps-page"] = 2
    assert len(settle(app.run()).get("page_link")) == 2


@pytest.fixture
def changed(monkeypatch) -> Callable[[], bool]:
    """A function that returns whether the list on the page has changed since it was drawn."""
    watches = []
    monkeypatch.setattr(listing, "watch", lambda *watch: watches.append(watch))

    def ask() -> bool:
        look, before = watches[-1]
        return look() != before

    return ask


def test_a_list_of_runs_follows_what_another_tab_changes(small_gallery, runs_root, changed):
    first, second = Run.create(QUICK), Run.create(QUICK)
    app = visit("train", run=first.identifier)
    for change in (
        second.stop,
        lambda: second.rename("Broad densities"),
        lambda: Run.create(QUICK),
        lambda: first.append("end", state="done"),
        second.delete,
    ):
        assert not changed()
        change()
        assert changed()
        settle(app.run())
    assert not changed()


def test_a_search_follows_what_another_tab_changes(small_gallery, runs_root, changed):
    runs = [Run.create(QUICK) for _ in range(6)]
    app = visit("train")
    app.text_input(key="runs-search").set_value("broad")
    settle(app.run())
    runs[0].delete()
    assert not changed()
    runs[1].rename("Broad densities")
    assert changed()


def test_a_list_of_sweeps_follows_what_another_tab_changes(small_gallery, runs_root, changed):
    plan = make_plan({"epochs": 1}, {"model": ["linear"]})
    sweep = Sweep.create(plan)
    app = visit("train", training="sweep")
    for change in (sweep.stop, lambda: Sweep.create(plan), sweep.delete):
        assert not changed()
        change()
        assert changed()
        settle(app.run())
    assert not changed()
