"""The plan of a sweep in words, as Markdown."""

from collections.abc import Sequence

from densembed.data import title
from densembed.models.names import describe
from densembed.runs.sweep_plan import Plan
from densembed.text import counted, setting
from densembed.training.config import RunConfig
from pages.widgets.common.link import plain

NAMED = 3
"""Maximum number of models that a heading names; more are counted."""
LISTED = 6
"""Maximum number of values that are all listed; of more, the first ones and the last."""


def heading(plan: Plan) -> str:
    """The models by name if they are few, and the number of values per other setting."""
    parts = [
        # Semicolons, as descriptions have commas.
        "; ".join(map(describe, values))
        if _named(name, values)
        else f"{len(values)} models"
        if name == "model"
        else f"{counted(len(values), 'value')} of {_words(name)}"
        for name, values in plan.grid.items()
    ]
    return " · ".join(parts)


def extent(plan: Plan) -> str:
    """Data, epochs and seeds, as far as they are the same for all trainings."""
    base, same = plan.base, {"dataset", "epochs"} - set(plan.grid)
    parts = [
        plain(title(base.dataset)) if "dataset" in same else "",
        counted(base.epochs, "epoch") if "epochs" in same else "",
        counted(base.seeds, "seed"),
    ]
    return " · ".join(filter(None, parts))


def caption(plan: Plan) -> str:
    """The rest of the plan: its extent, settings other than the defaults, and the values."""
    shown = {"model", "dataset", "epochs", "seeds", *plan.grid}
    settings = [
        f"{_words(name)} {setting(getattr(plan.base, name))}"
        for name, field in RunConfig.model_fields.items()
        if name not in shown and getattr(plan.base, name) != field.default
    ]
    varied = []
    for name, entries in plan.grid.items():
        values = list(dict.fromkeys(change[name] for change in plan.combinations()))
        if name == "model":
            names = [describe(one) for one in values]
            varied += [] if _named(name, entries) else [_list(names, "; ")]
        else:
            varied.append(f"{_words(name)} {_list(values)}")
    return " · ".join([extent(plan), *map(plain, settings + varied)])


def _named(name: str, values: Sequence) -> bool:
    return name == "model" and len(values) <= NAMED


def _list(values: Sequence, separator: str = ", ") -> str:
    shown = values if len(values) <= LISTED else [*values[: LISTED - 2], "…", values[-1]]
    return separator.join(map(setting, shown))


def _words(name: str) -> str:
    return name.replace("_", " ")
