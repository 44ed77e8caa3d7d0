"""The training loop against one written in a straight line, and the events it gives out."""

import json
import math
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, pairwise, repeat
from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import avg_pool2d, cross_entropy, pad

from densembed.data import Dataset, Split
from densembed.data.grids import read_grids
from densembed.models.architectures import DensityNetwork
from densembed.models.registry import build
from densembed.training import loop
from densembed.training.config import RunConfig
from densembed.training.device import pick_device
from densembed.training.header import EpochMetrics
from densembed.training.loop import (
    Diverged,
    Epoch,
    Progress,
    Resume,
    Snapshot,
    estimate_seconds,
    members,
    snapshot_steps,
    train,
    train_members,
)
from densembed.training.recorder import Recorder


def config(**values) -> RunConfig:
    """A config on the CPU: there, the same seed gives the same bits."""
    return RunConfig(**{"model": "logistic-el-2", "epochs": 2, "device": "cpu"} | values)


def of(kind, events) -> list:
    return [event for event in events if isinstance(event, kind)]


def final(events) -> dict[str, torch.Tensor]:
    return of(Snapshot, events)[-1].state


def member(state, index: int = 0) -> dict[str, torch.Tensor]:
    """The plain state dict of one member."""
    return {name: value[index] for name, value in state.items()}


def same(first, second) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.fixture(scope="module")
def small(digits) -> Dataset:
    """100 images to train on: with batches of 32 the last one has 4."""
    return Dataset(
        "digits",
        "a few digits",
        digits.classes,
        Split(digits.train.images[:100], digits.train.labels[:100]),
        Split(digits.test.images[:50], digits.test.labels[:50]),
    )


# Which steps are kept


@given(st.integers(1, 3000), st.integers(1, 5000))
@example(1, 1)
@example(20, 469)
@example(10_000, 60_000)
def test_snapshot_steps_have_both_ends_and_are_few(epochs, per_epoch):
    steps = snapshot_steps(epochs, per_epoch)
    assert steps[0] == 0
    assert steps[-1] == epochs * per_epoch
    assert len(steps) <= 32
    assert steps == sorted(set(steps))
    powers = {2**k for k in range(20) if 2**k < per_epoch}
    ends = {epoch * per_epoch for epoch in range(1, epochs + 1)}
    assert set(steps) <= {0} | powers | ends
    if 1 + len(powers | ends) <= 32:
        assert set(steps) == {0} | powers | ends
    else:
        assert len(steps) == 32


def test_snapshot_steps_of_the_papers_training():
    """20 epochs of 469 batches of 128: all of the first epoch's powers of two, every end."""
    assert snapshot_steps(20, 469) == [0, *(2**k for k in range(9)), *range(469, 9381, 469)]


# The loop


