"""Compare: both models on one input, one scale and one slider."""

import numpy as np
import pytest

from densembed.checkpoint import Checkpoint
from densembed.comparison import answers, disagreement, facts
from densembed.data import load_dataset
from densembed.fields import view
from tests.pages.conftest import charts, headings, pills, scale, settle, values, visit

FIELDS = ("first-chosen", "second-chosen", "first-before", "second-before")


def sample():
    test = load_dataset("digits").test
    return test.images[(test.labels == 7).nonzero()[0, 0]]


def test_two_models_on_one_scale(mnist_model, trained):
    app = visit("compare", first="small", second="other")
    drawn = charts(app)
    first, second = view(trained, sample()), view(mnist_model, sample())
    assert not np.array_equal(first.fields[-1], second.fields[-1])
    pairs = {"chosen": -1, "before": 0}
    for row, k in pairs.items():
        a, b = first.fields[k].sum(0), second.fields[k].sum(0)
        np.testing.assert_allclose(values(drawn[f"first-{row}"]), a, 1e-5, 1e-7)
        np.testing.assert_allclose(values(drawn[f"second-{row}"]), b, 1e-5, 1e-7)
        np.testing.assert_allclose(values(drawn[f"difference-{row}"]), b - a, 1e-4, 1e-6)
    top = max(first.top, second.top)
    assert {scale(drawn[key]) for key in FIELDS} == {(0, top)}
    assert {scale(drawn[f"difference-{row}"]) for row in pairs} == {(-top, top)}
    for trace, seen in enumerate((first, second)):
        bars = values(drawn["opinion"], "x", trace)
        np.testing.assert_allclose(bars, seen.probabilities[-1], 1e-4, 1e-6)


def test_one_slider_moves_both(mnist_model, trained):
    app = visit("compare", first="small", second="other")
    step = trained.steps[-1]  # of the other one, the last kept before it
    assert step not in mnist_model.steps
    settle(app.select_slider(key="step").set_value(step).run())
    drawn = charts(app)
    for side, checkpoint, k in (("first", trained, -1), ("second", mnist_model, -2)):
        field = view(checkpoint, sample()).fields[k].sum(0)
        np.testing.assert_allclose(values(drawn[f"{side}-chosen"]), field, 1e-5, 1e-7)
    assert f"after {mnist_model.steps[-2]:,} steps" in headings(app)


def test_model_against_itself_has_no_difference(small_gallery):
    drawn = charts(visit("compare", first="small", second="small"))
    for row in ("chosen", "before"):
        assert not values(drawn[f"difference-{row}"]).any()
        assert np.array_equal(values(drawn[f"first-{row}"]), values(drawn[f"second-{row}"]))


def test_no_ink_gets_no_opinion(mnist_model, pictures):
    app = visit("compare", first="small", second="other")
    pills(app, "from").set_value("Upload").run()
    picture = ("a.png", pictures["empty"].read_bytes(), "image/png")
    settle(app.file_uploader(key="upload").set_value(picture).run())
    assert "opinion" not in charts(app)
    assert [warning.value[:6] for warning in app.warning] == ["No ink"]


@pytest.mark.parametrize("side", ["first", "second"])
def test_link_to_a_model_that_is_gone_is_named(small_gallery, side):
    app = visit("compare", **{side: "gone"})
    assert "“gone”" in app.warning[0].value
    assert len(charts(app)) == 8


def test_models_of_other_shapes_are_not_compared(small_gallery, trained):
    header = trained.header.model_copy(update={"input_shape": (1, 12, 12)})
    Checkpoint(header, trained.tensors).save(small_gallery / "low.safetensors")
    app = visit("compare", first="small", second="low")
    assert "different shapes" in app.info[0].value
    assert not charts(app)
    assert "Upload a picture" in visit(model="low").info[0].value


def test_models_that_know_other_classes_are_compared_but_for_their_words(small_gallery, trained):
    header = trained.header.model_copy(update={"classes": list("abcdefghij")})
    Checkpoint(header, trained.tensors).save(small_gallery / "letters.safetensors")
    app = visit("compare", first="small", second="letters")
    assert "different classes" in headings(app)
    assert not values(charts(app)["difference-chosen"]).any()
    assert "opinion" not in charts(app)


def test_table_marks_what_differs(mnist_model, trained):
    app = visit("compare", first="small", second="other", open="Model and recipe")
    rows = headings(app).split("<tr ")[1:]
    differing = [row for row in rows if 'class="differs"' in row]
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


def test_a_model_does_not_disagree_with_itself(small_gallery):
    app = visit("compare", first="small", second="small", open="Where they disagree")
    text = " ".join(element.value for element in app.markdown)
    assert "**0** only the first" in text
    assert "p = 1," in text
