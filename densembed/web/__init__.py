"""What runs in the browser: ES modules for the pages of the app and for static sites."""

from pathlib import Path

FOLDER = Path(__file__).parent


def modules(**folders: Path) -> dict[str, str]:
    """The text of each module by the name under which others import it.

    Args:
        folders: further folders of modules, by the first part of their names.
    """
    return {
        f"{first}/{file.relative_to(folder).as_posix()}": file.read_text("utf-8")
        for first, folder in {"densembed": FOLDER, **folders}.items()
        for file in sorted(folder.rglob("*.js"))
    }
