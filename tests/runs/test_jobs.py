"""Members that train in one step and are kept apart."""

import dataclasses

import pytest
import torch

from densembed.runs import jobs
from densembed.runs.jobs import Job, groups, hold_out, merge, run, split, together
from densembed.training.config import RunConfig

CONFIG = RunConfig(model="logistic-el-mnn-3-2", epochs=1, device="cpu")


def made(folder, *changes, held_out=False) -> list[Job]:
    return [
        Job(CONFIG.model_copy(update=change), folder / f"{k}.safetensors", held_out)
        for k, change in enumerate(changes)
    ]


def test_members_trained_together_end_as_alone(tmp_path):
    changes = {"seed": 0}, {"seed": 1, "learning_rate": 0.02}, {"weight_decay": 0.1}
    mates, loners = made(tmp_path / "a", *changes), made(tmp_path / "b", *changes)
    together(mates)
    for mate, alone in zip(mates, loners, strict=True):
        together([alone])
        one, other = mate.checkpoint(), alone.checkpoint()
        assert one.config == other.config == mate.config
        for name, value in one.state().items():
            torch.testing.assert_close(value, other.state()[name], rtol=1e-3, atol=1e-4)
        rates = [part.header.epochs[0].learning_rate for part in (one, other)]
        assert rates[0] == pytest.approx(rates[1])
        assert one.members == len(one.errors) == 1


def test_what_is_split_can_be_merged(tmp_path):
    mates = made(tmp_path, {"seed": 0}, {"seed": 1})
    together(mates)
    whole = merge(mates)
    assert whole.members == 2
    parts = split(whole, [job.config for job in mates])
    for part, job in zip(parts, mates, strict=True):
        kept = job.checkpoint()
        assert part.config == kept.config
        assert part.errors == kept.errors
        assert all(torch.equal(part.tensors[name], kept.tensors[name]) for name in kept.tensors)


def test_only_members_of_one_shape_are_grouped(tmp_path, monkeypatch):
    a = made(tmp_path, {"seed": 0}, {"seed": 1}, {"learning_rate": 0.1})
    b = made(tmp_path, {"model": "linear"}, {"batch_size": 64})
    c = made(tmp_path, {"seed": 0}, held_out=True)
    assert groups([*a, *b, *c]) == [a, [b[0]], [b[1]], c]
    monkeypatch.setattr(jobs, "MOST_TOGETHER", 2)
    assert groups(a) == [a[:2], a[2:]]


def test_one_that_diverges_takes_none_with_it(tmp_path):
    mates = made(
        tmp_path, {"learning_rate": 1e6, "seed": 3, "batch_size": 10}, {"seed": 0, "batch_size": 10}
    )
    together(mates)
    wild, tame = mates
    assert wild.path.is_file()
    assert wild.checkpoint() is None
    assert tame.checkpoint().config == tame.config


def test_on_a_gpu_the_seeds_of_a_row_train_in_one_step(tmp_path, monkeypatch):
    """The machine here has none; that it is asked for is seen by what is called."""
    calls = []
    monkeypatch.setattr(jobs, "pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(jobs, "together", lambda members, data: calls.append(list(members)))
    mates = made(tmp_path, {"seed": 0}, {"seed": 1})
    seen = []
    run(mates, finished=seen.append)
    assert calls == [mates]
    assert seen == mates


def test_where_it_trained_does_not_matter_for_what_is_done(tmp_path):
    (job,) = made(tmp_path, {})
    together([job])
    elsewhere = Job(job.config.model_copy(update={"device": "auto"}), job.path)
    assert elsewhere.checkpoint().errors == job.checkpoint().errors
    other = Job(job.config.model_copy(update={"seed": 1}), job.path)
    assert other.checkpoint() is None


def test_images_held_out_of_a_sorted_folder_are_of_all_classes(digits):
    order = digits.train.labels.argsort(stable=True)
    train = jobs.Split(digits.train.images[order], digits.train.labels[order])
    sorted_digits = dataclasses.replace(digits, train=train)
    part = hold_out(sorted_digits, 200)
    assert set(part.test.labels.tolist()) == set(range(10))
    assert len(part.train) == len(train) - 200
    assert torch.equal(part.test.labels, hold_out(sorted_digits, 200).test.labels)
