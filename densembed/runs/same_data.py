"""The data set that a sweep or an experiment began with, as its results are compared."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from densembed.data import DataError, Dataset
from densembed.files import replace_file
from densembed.text import quoted
from densembed.training.resume import Data


def check_same_data(folder: Path, dataset: Dataset) -> None:
    """Record a data set in a folder of results, or compare it with the recorded one.

    Raises:
        DataError: the data set has changed since, or the record is damaged.
    """
    key = hashlib.sha256(dataset.name.encode(errors="surrogateescape")).hexdigest()[:12]
    path, now = folder / f"data-{key}.json", Data.of(dataset)
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
