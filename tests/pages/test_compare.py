"""Compare: all models on one input, one scale and one slider."""

import contextlib
import ctypes
import gc
from dataclasses import replace

import numpy as np
import psutil
import pytest
import torch

from densembed.data import as_input, load_dataset
from densembed.fields.agreement import disagreement, predict, summary
from densembed.fields.field import field, view
from densembed.figures.printed import WIDTHS
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from pages.widgets.common.cache import averaged_images
from pages.widgets.common.downloads import printed
from tests.pages.conftest import (
    ROOT,
    as_read,
    assert_shows,
    charts,
    columns,
    headings,
    pills,
    scale,
    settle,
    shown_input,
    stills,
    values,
    visit,
    warnings,
)


def sample(label: int = 7):
    test = load_dataset("digits").test
    return test.images[(test.labels == label).nonzero()[0, 0]]


def shows(app, sides: dict) -> dict:
    """The page draws the sample's field of each side: a checkpoint, and its snapshot there."""
    sent = columns(app)
    assert list(sent["sides"]) == list(sides)
    for name, (checkpoint, index) in sides.items():
        side = sent["sides"][name]
        expected = view(checkpoint, sample()).fields[index].sum(0) * side["share"]
        np.testing.assert_allclose(side["values"][sent["index"]], expected, 0, side["within"])
    return sent


def move(app, place: float, by: str = "step"):
    """What the browser tells when the slider has come to rest."""
    app.session_state["rested"] = by, place
    return settle(app.run())


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


def test_two_models_on_one_scale(mnist_model, trained):
    """mllam/neural-lam#377: what was compared had scales of its own."""
    app = visit("compare", first="small", second="other")
    sent = shows(app, {"first": (trained, -1), "second": (mnist_model, -1)})
    one, two = view(trained, sample()), view(mnist_model, sample())
    assert not np.array_equal(one.fields[-1], two.fields[-1])
    top = max(one.top, two.top)
    ends = [(scale["low"], scale["high"]) for scale in sent["scales"]]
    assert ends == [(0, pytest.approx(top)), (pytest.approx(-top), pytest.approx(top))]
    for side, seen in zip(sent["sides"].values(), (one, two), strict=True):
        np.testing.assert_allclose(side["probabilities"], seen.probabilities, 1e-4, 1e-6)
        best = seen.probabilities[-1]
        assert side["predictions"][-1] == f"{best.argmax()} ({100 * best.max():.1f} %)"
    assert sent["right"] == 7


@pytest.mark.parametrize("field", ["sum", "mean"])
def test_four_models_in_columns(mnist_model, trained, third, field):
    link = {"first": "small", "second": "other", "third": "fixed", "fourth": "small"}
    app = visit("compare", models="4", field=field, step="0", **link)
    of = dict(zip(link, (trained, mnist_model, third, trained), strict=True))
    sent = shows(app, {name: (checkpoint, 0) for name, checkpoint in of.items()})
    share = dict.fromkeys(link, 1.0)
    if field == "mean":  # 4² densities, and 3² of the third
        share = {name: 1 / (9 if name == "third" else 16) for name in link}
    assert {name: side["share"] for name, side in sent["sides"].items()} == pytest.approx(share)
    top = max(view(of[name], sample()).top * share[name] for name in link)
    assert sent["scales"][0]["high"] == sent["scales"][1]["high"] == pytest.approx(top)
    assert ("mean" in sent["scales"][0]["name"]) == (field == "mean")
    assert len(sent["stacks"]) == 3  # the first one's fields are the fourth's, and travel once
    assert all(side["probabilities"] for side in sent["sides"].values())
    assert {side["moments"][0] for side in sent["sides"].values()} == {"before training"}
    assert "The fourth model is the same as the first" in " ".join(c.value for c in app.caption)


def test_every_step_is_sent_and_the_numbers_of_each(small_gallery, trained, third):
    sent = columns(visit("compare", first="small", second="fixed"))
    assert sent["steps"] == sorted({*trained.steps, *third.steps})
    seen = view(trained, sample())
    first = sent["sides"]["first"]
    for place, step in enumerate(sent["steps"]):
        k = max(k for k, own in enumerate(trained.steps) if own <= step)
        expected = seen.fields[k].sum(0)
        np.testing.assert_allclose(first["values"][place], expected, 0, first["within"])
    mass = seen.fields[3].sum(0).astype(float)
    middle = (mass.sum(0) @ seen.x / mass.sum(), mass.sum(1) @ seen.y / mass.sum())
    numbers = dict(zip(sent["measures"], first["numbers"][3], strict=True))
    assert numbers["centre"] == f"{middle[0]:.1f}, {middle[1]:.1f}"


