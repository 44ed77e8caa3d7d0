"""A shipped network gives the same prediction for one digit, however it is presented."""

from pathlib import Path

import numpy as np
import pytest

from densembed.data import as_input
from densembed.data.images import read_picture
from densembed.training.checkpoint import Checkpoint
from tests.data.test_images import SAMPLES, drawn, on_transparency, placed, saved

SHIPPED = Path(__file__).parents[2] / "checkpoints/paper/logistic-el-mnn-10-5.safetensors"


@pytest.fixture(scope="module")
def says():
    model = Checkpoint.open(SHIPPED).model()
    return lambda file: int(model(as_input(read_picture(file).pixels[None])).argmax())


@pytest.fixture(scope="module")
def reference(says) -> dict[int, int]:
    """The prediction for each digit in the middle of a sheet."""
    return {number: says(saved(1 - drawn(number))) for number in SAMPLES}


def test_it_reads_most_of_them(reference):
    assert np.mean([number == said for number, said in reference.items()]) >= 0.7


@pytest.mark.slow
def test_in_four_corners_and_three_sizes(says, reference):
    """DFin/Neural-Network-Visualisation#3: a digit drawn off-centre was read as another one."""
    for turn, number in enumerate(SAMPLES):  # each size in another corner
        for place, side in enumerate((100, 160, 260), turn):
            ink, far = drawn(number, side), 500 - side
            corner = far * (place & 1), far * (place >> 1 & 1)
            prediction = says(saved(1 - placed(ink, (500, 500), *corner)))
            assert prediction == reference[number], (number, side, corner)


def test_in_both_polarities_and_on_transparency(says, reference):
    """sugyan/tensorflow-mnist#7, gradio-app/gradio#8198: another class, or none."""
    for number in SAMPLES:
        ink = drawn(number)
        for file in (
            saved(ink),
            saved(on_transparency(ink, 0.0)),
            saved(on_transparency(ink, 1.0)),
        ):
            assert says(file) == reference[number], number
