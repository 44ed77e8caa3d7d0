"""What a worker of this machine does when it starts."""

import logging

import pytest

from densembed.workers import preload

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
