"""The plan of a sweep: a grid over fields of a config."""

import os
import re
from collections import Counter
from itertools import product

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from densembed.data.names import NAMES, PREFIX, TABLE, is_path
from densembed.files import in_home
from densembed.text import quoted, setting, unknown
from densembed.training.config import RunConfig, explain

MOST_MEMBERS = 1000
FIXED = ("seed", "seeds")


class Plan(BaseModel):
    """A config, and several values for some of its fields.

    Each combination has `base.seeds` members with the seeds base.seed, base.seed + 1, …
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    base: RunConfig
    grid: dict[str, list]

    @model_validator(mode="after")
    def _check(self) -> "Plan":
        fields = [name for name in RunConfig.model_fields if name not in FIXED]
        if not self.grid:
            raise ValueError("A sweep needs several values of a setting")
        for name, values in self.grid.items():
            if name not in fields:
                sentence = unknown("setting of a sweep", name, fields)
                raise ValueError(f"{sentence}; choose from {', '.join(fields)}")
            if not values:
                raise ValueError(f"Give the values of {name.replace('_', ' ')}")
        count = self.base.seeds
        for values in self.grid.values():
            count *= len(values)
        if count > MOST_MEMBERS:
            raise ValueError(f"{count:,} trainings are too many. The limit is {MOST_MEMBERS:,}")
        combinations = self.combinations()  # raises if one is not valid
        for name, values in self.grid.items():
            times = Counter(change[name] for change in combinations)  # 0.01 is 1e-2
            value, most = times.most_common(1)[0]
            if most > len(combinations) // len(values):
                raise ValueError(
                    f"Give different values of {name.replace('_', ' ')}; {setting(value)} is given "
                    "more than once"
                )
        return self

    def combinations(self) -> list[dict]:
        """The validated values of the grid's fields in each combination."""
        combinations = []
        for values in product(*self.grid.values()):
            change = dict(zip(self.grid, values, strict=True))
            config = RunConfig(**self.base.model_dump() | change)
            combinations.append({name: getattr(config, name) for name in self.grid})
        return combinations

    def members(self) -> list[RunConfig]:
        """One config per seed of each combination."""
        base = self.base.model_dump()
        return [
            RunConfig(**base | change | {"seed": self.base.seed + k, "seeds": 1})
            for change in self.combinations()
            for k in range(self.base.seeds)
        ]


def read_values(name: str, text: str) -> list:
    """The values of a field from text like "0.002, 0.01". Raises ValueError if one is missing."""
    if name != "dataset" and re.search(r";|(^|,)\s*0\d", text):  # 0,002 is one number with a comma
        raise ValueError(
            f"Separate the values of {name} by commas, and write decimals with a point; got "
            f"{quoted(text[:40])}."
        )
    values = (
        _dataset_names(text) if name == "dataset" else [value.strip() for value in text.split(",")]
    )
    if not any(values):
        raise ValueError(f"Give the values of {name}, separated by commas.")
    if not all(values):
        raise ValueError(
            f"One of the values of {name} is empty; got {quoted(text[:40])}: write it, or remove "
            "the comma."
        )
    return values


def _dataset_names(text: str) -> list[str]:
    """Names of data sets. A comma or a space may belong to a path."""
    parts, names = text.split(","), [""]
    while parts:
        for count in range(len(parts), 0, -1):  # the longest path that exists
            name = ",".join(parts[:count]).lstrip()
            if _exists(name):
                names.append(name)
                del parts[:count]
                break
        else:
            part = parts.pop(0)
            if is_path(names[-1]) and not _is_name(part) and not _exists(names[-1]):
                names[-1] = f"{names[-1]},{part}".rstrip()
            else:
                names.append(part.strip())
    return names[1:]


def _is_name(text: str) -> bool:
    """Whether a part of a list is the name of a data set, or begins one."""
    return text.strip() in NAMES or is_path(text.strip())


def _exists(name: str) -> bool:
    """Whether a name is that of a folder or a table that exists, with or without what follows @."""
    if name.startswith(TABLE):
        path = name.removeprefix(TABLE)
        ends = [match.start() for match in re.finditer("@", path)]
        columns = {path[:end]: path[end + 1 :] for end in ends}
        return os.path.isfile(in_home(path)) or any(
            os.path.isfile(in_home(table)) and not any(map(_is_name, column.split(",")[1:]))
            for table, column in columns.items()
        )
    path = name.removeprefix(PREFIX)
    places = in_home(path), in_home(re.sub(r"@\d+x\d+x\d+$", "", path))
    return is_path(name) and bool(path.strip()) and any(map(os.path.isdir, places))


def make_plan(base: dict, grid: dict[str, list]) -> Plan:
    """Create a plan. Raises ValueError with one sentence if it is not valid."""
    try:
        first = {name: values[0] for name, values in grid.items() if values}
        return Plan(base=RunConfig(**base | first), grid=grid)
    except ValidationError as error:
        raise ValueError(explain(error)) from error
