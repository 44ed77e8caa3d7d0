"""A stranger's checkpoint: its words are text, and its numbers may be as large as they like."""

import json

import numpy as np
import pytest
import torch
from pages.widgets.canvas.moving import predictions

from densembed.cli.main import main
from densembed.training.checkpoint import Checkpoint
from tests.pages.conftest import as_read, settle, visit
from tests.pages.test_upload import bring

WORDS = (
    "![](http://127.0.0.1:9/x.png)", "[a](b)", "<script>", "`code`", "a|b", "$x$", ":red[hot]",
    ":smile:", "**bold**", "http://a.example",
)  # fmt: skip
LIVE = ("markdown", "caption", "info", "warning", "error", "success", "subheader")


@pytest.fixture
def crafted(small_gallery, trained) -> Checkpoint:
    """A model whose title and classes are Markdown, in the gallery as `odd`."""
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = " ".join(WORDS)[:200]
    header.config = header.config.model_copy(update={"dataset": "elsewhere"})
    header.classes = list(WORDS)
    checkpoint = Checkpoint(header, trained.tensors)
    checkpoint.save(small_gallery / "odd.safetensors")
    return checkpoint


def said(app) -> list[str]:
    return [element.value for kind in LIVE for element in app.get(kind)]


@pytest.mark.parametrize(
    ("page", "link"), [("", {"model": "odd"}), ("compare", {"first": "odd", "second": "small"})]
)
def test_words_of_a_checkpoint_are_no_markup(crafted, page, link):
    found = [text for text in said(visit(page, **link)) if "127" in text]
    assert found
    for text in found:
        assert not any(word in text for word in WORDS if word not in ("<script>",))
        assert "![](http://127.0.0.1:9/x.png)" in as_read(text)


def test_an_empty_title_leaves_no_hole_in_a_sentence(small_gallery, trained):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = " "
    header.config = header.config.model_copy(update={"dataset": "elsewhere"})
    Checkpoint(header, trained.tensors).save(small_gallery / "untitled.safetensors")
    app = visit("", model="untitled")
    texts = [*said(app), *app.selectbox(key="model").options]
    assert any("was trained on untitled data but" in text for text in texts)
    assert any("error on untitled data (" in text for text in texts)
    assert any(" · untitled data · " in text for text in texts)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([0.1] * 10, "all classes equally likely (10.0 %)"),
        ([0.1002, 0.0998, *[0.1] * 8], "0 (10.0 %)"),
        ([0.5, 0.5, *[0.0] * 8], "0 (50.0 %)"),
        ([1.0], "0 (100.0 %)"),
    ],
)
def test_a_prediction_names_a_class_only_if_the_classes_differ(row, sentence):
    classes = [str(k) for k in range(len(row))]
    assert predictions(np.array([row], np.float32), classes, 1) == [sentence]


def extreme(trained, by: float) -> Checkpoint:
    tensors = {name: value.clone() for name, value in trained.tensors.items()}
    for value in tensors.values():
        value[-1] = torch.where(value[-1] < 0, -by, by)
    return Checkpoint(trained.header, tensors)


def refuse(constant: str):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("by", [1e30, 3e38])
def test_extreme_weights_are_shown_as_far_as_they_are_finite(small_gallery, trained, tmp_path, by):
    extreme(trained, by).save(tmp_path / "extreme.safetensors")
    app = bring(visit(), (tmp_path / "extreme.safetensors").read_bytes())
    _all_json(app)
    assert not app.error
    for more in ("density", "effect"):
        app.session_state["more"] = more
        _all_json(settle(app.run()))
    _all_json(settle(app.switch_page("pages/compare.py").run()))


def _all_json(app) -> None:
    for element in app.get("bidi_component"):
        if element.proto.json:  # some have nothing to draw
            json.loads(element.proto.json, parse_constant=refuse)


def test_commands_compute_with_extreme_weights(trained, tmp_path, pictures, capsys):
    path = tmp_path / "extreme.safetensors"
    extreme(trained, 3e38).save(path)
    assert main(["read", str(path), str(pictures["digit"]), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert 0 <= result["probability"] <= 1
    assert main(["evaluate", str(path)]) == 0
    assert "nan" not in capsys.readouterr().out
    out = tmp_path / "field.npz"
    assert main(["render", str(path), "--image", str(pictures["digit"]), "--out", str(out)]) == 0
    assert np.isfinite(np.load(out)["after"]).all()
