"""The computation of a layer, step by step, as arrays that the Lab page draws.

Each function takes a signal and the settings of one layer, runs the layer of `densembed.layers` in
float64, and returns x(t), φ_i(t), Γ, Γx and y next to the output of PyTorch's layer.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import binom
from torch import Tensor, nn

from densembed.functional.arguments import as_tensor
from densembed.functional.densities import FAMILIES
from densembed.functional.gamma import axes_gamma
from densembed.functional.uniform import bounded_logit
from densembed.layers import (
    AdaptiveConv1d,
    AdaptiveDensityEmbedding,
    AdaptivePool1d,
    DensityConv1d,
    DensityEmbedding,
    DensityLinear,
)
from densembed.layers.embedding import LOC_SLOPE, scale_unit
from densembed.text import ascii_minus

MIN_PIXELS, MAX_PIXELS = 2, 64
LARGEST = 1000.0
"""Largest magnitude of typed values; a larger one would hide all others in the plot."""
SMALLEST = 1e-30
"""Smallest magnitude of typed values other than 0, as no browser draws axes of 1e-310."""
ROUNDING = 1e-12
"""Differences of float64 results below this, relative to the signal, are rounding errors."""

SIGNALS = {
    "wave": "wave",
    "bump": "bump",
    "step": "step",
    "ramp": "ramp",
    "noise": "noise",
    "digit": "a row of a digit",
    "own": "my own values",
}
LAYERS = {
    "density": "densities of a family",
    "linear": "fully connected",
    "conv": "convolution",
    "adaptive-conv": "adaptive convolution",
    "pool": "adaptive pooling",
    "micro": "micro network",
}
KERNELS = {"average": "average", "bell": "bell", "edge": "edge"}


def parse_values(text: str) -> np.ndarray:
    """The signal in a text of numbers separated by spaces, commas or semicolons.

    Commas between digits are decimal commas if there are spaces or semicolons, but no points.

    Raises:
        ValueError: with one sentence, if the text is not a signal.
    """
    if "." not in text and re.search(r"\S[\s;]+\S", text):
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    text = text.strip().rstrip(",;")
    words = re.split(r"\s*[,;]\s*|\s+", text.rstrip()) if text else []
    values = []
    for place, word in enumerate(words[: MAX_PIXELS + 1], 1):
        if not word:
            raise ValueError(f"Value {place} is missing.")
        try:
            value = float(ascii_minus(word))
            if math.isnan(value):
                raise ValueError
        except ValueError:
            raise ValueError(f"Value {place}, “{word[:20]}”, is not a number.") from None
        if not abs(value) <= LARGEST:
            raise ValueError(
                f"Value {place}, “{word[:20]}”, is not between −{LARGEST:g} and {LARGEST:g}."
            )
        if 0 < abs(value) < SMALLEST:
            raise ValueError(
                f"Value {place}, “{word[:20]}”, is too small: write 0, or at least {SMALLEST:g}."
            )
        values.append(value)
    if not MIN_PIXELS <= len(words) <= MAX_PIXELS:
        raise ValueError(f"A signal has {MIN_PIXELS} to {MAX_PIXELS} values; got {len(words)}.")
    return np.array(values)


def format_values(values: Iterable[float]) -> str:
    """The inverse of `parse_values`, to six digits, so that it fits into a link."""
    return " ".join(f"{value:.6g}" for value in values)


def signal(name: str, size: int, *, seed: int = 0) -> np.ndarray:
    """A signal of `size` values within [0, 1]: wave, bump, step, ramp or noise."""
    t = (np.arange(size) + 0.5) / size
    match name:
        case "wave":
            return 0.5 + 0.5 * np.sin(4 * np.pi * t) * (0.3 + 0.7 * t)
        case "bump":
            return np.exp(-0.5 * ((t - 0.4) / 0.12) ** 2)
        case "step":
            return (t > 0.5).astype(float)
        case "ramp":
            return t
        case "noise":
            return np.random.default_rng(seed).random(size)
    raise ValueError(f"Unknown signal {name!r}.")


def kernel(name: str, taps: int) -> np.ndarray:
    """Weights w of a kernel: those of average and bell sum to 1, those of edge to 0."""
    match name:
        case "average":
            return np.full(taps, 1 / taps)
        case "bell":
            return binom.pmf(np.arange(taps), taps - 1, 0.5)
        case "edge":
            return np.linspace(-1, 1, taps) if taps > 1 else np.ones(1)
    raise ValueError(f"Unknown kernel {name!r}.")


@dataclass(frozen=True)
class Reference:
    """The output of a PyTorch layer for the same signal.

    `values` has the shape of the output and `difference` is the largest distance from it. `promise`
    is the paper's bound on that distance: 0 for the same layer, None if there is no bound.
    """

    name: str
    values: np.ndarray
    difference: float
    promise: float | None


@dataclass(frozen=True)
class Reading:
    """One signal in one layer: N pixels, B densities, L outputs, r cells per pixel.

    Args:
        x: (N,).
        phi: (B, N · r), the densities at the centres of the cells.
        gamma: (B, N).
        expectation: (B,), Γx.
        centres, width: the places (B,) of its bars on the t axis, and their width.
        output: (L,), y = wᵀΓx if the layer has a kernel, otherwise Γx.
        output_centres, output_width: the places (L,) of its bars, and their width.
        weights: the kernel, if the layer has one.
        stepped: whether the densities have jumps.
        unit_mass: whether they have mass 1 over all t, so that Γx is an expectation.
    """

    x: np.ndarray
    phi: np.ndarray
    gamma: np.ndarray
    expectation: np.ndarray
    centres: np.ndarray
    width: float
    output: np.ndarray
    output_centres: np.ndarray
    output_width: float
    references: tuple[Reference, ...]
    weights: np.ndarray | None = None
    stepped: bool = True
    unit_mass: bool = True

    @property
    def t(self) -> np.ndarray:
        """The centres of the cells (N · r,), in pixels."""
        cells = self.phi.shape[1]
        return (np.arange(cells) + 0.5) * len(self.x) / cells

    @property
    def mass(self) -> np.ndarray:
        """Σ_n Γ_in of each density."""
        return self.gamma.sum(1)


def resolution(size: int) -> int:
    """Cells per pixel, so that plots of all lengths have a similar number of points."""
    return max(8, min(32, 512 // size))


def _batch(x: np.ndarray) -> Tensor:
    return as_tensor(x, torch.float64)[None, None]


def _reference(name: str, values: Tensor, output: np.ndarray, promise: float | None) -> Reference:
    expected = values.flatten().numpy()
    scale = max(1.0, float(np.abs(expected).max()))
    difference = float(np.abs(output - expected).max())
    return Reference(name, expected, rounded(difference / scale) * scale, promise)


def rounded(difference: float) -> float:
    """A difference of float64 results, or 0 if it is within their rounding errors."""
    return 0.0 if abs(difference) < ROUNDING else difference


@torch.no_grad()
def fully_connected(x: np.ndarray) -> Reading:
    """Section 3.1: one uniform density per pixel, so Γ is the identity and Γx is x.

    The PyTorch layer is `nn.Linear` with the identity as its weight.
    """
    size = len(x)
    torch_layer = nn.Linear(size, size, bias=False).double()
    torch_layer.weight.copy_(torch.eye(size))
    layer = DensityLinear.from_torch(torch_layer)
    batch, gamma = _batch(x)[0], layer.gamma()
    centres = np.arange(size) + 0.5
    action = (gamma @ batch[0]).numpy()
    return Reading(
        x=x,
        phi=layer.receptive_field(resolution=resolution(size))[0, 0].numpy(),
        gamma=gamma.numpy(),
        expectation=action,
        centres=centres,
        width=1.0,
        output=action,
        output_centres=centres,
        output_width=1.0,
        references=(_reference("nn.Linear", torch_layer(batch), action, 0.0),),
    )


@torch.no_grad()
def convolution(
    x: np.ndarray,
    weights: np.ndarray,
    *,
    stride: int,
    position: int,
    amplitude: float | None = None,
    normalize: bool = False,
) -> Reading:
    """Sections 3.2 and 3.3: the densities of output `position` (from 0), and y at all of them.

    Args:
        weights: (K,) the kernel.
        amplitude: p in pixels; None for the ordinary convolution.
        normalize: use densities of mass 1 instead of the paper's, which have height 1.
    """
    size, taps = len(x), len(weights)
    torch_layer = nn.Conv1d(1, 1, taps, stride, bias=False).double()
    torch_layer.weight.copy_(as_tensor(weights))
    if amplitude is None:
        amplitude = float(taps)
        layer: DensityConv1d | AdaptiveConv1d = DensityConv1d.from_torch(torch_layer)
    else:
        share = amplitude / taps
        # λ = 0 is the middle of these bounds, so that p is exact.
        layer = AdaptiveConv1d.from_torch(
            torch_layer, normalize=normalize, bounds=(share / 2, share * 3 / 2), start=share
        )
    batch = _batch(x)
    gamma = layer.gamma(batch)[0][0, position]
    output = layer(batch).flatten().numpy()
    field = layer.receptive_field(batch, resolution=resolution(size), position=position)
    same = amplitude == taps
    return Reading(
        x=x,
        phi=field[0, 0].numpy(),
        gamma=gamma.numpy(),
        expectation=(gamma @ batch[0, 0]).numpy(),
        centres=position * stride + amplitude / taps * (np.arange(taps) + 0.5),
        width=amplitude / taps,
        output=output,
        output_centres=np.arange(len(output)) * stride + taps / 2,
        output_width=float(stride),
        references=(_reference("F.conv1d", torch_layer(batch), output, 0.0 if same else None),),
        weights=weights,
        unit_mass=same or normalize,
    )


@torch.no_grad()
def adaptive_pooling(x: np.ndarray, *, window: int, stride: int, beta: float) -> Reading:
    """Section 3.4: softmax densities in windows, next to minimum, mean and maximum pooling."""
    layer = AdaptivePool1d(window, stride).double()
    layer.beta.fill_(beta)
    batch = _batch(x)
    output = layer(batch).flatten().numpy()
    centres = np.arange(len(output)) * stride + window / 2
    bound = math.log(window) / abs(beta) if beta else None
    pooled = (
        ("min", -F.max_pool1d(-batch, window, stride), bound if beta < 0 else None),
        ("F.avg_pool1d", F.avg_pool1d(batch, window, stride), None if beta else 0.0),
        ("F.max_pool1d", F.max_pool1d(batch, window, stride), bound if beta > 0 else None),
    )
    return Reading(
        x=x,
        phi=layer.receptive_field(batch, resolution=resolution(len(x)))[0, 0].numpy(),
        gamma=layer.gamma(batch)[0, 0].numpy(),
        expectation=output,
        centres=centres,
        width=float(stride),
        output=output,
        output_centres=centres,
        output_width=float(stride),
        references=tuple(
            _reference(name, values, output, promise) for name, values, promise in pooled
        ),
    )


def grid_places(size: int, count: int, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Locations and scales, (count,) each, of densities spread evenly over [0, size].

    All families have the standard deviation of the uniform densities that tile the domain; the
    Cauchy density, which has no standard deviation, has the quartiles of the logistic one.
    """
    spacing = size / count
    loc = (np.arange(count) + 0.5) * spacing
    return loc, np.full(count, same_spread(spacing / 2, old="uniform", new=family))


