"""Compare: all models on one input, one scale and one slider."""

import gc

import numpy as np
import psutil
import pytest

from densembed.checkpoint import Checkpoint, Recorder
from densembed.comparison import answers, disagreement, facts
from densembed.config import RunConfig
from densembed.data import as_input, load_dataset
from densembed.fields import field, view
from densembed.training import train
from tests.pages.conftest import (
    ROOT,
    charts,
    headings,
    pills,
    scale,
    settle,
    values,
    visit,
    warnings,
)


def sample(label: int = 7):
    test = load_dataset("digits").test
    return test.images[(test.labels == label).nonzero()[0, 0]]


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
    drawn = charts(visit("compare", first="small", second="other"))
    one, two = view(trained, sample()), view(mnist_model, sample())
    assert not np.array_equal(one.fields[-1], two.fields[-1])
    a, b = one.fields[-1].sum(0), two.fields[-1].sum(0)
    np.testing.assert_allclose(values(drawn["first-field"]), a, 1e-5, 1e-7)
    np.testing.assert_allclose(values(drawn["second-field"]), b, 1e-5, 1e-7)
    np.testing.assert_allclose(values(drawn["second-change"]), b - a, 1e-4, 1e-6)
    top = max(one.top, two.top)
    assert {scale(drawn[f"{side}-field"]) for side in ("first", "second")} == {(0, top)}
    assert scale(drawn["second-change"]) == (-top, top)
    for trace, seen in enumerate((one, two)):
        bars = values(drawn["opinion"], "x", trace)
        np.testing.assert_allclose(bars, seen.probabilities[-1], 1e-4, 1e-6)


@pytest.mark.parametrize("field", ["sum", "mean"])
def test_four_models_in_columns(mnist_model, trained, third, field):
    link = {"first": "small", "second": "other", "third": "fixed", "fourth": "small"}
    app = visit("compare", models="4", field=field, **link)
    settle(app.select_slider(key="step").set_value(0).run())
    drawn = charts(app)
    of = dict(zip(link, (trained, mnist_model, third, trained), strict=True))
    share = dict.fromkeys(link, 1.0)
    if field == "mean":  # 4² densities, and 3² of the third
        share = {name: 1 / (9 if name == "third" else 16) for name in link}
    seen = {name: view(checkpoint, sample()) for name, checkpoint in of.items()}
    top = max(seen[name].top * share[name] for name in link)
    start = {name: seen[name].fields[0].sum(0) * share[name] for name in link}
    for name in link:
        np.testing.assert_allclose(values(drawn[f"{name}-field"]), start[name], 1e-5, 1e-7)
        assert scale(drawn[f"{name}-field"]) == pytest.approx((0, top))
        if name != "first":
            change = start[name] - start["first"]
            np.testing.assert_allclose(values(drawn[f"{name}-change"]), change, 1e-4, 1e-6)
            assert scale(drawn[f"{name}-change"]) == pytest.approx((-top, top))
    assert not values(drawn["fourth-change"]).any()
    assert len(drawn["opinion"]["data"]) == 4
    assert headings(app).count("before training") == 4


def test_fewer_models_leave_the_link(mnist_model, third):
    app = visit("compare", models="4", first="small", third="fixed", fourth="other")
    assert app.query_params["third"] == "fixed"
    pills(app, "models").set_value(2).run()
    settle(app)
    assert not {"third", "fourth"} & set(app.query_params)
    assert "third-field" not in charts(app)


def test_a_number_of_models_that_cannot_be_is_named(mnist_model):
    app = visit("compare", models="7")
    assert "“7”" in warnings(app)[0]
    assert len([key for key in charts(app) if key.endswith("-field")]) == 2


def test_one_slider_moves_both(mnist_model, trained):
    """tensorflow/playground#38, aim#3230, tensorboard#469: one step slider for all images."""
    app = visit("compare", first="small", second="other")
    step = trained.steps[-1]  # of the other one, the last kept before it
    assert step not in mnist_model.steps
    settle(app.select_slider(key="step").set_value(step).run())
    drawn = charts(app)
    for side, checkpoint, k in (("first", trained, -1), ("second", mnist_model, -2)):
        field = view(checkpoint, sample()).fields[k].sum(0)
        np.testing.assert_allclose(values(drawn[f"{side}-field"]), field, 1e-5, 1e-7)
    assert f"after {mnist_model.steps[-2]:,} steps" in headings(app)
    settle(app.select_slider(key="step").set_value(0).run())
    assert scale(charts(app)["first-field"]) == scale(drawn["first-field"])  # before and after


