"""Compare: all models on one input, one scale and one slider."""

import contextlib
import ctypes
import gc
from dataclasses import dataclass
from types import SimpleNamespace
from urllib.parse import parse_qsl

import numpy as np
import psutil
import pytest

from densembed.fields.agreement import disagreement, distinguish, predict, summary
from densembed.figures.printed import WIDTHS
from densembed.runs import Run, execute
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from pages.widgets.common.downloads import printed
from pages.widgets.compare import models
from pages.widgets.compare.models import ComparedModel, moment_of, remark_fields
from tests.browser.gallery import made
from tests.pages.conftest import (
    ROOT,
    as_read,
    charts,
    component,
    headings,
    report,
    sample,
    scale,
    settle,
    values,
    visit,
)


def compared(**link: str):
    """The page once the browser has reported the view of that link, for the sample."""
    app = visit("compare", **link)
    return report(app, "compare", sample(), "7", **link)


@pytest.fixture
def third(small_gallery, digits) -> Checkpoint:
    """Fixed densities after one long epoch, as `fixed` in the gallery."""
    config = RunConfig(model="gaussian-el-3", epochs=1, batch_size=500, device="cpu", seeds=2)
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    checkpoint = recorder.checkpoint("done")
    checkpoint.save(small_gallery / "fixed.safetensors")
    return checkpoint


def test_the_view_gets_all_models_and_four_of_them_by_default(mnist_model, third):
    data = component(visit("compare"), "live")
    assert data["view"] == "compare"
    assert set(data["models"]) == {"small", "other", "fixed"}
    assert set(data["defaults"]) == {"first", "second", "third", "fourth"}
    assert set(data["defaults"].values()) <= set(data["models"])
    assert len({data["defaults"][name] for name in ("first", "second", "third")}) == 3
    assert list(data["details"]) == [
        "settings",
        "curves",
        "disagreements",
        "confusion",
        "export",
    ]


@pytest.mark.parametrize(
    ("by", "place", "indices"),
    [("step", None, (-1, -1)), ("epoch", "1", None), ("fraction", "0.333", None)],
)
def test_the_slider_aligns_trainings_of_different_lengths(trained, third, by, place, indices):
    """An epoch of one model has several times the steps of the other's."""
    entries = [ComparedModel(name, name, c, name) for name, c in (("a", trained), ("b", third))]
    moment = moment_of(entries, {"by": by, **({by: place} if place else {})})
    whole = trained.header.steps_per_epoch
    assert whole > 2 * third.header.steps_per_epoch
    if indices is None:
        last = third.header.steps_per_epoch * (1 if by == "epoch" else 1 / 3)
        other = max(k for k, step in enumerate(third.steps) if step <= last)
        assert moment.indices == [trained.steps.index(whole), other]
    else:
        assert moment.indices == [len(trained.steps) - 1, len(third.steps) - 1]


def test_model_against_itself_has_no_difference(small_gallery):
    """streamlit#11424: equal charts were a duplicate element."""
    app = compared(first="small", second="small", open="confusion")
    assert "The second model is the same as the first" in " ".join(c.value for c in app.caption)
    assert np.nansum(abs(values(charts(app)["second-confusion-change"]))) == 0


@pytest.mark.parametrize("side", ["first", "second"])
def test_a_model_that_was_deleted_is_replaced(small_gallery, side):
    app = compared(**{side: "gone"}, open="settings")
    assert component(app, "live")["models"].keys() == {"small"}
    assert "<table>" in headings(app)


def test_models_that_learned_from_other_data_are_named(mnist_model):
    app = compared(models="3", first="small", second="other", third="other")
    (said,) = (as_read(info.value) for info in app.info)
    assert said.startswith(
        "The second model and the third model were trained on MNIST but are shown scikit-learn"
    )


def test_models_of_other_shapes_compare_but_for_the_input(small_gallery, trained):
    header = trained.header.model_copy(update={"input_shape": (1, 12, 12)})
    Checkpoint(header, trained.tensors).save(small_gallery / "low.safetensors")
    link = {"first": "small", "second": "low"}
    assert "takes grey pictures of 12 × 12" in compared(**link).info[0].value
    for opened in ("disagreements", "confusion"):
        app = compared(open=opened, **link)
        assert any("its predictions cannot be compared" in info.value for info in app.info)
    curve = charts(compared(open="curves", **link))["curve-test error"]
    assert len(curve["data"]) == 2


