"""The checkpoints and test images of the browser tests."""

from collections.abc import Sequence
from pathlib import Path

import torch

from densembed.data import load_dataset
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from tests.training import files

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "checkpoints/paper"
MOVING, FIXED, SMALL, LINEAR, MLP = (
    "logistic-el-mnn-10-5-digits",
    "logistic-el-15-digits",
    "logistic-el-5",
    "linear",
    "mlp-50",
)
FRAMED = "logistic-el-mnn-mass-6-3"
COLOUR, LETTERS = "colour", "letters"
OF = {key: Checkpoint.open(PAPER / f"{key}.safetensors") for key in (MOVING, FIXED, SMALL, LINEAR)}
STEPS = OF[MOVING].steps
TEST = load_dataset("digits").test
FIELD, INPUT = ".pair .after", ".left .stills figure"


def sample(label: int = 7, example: int = 1) -> torch.Tensor:
    return TEST.images[(TEST.labels == label).nonzero()[example - 1, 0]]


def made(
    model: str,
    shape: tuple[int, ...],
    change=lambda name, value: value,
    classes: Sequence[str] = "abcde",
) -> bytes:
    """A checkpoint of a network with parameters around their initial values."""
    torch.manual_seed(3)
    state = build(model, shape, classes=len(classes)).state_dict()
    parts = {
        name: change(name, value + 0.3 * torch.randn(value.shape))[None, None]
        for name, value in state.items()
    }
    own = {"scaling": {"mean": 0.5, "std": 2.0}} if len(shape) == 2 else {}
    head = files.header(
        config={"model": model},
        input_shape=shape,
        classes=list(classes),
        steps=[0],
        epochs=[],
        **own,
    )
    return files.content(head, parts)
