"""Members that train in one step and are kept apart."""

import dataclasses

import pytest
import torch

from densembed.data import load_dataset
from densembed.runs import jobs
from densembed.runs.jobs import Job, groups, hold_out, merge, run, split, together
from densembed.training.config import RunConfig
from densembed.workers.executors import InProcess, LocalProcesses, local_executor

CONFIG = RunConfig(model="logistic-el-mnn-3-2", epochs=1, device="cpu")


def made(folder, *changes, held_out=False) -> list[Job]:
    return [
        Job(CONFIG.model_copy(update=change), folder / f"{k}.safetensors", held_out)
        for k, change in enumerate(changes)
    ]


def test_members_trained_together_equal_those_trained_alone(tmp_path):
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


def test_a_diverging_job_does_not_affect_others(tmp_path):
    short = {"model": "logistic-el-2", "epochs": 10}
    mates = made(tmp_path, short | {"learning_rate": 1e5}, short)
    together(mates)
    wild, tame = mates
    assert wild.path.is_file()
    assert wild.checkpoint() is None
    assert tame.checkpoint().config == tame.config


class Recording:
    """An executor that keeps its tasks instead of running them."""

    def __init__(self):
        self.tasks = []

    def run(self, function, tasks, resources=None):
        self.tasks += tasks
        yield from range(len(tasks))


def test_an_executor_gets_the_jobs_that_have_no_checkpoint(tmp_path):
    executor, finished = Recording(), []
    first, *others = mates = made(tmp_path, {"seed": 0}, {"seed": 1}, {"seed": 2})
    together([first])
    run(mates, "data", executor=executor, finished=finished.append)
    assert executor.tasks == [([job], "data") for job in others]
    assert finished == mates


@pytest.mark.parametrize("executor", [InProcess(), LocalProcesses(2)])
def test_executors_leave_the_same_checkpoints(tmp_path, executor):
    mates = made(tmp_path, {"seed": 0}, {"seed": 1})
    finished = []
    run(mates, executor=executor, finished=finished.append)
    assert sorted(job.config.seed for job in finished) == [0, 1]
    for job in mates:
        trained = job.checkpoint()
        together([job])
        again = job.checkpoint()
        assert all(
            torch.equal(trained.tensors[name], again.tensors[name]) for name in again.tensors
        )


def test_one_process_is_this_one():
    assert local_executor(1) == InProcess()
    assert local_executor(3) == LocalProcesses(3)


def test_jobs_trained_on_another_device_count_as_finished(tmp_path):
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


@pytest.mark.parametrize("blocks", [(3, 1, 0, 2), (1, 0), (0, 1, 0)])
def test_images_held_out_of_blocks_are_a_share_of_each_class(digits, blocks):
    """The last ones were of the class of the last block alone."""
    labels = torch.tensor([label for label in blocks for _ in range(30 + 5 * label)])
    images = torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None]
    split = jobs.Split(images, labels)
    part = hold_out(dataclasses.replace(digits, train=split, test=split))
    for label in set(blocks):
        count, held = (int((each == label).sum()) for each in (labels, part.test.labels))
        assert held == pytest.approx(count / 5, abs=1)
    both = torch.cat([part.train.images, part.test.images]).flatten()
    assert both.sort().values.tolist() == list(range(len(labels)))
    assert torch.equal(labels[both.long()], torch.cat([part.train.labels, part.test.labels]))


@pytest.mark.parametrize("name", ["digits", "mnist1d"])
def test_the_last_images_of_built_in_data_are_held_out(name):
    """Their order is random, and published results are of these."""
    dataset = load_dataset(name)
    part, count = hold_out(dataset), len(dataset.train) // 5
    assert torch.equal(part.test.images, dataset.train.images[-count:])
    assert torch.equal(part.train.labels, dataset.train.labels[:-count])
