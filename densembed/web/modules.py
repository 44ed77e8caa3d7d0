"""The JavaScript modules, and what Python and JavaScript share as a module."""

import base64
import json
import re
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from densembed.figures.theme import (
    AFTER,
    AGAINST,
    BEFORE,
    DENSITY_SCALE,
    FOR,
    INK_SCALE,
    SERIES,
    SIGNED_SCALE,
    stops,
)

FOLDER = Path(__file__).parent
PARTS = {
    "pair": ("panel.css", "pair.css"),
    "columns": ("panel.css", "columns.css"),
    "stills": ("panel.css", "stills.css"),
    "draw_pad": ("draw_pad.css",),
    "thumbnails": ("thumbnails.css",),
}
"""Style sheets of the panels that the views show, which have an HTML file of their name."""


def modules(**folders: Path) -> dict[str, str]:
    """The text of each module by the name under which others import it.

    Args:
        folders: further folders of modules, by the first part of their names.
    """
    texts = {
        f"{first}/{file.relative_to(folder).as_posix()}": file.read_text("utf-8")
        for first, folder in {"densembed": FOLDER, **folders}.items()
        for file in sorted(folder.rglob("*.js"))
    }
    return {**texts, "densembed/resources.js": _resources()}


def _resources() -> str:
    """The module `resources.js`, whose types are in resources.d.ts."""
    values: dict[str, Any] = {
        "parts": {name: _part(name, styles) for name, styles in PARTS.items()},
        "style": (FOLDER / "app/app.css").read_text("utf-8"),
        "scales": {
            "density": stops(DENSITY_SCALE),
            "signed": stops(SIGNED_SCALE),
            "ink": stops(INK_SCALE),
        },
        "colours": {
            "before": BEFORE, "after": AFTER, "against": AGAINST, "for": FOR, "series": SERIES,
        },
    }  # fmt: skip
    return "".join(
        f"export const {name} = {json.dumps(value)};\n" for name, value in values.items()
    )


def _part(name: str, styles: tuple[str, ...]) -> dict[str, str]:
    panels = FOLDER / "panels"
    css = "".join((panels / style).read_text("utf-8") for style in styles)
    return {"html": (panels / f"{name}.html").read_text("utf-8"), "css": css}


def import_map() -> dict[str, str]:
    """All modules as URLs that contain them; they import one another by the names of the map."""
    return {
        name: "data:text/javascript;base64,"
        + base64.b64encode(_absolute(name, text).encode()).decode()
        for name, text in modules().items()
    }


def _absolute(name: str, text: str) -> str:
    """A module whose relative imports are names of the import map."""
    folder = name.rpartition("/")[0]
    return re.sub(
        r'(from|import) "(\.[^"]*)"',
        lambda found: f'{found[1]} "{normpath(join(folder, found[2]))}"',
        text,
    )