def straight_line(
    config: RunConfig, data: Dataset, sides: Iterable[int] = ()
) -> tuple[dict, list[float]]:
    """Section 4 with nothing but torch: the last weights and every step's loss.

    `sides` are those of the images in the first steps; in the others it is 28.
    """
    side_of_step = chain(sides, repeat(28))
    torch.manual_seed(config.seed)
    model = build(config.model, (1, 28, 28))
    shuffle = torch.Generator()
    shuffle.manual_seed(config.seed)
    per_epoch = -(-len(data.train.labels) // config.batch_size)
    adam = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        adam, max_lr=config.learning_rate, total_steps=config.epochs * per_epoch
    )
    losses = []
    for _ in range(config.epochs):
        order = torch.randperm(len(data.train.labels), generator=shuffle)
        if config.shift:  # the shift of every image, row by row of the possible ones
            side = 2 * config.shift + 1
            places = torch.randint(side**2, (len(order),), generator=shuffle)
        for batch in range(per_epoch):
            index = order[batch * config.batch_size : (batch + 1) * config.batch_size]
            x = data.train.images[index].float() / 255
            if config.shift:
                x = shifted_one_by_one(x, places[batch * config.batch_size :], config.shift)
            side = next(side_of_step)
            if side < 28:
                x = avg_pool2d(x, 28 // side)
            elif side > 28:
                x = x.repeat_interleave(side // 28, -1).repeat_interleave(side // 28, -2)
            loss = cross_entropy(model.at(side)(x), data.train.labels[index])
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
            if len(losses) < config.epochs * per_epoch:
                cycle.step()
    return model.state_dict(), losses


def shifted_one_by_one(images: torch.Tensor, places: torch.Tensor, most: int) -> torch.Tensor:
    """Each image cut from a larger one, which repeats its edge, at its own place."""
    size, side = images.shape[-1], 2 * most + 1
    large = pad(images, (most,) * 4, mode="replicate")
    cut = []
    for image, place in zip(large, places.tolist(), strict=False):
        top, left = 2 * most - place // side, 2 * most - place % side
        cut.append(image[:, top : top + size, left : left + size])
    return torch.stack(cut)


@pytest.mark.parametrize("model", ["linear", "mlp-8", "logistic-el-2", "logistic-el-mnn-3-2"])
def test_training_is_the_straight_line(small, model):
    chosen = config(model=model, epochs=3, batch_size=32, learning_rate=0.01, seed=5)
    state = torch.get_rng_state()
    expected, losses = straight_line(chosen, small)
    torch.set_rng_state(state)
    events = list(train(chosen, small))
    for name, value in member(final(events)).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=2e-5)
    for epoch in of(Epoch, events):
        part = losses[4 * epoch.epoch - 4 : 4 * epoch.epoch]
        mean = (32 * sum(part[:3]) + 4 * part[3]) / 100
        assert epoch.train_loss == [pytest.approx(mean, rel=1e-4)]


@pytest.mark.parametrize("model", ["linear", "logistic-el-mnn-3-2"])
def test_training_with_shifts_is_the_straight_line(small, model):
    chosen = config(model=model, epochs=3, batch_size=32, learning_rate=0.01, shift=2)
    state = torch.get_rng_state()
    expected, losses = straight_line(chosen, small)
    torch.set_rng_state(state)
    events = list(train(chosen, small))
    for name, value in member(final(events)).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=2e-5)
    assert of(Epoch, events)[0].train_loss == [
        pytest.approx((32 * sum(losses[:3]) + 4 * losses[3]) / 100, rel=1e-4)
    ]


@pytest.mark.parametrize(
    "model", ["linear", "logistic-el-2", "logistic-el-mnn-3-2", "logistic-el-mnn-mass-3-2"]
)
def test_training_on_several_grids_is_the_straight_line(small, model):
    """Area means on the coarse grid, the same signal on the fine one."""
    chosen = config(model=model, epochs=3, batch_size=32, learning_rate=0.01, grid="14,data,56")
    turns = [turn for epoch in (1, 2, 3) for turn in loop.grid_order(epoch, 4, 3)]
    state = torch.get_rng_state()
    expected, losses = straight_line(chosen, small, [(14, 28, 56)[turn] for turn in turns])
    torch.set_rng_state(state)
    events = list(train(chosen, small))
    for name, value in member(final(events)).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=2e-5)
    assert of(Epoch, events)[0].train_loss == [
        pytest.approx((32 * sum(losses[:3]) + 4 * losses[3]) / 100, rel=1e-4)
    ]


def test_grids_take_turns_in_random_order():
    epochs = [loop.grid_order(epoch, 100, 3) for epoch in range(1, 31)]
    assert epochs == [loop.grid_order(epoch, 100, 3) for epoch in range(1, 31)]
    counts = [[epoch.count(grid) for grid in range(3)] for epoch in epochs]
    assert all(set(count) <= {33, 34} for count in counts)
    assert [sum(count) for count in zip(*counts, strict=True)] == [1000] * 3
    assert len(set(map(tuple, epochs))) == 30
    assert loop.grid_order(7, 3, 1) == [0, 0, 0]


def test_the_grid_of_the_images_is_the_usual_one(small):
    assert same(final(train(config(grid="28"), small)), final(train(config(), small)))


