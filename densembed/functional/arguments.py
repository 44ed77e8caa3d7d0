"""Checks of the arguments and inputs of layers, with errors that say what to change."""

import torch
from torch import Tensor


def widened(tensor: Tensor) -> Tensor:
    """Half precision to float32, others as they are: positions need more than 8 or 11 bits."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def check_dtype(x: Tensor, wanted: torch.dtype | None) -> None:
    """Raises ValueError for an input that is not of the parameters' dtype, as torch's layers do.

    Autocast is left to convert what it converts, which is all floating dtypes but float64.

    Args:
        wanted: dtype of the layer's parameters; None for any floating one.
    """
    if not x.is_floating_point():
        raise ValueError(
            f"Expected a floating-point input; got {x.dtype}. "
            f"Convert it with x.to({wanted or torch.float32})."
        )
    if wanted in (None, x.dtype):
        return
    device = x.device.type
    autocast = device != "meta" and torch.is_autocast_enabled(device)
    if not autocast or torch.float64 in (wanted, x.dtype):
        raise ValueError(
            f"Expected an input of {wanted}, the dtype of the layer's parameters; got {x.dtype}. "
            f"Convert the input with x.to({wanted}) or the layer with layer.to({x.dtype})."
        )


def per_axis(value: int | tuple[int, ...], axes: int, name: str, least: int) -> tuple[int, ...]:
    """One integer for each axis from one for all. Raises ValueError for anything else."""
    values = (value,) * axes if not isinstance(value, tuple | list) else tuple(value)
    if len(values) != axes or not all(isinstance(v, int) and v >= least for v in values):
        raise ValueError(
            f"Expected {name} to be an integer of at least {least}, or {axes} of them; "
            f"got {value!r}."
        )
    return values


def positions(size: int, span: int, stride: int, padding: tuple[int, int]) -> int:
    """L, the number of windows of `span` pixels on a padded axis. ValueError if none fits."""
    room = size + sum(padding) - span
    if room < 0:
        raise ValueError(
            f"Expected an axis of at least {span} pixels, the extent of the kernel; "
            f"got {size} and padding {padding}."
        )
    return room // stride + 1
