"""Moving, scaling, turning, blurring and disturbing a model's input."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor


@dataclass(frozen=True)
class Change:
    """What is done to an input, in this order; the defaults do nothing.

    `size` (a factor) and `turn` (degrees, clockwise) about the middle, then `right` and `down` in
    pixels, then `blur`, the deviation of a Gaussian in pixels, then `noise`, its deviation as a
    share of full ink. The noise is the same for the same input and amount.
    """

    right: float = 0.0
    down: float = 0.0
    size: float = 1.0
    turn: float = 0.0
    blur: float = 0.0
    noise: float = 0.0


def changed(pixels: Tensor, change: Change) -> Tensor:
    """Pixels (C, H, W) uint8, changed. What comes in from outside the picture is black."""
    if change == Change():
        return pixels
    angle = np.deg2rad(change.turn)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    back = turn / change.size  # from a place in the result to one in the input, (row, column)
    middle = (np.array(pixels.shape[1:]) - 1) / 2
    offset = middle - back @ (middle + np.array([change.down, change.right]))
    planes = [
        ndimage.affine_transform(plane, back, offset, order=1) for plane in pixels.numpy() / 255.0
    ]
    result = ndimage.gaussian_filter(np.stack(planes), (0, change.blur, change.blur))
    result += np.random.default_rng(0).normal(0, change.noise or 0, result.shape)
    return torch.from_numpy(np.rint(255 * np.clip(result, 0, 1)).astype(np.uint8))
