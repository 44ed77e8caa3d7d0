"""Fetching a data set once, whatever a mirror does and however many runs ask at the same time."""

from collections.abc import Callable
from pathlib import Path

import filelock

from densembed.data.dataset import DataError

ELSEWHERE = (
    "under a folder and name it with --data-dir or DENSEMBED_DATA; meanwhile the embedded data "
    "set 'digits' needs no download."
)


def advice(files: str) -> str:
    """What a person can do about files that are missing or damaged."""
    return f"Check the network, or put {files} {ELSEWHERE}"


def download(title: str, lock: Path, fetch: Callable[[], object], files: str) -> None:
    """Call `fetch` while holding the lock: two runs must not write the same archive at once.

    Raises DataError with one sentence for whatever goes wrong.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(lock):
            fetch()
    except Exception as error:  # whatever a mirror does: refuse, time out, answer with a page
        raise DataError(f"{title} could not be downloaded. {advice(files)}") from error
