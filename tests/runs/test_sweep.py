"""A grid, its groups, and tables that are read from what they left."""

import csv
import io
import json
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from PIL import Image

from densembed.cli.main import main
from densembed.figures.sweep import label, sweep_figure
from densembed.runs import all_runs, jobs
from densembed.runs.sweep import Sweep, all_sweeps, find_member, train_group
from densembed.runs.sweep_plan import Plan, make_plan, read_values
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, train
from tests.conftest import is_sentence
from tests.runs.conftest import InThisProcess, silent_mirror

BASE = {"epochs": 2, "batch_size": 100, "device": "cpu", "seeds": 2, "seed": 3}
GRID = {"model": ["logistic-el-2", "logistic-el-3"], "learning_rate": ["0.002", "0.05"]}


@pytest.fixture
def small(runs_root) -> Sweep:
    return Sweep.create(make_plan(BASE, GRID))


def do(some: Sweep) -> list[str]:
    """What the workers do, in this process."""
    states = []
    for group in some.groups():
        group.path.mkdir(exist_ok=True)
        states.append(train_group(str(group.path)))
    return states


def test_the_grid(small):
    configs = [job.config for job in small.jobs()]
    assert [(c.model, c.learning_rate, c.seed) for c in configs] == [
        ("logistic-el-2", 0.002, 3), ("logistic-el-2", 0.002, 4),
        ("logistic-el-2", 0.05, 3), ("logistic-el-2", 0.05, 4),
        ("logistic-el-3", 0.002, 3), ("logistic-el-3", 0.002, 4),
        ("logistic-el-3", 0.05, 3), ("logistic-el-3", 0.05, 4),
    ]  # fmt: skip
    assert {(c.epochs, c.batch_size, c.seeds) for c in configs} == {(2, 100, 1)}
    assert [len(group.jobs()) for group in small.groups()] == [4, 4]  # a group for each shape


def test_members_of_one_shape_train_in_one_step(small, monkeypatch):
    sizes = []
    real = jobs.train_members

    def counted(configs, dataset, **options):
        sizes.append(len(configs))
        return real(configs, dataset, **options)

    monkeypatch.setattr(jobs, "train_members", counted)
    assert do(small) == ["done", "done"]
    assert sizes == [4, 4]
    assert small.state() == "done"


def test_a_member_equals_one_trained_alone(small, digits):
    do(small)
    for job in small.jobs()[1::3]:
        alone = [event for event in train(job.config, digits) if isinstance(event, Epoch)][-1]
        kept = Checkpoint.open(job.path)
        assert kept.config == job.config
        # Up to the order of sums: less than one test image in a hundred.
        assert kept.errors[0] == pytest.approx(alone.test_error[0], abs=1)
        np.testing.assert_allclose(
            kept.header.epochs[-1].train_loss[0], alone.train_loss[0], rtol=1e-2
        )


def test_rows_and_csv_are_read_from_the_checkpoints(small):
    assert [row.errors.values for row in small.rows()] == [[], [], [], []]
    assert small.state() == "queued"
    do(small)
    rows = small.rows()
    errors = [Checkpoint.open(job.path).errors[0] for job in small.jobs()]
    assert [row.errors.values for row in rows] == [errors[k : k + 2] for k in (0, 2, 4, 6)]
    assert rows[1].errors.mean == mean(errors[2:4])
    assert rows[1].errors.deviation == stdev(errors[2:4])
    # B² densities with 4 numbers each, and 10 classes of B² weights and a bias.
    assert [row.parameters for row in rows] == [4 * 4 + 10 * 5] * 2 + [9 * 4 + 10 * 10] * 2
    table = list(csv.DictReader(io.StringIO(small.as_csv())))
    assert [float(line["test_error"]) for line in table] == errors
    assert [line["seed"] for line in table] == ["3", "4"] * 4
    assert {line["outcome"] for line in table} == {"done"}
    kept = [Checkpoint.open(small.path / line["checkpoint"]) for line in table]
    assert [one.config for one in kept] == [job.config for job in small.jobs()]
    assert [one.errors[0] for one in kept] == errors
    assert {line["checkpoint"] for line in table} == {
        path.relative_to(small.path).as_posix() for path in small.path.rglob("*.safetensors")
    }
    assert set(RunConfig.model_fields) - {"seeds"} < set(table[0])


