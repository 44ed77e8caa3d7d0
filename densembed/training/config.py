"""The config of a run. Its fields are also the command line's flags and parameters of links."""

import re
from typing import Annotated, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from densembed.data.grids import OWN, check_grids
from densembed.models.names import check_name
from densembed.text import ascii_minus, closest, printable


class RunConfig(BaseModel):
    """All settings that determine the result of a training, apart from the machine.

    The defaults are the paper's (Section 4): 20 epochs of Adam with a one-cycle schedule up to a
    learning rate of 0.002. The batch size is not in the paper.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: Annotated[str, AfterValidator(check_name)] = Field(
        "logistic-el-mnn-10-5", description="name of the network", max_length=60
    )
    dataset: str = Field("digits", description="name of the data set", max_length=1000)
    epochs: int = Field(20, ge=1, le=10_000, description="passes over the training data")
    grid: Annotated[str, AfterValidator(check_grids)] = Field(
        OWN,
        description=f"pixels or samples to train on: N, HxW, or {OWN} for those of the data",
        max_length=100,
    )
    shift: int = Field(
        0,
        ge=0,
        le=64,
        description="largest random shift of an input in each epoch, in pixels or samples",
    )
    batch_size: int = Field(128, ge=1, le=100_000, description="inputs per step")
    learning_rate: float = Field(
        0.002, gt=0, le=1e6, description="maximum of the one-cycle schedule"
    )
    density_rate: float = Field(
        1.0,
        gt=0,
        le=1e3,
        description="learning rate of the densities (α and β), relative to that of the weights",
    )
    weight_decay: float = Field(
        0.0, ge=0, le=1, description="decoupled weight decay of the weights"
    )
    locator_rate: float = Field(
        1.0, gt=0, le=1e3, description="learning rate of a micro network, relative to the others"
    )
    locator_decay: float = Field(
        0.0, ge=0, le=10, description="additional decoupled weight decay of a micro network"
    )
    location_start: Literal["normal", "grid"] = Field(
        "normal",
        description="initial locations: normal (the paper's, random α from N(0, 0.4)) or a grid",
    )
    scale_start: float = Field(
        -3.0, ge=-8, le=4, description="mean of the initial β: the larger, the wider the densities"
    )
    seed: int = Field(0, ge=0, lt=2**31, description="seed for initialisation and data order")
    seeds: int = Field(1, ge=1, le=100, description="members trained together: seed, seed + 1, …")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="where to train")
    compile: bool = Field(
        False, description="compile the step: takes about 10 s, pays off in long runs"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false as numbers, which Pydantic takes for 1 and 0; read a minus sign."""
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and kind is not bool:
            raise PydanticCustomError("boolean", "not a number")
        return ascii_minus(value) if isinstance(value, str) and kind in (int, float) else value


def explain(error: ValidationError) -> str:
    """One sentence about the first invalid field of a ValidationError, and what it accepts."""
    first = error.errors(include_url=False)[0]
    # The name of an unexpected field is arbitrary: shortened, and on one line.
    place = [" ".join(str(part).split())[:40] for part in first["loc"]]
    field = ".".join(place) or "config"
    if first["type"] == "value_error":  # raised by densembed
        return f"{str(first['ctx']['error']).rstrip('.')}."
    if first["type"] == "extra_forbidden":
        meant = closest(place[-1], RunConfig.model_fields)
        return f"There is no field {field!r}" + (f" (did you mean {meant!r}?)." if meant else ".")
    owner, name = place[-2:] if len(place) > 1 else (error.title, field)
    if owner in ("RunConfig", "Plan", "config", "base") and name in RunConfig.model_fields:
        words = name.replace("_", " ").capitalize()
        if first["type"] == "string_unicode":  # a path whose bytes are not UTF-8
            rename = " Rename the folder." if name == "dataset" else ""
            return f"{words} is not valid UTF-8: {printable(first['input'])}.{rename}"
        text = str(first["input"])
        hint = " Write decimals with a point." if re.fullmatch(r"[−-]?\d+,\d+", text) else ""
        return f"{words} takes {takes(name)}; got {_short(first['input'])}.{hint}"
    if first["type"] == "string_unicode":
        return f"The field {field!r} is not valid Unicode: {printable(first['input'])[:40]}."
    return f"The field {field!r} is missing or damaged."


def takes(name: str) -> str:
    """The type and range of a field of the config, in words."""
    field = RunConfig.model_fields[name]
    kind = field.annotation
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if kind is bool:
        return "true or false"
    bounds = {
        bound: value
        for rule in field.metadata
        for bound in ("ge", "gt", "le", "lt", "max_length")
        if (value := getattr(rule, bound, None)) is not None
    }
    if kind is str:
        return f"a text of at most {bounds['max_length']:,} characters"
    least = f"from {bounds['ge']:,}" if "ge" in bounds else f"above {bounds['gt']:,} and up"
    most = bounds["le"] if "le" in bounds else bounds["lt"] - 1
    return f"{'a whole number' if kind is int else 'a number'} {least} to {most:,.10g}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]} …"
