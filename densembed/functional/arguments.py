"""Checks of the arguments and inputs of layers, with errors that say what to change."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize

from densembed.functional.modes import evaluating


def widened(tensor: Tensor) -> Tensor:
    """`tensor` in at least float32, because positions need more than 8 or 11 bits."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def as_tensor(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Values in any form as a dense tensor, which shares no memory with an array.

    Torch takes no array in another byte order or with reversed axes, and warns of a read-only one.

    >>> as_tensor(np.arange(3, dtype=">i4")[::-1])
    tensor([2, 1, 0], dtype=torch.int32)

    Raises:
        ValueError: the tensor is nested or quantized.
    """
    if isinstance(values, np.ndarray):
        values = np.array(values, values.dtype.newbyteorder("="), order="C")
    tensor = torch.as_tensor(values, dtype=dtype)
    if tensor.is_nested or tensor.is_quantized:
        kind, convert = (
            ("nested", "to_padded_tensor(0)") if tensor.is_nested else ("quantized", "dequantize()")
        )
        raise ValueError(f"Expected a dense tensor; got a {kind} one. Convert it with x.{convert}.")
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def check_input(x: Tensor, like: Tensor | None) -> None:
    """Raises unless an input is a tensor with the dtype and device of a layer's parameters.

    Under autocast all floating dtypes except float64 are accepted, because autocast converts them.

    Args:
        like: a parameter or buffer of the layer; None accepts every device and floating dtype.
    Raises:
        TypeError: `x` is not a tensor.
        ValueError: it is not dense, or its dtype or device is wrong.
    """
    if isinstance(x, fx.Proxy):
        raise TypeError(
            "torch.fx.symbolic_trace does not trace this layer, whose checks read the input. Make "
            "the layer a leaf module of the Tracer, or use torch.export."
        )
    if not isinstance(x, Tensor):
        convert = "torch.from_numpy" if type(x).__module__ == "numpy" else "torch.tensor"
        raise TypeError(
            f"Expected a torch.Tensor as input; got {type(x).__module__}.{type(x).__qualname__}. "
            f"Convert it with {convert}(x)."
        )
    if x.is_nested or x.layout != torch.strided or x.is_quantized:
        kind = "nested" if x.is_nested else "quantized" if x.is_quantized else x.layout
        convert = {"nested": "to_padded_tensor(0)", "quantized": "dequantize()"}
        raise ValueError(
            f"Expected a dense input; got a {kind} tensor. Convert it with "
            f"x.{convert.get(str(kind), 'to_dense()')}."
        )
    expected = None if like is None else like.dtype
    if x.is_complex():
        raise ValueError(
            f"Expected a real input; got {x.dtype}. Give its parts as channels, for example "
            "torch.cat([x.real, x.imag], 1)."
        )
    if not x.is_floating_point():
        raise ValueError(
            f"Expected a floating-point input; got {x.dtype}. "
            f"Convert it with x.to({expected or torch.float32}), and divide pixel values of 0 to "
            "255 by 255."
        )
    if like is None:
        return
    if x.device != like.device:
        raise ValueError(
            f"Expected an input on {like.device}, the device of the layer's parameters; got "
            f"{x.device}. Move the input with x.to({str(like.device)!r}) or the layer with "
            f"layer.to({str(x.device)!r})."
        )
    if expected == x.dtype:
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
    if len(values) != axes or not all(
        isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= minimum for v in values
    ):
        several = f", or {axes} of them" if axes > 1 else ""
        raise ValueError(
            f"Expected {name} to be an integer of at least {minimum}{several}; got {value!r}."
        )
    return tuple(int(v) for v in values)


def axis_sizes(sizes: int | Sequence[int], axes: int | None = None) -> tuple[int, ...]:
    """The length of each axis. Raises ValueError unless there are `axes`, or one or two."""
    axes = axes or (len(sizes) if isinstance(sizes, tuple | list) else 1)
    if axes not in (1, 2):
        raise ValueError(f"Expected sizes of one or two axes; got {sizes!r}.")
    return per_axis(sizes, axes, "sizes", 1)


def positive(value: float, name: str) -> float:
    """A positive, finite number as a float. Raises ValueError for other values."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
        raise ValueError(f"Expected a positive {name}; got {value!r}.")
    return float(value)


def check_source(module: nn.Module, kind: type[nn.Module]) -> None:
    """Raises ValueError unless a layer's `from_torch` can compute the same as this module."""
    if not isinstance(module, kind):
        raise ValueError(f"Expected nn.{kind.__name__}; got {type(module).__name__}.")
    if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
        raise ValueError(
            f"This {type(module).__name__} has no weights yet: call it once with an input first."
        )
    for name in ("forward", "_conv_forward", "__call__"):
        expected, found = getattr(kind, name, None), getattr(type(module), name, None)
        ours = str(getattr(found, "__module__", "")).startswith("densembed.")
        if name in vars(module) or (found is not expected and not ours):
            raise ValueError(
                f"Expected nn.{kind.__name__} itself; got {type(module).__name__} with its own "
                "forward, which would be lost."
            )
    if module._forward_hooks or module._forward_pre_hooks:
        raise ValueError(
            f"This {type(module).__name__} has forward hooks, which would be lost: remove them. "
            "Those of torch.nn.utils are removed with remove_weight_norm, remove_spectral_norm or "
            "prune.remove."
        )


def take_weights(layer: nn.Module, module: nn.Module) -> None:
    """Copy weight and bias from a module of torch, with their device, dtype and `requires_grad`.

    The weights of a parametrization are copied as they are. The layer gets the mode of the module,
    training or evaluation. Raises ValueError if a shape does not fit the module's own sizes.
    """
    current = {name: _current(module, name) for name in ("weight", "bias")}
    layer.to(cast(Tensor, current["weight"]))
    for name, source in current.items():
        if source is not None:
            parameter = getattr(layer, name)
            if source.shape != parameter.shape:
                raise ValueError(
                    f"Expected a {name} of shape {tuple(parameter.shape)}, by the sizes of the "
                    f"module; got {tuple(source.shape)}."
                )
            parameter.data.copy_(source.detach())
            # Without gradients, the result of a parametrization does not require one.
            sources = (
                module.get_submodule(f"parametrizations.{name}").parameters()
                if parametrize.is_parametrized(module, name)
                else [source]
            )
            parameter.requires_grad_(any(each.requires_grad for each in sources))
    layer.train(module.training)


def _current(module: nn.Module, name: str) -> Tensor | None:
    """A parameter as it is. In training, reading a spectral norm would change it."""
    if not parametrize.is_parametrized(module, name):
        return getattr(module, name)
    with evaluating(module.get_submodule(f"parametrizations.{name}")):
        return getattr(module, name)


def positions(size: int, span: int, stride: int, padding: tuple[int, int]) -> int:
    """L, the number of windows of `span` pixels on a padded axis. ValueError if it is zero."""
    room = size + sum(padding) - span
    if room < 0:
        raise ValueError(
            f"Expected an axis of at least {span} pixels, the extent of the kernel; "
            f"got {size} with padding {padding}."
        )
    return room // stride + 1
