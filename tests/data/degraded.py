"""How well are photographed digits read? Test digits, spoiled by script, read back and classified.

    python -m tests.data.degraded CHECKPOINT [--data-dir DIR] [--dataset mnist] [--count 200]

Prints, for each way of spoiling, the share that the model gets right from `read_picture` and from
plain resizing (grey, 28 x 28, no more). `--split train` is the set to tune `ink.py` on.
"""

import argparse
import io
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from scipy import ndimage

from densembed.data.images import read_picture

SCALE = 10  # canvas pixels a pixel of the digit


class Sheet:
    """A drawing being spoiled: how much ink is where, and the colours and light it is seen in."""

    def __init__(self, digit: np.ndarray, rng: np.random.Generator) -> None:
        zoomed = Image.fromarray(digit).resize((28 * SCALE, 28 * SCALE), Image.Resampling.BICUBIC)
        self.ink = np.asarray(zoomed, np.float32) / 255
        self.rng = rng
        self.paper, self.pen = np.zeros(3), np.ones(3)  # MNIST's own colours
        self.light: np.ndarray | None = None
        self.border = 0
        self.border_colour = np.zeros(3)
        self.noise = 0.0

    def png_or_jpeg(self) -> bytes:
        ink = self.ink[..., None]
        rgb = self.paper * (1 - ink) + self.pen * ink
        if self.light is not None:
            rgb = rgb * self.light[..., None]
        if self.noise:
            rgb = rgb + self.rng.normal(0, self.noise, rgb.shape)
        if self.border:
            framed = np.empty((rgb.shape[0] + 2 * self.border, rgb.shape[1] + 2 * self.border, 3))
            framed[:] = self.border_colour
            framed[self.border : -self.border, self.border : -self.border] = rgb
            rgb = framed
        image = Image.fromarray(np.rint(255 * np.clip(rgb, 0, 1)).astype(np.uint8))
        file = io.BytesIO()
        if self.rng.random() < 0.5:
            image.save(file, "PNG")
        else:
            image.save(file, "JPEG", quality=int(self.rng.integers(60, 95)))
        return file.getvalue()


def clean(sheet: Sheet) -> None:
    """Only enlarged: what the encoding and the way back cost."""


def polarity(sheet: Sheet) -> None:
    """Dark on light."""
    sheet.paper, sheet.pen = np.full(3, 0.97), np.full(3, 0.08)


def colour(sheet: Sheet) -> None:
    """A coloured pen on light, slightly coloured paper."""
    rng = sheet.rng
    sheet.paper = rng.uniform(0.75, 1.0, 3)
    sheet.pen = sheet.paper * rng.uniform(0.45, 1.0, 3)
    channel = rng.integers(3)
    sheet.pen[channel] = sheet.paper[channel] * rng.uniform(0.1, 0.5)


def shadow(sheet: Sheet) -> None:
    """Light that falls off to one side, and a hard shadow, on dark ink and light paper."""
    polarity(sheet)
    rng = sheet.rng
    y, x = np.mgrid[-1 : 1 : sheet.ink.shape[0] * 1j, -1 : 1 : sheet.ink.shape[1] * 1j]
    angle, edge = rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi)
    slope = 1 - rng.uniform(0.1, 0.35) * (1 + x * np.cos(angle) + y * np.sin(angle)) / 2
    across = x * np.cos(edge) + y * np.sin(edge) - rng.uniform(-0.7, 0.7)
    softness = rng.uniform(0.01, 0.2)
    sheet.light = slope * (1 - rng.uniform(0.15, 0.45) / (1 + np.exp(-across / softness)))


def border(sheet: Sheet) -> None:
    """A band of another colour around the sheet: a table, a scanner's lid."""
    sheet.border = int(sheet.rng.integers(8, 40))
    contrast = sheet.rng.uniform(0.3, 0.9)
    sheet.border_colour = np.abs(sheet.paper - contrast * sheet.rng.uniform(0.7, 1.0, 3))


def blur(sheet: Sheet) -> None:
    """Out of focus, by up to half a stroke."""
    sheet.ink = ndimage.gaussian_filter(sheet.ink, sheet.rng.uniform(0.8, 1.6) * SCALE)


def thin_pen(sheet: Sheet) -> None:
    """The same lines with a pen 2 to 4 canvas pixels wide."""
    lines = thinned(sheet.ink > 0.5)
    away = ndimage.distance_transform_edt(~lines)
    sheet.ink = np.clip(sheet.rng.uniform(1.0, 2.0) + 0.5 - away, 0, 1).astype(np.float32)


