"""Networks by name, as used on the command line, in links and in checkpoints.

A name is the complete configuration of a network. `MODELS` has the templates of all names, such as
"{family}-el-{frame}{size}"; `registry.BUILDERS` has the function that builds the networks of each.
A new kind of model is one entry in both; `densembed.register_model` adds one from outside.
Names are parsed without torch, so that the command line answers at once.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from densembed.functional.families import WORDS, in_words
from densembed.text import SHOWN, unknown

MAX_DENSITIES = 64
"""Largest B in a name. 64² densities; larger numbers, such as typing errors, exhaust the memory."""
MAX_HIDDEN = 4096
MAX_STAGES = 3

Argument = str | int | tuple[int, ...]
"""What a name has in place of {family}, {frame}, {size} or {maps}."""

NUMBER = r"-?\d+"
"""A number below zero is out of range, as 0 is, not the name of an unknown model."""
PARTS = {
    "{frame}": r"(mass-)?",
    "{size}": rf"({NUMBER})",
    "{maps}": rf"({NUMBER}(?:-{NUMBER}){{0,{MAX_STAGES - 1}}})",
}
PLACEHOLDERS = {"{family}": "FAMILY", "{frame}": "[mass-]", "{size}": "N", "{maps}": "MAPS"}
"""The parts of templates, and how help and errors write them."""


@dataclass(frozen=True)
class Kind:
    """The names of a kind of model.

    `words` is the name in words, with {} for each part of the template, and {s} at the end of a
    noun that the first part counts; `words_for_one` replaces it if {maps} is a single number.
    `max_size` bounds all numbers.
    """

    words: str
    max_size: int = MAX_DENSITIES
    words_for_one: str = ""


MODELS: dict[str, Kind] = {
    "linear": Kind("Linear classifier"),
    "mlp-{size}": Kind("MLP with {} hidden unit{s}", MAX_HIDDEN),
    "{family}-el-{frame}{size}": Kind("{}-EL{}, B = {}"),
    "{family}-el-mnn-{frame}{size}-{size}": Kind("{}-EL with mNN{}, B = {}, B₀ = {}"),
    "adaptive-conv-pool-{family}-el-{frame}{size}": Kind(
        "Adaptive convolution and pooling, {}-EL{}, B = {}",
    ),
    "adaptive-conv-pool-{family}-el-mnn-{frame}{size}-{size}": Kind(
        "Adaptive convolution and pooling, {}-EL with mNN{}, B = {}, B₀ = {}",
    ),
    "{family}-el-mnn-scale-{frame}{size}-{size}": Kind(
        "{}-EL with mNN of learned scales{}, B = {}, B₀ = {}"
    ),
    "stages-{maps}-{family}-el-{frame}{size}": Kind(
        "Adaptive stages of {} map{s}, {}-EL{}, B = {}",
        words_for_one="One adaptive stage of {} map{s}, {}-EL{}, B = {}",
    ),
    "stages-{maps}-{family}-el-mnn-{frame}{size}-{size}": Kind(
        "Adaptive stages of {} map{s}, {}-EL with mNN{}, B = {}, B₀ = {}",
        words_for_one="One adaptive stage of {} map{s}, {}-EL with mNN{}, B = {}, B₀ = {}",
    ),
    "cnn-{maps}": Kind("Plain CNN of {} map{s}"),
}
"""The kinds of models by the template of their names."""


def pattern(template: str) -> str:
    """The regular expression of the names of a template."""
    parts = PARTS | {"{family}": f"({'|'.join(map(re.escape, WORDS))})"}
    return "".join(parts.get(part) or re.escape(part) for part in _split(template))


def parse(name: str) -> tuple[str, list[Argument]]:
    """The template of a name, and the arguments that stand in place of its parts.

    Raises ValueError for a name without a template, or with a number out of range.

    >>> parse("stages-8-16-logistic-el-5")
    ('stages-{maps}-{family}-el-{frame}{size}', [(8, 16), 'logistic', 'input', 5])
    """
    for template, kind in MODELS.items():
        match = re.fullmatch(pattern(template), name, re.ASCII)
        if not match:
            continue
        arguments: list[Argument] = []
        sizes: list[int] = []
        for part, text in zip(parts(template), match.groups(), strict=True):
            if part == "{family}":
                arguments.append(text)
            elif part == "{frame}":
                arguments.append("mass" if text else "input")
            else:
                numbers = tuple(map(_number, re.split(r"(?<=\d)-", text)))
                sizes += numbers
                arguments.append(numbers if part == "{maps}" else numbers[0])
        if all(1 <= size <= kind.max_size for size in sizes):
            return template, arguments
        shown = repr(name[:60])  # names may come from links, of any length
        raise ValueError(f"The sizes in {shown} must lie between 1 and {kind.max_size}.")
    raise ValueError(
        f"{unknown('model', name, _similar_names(name))}; names look like {templates()}. "
        f"FAMILY is one of {', '.join(WORDS)}, N is a number, and MAPS is one to {MAX_STAGES} "
        "numbers, as in 8-16."
    )


def _number(digits: str) -> int:
    """The number, or one that is too large, as int() refuses thousands of digits."""
    return int(digits) if len(digits) <= 9 else 10**9


def fill(template: str, arguments: Sequence[Argument]) -> str:
    """The name with these arguments in place of a template's parts; the inverse of `parse`.

    >>> fill("stages-{maps}-{family}-el-{frame}{size}", [(8, 16), "logistic", "mass", 5])
    'stages-8-16-logistic-el-mass-5'
    """
    rest = iter(arguments)
    return "".join(
        _written(part, next(rest)) if part in PLACEHOLDERS else part for part in _split(template)
    )


def _written(part: str, argument: Argument) -> str:
    if part == "{frame}":
        return "" if argument == "input" else f"{argument}-"
    return "-".join(map(str, argument)) if isinstance(argument, tuple) else str(argument)


def templates() -> str:
    """The templates of all names for readers: "linear, mlp-N, FAMILY-el-N, …"."""
    return ", ".join(
        "".join(PLACEHOLDERS.get(part, part) for part in _split(template)) for template in MODELS
    )


def _split(template: str) -> list[str]:
    return re.split(r"({\w+})", template)


def parts(template: str) -> list[str]:
    """The parts of a template that vary, in order: {family}, {frame}, {size} or {maps}."""
    return [part for part in _split(template) if part in PLACEHOLDERS]


def _similar_names(name: str) -> list[str]:
    """One name per template and family, with the numbers of `name` where it has any."""
    names = []
    written = re.findall(r"\d+", name[:SHOWN], re.ASCII)
    for template, kind in MODELS.items():
        numbers = [digits if 1 <= _number(digits) <= kind.max_size else "5" for digits in written]
        rest = iter(numbers)
        stages = min(max(len(numbers) - template.count("{size}"), 1), MAX_STAGES)
        counts = {"{size}": 1, "{maps}": stages}
        filled = "".join(
            "-".join(next(rest, "5") for _ in range(counts[part])) if part in counts else part
            for part in _split(template)
        )
        families: Iterable[str] = WORDS if "{family}" in template else [""]
        frames = ["", "mass-"] if "{frame}" in template else [""]
        names += [filled.format(family=f, frame=frame) for f in families for frame in frames]
    return names


def check_name(name: str) -> str:
    """The name as it is stored. Raises ValueError if no model can be built from it.

    >>> check_name("logistic-el-05")
    'logistic-el-5'
    """
    return fill(*parse(name))


def describe(name: str) -> str:
    """A model's name in words.

    >>> describe("logistic-el-mnn-10-5")
    'Logistic-EL with mNN, B = 10, B₀ = 5'
    >>> describe("logistic-el-mass-15")
    'Logistic-EL, frame of the mass, B = 15'
    >>> describe("cnn-8-16-32")
    'Plain CNN of 8, 16 and 32 maps'
    """
    template, arguments = parse(name)
    kind = MODELS[template]
    single = any(isinstance(part, tuple) and len(part) == 1 for part in arguments)
    words = kind.words_for_one if single and kind.words_for_one else kind.words
    plural = "" if arguments[:1] in ([1], [(1,)]) else "s"
    return words.format(*map(_argument_in_words, parts(template), arguments), s=plural)


def _argument_in_words(part: str, argument: Argument) -> str:
    if part == "{frame}":
        return "" if argument == "input" else f", frame of the {argument}"
    if isinstance(argument, str):
        words = in_words(argument)
        return words[:1].upper() + words[1:]
    if isinstance(argument, int):
        return str(argument)
    *others, last = map(str, argument)
    return f"{', '.join(others)} and {last}" if others else last
