"""A static site: Explore and Compare as files that any web server serves, without Python."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from posixpath import join, normpath
from typing import Any

import torch

from densembed.data import Dataset
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
from densembed.files import replace_file
from densembed.runs.gallery import DESCRIPTIONS, Entry
from densembed.text import printable
from densembed.web import FOLDER, modules

EXAMPLES = 20
"""Test images per class in a site."""
PARTS = {
    "pair": ("panel.css", "pair.css"),
    "columns": ("panel.css", "columns.css"),
    "stills": ("panel.css", "stills.css"),
    "draw_pad": ("draw_pad.css",),
    "thumbnails": ("thumbnails.css",),
}
"""Style sheets of the parts, which have an HTML file of their name."""


def write_site(folder: Path, entries: Sequence[Entry], dataset: Dataset) -> list[Path]:
    """Write a site, and return its files: one page, and a script per checkpoint.

    A checkpoint is in a script, in base 64, because browsers let a page from `file:` load scripts
    but no data.

    Args:
        folder: is created if it does not exist.
        entries: the checkpoints. The first one is shown first.
        dataset: whose first test images are examples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models, files = {}, []
    for entry in entries:
        entry.open()  # an error names a file that is no checkpoint
        script = f"{entry.key}.js"
        content = base64.b64encode(entry.path.read_bytes()).decode()
        name, value = json.dumps(entry.key), json.dumps(content)
        files.append(folder / script)
        replace_file(files[-1], f"(globalThis.checkpoints ??= {{}})[{name}] = {value};\n".encode())
        story = DESCRIPTIONS.get(entry.key, "")
        models[entry.key] = {"title": entry.title, "story": story, "script": script}
    files.insert(0, folder / "index.html")
    replace_file(files[0], html_page(models, dataset).encode())
    return files


def html_page(models: Mapping[str, Mapping[str, Any]], dataset: Dataset) -> str:
    """The page of a site, with all modules, parts and examples in it."""
    site = {
        "models": models,
        "samples": samples(dataset),
        "theme": {
            "scales": {
                "density": stops(DENSITY_SCALE),
                "signed": stops(SIGNED_SCALE),
                "ink": stops(INK_SCALE),
            },
            "colours": {
                "before": BEFORE, "after": AFTER, "against": AGAINST, "for": FOR, "series": SERIES,
            },
        },
        "parts": {name: _part(name, styles) for name, styles in PARTS.items()},
    }  # fmt: skip
    template = (FOLDER / "app/site.html").read_text("utf-8")
    contents = {
        "STYLE": (FOLDER / "app/site.css").read_text("utf-8"),
        "IMPORTS": json.dumps({"imports": _imports()}),
        "SITE": _in_script(site),
    }
    return re.sub("|".join(contents), lambda found: contents[found[0]], template)


def _in_script(value: Any) -> str:
    """JSON that cannot end the element in which it is."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _part(name: str, styles: tuple[str, ...]) -> dict[str, str]:
    panels = FOLDER / "panels"
    css = "".join((panels / style).read_text("utf-8") for style in styles)
    return {"html": (panels / f"{name}.html").read_text("utf-8"), "css": css}


def _imports() -> dict[str, str]:
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


def samples(dataset: Dataset) -> dict[str, Any]:
    """The first test images of each class, for the browser."""
    labels = dataset.test.labels
    chosen = [(labels == k).nonzero()[:EXAMPLES, 0] for k in range(len(dataset.classes))]
    images = dataset.test.images[torch.cat(chosen)]
    return {
        "title": printable(dataset.title),
        "classes": dataset.classes,
        "shape": dataset.input_shape,
        "counts": [len(indices) for indices in chosen],
        "images": base64.b64encode(images.contiguous().numpy().tobytes()).decode(),
    }