def corner(sheet: Sheet) -> None:
    """A small digit somewhere on a sheet two to four times as large."""
    side = sheet.ink.shape[0]
    factor = sheet.rng.uniform(2, 4)
    if factor > 2.5:  # a large sheet is also photographed with more pixels, but not fully
        small = Image.fromarray(sheet.ink).resize((side // 2,) * 2, Image.Resampling.BOX)
        sheet.ink = np.asarray(small)
        factor /= 2
    side = sheet.ink.shape[0]
    whole = int(side * factor * (2 if side < 28 * SCALE else 1))
    canvas = np.zeros((whole, whole), np.float32)
    top, left = (int(place * (whole - side)) for place in sheet.rng.beta(0.5, 0.5, 2))
    canvas[top : top + side, left : left + side] = sheet.ink
    sheet.ink = canvas


def noise(sheet: Sheet) -> None:
    """A sensor in the dark."""
    sheet.noise = sheet.rng.uniform(0.02, 0.1)


def pencil(sheet: Sheet) -> None:
    """Grey, grainy strokes, a quarter to a half of the contrast of ink."""
    polarity(sheet)
    sheet.paper = np.full(3, sheet.rng.uniform(0.7, 0.95))
    sheet.pen = sheet.paper - sheet.rng.uniform(0.25, 0.5)
    grain = ndimage.gaussian_filter(sheet.rng.normal(size=sheet.ink.shape), 1.2)
    sheet.ink = sheet.ink * np.clip(0.8 + 0.25 * grain / grain.std(), 0, 1)
    sheet.noise = 0.015


def cursor(sheet: Sheet) -> None:
    """A small red disc in one corner of a black canvas."""
    side = sheet.ink.shape[0]
    wide = np.zeros((side, 2 * side), np.float32)
    wide[:, side // 2 : side // 2 + side] = sheet.ink
    radius = sheet.rng.uniform(8, 14)
    y, x = np.mgrid[:side, : 2 * side]
    centre = radius + sheet.rng.uniform(2, 12, 2)
    disc = np.hypot(y - centre[0], x - centre[1]) < radius
    sheet.ink = np.maximum(wide, disc)
    sheet.pen = np.where(disc[..., None], (0.9, 0.1, 0.1), 1.0)


def everything(sheet: Sheet) -> None:
    """A thin coloured pen, in a corner, blurred, in a shadow, with noise and a border."""
    thin_pen(sheet)
    corner(sheet)
    sheet.ink = ndimage.gaussian_filter(sheet.ink, sheet.rng.uniform(0.3, 1.0))
    shadow(sheet)
    colour(sheet)
    sheet.noise = sheet.rng.uniform(0.005, 0.03)
    border(sheet)


KINDS: tuple[Callable[[Sheet], None], ...] = (
    clean,
    polarity,
    colour,
    shadow,
    border,
    blur,
    thin_pen,
    corner,
    noise,
    pencil,
    cursor,
    everything,
)


def thinned(mask: np.ndarray) -> np.ndarray:
    """The mask's centre lines, one pixel wide (Zhang and Suen, 1984)."""
    mask = np.pad(mask, 1)
    changed = True
    while changed:
        changed = False
        for first in (True, False):
            shifts = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
            p = [np.roll(mask, (-dy, -dx), (0, 1)) for dy, dx in shifts]  # clockwise from north
            count = sum(q.astype(np.int8) for q in p)
            turns = sum((~p[i] & p[(i + 1) % 8]).astype(np.int8) for i in range(8))
            north, east, south, west = p[0], p[2], p[4], p[6]
            if first:
                free = ~(north & east & south) & ~(east & south & west)
            else:
                free = ~(north & east & west) & ~(north & south & west)
            gone = mask & (count >= 2) & (count <= 6) & (turns == 1) & free
            changed |= bool(gone.any())
            mask = mask & ~gone
    return mask[1:-1, 1:-1]


def degrade(digit: np.ndarray, kind: Callable[[Sheet], None], rng: np.random.Generator) -> bytes:
    """A (28, 28) uint8 digit, spoiled and saved as PNG or JPEG."""
    sheet = Sheet(digit, rng)
    kind(sheet)
    return sheet.png_or_jpeg()


def plainly_resized(file: bytes) -> torch.Tensor:
    grey = Image.open(io.BytesIO(file)).convert("L").resize((28, 28), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(grey))[None]


def compare(
    model: Callable[[torch.Tensor], torch.Tensor],
    images: torch.Tensor,
    labels: torch.Tensor,
    seed: int = 0,
) -> list[tuple[str, float, float]]:
    """Shares right in percent: (kind, with read_picture, with plain resizing)."""

    def right(pixels: list[torch.Tensor]) -> float:
        with torch.no_grad():
            logits = model(torch.stack(pixels).float() / 255)
        return 100 * float((logits.argmax(1) == labels).float().mean())

    pristine = right(list(images))
    rows = [("as in the data set", pristine, pristine)]
    for number, kind in enumerate(KINDS):
        rng = np.random.default_rng((seed, number))
        files = [degrade(image[0].numpy(), kind, rng) for image in images]
        read = right([read_picture(file).pixels for file in files])
        rows.append((kind.__name__, read, right([plainly_resized(file) for file in files])))
    return rows


def main() -> None:
    import densembed
    from densembed.data import load_dataset

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--data-dir")
    parser.add_argument("--dataset", choices=("mnist", "digits"), default="mnist")
    parser.add_argument("--split", choices=("train", "test"), default="test")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data = getattr(load_dataset(options.dataset, options.data_dir), options.split)
    chosen = np.random.default_rng(options.seed).permutation(len(data.labels))[: options.count]
    rows = compare(
        densembed.load(options.checkpoint), data.images[chosen], data.labels[chosen], options.seed
    )
    print(f"{len(chosen)} {options.split} digits; % right\n")
    print(f"{'degradation':20}{'read_picture':>14}{'plain resizing':>16}")
    for name, read, plain in rows:
        print(f"{name:20}{read:14.1f}{plain:16.1f}")


if __name__ == "__main__":
    main()
