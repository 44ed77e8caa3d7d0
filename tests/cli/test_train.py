"""The command `train`."""

import errno
import io
import os
import re
import shutil
import signal

import pytest
import torch

from densembed.cli.progress import Bar
from densembed.interrupt import ENDS
from densembed.runs import Run, all_runs
from densembed.training.checkpoint import Checkpoint
from densembed.training.loop import error_rate
from tests.cli.conftest import FAST, fails


def test_train_writes_one_file(run, tmp_path, digits, runs_root):
    out = tmp_path / "a.safetensors"
    status, text, errors = run("train", "logistic-el-2", *FAST, "--seed", "3", "--out", out)
    assert (status, errors) == (0, "")
    kept = Checkpoint.open(out)
    assert kept.config.model == "logistic-el-2"
    assert (kept.config.epochs, kept.config.batch_size, kept.config.seed) == (2, 100, 3)
    assert kept.config.learning_rate == 0.02
    assert kept.header.outcome == "done"
    assert re.search(rf"test error: {kept.errors[0]:.2f} % of 359 test images  \(trained in", text)
    assert f"saved: {out}" in text.replace("\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"a.safetensors", "here"}
    assert all_runs() == []


def test_train_without_out_makes_a_run(run, runs_root):
    status, text, _ = run("train", "logistic-el-2", *FAST)
    assert status == 0
    (made,) = all_runs()
    assert isinstance(made, Run)
    assert made.state() == "done"
    assert made.identifier in text
    assert made.checkpoint().errors is not None


def test_train_repeats_by_seed(run, tmp_path):
    for name in ("a", "b"):
        run("train", "linear", *FAST, "--out", tmp_path / f"{name}.safetensors")
    first, second = (Checkpoint.open(tmp_path / f"{name}.safetensors") for name in ("a", "b"))
    assert all(torch.equal(first.tensors[key], second.tensors[key]) for key in first.tensors)


def test_train_on_several_grids(run, tmp_path, digits):
    out = tmp_path / "a.safetensors"
    status, _, _ = run("train", "logistic-el-2", *FAST, "--grid", "14, data", "--out", out)
    assert status == 0
    kept = Checkpoint.open(out)
    assert kept.config.grid == "14,data"
    assert kept.header.input_shape == (1, 28, 28)
    assert kept.errors == [error_rate(kept.model(), digits.test)]  # on the data's own grid
    run("train", "logistic-el-2", *FAST, "--out", tmp_path / "b.safetensors")
    other = Checkpoint.open(tmp_path / "b.safetensors")
    assert not torch.equal(kept.tensors["classifier.weight"], other.tensors["classifier.weight"])


def test_train_on_a_wrong_grid(run, tmp_path):
    words = fails(run("train", "linear", "--grid", "14,x", "--out", tmp_path / "a.safetensors"))
    assert "Grid takes sizes separated by commas" in words


def test_train_several_members(run, tmp_path):
    out = tmp_path / "a.safetensors"
    status, text, _ = run("train", "linear", *FAST, "--seeds", "3", "--out", out)
    assert status == 0
    assert re.search(
        r"test error: \d+\.\d\d ± \d+\.\d\d % of [\d,]+ test images \(3 members\)", text
    )
    assert Checkpoint.open(out).members == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["transformer"], "Unknown model 'transformer'"),
        (["logistic-el-0"], "between 1 and 64"),
        (["linear", "--epochs", "0"], "Epochs takes a whole number from 1 to 10,000; got "),
        (["linear", "--epochs", "many"], "Epochs takes a whole number from 1 to 10,000; got "),
        (
            ["linear", "--learning-rate", "nan"],
            "Learning rate takes a number above 0 and up to 1,000,000; got 'nan'.",
        ),
        (
            ["linear", "--seed", "-1"],
            "Seed takes a whole number from 0 to 2,147,483,647; got '-1'.",
        ),
        (["linear", "--device", "tpu"], "Device takes one of auto, cpu, cuda, mps; got 'tpu'."),
        (["linear", "--dataset", "cats"], "Unknown data set 'cats'"),
    ],
)
def test_train_refuses_bad_values(run, tmp_path, arguments, words):
    assert words in fails(run("train", *arguments, "--out", tmp_path / "a.safetensors"))
    assert not (tmp_path / "a.safetensors").exists()