def test_table_marks_what_differs(mnist_model, trained):
    app = compared(first="small", second="other", open="settings")
    rows = headings(app).split("<tr ")[1:]
    assert all(row.count("<td") == 2 for row in rows)
    differing = [row for row in rows if row.startswith('class="differs"')]
    one, two = summary(trained), summary(mnist_model)
    assert len(rows) == len(one)
    assert [row.split("<th")[1].split(">")[1].split("<")[0] for row in differing] == [
        name for name in one if one[name] != two[name]
    ]
    assert "MNIST" in "".join(differing)
    same = headings(compared(first="small", second="small", open="settings"))
    assert 'class="differs"' not in same


def test_words_of_a_file_are_no_markup(mnist_model, small_gallery):
    header = mnist_model.header.model_copy(deep=True)
    header.provenance.device = "<img src=x onerror=alert(1)>"
    Checkpoint(header, mnist_model.tensors).save(small_gallery / "odd.safetensors")
    app = compared(first="small", second="odd", open="settings")
    assert "<img" not in headings(app)
    assert "&lt;img" in headings(app)


def test_where_they_disagree(mnist_model, trained, digits, monkeypatch):
    monkeypatch.setattr("pages.widgets.compare.disagreement.THUMBNAILS", 5)
    link = {"first": "small", "second": "other", "open": "disagreements"}
    app = compared(step="1", **link)
    k = trained.steps.index(1), mnist_model.steps.index(1)
    labels = digits.test.labels.numpy()
    said = [
        predict(c, digits.test.images, n) for c, n in zip((trained, mnist_model), k, strict=True)
    ]
    result = disagreement(*said, labels)
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(result.first_only):,}** are predicted correctly only by the first" in text
    assert f"**{len(result.second_only):,}** only by the second" in text
    assert (f"p = {result.p:.2g}" if result.p >= 0.0001 else "p < 0.0001") in text
    assert max(map(len, (result.first_only, result.second_only))) > 5
    for number in (2, 1):  # all of them can be seen
        app.number_input(key="handful").set_value(number)
        settle(app.run())
        shown = {button.key for button in app.button if button.key.startswith("open-")}
        handful = slice(5 * (number - 1), 5 * number)
        expected = [*result.first_only[handful], *result.second_only[handful]]
        assert shown == {f"open-{index}" for index in expected}
    index = [*result.first_only, *result.second_only][0]
    before = component(app, "live")["order"]
    settle(app.button(key=f"open-{index}").click().run())
    assert component(app, "live")["order"] > before  # the view follows the link
    label = int(labels[index])
    assert app.query_params["class"] == [str(label)] or app.query_params["class"] == str(label)
    example = int(np.atleast_1d(app.query_params["example"])[0])
    chosen = digits.test.images[digits.test.labels == label][example - 1]
    np.testing.assert_array_equal(chosen, digits.test.images[index])


def test_the_first_beside_another(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "other", "third": "fixed", "models": "3"}
    app = compared(open="disagreements", beside="third", **link)
    result = disagreement(
        predict(trained, digits.test.images),
        predict(third, digits.test.images),
        digits.test.labels.numpy(),
    )
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(result.second_only):,}** only by the third" in text


def test_a_model_whose_data_have_changed_is_named(mnist_model, trained, small_gallery):
    header = trained.header.model_copy(deep=True)
    header.provenance.test_images = 3
    Checkpoint(header, trained.tensors).save(small_gallery / "before.safetensors")
    app = compared(open="confusion", first="small", second="before")
    assert [info.value for info in app.info] == [
        "The error of the second model is that of 3 test images: its data have changed since."
    ]


def test_predictions_of_several_members_are_those_of_one(mnist_model, third):
    for opened in ("confusion", "disagreements"):
        app = compared(open=opened, first="small", second="fixed")
        assert any("the member whose error is nearest" in each.value for each in app.caption)
        app = compared(open=opened, first="small", second="small")
        assert not any("the member whose" in each.value for each in app.caption)


