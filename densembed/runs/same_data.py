"""The data set that a sweep or an experiment began with, as its results are compared."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from densembed.data import DataError, Dataset
from densembed.files import replace_file
from densembed.text import printable, quoted
from densembed.training.resume import Data


def check_same_data(folder: Path, dataset: Dataset) -> None:
    """Record a data set in a folder of results, or compare it with the recorded one.

    Raises:
        DataError: the data set has changed since, or the record is damaged.
    """
    path, now = folder / f"data-{_key(dataset.name)}.json", Data.of(dataset)
    try:
        before = Data(**json.loads(path.read_bytes()))
        changes = before.changes(now)
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(asdict(now)).encode())
        return
    except (OSError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"The file {quoted(path.name)} in {quoted(folder.name)} is damaged. It records "
            f"{dataset.title} as it was at the first training there. If the data have not changed, "
            "delete the file to continue; otherwise choose another folder for the results."
        ) from error
    if before.digest != now.digest:
        raise DataError(
            f"The data set {dataset.title} has changed since the first training in "
            f"{quoted(folder.name)}: {changes}. Finished trainings were kept: restore the data to "
            "continue, or choose another folder for the results."
        )


def check_same_name(folder: Path, slug: str, name: str, record: bool = False) -> None:
    """Raise DataError if results in a folder are of another data set that is called the same.

    Their files would have the same names.

    Args:
        slug: the data set's part of the names of files.
        name: of the data set, with its path. Its hash is kept, as a path may be private.
        record: whether results of this data set are about to be written.
    """
    path, key = folder / f"name-{slug}.json", _key(name)
    if not path.exists():
        if record:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps(key).encode())
    elif path.read_bytes() != json.dumps(key).encode():
        raise DataError(
            f"The folder {quoted(folder.name)} has results of another data set that is called "
            f"{quoted(slug)}, too. They were kept: choose another folder for the results of "
            f"{printable(name)}, or name the data as before if they are the same."
        )


def _key(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:12]
