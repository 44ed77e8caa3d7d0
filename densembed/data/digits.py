"""The embedded data set: scikit-learn's 1,797 handwritten digits, brought to MNIST's form.

They come with the library, so everything works without a network. Each 8×8 picture (ink 0 to 16)
is enlarged smoothly, fitted into a box of 20×20 with its aspect kept, and laid into 28×28 with
its centre of mass in the middle: what MNIST's authors did. Every fifth picture (index 4, 9, 14, …)
is the test set, so that all writers, who follow one another in the file, are in both: 1,438 to
train on, 359 to test.
"""

from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import Dataset, Split
from densembed.data.images import normalise_digit

TITLE = "scikit-learn digits (8×8, upscaled)"


def available(data_dir: Path | None = None) -> bool:
    return True


def load(data_dir: Path | None = None) -> Dataset:
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    source = load_digits()
    ink = np.clip(source.images / 16, 0, 1)
    pictures = [normalise_digit(np.clip(zoom(picture, 4, order=3), 0, 1)) for picture in ink]
    images = torch.from_numpy(np.stack(pictures)).unsqueeze(1)
    labels = torch.from_numpy(source.target.astype(np.int64))
    test = torch.arange(len(labels)) % 5 == 4
    return Dataset(
        name="digits",
        title=TITLE,
        classes=tuple("0123456789"),
        train=Split(images[~test], labels[~test]),
        test=Split(images[test], labels[test]),
    )