def test_a_field_that_stays_as_it_was_travels_once(monkeypatch, runs_root):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    sent = columns(visit("compare", first="linear", second="mlp-50"))
    assert [len(pack["stack"]) for pack in sent["stacks"]] == [4 * -(-2 * 112 * 112 // 3)]
    assert len(sent["sides"]["first"]["values"]) == len(sent["steps"]) > 1


def test_fewer_models_leave_the_link(mnist_model, third):
    app = visit("compare", models="4", first="small", third="fixed", fourth="other")
    assert app.query_params["third"] == "fixed"
    pills(app, "models").set_value("2").run()
    settle(app)
    assert not {"third", "fourth"} & set(app.query_params)
    assert list(columns(app)["sides"]) == ["first", "second"]


def test_a_number_of_models_that_cannot_be_is_named(mnist_model):
    app = visit("compare", models="7")
    assert "“7”" in warnings(app)[0]
    assert len(columns(app)["sides"]) == 2


def test_one_slider_moves_both(mnist_model, trained):
    """tensorflow/playground#38, aim#3230, tensorboard#469: one step slider for all images."""
    app = visit("compare", first="small", second="other")
    step = trained.steps[-1]  # of the other one, the last kept before it
    assert step not in mnist_model.steps
    sent = shows(move(app, step), {"first": (trained, -1), "second": (mnist_model, -2)})
    assert app.query_params["step"] == str(step)
    assert sent["sides"]["second"]["moments"][-2] == f"after {mnist_model.steps[-2]:,} steps"
    shows(move(app, 0), {"first": (trained, 0), "second": (mnist_model, 0)})
    assert columns(app)["scales"] == sent["scales"]  # before and after
    shows(move(app, sent["steps"][-1]), {"first": (trained, -1), "second": (mnist_model, -1)})
    assert "step" not in app.query_params


@pytest.mark.parametrize(("by", "place"), [("epoch", "1"), ("epoch", "1.0"), ("fraction", "0.333")])
def test_the_slider_lines_up_trainings_of_other_lengths(small_gallery, trained, third, by, place):
    """An epoch of one model has several times the steps of the other's."""
    app = visit("compare", first="small", second="fixed", by=by, **{by: place})
    whole = trained.header.steps_per_epoch
    assert whole > 2 * third.header.steps_per_epoch
    last = third.header.steps_per_epoch * (1 if by == "epoch" else 1 / 3)
    index = trained.steps.index(whole)
    other = max(k for k, step in enumerate(third.steps) if step <= last)
    sent = shows(app, {"first": (trained, index), "second": (third, other)})
    assert (sent["by"], sent["step"]) == (by, float(place))
    assert float(app.query_params[by]) == float(place)

    pills(app, "by").set_value("step").run()  # the same moment of the first
    assert columns(settle(app))["step"] == whole
    assert by not in app.query_params
    assert app.query_params["step"] == str(whole)
    assert not warnings(app)


@pytest.mark.parametrize("place", ["x", "-1", "0.5"])
def test_a_place_that_is_not_there_is_named(small_gallery, trained, place):
    app = visit("compare", first="small", second="small", step=place)
    assert f"“{place}”" in warnings(app)[0]
    shows(app, {"first": (trained, -1), "second": (trained, -1)})
    assert "step" not in app.query_params


def test_a_move_and_another_model_at_once_leave_one_place(mnist_model, trained):
    """The browser tells of its place and the visitor chooses a model before the page has run."""
    app = visit("compare", first="small", second="small", step=str(trained.steps[1]))
    app.session_state["rested"] = ("step", trained.steps[2])
    app.session_state["knows"] = True
    app.selectbox(key="second").select("other").run()
    sent = columns(settle(app))
    assert sent["step"] == trained.steps[2]
    assert float(app.query_params["step"]) == trained.steps[2]


def test_models_of_one_name_are_told_apart(mnist_model):
    app = visit("compare", models="3", first="small", second="small", third="other")
    models = {name: side["model"] for name, side in columns(app)["sides"].items()}
    assert models["first"] == models["second"]
    assert "digits" in models["first"]
    assert models["third"] != models["first"]


def test_another_model_keeps_the_slider_on_a_step_that_is_there(small_gallery, third, trained):
    app = visit("compare", first="small", second="small", step=str(trained.steps[-2]))
    app.selectbox(key="second").select("fixed")
    app.selectbox(key="first").select("fixed").run()
    assert third.steps[-1] < trained.steps[-2]
    shows(settle(app), {"first": (third, -1), "second": (third, -1)})


def test_the_slider_stays_at_the_end_when_a_longer_training_comes(small_gallery, third, trained):
    app = visit("compare", first="fixed", second="fixed")
    assert third.steps[-1] < trained.steps[-1]
    settle(app.selectbox(key="second").select("small").run())
    shows(app, {"first": (third, -1), "second": (trained, -1)})
    before = third.steps[1]
    move(app, before)
    app.selectbox(key="second").select("fixed").run()
    assert columns(settle(app))["step"] == before


def test_model_against_itself_has_no_difference(small_gallery):
    """streamlit#11424: equal charts were a duplicate element."""
    app = visit("compare", first="small", second="small", open="What they mistake")
    sent = columns(app)
    assert len(sent["stacks"]) == 1
    one, two = sent["sides"].values()
    assert all(one[part] == two[part] for part in ("stack", "each", "share", "at", "numbers"))
    assert "The second model is the same as the first" in " ".join(c.value for c in app.caption)
    assert np.nansum(abs(values(charts(app)["second-confusion-change"]))) == 0


@pytest.mark.parametrize("hidden", ["predictions", "differences,numbers", "steps, sidebar ,menu"])
def test_a_teacher_hides_parts(small_gallery, trained, hidden):
    app = visit("compare", first="small", second="small", hide=hidden)
    assert not app.warning
    sent = shows(app, {"first": (trained, -1), "second": (trained, -1)})
    names = {name.strip() for name in hidden.split(",")}
    assert set(sent["hidden"]) == names & {"predictions", "differences", "numbers", "steps"}
    assert app.query_params["hide"] == hidden  # it stays in the link


def test_what_cannot_be_hidden_is_named(small_gallery):
    app = visit("compare", first="small", second="small", hide="before")
    assert "“before”" in warnings(app)[0]


def test_no_ink_gets_no_opinion(mnist_model, pictures):
    app = visit("compare", first="small", second="other")
    pills(app, "from").set_value("upload").run()
    picture = ("a.png", pictures["empty"].read_bytes(), "image/png")
    settle(app.file_uploader(key="upload").set_value(picture).run())
    sent = columns(app)
    assert not sent["predicts"]
    assert sent["note"] == "none: no digit found"
    assert [said[:6] for said in warnings(app)] == ["No dig"]


@pytest.mark.parametrize("side", ["first", "second"])
def test_link_to_a_model_that_is_gone_is_named(small_gallery, side):
    app = visit("compare", **{side: "gone"})
    assert "“gone”" in warnings(app)[0]
    assert not charts(app)
    assert set(columns(app)["sides"]) == {"first", "second"}


def test_models_that_learned_from_other_data_are_named(mnist_model):
    app = visit("compare", models="3", first="small", second="other", third="other")
    (said,) = (as_read(info.value) for info in app.info)
    assert said.startswith(
        "The second model and the third model were trained on MNIST but are shown scikit-learn"
    )
    (said,) = (as_read(info.value) for info in visit(model="other").info)
    assert said.startswith("This model was trained on MNIST but is shown scikit-learn digits")


def test_models_of_other_shapes_compare_but_for_the_input(small_gallery, trained):
    header = trained.header.model_copy(update={"input_shape": (1, 12, 12)})
    Checkpoint(header, trained.tensors).save(small_gallery / "low.safetensors")
    link = {"first": "small", "second": "low"}
    app = visit("compare", **link)
    assert "takes grey pictures of 12 × 12" in app.info[0].value
    sent = shows(app, {"first": (trained, -1)})
    assert sent["sides"].keys() == {"first"}
    for opened in ("Where they disagree", "What they mistake"):
        app = visit("compare", open=opened, **link)
        assert any("its predictions cannot be compared" in info.value for info in app.info)
    assert "second-atlas" not in stills(visit("compare", open="All classes", **link))
    curve = charts(visit("compare", open="How they learned", **link))["curve-test error"]
    assert len(curve["data"]) == 2
    assert "Upload a picture" in visit(model="low").info[0].value


def test_models_that_know_other_classes_are_compared_but_for_their_words(small_gallery, trained):
    header = trained.header.model_copy(update={"classes": list("abcdefghij")})
    Checkpoint(header, trained.tensors).save(small_gallery / "letters.safetensors")
    app = visit("compare", first="small", second="letters")
    sent = shows(app, {"first": (trained, -1), "second": (trained, -1)})
    assert sent["note"] == "the second has other classes"
    assert sent["sides"]["first"]["probabilities"]
    assert sent["sides"]["second"]["probabilities"] is None
    assert sent["sides"]["second"]["predictions"][-1][0] in "abcdefghij"


def test_table_marks_what_differs(mnist_model, trained):
    app = visit("compare", first="small", second="other", open="Model and recipe")
    rows = headings(app).split("<tr ")[1:]
    assert all(row.count("<td") == 2 for row in rows)
    differing = [row for row in rows if row.startswith('class="differs"')]
    one, two = summary(trained), summary(mnist_model)
    assert len(rows) == len(one)
    assert [row.split("<th")[1].split(">")[1].split("<")[0] for row in differing] == [
        name for name in one if one[name] != two[name]
    ]
    assert "MNIST" in "".join(differing)
    same = headings(visit("compare", first="small", second="small", open="Model and recipe"))
    assert 'class="differs"' not in same


def test_words_of_a_file_are_no_markup(mnist_model, small_gallery):
    header = mnist_model.header.model_copy(deep=True)
    header.provenance.device = "<img src=x onerror=alert(1)>"
    Checkpoint(header, mnist_model.tensors).save(small_gallery / "odd.safetensors")
    app = visit("compare", first="small", second="odd", open="Model and recipe")
    assert "<img" not in headings(app)
    assert "&lt;img" in headings(app)


def test_where_they_disagree(mnist_model, trained, digits, monkeypatch):
    monkeypatch.setattr("pages.widgets.compare.disagreement.THUMBNAILS", 5)
    link = {"first": "small", "second": "other", "open": "Where they disagree"}
    app = visit("compare", **link)
    move(app, 1)
    k = trained.steps.index(1), mnist_model.steps.index(1)
    labels = digits.test.labels.numpy()
    said = [
        predict(c, digits.test.images, n) for c, n in zip((trained, mnist_model), k, strict=True)
    ]
    found = disagreement(*said, labels)
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(found.first_only):,}** are predicted correctly only by the first" in text
    assert f"**{len(found.second_only):,}** only by the second" in text
    assert (f"p = {found.p:.2g}" if found.p >= 0.0001 else "p < 0.0001") in text
    assert max(map(len, (found.first_only, found.second_only))) > 5
    for number in (2, 1):  # all of them can be seen
        app.number_input(key="handful").set_value(number)
        settle(app.run())
        shown = {button.key for button in app.button if button.key.startswith("open-")}
        handful = slice(5 * (number - 1), 5 * number)
        expected = [*found.first_only[handful], *found.second_only[handful]]
        assert shown == {f"open-{index}" for index in expected}
    index = [*found.first_only, *found.second_only][0]
    app.button(key=f"open-{index}").click().run()
    shown = shown_input(settle(app))["values"] * 255
    np.testing.assert_allclose(shown, digits.test.images[index, 0], atol=2e-3)


def test_the_first_beside_another(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "other", "third": "fixed", "models": "3"}
    app = visit("compare", open="Where they disagree", beside="third", **link)
    found = disagreement(
        predict(trained, digits.test.images), predict(third, digits.test.images),
        digits.test.labels.numpy(),
    )  # fmt: skip
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(found.second_only):,}** only by the third" in text


