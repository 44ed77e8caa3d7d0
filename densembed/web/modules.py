"""The JavaScript modules, and what Python and JavaScript share as a module."""

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
FORCED = (FOLDER / "panels/forced.css").read_text("utf-8")
"""Styles for forced colours, which every document and every shadow root need."""
PARTS = {
    "pair": ("panel.css", "pair.css"),
    "columns": ("panel.css", "columns.css"),
    "chain": ("panel.css", "terms.css", "chain.css"),
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
        "style": FORCED
        + "".join(
            (FOLDER / name).read_text("utf-8") for name in ("panels/terms.css", "app/app.css")
        ),
        "scales": {
            "density": stops(DENSITY_SCALE),
            "signed": stops(SIGNED_SCALE),
            "ink": stops(INK_SCALE),
        },
        "colours": {
            "before": BEFORE,
            "after": AFTER,
            "against": AGAINST,
            "for": FOR,
            "series": SERIES,
        },
    }
    return "".join(
        f"export const {name} = {json.dumps(value)};\n" for name, value in values.items()
    )


def _part(name: str, styles: tuple[str, ...]) -> dict[str, str]:
    panels = FOLDER / "panels"
    css = "".join((panels / style).read_text("utf-8") for style in styles)
    return {"html": (panels / f"{name}.html").read_text("utf-8"), "css": css + FORCED}


def script(**folders: Path) -> str:
    """All modules as one that exports `modules`, their exports by the modules' names.

    One file is loaded several times faster than one per module.

    Args:
        folders: as in `modules`.
    """
    texts = modules(**folders)
    parts: dict[str, str] = {}

    def add(name: str, path: tuple[str, ...] = ()) -> None:
        if name in path:
            raise ValueError(f"Modules import one another: {' > '.join((*path, name))}.")
        if name in parts:
            return
        text, imported = _as_function(name, texts[name])
        for other in imported:
            add(other, (*path, name))
        parts[name] = text  # after what it imports

    for name in texts:
        add(name)
    return "export const modules = {};\n" + "".join(parts.values())


IMPORT = re.compile(r'^(import|export) (?:(\{[^}]*\}) from )?"([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?:(default )|(?=(?:async )?(?:const|class|function) (\w+)))", re.MULTILINE
)


def _as_function(name: str, text: str) -> tuple[str, list[str]]:
    """A statement that sets `modules[name]`, and the names of the modules that it needs."""
    folder = name.rpartition("/")[0]
    imported: list[str] = []
    exported: list[str] = []

    def take(match: re.Match[str]) -> str:
        kind, names, path = match.groups()
        imported.append(normpath(join(folder, path)) if path.startswith(".") else path)
        if kind == "export":
            exported.extend(re.findall(r"\w+(?=\s*[,}])", names))
        taken = names and f"const {names.replace(' as ', ': ')} = "
        return f"{taken or ''}modules[{json.dumps(imported[-1])}];"

    def give(match: re.Match[str]) -> str:
        exported.append("default: module" if match[1] else match[2])
        return "const module = " if match[1] else ""

    text = EXPORT.sub(give, IMPORT.sub(take, text))
    if other := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
        raise ValueError(f"{name} has an import or export of another form: {other[0]}")
    last = f"return {{ {', '.join(exported)} }};"
    return f"modules[{json.dumps(name)}] = (() => {{\n{text}\n{last}\n}})();\n", imported
