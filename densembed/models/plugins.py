"""Loads user-defined densities and models; `registry` registers them.

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
from collections.abc import Iterable

from densembed.models.names import parse, parts
from densembed.text import quoted

VARIABLE = "DENSEMBED_PLUGINS"
MAIN = "__main__"
"""Stands for a notebook, or a script whose name is no module's: no other process can import it."""
MODULE_NAME = re.compile(r"[A-Za-z_]\w{0,40}(\.[A-Za-z_]\w{0,40}){0,5}", re.ASCII)

_origins: dict[str, str] = {}
"""The plugin of each registered density and template of model names."""
_loaded: dict[str, None] = {}
_loading: list[str] = []
_failure: list[str] = []


class PluginError(ValueError):
    """A plugin cannot be used; the message is one sentence."""


def claim(name: str, taken: bool, module: str) -> None:
    """Record which plugin registers a name. Raises ValueError if the name is taken.

    Args:
        name: of a family, or a template of names of models.
        taken: whether it is registered.
        module: name of the module that registers it.
    """
    origin = _loading[-1] if _loading else _importable(module)
    if taken and _origins.get(name) != origin:  # a notebook may register its own names again
        raise ValueError(f"The name {name!r} is taken by {_origins.get(name, 'densembed')}.")
    _origins[name] = origin
    _loaded[origin] = None


def _importable(module: str) -> str:
    """The name under which other processes can import the module, also of a running script."""
    main = sys.modules.get(MAIN)
    if module != MAIN or main is None:
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
        names_in_environment = selected()
        if name not in names_in_environment:
            os.environ[VARIABLE] = ",".join([*names_in_environment, name])


def load_from_environment() -> None:
    """Import the plugins in `DENSEMBED_PLUGINS`.

    It runs while densembed is imported, where no caller could catch an exception, so `load` raises
    any failure later.
    """
    try:
        for name in selected():
            _load(name)
    except PluginError as error:
        _failure.append(str(error))


def selected() -> list[str]:
    """The plugins that `load` and `DENSEMBED_PLUGINS` name."""
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
            remedy = "add its folder to the Python path (PYTHONPATH)"
            if name.endswith(".py"):
                remedy = f"write {name.removesuffix('.py')}, the name without .py"
            raise PluginError(
                f"There is no module {name} to load as a plugin; {remedy}."
            ) from error
        raise PluginError(f"The plugin {name} needs the module {error.name}.") from error
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        raise PluginError(f"The plugin {name} failed to load: {in_line(error)}.") from error
    finally:
        _loading.pop()
    if name not in _origins.values():
        raise PluginError(
            f"The module {name} registers no density and no model, so it is no plugin."
        )
    _loaded[name] = None


def is_plugin(name: str) -> bool:
    """Whether a family or a template of names of models is a plugin's."""
    return name in _origins


def in_line(error: BaseException) -> str:
    """The type and the message of foreign code's exception, in one line without a full stop."""
    return " ".join(f"{type(error).__name__}, {error}".split())[:200].rstrip("., ")


def needed(model: str) -> list[str]:
    """The plugins that the model with this name needs."""
    template, arguments = parse(model)
    families = [
        family
        for part, family in zip(parts(template), arguments, strict=True)
        if part == "{family}" and isinstance(family, str)
    ]
    return sorted({_origins[name] for name in [template, *families] if name in _origins})


def missing(names: object) -> str | None:
    """The first plugin in a file's list that is not loaded, or None.

    The list is not trusted: entries that cannot be names of modules are ignored.
    """
    if not isinstance(names, list):
        return None
    modules = (name for name in names if isinstance(name, str) and MODULE_NAME.fullmatch(name))
    return next((name for name in modules if name not in _loaded), None)
