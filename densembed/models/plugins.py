"""User-defined densities and models.

A plugin is an importable Python module that calls `densembed.register_density` or
`densembed.register_model`. Only the person who runs the program selects plugins: with `--plugin`
on the command line, or in `DENSEMBED_PLUGINS`, separated by commas. That variable is read when
densembed is imported, so the app and its workers load the same plugins. The header of a checkpoint
lists the plugins that its model needs; these names are only compared with the loaded plugins, so
opening a file never imports code.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable

from torch import nn

from densembed.functional.densities import FAMILIES, Density
from densembed.models.names import MAX_DENSITIES, MODELS, PLACEHOLDERS, Kind, parse, pattern
from densembed.text import quoted

VARIABLE = "DENSEMBED_PLUGINS"
MODULE_NAME = re.compile(r"[A-Za-z_]\w{0,40}(\.[A-Za-z_]\w{0,40}){0,5}", re.ASCII)

_origins: dict[str, str] = {}
"""The plugin of each registered density and template of model names."""
_loaded: dict[str, None] = {}
_loading: list[str] = []
_failure: list[str] = []


class PluginError(ValueError):
    """A plugin cannot be used; the message is one sentence."""


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
    _claim(family.name, family.name in FAMILIES, type(family).__module__)
    FAMILIES[family.name] = family
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
            (N, C, H, W) → (N, classes). Explore can show a `densembed.DensityNetwork`.
        words: the name in words, with {} for each of those parts; by default the template.
        max_size: the largest number that is allowed in a name.
    Returns:
        `build`. Raises ValueError for a template that is taken or malformed.
    """
    parts = template.split("-")
    arguments = [part for part in parts if part in PLACEHOLDERS]
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
    taken = template in MODELS or any(re.fullmatch(pattern(other), template) for other in MODELS)
    _claim(template, taken, getattr(build, "__module__", None) or "__main__")
    MODELS[template] = Kind(build, words, max_size)
    return build


def _claim(name: str, taken: bool, module: str) -> None:
    origin = _loading[-1] if _loading else _importable(module)
    if taken and _origins.get(name) != origin:  # a notebook may register its own names again
        raise ValueError(f"The name {name!r} is taken by {_origins.get(name, 'densembed')}.")
    _origins[name] = origin
    _loaded[origin] = None


def _importable(module: str) -> str:
    """The name under which other processes can import the module, also of a running script."""
    main = sys.modules.get("__main__")
    if module != "__main__" or main is None:
        return module
    if spec := getattr(main, "__spec__", None):
        return spec.name
    name = os.path.splitext(os.path.basename(getattr(main, "__file__", "")))[0]
    return name if MODULE_NAME.fullmatch(name) else module


def load(names: Iterable[str] = ()) -> None:
    """Import plugins, also in processes that this one starts.

    Raises PluginError for the first plugin that cannot be imported, including plugins in
    `DENSEMBED_PLUGINS`.
    """
    if _failure:
        raise PluginError(_failure[0])
    for name in names:
        _load(name)
        names_in_environment = _names_in_environment()
        if name not in names_in_environment:
            os.environ[VARIABLE] = ",".join([*names_in_environment, name])


def load_from_environment() -> None:
    """Import the plugins in `DENSEMBED_PLUGINS`.

    It runs while densembed is imported, where no caller could catch an exception, so `load` raises
    any failure later.
    """
    try:
        for name in _names_in_environment():
            _load(name)
    except PluginError as error:
        _failure.append(str(error))


def _names_in_environment() -> list[str]:
    parts = os.environ.get(VARIABLE, "").split(",")
    return [part.strip() for part in parts if part.strip()]


def _load(name: str) -> None:
    if not MODULE_NAME.fullmatch(name):
        raise PluginError(
            f"A plugin is given by the name of a Python module; got {quoted(name[:80])}."
        )
    _loading.append(name)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise PluginError(
                f"There is no module {name} to load as a plugin; "
                "add its folder to the Python path (PYTHONPATH)."
            ) from error
        raise PluginError(f"The plugin {name} needs the module {error.name}.") from error
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        what = " ".join(f"{type(error).__name__}, {error}".split())[:200].rstrip("., ")
        raise PluginError(f"The plugin {name} failed to load: {what}.") from error
    finally:
        _loading.pop()
    _loaded[name] = None


def needed(model: str) -> list[str]:
    """The plugins that the model with this name needs."""
    template, arguments = parse(model)
    parts = [template, *(part for part in arguments if isinstance(part, str))]
    return sorted({_origins[part] for part in parts if part in _origins})


def missing(names: object) -> str | None:
    """The first plugin in a file's list that is not loaded, or None.

    The list is not trusted: entries that cannot be names of modules are ignored.
    """
    if not isinstance(names, list):
        return None
    modules = (name for name in names if isinstance(name, str) and MODULE_NAME.fullmatch(name))
    return next((name for name in modules if name not in _loaded), None)
