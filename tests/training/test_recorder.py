"""What a recorder keeps of a training, and what it refuses."""

import numpy as np
import pytest
import torch

import densembed
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import Diverged, Epoch, Resume, Snapshot, train
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence
from tests.training.files import tensors


def test_recorder_keeps_a_training(digits, tmp_path):
    config = RunConfig(model="logistic-el-2", epochs=2, batch_size=100, device="cpu")
    recorder, events = Recorder(config, digits), []
    for event in train(config, digits):
        recorder.add(event)
        events.append(event)
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    kept = Checkpoint.open(tmp_path / "a.safetensors")
    snapshots = [event for event in events if isinstance(event, Snapshot)]
    epochs = [event for event in events if isinstance(event, Epoch)]
    assert kept.config == config
    assert kept.steps == [event.step for event in snapshots] == [0, 1, 2, 4, 8, 15, 30]
    for index, event in enumerate(snapshots):
        state = kept.state(index)
        assert all(torch.equal(state[name], event.state[name][0]) for name in event.state)
    assert [e.test_error for e in kept.header.epochs] == [event.test_error for event in epochs]
    assert kept.errors == epochs[-1].test_error
    assert kept.header.steps_per_epoch == 15
    assert kept.header.outcome == "done"
    origin = kept.header.provenance
    assert (origin.train_images, origin.test_images) == (1438, 359)
    assert (origin.device, origin.torch, origin.densembed) == (
        "cpu",
        torch.__version__,
        densembed.__version__,
    )


