"""What to say of a name that is not known: the known ones, and the one that may have been meant."""

import difflib
from collections.abc import Iterable

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
