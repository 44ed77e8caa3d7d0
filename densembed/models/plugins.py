"""Densities and models of one's own.

A plugin is an importable Python module that calls `densembed.register_density` or
`densembed.register_model`. Only the person who runs the program names plugins: with `--plugin` on
the command line or in `DENSEMBED_PLUGINS`, separated by commas, which is read when densembed is
imported, so by the app and its workers, too. A checkpoint that needs plugins has their names in
its header; they are compared with those that are loaded, and never imported because a file says so.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable

from torch import nn

from densembed.functional.densities import FAMILIES, Density
from densembed.models.names import MAX_DENSITIES, MODELS, Kind, parse, pattern

VARIABLE = "DENSEMBED_PLUGINS"
MODULE_NAME = re.compile(r"[A-Za-z_]\w{0,40}(\.[A-Za-z_]\w{0,40}){0,5}", re.ASCII)

_origins: dict[str, str] = {}
"""The plugin of each registered density and form of model names."""
_loaded: dict[str, None] = {}
_loading: list[str] = []
_failure: list[str] = []


class PluginError(ValueError):
    """A plugin that cannot be used; the message is one sentence."""


def register_density(family: Density) -> Density:
    """Make a family known by its name, also as a part of models' names.

    Returns the family. Raises ValueError for a name that is taken or that models' names cannot
    hold: anything but up to 20 lowercase letters and digits, a letter first.
    """
    if not isinstance(family, Density):
        raise ValueError(f"Expected an instance of Density; got {family!r:.80}.")
    if not re.fullmatch(r"[a-z][a-z0-9]{0,19}", str(getattr(family, "name", ""))):
        raise ValueError(
            "A density's name is up to 20 lowercase letters and digits, a letter first; "
            f"got {getattr(family, 'name', '')!r:.40}."
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
    form: str, build: Callable[..., nn.Module], words: str | None = None, most: int = MAX_DENSITIES
) -> Callable[..., nn.Module]:
    """Make a kind of model known by a form of names.

    Args:
        form: lowercase letters, digits and hyphens, with {family} where a density's name stands
            and {size} where a number does, e.g. "my-{family}-net-{size}".
        build: called with (input_shape, classes) and what stands in those places; returns a
            module (N, C, H, W) → (N, classes). A `densembed.DensityNetwork` can be shown in
            Explore.
        words: the name in words, with {} for each of those places; the form itself by default.
        most: the largest number that a name may have.
    Returns:
        `build`. Raises ValueError for a form that is taken or malformed.
    """
    places = [part for part in form.split("-") if part in ("{family}", "{size}")]
    rest = "-".join("x" if part in places else part for part in form.split("-"))
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rest):
        raise ValueError(
            "A form of names is lowercase letters, digits and {family} or {size}, separated by "
            f"hyphens; got {form!r:.60}."
        )
    words = re.sub(r"{\w+}", "{}", form) if words is None else words
    try:
        words.format(*places)
    except (IndexError, KeyError, ValueError):
        raise ValueError(f"Expected words with {len(places)} times {{}}; got {words!r}.") from None
    taken = form in MODELS or any(re.fullmatch(pattern(other), form) for other in MODELS)
    _claim(form, taken, getattr(build, "__module__", None) or "__main__")
    MODELS[form] = Kind(build, words, most)
    return build


def _claim(name: str, taken: bool, module: str) -> None:
    origin = _loading[-1] if _loading else _importable(module)
    if taken and _origins.get(name) != origin:  # one's own may be replaced, as a notebook does
        raise ValueError(f"The name {name!r} is taken by {_origins.get(name, 'densembed')}.")
    _origins[name] = origin
    _loaded[origin] = None


def _importable(module: str) -> str:
    """The name by which a script's own definitions could be imported elsewhere."""
    main = sys.modules.get("__main__")
    if module != "__main__" or main is None:
        return module
    if spec := getattr(main, "__spec__", None):
        return spec.name
    name = os.path.splitext(os.path.basename(getattr(main, "__file__", "")))[0]
    return name if MODULE_NAME.fullmatch(name) else module


def load(names: Iterable[str] = ()) -> None:
    """Import plugins, and name them to the processes that this one will start.

    Raises PluginError for the first that cannot be imported, also for one in `DENSEMBED_PLUGINS`.
    """
    if _failure:
        raise PluginError(_failure[0])
    for name in names:
        _load(name)
        here = _named_in_environment()
        if name not in here:
            os.environ[VARIABLE] = ",".join([*here, name])


def load_from_environment() -> None:
    """Import what `DENSEMBED_PLUGINS` names. A failure is kept for `load` to raise.

    It runs where nobody could catch anything: while densembed itself is being imported.
    """
    try:
        for name in _named_in_environment():
            _load(name)
    except PluginError as error:
        _failure.append(str(error))


def _named_in_environment() -> list[str]:
    parts = os.environ.get(VARIABLE, "").split(",")
    return [part.strip() for part in parts if part.strip()]


def _load(name: str) -> None:
    if not MODULE_NAME.fullmatch(name):
        raise PluginError(f"A plugin is the name of a Python module; got {name!r:.80}.")
    _loading.append(name)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise PluginError(
                f"There is no module {name} to load as a plugin: "
                "put its folder into the Python path (PYTHONPATH)."
            ) from error
        raise PluginError(f"The plugin {name} needs the module {error.name}.") from error
    except (Exception, SystemExit) as error:  # a stranger's code may raise anything
        what = " ".join(f"{type(error).__name__}, {error}".split())[:200].rstrip("., ")
        raise PluginError(f"The plugin {name} failed to load: {what}.") from error
    finally:
        _loading.pop()
    _loaded[name] = None


def needed(model: str) -> list[str]:
    """The plugins without which a model of that name cannot be built."""
    form, arguments = parse(model)
    return sorted({_origins[part] for part in (form, *arguments) if part in _origins})


def missing(names: object) -> str | None:
    """The first plugin in a file's list that is not loaded here; None where there is none.

    The list comes from anywhere: what could not be a module's name is passed over.
    """
    if not isinstance(names, list):
        return None
    sound = (name for name in names if isinstance(name, str) and MODULE_NAME.fullmatch(name))
    return next((name for name in sound if name not in _loaded), None)