def test_confusion_matrices_on_one_scale(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "fixed"}
    drawn = charts(compared(open="confusion", **link))
    counts = {}
    for side, checkpoint in (("first", trained), ("second", third)):
        counts[side] = np.zeros((10, 10))
        for true, said in zip(
            digits.test.labels, predict(checkpoint, digits.test.images), strict=True
        ):
            counts[side][true, said] += 1
        shown = values(drawn[f"{side}-confusion"])
        off = ~np.eye(10, dtype=bool)
        np.testing.assert_array_equal(shown[off], counts[side][off])
        assert np.isnan(np.diag(shown)).all()
        text = np.array(drawn[f"{side}-confusion"]["data"][0]["text"])
        right = [str(int(count)) if count else "" for count in np.diag(counts[side])]
        assert np.diag(text).tolist() == right
    top = max(count[off].max() for count in counts.values())
    assert {scale(drawn[f"{side}-confusion"]) for side in counts} == {(0, top)}
    change = values(drawn["second-confusion-change"])
    np.testing.assert_array_equal(change[off], (counts["second"] - counts["first"])[off])


def test_the_curves_are_those_of_the_files(small_gallery, trained, third):
    link = {"first": "small", "second": "fixed", "by": "epoch"}
    drawn = charts(compared(open="curves", **link))
    for name, of in (("test error", "test_error"), ("training loss", "train_loss")):
        first, second, *_ = drawn[f"curve-{name}"]["data"]
        assert (first["name"], second["name"]) == (
            "Logistic-EL with mNN, B = 4, B₀ = 2",
            "Gaussian-EL, B = 3",
        )
        expected = [np.mean(getattr(epoch, of)) for epoch in trained.header.epochs]
        np.testing.assert_allclose(values(drawn[f"curve-{name}"], "y"), expected)
        assert list(values(drawn[f"curve-{name}"], "x")) == [1, 2, 3]
        expected = [np.mean(getattr(epoch, of)) for epoch in third.header.epochs]
        np.testing.assert_allclose(values(drawn[f"curve-{name}"], "y", 1), expected)
        band = values(drawn[f"curve-{name}"], "y", 2)
        spread = np.std(getattr(third.header.epochs[0], of), ddof=1)
        np.testing.assert_allclose(band, [expected[0] + spread, expected[0] - spread])


def test_a_model_does_not_disagree_with_itself(small_gallery):
    app = compared(first="small", second="small", open="disagreements")
    text = " ".join(element.value for element in app.markdown)
    assert "**0** are predicted correctly only by the first" in text
    assert "(p = 1)" in text


def test_twenty_sessions_leave_little_memory_in_use(monkeypatch, runs_root):
    """streamlit#3885: closed sessions kept their memory."""
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    shipped = sorted((ROOT / "checkpoints/paper").glob("*.safetensors"))
    models = [path.stem for path in shipped if not Checkpoint.peek(path).scaling]
    sides = ("first", "second", "third", "fourth")

    def session(k: int) -> None:
        chosen = {side: models[(k + n) % len(models)] for n, side in enumerate(sides)}
        app = compared(models="4", open="export", **chosen)
        assert len(app.get("download_button")) > 8

    def held() -> int:
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # glibc's: what is free is not held
            ctypes.CDLL(None).malloc_trim(0)
        return psutil.Process().memory_info().rss

    for k in range(len(models)):  # each is opened, and the cache is full
        session(k)
    before = held()
    for k in range(len(models), len(models) + 20):  # 80 views of some 1.5 MB
        session(k)
    assert held() - before < 60e6


def test_an_insignificant_difference_is_described_as_possible_chance(small_gallery):
    app = compared(first="small", second="small", open="disagreements")
    text = " ".join(element.value for element in app.markdown)
    assert "McNemar's exact test: both are right equally often (p = 1)." in text
    assert "chance alone" not in text


def test_figures_of_one_and_two_columns_have_names_of_their_own():
    names = [name for columns in WIDTHS for _, name, *_ in printed("a", columns, lambda kind: b"")]
    assert len(set(names)) == 2 * 3
    assert names[0] == "a-one-column.svg"


def titled(*models: tuple[str, RunConfig, str]) -> list[str]:
    """The titles of models with these names, configs and data."""

    @dataclass
    class Titled:
        config: RunConfig
        header: SimpleNamespace

    return distinguish(
        [
            (name, Titled(config, SimpleNamespace(provenance=SimpleNamespace(dataset_title=data))))
            for name, config, data in models
        ]
    )


