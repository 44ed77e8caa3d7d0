"""Ctrl-C while a command imports its modules, and while worker processes start."""

import os
import signal
import subprocess
import sys

import pytest

from densembed.cli import common
from densembed.cli.main import main
from densembed.interrupt import ENDS, Interrupt, blocked
from densembed.workers import local_workers


def test_ctrl_c_while_a_command_is_imported(monkeypatch, capsys):
    """Torch swallowed the exception of Python, and NumPy then failed with a RecursionError."""

    def swallows(_: str):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pytest.fail("the library has seen it")

    monkeypatch.setattr(common, "import_module", swallows)
    before = signal.getsignal(signal.SIGINT)
    assert main(["info", "logistic-el-5"]) == 130
    assert capsys.readouterr().err == "densembed: Interrupted.\n"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signal")
def test_what_nohup_ignores_does_not_end_a_training():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(signals=ENDS) as interrupt:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupt.requested
            signal.raise_signal(signal.SIGTERM)
            assert interrupt.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signal")
def test_signals_after_the_first_one():
    """A terminal that is closed and a scheduler both send one, within a moment."""
    before = [signal.getsignal(each) for each in ENDS]
    with Interrupt(signals=ENDS) as interrupt:
        for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(each)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupt.finishing = True
        signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(each) for each in ENDS] == before


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such mask")
def test_a_terminal_interrupts_no_worker():
    """Each printed a traceback of Dask."""
    code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"

    def started() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout

    with blocked():
        assert started() == "True\n"
    assert started() == "False\n"


def test_ctrl_c_while_workers_start(monkeypatch):
    """Dask cannot close workers that are starting: it ended in an AssertionError."""
    events = []

    def starts(**_: object) -> str:
        signal.raise_signal(signal.SIGINT)
        events.append("started")
        return "cluster"

    monkeypatch.setattr("distributed.SpecCluster", starts)
    monkeypatch.setattr(local_workers, "end_workers", events.append)
    with pytest.raises(KeyboardInterrupt):
        local_workers.start_workers({})
    assert events == ["started", "cluster"]
