"""Train: the form, and a run in every state, without starting a worker."""

import json

import numpy as np
import pytest

from densembed.config import RunConfig
from densembed.data import load_dataset
from densembed.fields import view
from densembed.runs import Run, execute
from tests.conftest import is_sentence
from tests.pages.conftest import charts, headings, settle, values, visit

QUICK = RunConfig(model="logistic-el-3", epochs=2, batch_size=256, device="cpu")


@pytest.fixture
def submitted(monkeypatch) -> list[Run]:
    """Runs that were handed to the cluster, which is not there."""
    runs = []
    monkeypatch.setattr("densembed.cluster.Cluster.submit", lambda self, run: runs.append(run))
    return runs


def links(app) -> dict[str, str]:
    found = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    return found


def test_first_visit_shows_an_example(small_gallery, trained):
    app = visit("train")
    drawn = charts(app)
    seen = view(trained, load_dataset("digits").test.images[0])
    np.testing.assert_allclose(values(drawn["field-0"]), seen.fields[0].sum(0), 1e-5, 1e-7)
    np.testing.assert_allclose(values(drawn["field-1"]), seen.fields[-1].sum(0), 1e-5, 1e-7)
    assert len(values(drawn["curve"], "y")) == 3
    assert any(is_sentence(caption.value) for caption in app.caption if "None yet" in caption.value)
    assert any("on this machine" in caption.value for caption in app.caption)


def test_empty_gallery_still_trains(gallery_root, runs_root, submitted):
    app = visit("train")
    assert not charts(app)
    settle(app.button[0].click().run())
    assert len(submitted) == 1


@pytest.mark.parametrize("name", ["resnet", "logistic-el-0", "logistic-el-99999", "<b>", "../x"])
def test_name_that_is_no_model_is_one_sentence(small_gallery, submitted, name):
    app = visit()
    app.session_state["new-model"] = name  # as if typed: AppTest knows only the options
    settle(app.switch_page("pages/train.py").run())
    assert is_sentence(app.error[0].value)
    assert not app.button  # nothing to start


def test_start_makes_a_run_and_links_to_it(small_gallery, runs_root, submitted):
    app = visit("train")
    app.selectbox(key="new-model").set_value("logistic-el-8")
    app.number_input(key="new-epochs-digits").set_value(3)
    settle(app.run())
    settle(app.button[0].click().run())
    (run,) = submitted
    assert run.config.model == "logistic-el-8"
    assert run.config.epochs == 3
    assert Run.find(run.identifier).state() == "queued"
    assert run.identifier in str(app.query_params["run"])
    settle(app.button(key="stop").click().run())
    assert run.stop_requested()
    assert execute(str(run.path)) in ("stopped", "done")


def test_finished_run(small_gallery, runs_root):
    run = Run.create(QUICK)
    assert execute(str(run.path)) == "done"
    app = visit("train", run=run.identifier)
    assert app.success[0].value.startswith("Done · test error")
    assert links(app)["Show it in Explore"] == f"model={run.identifier}"
    assert "stop" not in [button.key for button in app.button]
    checkpoint = run.checkpoint()
    seen = view(checkpoint, load_dataset("digits").test.images[0])
    np.testing.assert_allclose(values(charts(app)["field-1"]), seen.fields[-1].sum(0), 1e-5, 1e-7)
    assert f"after {checkpoint.steps[-1]:,} steps" in headings(app)
    np.testing.assert_allclose(
        values(charts(app)["curve"], "y"), [e.test_error[0] for e in checkpoint.header.epochs]
    )
    assert run.identifier in visit(model=run.identifier).selectbox(key="model").value


@pytest.mark.parametrize("run", ["20200101-000000-abcdef", "../../x", "%00", "x" * 500])
def test_link_to_a_run_that_is_gone_is_named(small_gallery, run):
    (warning,) = visit("train", run=run).warning
    assert run[:40] in warning.value
    assert is_sentence(warning.value)


def test_diverged_run_says_why_and_keeps_the_snapshot(small_gallery, runs_root):
    run = Run.create(QUICK.model_copy(update={"learning_rate": 1000.0, "epochs": 200}))
    assert execute(str(run.path)) == "diverged"
    app = visit("train", run=run.identifier)
    assert app.warning[0].value.startswith("Diverged")
    assert is_sentence(app.warning[0].value)
    assert np.isfinite(values(charts(app)["field-1"])).all()


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "waiting to start"),
        ([{"kind": "start"}], "Interrupted"),
        ([{"kind": "end", "state": "failed", "reason": "It broke."}], "Failed: It broke."),
        ([{"kind": "end", "state": "stopped", "reason": ""}], "Stopped."),
    ],
)
def test_run_without_a_checkpoint_is_shown_in_words(small_gallery, runs_root, events, said):
    run = Run.create(QUICK)
    lines = [json.dumps(event | {"time": 0}) + "\n" for event in events]
    (run.path / "events.jsonl").write_text("".join(lines))
    app = visit("train", run=run.identifier)
    words = [e.value for kind in (app.warning, app.info, app.caption) for e in kind]
    words += [bar.proto.text for bar in app.get("progress")]
    assert any(said in word for word in words), words
    assert "Show it in Explore" not in links(app)


def test_damaged_run_is_no_fault_of_the_page(small_gallery, runs_root):
    run = Run.create(QUICK)
    (run.path / "config.json").write_text("{")
    assert "gone" in visit("train", run=run.identifier).warning[0].value


def test_runs_are_listed_newest_first_with_a_link(small_gallery, runs_root):
    first = Run.create(QUICK)
    second = Run.create(QUICK.model_copy(update={"dataset": "mnist"}))
    app = visit("train")
    shown = [link.proto.query_string for link in app.get("page_link")]
    order = sorted((first.identifier, second.identifier), reverse=True)
    assert shown == [f"run={identifier}" for identifier in order]


def test_many_runs_are_cut(small_gallery, runs_root):
    for _ in range(23):
        Run.create(QUICK)
    app = visit("train")
    assert len(app.get("page_link")) == 20
    assert any("3 older" in caption.value for caption in app.caption)