def test_a_row_is_shown_by_the_member_nearest_its_mean(runs_root):
    some = Sweep.create(make_plan(BASE | {"seeds": 5}, {"model": ["logistic-el-2"]}))
    assert [row.typical for row in some.rows()] == [None]
    do(some)
    (row,) = some.rows()
    distances = np.abs(np.array(row.errors.values) - row.errors.mean)
    assert row.typical == some.jobs()[distances.argmin()]
    assert Checkpoint.open(row.typical.path).errors[0] != min(row.errors.values)


def test_finished_members_are_not_trained_again(small):
    first = small.groups()[0]
    first.path.mkdir()
    train_group(str(first.path))
    lost = small.jobs()[1].path
    kept = {job.path: job.path.stat().st_mtime_ns for job in small.jobs()[:4]}
    lost.unlink()
    assert do(small) == ["done", "done"]
    del kept[lost]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert lost.exists()
    assert small.state() == "done"
    assert Sweep.create(small.plan, small.path) == small  # the same command again


def test_a_diverging_member_does_not_affect_others(runs_root):
    grid = {"learning_rate": [0.01, 1e5]}
    some = Sweep.create(make_plan(BASE | {"model": "logistic-el-2", "epochs": 10}, grid))
    do(some)
    good, bad = some.rows()
    assert (len(good.errors), good.diverged) == (2, 0)
    assert (len(bad.errors), bad.diverged) == (0, 2)
    assert some.state() == "done"
    assert do(some) == ["done"]


def test_stop_keeps_finished_members(small):
    first, second = small.groups()
    first.path.mkdir()
    train_group(str(first.path))
    small.stop()
    second.path.mkdir()
    assert train_group(str(second.path)) == "stopped"
    assert small.state() == "stopped"
    assert [len(row.errors) for row in small.rows()] == [2, 2, 0, 0]


def test_stop_within_a_download(runs_root, monkeypatch, tmp_path):
    """With the limits as they are."""
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    sweep = Sweep.create(make_plan(BASE | {"dataset": "mnist"}, GRID))
    (first, *_) = sweep.groups()
    first.path.mkdir()
    with silent_mirror(monkeypatch, sweep.stop):
        assert train_group(str(first.path)) == "stopped"
    assert sweep.state() == "stopped"
    assert not list(first.path.glob("*.safetensors"))


def test_stop_within_a_training(runs_root):
    """It is obeyed at the next look: an endless training ends."""
    some = Sweep.create(make_plan(BASE | {"epochs": 10_000}, {"model": ["logistic-el-2"]}))
    (group,) = some.groups()
    group.path.mkdir()
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 2

    jobs.together(group.todo(), None, stop)
    assert not group.over()
    assert not list(some.path.rglob("*.safetensors"))


def test_a_group_that_dies_repeatedly_fails(small):
    group = small.groups()[0]
    group.path.mkdir()
    for _ in range(4):
        group.append("start")
    assert group.state() == "interrupted"
    assert train_group(str(group.path)) == "failed"
    assert "died 4 times" in small.reason()
    assert small.state() == "queued"  # the other one
    group.resume()
    assert train_group(str(group.path)) == "done"


def test_memory_that_runs_out(runs_root, monkeypatch):
    some = Sweep.create(make_plan(BASE, {"model": ["logistic-el-2"]}))
    (group,) = some.groups()
    group.path.mkdir()

    def greedy(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(jobs, "train_members", greedy)
    assert train_group(str(group.path)) == some.state() == "failed"
    assert some.reason().startswith("Out of memory. Choose a smaller batch size")
    assert "CUDA out of memory" in group.log


def test_of_several_models_the_one_that_failed_is_named(runs_root):
    some = Sweep.create(make_plan(BASE, {"model": ["logistic-el-2", "cnn-4"]}))
    group = next(each for each in some.groups() if each.config.model == "cnn-4")
    group.path.mkdir()
    group.append("end", state="failed", reason="The images are too small.")
    assert some.reason() == "cnn-4: The images are too small."


def test_the_minus_sign_of_a_page_is_read():
    grid = {"scale_start": read_values("scale_start", "−3, -2.3,\u00a0−1e−1")}
    values = [change["scale_start"] for change in make_plan(BASE, grid).combinations()]
    assert values == [-3, -2.3, -0.1]


@pytest.mark.parametrize("text", ["0,002; 0,01", "0.002;0.01"])
def test_values_are_separated_by_commas(text):
    with pytest.raises(ValueError, match=f"by commas, .* with a point; got '{text}'"):
        read_values("learning_rate", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("learning_rate", "0.02,"),
        ("learning_rate", "0.02,,0.03"),
        ("learning_rate", ", 0.02"),
        ("dataset", "digits, "),
        ("dataset", ",digits"),
    ],
)
def test_an_empty_value_is_named(name, text):
    with pytest.raises(ValueError, match=f"values of {name} is empty; got '{text}'") as caught:
        read_values(name, text)
    assert is_sentence(str(caught.value))


