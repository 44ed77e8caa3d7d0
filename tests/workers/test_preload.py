"""What a worker of this machine does when it starts."""

import logging

import pytest

from densembed.workers import preload


@pytest.fixture
def logger(monkeypatch):
    """The logger of Dask's workers, without filters of other tests."""
    logger = logging.getLogger("distributed.worker")
    monkeypatch.setattr(logger, "filters", [])
    monkeypatch.setattr(preload, "compile_kernels", lambda: None)
    return logger


def test_a_heartbeat_that_fails_at_the_end_is_not_shown(logger, caplog):
    preload.dask_setup(None)
    logger.propagate, before = True, logger.propagate
    try:
        with caplog.at_level(logging.WARNING, logger.name):
            logger.error("Failed to communicate with scheduler during heartbeat.")
            logger.error("Compute failed")
    finally:
        logger.propagate = before
    assert [record.getMessage() for record in caplog.records] == ["Compute failed"]


def test_the_message_is_that_of_dask():
    """It changes without notice, and would then be shown again."""
    worker = pytest.importorskip("distributed.worker")
    with open(worker.__file__, encoding="utf-8") as file:
        assert "Failed to communicate with scheduler during heartbeat." in file.read()