def same_spread(scale: float, *, old: str, new: str) -> float:
    """The scale at which the family `new` has the same spread as `old` at `scale`."""
    return scale * scale_unit(FAMILIES[new]) / scale_unit(FAMILIES[old])


def _place(layer: DensityEmbedding, loc: np.ndarray, scale: np.ndarray) -> None:
    """Set α and β so that μ(α) = loc and s(β) = scale, (K, axes); converts to float64."""
    layer.double()
    lengths = layer.lengths.tolist()
    for k in range(layer.num_densities):
        for axis, length in enumerate(lengths):
            inside = min(max(float(loc[k, axis]), 1e-12 * length), length * (1 - 1e-12))
            layer.alpha[0, k, axis] = bounded_logit(inside, 0.0, length) / LOC_SLOPE
            layer.beta[0, k, axis] = bounded_logit(float(scale[k, axis]) / layer.unit, 0.0, length)


@torch.no_grad()
def embedding(
    x: np.ndarray, family: str, *, loc: np.ndarray, scale: np.ndarray, truncate: bool = False
) -> Reading:
    """Sections 2.1 and 4.1: densities of a family at locations and scales (K,) in pixels.

    PyTorch has no such layer. The closest is `F.adaptive_avg_pool1d` with K outputs, which it
    equals for uniform densities on the grid if K divides N.
    """
    size, count = len(x), len(loc)
    layer = DensityEmbedding((size,), num_densities=count, family=family, truncate=truncate)
    _place(layer, loc[:, None], scale[:, None])
    batch = _batch(x)
    action = layer(batch).flatten().numpy()
    on_grid = np.allclose(grid_places(size, count, family), (loc, scale), atol=1e-9)
    same = family == "uniform" and size % count == 0 and on_grid
    pooled = F.adaptive_avg_pool1d(batch, count)
    return Reading(
        x=x,
        phi=layer.receptive_field(resolution=resolution(size))[0, 0].numpy(),
        gamma=layer.gamma()[0, 0].numpy(),
        expectation=action,
        centres=np.asarray(loc, float),
        width=size / count,
        output=action,
        output_centres=np.asarray(loc, float),
        output_width=size / count,
        references=(_reference("F.adaptive_avg_pool1d", pooled, action, 0.0 if same else None),),
        stepped=family == "uniform",
    )