def test_train_in_a_folder_refuses_bad_values_too(run, runs_root):
    assert "Unknown data set" in fails(run("train", "linear", "--dataset", "cats"))
    assert "Epochs takes a whole number from 1 to 10,000; got " in fails(
        run("train", "linear", "--epochs", "0")
    )


def test_a_grid_without_a_step_leaves_no_run(run, runs_root):
    line = fails(run("train", "linear", "--grid", "8,16", "--batch-size", 2000, "--epochs", 1))
    assert "has 1 step, so that some of its grids are never used" in line
    assert not all_runs(runs_root)


def test_links_to_themselves_are_refused(run, tmp_path, trained_file):
    (tmp_path / "loop").symlink_to("loop")
    line = fails(run("train", "linear", "--epochs", 1, "--out", tmp_path / "loop/a.safetensors"))
    assert "cannot be written" in line
    for kind in ("folder", "csv"):
        data = f"{kind}:{tmp_path / 'loop'}"
        line = fails(run("train", "linear", "--dataset", data, "--out", trained_file))
        assert "loop" in line


@pytest.mark.skipif(torch.cuda.is_available(), reason="There is a GPU.")
def test_a_device_that_is_not_there_leaves_no_run(run, runs_root):
    line = fails(run("train", "linear", "--device", "cuda", "--epochs", 1))
    assert line == "densembed: This machine has no cuda device. Choose cpu or auto."
    assert not all_runs(runs_root)


def test_the_file_is_one_of_a_checkpoint(run, tmp_path):
    """A training overwrote what was meant to be a figure."""
    for name in ("field.pdf", "model"):
        line = fails(run("train", "linear", *FAST, "--out", tmp_path / name))
        assert line.endswith("--out must end in .safetensors, as it is a checkpoint.")
        assert not (tmp_path / name).exists()


def refuse(**_):
    raise OSError(30, "Read-only file system")


def test_a_file_is_trained_on_this_machine(run, tmp_path, monkeypatch):
    """The scheduler was ignored without a word."""
    out = tmp_path / "a.safetensors"
    line = fails(run("train", "linear", *FAST, "--out", out, "--scheduler", "tcp://127.0.0.1:9"))
    assert line.endswith("A training with --out runs on this machine: leave out --scheduler.")
    monkeypatch.setenv("DENSEMBED_SCHEDULER", "tcp://127.0.0.1:9")  # of all runs
    assert run("train", "linear", *FAST, "--out", out)[0] == 0


def test_train_checks_the_output_path_first(run, tmp_path, monkeypatch):
    """Not after hours of training."""
    monkeypatch.setattr("densembed.cli.train.train", lambda *_, **__: pytest.fail("It trains."))
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "no/a.safetensors", "file/a.safetensors", "pipe"):
        out = tmp_path / name
        assert "cannot be written" in fails(run("train", "linear", "--out", out))
    # A folder may be full, read-only or special without its permissions saying so.
    monkeypatch.setattr("densembed.cli.common.TemporaryFile", refuse)
    out = tmp_path / "a.safetensors"
    assert "cannot be written" in fails(run("train", "linear", "--out", out))


def test_a_run_that_is_deleted_meanwhile(run, runs_root, monkeypatch):
    from densembed.runs import execution

    real = execution.train

    def removing(*arguments, **options):
        for event in real(*arguments, **options):
            yield event
            if getattr(event, "epoch", 0) == 1:
                shutil.rmtree(all_runs()[0].path)

    monkeypatch.setattr(execution, "train", removing)
    line = fails(run("train", "linear", *FAST, "--epochs", "3"))
    assert line.endswith("was deleted during the training, so nothing was saved.")


