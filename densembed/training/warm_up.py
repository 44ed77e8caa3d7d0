"""Compilation of the kernels before the first training."""

import torch

import densembed.kernels as kernels
from densembed.data import Split
from densembed.models.registry import build
from densembed.training.optimiser import Adam
from densembed.training.step import StackedParameters, stepper

MODELS = "logistic-el-4", "logistic-el-mnn-2-2"
"""Their steps call every kernel."""


def compile_kernels() -> None:
    """Compile every kernel in float32, or load it from disk, by a step on two blank images."""
    if not kernels.available():
        return
    split = Split(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    for model in MODELS:
        with torch.random.fork_rng(devices=[]):
            stacked = StackedParameters([build(model, (1, 8, 8))])
        adam = Adam(stacked.values, torch.zeros(1, 1), 1)
        stepper(stacked, adam, split, 2)(torch.zeros(1, 2, dtype=torch.int64), adam.table[0])
