"""How the values of signals become the inputs of a model."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Values = TypeVar("Values", bound=Any)  # an array or a tensor
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Scaling(BaseModel):
    """Mean and standard deviation of the training signals, for all samples and channels together.

    A checkpoint records it, so that other signals become inputs in the same way.

    >>> Scaling(mean=2.0, std=4.0)(10.0)
    2.0
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    mean: Finite
    std: Finite = Field(gt=0)

    def __call__(self, values: Values) -> Values:
        """The inputs for measured values."""
        return (values - self.mean) / self.std

    def measured(self, inputs: Values) -> Values:
        """The measured values of inputs."""
        return inputs * self.std + self.mean