def test_a_record_begins_before_training(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    with pytest.raises(ValueError, match=r"first snapshot of step 0, .* got one of step 1,200"):
        recorder.add(Snapshot(1200, {}))
    with pytest.raises(ValueError, match="at least one snapshot"):
        recorder.checkpoint()


def test_a_record_is_in_order(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    with pytest.raises(TypeError, match="event of train; got str"):
        recorder.add("x")
    recorder.add(Snapshot(0, {}))
    recorder.add(Snapshot(45, {}))
    for step in (45, 44):
        with pytest.raises(ValueError, match=f"next snapshot above 45; got {step}"):
            recorder.add(Snapshot(step, {}))
    epoch = Epoch(1, 45, train_loss=[1.0], test_error=[1.0], learning_rate=0.1, seconds=1.0)
    recorder.add(epoch)
    with pytest.raises(ValueError, match="next epoch above 1; got 1"):
        recorder.add(epoch)


@pytest.mark.parametrize("step", [3.0, 10**13, -1, "3", None])
def test_a_step_that_could_not_be_saved_is_not_added(digits, step):
    recorder = Recorder(RunConfig(model="linear"), digits)
    recorder.add(Snapshot(0, {}))
    with pytest.raises(
        ValueError, match=r"whole number from 0 to 1,000,000,000,000; got"
    ) as caught:
        recorder.add(Snapshot(step, {}))
    assert is_sentence(str(caught.value))
    with pytest.raises(ValueError, match=r"^The epoch does not fit a checkpoint: The field 'step'"):
        recorder.add(Epoch(1, step, [1.0], [1.0], learning_rate=0.1, seconds=1.0))


def test_a_recorder_keeps_copies(digits):
    """All snapshots were the last one, if they were not cloned."""
    recorder, model = Recorder(RunConfig(model="logistic-el-2"), digits), build("logistic-el-2")
    for step in range(2):
        recorder.add(Snapshot(step, {k: v[None] for k, v in model.state_dict().items()}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    first, second = (snapshot.state["embedding.alpha"] for snapshot in recorder.snapshots)
    torch.testing.assert_close(second, first + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("embedding.beta"), "has embedding.beta not at all, and the first"),
        (
            lambda state: state.update(more=torch.zeros(1, 1)),
            r"has more of shape \(1, 1\), and the",
        ),
        (
            lambda state: state.update({"embedding.beta": torch.zeros(2, 1)}),
            r"has embedding.beta of shape \(2, 1\), and",
        ),
    ],
    ids=["missing", "additional", "shape"],
)
def test_snapshots_have_the_same_parameters(digits, change, words):
    recorder = Recorder(RunConfig(model="logistic-el-2"), digits)
    state = {name: part[0] for name, part in tensors().items()}
    recorder.add(Snapshot(0, state))
    change(state)
    recorder.add(Snapshot(45, state))
    with pytest.raises(ValueError, match=f"that of step 45 {words}") as caught:
        recorder.checkpoint()
    assert is_sentence(str(caught.value))


def test_a_step_may_be_a_numpy_integer(digits, tmp_path):
    recorder = Recorder(RunConfig(model="logistic-el-2"), digits)
    state = {name: part[0] for name, part in tensors().items()}
    for step in np.arange(2):
        recorder.add(Snapshot(step, state))
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    assert Checkpoint.open(tmp_path / "a.safetensors").steps == [0, 1]


def test_a_record_has_a_limit(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    for step in range(1000):
        recorder.add(Snapshot(step, {}))
    with pytest.raises(ValueError, match=r"at most 1,000 snapshots, .* add fewer of them\.$"):
        recorder.add(Snapshot(1000, {}))
    epochs = [Epoch(k, k, [1.0], [1.0], 0.1, 1.0) for k in range(1, 10_002)]
    for epoch in epochs[:-1]:
        recorder.add(epoch)
    with pytest.raises(ValueError, match=r"at most 10,000 epochs, .* add fewer of them\.$"):
        recorder.add(epochs[-1])
    assert (len(recorder.snapshots), len(recorder.header.epochs)) == (1000, 10_000)


@pytest.mark.parametrize("outcome", ["done", "stopped"])
def test_a_training_that_diverged_is_not_done(digits, outcome):
    config = RunConfig(model="mlp-50", epochs=15, learning_rate=3000, batch_size=16, device="cpu")
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    assert isinstance(event, Diverged)
    checkpoint = recorder.checkpoint(outcome)
    assert checkpoint.header.outcome == "diverged"
    assert checkpoint.moment(checkpoint.steps[-1]) != "after training"
    assert checkpoint.novelty is None


def test_an_outcome_is_one_of_five(digits):
    recorder = Recorder(RunConfig(model="linear"), digits)
    recorder.add(Snapshot(0, {}))
    with pytest.raises(
        ValueError, match=r"running, done, stopped, diverged, failed; got 'finished'"
    ):
        recorder.checkpoint("finished")


def test_recorder_keeps_all_members(digits, tmp_path):
    config = RunConfig(
        model="logistic-el-2", epochs=2, batch_size=200, seed=4, seeds=3, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
    recorder.checkpoint("done").save(tmp_path / "a.safetensors")
    kept = Checkpoint.open(tmp_path / "a.safetensors")
    assert kept.members == len(kept.errors) == 3
    assert kept.parameters == 66
    x = digits.test.images / 255
    for member, error in enumerate(kept.errors):
        answers = kept.model(member=member)(x).argmax(1)
        wrong = (answers != digits.test.labels).sum().item()
        assert error == pytest.approx(100 * wrong / 359)
        torch.manual_seed(4 + member)
        fresh = build("logistic-el-2").state_dict()
        assert all(torch.equal(kept.state(0, member)[name], fresh[name]) for name in fresh)


def test_settings_that_changed_before_a_training_resumes_are_named(trained, digits):
    config = trained.config.model_copy(update={"epochs": 9, "learning_rate": 0.01})
    with pytest.raises(ValueError, match=r": epochs \(3 before\), learning_rate \(0.05 before\)\."):
        Recorder(config, digits).resume(trained, trained.steps[-1])


def test_recorder_gives_what_is_known_so_far(digits):
    config = RunConfig(model="logistic-el-2", epochs=2, batch_size=100, device="cpu")
    recorder = Recorder(config, digits)
    events = train(config, digits)
    recorder.add(next(events))
    early = recorder.checkpoint()
    assert early.steps == [0]
    assert early.errors is None
    assert early.typical == 0
    assert early.header.outcome == "running"


def test_the_last_snapshot_of_a_training_that_goes_on_is_where_it_is(digits, tmp_path):
    """The snapshots that are kept of a thousand epochs lie forty apart."""
    config = RunConfig(
        model="logistic-el-mnn-2-1", epochs=1000, batch_size=1438, seeds=2, device="cpu"
    )
    recorder = Recorder(config, digits)
    for event in train(config, digits):
        recorder.add(event)
        if isinstance(event, Resume) and event.step == 5:
            break
    now = recorder.checkpoint()
    assert now.steps == [0, 5]
    stopped = [
        event for event in train(config, digits, stop=_stop_after(5)) if type(event) is Snapshot
    ]
    assert [event.step for event in stopped] == [0, 5]
    for name, tensor in stopped[-1].state.items():
        assert torch.equal(now.tensors[name][-1], tensor)
    now.save(tmp_path / "a.safetensors")
    assert Checkpoint.open(tmp_path / "a.safetensors").steps == [0, 5]
    assert recorder.checkpoint("diverged").steps == [0]
    again = Recorder(config, digits)
    again.resume(now, 5)
    assert [snapshot.step for snapshot in again.snapshots] == [0]
    recorder.position.state["values"][0, 3] = torch.nan
    assert recorder.checkpoint().steps == [0]


def _stop_after(epochs: int):
    """What a training asks at the end of each epoch."""
    asked = iter(range(1, epochs + 1))
    return lambda: next(asked) == epochs
