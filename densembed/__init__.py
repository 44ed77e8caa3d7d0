"""Density-embedding layers (Cicala & Bortolussi, 2020): adaptive receptive fields in torch."""

__version__ = "0.1.0"

from densembed.models.names import build, parameter_count
from densembed.models.plugins import load_from_environment, register_density, register_model
from densembed.training.checkpoint import Checkpoint, CheckpointError, load
from densembed.training.config import RunConfig
from densembed.training.loop import train

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "RunConfig",
    "build",
    "load",
    "parameter_count",
    "register_density",
    "register_model",
    "train",
]

load_from_environment()