@dataclass(frozen=True)
class Moved:
    """A layer whose densities a micro network has moved, with what moved them.

    Args:
        reading: of the layer.
        readings: (B₀,), the readings of the micro network.
        shifts: (B,), how far each density has moved from where it lies for x = 0, in pixels.
    """

    reading: Reading
    readings: np.ndarray
    shifts: np.ndarray


@torch.no_grad()
def micro_network(x: np.ndarray, family: str, *, count: int, inner: int, gain: float) -> Moved:
    """Section 4.2: `count` densities at α(x), which a micro network computes from x.

    The micro network is one of `inner` densities on an even grid and a linear map (eq. 22). Its
    weights grow from −gain for the first reading to gain for the last, divided by `inner`, so that
    the densities move towards the side with more signal. They lie on an even grid for x = 0.
    """
    size = len(x)
    small = DensityEmbedding((size,), num_densities=inner, family=family)
    loc, scale = grid_places(size, inner, family)
    _place(small, loc[:, None], scale[:, None])
    linear_map = nn.Linear(inner, count).double()
    layer = AdaptiveDensityEmbedding(
        nn.Sequential(small, nn.Flatten(), linear_map), (size,), num_densities=count, family=family
    ).double()
    loc, scale = grid_places(size, count, family)
    grid = DensityEmbedding((size,), num_densities=count, family=family)
    _place(grid, loc[:, None], scale[:, None])
    linear_map.weight.copy_(gain * torch.linspace(-1, 1, inner, dtype=torch.float64) / inner)
    linear_map.bias.copy_(grid.alpha.flatten())
    layer.beta.copy_(grid.beta)
    batch = _batch(x)
    moved = layer.placement(batch)[0].flatten().numpy()
    action = layer(batch).flatten().numpy()
    pooled = F.adaptive_avg_pool1d(batch, count)
    same = family == "uniform" and size % count == 0 and gain == 0
    reading = Reading(
        x=x,
        phi=layer.receptive_field(batch, resolution=resolution(size))[0, 0].numpy(),
        gamma=layer.gamma(batch)[0, 0].numpy(),
        expectation=action,
        centres=moved,
        width=size / count,
        output=action,
        output_centres=moved,
        output_width=size / count,
        references=(_reference("F.adaptive_avg_pool1d", pooled, action, 0.0 if same else None),),
        stepped=family == "uniform",
    )
    return Moved(reading, small(batch).flatten().numpy(), moved - loc)


