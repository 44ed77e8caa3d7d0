"""Training: a config and a data set in, events and checkpoints out.

>>> from densembed.data import load_dataset
>>> config, dataset = RunConfig(model="logistic-el-2", epochs=1), load_dataset("digits")
>>> recorder = Recorder(config, dataset)
>>> for event in train(config, dataset):
...     recorder.add(event)
>>> recorder.checkpoint("done").steps[-1]
12
"""

from densembed.training.checkpoint import Checkpoint, CheckpointError, load
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.loop import (
    Diverged,
    Epoch,
    Event,
    Progress,
    Resume,
    Snapshot,
    error_rate,
    train,
)
from densembed.training.recorder import Recorder

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