def test_a_grid_that_is_listed_twice_is_used_twice_as_often(small):
    assert read_grids("14,14,data", (28, 28)) == [(14, 14), (14, 14), (28, 28)]
    twice = final(train(config(grid="14,14"), small))
    assert same(twice, final(train(config(grid="14"), small)))
    assert not same(twice, final(train(config(), small)))


def test_each_grid_has_a_step(small):
    whole = config(grid="14,28", batch_size=len(small.train), epochs=2)  # two steps
    next(train(whole, small))
    with pytest.raises(ValueError, match=r"has 1 step, so that some of its grids are never"):
        next(train(whole.model_copy(update={"epochs": 1}), small))


def test_a_model_of_one_grid_is_not_trained_on_others(small, monkeypatch):
    monkeypatch.delattr(DensityNetwork, "at")
    next(train(config(grid="28"), small))
    with pytest.raises(ValueError, match="takes inputs of one size only"):
        next(train(config(grid="14"), small))


def test_weights_repeat_by_seed(small):
    first, again, other = (final(train(config(seed=seed), small)) for seed in (3, 3, 4))
    assert same(first, again)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_frequent_snapshots_change_no_weight(small, monkeypatch):
    expected = final(train(config(batch_size=8), small))
    monkeypatch.setattr(loop, "REPORT_EVERY", 0.0)
    events = list(train(config(batch_size=8), small))
    assert same(final(events), expected)
    assert [event.step for event in of(Progress, events)] == list(range(1, 27))


def test_learning_rate_goes_through_one_cycle(small, monkeypatch):
    """From lr/25 up to lr over 30 % of the steps and down to lr/250,000, along cosines."""
    monkeypatch.setattr(loop, "REPORT_EVERY", 0.0)
    events = of(Progress, train(config(epochs=5, batch_size=10, learning_rate=0.1), small))
    assert len(events) == 50

    def cosine(start, end, share):
        return end + (start - end) * (1 + math.cos(math.pi * share)) / 2

    for k, event in enumerate(events):
        expected = (
            cosine(0.004, 0.1, k / 14) if k <= 14 else cosine(0.1, 4e-7, (k - 14) / (49 - 14))
        )
        assert event.learning_rate == pytest.approx(expected, rel=1e-6)


def test_it_learns_the_digits(digits):
    """Guessing has 90 % error; of ten seeds the worst one had 9.2 % after these epochs."""
    events = list(
        train(config(model="logistic-el-5", epochs=12, learning_rate=0.03, batch_size=64), digits)
    )
    epochs = of(Epoch, events)
    assert epochs[-1].test_error[0] < 20
    assert epochs[-1].train_loss[0] < 0.5 * epochs[0].train_loss[0]


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_parameter_that_the_loss_does_not_reach_stays(small, monkeypatch, seeds):
    """As a plugin's may: its gradient is zero, whether it trains alone or with others."""

    class Idle(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.idle = torch.nn.Parameter(torch.ones(3))
            self.linear = torch.nn.Linear(784, 10)

        def forward(self, x):
            return self.linear(x.flatten(1))

    monkeypatch.setattr(loop, "build", lambda *_, **__: Idle())
    first, *_, last = of(Snapshot, train(config(model="linear", seeds=seeds), small))
    assert (last.state["idle"] == 1).all()
    assert (last.state["linear.weight"] != first.state["linear.weight"]).any()


# Members


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        "linear",
        "mlp-4",
        "logistic-el-4",
        "logistic-el-mnn-3-2",
        "adaptive-conv-pool-logistic-el-3",
        "adaptive-conv-pool-logistic-el-mnn-3-2",
        "stages-2-3-logistic-el-2",
    ],
)
@pytest.mark.parametrize("grid", ["data", "14,data,21x40"])
def test_members_equal_those_trained_alone(small, model, grid):
    chosen = config(model=model, epochs=2, batch_size=32, seed=7, seeds=3, grid=grid)
    together = list(train(chosen, small))
    for k, alone in enumerate(members(chosen)):
        assert alone.seed == 7 + k
        events = list(train(alone, small))
        for name, value in member(final(together), k).items():
            torch.testing.assert_close(value, final(events)[name][0], rtol=1e-3, atol=2e-5)
        for both, single in zip(of(Epoch, together), of(Epoch, events), strict=True):
            assert both.train_loss[k] == pytest.approx(single.train_loss[0], rel=1e-4)
            assert both.test_error[k] == pytest.approx(single.test_error[0], abs=2.1)