@pytest.mark.parametrize("text", ["", " , "])
def test_values_are_asked_for(text):
    for name in ("learning_rate", "dataset"):
        with pytest.raises(ValueError, match=f"Give the values of {name}"):
            read_values(name, text)


def test_unavailable_data(runs_root, tmp_path):
    some = Sweep.create(make_plan(BASE | {"dataset": "mnist"}, {"model": ["logistic-el-2"]}))
    (group,) = some.groups()
    group.path.mkdir()
    (tmp_path / "file").write_text("in the way")
    assert train_group(str(group.path), str(tmp_path / "file")) == "failed"
    assert some.state() == "failed"
    assert is_sentence(some.reason())


@pytest.mark.parametrize(
    ("base", "grid", "word"),
    [
        ({}, {}, "several values"),
        ({}, {"colour": [1]}, "colour"),
        ({}, {"seed": [1, 2]}, "seed"),
        ({}, {"model": []}, "Give the values of model."),
        ({}, {"epochs": [1, 1]}, "differ"),
        (
            {},
            {"learning_rate": ["0.01", "1e-2"]},
            "different values of learning rate; 0.01 is given more than once",
        ),
        ({}, {"model": ["logistic-el-2", "logistic-el-02"]}, "different values of model"),
        (
            {},
            {"grid": ["14", "14x14"], "epochs": [1, 2]},
            "different values of grid; 14 is given more than once",
        ),
        ({}, {"epochs": [1, "x"]}, "Epochs takes a whole number from 1 to 10,000; got 'x'."),
        ({}, {"model": ["logistic-el-2", "resnet"]}, "model"),
        ({"seeds": 100}, {"epochs": list(range(1, 12))}, "1,100"),
        ({"epochs": 0}, {"model": ["linear"]}, "Epochs takes a whole number from 1 to 10,000"),
    ],
)
def test_an_invalid_plan_gets_one_sentence(base, grid, word):
    with pytest.raises(ValueError, match=word) as error:
        make_plan(base, grid)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("identifier", ["", "..", "../x", "20240101-000000-abcdef", "x" * 9999])
def test_an_identifier_is_never_a_path(small, identifier):
    assert Sweep.find(identifier) is None
    assert Sweep.find(small.identifier) == small


def test_a_member_is_found_by_its_key(small):
    keys = [small.key(job) for job in small.jobs()]
    assert keys == [f"{small.identifier}-{number}" for number in range(1, 9)]
    assert find_member(keys[0]) is None  # not yet
    do(small)
    assert [find_member(key) for key in keys] == [job.path for job in small.jobs()]
    for number in ("0", "9", "01", "001/1", "1.safetensors", "../001/1", "", "x"):
        assert find_member(f"{small.identifier}-{number}") is None
    assert find_member(small.identifier) is None
    small.delete()
    assert find_member(keys[0]) is None


def test_sweeps_are_listed_and_no_runs(small):
    assert all_sweeps() == [small]
    assert all_runs() == []
    small.path.with_name("notes").mkdir()
    small.path.with_name("20269999-999999-dddddd").mkdir()  # digits that are no date
    (small.path.with_name("20269999-999999-dddddd") / "plan.json").write_text("{}")
    assert all_sweeps() == [small]
    (small.path / "plan.json").write_text("{")
    assert (small.plan, small.jobs(), small.groups()) == (None, [], [])
    assert Sweep.find(small.identifier) is None
    small.delete()
    assert all_sweeps() == []
    assert not small.path.exists()


def test_another_plan_in_the_same_folder_is_refused(small):
    with pytest.raises(ValueError, match="another sweep"):
        Sweep.create(make_plan(BASE, {"epochs": [1, 2]}), small.path)
    (small.path / "plan.json").write_text("garbage")
    with pytest.raises(ValueError, match=r"'plan\.json' in .* is damaged"):
        Sweep.create(make_plan(BASE, GRID), small.path)


def test_a_changed_file_is_not_taken_for_a_member(small):
    do(small)
    first, other = small.jobs()[0].path, small.jobs()[5].path
    first.write_bytes(other.read_bytes())
    assert [len(row.errors) for row in small.rows()] == [1, 2, 2, 2]


