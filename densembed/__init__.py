"""Density-embedding layers (Cicala & Bortolussi, 2020): adaptive receptive fields in torch."""

from densembed.functional.densities import Density
from densembed.models.architectures import DensityNetwork
from densembed.models.names import build, parameter_count
from densembed.models.plugins import load_from_environment, register_density, register_model
from densembed.training.checkpoint import Checkpoint, CheckpointError, load
from densembed.training.config import RunConfig
from densembed.training.loop import train
from densembed.training.recorder import Recorder
from densembed.version import __version__

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Density",
    "DensityNetwork",
    "Recorder",
    "RunConfig",
    "__version__",
    "build",
    "load",
    "parameter_count",
    "register_density",
    "register_model",
    "train",
]

load_from_environment()
