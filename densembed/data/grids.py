"""Sizes of images and signals as text, as `--grid` takes them."""

import re

MAX_GRID = 1024
"""Largest side, in pixels."""
MAX_CELLS = 8192
"""Most cells of a field along a side of an image, as larger fields exhaust the memory."""
OWN = "data"
"""In place of a size: that of the images of the data set."""


def read_grid(text: str) -> tuple[int, int]:
    """Height and width from "14", "14x20" or "14×20". Raises ValueError for other text.

    >>> read_grid("14x20")
    (14, 20)
    """
    match = re.fullmatch(r"(\d{1,4})(?:[x×](\d{1,4}))?", text, re.ASCII)
    sizes = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= size <= MAX_GRID for size in sizes):
        raise ValueError(
            f"{text[:20]!r} is not a size: give pixels as in 14, or height and width as in 14x20, "
            f"each from 1 to {MAX_GRID}"
        )
    return sizes


def for_axes(sizes: tuple[int, ...], axes: int) -> tuple[int, ...]:
    """A size for inputs with so many axes. Raises ValueError for two sides of a signal.

    >>> for_axes((80, 80), 1)
    (80,)
    """
    if len(sizes) == axes:
        return sizes
    if len(set(sizes)) > 1:
        raise ValueError("Signals have one axis, so their grid is one number of samples.")
    return sizes[:axes]


def read_grids(text: str, own: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The sizes of a text, separated by commas.

    Args:
        own: the size that `OWN` stands for, which has one number for signals.

    >>> read_grids("14, data, 56x40", (28, 28))
    [(14, 14), (28, 28), (56, 40)]
    """
    parts = [part.strip() for part in text.split(",")]
    return [own if part == OWN else for_axes(read_grid(part), len(own)) for part in parts]


def check_grids(text: str) -> str:
    """The text with each size as short as possible. Raises ValueError if one is not a size.

    >>> check_grids("14x14, data, 56x40")
    '14,data,56x40'
    """
    try:
        sizes = read_grids(text, (0, 0))
    except ValueError as error:
        raise ValueError(
            f"Grid takes sizes separated by commas, as in 14,28x20,{OWN}, each from 1 to "
            f"{MAX_GRID} pixels; got {text[:40]!r}"
        ) from error
    return ",".join(
        OWN if size == (0, 0) else f"{size[0]}" if size[0] == size[1] else "{}x{}".format(*size)
        for size in sizes
    )
