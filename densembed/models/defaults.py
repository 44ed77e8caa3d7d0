"""Torch's defaults, under which networks are built, trained and opened."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch

T = TypeVar("T")


@contextmanager
def float32_on_cpu() -> Iterator[None]:
    """Create tensors in float32 on the CPU, whatever defaults the caller has set."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    try:
        # The context of a device makes every call of torch slower.
        with nullcontext() if device.type == "cpu" else torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextmanager
def for_training() -> Iterator[None]:
    """`float32_on_cpu` with gradients and without autocast."""
    with (
        float32_on_cpu(),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
    ):
        yield


def each_for_training(values: Generator[T, None, None]) -> Iterator[T]:
    """The values of a generator, which runs `for_training` while its caller does not."""
    try:
        while True:
            with for_training():
                value = next(values)
            yield value
    except StopIteration:
        return
    finally:
        values.close()
