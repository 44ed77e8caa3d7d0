"""A stranger's words stay words in each format."""

import json
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from densembed.figures.confusion import confusion_figure
from densembed.figures.densities import atlas_figure
from densembed.markup import for_html, for_markdown, for_plotly, one_line

NAMES = ["<a href='http://x.example'>7</a>", "a & b", "&lt;"]


@given(st.text(st.characters(codec=None)))
def test_any_text_is_text(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode()
    element = ElementTree.fromstring(f'<a b="{for_html(text)}">{for_html(text)}</a>')
    assert (element.text or "") == element.get("b") == line
    assert unescape(for_plotly(text)) == line
    assert not set("<>") & set(for_plotly(text))


def test_each_mark_of_markdown_is_escaped():
    escaped = for_markdown("![a](http://b.example) $x$ <c> `d` *e* :red[f]")
    assert all(escaped[k - 1] == "\\" for k, mark in enumerate(escaped) if mark in "![](<$`*:")


def test_class_names_are_no_markup_in_figures():
    counts = np.arange(9).reshape(3, 3)
    confusion = confusion_figure(counts, NAMES, 8.0)
    atlas = atlas_figure([np.ones((4, 4))] * 3, NAMES, (4, 4), 1.0, "density")
    titles = [note.text for note in atlas.layout.annotations]
    for words in (confusion.data[0].x, confusion.data[0].y, titles):
        assert [unescape(word) for word in words] == NAMES
        assert not any(set("<>") & set(word) for word in words)
    assert "<a" not in json.dumps(atlas.to_dict(), default=str)
