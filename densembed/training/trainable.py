"""Which models of plugins the training loop can train.

The loop keeps one vector of parameters per member and nothing else, so a model's state must be its
trainable parameters in float32. Its forward pass must not draw random numbers, as the same config
gives the same weights.
"""

import math

import torch
from torch import nn

from densembed.data import Dataset
from densembed.functional.modes import evaluating
from densembed.models.defaults import float32_on_cpu
from densembed.models.names import parse
from densembed.models.plugins import in_line, is_plugin
from densembed.models.registry import build
from densembed.training.config import RunConfig
from densembed.training.step import StackedParameters

OWN_LOOP = "or train it in a loop of your own (docs/engineers.md)"


@float32_on_cpu()
def check_model(config: RunConfig, dataset: Dataset) -> None:
    """Raise ValueError if the config's model is one of a plugin that the loop cannot train."""
    if not is_plugin(parse(config.model)[0]):
        return
    with torch.random.fork_rng(devices=[]):
        model = build(config.model, dataset.input_shape, classes=len(dataset.classes)).train()
        fault = _of_state(model) or _of_calls(model, dataset.input_shape, config.seeds)
    if fault:
        raise ValueError(f"The model {config.model} of a plugin cannot be trained: {fault}.")


def _of_state(model: nn.Module) -> str:
    """What the loop would lose, and the remedy; empty if there is nothing."""
    parameters = dict(model.named_parameters())
    every = dict(model.named_parameters(remove_duplicate=False))
    if buffers := [name for name in model.state_dict() if name not in every]:
        return (
            f"it has the buffer {buffers[0]}, and only parameters are trained and saved. Use a "
            f"layer without buffers, such as GroupNorm in place of BatchNorm, {OWN_LOOP}"
        )
    if not parameters:
        return "it has no parameters"
    if tied := [name for name in every if name not in parameters]:
        return (
            f"its parameter {tied[0]} is tied to another one. Use one layer in both places, "
            f"{OWN_LOOP}"
        )
    for name, parameter in parameters.items():
        if not parameter.requires_grad:
            return f"its parameter {name} is frozen. Call requires_grad_() on it, {OWN_LOOP}"
        if parameter.dtype != torch.float32:
            dtype = str(parameter.dtype).removeprefix("torch.")
            return f"its parameter {name} is {dtype}. Make it float32, as every checkpoint is"
    return ""


@torch.no_grad()
def _of_calls(model: nn.Module, input_shape: tuple[int, ...], seeds: int) -> str:
    """Why the model fails with the inputs that the loop may give it; empty if it does not."""
    x = torch.zeros(1, *input_shape)  # the last batch of an epoch may be as small
    before = torch.get_rng_state()
    try:
        model(x)
    except Exception as error:  # foreign code may raise anything
        return f"it fails with a single input, {in_line(error)}"
    if not torch.equal(torch.get_rng_state(), before):
        return (
            "it draws random numbers in training mode, as Dropout does, so the same seed would not "
            f"give the same weights. Remove what draws them, {OWN_LOOP}"
        )
    if _mixes_inputs(model, input_shape):
        return (
            "its prediction for an input depends on the others of the batch, as that of BatchNorm "
            f"without running statistics does. Use GroupNorm in its place, {OWN_LOOP}"
        )
    try:
        if seeds > 1:
            StackedParameters([model, model]).logits(torch.stack([x, x]))
    except Exception as error:
        reason = in_line(error)
        return f"its members cannot train together, {reason}. Train each seed alone, with seeds=1"
    return ""


def _mixes_inputs(model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Whether the output of an input changes with another one of its batch, for predictions."""
    first = torch.linspace(0, 1, math.prod(input_shape)).reshape(input_shape)
    with evaluating(model):
        one, other = (model(torch.stack([first, beside]))[0] for beside in (first, 1 - first**2))
    return not torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)
