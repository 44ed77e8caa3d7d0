"""Escapes untrusted text (titles, class names) for formats with markup.

A checkpoint may come from anyone, so none of its text may become a link, an image, a formula or an
element. Printed figures turn off matplotlib's formulas separately.
"""

import re
import unicodedata
from html import escape

from densembed.text import DIRECTIONS

NOT_PRINTED = ("Cc", "Cs", "Cn", "Zl", "Zp")
"""Unicode categories that XML or fonts do not support, such as control characters."""

JOINER = "\u2060"
"""A word joiner, which has no width. It prevents Streamlit from replacing parts of escaped text:
emoji and icons between colons, addresses, and arrows of two characters."""


def one_line(text: str) -> str:
    """Text for an image, a title or XML: on one line, without control characters."""
    letters = (
        " " if unicodedata.category(letter) in NOT_PRINTED or letter in DIRECTIONS else letter
        for letter in text
    )
    return " ".join("".join(letters).split())


def for_html(text: str) -> str:
    """Text as the content or a quoted attribute of an HTML element."""
    return escape(one_line(text))


def for_plotly(text: str) -> str:
    """Text for Plotly, which interprets some HTML in titles, ticks and hover texts."""
    return escape(one_line(text), quote=False)


def for_markdown(text: str) -> str:
    """Text within a line of Markdown, with all special characters escaped."""
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", one_line(text))
    return re.sub(r"(\\[:@]|\\[-<>=~](?=\\[-<>=~])|www(?=\\.))", rf"\1{JOINER}", escaped)
