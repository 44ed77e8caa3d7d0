"""MNIST-1D: signals of 40 samples in ten classes, made on the spot without a download.

The data set of Greydanus and Kobak, "Scaling down deep learning with MNIST-1D" (ICML 2024), with
the defaults of its authors' package `mnist1d`. Each signal is a template of twelve points for a
digit, padded, stretched, scaled, shifted, sheared and disturbed by noise, all at random with the
seed 42. Here is that recipe with the same random numbers in the same order, from NumPy's
`RandomState`, whose numbers do not change between versions. So neither the package, which looks for
a download first and stores a pickle in the working directory, nor a file of the signals is needed.
The tests compare the signals bit for bit with those of the package, by a recorded hash. Rounded to
float32, they do not depend on the last bits, which may differ between processors.
"""

from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import Dataset, Split
from densembed.data.scaling import Scaling

TITLE = "MNIST-1D"
COUNT, TRAIN_COUNT, SEED = 5000, 4000, 42
LENGTH = 40
"""Samples of a signal."""
FEWEST_ZEROS, MOST_ZEROS = 36, 60
"""Zeros that are appended to a template before it is stretched."""
MOST_SHIFT = 48
SCALE, SHEAR = 0.4, 0.75
CORRELATED_NOISE, NOISE = 0.25, 0.02
"""Standard deviations of the noise in place of the zeros, before it is smoothed, and everywhere."""
SMOOTHING = 2
EPSILON = 1e-8
"""Added to a template, so that its own zeros differ from the padding."""
TEMPLATES = np.array(
    [
        [5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5],
        [5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5],
        [5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5],
        [5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5],
        [5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5],
        [5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5],
        [5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5],
        [5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5],
        [5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5],
        [5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5],
    ]
)
"""Signals of the digits 0 to 9."""


def available(data_dir: Path | None = None) -> bool:
    return True


def load(data_dir: Path | None = None) -> Dataset:
    values, labels = generate()
    signals = torch.from_numpy(values.astype(np.float32)).unsqueeze(1)
    classes = torch.from_numpy(labels)
    return Dataset(
        name="mnist1d",
        title=TITLE,
        classes=tuple("0123456789"),
        train=Split(signals[:TRAIN_COUNT], classes[:TRAIN_COUNT]),
        test=Split(signals[TRAIN_COUNT:], classes[TRAIN_COUNT:]),
        scaling=Scaling(mean=0.0, std=1.0),  # the authors standardise all signals together
    )


def generate() -> tuple[np.ndarray, np.ndarray]:
    """The signals, (5000, 40) float64 with mean 0 and standard deviation 1, and their digits."""
    random = np.random.RandomState(SEED)
    shapes = TEMPLATES - TEMPLATES.mean(1, keepdims=True)
    shapes /= shapes.std(1, keepdims=True)
    shapes = (shapes - shapes[:, :1]) / 6
    labels = np.repeat(np.arange(len(shapes)), COUNT // len(shapes))
    signals = np.stack([_vary(shapes[label], random) for label in labels])
    order = random.permutation(COUNT)
    signals, labels = signals[order], labels[order]
    return (signals - signals.mean()) / signals.std(), labels


def _vary(shape: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """A template, changed at random; the order of the random numbers is the package's."""
    from scipy.ndimage import gaussian_filter

    zeros = FEWEST_ZEROS + int(random.rand() * (MOST_ZEROS - FEWEST_ZEROS + 1))
    signal = _resample(np.append(shape + EPSILON, np.zeros(zeros)), len(shape) + MOST_ZEROS)
    signal *= 1 + SCALE * (random.rand() - 0.5)
    signal = np.roll(signal, random.choice(MOST_SHIFT))
    covered = signal != 0
    smooth = gaussian_filter(CORRELATED_NOISE * random.randn(len(signal)), SMOOTHING)
    signal = covered * signal + (1 - covered) * smooth
    signal = signal + NOISE * random.randn(len(signal))
    slope = SHEAR * (random.rand() - 0.5)
    return _resample(signal - slope * np.linspace(-0.5, 0.5, len(signal)), LENGTH)


def _resample(signal: np.ndarray, length: int) -> np.ndarray:
    """Linear interpolation at points from the first sample to the last."""
    return np.interp(np.linspace(0, 1, length), np.linspace(0, 1, len(signal)), signal)
