"""Docstrings as this project writes them, for mkdocstrings: sections follow without empty lines."""

import re

import griffe

SECTIONS = "Args|Returns|Raises|Yields|Attributes"
TOGETHER = re.compile(r"^    (\w+(?:, \w+)+):(.*(?:\n     .*)*)$", re.M)


class Docstrings(griffe.Extension):
    """Separates the sections of docstrings, and puts examples into a section of their own."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = separated(obj.docstring.value)


def separated(text: str) -> str:
    """The docstring with an empty line before each section, and "Examples:" before `>>>`.

    Arguments that are described together, as in `loc, scale: in pixels`, get an entry each.
    """
    text = TOGETHER.sub(_one_by_one, text)
    text = re.sub(rf"(?<=\S)\n(?=(?:{SECTIONS}):)", "\n\n", text)
    parts = re.split(r"\n\n(?=>>> )", text)
    examples = ["Examples:\n" + re.sub("^(?=.)", "    ", part, flags=re.M) for part in parts[1:]]
    return "\n\n".join([parts[0], *examples])


def _one_by_one(entry: re.Match) -> str:
    return "\n".join(f"    {name}:{entry[2]}" for name in entry[1].split(", "))
