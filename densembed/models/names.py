"""Networks by name, as used on the command line, in links and in checkpoints.

A name is the complete configuration of a network. `MODELS` maps a template of names, such as
"{family}-el-{size}", to the function that builds the networks with those names. A new kind of
model is one entry there; `densembed.register_model` adds one from outside the package.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from densembed.functional.densities import FAMILIES, in_words
from densembed.models import architectures
from densembed.text import unknown

MAX_DENSITIES = 64
"""Largest B in a name. 64² densities; larger numbers, such as typing errors, exhaust the memory."""
MAX_HIDDEN = 4096
MAX_STAGES = 3

Argument = str | int | tuple[int, ...]
"""What a name has in place of {family}, {size} or {maps}."""

PARTS = {"{size}": r"(\d{1,9})", "{maps}": rf"(\d{{1,9}}(?:-\d{{1,9}}){{0,{MAX_STAGES - 1}}})"}
PLACEHOLDERS = {"{family}": "FAMILY", "{size}": "N", "{maps}": "MAPS"}
"""The parts of templates, and how help and errors write them."""


@dataclass(frozen=True)
class Kind:
    """A kind of model: how one is built, and its name in words.

    `build` is called with (input_shape, classes) and one argument per part of the template: text
    for {family}, a number for {size} and a tuple of numbers for {maps}. `words` has {} for each
    part; `words_for_one` replaces it if {maps} is a single number. `max_size` bounds all numbers.
    """

    build: Callable[..., nn.Module]
    words: str
    max_size: int = MAX_DENSITIES
    words_for_one: str = ""


MODELS: dict[str, Kind] = {
    "linear": Kind(architectures.perceptron, "Linear classifier"),
    "mlp-{size}": Kind(architectures.perceptron, "MLP with {} hidden units", MAX_HIDDEN),
    "{family}-el-{size}": Kind(architectures.fixed_embedding_network, "{}-EL, B = {}"),
    "{family}-el-mnn-{size}-{size}": Kind(
        architectures.micro_embedding_network, "{}-EL with mNN, B = {}, B₀ = {}"
    ),
    "adaptive-conv-pool-{family}-el-{size}": Kind(
        architectures.conv_pool_embedding_network,
        "Adaptive convolution and pooling, {}-EL, B = {}",
    ),
    "adaptive-conv-pool-{family}-el-mnn-{size}-{size}": Kind(
        architectures.conv_pool_embedding_network,
        "Adaptive convolution and pooling, {}-EL with mNN, B = {}, B₀ = {}",
    ),
    "{family}-el-mnn-scale-{size}-{size}": Kind(
        partial(architectures.micro_embedding_network, adaptive_scale=True),
        "{}-EL with mNN of learned scales, B = {}, B₀ = {}",
    ),
    "stages-{maps}-{family}-el-{size}": Kind(
        architectures.staged_embedding_network,
        "Adaptive stages of {} maps, {}-EL, B = {}",
        words_for_one="One adaptive stage of {} maps, {}-EL, B = {}",
    ),
    "stages-{maps}-{family}-el-mnn-{size}-{size}": Kind(
        architectures.staged_embedding_network,
        "Adaptive stages of {} maps, {}-EL with mNN, B = {}, B₀ = {}",
        words_for_one="One adaptive stage of {} maps, {}-EL with mNN, B = {}, B₀ = {}",
    ),
    "cnn-{maps}": Kind(architectures.plain_cnn, "Plain CNN of {} maps"),
}


def pattern(template: str) -> str:
    """The regular expression of the names of a template."""
    parts = PARTS | {"{family}": f"({'|'.join(map(re.escape, FAMILIES))})"}
    return "".join(parts.get(part) or re.escape(part) for part in _split(template))


def parse(name: str) -> tuple[str, list[Argument]]:
    """The template of a name, and the arguments that stand in place of its parts.

    Raises ValueError for a name without a template, or with a number out of range.

    >>> parse("stages-8-16-logistic-el-5")
    ('stages-{maps}-{family}-el-{size}', [(8, 16), 'logistic', 5])
    """
    for template, kind in MODELS.items():
        match = re.fullmatch(pattern(template), name, re.ASCII)
        if not match:
            continue
        parts = [part for part in _split(template) if part in PLACEHOLDERS]
        arguments: list[Argument] = []
        sizes: list[int] = []
        for part, text in zip(parts, match.groups(), strict=True):
            numbers = () if part == "{family}" else tuple(map(int, text.split("-")))
            sizes += numbers
            arguments.append({"{family}": text, "{maps}": numbers}.get(part) or numbers[0])
        if all(1 <= size <= kind.max_size for size in sizes):
            return template, arguments
        shown = repr(name[:60])  # names may come from links, of any length
        raise ValueError(f"The sizes in {shown} must lie between 1 and {kind.max_size}.")
    raise ValueError(
        f"{unknown('model', name, _similar_names(name))}; names look like {templates()}. "
        f"FAMILY is one of {', '.join(FAMILIES)}, N is a number, and MAPS is one to {MAX_STAGES} "
        "numbers, as in 8-16."
    )


def templates() -> str:
    """The templates of all names for readers: "linear, mlp-N, FAMILY-el-N, …"."""
    return ", ".join(
        "".join(PLACEHOLDERS.get(part, part) for part in _split(template)) for template in MODELS
    )


def _split(template: str) -> list[str]:
    return re.split(r"({\w+})", template)


def _similar_names(name: str) -> list[str]:
    """One name per template and family, with the numbers of `name` where it has any."""
    names = []
    numbers = re.findall(r"\d{1,9}", name, re.ASCII)
    for template in MODELS:
        rest = iter(numbers)
        stages = min(max(len(numbers) - template.count("{size}"), 1), MAX_STAGES)
        counts = {"{size}": 1, "{maps}": stages}
        filled = "".join(
            "-".join(next(rest, "5") for _ in range(counts[part])) if part in counts else part
            for part in _split(template)
        )
        families = FAMILIES if "{family}" in template else [""]
        names += [filled.format(family=family) for family in families]
    return names


def check_name(name: str) -> str:
    """Returns the name if a model can be built from it, and raises ValueError otherwise."""
    parse(name)
    return name


def build(
    name: str, input_shape: tuple[int, int, int] = (1, 28, 28), *, classes: int = 10
) -> nn.Module:
    """A model with fresh parameters.

    Args:
        name: a name with one of the templates in `MODELS`: `linear`, `mlp-50`, `logistic-el-5`
            (B = 5), `logistic-el-mnn-10-5` (B = 10, B₀ = 5), `stages-8-16-logistic-el-8`, ….
        input_shape: (channels, height, width).
        classes: number of outputs.
    Raises:
        ValueError: for an unknown name, sizes out of range, or images too small for the network.

    >>> parameter_count(build("logistic-el-5"))
    360
    """
    if len(input_shape) != 3 or min(*input_shape, classes) < 1:
        raise ValueError(
            "Expected an input_shape (channels, height, width) and classes, all at least 1; "
            f"got {tuple(input_shape)} and {classes} classes."
        )
    template, arguments = parse(name)
    return MODELS[template].build(tuple(input_shape), classes, *arguments)


def parameter_count(model: nn.Module) -> int:
    """Number of trainable parameters, as the paper's tables count them."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe(name: str) -> str:
    """A model's name in words.

    >>> describe("logistic-el-mnn-10-5")
    'Logistic-EL with mNN, B = 10, B₀ = 5'
    >>> describe("cnn-8-16-32")
    'Plain CNN of 8, 16 and 32 maps'
    """
    template, arguments = parse(name)
    kind = MODELS[template]
    single = any(isinstance(part, tuple) and len(part) == 1 for part in arguments)
    words = kind.words_for_one if single and kind.words_for_one else kind.words
    return words.format(*map(_argument_in_words, arguments))


def _argument_in_words(argument: Argument) -> str:
    if isinstance(argument, str):
        words = in_words(argument)
        return words[:1].upper() + words[1:]
    if isinstance(argument, int):
        return str(argument)
    *others, last = map(str, argument)
    return f"{', '.join(others)} and {last}" if others else last
