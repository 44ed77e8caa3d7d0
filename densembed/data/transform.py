"""Shifting, resizing, turning and blurring images, and adding noise to them."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from densembed.data.dataset import Split
from densembed.functional.uniform import cell_means

CHUNK = 4096
"""Images that are scaled at once."""
MOST_SHIFTED = 2**31
"""Bytes of all copies of `shifted`."""
SEED = 0
BLUR_EXTENT = 4
"""Standard deviations of the Gaussian that the kernel of a blur covers on either side."""


def scaled(split: Split, sizes: tuple[int, ...]) -> Split:
    """The same images on another grid: each new pixel is the mean of the image over its area.

    So is each new sample of signals.
    """
    if tuple(split.images.shape[2:]) == sizes:
        return split
    parts = [scaled_images(part, sizes) for part in split.images.split(CHUNK)]
    return Split(torch.cat(parts), split.labels)


def scaled_images(images: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Images (..., H, W) of uint8, or signals (..., L), on another grid, as in `scaled`."""
    # A mean halfway between two bytes is exact after this, and rounds to the even one.
    means = cell_means(images.double(), sizes).float()
    return means if images.dtype.is_floating_point else means.round().to(torch.uint8)


def shifted(split: Split, most: int) -> Split:
    """Copies of all inputs, one per shift of up to `most` pixels or samples along each axis.

    Pixels beyond the edge repeat the value there. The inputs of each copy have the order of the
    split.

    Raises:
        ValueError: if the copies need more than `MOST_SHIFTED` bytes.
    """
    axes = range(2, split.images.dim())
    count = (2 * most + 1) ** len(axes)
    needed = count * split.images.nbytes
    if most and needed > MOST_SHIFTED:
        raise ValueError(
            f"Shifts of up to {most} need {needed / 2**30:,.1f} GB of memory, more than "
            f"{MOST_SHIFTED / 2**30:g} GB. Choose a smaller shift."
        )
    copies = [split.images]
    for axis in axes if most else ():
        size = split.images.shape[axis]
        pixels = torch.arange(size, device=split.images.device)
        sources = [(pixels - by).clamp(0, size - 1) for by in range(-most, most + 1)]
        copies = [images.index_select(axis, source) for images in copies for source in sources]
    return Split(torch.cat(copies), split.labels.repeat(len(copies))) if most else split


@dataclass(frozen=True)
class Transform:
    """An affine map about the middle of an image, then a blur, then noise. The defaults change
    nothing.

    Args:
        right, down: shift in pixels.
        size: factor; above 1 enlarges.
        turn: degrees, clockwise, as in torchvision.
        blur: standard deviation of a Gaussian in pixels.
        noise: standard deviation of Gaussian noise as a share of full ink. The noise is the same
            for the same shape of images and the same amount.

    >>> Transform(right=1)(torch.eye(3, dtype=torch.uint8)[None]).tolist()
    [[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]
    """

    right: float = 0.0
    down: float = 0.0
    size: float = 1.0
    turn: float = 0.0
    blur: float = 0.0
    noise: float = 0.0

    def __call__(self, images: Tensor) -> Tensor:
        """Transform images (..., C, H, W) of uint8; what lies outside of them is 0."""
        if self == Transform():
            return images
        # Two seconds, which not every command and page needs to wait.
        from torchvision.transforms.v2 import InterpolationMode
        from torchvision.transforms.v2 import functional as torchvision

        result = torchvision.affine(
            images.float(),
            self.turn,
            [self.right, self.down],
            self.size,
            [0.0, 0.0],
            interpolation=InterpolationMode.BILINEAR,
        )
        if self.blur:
            # The border is reflected, which takes an image larger than half of the kernel.
            reach = math.ceil(BLUR_EXTENT * self.blur)
            kernel = [2 * min(reach, side - 1) + 1 for side in (images.shape[-1], images.shape[-2])]
            result = torchvision.gaussian_blur(result, kernel, [self.blur, self.blur])
        if self.noise:
            generator = torch.Generator().manual_seed(SEED)
            result += torch.randn(images.shape, generator=generator) * (255 * self.noise)
        return result.round().clamp(0, 255).to(torch.uint8)