def test_confusion_matrices_on_one_scale(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "fixed"}
    drawn = charts(visit("compare", open="What they mistake", **link))
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


def test_curves_are_the_files(small_gallery, trained, third):
    link = {"first": "small", "second": "fixed", "by": "epoch"}
    drawn = charts(visit("compare", open="How they learned", **link))
    for name, of in (("test error", "test_error"), ("training loss", "train_loss")):
        first, second, *_ = drawn[f"curve-{name}"]["data"]
        assert (first["name"], second["name"]) == ("first", "second")
        expected = [np.mean(getattr(epoch, of)) for epoch in trained.header.epochs]
        np.testing.assert_allclose(values(drawn[f"curve-{name}"], "y"), expected)
        assert list(values(drawn[f"curve-{name}"], "x")) == [1, 2, 3]
        expected = [np.mean(getattr(epoch, of)) for epoch in third.header.epochs]
        np.testing.assert_allclose(values(drawn[f"curve-{name}"], "y", 1), expected)
        band = values(drawn[f"curve-{name}"], "y", 2)
        spread = np.std(getattr(third.header.epochs[0], of), ddof=1)
        np.testing.assert_allclose(band, [expected[0] + spread, expected[0] - spread])


@pytest.mark.parametrize(("kind", "parts"), [("sum", (1, 1)), ("mean", (16, 9))])
def test_fields_of_all_over_the_same_classes(small_gallery, trained, third, digits, kind, parts):
    link = {"first": "small", "second": "fixed", "field": kind}
    drawn = stills(visit("compare", open="All classes", **link))
    tops = set()
    for side, checkpoint, count in zip(("first", "second"), (trained, third), parts, strict=True):
        images = digits.test.images[(digits.test.labels == 3).nonzero()[:100, 0]]
        fields = field(checkpoint.model(), as_input(images), 2).values.sum(1)
        shown = drawn[f"{side}-atlas"]
        assert_shows(shown[3], fields.mean(0) / count)
        assert ("mean" in shown[0]["scale"]["name"]) == (kind == "mean")
        tops |= {each["scale"]["high"] for each in shown}
    assert len(tops) == 1


