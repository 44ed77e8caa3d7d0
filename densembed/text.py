"""Names as people read them: any path as printable text, and numbers within names in order."""

import os
import re
import unicodedata

UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode categories of control characters, surrogates, and separators of lines."""


def printable(text: str | bytes | os.PathLike) -> str:
    r"""A path or a name as text that can be shown and stored everywhere.

    Python keeps the bytes of a file name that are not UTF-8 as lone surrogates, which no output,
    JSON or browser takes. They become `\xe9`, and control characters become `\n` and the like.
    """
    return "".join(
        _escaped(character) if unicodedata.category(character) in UNPRINTABLE else character
        for character in os.fsdecode(text)
    )


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def natural(name: str) -> tuple:
    """A key for sorting: 2 comes before 10, and a2 before a10."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(part), part) if k % 2 else part for k, part in enumerate(parts)), name
