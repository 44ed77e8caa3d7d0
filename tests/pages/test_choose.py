"""The message of the pad about a drawing."""

from pathlib import Path

import torch

from densembed.data import load_dataset
from densembed.fields import novelty
from densembed.training.checkpoint import Checkpoint
from pages.widgets.inputs.choose import DRAW, UPLOAD, Input, strange_drawing

PAPER = Path(__file__).parents[2] / "checkpoints/paper"


def test_a_drawing_unlike_the_training_images_is_recognised(monkeypatch):
    monkeypatch.setattr(novelty, "REFERENCES", 1000)  # the digits are fewer than MNIST
    checkpoint = Checkpoint.open(PAPER / "logistic-el-15-digits.safetensors")
    digit = load_dataset("digits").test.images[0]
    noise = torch.randint(256, (1, 28, 28), generator=torch.manual_seed(0)).to(torch.uint8)
    assert strange_drawing(Input(noise, None, DRAW), [checkpoint]) is noise
    assert strange_drawing(Input(digit, None, DRAW), [checkpoint]) is None
    assert strange_drawing(Input(noise, None, UPLOAD), [checkpoint]) is None  # the page shows it
    assert strange_drawing(None, [checkpoint]) is None
