"""What a worker of this machine does when it starts."""

import logging

import pytest

from densembed.data import DataError
from densembed.models.plugins import PluginError
from densembed.workers import preload
from densembed.workers.scheduler import SchedulerError, with_plugins

MESSAGES = {
    "distributed.worker": "Failed to communicate with scheduler during heartbeat.",
    "distributed.worker.state_machine": "Async instruction for {task} ended with CancelledError",
}


@pytest.fixture(params=MESSAGES)
def logger(monkeypatch, request):
    """A logger of Dask's workers, without filters of other tests."""
    logger = logging.getLogger(request.param)
    monkeypatch.setattr(logger, "filters", [])
    monkeypatch.setattr(preload, "compile_kernels", lambda: None)
    return logger


def test_what_a_worker_says_at_the_end_is_not_shown(logger, caplog):
    preload.dask_setup(None)
    logger.propagate, before = True, logger.propagate
    try:
        with caplog.at_level(logging.WARNING, logger.name):
            logger.error(MESSAGES[logger.name])
            logger.error("Compute failed")
    finally:
        logger.propagate = before
    assert [record.getMessage() for record in caplog.records] == ["Compute failed"]


@pytest.mark.parametrize("name", MESSAGES)
def test_the_messages_are_those_of_dask(name):
    """They change without notice, and would then be shown again."""
    module = pytest.importorskip(
        "distributed.worker_state_machine" if "state" in name else "distributed.worker"
    )
    with open(module.__file__, encoding="utf-8") as file:
        assert MESSAGES[name] in file.read()


FAILED = "Compute Failed\nKey:       %s\nException: %r\nTraceback: %r"


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (IsADirectoryError(21, "Is a directory", "a.safetensors"), 0),
        (DataError("The folder 'a' was not found."), 0),
        (PluginError('It\'s "not" here.'), 0),
        (KeyError("a"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_with_a_sentence_of_its_own_is_not_printed_by_dask(error, printed, caplog):
    def fail():
        raise error

    with pytest.raises(SchedulerError if not printed else KeyError) as caught:
        with_plugins((), fail)
    logger = logging.getLogger("tests.preload")
    logger.addFilter(preload.is_worth_showing)
    logger.error(FAILED, "densembed-1", repr(caught.value), "  File x")  # as Dask does
    assert len(caplog.records) == printed


def test_the_message_about_a_failed_task_is_that_of_dask():
    module = pytest.importorskip("distributed.worker")
    with open(module.__file__, encoding="utf-8") as file:
        assert '"Exception: %r' in file.read()
