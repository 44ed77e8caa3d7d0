"""The test images for a model."""

from densembed.data import DataError, Dataset, is_available, load_dataset
from densembed.training.checkpoint import Checkpoint


def test_images(checkpoint: Checkpoint) -> Dataset | None:
    """The data set that the model was trained on if it is available, else the built-in digits.

    Its classes are in the order of the model's. None if neither has the model's classes and shape.
    """
    for name in (checkpoint.config.dataset, "digits"):
        if not is_available(name):
            continue
        try:
            dataset = load_dataset(name).in_order(checkpoint.header.classes)
        except DataError:
            continue
        if dataset and dataset.input_shape == checkpoint.header.input_shape:
            return dataset
    return None


def usual_class(dataset: Dataset) -> str:
    """The class that is shown if nobody has chosen one."""
    return dataset.tested[7 % len(dataset.tested)]
