"""Paths in the home folder, and reading without waiting."""

import os

import pytest

from densembed import files
from densembed.files import in_home, read_regular, replace_file


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


@pytest.mark.parametrize("name", ["a" * 251 + ".csv", "é" * 125 + ".csv", "a.csv"])
def test_a_file_of_the_longest_name_is_written(tmp_path, name):
    for content in (b"one", b"two"):
        replace_file(tmp_path / name, content)
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name).read_bytes() == content
    with pytest.raises(OSError, match="too long") as caught:
        replace_file(tmp_path / f"a{'b' * 255}", b"")
    assert str(caught.value.filename).endswith("b" * 255)


def test_a_write_protected_file_is_not_replaced(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"one")
    link.symlink_to(path)
    path.chmod(0o444)
    for name in (path, link):
        with pytest.raises(PermissionError, match="The file is write-protected"):
            replace_file(name, b"two")
    assert path.read_bytes() == b"one"
    path.chmod(0o644)
    replace_file(link, b"two")
    assert path.read_bytes() == b"two"
    assert link.is_symlink()


def test_only_the_home_folder_has_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert in_home("~/a") == tmp_path / "a"
    assert str(in_home("~nobody-of-this-name/a")) == "~nobody-of-this-name/a"
    assert str(in_home("a~/b")) == "a~/b"
