"""A stranger's words in a real browser: shown letter by letter, and nothing is fetched for them."""

import pytest
from playwright.sync_api import expect

from densembed.data import load_dataset
from densembed.markup import JOINER
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import ROOT, settle
from tests.pages.test_stranger import WORDS

SAID = " ".join(WORDS)[:200]


@pytest.fixture
def crafted(tmp_path):
    checkpoint = Checkpoint.open(ROOT / "checkpoints/paper/logistic-el-15-digits.safetensors")
    header = checkpoint.header.model_copy(deep=True)
    header.provenance.dataset_title = SAID
    Checkpoint(header, checkpoint.tensors).save(tmp_path / "odd.safetensors")
    assert header.classes == list(load_dataset("digits").classes)
    return tmp_path / "odd.safetensors"


def test_nothing_is_fetched_for_a_strangers_words(visit, server, crafted):
    page = visit("/?model=logistic-el-15-digits&tour=0")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Upload a model").click()
    page.locator("input[type=file]").first.set_input_files(crafted)
    caption = page.get_by_test_id("stCaptionContainer").filter(has_text="Your file")
    expect(caption).to_be_visible()
    settle(page)
    assert SAID in caption.inner_text().replace(JOINER, "")
    assert not [
        url for url in asked if not url.startswith((server, "data:", "blob:", "ws://localhost"))
    ]
