"""The frame of an input: the box in which the densities of an embedding are placed.

The paper places densities on the domain [0, N] of the signal. Instead, the box can follow the
input: it is centred at the centre of mass of |x(t)|, and its side is proportional to the root mean
square distance of the mass from that centre. If the input is shifted or scaled, the box and all
densities in it are shifted or scaled too, so the expectations under them do not change.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

SIDE = 5.6
"""Side of the box in units of the root mean square radius.

The boxes of MNIST's digits then have, on average, the size of their images, 28 pixels.
"""


def mass_box(x: Tensor, pixel: Sequence[float] = (1.0, 1.0)) -> tuple[Tensor, Tensor]:
    """Lower ends and lengths of the box around the mass of each input.

    The moments are those of the piecewise constant signal |x(t)|, summed over the channels: a pixel
    with centre c contributes c to the mean and c² + 1/12 to the second moment. The radius is
    √(mean of the variances along the axes), so the box is a square. An input without mass has its
    whole domain as box.

    Args:
        x: (N, C, *sizes), one or two axes, any sign.
        pixel: height and width of a pixel in a common unit (or its length, for one axis), so that
            the box is a square on any grid.
    Returns:
        Both (N, 1, 1, axes) in pixels, columns first, as in `placement` of an embedding.

    >>> x = torch.zeros(1, 1, 8)
    >>> x[..., 3] = 2
    >>> lower, length = mass_box(x)
    >>> (lower + length / 2).item()  # the centre of the only pixel with mass
    3.5
    """
    mass = x.abs().sum(1)
    # Dividing by the maximum leaves the moments as they are and prevents sums that overflow.
    top = mass.detach().flatten(1).amax(1)
    empty = top == 0
    top = top.masked_fill(empty, 1)
    mass = mass / top.reshape(-1, *(1 for _ in mass.shape[1:]))
    last = mass.dim() - 1
    centres, variances = [], []
    sides = top.new_tensor(pixel[:last][::-1])
    for axis in range(last, 0, -1):
        other = [dim for dim in range(1, last + 1) if dim != axis]
        profile = mass.sum(other) if other else mass
        size = profile.shape[1]
        t = torch.arange(size, dtype=x.dtype, device=x.device) + (0.5 - size / 2)
        share = profile / profile.sum(1, keepdim=True).masked_fill(empty[:, None], 1)
        centre = (share * t).sum(1)  # autocast would round a product of matrices
        # Around the mean, since differences of large moments lose digits.
        variances.append((share * (t - centre[:, None]) ** 2).sum(1) + 1 / 12)
        centres.append(centre + size / 2)
    radius = (torch.stack(variances, -1) * sides**2).mean(-1, keepdim=True).sqrt()
    whole = top.new_tensor(x.shape[:1:-1])
    length = torch.where(empty[:, None], whole, SIDE * radius / sides)
    lower = torch.stack(centres, -1) - length / 2
    return lower[:, None, None], length[:, None, None]
