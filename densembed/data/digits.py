"""The built-in data set: scikit-learn's 1,797 handwritten digits, normalised as in MNIST.

It is part of scikit-learn, so that it works offline. Each 8×8 image (ink 0 to 16) is upscaled
smoothly, fitted into a box of 20×20 pixels with its aspect ratio unchanged, and placed in 28×28
pixels with its centre of mass at the centre, as in MNIST. Every fifth image (index 4, 9, 14, …) is
a test image, which leaves 1,438 training and 359 test images. Images of the same writer are
consecutive, so that all writers are in both sets.
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