def test_the_figure(small):
    do(small)
    rows = small.rows()
    figure = sweep_figure(rows)
    assert [trace.name for trace in figure.data] == ["learning rate 0.002", "learning rate 0.05"]
    assert list(figure.data[1].x) == [rows[1].parameters, rows[3].parameters]
    assert list(figure.data[1].y) == [rows[1].errors.mean, rows[3].errors.mean]
    assert list(figure.data[1].error_y.array) == [
        rows[1].errors.deviation,
        rows[3].errors.deviation,
    ]
    (alone,) = sweep_figure(rows[:2]).data  # one number of parameters: side by side
    assert list(alone.x) == [label(row.change) for row in rows[:2]]
    assert not sweep_figure([]).data


def test_the_command(tmp_path, capsys):
    out = tmp_path / "out"
    command = ["sweep", "logistic-el-2,linear", "--learning-rate", "0.002,0.01", "--epochs", "1"]
    command += ["--seeds", "2", "--out", str(out), "--processes", "1"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "trainings: 8, trained together in groups: 2" in said
    assert "logistic-el-2, learning rate 0.002" in said
    table = list(csv.DictReader((out / "sweep.csv").open()))
    assert len(table) == 8
    assert all((out / line["checkpoint"]).is_file() for line in table)
    assert "plotly" in (out / "sweep.html").read_text()
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}
    assert main(command) == 0
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert main([*command[:3], "0.002", *command[4:]]) == 2
    assert "another sweep" in capsys.readouterr().err


def test_a_plan_survives_its_file():
    plan = make_plan(BASE, GRID)
    assert Plan.model_validate(json.loads(plan.model_dump_json())) == plan


@pytest.fixture
def shades(tmp_path):
    """A folder of pictures with a comma and a space at the end of its name."""
    root = tmp_path / "light, dark,digits "
    for k, name in enumerate(("light", "dark")):
        (root / name).mkdir(parents=True)
        for n in range(8):
            grey = Image.new("L", (8, 8), 20 + 100 * k + n)
            grey.save(root / name / f"{n}.png")
    return root


def test_other_data_are_no_part_of_a_sweep(shades, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("densembed.cli.sweep.Cluster", InThisProcess)
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    out = tmp_path / "out"
    command = ["sweep", "mlp-4", "--dataset", f"folder:{shades}", "--epochs", "1", "--seeds", "2"]
    command += ["--out", str(out), "--processes", "1"]
    assert main(command) == 0
    table = (out / "sweep.csv").read_text()
    assert {row["dataset"] for row in csv.DictReader(io.StringIO(table))} == {f"folder:{shades}"}
    assert main(command) == 0  # the same data
    (out / "001" / "2.safetensors").unlink()
    Image.new("L", (8, 8), 255).save(shades / "dark" / "new.png")
    capsys.readouterr()
    assert main(command) == 2
    sentence = capsys.readouterr().err.removeprefix("densembed: ").strip()
    assert "images before, " in sentence
    assert is_sentence(sentence)
    assert (out / "sweep.csv").read_text() == table
    group = Sweep(out).groups()[0]  # as a page submits it
    group.resume()
    assert train_group(str(group.path)) == "failed"
    assert group.last["reason"] == sentence
    (shades / "dark" / "new.png").unlink()
    assert main(command) == 0
    assert (out / "001" / "2.safetensors").exists()


def test_a_folder_that_exists_keeps_its_commas_and_spaces(shades, tmp_path):
    names = [f"folder:{shades}", "mnist", f"folder:{tmp_path}", "cifar10"]
    assert read_values("dataset", ", ".join(names)) == names


def test_a_comma_may_belong_to_the_path_of_a_folder():
    assert read_values("dataset", "digits, folder:/a,b, c/photos, mnist,folder:d") == [
        "digits", "folder:/a,b, c/photos", "mnist", "folder:d",
    ]  # fmt: skip
    assert read_values("learning_rate", "0.1, 0.2") == ["0.1", "0.2"]


def test_the_share_counts_the_steps_of_a_group_that_trains(small):
    first, second = small.groups()
    assert small.share() == 0
    first.path.mkdir()
    for step in (5, 10):
        first.append(
            "progress", step=step, steps=40, loss=1.0, learning_rate=0.1, images_per_second=9.0
        )
        assert small.share() == pytest.approx(4 * step / 40 / 8)
    assert train_group(str(first.path)) == "done"
    assert small.share() == pytest.approx(0.5)
    second.path.mkdir()
    assert train_group(str(second.path)) == "done"
    assert small.share() == 1
    *_, last = (event for event in second.events() if event["kind"] == "progress")
    assert last["step"] == last["steps"]
