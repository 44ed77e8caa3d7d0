"""Builds networks by name, and registers families of densities and kinds of models."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, cast

import torch
from torch import nn

from densembed import cache
from densembed.functional.densities import FAMILIES, Density
from densembed.functional.families import WORDS
from densembed.models.architectures import (
    conv_pool_embedding_network,
    fixed_embedding_network,
    micro_embedding_network,
    perceptron,
    plain_cnn,
    staged_embedding_network,
)
from densembed.models.names import MAX_DENSITIES, MODELS, Kind, parse, pattern
from densembed.models.plugins import claim, in_line, is_plugin

BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "linear": perceptron,
    "mlp-{size}": perceptron,
    "{family}-el-{frame}{size}": fixed_embedding_network,
    "{family}-el-mnn-{frame}{size}-{size}": micro_embedding_network,
    "adaptive-conv-pool-{family}-el-{frame}{size}": conv_pool_embedding_network,
    "adaptive-conv-pool-{family}-el-mnn-{frame}{size}-{size}": conv_pool_embedding_network,
    "{family}-el-mnn-scale-{frame}{size}-{size}": partial(
        micro_embedding_network, adaptive_scale=True
    ),
    "stages-{maps}-{family}-el-{frame}{size}": staged_embedding_network,
    "stages-{maps}-{family}-el-mnn-{frame}{size}-{size}": staged_embedding_network,
    "cnn-{maps}": plain_cnn,
}
"""The function that builds the networks of each template in `names.MODELS`.

It is called with (input_shape, classes) and one argument per part of the template: text for
{family}, "input" or "mass" for {frame}, a number for {size} and a tuple of numbers for {maps}.
"""

PARTS_OF_PLUGINS = ("{family}", "{size}", "{maps}")
"""The parts that templates from outside the package may have."""


def build(name: str, input_shape: tuple[int, ...] = (1, 28, 28), *, classes: int = 10) -> nn.Module:
    """A model with fresh parameters.

    Args:
        name: a name with one of the templates in `MODELS`: `linear`, `mlp-50`, `logistic-el-5`
            (B = 5), `logistic-el-mnn-10-5` (B = 10, B₀ = 5), `logistic-el-mass-5` (the same in the
            frame of the mass), `stages-8-16-logistic-el-8`, ….
        input_shape: (channels, height, width) of images, or (channels, length) of signals, for
            which B and B₀ are numbers of densities on the one axis.
        classes: number of outputs.
    Raises:
        TypeError: for a name that is no text.
        ValueError: for an unknown name, sizes out of range, or inputs too small for the network.

    >>> parameter_count(build("logistic-el-5"))
    360
    >>> parameter_count(build("logistic-el-25", (1, 40)))  # 25 densities on one axis
    310
    """
    counted = isinstance(classes, Integral) and not isinstance(classes, bool)
    if not _is_shape(input_shape) or not counted or classes < 1:
        raise ValueError(
            "Expected an input_shape (channels, height, width) or (channels, length) and classes, "
            "all at least 1; "
            f"got {input_shape!r} and {classes!r} classes."
        )
    if not isinstance(name, str):
        raise TypeError(f"Expected the name of a network, a str; got {type(name).__name__}.")
    template, arguments = parse(name)
    network = BUILDERS[template](tuple(input_shape), classes, *arguments)
    if is_plugin(template):
        _check(network, name, tuple(input_shape), classes)
    return network


def _check(network: object, name: str, input_shape: tuple[int, ...], classes: int) -> None:
    """Raise ValueError unless a plugin's network maps inputs to one output per class."""
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"The model {name} of a plugin is no torch.nn.Module; its builder returned "
            f"{type(network).__name__}."
        )
    training, inputs = network.training, torch.zeros(2, *input_shape)
    fault = f"The model {name} of a plugin does not map inputs {tuple(inputs.shape)} to outputs "
    try:
        with torch.no_grad():
            outputs = network.eval()(inputs)
    except Exception as error:  # foreign code may raise anything
        raise ValueError(f"{fault}{(2, classes)}: {in_line(error)}.") from error
    finally:
        network.train(training)
    if getattr(outputs, "shape", None) != (2, classes):
        got = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
        raise ValueError(f"{fault}{(2, classes)}; got {got}.")


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) in (2, 3)
        and all(isinstance(size, Integral) and int(size) >= 1 for size in value)
    )


