"""How the values of signals become the inputs of a model."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Values = TypeVar("Values", bound=Any)  # an array or a tensor
LARGEST = 1e30
"""Largest size of values, of inputs and of a scaling, so that sums of squares are finite."""
SMALLEST = 1 / LARGEST
"""Least standard deviation."""


class Scaling(BaseModel):
    """Mean and standard deviation of the training signals, for all samples and channels together.

    A checkpoint records it, so that other signals become inputs in the same way.

    >>> Scaling(mean=2.0, std=4.0)(10.0)
    2.0
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    mean: float = Field(ge=-LARGEST, le=LARGEST)
    std: float = Field(ge=SMALLEST, le=LARGEST)

    def __call__(self, values: Values) -> Values:
        """The inputs for measured values."""
        return (values - self.mean) / self.std

    def measured(self, inputs: Values) -> Values:
        """The measured values of inputs."""
        return inputs * self.std + self.mean