@pytest.mark.parametrize(("by", "place"), [("epoch", "1.0"), ("fraction", "0.333")])
def test_the_slider_lines_up_trainings_of_other_lengths(small_gallery, trained, third, by, place):
    """An epoch of one model has several times the steps of the other's."""
    app = visit("compare", first="small", second="fixed", by=by, **{by: place})
    drawn = charts(app)
    whole = trained.header.steps_per_epoch
    assert whole > 2 * third.header.steps_per_epoch
    expected = {"first": (trained, trained.steps.index(whole))}
    last = third.header.steps_per_epoch * (1 if by == "epoch" else 1 / 3)
    expected["second"] = third, max(k for k, step in enumerate(third.steps) if step <= last)
    for side, (checkpoint, k) in expected.items():
        field = view(checkpoint, sample()).fields[k].sum(0)
        np.testing.assert_allclose(values(drawn[f"{side}-field"]), field, 1e-5, 1e-7)
    assert app.select_slider(key=by).value == float(place)
    pills(app, "by").set_value("step").run()
    assert by not in settle(app).query_params


def test_another_model_keeps_the_slider_on_a_step_that_is_there(small_gallery, third, trained):
    app = visit("compare", first="small", second="small", step=str(trained.steps[-1]))
    app.selectbox(key="second").select("fixed")
    app.selectbox(key="first").select("fixed").run()
    drawn = charts(settle(app))
    field = view(third, sample()).fields[-1].sum(0)
    np.testing.assert_allclose(values(drawn["first-field"]), field, 1e-5, 1e-7)


def test_the_slider_stays_at_the_end_when_a_longer_training_comes(small_gallery, third, trained):
    app = visit("compare", first="fixed", second="fixed")
    assert third.steps[-1] < trained.steps[-1]
    settle(app.selectbox(key="second").select("small").run())
    drawn = charts(app)
    np.testing.assert_allclose(
        values(drawn["second-field"]), view(trained, sample()).fields[-1].sum(0), 1e-5, 1e-7
    )
    before = third.steps[1]
    app.select_slider(key="step").set_value(before).run()
    app.selectbox(key="second").select("fixed").run()
    assert settle(app).select_slider(key="step").value == before


def test_model_against_itself_has_no_difference(small_gallery):
    """streamlit#11424: equal charts were a duplicate element."""
    drawn = charts(visit("compare", first="small", second="small", open="What they mistake"))
    assert not values(drawn["second-change"]).any()
    assert np.array_equal(values(drawn["first-field"]), values(drawn["second-field"]))
    assert np.nansum(abs(values(drawn["second-confusion-change"]))) == 0


def test_no_ink_gets_no_opinion(mnist_model, pictures):
    app = visit("compare", first="small", second="other")
    pills(app, "from").set_value("Upload").run()
    picture = ("a.png", pictures["empty"].read_bytes(), "image/png")
    settle(app.file_uploader(key="upload").set_value(picture).run())
    assert "opinion" not in charts(app)
    assert [said[:6] for said in warnings(app)] == ["No ink"]


@pytest.mark.parametrize("side", ["first", "second"])
def test_link_to_a_model_that_is_gone_is_named(small_gallery, side):
    app = visit("compare", **{side: "gone"})
    assert "“gone”" in warnings(app)[0]
    assert set(charts(app)) == {
        "picture",
        "first-field",
        "second-field",
        "second-change",
        "opinion",
    }


def test_models_of_other_shapes_compare_but_for_the_input(small_gallery, trained):
    header = trained.header.model_copy(update={"input_shape": (1, 12, 12)})
    Checkpoint(header, trained.tensors).save(small_gallery / "low.safetensors")
    link = {"first": "small", "second": "low"}
    app = visit("compare", **link)
    assert "takes grey pictures of 12 × 12" in app.info[0].value
    drawn = charts(app)
    assert "first-field" in drawn
    assert not {"second-field", "second-change"} & set(drawn)
    assert len(drawn["opinion"]["data"]) == 1
    for opened in ("Where they disagree", "What they mistake"):
        app = visit("compare", open=opened, **link)
        assert any("its answers do not compare" in info.value for info in app.info)
    assert "second-atlas" not in charts(visit("compare", open="All classes", **link))
    curve = charts(visit("compare", open="How they learned", **link))["curve-test error"]
    assert len(curve["data"]) == 2
    assert "Upload a picture" in visit(model="low").info[0].value


