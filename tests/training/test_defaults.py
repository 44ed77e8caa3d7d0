"""Torch's defaults and modes of the caller do not reach a training or a checkpoint."""

from contextlib import contextmanager

import pytest
import torch

import densembed
from densembed import exchange
from densembed.fields.field import view
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import Snapshot, estimate_seconds, train
from densembed.training.recorder import Recorder


@contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


DEFAULTS = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "meta": lambda: torch.device("meta"),
}
MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("defaults", DEFAULTS)
def test_a_network_of_a_checkpoint_is_float32_on_the_cpu(trained_file, digits, defaults):
    expected = Checkpoint.open(trained_file)
    pixels, logits = digits.test.images[0], expected.model()(digits.test.images[:1] / 255)
    wanted, table = view(expected, pixels), exchange.to_csv(expected, pixels=pixels)
    torch.manual_seed(3)
    with DEFAULTS[defaults]():
        opened, model = Checkpoint.open(trained_file), densembed.load(trained_file)
        opened.header.provenance.threads += 1  # another digest, so that no network is cached
        shown, printed = view(opened, pixels), exchange.to_csv(opened, pixels=pixels)
        assert densembed.figure(opened) is not None
        assert torch.get_default_dtype() == torch.empty(0).dtype
    for network in (model, opened.network(), opened.model()):
        assert {(part.dtype, part.device.type) for part in network.parameters()} == {
            (torch.float32, "cpu")
        }
        assert torch.equal(network(digits.test.images[:1] / 255), logits)
    assert (shown.probabilities == wanted.probabilities).all()
    assert printed == table
    assert view(opened, pixels).probabilities.shape == wanted.probabilities.shape


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("caller", DEFAULTS | MODES)
def test_a_training_is_the_same_under_other_defaults(digits, tmp_path, caller, seeds):
    config = RunConfig(
        model="logistic-el-mnn-2-1", epochs=1, batch_size=400, seeds=seeds, device="cpu"
    )
    plain = [event for event in train(config, digits) if isinstance(event, Snapshot)]
    recorder = Recorder(config, digits)
    with (DEFAULTS | MODES)[caller]():
        default, gradients = torch.get_default_dtype(), torch.is_grad_enabled()
        for event in train(config, digits):
            assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (default, gradients)
            recorder.add(event)
        recorder.checkpoint("done").save(tmp_path / "a.safetensors")
        assert estimate_seconds(config, digits) > 0
    opened = Checkpoint.open(tmp_path / "a.safetensors")
    assert len(opened.steps) == len(plain)
    for name, value in plain[-1].state.items():
        assert torch.equal(opened.tensors[name][-1], value)


def test_a_training_that_is_left_restores_the_defaults(digits):
    events = train(RunConfig(model="linear", epochs=1, device="cpu"), digits)
    with default_dtype(torch.float64):
        next(events)
        events.close()
        assert torch.get_default_dtype() == torch.float64
        assert next(build("linear").parameters()).dtype == torch.float64
