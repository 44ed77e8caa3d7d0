"""On a GPU: the captured step is the eager one, and training ends where a CPU's ends."""

import pytest
import torch

from densembed.data import Dataset, Split, load_dataset
from densembed.fields.field import field
from densembed.models.registry import build
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, Resume, Snapshot, train
from densembed.training.optimiser import Adam
from densembed.training.step import StackedParameters, step, stepper

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
MODELS = [
    "linear",
    "logistic-el-4",
    "logistic-el-mnn-4-2",
    "gaussian-el-mnn-4-2",
    "adaptive-conv-pool-logistic-el-3",
]


@pytest.fixture(scope="module")
def small() -> Dataset:
    whole = load_dataset("digits")
    train, test = (
        Split(part.images[:size], part.labels[:size])
        for part, size in ((whole.train, 200), (whole.test, 50))
    )
    return Dataset("digits", "digits", whole.classes, train, test)


def states(config, dataset):
    return [event.state for event in train(config, dataset) if isinstance(event, Snapshot)]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("model", MODELS)
def test_the_captured_step_is_the_eager_one(small, model, members):
    data = small.to(torch.device("cuda"))
    models = [build(model, data.input_shape).cuda() for _ in range(members)]
    index = torch.stack([torch.randperm(200)[:64] for _ in range(members)]).cuda()
    values, losses = [], []
    for captured in (False, True):
        stacked = StackedParameters(models)
        adam = Adam(stacked.values, torch.full((members, 1), 0.01, device="cuda"), 20)
        take = stepper(stacked, adam, data.train, 64)
        for row in adam.table[:6]:
            if captured:
                loss = take(index, row).clone()
            else:
                loss = step(stacked, adam, data.train.images[index], data.train.labels[index], row)
        values.append(stacked.values.detach())
        losses.append(loss)
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values[1], values[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_training_ends_where_a_cpus_ends(small, model):
    config = RunConfig(model=model, epochs=2, batch_size=64, seeds=2, device="cuda")
    ours = states(config, small)
    theirs = states(config.model_copy(update={"device": "cpu"}), small)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for name, value in mine.items():
            torch.testing.assert_close(value, other[name], rtol=2e-2, atol=2e-3)


def test_going_on_is_the_straight_line(small):
    config = RunConfig(model="logistic-el-mnn-4-2", epochs=2, batch_size=64, device="cuda")
    events = list(train(config, small))
    middle = next(event for event in events if isinstance(event, Resume) and event.step > 3)
    again = list(train(config, small, resume=middle))
    last, first = (
        [event for event in kind if isinstance(event, Snapshot)][-1] for kind in (events, again)
    )
    for name, value in last.state.items():
        torch.testing.assert_close(first.state[name], value, rtol=1e-3, atol=1e-4)
    assert [event.epoch for event in again if isinstance(event, Epoch)][-1] == 2


def test_fields_are_those_of_the_cpu():
    model = build("logistic-el-mnn-4-2").eval()
    x = torch.rand(5, 1, 28, 28)
    expected = torch.from_numpy(field(model, x).values)
    shown = torch.from_numpy(field(model.cuda(), x.cuda()).values)
    torch.testing.assert_close(shown, expected, rtol=1e-3, atol=1e-5)
