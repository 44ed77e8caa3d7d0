"""The device that a config names."""

import torch


def pick_device(name: str) -> torch.device:
    """The device for a config's `device`; `auto` prefers CUDA, then MPS, then the CPU.

    Raises:
        ValueError: if this machine has no such device.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(device for device, present in available.items() if present))
    if not available[name]:
        raise ValueError(f"This machine has no {name} device. Choose cpu or auto.")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """The model of a CUDA device, otherwise the type of the device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
