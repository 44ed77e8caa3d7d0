"""A static site: Explore and Compare as files that any web server serves, without Python."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from densembed.data import Dataset
from densembed.files import replace_file
from densembed.runs.gallery import DESCRIPTIONS, Entry
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.web.modules import FOLDER, import_map

EXAMPLES = 20
"""Test images per class in a site."""


def write_site(folder: Path, entries: Sequence[Entry], dataset: Dataset) -> list[Path]:
    """Write a site, and return its files: one page, and a script per checkpoint.

    A checkpoint is in a script, in base 64, because browsers let a page from `file:` load scripts
    but no data.

    Args:
        folder: is created if it does not exist.
        entries: the checkpoints. The first one is shown first.
        dataset: whose first test images are examples.
    """
    for entry in entries:  # before the first file is written
        if plugins := Checkpoint.open(entry.path).header.plugins:
            raise CheckpointError(
                f"{printable(entry.path.name)} needs the plugin {plugins[0]}, which a browser "
                "cannot run: leave it out."
            )
    folder.mkdir(parents=True, exist_ok=True)
    models, files = {}, []
    for entry in entries:
        script = f"{entry.key}.js"
        content = base64.b64encode(entry.path.read_bytes()).decode()
        name, value = json.dumps(entry.key), json.dumps(content)
        files.append(folder / script)
        replace_file(files[-1], f"(globalThis.checkpoints ??= {{}})[{name}] = {value};\n".encode())
        story = DESCRIPTIONS.get(entry.key, "")
        models[entry.key] = {"title": entry.title, "story": story, "script": quote(script)}
    files.insert(0, folder / "index.html")
    replace_file(files[0], html_page(models, dataset).encode())
    return files


def html_page(models: Mapping[str, Mapping[str, Any]], dataset: Dataset) -> str:
    """The page of a site, with all modules, parts and examples in it."""
    template = (FOLDER / "app/site.html").read_text("utf-8")
    contents = {
        "STYLE": (FOLDER / "app/site.css").read_text("utf-8"),
        "IMPORTS": json.dumps({"imports": import_map()}),
        # In this form no text can end the element in which it is.
        "SITE": json.dumps({"models": models, "samples": samples(dataset)}).replace("<", "\\u003c"),
    }
    return re.sub("|".join(contents), lambda found: contents[found[0]], template)


def samples(dataset: Dataset, most: int = EXAMPLES) -> dict[str, Any]:
    """The first test images of each class, for the browser."""
    labels = dataset.test.labels
    chosen = [(labels == k).nonzero()[:most, 0] for k in range(len(dataset.classes))]
    images = dataset.test.images[torch.cat(chosen)]
    return {
        "title": printable(dataset.title),
        "classes": dataset.classes,
        "shape": dataset.input_shape,
        "counts": [len(indices) for indices in chosen],
        "images": base64.b64encode(images.contiguous().numpy().tobytes()).decode(),
    }