def test_members_may_have_rates_of_their_own(small):
    rates = (0.001, 0.02)
    configs = [config(learning_rate=rate) for rate in rates]
    together = final(train_members(configs, small))
    for k, chosen in enumerate(configs):
        for name, value in final(train(chosen, small)).items():
            torch.testing.assert_close(together[name][k], value[0], rtol=1e-3, atol=2e-5)


def test_members_of_different_shape_do_not_train_together(small):
    with pytest.raises(ValueError, match="may differ in"):
        next(train_members([config(), config(model="linear")], small))


def test_the_compiled_step_is_the_eager_one(small):
    """Up to rounding; both paths are recorded, so that a run is repeated on its own."""
    chosen = config(model="logistic-el-mnn-3-2", batch_size=32, grid="data,14")
    eager = final(train(chosen, small))
    compiled = final(train(chosen.model_copy(update={"compile": True}), small))
    for name, value in compiled.items():
        torch.testing.assert_close(value, eager[name], rtol=1e-3, atol=2e-5)


# Events


def test_events_of_a_training(small):
    chosen = config(epochs=3, batch_size=32)
    events = list(train(chosen, small))
    assert [event.step for event in of(Snapshot, events)] == snapshot_steps(3, 4)
    assert isinstance(events[0], Snapshot)
    assert [(event.epoch, event.step) for event in of(Epoch, events)] == [(1, 4), (2, 8), (3, 12)]
    assert isinstance(events[-1], Epoch)
    progress = of(Progress, events)
    steps = [event.step for event in progress]
    assert steps == sorted(set(steps))
    assert steps[-1] == 12
    assert all(event.steps == 12 for event in progress)
    assert all(math.isfinite(event.loss) and event.images_per_second > 0 for event in progress)
    for epoch in of(Epoch, events):
        assert 0 <= epoch.test_error[0] <= 100
        assert epoch.seconds > 0


def test_progress_has_the_mean_loss_since_the_last_report(small, monkeypatch):
    monkeypatch.setattr(loop, "snapshot_steps", lambda *_: [0, 3, 4])
    chosen = config(epochs=1, batch_size=32)
    _, losses = straight_line(chosen, small)
    first, second = of(Progress, train(chosen, small))
    assert first.loss == pytest.approx(sum(losses[:3]) / 3, rel=1e-4)
    assert second.loss == pytest.approx(losses[3], rel=1e-4)


def test_progress_comes_at_most_as_often_as_is_said(digits, monkeypatch):
    """Between the kept steps, that is: those report as well. The clock ticks at every look."""
    clock = SimpleNamespace(now=0.0)

    def tick() -> float:
        clock.now += 0.02
        return clock.now

    monkeypatch.setattr(loop.time, "perf_counter", tick)
    chosen = config(epochs=1, batch_size=4, model="linear")
    times = []
    for event in train(chosen, digits):
        if isinstance(event, Progress) and event.step not in snapshot_steps(1, 360):
            times.append(clock.now)
    assert len(times) > 3
    for earlier, later in pairwise(times):
        assert later - earlier >= loop.REPORT_EVERY - 1e-9


