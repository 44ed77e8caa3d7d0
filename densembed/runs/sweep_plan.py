"""What a sweep is told: a grid over fields of a config."""

from itertools import product

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from densembed.data import DATASETS, is_folder
from densembed.text import unknown
from densembed.training.config import RunConfig, explain

MOST_MEMBERS = 1000
FIXED = ("seed", "seeds")


class Plan(BaseModel):
    """What a sweep is told: a config, and for some of its fields several values each.

    `base.seeds` members are trained of each combination: base.seed, base.seed + 1, …
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    base: RunConfig
    grid: dict[str, list]

    @model_validator(mode="after")
    def _check(self) -> "Plan":
        known = [name for name in RunConfig.model_fields if name not in FIXED]
        if not self.grid:
            raise ValueError("A sweep needs a field with several values")
        for name, values in self.grid.items():
            if name not in known:
                sentence = unknown("field of a sweep", name, known)
                raise ValueError(f"{sentence}; choose from {', '.join(known)}")
            if not values or len(set(map(str, values))) < len(values):
                raise ValueError(f"Give values of {name.replace('_', ' ')} that differ")
        count = self.base.seeds
        for values in self.grid.values():
            count *= len(values)
        if count > MOST_MEMBERS:
            raise ValueError(f"{count:,} trainings are too many; {MOST_MEMBERS:,} are the most")
        self.combinations()  # each is a config, or raises
        return self

    def combinations(self) -> list[dict]:
        """The values of the grid's fields in each combination, as the config takes them."""
        found = []
        for values in product(*self.grid.values()):
            change = dict(zip(self.grid, values, strict=True))
            config = RunConfig(**self.base.model_dump() | change)
            found.append({name: getattr(config, name) for name in self.grid})
        return found

    def members(self) -> list[RunConfig]:
        """A config for each seed of each combination."""
        base = self.base.model_dump()
        return [
            RunConfig(**base | change | {"seed": self.base.seed + k, "seeds": 1})
            for change in self.combinations()
            for k in range(self.base.seeds)
        ]


def read_values(name: str, text: str) -> list:
    """The values of a field from a person's "0.002, 0.01". Raises ValueError for none."""
    values: list[str] = []
    for part in text.split(","):
        own = part.strip() in DATASETS or is_folder(part.strip())
        if name == "dataset" and values and is_folder(values[-1].strip()) and not own:
            values[-1] += f",{part}"  # a comma within the path of a folder
        else:
            values.append(part)
    values = [part.strip() for part in values if part.strip()]
    if not values:
        raise ValueError(f"Give the values of {name}, separated by commas.")
    return values


def make_plan(base: dict, grid: dict[str, list]) -> Plan:
    """A plan. Raises ValueError with one sentence."""
    try:
        first = {name: values[0] for name, values in grid.items() if values}
        return Plan(base=RunConfig(**base | first), grid=grid)
    except ValidationError as error:
        raise ValueError(explain(error)) from error
