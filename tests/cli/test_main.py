"""The whole program: arguments, help, guesses and files that no command takes."""

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from typing import get_args

import filelock
import pytest

import densembed
from densembed.cli.main import build_parser
from densembed.cli.reproduce import EXPERIMENTS
from densembed.data import default_data_dir
from densembed.functional.densities import FAMILIES
from densembed.models.names import templates
from densembed.runs.folder import runs_folder
from densembed.runs.gallery import gallery_folder
from tests.cli.conftest import FAST, fails


@pytest.mark.parametrize("command", ["evaluate", "info", "read", "render"])
def test_files_that_are_no_checkpoints(run, command, pictures, tmp_path):
    more = {
        "read": [pictures["digit"]],
        "render": ["--image", pictures["digit"], "--out", tmp_path / "a.npz"],
    }.get(command, [])
    assert "No such file" in fails(run(command, tmp_path / "no.safetensors", *more))
    assert "is not a densembed checkpoint" in fails(run(command, pictures["digit"], *more))
    assert "directory" in fails(run(command, tmp_path, *more))


def test_a_full_disk_is_one_sentence(run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("densembed.training.checkpoint.os.replace", full)
    out = tmp_path / "a.safetensors"
    line = fails(run("train", "linear", *FAST, "--out", out))
    assert line == f"densembed: {out}: No space left on device."


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["train", "linear", *FAST, "--out"], "a.safetensors"),
        (["export", "FILE", "--to", "csv", "--out"], "a.csv"),
        (["render", "FILE", "--image", "a.png", "--out"], "a.npz"),
        (["benchmark", "--quick", "--json"], "a.json"),
        (["benchmark", "--quick", "--markdown"], "a.md"),
    ],
)
def test_a_write_protected_file_is_kept(run, arguments, name, trained_file, tmp_path):
    out = tmp_path / name
    out.write_text("mine")
    out.chmod(0o444)
    given = [str(trained_file) if each == "FILE" else each for each in arguments]
    line = fails(run(*given, out))
    assert line.endswith(
        f"{arguments[-1]} {out} is write-protected and was kept: choose another path, or permit "
        "writing to the file."
    )
    assert out.read_text() == "mine"


# The whole program


def started(*arguments: str, end: str = "", **environment: str) -> subprocess.CompletedProcess:
    """Run the program in a shell, whose command ends in `end`."""
    command = [sys.executable, "-m", "densembed", *arguments]
    return subprocess.run(
        f"{shlex.join(command)} {end}",
        shell=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        timeout=120,
    )


on_a_full_device = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="needs a device that is always full"
)


@on_a_full_device
@pytest.mark.parametrize("arguments", [[], ["--version"], ["--help"], ["info", "--help"]])
def test_output_that_cannot_be_written(arguments):
    done = started(*arguments, end=">/dev/full")
    message = "densembed: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE")
