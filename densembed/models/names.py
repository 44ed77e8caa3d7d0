"""Models by name: what the command line, the pages and the checkpoints call a network.

A name is the whole configuration of a network. `MODELS` maps a form of names, such as
"{family}-el-{size}", to what builds them; a new kind of model is one line there, and
`densembed.register_model` adds one from outside.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from densembed.functional.densities import FAMILIES, in_words
from densembed.models import architectures
from densembed.text import unknown

MAX_DENSITIES = 64
"""Largest B in a name: 64² densities; beyond it a misspelt name would only exhaust the memory."""
MAX_HIDDEN = 4096


@dataclass(frozen=True)
class Kind:
    """A kind of model: how one is built, and its name in words.

    `build` takes (input_shape, classes) and then what the name has in place of {family} and
    {size}, as text and as numbers from 1 to `most`. `words` has {} for each of those.
    """

    build: Callable[..., nn.Module]
    words: str
    most: int = MAX_DENSITIES


MODELS: dict[str, Kind] = {
    "linear": Kind(architectures.perceptron, "Linear classifier"),
    "mlp-{size}": Kind(architectures.perceptron, "MLP, {} hidden units", MAX_HIDDEN),
    "{family}-el-{size}": Kind(architectures.embedded, "{}-EL, B = {}"),
    "{family}-el-mnn-{size}-{size}": Kind(
        architectures.micro_embedded, "{}-EL with mNN, B = {}, B₀ = {}"
    ),
    "adaptive-conv-pool-{family}-el-{size}": Kind(
        architectures.deep_embedded, "Adaptive convolution and pooling, {}-EL, B = {}"
    ),
    "adaptive-conv-pool-{family}-el-mnn-{size}-{size}": Kind(
        architectures.deep_embedded,
        "Adaptive convolution and pooling, {}-EL with mNN, B = {}, B₀ = {}",
    ),
    "{family}-el-mnn-scale-{size}-{size}": Kind(
        architectures.scaled_micro_embedded, "{}-EL with mNN of learned scales, B = {}, B₀ = {}"
    ),
    "stages-{size}-{family}-el-{size}": Kind(
        lambda shape, classes, a, *el: architectures.staged(shape, classes, (a,), *el),
        "One adaptive stage of {} maps, {}-EL, B = {}",
    ),
    "stages-{size}-{size}-{family}-el-{size}": Kind(
        lambda shape, classes, a, b, *el: architectures.staged(shape, classes, (a, b), *el),
        "Adaptive stages of {} and {} maps, {}-EL, B = {}",
    ),
    "stages-{size}-{size}-{size}-{family}-el-{size}": Kind(
        lambda shape, classes, a, b, c, *el: architectures.staged(shape, classes, (a, b, c), *el),
        "Adaptive stages of {}, {} and {} maps, {}-EL, B = {}",
    ),
    "stages-{size}-{size}-{family}-el-mnn-{size}-{size}": Kind(
        lambda shape, classes, a, b, *el: architectures.staged(shape, classes, (a, b), *el),
        "Adaptive stages of {} and {} maps, {}-EL with mNN, B = {}, B₀ = {}",
    ),
    "cnn-{size}-{size}": Kind(
        lambda shape, classes, *maps: architectures.plain_cnn(shape, classes, maps),
        "Plain CNN of {} and {} maps",
    ),
    "cnn-{size}-{size}-{size}": Kind(
        lambda shape, classes, *maps: architectures.plain_cnn(shape, classes, maps),
        "Plain CNN of {}, {} and {} maps",
    ),
}


def pattern(form: str) -> str:
    """The regular expression of the names of a form."""
    families = "|".join(map(re.escape, FAMILIES))
    parts = {"{family}": f"({families})", "{size}": r"(\d{1,9})"}
    return "".join(parts.get(part) or re.escape(part) for part in re.split(r"({\w+})", form))


def parse(name: str) -> tuple[str, list[str | int]]:
    """The form of a name, and what it has in place of {family} and {size}.

    Raises ValueError for a name of no known form or with a number out of range.
    """
    for form, kind in MODELS.items():
        match = re.fullmatch(pattern(form), name, re.ASCII)
        if not match:
            continue
        arguments = [int(group) if group.isdecimal() else group for group in match.groups()]
        if all(1 <= number <= kind.most for number in arguments if isinstance(number, int)):
            return form, arguments
        shown = repr(name[:60])  # a name comes from anywhere, of any length
        raise ValueError(f"The sizes in {shown} must lie between 1 and {kind.most}.")
    raise ValueError(
        f"{unknown('model', name, _names_like(name))}; names look like {forms()}. "
        f"FAMILY is one of {', '.join(FAMILIES)}, and N is a number."
    )


def forms() -> str:
    """The forms of all names, as a person reads them: "linear, mlp-N, FAMILY-el-N, …"."""
    return ", ".join(form.format(family="FAMILY", size="N") for form in MODELS)


def _names_like(name: str) -> list[str]:
    """A name of every form and family, with the numbers of this one as far as there are any."""
    found = []
    for form in MODELS:
        sizes = iter(re.findall(r"\d{1,9}", name, re.ASCII))
        filled = re.sub(r"{size}", lambda _, sizes=sizes: next(sizes, "5"), form)
        families = FAMILIES if "{family}" in form else [""]
        found += [filled.format(family=family) for family in families]
    return found


def check_name(name: str) -> str:
    """The name itself, if a model can be built from it; raises ValueError if not."""
    parse(name)
    return name


def build(
    name: str, input_shape: tuple[int, int, int] = (1, 28, 28), classes: int = 10
) -> nn.Module:
    """A model with fresh parameters.

    Args:
        name: of one of the forms in `MODELS`, with any numbers and family: `linear`, `mlp-50`,
            `logistic-el-5` (B = 5), `logistic-el-mnn-10-5` (B = 10, B₀ = 5),
            `adaptive-conv-pool-logistic-el-8`, `adaptive-conv-pool-logistic-el-mnn-8-4`.
        input_shape: (channels, height, width).
        classes: number of outputs.
    Raises:
        ValueError: for an unknown name, sizes out of range, or pictures too small for it.
    """
    if len(input_shape) != 3 or min(*input_shape, classes) < 1:
        raise ValueError(
            "input_shape is (channels, height, width) and all sizes are at least 1; "
            f"got {tuple(input_shape)} and {classes} classes."
        )
    form, arguments = parse(name)
    return MODELS[form].build(tuple(input_shape), classes, *arguments)


def parameter_count(model: nn.Module) -> int:
    """Number of trainable parameters, as the paper's tables count them."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe(name: str) -> str:
    """A model's name in words, e.g. "Logistic-EL with mNN, B = 10, B₀ = 5"."""
    form, arguments = parse(name)
    shown = [_capital(in_words(part)) if isinstance(part, str) else part for part in arguments]
    return MODELS[form].words.format(*shown)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
