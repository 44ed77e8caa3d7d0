"""Paths in the home folder, and reading without waiting."""

import os

import pytest

from densembed import files
from densembed.files import in_home, read_regular


def test_the_beginning_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert read_regular(tmp_path / "a") == b"abc"
    assert read_regular(tmp_path / "a", 2) == b"ab"
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "b")


def test_a_file_that_has_no_end_is_not_waited_for(tmp_path, monkeypatch):
    """Files of the system such as /proc/kmsg look like ordinary ones, and block like a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Not a regular file"):
        read_regular(pipe)
    monkeypatch.setattr(files, "check_regular", lambda path: None)
    writer = os.open(pipe, os.O_RDWR)  # it stays open and writes nothing
    with pytest.raises(BlockingIOError) as caught:
        read_regular(pipe)
    assert caught.value.filename == str(pipe)
    os.close(writer)


def test_only_the_home_folder_has_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert in_home("~/a") == tmp_path / "a"
    assert str(in_home("~nobody-of-this-name/a")) == "~nobody-of-this-name/a"
    assert str(in_home("a~/b")) == "a~/b"
