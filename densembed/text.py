"""Text for users: printable paths, natural sorting, and suggestions for misspelt names."""

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Integral

UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode categories of control characters, surrogates and line separators."""
DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the surrounding text."""


def printable(text: str | bytes | os.PathLike) -> str:
    r"""A path or name as text that can be shown and stored everywhere.

    In file names, Python represents bytes that are not UTF-8 by lone surrogates, which cannot be
    printed or sent as JSON. They become `\xe9` and the like, and control characters become `\n`.
    """
    return "".join(
        _escaped(character)
        if unicodedata.category(character) in UNPRINTABLE or character in DIRECTIONS
        else character
        for character in os.fsdecode(text)
    )


MOST_QUOTED = 300
"""Most characters of a path or name in a message. Paths that systems open are seldom longer."""


def quoted(text: str | bytes | os.PathLike) -> str:
    """A path or name in quotes, for messages, without what is beyond `MOST_QUOTED`."""
    shown = printable(text)
    return f"'{shown}'" if len(shown) <= MOST_QUOTED else f"'{shown[:MOST_QUOTED]}…'"


def counted(number: int, noun: str) -> str:
    """A number of things in words: "1 epoch", "1,000 epochs", "100 densities"."""
    several = re.sub("ss$", "sse", re.sub("ty$", "tie", noun)) + "s"
    return f"{number:,} {noun if number == 1 else several}"


def ascii_minus(text: str) -> str:
    """The text of a number with the sign that Python reads: pages and books write “−”."""
    return text.replace("−", "-")


def setting(value: object) -> str:
    """The value of a setting: 100 for 100.0, and −3 for -3.0."""
    return f"{value:.10g}".replace("-", "−") if isinstance(value, float) else str(value)


def in_seconds(seconds: float) -> str:
    """A duration with two digits or one decimal: "0.04 s", "1.5 s", "1,234.5 s"."""
    return f"{seconds:.2g} s" if 0 < seconds < 1 else f"{seconds:,.1f} s"


MOST_LISTED = 5
"""Most names in a sentence."""


def index_of(index: int, count: int, noun: str) -> int:
    """An index from 0, for one that may count from the end. Raises ValueError if there is none."""
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise ValueError(f"Expected an integer as the index of a {noun}; got {index!r}.")
    if not -count <= index < count:
        raise ValueError(
            f"There is no {noun} {index:,}: a checkpoint with {counted(count, noun)} has the "
            f"indices 0 to {count - 1:,}, and -1 to {-count:,} from the end."
        )
    return index % count


def listed(names: Sequence[str]) -> str:
    """Names in quotes for a sentence, which gives the number of those beyond `MOST_LISTED`."""
    more = len(names) - MOST_LISTED
    return ", ".join(map(quoted, names[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def natural(name: str) -> tuple:
    """A sort key: −1 comes before 2, 2 before 10, a2 before a10, and 1.25 before 1.5."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", name):
        return ("", (Decimal(name), name), ""), name
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(part), part) if k % 2 else part for k, part in enumerate(parts)), name


CLOSE = 0.7
"""Least similarity of a suggested name, as measured by `difflib`."""
SHOWN = 80
"""Most characters of a wrong name in a message, as it may have any length."""


def closest(name: str, choices: Iterable[str]) -> str | None:
    """The most similar of the choices, or None if none is similar."""
    lowered = {other.lower(): other for other in choices}
    matches = difflib.get_close_matches(name[:SHOWN].lower(), lowered, 1, CLOSE)
    return lowered[matches[0]] if matches else None


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    """The beginning of an error message.

    >>> unknown("data set", "minst", ["mnist", "digits"])
    "Unknown data set 'minst' (did you mean 'mnist'?)"
    """
    meant = closest(name, choices)
    shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
    return f"Unknown {kind} {quoted(shown)}" + (f" (did you mean {meant!r}?)" if meant else "")
