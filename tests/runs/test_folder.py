"""What the folder of a run contains: names, identifiers, damaged files, many runs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densembed.paths import app_folder
from densembed.runs import Run, all_runs, events, execute, folder, runs_folder
from densembed.training.config import RunConfig
from tests.runs.conftest import ENDLESS, SHORT, InThread, ended, kinds


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("my best", "my best"),
        ("../../etc", "../../etc"),
        ("  two\n\tlines\x00 ", "two lines"),
        ("é" * 60 + " ", "é" * 60),
        ("\u202eright to left", "right to left"),
        ("", ""),
    ],
)
def test_a_name_is_text_on_one_line(new, name, kept):
    run = new()
    assert run.name == ""
    run.rename(name)
    assert run.name == kept
    assert sorted(path.name for path in run.path.iterdir()) == ["config.json", "name"]


def test_a_long_name_is_refused_and_the_old_one_kept(new):
    run = new()
    run.rename("short")
    with pytest.raises(ValueError, match=r"at most 60 characters; this one has 1,000\."):
        run.rename("x" * 1000)
    assert run.name == "short"


def test_a_long_name_file_is_truncated(new):
    run = new()
    (run.path / "name").write_bytes(b"\xff\n" * 1_000_000)
    assert len(run.name) <= 60
    assert "\n" not in run.name


def test_the_end_of_the_log_is_read(new):
    run = new()
    assert run.log == ""
    (run.path / "log.txt").write_text("x" * 50_000 + "the end")
    assert run.log.endswith("xthe end")
    assert len(run.log) == 20_000


# Identifiers are data


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        ".",
        "..",
        "../outside",
        "20240101-000000-abcdef/../../outside",
        "../runs/{real}",
        "{absolute}",
        "{real}/",
        "{real}\n",
        "{real}\x00",
        " {real}",
        "２０２４0101-000000-abcdef",
        "20240101-000000-ABCDEF",
        "20240101-000000-abcde",
        "x" * 100_000,
    ],
    ids=lambda text: repr(text[:30]),
)
def test_an_identifier_is_never_a_path(new, identifier):
    run = new()
    outside = run.path.parent.parent / "outside"
    outside.mkdir()
    (outside / "config.json").write_text(RunConfig().model_dump_json())
    text = identifier.replace("{real}", run.identifier).replace("{absolute}", str(outside))
    assert Run.find(text) is None
    assert Run.find(run.identifier) == run


@given(st.text(max_size=60))
def test_no_text_finds_a_run_that_is_not_there(text):
    assert Run.find(text) is None


def test_identifiers_are_found_and_differ(new):
    made = [new() for _ in range(20)]
    assert len({run.identifier for run in made}) == 20
    assert all(folder.IDENTIFIER.fullmatch(run.identifier) for run in made)
    assert {run.identifier for run in all_runs()} == {run.identifier for run in made}


def test_where_runs_are(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSEMBED_RUNS", str(tmp_path))
    assert runs_folder() == tmp_path
    monkeypatch.delenv("DENSEMBED_RUNS")
    monkeypatch.chdir(tmp_path)
    assert runs_folder() == app_folder() / "checkpoints/runs"  # from any working directory


# Damage


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{\n",
        b"null\n",
        b"[1, 2]\n",
        b'"end"\n',
        b'{"state": "done"}\n',
        b'{"kind": "end"}\n',
        b'{"kind": "end", "state": 5}\n',
        b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        b'{"kind": "end", "state": "done", "reason": ""}',
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_damaged_line_is_left_out(new, line):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(line)
    assert kinds(run) == ["start"]
    assert run.state() == "interrupted"


def test_lines_after_a_damaged_one_count(new):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b'{"kind": "pro\n')
    run.append("end", state="stopped", reason="")
    assert kinds(run) == ["start", "end"]
    assert run.state() == "stopped"


def test_oversized_event_files_are_not_read(new, monkeypatch):
    run = new()
    run.append("start", process=1)
    monkeypatch.setattr(events, "MAX_EVENTS_BYTES", 5)
    assert run.events() == []


def test_a_damaged_checkpoint_is_none(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.checkpoint_path.write_bytes(run.checkpoint_path.read_bytes()[:-100])
    assert run.checkpoint() is None
    assert run.state() == "done"


def test_a_deleted_run_is_gone(new):
    run = new(epochs=1)
    execute(str(run.path))
    run.delete()
    assert not run.path.exists()
    assert Run.find(run.identifier) is None
    assert (run.config, run.events(), run.checkpoint()) == (None, [], None)
    assert not run.running()
    run.delete()


def test_a_run_deleted_in_the_queue_does_not_come_back(new):
    run = new()
    run.delete()
    assert execute(str(run.path)) == "failed"
    assert not run.path.exists()


def test_a_run_deleted_while_it_trains_ends(new):
    run = new(epochs=ENDLESS)
    with InThread(run) as worker:
        run.delete()
        ended(worker.thread)
        assert worker.state == "failed"
        run.path.mkdir(exist_ok=True)  # for the request to stop, after the test


# Many


def test_two_hundred_runs_are_listed_newest_first(runs_root):
    for k in range(200):
        path = runs_root / f"2024{k % 12 + 1:02d}01-0000{k % 60:02d}-{k:06x}"
        path.mkdir(parents=True)
        (path / "config.json").write_text(json.dumps(SHORT))
    for name in ("notes", "20240101-000000-abcdef.bak", "20991231-235959-abcdef"):
        (runs_root / name).mkdir()
    (runs_root / "20991231-235959-abcde0").write_text("a file")
    runs = all_runs()
    assert len(runs) == 200
    names = [run.identifier for run in runs]
    assert names == sorted(names, reverse=True)
    assert {run.state() for run in runs} == {"queued"}
    assert runs[0].config == RunConfig(**SHORT)


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "end", "state": "weird"},
        {"kind": "end"},
        {"kind": "epoch"},
        {"kind": "epoch", "epoch": 1, "step": 1, "test_error": "low"},
        {"kind": "epoch", "epoch": 1, "step": 1, "test_error": []},
        {"kind": "progress", "step": 0, "steps": 0, "images_per_second": 1.0},
        {"kind": "progress", "step": None, "steps": 3, "images_per_second": 1.0},
        {"kind": "song"},
        {},
        [],
    ],
)
def test_lines_of_another_version_are_passed_over(new, line):
    run = new()
    run.append("start", process=1)
    with open(run.path / "events.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    assert [event["kind"] for event in run.events()] == ["start"]
    assert run.state() == "interrupted"


def test_a_folder_whose_digits_are_no_date_is_no_run(new, runs_root):
    odd = runs_root / "20269999-999999-dddddd"
    new().path.rename(odd)
    assert Run.find(odd.name, runs_root) is None
    assert all_runs(runs_root) == []


def test_the_last_event_is_that_of_all_of_them(new):
    run = new()
    assert run.last is None
    for step in range(1, 2000):  # longer than the part of the file that is looked at
        run.append("progress", step=step, steps=2000, images_per_second=1.0)
    assert run.last == run.events()[-1]
    assert run.last["step"] == 1999
    with open(run.path / "events.jsonl", "ab") as file:
        file.write(b"\xff" * events.TAIL_BYTES + b"\n")
    assert run.last["step"] == 1999