@pytest.mark.parametrize(
    ("arguments", "both"),
    [
        ([], False),
        (["--help"], True),
        (["info", "FILE"], False),
        (["info", "FILE"], True),
        (["info", "no.safetensors"], True),
        (["train", "linear", "--epochs", "1", "--out", "a.safetensors"], False),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_ended(arguments, both, unbuffered, trained_file, tmp_path):
    """As with `| head -0`, or `2>&1 | head -0`: silent, with the status that SIGPIPE gives."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "densembed"),
            *(str(trained_file) if each == "FILE" else each for each in arguments),
        ],
        stdout=writer,
        stderr=writer if both else subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": unbuffered},
        timeout=120,
    )
    os.close(writer)
    assert (done.returncode, done.stderr or "") == (128 + signal.SIGPIPE, "")
    if "--out" in arguments:
        assert (tmp_path / arguments[-1]).is_file()


@on_a_full_device
def test_no_run_is_left_that_was_never_named(tmp_path):
    done = started("train", "linear", end=">/dev/full", DENSEMBED_RUNS=str(tmp_path))
    assert done.returncode == 2
    assert not list(tmp_path.glob("2*"))


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_output_that_is_closed(trained_file):
    for arguments in ([], ["--help"], ["info", str(trained_file)]):
        done = started(*arguments, end=">&-")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use can be deleted on POSIX only")
def test_a_working_folder_that_was_deleted(run, tmp_path, monkeypatch):
    """Libraries ended the process, or an output "cannot be written"."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    line = fails(run("train", "linear", *FAST))
    assert line == "densembed: The working folder has been deleted: change to one that exists."


def test_letters_that_the_terminal_lacks_are_escaped():
    done = started("train", "--help", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u03b1 and \u03b2" in done.stdout


@pytest.mark.parametrize("command", ["info", "evaluate"])
def test_a_name_that_is_too_long_for_a_file(run, command):
    assert "File name too long" in fails(run(command, "a" * 300))


@pytest.mark.parametrize("arguments", [["fly"], ["train"], ["evaluate"], ["train", "--fast"]])
def test_usage_errors(run, arguments):
    status, text, errors = run(*arguments)
    assert (status, text) == (2, "")
    assert errors.startswith("usage: densembed")
    assert "Traceback" not in errors


def test_without_a_command_it_names_the_three_most_useful_ones(run):
    status, text, errors = run()
    assert (status, errors) == (0, "")
    assert re.findall(r"^  densembed (\w+)", text, re.M) == ["app", "train", "read"]
    for line in re.findall(r"^  densembed (.*?)  ", text, re.M):
        assert build_parser().parse_args(line.split()).command


@pytest.mark.parametrize("command", [[], ["train"], ["evaluate"], ["info"], ["read"], ["render"]])
def test_help(run, command):
    status, text, _ = run(*command, "--help")
    assert status == 0
    assert text.startswith("usage: densembed")


def test_version(run):
    assert run("--version") == (0, f"densembed {densembed.__version__}\n", "")


@pytest.mark.parametrize("command", [[], ["train"], ["sweep"]])
def test_help_names_models_families_and_data_sets(run, command):
    words = set(re.split(r"[\s,;]+", run(*command, "--help")[1]))
    assert set(templates().split(", ")) <= words
    assert set(FAMILIES) | {"digits", "mnist", "fashion-mnist", "cifar10", "folder:PATH"} <= words


COMMAND_NAMES = (
    "app",
    "train",
    "evaluate",
    "info",
    "read",
    "render",
    "reproduce",
    "sweep",
    "benchmark",
)


def test_the_help_of_every_command_has_examples_that_it_takes(run):
    listed = run("--help")[1]
    for name in COMMAND_NAMES:
        assert f"\n    {name}" in listed
        text = run(name, "--help")[1]
        examples = re.findall(r"^  densembed (.*)$", text, re.M)
        assert examples
        for example in examples:
            assert build_parser().parse_args(example.split()).command
        assert "exit status: 0 " in text
        assert "130 after Ctrl-C" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "logistc-el-5"], "did you mean 'logistic-el-5'?"),
        (["train", "gausian-el-mnn-4-3"], "did you mean 'gaussian-el-mnn-4-3'?"),
        (["train", "mlp50"], "did you mean 'mlp-50'?"),
        (["train", "LINEAR"], "did you mean 'linear'?"),
        (["train", "linear", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["train", "linear", "--lerning-rate", "1"], "did you mean --learning-rate?"),
        (["sweep", "logistic-el-3,logistc-el-5"], "did you mean 'logistic-el-5'?"),
        (["sweep", "linear", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["sweep", "linear,mlp-5", "--epoch-s", "1,2"], "did you mean --epochs?"),
        (["reproduce", "tabel1"], "did you mean 'table1'?"),
        (["reproduce", "table1", "--recipe", "tund"], "did you mean 'tuned'?"),
        (["reproduce", "table1", "--rows", "logistic-el-51"], "did you mean 'logistic-el-5'?"),
        (["reproduce", "table1", "--dataset", "minst"], "did you mean 'mnist'?"),
        (["evalute", "a.safetensors"], "did you mean 'evaluate'?"),
        (["benchmark", "--quik"], "did you mean --quick?"),
    ],
)
def test_a_misspelt_name_gets_a_guess(run, runs_root, arguments, words):
    status, text, errors = run(*arguments)
    assert (status, text) == (2, "")
    assert words in errors
    assert "Traceback" not in errors
    assert not runs_root.exists()


def test_a_guess_is_close(run):
    _, _, errors = run("reproduce", "table1", "--epochs", "1")
    assert "unrecognized arguments: --epochs 1\n" in errors


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["read", "a", ""], "image"),
        (["read", "", "a.png"], "checkpoint"),
        (["evaluate", ""], "checkpoint"),
        (["render", "a", "--image", "", "--out", "b.svg"], "--image"),
        (["train", "linear", "--out", ""], "--out"),
        (["train", "linear", "--data-dir", ""], "--data-dir"),
        (["sweep", "linear", "--out", ""], "--out"),
    ],
)
def test_an_empty_path_is_refused(run, runs_root, command, argument):
    status, text, errors = run(*command)
    assert (status, text) == (2, "")
    assert f"argument {argument}: the path is empty" in errors
    assert not runs_root.exists()


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["info", "\0"], "checkpoint"),
        (["read", "a", "b\0.png"], "image"),
        (["read", "a", "b.png", "--labels", "\0"], "--labels"),
        (["site", "a\0"], "out"),
        (["train", "linear", "--out", "a\0"], "--out"),
        (["train", "linear", "--data-dir", "\0"], "--data-dir"),
        (["app", "--runs", "\0"], "--runs"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused(run, runs_root, command, argument):
    status, text, errors = run(*command)
    assert (status, text) == (2, "")
    assert f"argument {argument}: no file can have the name" in errors
    assert r"\x00" in errors
    assert not runs_root.exists()


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["read", "a", "a.png"], "--data-dir"),
        (["evaluate", "a"], "--data-dir"),
        (["train", "linear"], "--data-dir"),
        (["sweep", "linear"], "--data-dir"),
        (["reproduce", "table1"], "--data-dir"),
        (["app"], "--runs"),
    ],
)
def test_a_file_in_place_of_a_folder_is_refused(run, runs_root, tmp_path, command, argument):
    path = tmp_path / "file"
    path.write_text("in the way")
    status, text, errors = run(*command, argument, path)
    assert (status, text) == (2, "")
    assert f"argument {argument}: {path} is a file; name a folder" in errors
    assert not runs_root.exists()


