"""Names of data sets, known without torch; `sources` loads them."""

from densembed.text import unknown

NAMES = ("digits", "mnist", "fashion-mnist", "cifar10", "mnist1d")
"""The names of the built-in data sets, the keys of `sources.DATASETS`."""
SIGNALS = ("mnist1d",)
"""Those of signals; the others are of images."""
MAX_CLASSES = 1000
MAX_NAME = 200
"""Characters in the name of a class."""
PREFIX, TABLE = "folder:", "csv:"
"""Begin the names of a folder of images, and of a table of signals."""


class DataError(RuntimeError):
    """A data set that cannot be loaded. The message is one sentence for the user."""


def is_folder(name: str) -> bool:
    """Whether a name refers to a folder of images. The folder need not exist."""
    return name.startswith(PREFIX)


def is_path(name: str) -> bool:
    """Whether a name refers to files of the user, which need not exist: a folder or a table."""
    return name.startswith((PREFIX, TABLE))


def is_signals(name: str) -> bool:
    """Whether a name refers to signals, which have one axis."""
    return name in SIGNALS or name.startswith(TABLE)


def check_name(name: str) -> None:
    """Raise DataError unless the name is one of `NAMES` or refers to files of the user."""
    if not is_path(name) and name not in NAMES:
        raise DataError(
            f"{unknown('data set', name, NAMES)}; choose from {', '.join(NAMES)}, "
            "folder:PATH for a folder of images with one subfolder per class, or csv:PATH for a "
            "table with one signal per row."
        )
