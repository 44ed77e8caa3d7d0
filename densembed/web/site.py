"""A static site: Explore and Compare as files that any web server serves, without Python."""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

import torch
from torch import Tensor

from densembed.data import Dataset, is_signals, load_dataset
from densembed.files import replace_file
from densembed.runs.gallery import DESCRIPTIONS, Entry, one_line
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError, Header
from densembed.web.modules import FOLDER, script

EXAMPLES = 20
"""Test images per class in a site."""
INPUT = (
    *("from", "class", "example", "shuffle", "ink", "to", "between"),
    *("right", "down", "size", "turn", "blur", "noise"),
)
"""Parameters of the input, which Explore and Compare share."""


SCRIPT = "(globalThis.checkpoints ??= {})"
MARKS = (b'<script type="application/json" id="site">', SCRIPT.encode())
"""Parts of every page and script of a site, by which `is_foreign` recognises them."""
EXPORT = {("more", "export"), ("open", "export")}
"""A detail that these pages do not have, as the app's own page shows it."""
BUILT_IN = ("digits", "mnist1d")
"""Data sets that a page with one view has examples of: no file of a person goes with it."""


def write_site(folder: Path, entries: Sequence[Entry], datasets: Sequence[Dataset]) -> list[Path]:
    """Write a site, and return its files: one page, and a script per checkpoint.

    A checkpoint is in a script, in base 64, because browsers let a page from `file:` load scripts
    but no data.

    Args:
        folder: is created if it does not exist. Scripts of an earlier site in it are removed.
        entries: the checkpoints. The first one is shown first.
        datasets: whose first test images and signals are examples, one of each shape.
    """
    for entry in entries:  # before the first file is written
        _check(printable(entry.path.name), Checkpoint.open(entry.path))
    folder.mkdir(parents=True, exist_ok=True)
    models, files = {}, site_files(folder, entries)
    for entry, file in zip(entries, files[1:], strict=True):
        checkpoint = Checkpoint.open(entry.path)
        public = checkpoint.without_path()
        # The bytes of `to_bytes` are not the same each time.
        content = entry.path.read_bytes() if public is checkpoint else public.to_bytes()
        replace_file(file, _script(entry.key, content).encode())
        story = DESCRIPTIONS.get(entry.key, "")
        models[entry.key] = _stated(checkpoint.header, entry.title, story, quote(file.name))
    replace_file(files[0], html_page(models, map(samples, datasets)).encode())
    for file in set(folder.glob("*.js")) - set(files):
        if file.read_bytes().startswith(SCRIPT.encode()):
            file.unlink()  # of an earlier site, which would be published with this one
    return files


def site_files(folder: Path, entries: Iterable[Entry]) -> list[Path]:
    """The files of a site: its page, and the script of each checkpoint."""
    return [folder / "index.html", *(folder / f"{entry.key}.js" for entry in entries)]


def is_foreign(file: Path) -> bool:
    """Whether a file exists that is neither a page nor a script of a site."""
    if not file.is_file():
        return False
    content = file.read_bytes()
    return not any(mark in content for mark in MARKS)


