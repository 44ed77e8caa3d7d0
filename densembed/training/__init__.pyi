from .checkpoint import Checkpoint, load
from .config import RunConfig
from .errors import Errors
from .header import CheckpointError
from .loop import (
    Diverged,
    Epoch,
    Event,
    Progress,
    Resume,
    Snapshot,
    error_rate,
    train,
)
from .recorder import Recorder

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Diverged",
    "Epoch",
    "Errors",
    "Event",
    "Progress",
    "Recorder",
    "Resume",
    "RunConfig",
    "Snapshot",
    "error_rate",
    "load",
    "train",
]
