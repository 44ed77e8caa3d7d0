"""What a run is told: one validated model whose fields are flags, URL parameters and metadata."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from densembed.models import check_name


class RunConfig(BaseModel):
    """Everything that decides a training run's outcome, apart from the machine.

    The defaults are the paper's training as far as it is stated: 20 epochs of Adam, one cycle up
    to a learning rate of 0.002 (Section 4). The batch size is our choice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, AfterValidator(check_name)] = Field(
        "logistic-el-mnn-10-5", description="network, by name", max_length=60
    )
    dataset: str = Field("digits", description="data set, by name", max_length=200)
    epochs: int = Field(20, ge=1, le=10_000, description="passes over the training images")
    batch_size: int = Field(128, ge=1, le=100_000, description="images a step")
    learning_rate: float = Field(
        0.002, gt=0, le=1e6, allow_inf_nan=False, description="maximum of the one-cycle schedule"
    )
    seed: int = Field(0, ge=0, lt=2**31, description="of initialisation and order of the data")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="where to train")


def explain(error) -> str:
    """One sentence from a pydantic ValidationError, naming the first field that is wrong."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "config"
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{field}: {message}."