def _check(name: str, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError for a network that JavaScript cannot compute."""
    if plugins := checkpoint.header.plugins:
        raise CheckpointError(
            f"{name} needs the plugin {plugins[0]}, which a browser cannot run, so that it cannot "
            "be part of a page."
        )


def view_page(
    checkpoints: Mapping[str, Checkpoint],
    pixels: Tensor,
    parameters: Mapping[str, str],
    view: str = "explore",
    examples: int = EXAMPLES,
    titles: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """One view as a single page, which contains its checkpoints and its input.

    Args:
        checkpoints: by their keys in links.
        pixels: the input (C, H, W) uint8, or a signal (C, L) as scaled by the first checkpoint.
        parameters: of the view's link.
        view: "explore" or "compare".
        examples: test inputs per class of the built-in data sets to choose from.
        titles: of the checkpoints by their keys; without one, model, data set and error.
    """
    for key, checkpoint in checkpoints.items():
        _check(key, checkpoint)
    models = {
        key: _stated(checkpoint.header, titles.get(key) or one_line(checkpoint.header))
        for key, checkpoint in checkpoints.items()
    }
    scripts = "".join(
        f"<script>{_script(key, checkpoint.without_path().to_bytes())}</script>\n"
        for key, checkpoint in checkpoints.items()
    )
    shown = {
        key: value
        for key, value in parameters.items()
        if key not in INPUT and (key, value) not in EXPORT
    }
    headers = [checkpoint.header for checkpoint in checkpoints.values()]
    scaling = headers[0].scaling
    values = scaling.measured(pixels.double()).float() if scaling else pixels
    return html_page(
        models,
        [samples(dataset, examples) for dataset in _built_in(headers)],
        scripts,
        link=f"{view}?{urlencode({**shown, 'from': 'upload'})}",
        **{"signal" if scaling else "upload": _text(values)},
    )


def _stated(header: Header, title: str, story: str = "", script: str | None = None) -> dict:
    """What a page says of a model before it is loaded."""
    return {
        "title": title,
        "story": story,
        "script": script,
        "classes": header.classes,
        "shape": header.input_shape,
    }


def _built_in(headers: Sequence[Header]) -> list[Dataset]:
    """The built-in data sets whose images or signals are inputs of models."""
    kinds = {header.scaling is not None for header in headers}
    sets = [load_dataset(name) for name in BUILT_IN if is_signals(name) in kinds]
    shapes = {header.input_shape for header in headers}
    return [dataset for dataset in sets if dataset.input_shape in shapes]


def _text(values: Tensor) -> str:
    """The bytes of a tensor in base 64."""
    return base64.b64encode(values.contiguous().numpy().tobytes()).decode()


def html_page(
    models: Mapping[str, Mapping[str, Any]],
    examples: Iterable[Mapping[str, Any]],
    scripts: str = "",
    **more: str,
) -> str:
    """The page of a site, with all modules, parts and examples in it.

    Args:
        examples: the test images to choose from, as `samples` returns them.
        scripts: HTML of further scripts.
        more: `link`, where the page opens without a link of its own, and `upload`, a picture, or
            `signal`.
    """
    template = (FOLDER / "app/site.html").read_text("utf-8")
    site = {"models": models, "samples": list(examples), "inputs": INPUT, **more}
    contents = {
        "STYLE": (FOLDER / "app/site.css").read_text("utf-8"),
        "MODULES": script().replace("</script", "<\\/script"),
        "SITE": _in_script(site),
        "SCRIPTS": scripts,
    }
    return re.sub("|".join(contents), lambda match: contents[match[0]], template)


def _in_script(value: Any) -> str:
    """JSON in which no text can end the element that it is in."""
    return json.dumps(value).replace("<", "\\u003c")


def _script(key: str, content: bytes) -> str:
    """A script that sets the content of a checkpoint."""
    name, value = _in_script(key), json.dumps(base64.b64encode(content).decode())
    return f"{SCRIPT}[{name}] = {value};"


def samples(dataset: Dataset, most: int = EXAMPLES) -> dict[str, Any]:
    """The first test images or signals of each class, for the browser."""
    labels = dataset.test.labels
    chosen = [(labels == k).nonzero()[:most, 0] for k in range(len(dataset.classes))]
    images = dataset.test.images
    more: dict[str, Any] = {}
    if dataset.scaling:
        images = dataset.scaling.measured(images.double()).float()
        more["range"] = [float(images.min()), float(images.max())]
    return {
        "title": printable(dataset.title),
        "classes": dataset.classes,
        "shape": dataset.input_shape,
        "counts": [len(indices) for indices in chosen],
        "images": _text(images[torch.cat(chosen)]),
        **more,
    }
