from .functional.densities import Density
from .models.architectures import DensityNetwork
from .models.registry import build, parameter_count, register_density, register_model
from .notebook import figure, show
from .training.checkpoint import Checkpoint, load
from .training.config import RunConfig
from .training.header import CheckpointError
from .training.loop import train
from .training.recorder import Recorder
from .version import __version__

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Density",
    "DensityNetwork",
    "Recorder",
    "RunConfig",
    "__version__",
    "build",
    "figure",
    "load",
    "parameter_count",
    "register_density",
    "register_model",
    "show",
    "train",
]