def test_snapshots_are_copies(small):
    events = of(Snapshot, train(config(), small))
    assert not torch.equal(events[0].state["classifier.weight"], final(events)["classifier.weight"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert same(member(events[0].state), build("logistic-el-2").state_dict())


def test_the_first_snapshot_comes_before_any_step(small):
    generator = train(config(learning_rate=1.0), small)
    first = next(generator)
    kept = {name: value.clone() for name, value in first.state.items()}
    for _ in generator:
        pass
    assert same(first.state, kept)


def test_a_batch_larger_than_the_data_is_one_step(small):
    assert [event.step for event in of(Epoch, train(config(batch_size=100_000), small))] == [1, 2]


def test_closing_the_generator_ends_the_training(small):
    generator = train(config(epochs=10_000), small)
    next(generator)
    generator.close()
    assert list(generator) == []


def test_stopping_keeps_the_step_where_it_stopped(small):
    """At the progress report that reads the request, at any step."""
    looks = iter([False, False, False, True])
    monkey = pytest.MonkeyPatch()
    monkey.setattr(loop, "REPORT_EVERY", 0.0)
    events = list(train(config(epochs=50, batch_size=8), small, stop=lambda: next(looks)))
    monkey.undo()
    *_, last, place = events
    assert isinstance(last, Snapshot)
    assert isinstance(place, Resume)
    assert last.step == place.step == 4
    undisturbed = train(config(epochs=50, batch_size=8), small)
    expected = next(
        event for event in undisturbed if isinstance(event, Snapshot) and event.step == 4
    )
    assert same(last.state, expected.state)


def test_the_global_generator_is_left_alone(small):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    list(train(config(seed=4), small))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_data_is_left_alone(small):
    images, labels = small.train.images.clone(), small.train.labels.clone()
    list(train(config(), small))
    assert torch.equal(small.train.images, images)
    assert torch.equal(small.train.labels, labels)


# Going on


def learnt(events) -> list:
    """The events of an undisturbed training, without their times."""
    kept = []
    for event in events:
        if isinstance(event, Snapshot):
            kept.append((event.step, {k: v.tolist() for k, v in event.state.items()}))
        if isinstance(event, Epoch):
            kept.append((event.epoch, event.step, event.train_loss, event.test_error))
    return kept


@pytest.mark.parametrize(
    "values",
    [{"model": "logistic-el-mnn-3-2"}, {"seeds": 2}, {"grid": "14,data,35"}, {"shift": 1}],
)
def test_resuming_at_any_step_gives_the_same_result_bit_for_bit(small, monkeypatch, values):
    """From each step of three epochs, the last one of an epoch with a short batch included."""
    chosen = config(epochs=3, batch_size=32, **values)
    monkeypatch.setattr(loop, "REPORT_EVERY", 0.0)
    events = list(train(chosen, small))
    places = [k for k, event in enumerate(events) if isinstance(event, Resume)]
    assert [events[k].step for k in places] == list(range(1, 12))
    for k in places:
        kept = {name: value.clone() for name, value in events[k].state.items()}
        rest = list(train(chosen, small, resume=events[k]))
        assert learnt(rest) == learnt(events[k:])
        assert same(events[k].state, kept)  # neither is what was kept touched


def test_the_time_of_an_epoch_counts_both_parts(small, monkeypatch):
    monkeypatch.setattr(loop, "REPORT_EVERY", 0.0)
    place = of(Resume, train(config(batch_size=32), small))[1]
    place.state["seconds"].fill_(100)
    first, second = of(Epoch, train(config(batch_size=32), small, resume=place))
    assert 100 < first.seconds < 110
    assert second.seconds < 10


def test_stopping_at_the_end_of_an_epoch_comes_after_its_error(small):
    """Also where that step is not one of those kept: it is shown, and not kept on going on."""
    chosen = config(epochs=50, batch_size=32)
    assert 16 not in snapshot_steps(50, 4)
    epochs = []

    def fourth() -> bool:
        return len(epochs) == 4

    events = []
    for event in train(chosen, small, stop=fourth):
        events.append(event)
        epochs += of(Epoch, [event])
    assert [type(event) for event in events[-3:]] == [Epoch, Snapshot, Resume]
    assert {event.step for event in events[-3:]} == {16}


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("first"),
        lambda state: state.update(more=torch.zeros(1)),
        lambda state: state.update(values=state["values"][:, 1:]),
        lambda state: state.update(second=state["second"].double()),
    ],
)
def test_a_place_in_another_training_is_refused(small, change):
    place = of(Resume, train(config(batch_size=32), small))[0]
    change(place.state)
    with pytest.raises(ValueError, match="does not fit"):
        next(train(config(batch_size=32), small, resume=place))


def test_a_step_beyond_the_end_is_refused(small):
    place = of(Resume, train(config(batch_size=32), small))[0]
    with pytest.raises(ValueError, match="does not fit"):
        next(train(config(batch_size=32), small, resume=Resume(8, place.state)))


