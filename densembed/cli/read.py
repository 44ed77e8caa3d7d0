"""The command read: predictions for image files."""

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from torch import nn

from densembed.cli.common import Command, UsageError, as_path
from densembed.data import as_input, is_outside
from densembed.data.images import Content, ImageError, read_picture
from densembed.fields.field import logits
from densembed.fields.novelty import unlike_training
from densembed.files import check_regular
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint

KEYS = ("file", "label", "seen", "class", "probability", "unlike", "error")
"""Keys of each object that `--json` prints."""
UNREADABLE = "nothing"
"""Value of `seen` for a file that cannot be decoded; other files have a value of `Content`."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_path)
    parser.add_argument("image", type=as_path, nargs="+")
    parser.add_argument(
        "--labels", type=as_path, help="tab-separated table with the columns file and digit"
    )
    parser.add_argument(
        "--data-dir",
        type=as_path,
        help="folder with the training data; if they are available, images that are unlike the "
        "training images are marked",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help=f"print one object per image: file, label, seen ({', '.join(Content)}, "
        f"{UNREADABLE}), class, probability, unlike (true, false; null: unknown), error",
    )


def _run(options: argparse.Namespace) -> int:
    checkpoint = Checkpoint.open(options.checkpoint)
    if is_outside(checkpoint.config.dataset, options.data_dir):
        checkpoint = checkpoint.without_data()
    model = checkpoint.model()
    labels = _read_labels(options.labels) if options.labels else {}
    results = [
        _predict(checkpoint, model, path, labels, options.data_dir) for path in options.image
    ]
    status = 2 if any(result["error"] for result in results) else 0
    if options.json:
        print(json.dumps(results, indent=1, ensure_ascii=False))
        return status
    for result in results:
        print(_line(result), file=sys.stderr if result["error"] else sys.stdout)
    labelled = [result for result in results if result["label"]]
    if labelled:
        correct = sum(result["class"] == result["label"] for result in labelled)
        print(f"{correct} of {len(labelled)} correct")
    return status


def _predict(
    checkpoint: Checkpoint,
    model: nn.Module,
    path: Path,
    labels: dict[str, str],
    data_dir: Path | None,
) -> dict[str, Any]:
    """The object that `--json` prints for an image, with None for missing values."""
    name = printable(path.name)
    result: dict[str, Any] = dict.fromkeys(KEYS)
    result |= {"file": name, "label": labels.get(name)}
    try:
        image = read_picture(path, checkpoint.header.input_shape, checkpoint.reads_digits)
    except ImageError as error:
        return result | {"seen": UNREADABLE, "error": str(error)}
    result["seen"] = image.content
    if image.has_ink:
        probabilities = logits(model, as_input(image.pixels[None]))[0].softmax(0)
        best = int(probabilities.argmax())
        result["class"] = checkpoint.header.classes[best]
        result["probability"] = round(probabilities[best].item(), 4)
        result["unlike"] = unlike_training(image, checkpoint, data_dir)
    return result


def _line(result: dict[str, Any]) -> str:
    if result["error"]:
        return f"{result['file']}: {result['error']}"
    if result["class"] is None:
        return f"{result['file']}: no digit found"
    text = f"{result['file']}: {result['class']}  {result['probability']:.2f}"
    if result["seen"] == Content.SEVERAL_DIGITS:
        text += "  (several digits)"
    elif result["unlike"]:
        text += "  (unlike the training images)"
    if result["label"] not in (None, result["class"]):
        text += f"  (label: {result['label']})"
    return text


def _read_labels(path: Path) -> dict[str, str]:
    """The label of each file. A dash or an empty cell stands for an unknown label."""
    try:
        check_regular(path)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(path.name)} is not UTF-8 text.") from error
    with io.StringIO(text, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        if not {"file", "digit"} <= set(rows.fieldnames or ()):
            raise UsageError(
                f"{printable(path.name)} needs the columns file and digit, separated by tabs."
            )
        return {row["file"]: row["digit"] for row in rows if row["digit"] not in (None, "", "-")}


READ = Command(
    name="read",
    text="predict the digits in image files",
    add_arguments=_add_arguments,
    run=_run,
    examples=(
        "read a.safetensors photo.jpg scan.png",
        "read a.safetensors *.png --labels labels.tsv --json",
    ),
    several_files=True,
)