def test_models_that_know_other_classes_are_compared_but_for_their_words(small_gallery, trained):
    header = trained.header.model_copy(update={"classes": list("abcdefghij")})
    Checkpoint(header, trained.tensors).save(small_gallery / "letters.safetensors")
    app = visit("compare", first="small", second="letters")
    assert "the second knows other classes" in headings(app)
    assert not values(charts(app)["second-change"]).any()
    assert [bar["name"] for bar in charts(app)["opinion"]["data"]] == ["first"]


def test_table_marks_what_differs(mnist_model, trained):
    app = visit("compare", first="small", second="other", open="Model and recipe")
    rows = headings(app).split("<tr ")[1:]
    assert all(row.count("<td") == 2 for row in rows)
    differing = [row for row in rows if row.startswith('class="differs"')]
    one, two = facts(trained), facts(mnist_model)
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


def test_where_they_disagree(mnist_model, trained, digits):
    link = {"first": "small", "second": "other", "open": "Where they disagree"}
    app = visit("compare", **link)
    settle(app.select_slider(key="step").set_value(1).run())
    k = trained.steps.index(1), mnist_model.steps.index(1)
    labels = digits.test.labels.numpy()
    said = [
        answers(c, digits.test.images, n) for c, n in zip((trained, mnist_model), k, strict=True)
    ]
    found = disagreement(*said, labels)
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(found.first_only):,}** only the first" in text
    assert f"**{len(found.second_only):,}** only the second" in text
    assert (f"p = {found.p:.2g}" if found.p >= 0.0001 else "p < 0.0001") in text
    index = [*found.first_only, *found.second_only][0]
    app.button(key=f"open-{index}").click().run()
    shown = values(charts(settle(app))["picture"]) * 255
    np.testing.assert_allclose(shown, digits.test.images[index, 0], atol=1e-3)


def test_the_first_beside_another(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "other", "third": "fixed", "models": "3"}
    app = visit("compare", open="Where they disagree", beside="third", **link)
    found = disagreement(
        answers(trained, digits.test.images), answers(third, digits.test.images),
        digits.test.labels.numpy(),
    )  # fmt: skip
    text = " ".join(element.value for element in app.markdown)
    assert f"**{len(found.second_only):,}** only the third" in text


def test_confusion_matrices_on_one_scale(mnist_model, trained, third, digits):
    link = {"first": "small", "second": "fixed"}
    drawn = charts(visit("compare", open="What they mistake", **link))
    counts = {}
    for side, checkpoint in (("first", trained), ("second", third)):
        counts[side] = np.zeros((10, 10))
        for true, said in zip(
            digits.test.labels, answers(checkpoint, digits.test.images), strict=True
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


def test_fields_of_all_over_the_same_classes(small_gallery, trained, third, digits):
    link = {"first": "small", "second": "fixed"}
    drawn = charts(visit("compare", open="All classes", **link))
    tops = set()
    for side, checkpoint in (("first", trained), ("second", third)):
        images = digits.test.images[(digits.test.labels == 3).nonzero()[:100, 0]]
        fields = field(checkpoint.model(), as_input(images), 2).values.sum(1)
        shown = values(drawn[f"{side}-atlas"], "z", 3)
        np.testing.assert_allclose(shown, fields.mean(0), 1e-4, 1e-6)
        tops.add(drawn[f"{side}-atlas"]["layout"]["coloraxis"]["cmax"])
    assert len(tops) == 1


def test_a_model_does_not_disagree_with_itself(small_gallery):
    app = visit("compare", first="small", second="small", open="Where they disagree")
    text = " ".join(element.value for element in app.markdown)
    assert "**0** only the first" in text
    assert "p = 1," in text


def test_twenty_sessions_leave_little_behind(monkeypatch, runs_root):
    """streamlit#3885: closed sessions kept their memory."""
    monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    models = sorted(path.stem for path in (ROOT / "checkpoints/paper").glob("*.safetensors"))
    sides = ("first", "second", "third", "fourth")

    def session(k: int) -> None:
        chosen = {side: models[(k + n) % len(models)] for n, side in enumerate(sides)}
        app = visit("compare", models="4", **chosen)
        settle(app.number_input(key="example").set_value(k + 1).run())
        assert "fourth-field" in charts(app)

    def held() -> int:
        gc.collect()
        return psutil.Process().memory_info().rss

    for k in range(len(models)):  # each is opened, and the cache is full
        session(k)
    before = held()
    for k in range(len(models), len(models) + 20):  # 80 views of some 1.5 MB
        session(k)
    assert held() - before < 60e6