@pytest.mark.parametrize("command", ["info", "read", "evaluate"])
def test_a_misspelt_included_model_gets_a_guess(run, monkeypatch, tmp_path, command):
    monkeypatch.setenv("DENSEMBED_GALLERY", str(tmp_path))
    (tmp_path / "logistic-el-5.safetensors").touch()
    status, text, errors = run(command, "logistic-el5", *(["a.png"] if command == "read" else []))
    assert (status, text) == (2, "")
    assert errors.endswith(
        "argument checkpoint: 'logistic-el5' is neither a file nor an included model (did you "
        "mean 'logistic-el-5'?)\n"
    )


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_a_decimal_comma_is_named(run, command):
    line = fails(run(command, "linear", "--learning-rate", "0,002"))
    assert "rite decimals with a point" in line
    assert "0,002" in line


def test_only_a_folder_is_to_be_renamed(run):
    cryptic = os.fsdecode(b"rot\xe9")
    assert fails(run("train", cryptic)) == r"densembed: Model is not valid UTF-8: rot\xe9."
    line = fails(run("train", "linear", "--dataset", f"folder:{cryptic}"))
    assert line.endswith(r"folder:rot\xe9. Rename the folder.")


def test_an_unknown_name_gets_the_known_ones(run, runs_root):
    line = fails(run("train", "transformer"))
    assert "did you mean" not in line
    for name in (*templates().split(", "), *FAMILIES):
        assert name in line
    for name in EXPERIMENTS:
        assert name in run("reproduce", "everything")[2]
    for name in COMMAND_NAMES:
        assert name in run("fly")[2]


def test_train_has_a_flag_for_every_field(run):
    text = run("train", "--help")[1]
    for name in densembed.RunConfig.model_fields:
        assert name == "model" or f"--{name.replace('_', '-')}" in text