def at_grid(model: nn.Module, sizes: tuple[int, ...]) -> nn.Module:
    """The same weights for images of another size, (H, W), or signals of another length.

    Raises ValueError for a model that is made for one size, such as a plugin's without `at`.
    """
    try:
        return cast(Any, model).at(sizes)
    except (AttributeError, ValueError) as error:
        raise ValueError("The model takes inputs of one size only.") from error


def parameter_count(model: nn.Module) -> int:
    """Number of parameters, as the paper's tables count them, of frozen networks, too."""
    if not isinstance(model, nn.Module):
        raise TypeError(
            "Expected a torch.nn.Module, for example build('logistic-el-5'); got "
            f"{type(model).__name__}."
        )
    return sum(parameter.numel() for parameter in model.parameters())


def register_density(family: Density) -> Density:
    """Register a family under its name, for layers and for names of models.

    Returns the family. Raises ValueError if the name is taken or is not up to 20 lowercase letters
    and digits, starting with a letter.
    """
    if not isinstance(family, Density):
        raise ValueError(f"Expected an instance of Density; got {family!r:.80}.")
    if not re.fullmatch(r"[a-z][a-z0-9]{0,19}", str(getattr(family, "name", ""))):
        raise ValueError(
            "The name of a density is up to 20 lowercase letters and digits, starting with a "
            f"letter; got {getattr(family, 'name', '')!r:.40}."
        )
    spread = [getattr(family, measure, 0) for measure in ("std", "iqr")]
    if not all(isinstance(value, float | int) and value > 0 for value in spread):
        raise ValueError(
            "Expected a density with a positive std and iqr (std may be infinite); "
            f"got {spread[0]!r:.40} and {spread[1]!r:.40}."
        )
    taken = family.name in FAMILIES
    claim(family.name, taken, type(family).__module__)
    FAMILIES[family.name] = family
    WORDS[family.name] = family.words or family.name
    if taken:
        cache.clear()  # of networks with the family that is replaced
    return family


def register_model(
    template: str,
    build: Callable[..., nn.Module],
    *,
    words: str | None = None,
    max_size: int = MAX_DENSITIES,
) -> Callable[..., nn.Module]:
    """Register a kind of model under a template of names.

    Args:
        template: lowercase letters, digits and hyphens, with {family} in place of the name of a
            density, {size} of a number and {maps} of one to three numbers, such as
            "my-{family}-net-{size}".
        build: called with (input_shape, classes) and the name of the density (text), the number or
            the tuple of numbers for each of those parts. It returns a module
            (N, C, *sizes) → (N, classes). Explore can show a `densembed.DensityNetwork`.
        words: the name in words, with {} for each of those parts; by default the template.
        max_size: the largest number that is allowed in a name.
    Returns:
        `build`. Raises ValueError for a template that is taken or malformed.
    """
    parts = template.split("-")
    arguments = [part for part in parts if part in PARTS_OF_PLUGINS]
    literal = "-".join("x" if part in arguments else part for part in parts)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", literal):
        raise ValueError(
            "A template of names consists of lowercase letters, digits and {family}, {size} or "
            f"{{maps}}, separated by hyphens; got {template!r:.60}."
        )
    words = re.sub(r"{\w+}", "{}", template) if words is None else words
    try:
        words.format(*arguments)
    except (IndexError, KeyError, ValueError):
        raise ValueError(
            f"Expected words with {{}} {len(arguments)} times; got {words!r}."
        ) from None
    forms = {other.replace("{frame}", "") for other in MODELS}
    taken = template in forms or any(re.fullmatch(pattern(other), template) for other in MODELS)
    claim(template, taken, getattr(build, "__module__", None) or "__main__")
    MODELS[template], BUILDERS[template] = Kind(words, max_size), build
    if taken:
        cache.clear()
    return build
