"""Waits end with the condition, go on while something happens, and end where nothing does."""

import subprocess
import sys
from itertools import count

import pytest

from tests import waiting
from tests.waiting import EVERY, wait_for, work


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No test here needs time to pass between two looks."""
    monkeypatch.setattr(waiting, "PAUSE", 0)


def test_what_the_condition_is_comes_back():
    looks = count()
    assert wait_for(lambda: next(looks) == 3 and "done", lambda: 0, 5) == "done"


def test_it_goes_on_as_long_as_something_happens():
    looks, signs = count(), count()
    assert wait_for(lambda: next(looks) == 50 * EVERY, lambda: next(signs), 2 * EVERY)


def test_it_ends_where_nothing_happens():
    looks = count()
    with pytest.raises(AssertionError, match=f"No progress for {2 * EVERY} checks"):
        wait_for(lambda: next(looks) < 0, lambda: "still", 2 * EVERY)
    assert next(looks) == 2 * EVERY


def test_it_goes_on_after_a_rest_that_is_shorter_than_the_silence():
    looks, signs = count(), iter([0, 0, 0, 1] + [1, 1, 2] + [2] * 99)
    with pytest.raises(AssertionError):
        wait_for(lambda: next(looks) < 0, lambda: next(signs), 4 * EVERY)
    assert next(looks) == (3 + 3 + 4) * EVERY


def test_a_process_that_works_is_a_sign_and_one_that_waits_is_not(monkeypatch):
    # Without a pause, all checks may be made before a second of work is done.
    monkeypatch.setattr(waiting, "PAUSE", 0.01)
    command = [sys.executable, "-c", "import sys; sys.stdin.read(1)\nwhile True: pass"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        waits = wait_for(lambda: [one for one in work() if one[0] == process.pid])
        assert waits == [(process.pid, 0)]
        process.stdin.write(b"x")
        process.stdin.flush()
        wait_for(lambda: [one for one in work() if one[0] == process.pid and one[1] >= 1])
    finally:
        process.kill()
        process.wait()