def test_choices_in_the_help_are_those_that_are_taken(run):
    for name, field in densembed.RunConfig.model_fields.items():
        if not (choices := get_args(field.annotation)):
            continue
        flag = "--" + name.replace("_", "-")
        for command in ("train", "sweep"):
            assert f"  {flag} {{{','.join(choices)}}}\n" in run(command, "--help")[1]
        _, _, words = re.sub(r"\(.*?\)+,?", "", field.description).partition(":")
        for choice in (*choices, *set(re.findall(r"\w+", words)) - {"a", "or"}):
            assert getattr(densembed.RunConfig(**{name: choice}), name) == choice


def test_it_runs_as_a_program(run, trained_file, tmp_path):
    """One good file and one that is not there: output, sentence and status, from outside."""
    _, expected, _ = run("evaluate", trained_file)
    missing = tmp_path / "no.safetensors"
    process = subprocess.run(
        [sys.executable, "-m", "densembed", "evaluate", str(trained_file), str(missing)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(densembed.__file__))},
        timeout=120,
    )
    assert process.returncode == 2
    assert process.stdout == f"small.safetensors: {expected}"
    assert process.stderr == f"densembed: {missing} cannot be read: No such file or directory.\n"


def test_a_tilde_is_the_home_folder(run, trained_file, pictures, tmp_path, monkeypatch):
    """A shell does not replace it in --out=~/a.svg, nor in quotes or a variable."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    shutil.copy(trained_file, tmp_path / "home" / "a.safetensors")
    arguments = "render", "~/a.safetensors", "--image", pictures["digit"], "--out=~/a.npz"
    assert run(*arguments)[0] == 0
    assert (tmp_path / "home" / "a.npz").is_file()
    for variable, folder in (
        ("DENSEMBED_DATA", default_data_dir),
        ("DENSEMBED_RUNS", runs_folder),
        ("DENSEMBED_GALLERY", gallery_folder),
    ):
        monkeypatch.setenv(variable, "~/place")
        assert folder() == tmp_path / "home" / "place"
        monkeypatch.setenv(variable, "~nobody-of-this-name/place")
        assert folder().name == "place"


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["evaluate", "a", "--dataset", ""], "--dataset"),
        (["reproduce", "table1", "--rows", ""], "--rows"),
    ],
)
def test_an_empty_text_does_not_mean_the_default(run, command, argument):
    status, text, errors = run(*command)
    assert (status, text) == (2, "")
    assert f"argument {argument}: the text is empty" in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["families", "--rows", "linear"], "--rows is for table1, table2, search, times, frames"),
        (["robustness", "--rows", "linear"], "not for robustness"),
        (["figure1", "--rows", "linear"], "not for figure1"),
        (
            ["table1", "--inputs", "1,2,3"],
            "--included and --inputs are for figure1, not for table1",
        ),
        (["times", "--included"], "not for times"),
        (["times", "--recipe", "tuned"], "--recipe is for table1, table2, figure1, families, fram"),
        (
            ["times", "--seeds", "2"],
            "each network once, one after another, on this machine: leave out",
        ),
        (["times", "--processes", "2"], "leave out --processes."),
        (["figure1", "--included", "--recipe", "tuned"], "trained already: leave out --recipe"),
        (["figure1", "--included", "--seeds", "2"], "trained already: leave out --seeds"),
        (["figure1", "--included", "--device", "cpu"], "trained already: leave out --device"),
    ],
)
def test_no_argument_is_ignored(run, tmp_path, arguments, words):
    """It trained every model instead."""
    assert words in fails(run("reproduce", *arguments, "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "name", "files"),
    [
        (["read", "a", "--json", "b", "--grid", "14", "c"], "image", ["b", "c"]),
        (["read", "--json", "a", "b", "--grid", "14", "--", "-c"], "image", ["b", "-c"]),
        (["site", "out", "--dataset", "digits", "a", "b"], "checkpoint", ["a", "b"]),
        (["info", "a", "--plugin", "json", "b"], "checkpoint", ["a", "b"]),
    ],
)
def test_options_may_stand_between_files(arguments, name, files):
    options = build_parser().parse_args(arguments)
    found = next(value for key, value in vars(options).items() if key.startswith(name))
    assert [os.fspath(each) for each in found] == files


@pytest.mark.parametrize("value", ["-3", "-1e0", "-.5", "-3.", "-1E+0"])
def test_a_negative_number_is_no_flag(value):
    options = build_parser().parse_args(["train", "linear", "--scale-start", value])
    assert options.scale_start == value


def test_several_negative_numbers_are_no_flag(run):
    options = build_parser().parse_args(["sweep", "linear", "--scale-start", "-3,-2.5"])
    assert options.scale_start == "-3,-2.5"
    assert "Scale start takes a number from -8 to 4; got" in fails(
        run("train", "linear", "--scale-start", "-inf")
    )


@pytest.mark.parametrize(
    "command",
    [
        ["render", "{model}", "--image", "{image}", "--out", "{out}.svg"],
        ["benchmark", "--json", "{out}.json"],
        ["benchmark", "--markdown", "{out}.md"],
        ["site", "{out}", "{model}"],
        ["sweep", "linear", "--out", "{out}"],
        ["reproduce", "table1", "--out", "{out}"],
        ["reproduce", "table1", "--gallery", "{out}"],
    ],
    ids=" ".join,
)
def test_work_begins_only_if_its_result_can_be_written(
    run, command, trained_file, pictures, tmp_path, monkeypatch
):
    for name in (
        "render.Checkpoint.open",
        "reproduce.benchmark.machine",
        "site.load",
        "sweep.prepare",
        "reproduce.prepare",
    ):
        monkeypatch.setattr(f"densembed.cli.{name}", lambda *_: pytest.fail("It works."))
    (tmp_path / "file").write_text("")
    places = {"model": trained_file, "image": pictures["digit"], "out": tmp_path / "file" / "a"}
    line = fails(run(*(part.format(**places) for part in command)))
    assert "file/a" in line
    assert (tmp_path / "file").read_text() == ""


def test_why_a_sweep_ended_is_said_on_a_full_disk_too(run, tmp_path, monkeypatch):
    """It says more than that its table cannot be written."""
    from densembed.cli import sweep

    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(sweep, "replace_file", full)
    monkeypatch.setattr(sweep.Sweep, "submit", lambda *_: None)
    monkeypatch.setattr(sweep, "_follow", lambda *_: None)
    monkeypatch.setattr(sweep.Sweep, "reason", lambda _: "This ended the sweep.")
    arguments = "sweep", "linear", "--epochs", "1", "--out", tmp_path / "sweep"
    assert fails(run(*arguments)) == "densembed: This ended the sweep."
    monkeypatch.setattr(sweep.Sweep, "state", lambda _: "done")
    assert "sweep.csv" in fails(run(*arguments))


def test_a_sweep_of_another_process_is_no_interrupted_one(run, tmp_path, monkeypatch):
    from densembed.cli import sweep

    monkeypatch.setattr(sweep.Sweep, "submit", lambda *_: None)
    plan = "sweep", "linear", "--epochs", "1", "--out", tmp_path / "sweep"
    assert "Run the same command again" in fails(run(*plan))
    (group,) = sweep.Sweep(tmp_path / "sweep").groups()
    group.path.mkdir()
    with filelock.FileLock(group.path / "lock"):
        assert "Another process is training this sweep." in fails(run(*plan))


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_a_folder_of_runs_that_cannot_be_written_is_named(run, command, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DENSEMBED_RUNS", str(tmp_path / "file" / "runs"))
    sentence = fails(run(command, "linear", "--epochs", "1"))
    assert f"{tmp_path}/file/runs, cannot be written: Not a directory." in sentence
    assert "Set DENSEMBED_RUNS" in sentence
    assert "--out" in sentence


@pytest.mark.parametrize("linked", [False, True])
def test_two_results_are_two_files(run, tmp_path, monkeypatch, linked):
    monkeypatch.setattr(
        "densembed.cli.reproduce.benchmark.machine", lambda *_: pytest.fail("It measures.")
    )
    first = second = tmp_path / "a.txt"
    if linked:
        second = tmp_path / "b.txt"
        second.symlink_to(first)
    line = fails(run("benchmark", "--json", first, "--markdown", second))
    assert line == (f"densembed: --json and --markdown name the same file, {first}: choose two.")
    assert not first.exists()