def test_columns_are_titled_by_what_differs():
    one = RunConfig(model="logistic-el-3", learning_rate=0.002)
    fast = one.model_copy(update={"learning_rate": 0.01, "seed": 4})
    other = one.model_copy(update={"seed": 4})
    large = RunConfig(model="logistic-el-15")
    assert titled(("", one, "MNIST"), ("", large, "MNIST")) == [
        "Logistic-EL, B = 3",
        "Logistic-EL, B = 15",
    ]
    assert titled(("", one, "MNIST"), ("", fast, "MNIST")) == [
        "learning rate 0.002",
        "learning rate 0.01",
    ]
    assert titled(("", one, "MNIST"), ("", other, "MNIST")) == ["seed 0", "seed 4"]
    assert titled(("", one, "MNIST"), ("", one, "digits")) == ["MNIST", "digits"]
    assert titled(("", one, "MNIST"), ("mine", fast, "MNIST")) == ["Logistic-EL, B = 3", "mine"]
    assert titled(*[("", each, "MNIST") for each in (one, fast, other, large)]) == [
        "Logistic-EL, B = 3, learning rate 0.002, seed 0",
        "Logistic-EL, B = 3, learning rate 0.01",
        "Logistic-EL, B = 3, learning rate 0.002, seed 4",
        "Logistic-EL, B = 15",
    ]
    assert titled(("", one, "MNIST"), ("", one, "MNIST")) == ["Logistic-EL, B = 3"] * 2


def test_own_runs_are_a_group_and_keep_their_names(mnist_model, runs_root):
    run = Run.create(RunConfig(model="logistic-el-3", epochs=1, batch_size=500, device="cpu"))
    assert execute(str(run.path)) == "done"
    run.rename("mine")
    models = component(visit("compare"), "live")["models"]
    assert models[run.identifier]["group"] == "Your runs"
    assert models[run.identifier]["name"] == "mine"
    assert models[run.identifier]["title"].startswith("mine · ")
    assert models["small"] | {"group": "Included models", "name": ""} == models["small"]
    app = compared(first="small", second=run.identifier, open="settings")
    assert "mine<br><small>second" in headings(app)


@pytest.mark.parametrize("page", ["explore", "train"])
def test_compare_with_opens_both(mnist_model, runs_root, page):
    run = Run.create(RunConfig(model="logistic-el-3", epochs=1, batch_size=500, device="cpu"))
    assert execute(str(run.path)) == "done"
    if page == "train":
        app = visit("train", run=run.identifier)
        first, chosen = run.identifier, "small"
    else:
        app = visit(model="small")
        first, chosen = "small", run.identifier
    box = app.selectbox(key=f"{first}-compare-with")
    assert box.value is None
    assert {"small", run.identifier} - {first} <= set(box.options) or len(box.options) == 2
    settle(box.set_value(chosen).run())
    data = component(app, "live")
    assert data["view"] == "compare"
    assert dict(parse_qsl(data["link"])) == {
        "models": "2",
        "first": first,
        "second": chosen,
        "field": "mean",
    }


def test_the_models_beside_the_first_take_its_pictures(mnist_model, third, gallery_root):
    colour = made("logistic-el-mnn-3-2", (3, 12, 21))
    (gallery_root / "a-colour.safetensors").write_bytes(colour)
    defaults = component(visit("compare", first="small"), "live")["defaults"]
    assert defaults["first"] == "small"
    assert defaults["second"] == "fixed"  # of the same data
    assert defaults["third"] == "other"
    assert defaults["fourth"] == "a-colour"


@pytest.mark.parametrize(
    ("shapes", "cell"),
    [
        ([(1, 28, 28), (1, 40)], "for each sample or"),
        ([(1, 40), (1, 28, 28)], "for each pixel or"),
    ],
)
def test_a_model_without_densities_is_explained_by_its_own_input(monkeypatch, shapes, cell):
    """Not by that of the first model."""
    said: list[str] = []
    monkeypatch.setattr(models, "st", SimpleNamespace(caption=said.append))
    kinds = zip(("first", "second"), ("logistic-el-3", "linear"), shapes, strict=True)
    remark_fields(
        [
            ComparedModel(name, name, Checkpoint.from_bytes(made(model, shape)), model)
            for name, model, shape in kinds
        ]
    )
    assert cell in said[0]
