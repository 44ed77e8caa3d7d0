"""Models of plugins that the training loop cannot train are refused before the first step."""

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from densembed.cli.main import main
from densembed.models.registry import build, register_model
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError
from densembed.training.loop import Snapshot, error_rate, train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence
from tests.registry import restored


@pytest.fixture(autouse=True)
def registered():
    with restored():
        yield


class Scaled(nn.Sequential):
    """A linear classifier with a parameter of no dimension, or what a test adds to it."""

    def __init__(self, classes: int):
        super().__init__(nn.Flatten(), nn.Linear(784, classes))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.scale * super().forward(x)


def normalised(layer: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 5, 4), layer, nn.Flatten(), nn.Linear(144, 10))


def buffered() -> nn.Module:
    model = Scaled(10)
    model.register_buffer("offset", torch.ones(10))
    return model


def tied() -> nn.Module:
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 784), nn.Linear(784, 784), nn.Linear(784, 10)
    )
    model[2].weight = model[1].weight
    return model


def frozen() -> nn.Module:
    model = Scaled(10)
    model[1].bias.requires_grad_(False)
    return model


class Doubled(Scaled):
    def forward(self, x):
        return super().forward(x.double())


class Pairs(Scaled):
    def forward(self, x):
        if len(x) < 2:
            raise RuntimeError("needs two")
        return super().forward(x)


class Noisy(Scaled):
    def forward(self, x):
        return super().forward(x + torch.randn_like(x) if self.training else x)


class Pixels(nn.Module):
    def forward(self, x):
        return x.flatten(1)[:, :10]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.last = nn.GRU(28, 4, batch_first=True), nn.Linear(4, 10)

    def forward(self, x):
        return self.last(self.rows(x[:, 0])[0][:, -1])


REFUSED = {
    "running statistics": (lambda: normalised(nn.BatchNorm2d(4)), "the buffer 1.running_mean,"),
    "a buffer": (buffered, "the buffer offset,"),
    "a spectral norm": (
        lambda: nn.Sequential(nn.Flatten(), spectral_norm(nn.Linear(784, 10))),
        "the buffer 1.parametrizations.weight.0._u,",
    ),
    "tied weights": (tied, "its parameter 2.weight is tied to another one."),
    "frozen weights": (frozen, "its parameter 1.bias is frozen."),
    "no parameters": (Pixels, "it has no parameters."),
    "float64": (lambda: Doubled(10).double(), "its parameter scale is float64."),
    "dropout": (lambda: normalised(nn.Dropout(0.5)), "draws random numbers in training mode,"),
    "noise": (lambda: Noisy(10), "draws random numbers in training mode,"),
    "statistics of the batch": (
        lambda: normalised(nn.BatchNorm2d(4, track_running_stats=False)),
        "its prediction for an input depends on the others of the batch,",
    ),
    "no single input": (
        lambda: Pairs(10),
        "it fails with a single input, RuntimeError, needs two.",
    ),
}


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("what", REFUSED)
def test_a_model_that_training_would_lose_is_refused(digits, tmp_path, capsys, what, seeds):
    builder, fault = REFUSED[what]
    register_model("mine", lambda shape, classes: builder())
    config = RunConfig(model="mine", dataset="digits", epochs=1, seeds=seeds, device="cpu")
    with pytest.raises(ValueError, match=r"^The model mine of a plugin cannot be tr") as caught:
        next(train(config, digits))
    assert is_sentence(str(caught.value))
    assert fault in str(caught.value)
    out = tmp_path / "a.safetensors"
    assert main(["train", "mine", "--epochs=1", f"--seeds={seeds}", f"--out={out}"]) == 2
    assert main(["train", "mine", "--epochs=1", f"--seeds={seeds}"]) == 2
    assert capsys.readouterr().err == 2 * f"densembed: {caught.value}\n"


def test_members_that_cannot_train_together_can_train_alone(digits):
    register_model("rows", lambda shape, classes: Recurrent())
    config = RunConfig(model="rows", epochs=1, batch_size=1000, device="cpu")
    assert len(list(train(config, digits))) > 2
    with pytest.raises(ValueError, match=r"members cannot train together, .* with seeds=1\.$"):
        next(train(config.model_copy(update={"seeds": 2}), digits))


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize(
    "builder",
    [
        lambda: Scaled(10),
        lambda: normalised(nn.GroupNorm(2, 4)),
        lambda: nn.Sequential(nn.Flatten(), weight_norm(nn.Linear(784, 10))),
        lambda: normalised(nn.Dropout(0.0)),
    ],
    ids=["no dimension", "group norm", "weight norm", "no dropout"],
)
def test_other_models_are_trained_and_saved(digits, tmp_path, builder, seeds):
    register_model("mine", lambda shape, classes: builder())
    config = RunConfig(
        model="mine", epochs=2, batch_size=200, learning_rate=0.01, seeds=seeds, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    opened = Checkpoint.open(tmp_path / "a.safetensors")
    for member, error in enumerate(opened.errors):
        assert error < 40
        assert error_rate(opened.model(member=member), digits.test) == pytest.approx(error)


def test_a_loop_of_ones_own_may_have_buffers(digits, tmp_path):
    """Its number of batches is an integer, which the file has as float32."""
    register_model("mine", lambda shape, classes: normalised(nn.BatchNorm2d(4)))
    recorder = Recorder(RunConfig(model="mine", device="cpu"), digits)
    model = build("mine")
    for step in (0, 3):
        state = {name: value[None].clone() for name, value in model.state_dict().items()}
        recorder.add(Snapshot(step, state))
        for _ in range(3):
            model(torch.rand(8, 1, 28, 28))
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    opened = Checkpoint.open(tmp_path / "a.safetensors")
    assert opened.model()[1].num_batches_tracked == 3
    assert all(torch.equal(opened.model().state_dict()[name], state[name][0]) for name in state)


def test_a_model_without_parameters_is_no_checkpoint(digits, tmp_path):
    register_model("mine", lambda shape, classes: Pixels())
    recorder = Recorder(RunConfig(model="mine", device="cpu"), digits)
    recorder.add(Snapshot(0, {}))
    with pytest.raises(CheckpointError, match=r"^a.safetensors has a model without parameters"):
        recorder.checkpoint().save(tmp_path / "a.safetensors")