@dataclass(frozen=True)
class Picture:
    """One image and one density: H rows, W columns.

    `pixels` (H, W) are within [0, 1]. `gamma` (H, W) is the outer product of the factors `rows`
    (H,) = Γ_m and `columns` (W,) = Γ_n. `expectation` is R(x), as computed by the layer.
    """

    pixels: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    gamma: np.ndarray
    expectation: float

    @property
    def parts(self) -> np.ndarray:
        """Γ_mn x_mn, the contribution of each pixel to R(x)."""
        return self.gamma * self.pixels


@torch.no_grad()
def picture(
    pixels: np.ndarray,
    family: str,
    *,
    loc: tuple[float, float],
    scale: tuple[float, float],
    truncate: bool = False,
) -> Picture:
    """Section 2.2: Γ_mn = Γ_m Γ_n of one separable density on an image (H, W).

    Args:
        loc, scale: (t, u), along the columns and along the rows, in pixels.
    """
    layer = DensityEmbedding(pixels.shape, num_densities=1, family=family, truncate=truncate)
    _place(layer, np.array([loc]), np.array([scale]))
    mu, s = layer.placement()
    rows, columns = axes_gamma(layer.family, mu, s, layer.sizes, truncate=truncate)
    return Picture(
        pixels=pixels,
        rows=rows.flatten().numpy(),
        columns=columns.flatten().numpy(),
        gamma=layer.gamma()[0, 0, 0].numpy(),
        expectation=float(layer(_batch(pixels))),
    )


def readable(difference: float) -> str:
    """A difference as text."""
    return f"{difference:.3g}"
