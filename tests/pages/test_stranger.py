"""A stranger's checkpoint: its words are text, and its numbers may be as large as they like."""

import csv
import json

import numpy as np
import pytest
import streamlit as st
import torch

from densembed.cli.main import main
from densembed.training.checkpoint import Checkpoint
from tests.pages.conftest import as_read, live, report, sample, settle, visit
from tests.pages.test_upload import bring

WORDS = (
    "![](http://127.0.0.1:9/x.png)",
    "[a](b)",
    "<script>",
    "`code`",
    "a|b",
    "$x$",
    ":red[hot]",
    ":smile:",
    "**bold**",
    "http://a.example",
)
LIVE = ("markdown", "caption", "info", "warning", "error", "success", "subheader")


def test_words_of_a_checkpoint_are_no_formula_of_a_spreadsheet(small_gallery, trained, monkeypatch):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = '=HYPERLINK("http://127.0.0.1:9","here")'
    Checkpoint(header, trained.tensors).save(small_gallery / "titled.safetensors")
    files = {}
    monkeypatch.setattr(
        st, "download_button", lambda label, data, *_, **__: files.update({label: data})
    )
    link = {"first": "titled", "second": "small"}
    report(visit("compare", **link, open="export"), "compare", sample(), "7", **link, open="export")
    rows = {name: cells for name, *cells in csv.reader(files["Settings, CSV"]().splitlines())}
    titled, own = rows["Training data"]
    assert titled.startswith("'=HYPERLINK")
    assert own.startswith(trained.header.provenance.dataset_title)


@pytest.fixture
def crafted(small_gallery, trained) -> Checkpoint:
    """Models in the gallery whose titles are Markdown; `odd` has such classes, too."""
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = " ".join(WORDS)[:200]
    header.config = header.config.model_copy(update={"dataset": "elsewhere"})
    Checkpoint(header.model_copy(deep=True), trained.tensors).save(
        small_gallery / "titled.safetensors"
    )
    header.classes = list(WORDS)
    checkpoint = Checkpoint(header, trained.tensors)
    checkpoint.save(small_gallery / "odd.safetensors")
    return checkpoint


def said(app) -> list[str]:
    return [element.value for kind in LIVE for element in app.get(kind)]


@pytest.mark.parametrize(
    ("view", "link"),
    [
        ("explore", {"model": "titled"}),
        ("explore", {"model": "odd"}),
        ("compare", {"first": "titled", "second": "odd"}),
        ("compare", {"first": "odd"}),
    ],
)
@pytest.mark.parametrize("more", ["", "export", "settings"])
def test_words_of_a_checkpoint_are_no_markup(crafted, view, link, more):
    opened = {"more" if view == "explore" else "open": more} if more else {}
    app = report(visit(view, **link), view, sample(), "7", **link, **opened)
    texts = [text for text in said(app) if "127" in text]
    assert texts or "odd" in link.values()
    for text in texts:
        assert not any(word in text for word in WORDS if word not in ("<script>",))
        assert "![](http://127.0.0.1:9/x.png)" in as_read(text)
    for element in app.get("html"):
        assert "<script>" not in element.proto.body


def test_an_empty_title_leaves_no_hole_in_a_sentence(small_gallery, trained):
    header = trained.header.model_copy(deep=True)
    header.provenance.dataset_title = " "
    header.config = header.config.model_copy(update={"dataset": "elsewhere"})
    Checkpoint(header, trained.tensors).save(small_gallery / "untitled.safetensors")
    app = report(visit(), "explore", sample(), "7", model="untitled")
    assert any("was trained on untitled data but" in text for text in said(app))
    title = live(app)["models"]["untitled"]["title"]
    assert " · untitled data · " in title


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
    for view in ("explore", "compare"):
        settle(app.switch_page(f"pages/{view}.py").run())
        for more in ("export", "settings", "curves", "disagreements", "confusion", "classes"):
            report(app, view, sample(), "7", more=more, open=more)
            _all_json(app)
            assert not app.error


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