def test_a_model_does_not_disagree_with_itself(small_gallery):
    app = visit("compare", first="small", second="small", open="Where they disagree")
    text = " ".join(element.value for element in app.markdown)
    assert "**0** are predicted correctly only by the first" in text
    assert "(p = 1)" in text


def test_twenty_sessions_leave_little_behind(monkeypatch, runs_root):
    """streamlit#3885: closed sessions kept their memory."""
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    models = sorted(path.stem for path in (ROOT / "checkpoints/paper").glob("*.safetensors"))
    sides = ("first", "second", "third", "fourth")

    def session(k: int) -> None:
        chosen = {side: models[(k + n) % len(models)] for n, side in enumerate(sides)}
        app = visit("compare", models="4", **chosen)
        settle(app.number_input(key="example").set_value(k + 1).run())
        assert "fourth" in columns(app)["sides"]

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


def test_the_inputs_of_a_mean_field_are_counted(small_gallery, digits):
    """The embedded digits have fewer than a hundred test images of each class."""
    counts = np.bincount(digits.test.labels)
    assert counts.min() < counts.max() < 100
    said = f"{counts.min()} to {counts.max()} test images per class"
    link = {"first": "small", "second": "small"}
    app = visit("compare", open="All classes", **link)
    assert any(said in caption.value for caption in app.caption)
    app = visit(model="small", more="All classes")
    assert any(said in caption.value for caption in app.caption)


def test_of_large_classes_a_hundred_images_are_averaged(digits):
    labels = torch.arange(3).repeat(150)
    test = replace(digits.test, labels=labels)
    assert averaged_images(replace(digits, test=test, classes=list("abc"))) == "100"


def test_what_is_likely_by_chance_is_not_said_to_be_chance(small_gallery):
    app = visit("compare", first="small", second="small", open="Where they disagree")
    text = " ".join(element.value for element in app.markdown)
    assert "McNemar's exact test: both are right equally often (p = 1)." in text
    assert "chance alone" not in text


def test_figures_of_one_and_two_columns_have_names_of_their_own():
    names = [name for columns in WIDTHS for _, name, *_ in printed("a", columns, lambda kind: b"")]
    assert len(set(names)) == 2 * 3
    assert names[0] == "a-one-column.svg"
