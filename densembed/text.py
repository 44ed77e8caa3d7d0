"""Names that people read and write: printable paths, natural order, guesses at misspelt names."""

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable

UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode categories of control characters, surrogates, and separators of lines."""
DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text around them."""


def printable(text: str | bytes | os.PathLike) -> str:
    r"""A path or a name as text that can be shown and stored everywhere.

    Python keeps the bytes of a file name that are not UTF-8 as lone surrogates, which no output,
    JSON or browser takes. They become `\xe9`, and control characters become `\n` and the like.
    """
    return "".join(
        _escaped(character)
        if unicodedata.category(character) in UNPRINTABLE or character in DIRECTIONS
        else character
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


CLOSE = 0.6
"""How similar a name must be to be proposed, as `difflib` measures it."""
SHOWN = 80
"""Characters of a name that are repeated: it comes from anywhere, of any length."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, or None where none is."""
    lowered = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name[:SHOWN].lower(), lowered, 1, CLOSE)
    return lowered[found[0]] if found else None


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The beginning of a sentence: "Unknown data set 'minst' (did you mean 'mnist'?)"."""
    meant = closest(name, known)
    return f"Unknown {kind} {name[:SHOWN]!r}" + (f" (did you mean {meant!r}?)" if meant else "")