# Divergence


@pytest.mark.parametrize("model", ["logistic-el-2", "logistic-el-mnn-3-2"])
@pytest.mark.parametrize("rate", [1e3, 1e4, 1e6])
def test_divergence_ends_with_the_last_good_snapshot(digits, model, rate):
    """Good is a snapshot that still answers: numbers in it, and numbers out of it."""
    events = list(train(config(model=model, epochs=8, batch_size=32, learning_rate=rate), digits))
    assert isinstance(events[-1], Diverged)
    assert len(of(Diverged, events)) == 1
    assert all(math.isfinite(event.loss) for event in of(Progress, events))
    kept = of(Snapshot, events)
    assert kept[-1].step <= events[-1].step
    assert len(of(Epoch, events)) < 8
    for snapshot in kept:
        assert all(value.isfinite().all() for value in snapshot.state.values())
        network = build(model)
        network.load_state_dict(member(snapshot.state))
        assert network(digits.test.images / 255).isfinite().all()


def test_a_loss_that_stays_high_is_divergence(small):
    """Finite, but above 10 ln 10 for a hundred steps, neither more nor less."""
    contradiction = Split(small.train.images[:1].repeat(8, 1, 1, 1), torch.arange(8))
    data = Dataset("digits", "x", small.classes, contradiction, contradiction)
    chosen = config(model="linear", batch_size=8, epochs=400, learning_rate=1e3)
    _, losses = straight_line(chosen, data)
    high = [loss > 10 * math.log(10) for loss in losses]
    expected = next(step for step in range(100, len(losses) + 1) if all(high[step - 100 : step]))
    last = list(train(chosen, data))[-1]
    assert isinstance(last, Diverged)
    assert last.step == expected  # an epoch is a step, and the host looks at each end


def test_labels_that_cannot_be_learnt_are_not_divergence(small):
    """Chance level is a loss of ln 10, far below the bound."""
    noise = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (100,), generator=noise)
    data = Dataset("digits", "x", small.classes, Split(small.train.images, labels), small.test)
    assert not of(Diverged, train(config(epochs=40, batch_size=25), data))


# What else is here


def test_the_error_is_a_count(digits):
    model = build("logistic-el-3")
    wrong = 0
    for image, label in zip(digits.test.images, digits.test.labels, strict=True):
        wrong += int(model(image[None].float() / 255).argmax() != label)
    assert loop.error_rate(model, digits.test) == pytest.approx(100 * wrong / 359, abs=1e-9)


def test_the_error_does_not_depend_on_batches_or_mode(digits, monkeypatch):
    model = build("logistic-el-3")
    whole = loop.error_rate(model, digits.test)
    assert model.training
    monkeypatch.setattr(loop, "EVALUATION_BATCH", 100)
    model.eval()
    assert loop.error_rate(model, digits.test) == whole
    assert not model.training


def test_the_error_leaves_each_part_in_its_mode(digits):
    norm = nn.BatchNorm1d(784).eval()  # frozen by its user
    model = nn.Sequential(nn.Flatten(), norm, nn.Linear(784, 10))
    loop.error_rate(model, digits.test)
    assert [part.training for part in model.modules()] == [True, True, False, True]
    model[2] = nn.Linear(3, 10)
    with pytest.raises(RuntimeError):
        loop.error_rate(model, digits.test)
    assert [part.training for part in model.modules()] == [True, True, False, True]


def test_the_time_of_the_caller_is_not_that_of_the_training(small):
    slept = 0
    for event in train(config(epochs=1), small):
        if isinstance(event, Snapshot) and not event.step:
            begun = time.perf_counter()
        elif isinstance(event, Progress):
            time.sleep(0.5)
            slept += 0.5
        elif isinstance(event, Epoch):
            took = time.perf_counter() - begun
            assert 0 < event.seconds < took - slept
    assert slept


