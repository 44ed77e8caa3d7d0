"""Every piece is computed once, by any number of threads, and failures reach the caller."""

import threading

import pytest

from densembed.kernels import threads


@pytest.mark.parametrize("pieces", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_piece_once(pieces, number, monkeypatch):
    monkeypatch.setattr(threads, "_limit", None)
    seen, lock = [], threading.Lock()

    def run(first, end):
        with lock:
            seen.extend(range(first, end))

    threads.share(pieces, 10**9, number, run)
    assert sorted(seen) == list(range(pieces))


def test_little_work_wakes_no_other_thread(monkeypatch):
    monkeypatch.setattr(threads, "_limit", 4)
    calls = []
    threads.share(100, threads.LEAST_WORK, 4, lambda *part: calls.append(part))
    assert calls == [(0, 100)]


def test_a_failure_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "_limit", 3)

    def run(first, end):
        if first <= 50 < end:
            raise ValueError("piece 50")

    with pytest.raises(ValueError, match="piece 50"):
        threads.share(100, 10**9, 3, run)
    threads.share(100, 10**9, 3, lambda *part: None)  # the threads go on


def test_use_takes_precedence(monkeypatch):
    monkeypatch.setattr(threads, "_limit", None)
    assert threads.limit(3) == 3
    threads.use(2)
    assert threads.limit(3) == 2


@pytest.mark.parametrize("text", ["abc", "0", "2.5", "-1", " "])
def test_what_is_no_number_of_threads_is_named(monkeypatch, text):
    monkeypatch.setenv(threads.VARIABLE, text)
    with pytest.raises(ValueError, match="DENSEMBED_THREADS must be a number of threads"):
        threads.allowed()


def test_the_number_of_threads_is_that_of_the_environment(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.allowed() == 3
    monkeypatch.setenv(threads.VARIABLE, "5")
    assert threads.allowed() == 5
    monkeypatch.setenv(threads.VARIABLE, "")
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # as OpenMP takes for nested loops
    assert threads.allowed() >= 1
