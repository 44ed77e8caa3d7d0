"""Train: the form, and a run in every state, without starting a worker."""

import json
import re

import filelock
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from densembed.data import load_dataset
from densembed.fields.field import view
from densembed.runs import Run, execute
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from pages.widgets.train.run_list import _text
from tests.conftest import is_sentence
from tests.pages.conftest import (
    ROOT,
    as_read,
    assert_shows,
    charts,
    component,
    settle,
    shown_input,
    stills,
    values,
    visit,
    warnings,
)

QUICK = RunConfig(model="logistic-el-3", epochs=2, batch_size=256, device="cpu")


@pytest.fixture
def submitted(monkeypatch) -> list[Run]:
    """Runs that were handed to the cluster, which is not there."""
    runs = []
    monkeypatch.setattr(
        "densembed.workers.cluster.Cluster.submit", lambda self, run, train: runs.append(run)
    )
    return runs


def image_of(label: int = 7, number: int = 1):
    """One of the test images of a class; unless another one is chosen the first seven is shown."""
    test = load_dataset("digits").test
    return test.images[(test.labels == label).nonzero()[number - 1, 0]]


def first_visit(**link: str) -> AppTest:
    """The page as a link opens it in a new tab, with no other page before."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/train.py")
    for key, value in link.items():
        app.query_params[key] = value
    return settle(app.run())


def links(app) -> dict[str, str]:
    return {link.proto.label: link.proto.query_string for link in app.get("page_link")}


def test_first_visit_shows_an_example(small_gallery, trained):
    app = visit("train")
    expected = view(trained, image_of(), [0, -1])
    np.testing.assert_allclose(shown_input(app)["values"], image_of()[0] / 255, atol=1e-5)
    for shown, index in zip(stills(app)["run-fields"], (0, -1), strict=True):
        assert_shows(shown, expected.fields[index].sum(0))
    assert len(values(charts(app)["curve"], "y")) == 3
    assert any(
        is_sentence(caption.value) for caption in app.caption if "No runs yet" in caption.value
    )
    assert any("on this machine" in caption.value for caption in app.caption)


def test_another_image_may_be_watched(small_gallery, runs_root):
    run = Run.create(QUICK.model_copy(update={"model": "logistic-el-mnn-3-2"}))
    execute(str(run.path))
    app = first_visit(run=run.identifier, **{"class": "3", "example": "5"})
    assert app.number_input(key="example").value == 5
    for number in (5, 6):
        app.number_input(key="example").set_value(number)
        settle(app.run())
        shown = view(run.checkpoint(), image_of(3, number)).fields[-1].sum(0)
        assert_shows(stills(app)["run-fields"][1], shown)
        picture = shown_input(app)
        np.testing.assert_allclose(picture["values"], image_of(3, number)[0] / 255, atol=1e-5)
        assert picture["note"] == "a test image of class 3"


@pytest.mark.parametrize("link", [{"class": "eleven"}, {"example": "9999"}])
def test_a_link_to_an_image_that_is_not_there_is_named(small_gallery, runs_root, link):
    (warning,) = first_visit(**link).warning
    assert next(iter(link.values())) in warning.value
    assert is_sentence(warning.value)


def test_a_download_is_followed(small_gallery, runs_root):
    run = Run.create(QUICK.model_copy(update={"dataset": "mnist"}))
    run.append("start", process=1, step=0)
    with filelock.FileLock(run.path / "lock"):
        for received, size, says in (
            (2_500_000, 10_000_000, "downloading MNIST · 2.5 of 10.0 MB"),
            (2_500_000, 0, "downloading MNIST · 2.5 MB"),
        ):
            run.append("download", received=received, size=size)
            app = first_visit(run=run.identifier)
            (bar,) = app.get("progress")
            assert bar.proto.text == says
            assert bar.proto.value == (25 if size else 0)
            assert "Stop" in [button.label for button in app.button]


def test_changed_data_are_named_and_gone_on_with_if_told_to(small_gallery, runs_root, submitted):
    run = Run.create(QUICK)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    assert "Resume with the changed data" not in [
        button.label for button in first_visit(run=run.identifier).button
    ]
    reason = "The data set has changed since this run began: new classes 'eel'."
    run.append("end", state="paused", reason=reason, data="0a1b")
    app = first_visit(run=run.identifier)
    assert any(reason in warning for warning in warnings(app))
    (button,) = (one for one in app.button if one.label == "Resume with the changed data")
    settle(button.click().run())
    assert run.state() == "queued"
    assert run.last["data"] == "0a1b"
    assert submitted == [run]


def test_empty_gallery_still_trains(gallery_root, runs_root, submitted):
    app = visit("train")
    assert not charts(app)
    settle(app.button[0].click().run())
    assert len(submitted) == 1


@pytest.mark.parametrize("name", ["resnet", "logistic-el-0", "logistic-el-99999", "<b>", "../x"])
def test_an_unknown_model_gets_one_sentence(small_gallery, submitted, name):
    app = visit("train")
    app.selectbox(key="new-kind").set_value("name")
    settle(app.run())
    app.text_input(key="new-name").set_value(name)
    settle(app.run())
    assert is_sentence(app.error[0].value)
    assert "Start training" not in [button.label for button in app.button]


@pytest.mark.parametrize("name", ["resnet", "logistic-el-0", "<b>"])
def test_a_link_to_no_network_is_named(small_gallery, name):
    (warning,) = warnings(first_visit(network=name))
    assert name in warning
    assert is_sentence(warning)
    assert ".." not in warning


def test_a_link_to_a_misspelt_network_gets_a_suggestion(small_gallery):
    (warning,) = warnings(first_visit(network="logistc-el-9"))
    assert "which is not the name of a model (did you mean 'logistic-el-9'?)." in as_read(warning)


NETWORKS = [
    "linear",
    "mlp-70",
    "cnn-4-6-8",
    "cauchy-el-7",
    "raisedcosine-el-mnn-12-6",
    "adaptive-conv-pool-logistic-el-4",
    "adaptive-conv-pool-laplace-el-mnn-4-3",
    "stages-5-gaussian-el-3",
    "stages-3-4-5-logistic-el-mnn-6-2",
    "gaussian-el-mnn-scale-4-2",
]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_link_sets_the_controls_of_the_network(small_gallery, runs_root, submitted, name):
    app = first_visit(network=name)
    assert any(f"`{name}` · " in caption.value for caption in app.caption)
    settle(next(each for each in app.button if each.label == "Start training").click().run())
    assert submitted[0].config.model == name
    assert (app.selectbox(key="new-kind").value == "name") == ("scale" in name)


def test_controls_name_the_network_in_the_link(small_gallery, runs_root):
    app = first_visit()
    assert "network" not in app.query_params
    app.selectbox(key="new-family").set_value("cauchy")
    app.number_input(key="new-size").set_value(7)
    settle(app.run())
    assert app.query_params["network"] == "cauchy-el-mnn-7-5"
    app.selectbox(key="new-before").set_value("2")
    settle(app.run())
    app.number_input(key="new-maps-1").set_value(3)
    settle(app.run())
    assert app.query_params["network"] == "stages-3-16-cauchy-el-mnn-7-5"
    app.selectbox(key="new-kind").set_value("fixed")
    settle(app.run())
    assert app.query_params["network"] == "stages-3-16-cauchy-el-7"


def test_the_form_keeps_its_state_over_a_visit_to_another_page(small_gallery, runs_root):
    app = visit("train")
    app.selectbox(key="new-kind").set_value("mlp")
    settle(app.run())
    app.number_input(key="new-units").set_value(33)
    app.number_input(key="new-epochs-digits").set_value(4)
    app.number_input(key="new-rate").set_value(0.5)
    settle(app.run())
    settle(app.switch_page("pages/lab.py").run())
    settle(app.switch_page("pages/train.py").run())
    assert app.number_input(key="new-units").value == 33
    assert app.number_input(key="new-epochs-digits").value == 4
    assert app.number_input(key="new-rate").value == 0.5
    assert any("`mlp-33`" in caption.value for caption in app.caption)


def test_a_network_too_large_for_the_pictures_is_one_sentence(small_gallery, runs_root):
    app = first_visit(network="stages-4-4-4-logistic-el-64")
    said = [*app.error, *app.caption]
    assert all(is_sentence(error.value) for error in app.error), said


def test_start_makes_a_run_and_links_to_it(small_gallery, runs_root, submitted):
    app = visit("train")
    app.selectbox(key="new-kind").set_value("fixed")
    settle(app.run())
    app.number_input(key="new-size").set_value(8)
    app.number_input(key="new-epochs-digits").set_value(3)
    settle(app.run())
    settle(app.button[0].click().run())
    (run,) = submitted
    assert run.config.model == "logistic-el-8"
    assert run.config.epochs == 3
    assert Run.find(run.identifier).state() == "queued"
    assert run.identifier in str(app.query_params["run"])
    settle(app.button(key="stop").click().run())
    assert run.request() == "stop"
    assert execute(str(run.path)) in ("stopped", "done")


def test_finished_run(small_gallery, runs_root):
    run = Run.create(QUICK)
    assert execute(str(run.path)) == "done"
    app = visit("train", run=run.identifier)
    assert app.success[0].value.startswith("Done · test error")
    assert links(app)["Show in Explore"] == f"model={run.identifier}"
    assert "stop" not in [button.key for button in app.button]
    (download,) = app.get("download_button")
    assert not download.proto.url  # a browser asks at once for what has an address
    checkpoint = run.checkpoint()
    expected = view(checkpoint, image_of())
    assert_shows(stills(app)["run-fields"][1], expected.fields[-1].sum(0))
    titles = [shown["title"] for shown in stills(app)["run-fields"]]
    assert titles == ["before training", f"after {checkpoint.steps[-1]:,} steps"]
    np.testing.assert_allclose(
        values(charts(app)["curve"], "y"), [e.test_error[0] for e in checkpoint.header.epochs]
    )
    assert run.identifier in component(visit(model=run.identifier), "live")["models"]


@pytest.mark.parametrize("run", ["20200101-000000-abcdef", "../../x", "%00", "x" * 500])
def test_link_to_a_run_that_is_gone_is_named(small_gallery, run):
    (warning,) = warnings(visit("train", run=run))
    assert run[:40] in warning
    assert is_sentence(warning)


def test_diverged_run_says_why_and_keeps_the_snapshot(small_gallery, runs_root):
    run = Run.create(QUICK.model_copy(update={"learning_rate": 1000.0, "epochs": 200}))
    assert execute(str(run.path)) == "diverged"
    app = visit("train", run=run.identifier)
    assert warnings(app)[0].startswith("Diverged")
    assert is_sentence(warnings(app)[0])
    assert np.isfinite(stills(app)["run-fields"][1]["values"]).all()


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
    assert any(said in as_read(word) for word in words), words
    assert "Show in Explore" not in links(app)


def test_a_run_says_once_that_its_data_changed(small_gallery, runs_root):
    run = Run.create(QUICK)
    for _ in range(2):  # its process died before it saved its state
        run.append("data", changes="new classes '*a*'", epochs=1640, before=3, now=3)
    run.append("end", state="stopped", reason="")
    said = [as_read(caption.value) for caption in visit("train", run=run.identifier).caption]
    assert said.count("After epoch 1,640, the data set changed: new classes '*a*'.") == 1


@pytest.mark.parametrize("state", ["failed", "stopped", "diverged", "paused"])
def test_an_ended_run_shows_no_remaining_time(small_gallery, runs_root, state):
    run = Run.create(QUICK)
    run.append("end", state=state, reason="It broke.")
    app = visit("train", run=run.identifier)
    said = " ".join(caption.value for caption in app.caption)
    assert ("after the first steps" in said) == (state == "paused")
    assert ("ended before its first checkpoint" in said) == (state != "paused")


def test_the_error_is_that_of_the_saved_model(small_gallery, runs_root, trained):
    """Of a diverged run: the last error of the curve is of a step that was not saved."""
    run = Run.create(trained.config)
    run.append("epoch", epoch=9, step=200, test_error=[77.0], loss=1.0, seconds=1.0)
    trained.save(run.checkpoint_path)
    run.append("end", state="diverged", reason="The loss became too large.")
    (said,) = warnings(visit("train", run=run.identifier))
    images = trained.header.provenance.test_images
    assert f"test error {Errors(trained.errors).text(images)}" in said


@pytest.mark.parametrize("harm", ["missing", "damaged", "another"])
def test_a_checkpoint_that_is_not_that_of_the_run(small_gallery, runs_root, trained, harm):
    run = Run.create(QUICK)
    run.append("epoch", epoch=2, step=12, test_error=[50.0], loss=1.0, seconds=1.0)
    run.append("end", state="done")
    if harm == "another":
        trained.save(run.checkpoint_path)
    elif harm == "damaged":
        run.checkpoint_path.write_bytes(trained.to_bytes()[:1000])
    app = visit("train", run=run.identifier)
    assert [line.value for line in app.success] == ["Done · test error 50.00 %."]
    assert "Show in Explore" not in links(app)
    said = "The checkpoint of this run is missing, damaged or that of another run."
    assert said in [line.value for line in app.caption]


def test_a_trained_run_with_a_damaged_log_says_so(small_gallery, runs_root, trained):
    run = Run.create(trained.config)
    trained.save(run.checkpoint_path)
    (run.path / "events.jsonl").write_text("damaged")
    run.append("end", state="done")
    said = "The log of this run (events.jsonl) is missing or damaged, so there are no curves."
    assert said in [line.value for line in visit("train", run=run.identifier).caption]


def pressed_twice():
    import streamlit as st

    from pages.widgets.train.cluster import start_once

    made = []
    for wanted in ("this", "this", "other"):
        start_once(wanted, lambda: made.append("run") or {"run": str(len(made))})()
        st.markdown(st.query_params["run"])


def test_a_double_click_starts_one_run():
    app = AppTest.from_function(pressed_twice).run()
    assert [line.value for line in app.markdown] == ["1", "1", "2"]


def test_a_damaged_run_raises_no_exception(small_gallery, runs_root):
    run = Run.create(QUICK)
    (run.path / "config.json").write_text("{")
    assert "damaged" in warnings(visit("train", run=run.identifier))[0]


def test_a_run_that_another_tab_deletes_is_reported_as_deleted(small_gallery, runs_root):
    run = Run.create(QUICK)
    run.append("end", state="stopped")
    app = visit("train", run=run.identifier)
    assert not warnings(app)
    run.delete()
    (sentence,) = warnings(settle(app.run()))
    at = run.started
    assert sentence == f"The run of {at.day} {at:%B, %H:%M} was deleted. Showing the others."
    assert "run" not in app.query_params
    assert not warnings(settle(app.run()))
    (sentence,) = warnings(visit("train", run=run.identifier))
    assert "may have been deleted" in sentence


# What a person can do with a run


def verbs(app) -> set[str]:
    return {button.key for button in app.button if button.key}


def paused() -> Run:
    run = Run.create(QUICK)
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    return run


def test_a_paused_run_is_resumed_or_stopped(small_gallery, runs_root, submitted):
    run = paused()
    app = visit("train", run=run.identifier)
    assert app.info[0].value.startswith("Paused · test error")
    assert {
        "resume",
        "one-epoch",
        "stop",
        "run-again",
        "edit-settings-and-rerun",
        "rename",
        "delete-permanently",
    } <= verbs(app)
    assert "pause" not in verbs(app)
    settle(app.button(key="resume").click().run())
    assert submitted == [run]
    assert run.state() == "queued"
    assert "stop" in verbs(app)
    assert execute(str(run.path)) == "done"
    assert not {"resume", "one-epoch", "stop", "pause"} & verbs(settle(app.run()))


def test_one_more_epoch_is_trained(small_gallery, runs_root, submitted):
    run = Run.create(QUICK.model_copy(update={"epochs": 3}))
    run.pause()
    for epochs in (1, 2):
        app = visit("train", run=run.identifier)
        settle(app.button(key="one-epoch").click().run())
        assert execute(str(run.path)) == "paused"
        app = visit("train", run=run.identifier)
        assert len(values(charts(app)["curve"], "y")) == epochs
    settle(app.button(key="stop").click().run())
    assert app.info[0].value.startswith("Stopped · test error")


def test_an_interrupted_run_says_what_is_kept(small_gallery, runs_root, submitted):
    run = Run.create(QUICK)
    run.append("start", process=1, step=0)
    app = visit("train", run=run.identifier)
    assert warnings(app)[0].startswith("Interrupted: ")
    assert is_sentence(warnings(app)[0])
    settle(app.button(key="resume").click().run())
    assert submitted == [run]
    assert run.state() == "queued"


def test_a_run_whose_server_has_ended_is_started_here(small_gallery, runs_root, submitted):
    run = Run.create(QUICK)
    app = visit("train", run=run.identifier)
    assert is_sentence(app.info[0].value)
    assert "pause" not in verbs(app)
    settle(app.button(key="start-here").click().run())
    assert submitted == [run]


def test_a_waiting_run_sees_its_place(small_gallery, runs_root, monkeypatch):
    first, second, run = (Run.create(QUICK) for _ in range(3))
    for one, step in ((first, 6), (second, 9)):  # 6 and 3 steps of 256 are left
        one.append("progress", step=step, steps=12, loss=1.0, images_per_second=25.6)
    monkeypatch.setattr(
        "densembed.workers.cluster.Cluster.ahead", lambda self, run: [first, second]
    )
    app = visit("train", run=run.identifier)
    assert (
        app.get("progress")[0].proto.text
        == "waiting to start · 2 ahead in the queue · about 2 minutes …"
    )
    settle(app.button(key="pause").click().run())
    assert run.state() == "paused"


def test_a_run_that_trains_says_what_is_left(small_gallery, runs_root):
    run = Run.create(QUICK)
    run.append("start", process=1, step=0)
    run.append("progress", step=6, steps=12, loss=1.0, images_per_second=25.6)
    with filelock.FileLock(run.path / "lock"):
        app = visit("train", run=run.identifier)
        assert app.get("progress")[0].proto.text == (
            "training · step 6 of 12 · 26 images per second · about 60 s left"
        )
        assert "delete-permanently" not in verbs(app)
        settle(app.button(key="pause").click().run())
        assert run.request() == "pause"
        assert app.button(key="pause").disabled
        settle(app.button(key="stop").click().run())
        assert run.request() == "stop"


def test_the_error_of_the_header_is_the_last_point_of_the_curve(small_gallery, runs_root):
    run = Run.create(QUICK)
    run.append("start", process=1, step=0)
    run.append("progress", step=6, steps=12, loss=1.0, learning_rate=0.1, images_per_second=25.6)
    with filelock.FileLock(run.path / "lock"):
        app = visit("train", run=run.identifier)
        for epoch in (1, 2, 3):
            run.append("epoch", epoch=epoch, step=6 + epoch, test_error=[50.0 - epoch])
            settle(app.run())
            drawn = values(charts(app)["curve"], "y")
            text = app.get("progress")[0].proto.text
            errors = re.findall(r"test error ([\d.]+) %", text)
            assert [f"{error:.2f}" for error in drawn[-1:]] == errors


def test_run_again_repeats_the_run(small_gallery, runs_root, submitted):
    run = Run.create(QUICK.model_copy(update={"seed": 7, "weight_decay": 0.1}))
    run.stop()
    app = visit("train", run=run.identifier)
    settle(app.button(key="run-again").click().run())
    (again,) = submitted
    assert again != run
    assert again.config == run.config


def test_a_duplicate_fills_in_the_form(small_gallery, runs_root, submitted):
    config = QUICK.model_copy(
        update={
            "seed": 7,
            "epochs": 9,
            "learning_rate": 1e-7,
            "weight_decay": 0.1,
            "batch_size": 50,
            "grid": "14,data",
        }
    )
    run = Run.create(config)
    run.stop()
    app = visit("train", run=run.identifier)
    settle(app.button(key="edit-settings-and-rerun").click().run())
    assert any("weight decay 0.1" in as_read(caption.value) for caption in app.caption)
    app.number_input(key="new-seed").set_value(8)
    settle(app.run())
    settle(app.button[0].click().run())
    assert submitted[0].config == config.model_copy(update={"seed": 8})


def test_settings_of_a_duplicate_without_fields_can_be_left_out(
    small_gallery, runs_root, submitted
):
    config = QUICK.model_copy(update={"shift": 3, "locator_rate": 0.5})
    run = Run.create(config)
    run.stop()
    app = visit("train", run=run.identifier)
    settle(app.button(key="edit-settings-and-rerun").click().run())
    (said,) = (each for each in app.caption if "whose settings you edit" in each.value)
    assert as_read(said.value).endswith(": shift 3, locator rate 0.5.")
    settle(app.button(key="usual-values").click().run())
    assert not any("whose settings you edit" in each.value for each in app.caption)
    settle(app.button[0].click().run())
    assert submitted[0].config == config.model_copy(update={"shift": 0, "locator_rate": 1.0})


@pytest.mark.parametrize(
    ("written", "grid"), [("14, data,56x56", "14,data,56"), (" 14×20", "14x20"), (" ", "data")]
)
def test_the_form_has_the_grids_to_train_on(small_gallery, runs_root, submitted, written, grid):
    app = visit("train")
    app.text_input(key="new-grid").set_value(written)
    settle(app.run())
    settle(app.button[0].click().run())
    assert submitted[0].config.grid == grid


def test_a_grid_that_is_no_size_gets_one_sentence(small_gallery, runs_root):
    app = visit("train")
    app.text_input(key="new-grid").set_value("14;data")
    settle(app.run())
    assert is_sentence(app.error[0].value)
    assert "14;data" in as_read(app.error[0].value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("new-epochs-digits", 20_000, "Epochs takes a whole number from 1 to 10,000; got 20000."),
        ("new-seed", 3_000_000_000, "Seed takes a whole number from 0 to 2,147,483,647; got 3"),
        ("new-batch", 0, "Batch size takes a whole number from 1 to 100,000; got 0."),
        ("new-rate", 0.0, "Learning rate takes a number above 0 and up to 1,000,000; got 0.0."),
        ("sweep-epochs", 0, "Epochs takes a whole number from 1 to 10,000; got 0."),
        ("sweep-seeds", 101, "Seeds takes a whole number from 1 to 100; got 101."),
    ],
)
def test_a_number_out_of_range_does_not_start_a_training(
    small_gallery, runs_root, submitted, key, value, says
):
    """The fields of Streamlit would keep the number before it, and start with that."""
    app = visit("train", training="sweep" if key.startswith("sweep") else "run")
    field = app.number_input(key=key)
    assert (field.min, field.max) == (None, None)
    field.set_value(value)
    settle(app.run())
    assert as_read(app.error[0].value).startswith(says)
    assert not any((button.key or "").startswith("start-") for button in app.button)


@pytest.mark.parametrize(
    ("network", "key", "value", "says"),
    [
        ("logistic-el-8", "new-size", 65, "'logistic-el-65' must lie between 1 and 64."),
        ("logistic-el-8", "new-size", -1, "'logistic-el--1' must lie between 1 and 64."),
        ("cauchy-el-mnn-8-4", "new-micro", 0, "'cauchy-el-mnn-8-0' must lie between 1 and 64."),
        ("mlp-50", "new-units", 4097, "'mlp-4097' must lie between 1 and 4096."),
        ("cnn-8-16", "new-maps-2", -1, "'cnn-8--1' must lie between 1 and 64."),
    ],
)
def test_a_size_out_of_range_does_not_start_a_training(
    small_gallery, runs_root, submitted, network, key, value, says
):
    app = first_visit(network=network)
    field = app.number_input(key=key)
    assert (field.min, field.max) == (None, None)
    field.set_value(value)
    settle(app.run())
    assert as_read(app.error[0].value) == f"The sizes in {says}"
    assert not any((button.key or "").startswith("start-") for button in app.button)


@pytest.mark.parametrize("name", ["my best", "**bold** $x^2$ <b>:smile:", "../../etc"])
def test_a_name_is_shown_as_it_was_typed(small_gallery, runs_root, name):
    run = Run.create(QUICK)
    run.stop()
    app = visit("train", run=run.identifier)
    app.text_input(key=f"name-{run.identifier}").set_value(name)
    settle(app.button(key="rename").click().run())
    assert run.name == name
    shown = {subheader.value for subheader in app.header}
    assert name in map(as_read, shown)
    assert "**bold**" not in shown


def test_a_browser_takes_no_name_that_is_too_long(small_gallery, runs_root):
    run = Run.create(QUICK)
    run.stop()
    app = visit("train", run=run.identifier)
    assert app.text_input(key=f"name-{run.identifier}").proto.max_chars == 60


def test_a_text_that_is_too_long_is_named(small_gallery, runs_root):
    """Nothing was pasted, without a word."""
    app = visit("train")
    app.selectbox(key="new-data").select("folder:").run()
    app.text_input(key="new-folder").set_value("/srv/" + "a" * 1000)
    settle(app.run())
    assert any("at most 1,000 characters" in as_read(error.value) for error in app.error)
    assert all(is_sentence(error.value) for error in app.error)


def test_delete_removes_the_folder(small_gallery, runs_root):
    run, other = Run.create(QUICK), Run.create(QUICK)
    run.stop()
    app = visit("train", run=run.identifier)
    settle(app.button(key="delete-permanently").click().run())
    assert not run.path.exists()
    assert other.path.exists()
    assert "run" not in app.query_params
    assert not app.warning


def test_the_log_is_a_click_away(small_gallery, runs_root):
    run = Run.create(QUICK)
    run.append("end", state="failed", reason="It broke.")
    (run.path / "log.txt").write_text("IndexError: **x**")
    app = visit("train", run=run.identifier)
    (log,) = (code.value.splitlines() for code in app.code)
    assert log[0].endswith("  failed: It broke.")
    assert log[1] == "IndexError: **x**"
    assert "resume" not in verbs(app)


def test_a_folder_that_is_not_writable_gets_one_sentence(small_gallery, runs_root, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    app = visit("train")
    monkeypatch.setattr("densembed.runs.folder.replace_file", full)
    settle(app.button[0].click().run())
    assert (
        as_read(app.error[0].value)
        == "The folder of the run cannot be written: No space left on device."
    )


def test_an_action_that_fails_gets_one_sentence(small_gallery, runs_root, monkeypatch):
    def refused(*_):
        raise OSError(30, "Read-only file system")

    run = paused()
    app = visit("train", run=run.identifier)
    monkeypatch.setattr(Run, "resume", refused)
    settle(app.button(key="resume").click().run())
    assert (
        as_read(app.error[0].value)
        == "The folder of the run cannot be written: Read-only file system."
    )
    assert run.state() == "paused"


def test_a_public_demonstration_does_not_tell_visitors_to_train(
    small_gallery, runs_root, monkeypatch
):
    monkeypatch.setenv("DENSEMBED_READ_ONLY", "1")
    app = visit("train")
    texts = [element.value for element in [*app.caption, *app.markdown]]
    assert "No runs yet." in texts
    assert not [text for text in texts if re.search("start", text, re.I)]
    app.session_state["kind"] = "A sweep"
    assert "No sweeps yet." in [caption.value for caption in settle(app.run()).caption]


def test_read_only(small_gallery, runs_root, submitted, monkeypatch):
    done, waiting = Run.create(QUICK.model_copy(update={"epochs": 1})), Run.create(QUICK)
    execute(str(done.path))
    monkeypatch.setenv("DENSEMBED_READ_ONLY", "1")
    for link in ({}, {"run": done.identifier}, {"run": waiting.identifier}):
        app = visit("train", **link)
        assert is_sentence(app.info[0].value)
        assert not app.button
        assert not app.text_input
    assert "run-fields" in stills(visit("train", run=done.identifier))


def test_a_run_of_one_epoch_is_not_of_one_epochs(runs_root):
    run = Run.create(RunConfig(model="linear", epochs=1))
    assert _text(Run.find(run.identifier)).endswith(" · 1 epoch")
