"""Checks of the arguments and inputs of layers, with errors that say what to change."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def widened(tensor: Tensor) -> Tensor:
    """`tensor` in at least float32, because positions need more than 8 or 11 bits."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def check_dtype(x: Tensor, expected: torch.dtype | None) -> None:
    """Raises ValueError unless an input has the dtype of the parameters, as torch's layers do.

    Under autocast all floating dtypes except float64 are accepted, because autocast converts them.

    Args:
        expected: dtype of the layer's parameters; None accepts every floating dtype.
    """
    if not x.is_floating_point():
        raise ValueError(
            f"Expected a floating-point input; got {x.dtype}. "
            f"Convert it with x.to({expected or torch.float32})."
        )
    if expected in (None, x.dtype):
        return
    device = x.device.type
    autocast = device != "meta" and torch.is_autocast_enabled(device)
    if not autocast or torch.float64 in (expected, x.dtype):
        raise ValueError(
            f"Expected an input of {expected}, the dtype of the layer's parameters; got {x.dtype}. "
            f"Convert the input with x.to({expected}) or the layer with layer.to({x.dtype})."
        )


def per_axis(
    value: int | Sequence[int] | None, axes: int, name: str, minimum: int
) -> tuple[int, ...]:
    """One integer per axis; a single integer is repeated. Raises ValueError for other values."""
    values: tuple[Any, ...] = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if len(values) != axes or not all(isinstance(v, int) and v >= minimum for v in values):
        raise ValueError(
            f"Expected {name} to be an integer of at least {minimum}, or {axes} of them; "
            f"got {value!r}."
        )
    return values


def positions(size: int, span: int, stride: int, padding: tuple[int, int]) -> int:
    """L, the number of windows of `span` pixels on a padded axis. ValueError if it is zero."""
    room = size + sum(padding) - span
    if room < 0:
        raise ValueError(
            f"Expected an axis of at least {span} pixels, the extent of the kernel; "
            f"got {size} with padding {padding}."
        )
    return room // stride + 1
