"""Where the app, the checkpoints that ship and the user's runs are."""

import os
from pathlib import Path

import platformdirs

from densembed.files import in_home
from densembed.text import closest, quoted

PACKAGE = Path(__file__).parent
SUFFIX = ".safetensors"


def app_folder() -> Path:
    """The folder of app.py, pages and checkpoints: in the installed package, or the clone."""
    installed = PACKAGE / "app"
    return installed if (installed / "app.py").is_file() else PACKAGE.parent


def gallery_folder() -> Path:
    """The folder `DENSEMBED_GALLERY`, by default the checkpoints that ship."""
    if folder := os.environ.get("DENSEMBED_GALLERY"):
        return in_home(folder).absolute()
    return app_folder() / "checkpoints/paper"


def runs_folder() -> Path:
    """The folder `DENSEMBED_RUNS`, by default checkpoints/runs of a clone.

    For an installed package, the default is a folder among the user's data.
    """
    if folder := os.environ.get("DENSEMBED_RUNS"):
        return in_home(folder).absolute()
    if app_folder() == PACKAGE.parent:
        return app_folder() / "checkpoints/runs"
    return platformdirs.user_data_path("densembed", appauthor=False) / "runs"


def unknown_model(text: str) -> str:
    """What is wrong with a misspelt name of an included model, or ""."""
    path = checkpoint_path(text)
    included = (file.stem for file in gallery_folder().glob(f"*{SUFFIX}"))
    if path.name == text and not os.path.lexists(path) and (meant := closest(text, included)):
        return f"{quoted(text)} is neither a file nor an included model (did you mean {meant!r}?)"
    return ""


def checkpoint_path(text: str) -> Path:
    """The path of a file, or of a checkpoint that ships, by its name without suffix.

    A file of that name in the working directory comes first.
    """
    path = in_home(text)
    shipped = gallery_folder() / f"{text}{SUFFIX}"
    # The functions of os.path take any text, also one that is too long for a file name.
    by_name = path.name == text and not os.path.isfile(path) and os.path.isfile(shipped)
    return shipped if by_name else path