def test_a_model_without_parameters_has_an_error(digits):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.AdaptiveAvgPool1d(10))
    answers = model(digits.test.images / 255).argmax(1)
    wrong = (answers != digits.test.labels).float().mean().item()
    assert loop.error_rate(model, digits.test) == pytest.approx(100 * wrong)


def test_the_error_of_known_answers(digits):
    class Constant(torch.nn.Linear):
        def forward(self, x):
            return torch.eye(10)[3].expand(len(x), 10)

    split = Split(digits.test.images[:4], torch.tensor([3, 3, 3, 1]))
    assert loop.error_rate(Constant(1, 1), split) == 25


def test_the_estimate_leaves_no_trace(small):
    chosen = config(epochs=4)
    torch.manual_seed(12)
    before = torch.get_rng_state()
    expected = final(train(chosen, small))
    seconds = estimate_seconds(chosen, small)
    assert torch.equal(torch.get_rng_state(), before)
    assert math.isfinite(seconds)
    assert seconds > 0
    assert same(final(train(chosen, small)), expected)


def test_the_estimate_counts_steps(small, monkeypatch):
    """With a clock that ticks a second at every look, a step takes one."""
    ticks = iter(range(1000))
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(ticks))
    assert estimate_seconds(config(epochs=3, batch_size=32), small) == 12
    assert estimate_seconds(config(epochs=3, batch_size=32, grid="14,56"), small) == 12


def test_devices(small):
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda", "mps")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"no cuda device\. Choose cpu or auto"):
            pick_device("cuda")
        with pytest.raises(ValueError, match="no cuda device"):
            next(train(config(device="cuda"), small))


def test_a_split_without_inputs_has_no_error():
    empty = Split(torch.zeros(0, 1, 8, 8, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="Expected a split with inputs"):
        loop.error_rate(build("linear", (1, 8, 8)), empty)


def test_the_config_is_one_of_the_data(digits):
    """The checkpoint would name one data set, and have the error on another."""
    other = config(dataset="mnist")
    for use in (lambda: next(train(other, digits)), lambda: Recorder(other, digits)):
        with pytest.raises(ValueError, match="data set 'mnist', but the data are those of 'dig"):
            use()
    own = replace(digits, name="mine")
    for use in (lambda: next(train(config(), own)), lambda: Recorder(config(), own)):
        with pytest.raises(ValueError, match=r"those of 'mine': write RunConfig\(dataset='mine'\)"):
            use()
    assert next(train(config(dataset="mine"), own)).step == 0
    for use in (lambda: next(train(digits, config())), lambda: Recorder(digits, config())):
        with pytest.raises(TypeError, match="in this order; got Dataset and RunConfig"):
            use()


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"model": "mlp-4096"}, r"would have 339 MB, and at most 268 MB can be opened: choose"),
        ({"model": "mlp-400", "epochs": 99, "seeds": 9}, "choose a smaller model, fewer seeds or"),
        ({"epochs": 10_000, "seeds": 9}, "losses and errors of 10,000 epochs of 9 seeds are too"),
    ],
)
def test_a_training_whose_checkpoint_could_not_be_opened_does_not_begin(digits, values, fault):
    values = {"epochs": 20, "batch_size": 64} | values
    with pytest.raises(ValueError, match=fault):
        next(train(config(**values), digits))


def test_the_longest_epochs_fit_into_the_header():
    epoch = EpochMetrics(
        epoch=10_000,
        step=10**12,
        train_loss=[1.2345678901234567e-05] * 5,
        test_error=[99.12345678901234] * 5,
        learning_rate=1.2345678901234567e-05,
        seconds=1234.5678901234567,
    )
    escaped = json.dumps(epoch.model_dump_json())[1:-1]
    assert len(escaped) + 1 <= loop.EPOCH_BYTES + 5 * loop.MEMBER_BYTES


def test_images_larger_than_a_checkpoint_takes_are_refused():
    split = Split(torch.zeros(2, 1, 300, 9, dtype=torch.uint8), torch.tensor([0, 1]))
    data = Dataset("own", "own", ("a", "b"), split, split)
    with pytest.raises(ValueError, match=r"at most 256 channels, rows and columns, .*1 × 300 × 9"):
        Recorder(config(dataset="own"), data)
