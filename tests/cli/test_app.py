"""The arguments of `densembed app`, which are checked before the server starts."""

import socket

import pytest

from tests.cli.conftest import fails


@pytest.fixture(autouse=True)
def starts(monkeypatch) -> list[dict[str, str]]:
    """The environments with which a server would have been started."""
    started = []

    def start(program, command, environment):
        started.append(environment)
        raise SystemExit(0)  # as the process is another one from here on

    monkeypatch.setattr("os.execve", start)
    return started


@pytest.mark.parametrize("port", ["0", "65536", "8e3", "first"])
def test_a_port_is_a_whole_number(run, starts, port):
    status, _, errors = run("app", "--port", port)
    assert (status, starts) == (2, [])
    assert f"takes a whole number from 1 to 65,535; got {port}" in errors


def test_a_port_that_is_in_use_is_named(run, starts):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        sentence = fails(run("app", "--port", port))
    assert f"The port {port} cannot be used: Address already in use. Choose" in sentence
    assert "with --port." in sentence
    assert not starts
    run("app", "--port", port)
    assert starts


def test_runs_need_a_folder_that_can_be_written(run, starts, tmp_path):
    (tmp_path / "notes").write_text("a file")
    sentence = fails(run("app", "--runs", tmp_path / "notes" / "runs"))
    assert f"--runs {tmp_path}/notes/runs cannot be written" in sentence
    assert f"{tmp_path}/notes is not a folder" in sentence
    assert not starts


def test_visitors_who_only_read_need_none(run, starts, tmp_path):
    (tmp_path / "notes").write_text("a file")
    run("app", "--read-only", "--runs", tmp_path / "notes" / "runs")
    (environment,) = starts
    assert environment["DENSEMBED_READ_ONLY"] == "1"


def test_a_new_folder_is_not_created_before_it_is_used(run, starts, tmp_path):
    run("app", "--runs", tmp_path / "new" / "runs")
    (environment,) = starts
    assert environment["DENSEMBED_RUNS"] == str(tmp_path / "new" / "runs")
    assert not (tmp_path / "new").exists()