def test_a_result_without_its_place_is_saved_elsewhere(run, tmp_path, monkeypatch):
    """The folder is removed while the training runs."""
    from densembed.cli import train as module

    (tmp_path / "gone").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    real = module.train

    def removing(*arguments, **options):
        yield from real(*arguments, **options)
        (tmp_path / "gone").rmdir()

    monkeypatch.setattr(module, "train", removing)
    out = tmp_path / "gone" / "a.safetensors"
    line = fails(run("train", "linear", *FAST, "--out", out))
    before = f"densembed: {out} cannot be written: No such file or directory. The checkpoint was"
    assert line.startswith(before)
    (saved,) = tmp_path.glob("densembed-*/a.safetensors")
    assert line.endswith(f" saved to {saved}.")
    assert Checkpoint.open(saved).header.outcome == "done"


@pytest.mark.parametrize("suffix", ["pdf", "html", "npz"])
def test_a_file_replaces_no_pipe_and_no_link(run, trained_file, pictures, tmp_path, suffix):
    pipe, link, target = (tmp_path / f"{name}.{suffix}" for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    link.symlink_to(target.name)
    arguments = "render", trained_file, "--image", pictures["digit"], "--out"
    assert "is not a regular file" in fails(run(*arguments, pipe))
    assert pipe.is_fifo()
    assert run(*arguments, link)[0] == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000


class ClosedPipe(io.StringIO):
    """Standard output to a program such as `head`, which ends after one line."""

    def __init__(self, file: io.IOBase):
        super().__init__()
        self.fileno = file.fileno

    def flush(self):
        if self.getvalue().count("\n") > 1:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize("place", ["folder", "file"])
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_closed_pipe_does_not_end_a_training(run, tmp_path, runs_root, monkeypatch, place):
    out = tmp_path / "a.safetensors"
    with (tmp_path / "output").open("wb") as file:
        monkeypatch.setattr("sys.stdout", ClosedPipe(file))
        result = run("train", "linear", *FAST, *(["--out", out] if place == "file" else []))
    assert result == (141, "", "")
    path = out if place == "file" else all_runs()[0].checkpoint_path
    assert len(Checkpoint.open(path).header.epochs) == 2


def test_a_diverging_training_saves_the_last_good_snapshot(run, tmp_path):
    out = tmp_path / "a.safetensors"
    fast = ["--epochs", "10", "--batch-size", "100", "--learning-rate", "10000", "--device", "cpu"]
    assert "Training diverged" in fails(run("train", "logistic-el-2", *fast, "--out", out))
    assert Checkpoint.open(out).header.outcome == "diverged"


@pytest.fixture
def heard(number):
    """A signal is not ignored, as SIGHUP is below nohup."""
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
    yield
    signal.signal(number, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("place", ["file", "folder"])
def test_ctrl_c_keeps_the_latest_snapshot(run, tmp_path, runs_root, monkeypatch, place, number):
    """With and without --out: one status, one sentence, and the file that it names.

    A scheduler that ends a job and a terminal that is closed are as Ctrl-C.
    """
    from densembed.cli import train as module
    from densembed.runs import execution

    real = module.train

    def interrupted(*arguments, **options):
        for event in real(*arguments, **options):
            yield event
            if getattr(event, "epoch", 0) == 1:
                signal.raise_signal(number)

    monkeypatch.setattr(module, "train", interrupted)
    monkeypatch.setattr(execution, "train", interrupted)
    before = signal.getsignal(number)
    out = tmp_path / "a.safetensors"
    more = ["--out", out] if place == "file" else []
    status, text, errors = run("train", "linear", *FAST, "--epochs", "1000", *more)
    path = out if place == "file" else all_runs()[0].checkpoint_path
    assert status == 130
    assert errors == f"densembed: Interrupted. Saved the latest snapshot to {path}.\n"
    kept = Checkpoint.open(path)
    assert kept.header.outcome == "stopped"
    assert kept.steps[-1] == kept.header.steps_per_epoch
    assert f"test error: {kept.errors[0]:.2f} %" in text
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("place", ["common.import_module", "data.load_dataset"])
def test_the_end_before_anything_is_trained(run, tmp_path, monkeypatch, place, number):
    """SIGTERM while modules were imported or the data loaded ended the program without a word."""

    def interrupted(*_, **__):
        signal.raise_signal(number)

    before = signal.getsignal(number)
    monkeypatch.setattr(f"densembed.cli.{place}", interrupted)
    for more in ([], ["--out", tmp_path / "a.safetensors"]):
        result = run("train", "linear", *FAST, *more)
        assert result == (130, "", "densembed: Interrupted. Nothing was saved.\n")
    assert signal.getsignal(number) is before


def test_ctrl_c_before_the_first_snapshot(run, tmp_path, monkeypatch):
    """The status was 2, as after an error."""
    monkeypatch.setattr("densembed.cli.train.train", lambda *_, **__: [])
    result = run("train", "linear", *FAST, "--out", tmp_path / "a.safetensors")
    assert result == (130, "", "densembed: Interrupted. Nothing was saved.\n")


@pytest.mark.parametrize("place", ["file", "folder"])
def test_in_a_pipe_progress_is_a_line_per_epoch(run, tmp_path, runs_root, place):
    out = tmp_path / "a.safetensors"
    more = ["--out", out] if place == "file" else []
    _, text, _ = run("train", "linear", *FAST, "--epochs", "3", *more)
    kept = Checkpoint.open(out if place == "file" else all_runs()[0].checkpoint_path)
    lines = [line for line in text.splitlines() if line.startswith("epoch ")]
    steps = kept.header.steps_per_epoch
    assert len(lines) == 3
    for number, (line, epoch) in enumerate(zip(lines, kept.header.epochs, strict=True), 1):
        said = f"epoch {number}/3  step {number * steps}/{3 * steps}  {100 * number / 3:.0f} %"
        assert line.startswith(f"{said}  error {epoch.test_error[0]:.2f} %")
        assert bool(re.search(r"  \d+:\d\d:\d\d left$", line)) == (number < 3)


def test_at_a_terminal_progress_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal to the library that draws it
    monkeypatch.setenv("COLUMNS", "100")
    with Bar(20) as bar:
        bar.show("progress", {"step": 90, "steps": 600})
        bar.show("epoch", {"epoch": 3, "test_error": [4.0, 6.0]})
        bar.show("progress", {"step": 105, "steps": 600})
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    last = next(line for line in reversed(text.splitlines()) if "epoch" in line)
    for words in ("epoch 4/20", "18%", "step 105/600", "error 5.00 ± 1.41 %"):
        assert words in last


def test_train_without_available_data(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    data = ("--dataset", "mnist", "--data-dir", tmp_path / "file/data")
    line = fails(run("train", "linear", *data, "--out", tmp_path / "a.safetensors"))
    assert "'digits' needs no download" in line


@pytest.mark.parametrize(
    ("model", "unused"),
    [
        ("linear", "--density-rate, --locator-rate, --scale-start"),
        ("logistic-el-2", "--locator-rate"),
        ("logistic-el-mnn-2-2", ""),
    ],
)
@pytest.mark.parametrize("to_file", [True, False])
def test_settings_without_effect_are_named(run, runs_root, tmp_path, model, unused, to_file):
    out = ["--out", tmp_path / "a.safetensors"] if to_file else []
    settings = ["--density-rate", "3", "--locator-rate", "2", "--scale-start", "-2"]
    _, _, said = run("train", model, "--epochs", "1", "--batch-size", "500", *settings, *out)
    sentence = f"densembed: {model} has no part that these settings concern: {unused}."
    assert (sentence in said) == ("no part" in said) == bool(unused)
