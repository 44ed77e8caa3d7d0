"""A stranger's words (titles, class names) as plain text, for each format that knows markup.

A checkpoint may come from anyone, so no text of it may become a link, a picture, a formula or
an element. What draws a formula of `$…$` by itself, matplotlib, is told not to in `sheet`.
"""

import re
import unicodedata
from html import escape

from densembed.text import DIRECTIONS

NOT_PRINTED = ("Cc", "Cs", "Cn", "Zl", "Zp")
"""Categories of Unicode that XML or a font cannot hold: controls, halves of pairs, line ends."""

JOINER = "\u2060"
"""A word joiner, which has no width. It breaks what Streamlit recognises in escaped text: emoji and
icons between colons, addresses as links, and arrows of two signs."""


def one_line(text: str) -> str:
    """A text for a picture, a file's title or XML: in one line, without control characters."""
    kept = (
        " " if unicodedata.category(letter) in NOT_PRINTED or letter in DIRECTIONS else letter
        for letter in text
    )
    return " ".join("".join(kept).split())


def for_html(text: str) -> str:
    """A text as the content, or a quoted attribute, of an HTML element."""
    return escape(one_line(text))


def for_plotly(text: str) -> str:
    """A text for Plotly, whose titles, ticks and hovers read a few HTML elements and entities."""
    return escape(one_line(text), quote=False)


def for_markdown(text: str) -> str:
    """A text within a line of Markdown: every character that might be a mark is escaped."""
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", one_line(text))
    return re.sub(r"(\\[:@]|\\[-<>=~](?=\\[-<>=~])|www(?=\\.))", rf"\1{JOINER}", escaped)
