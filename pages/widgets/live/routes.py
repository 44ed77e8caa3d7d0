"""Files that the views load: checkpoints and test images."""

import hashlib
import json
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from densembed.data import (
    DATASETS,
    DataError,
    Dataset,
    is_available,
    is_folder,
    load_dataset,
)
from densembed.runs import gallery
from densembed.training.header import CheckpointError
from pages.widgets.inputs.checkpoints import DELETED, usual_choice
from pages.widgets.inputs.test_images import test_images, usual_class
from pages.widgets.live import networks

NO_SAMPLES = {
    "none": "No test images for this model are available. Upload a picture instead.",
    "no-signals": "No test signals for this model are available.",
}
"""Why a model has no test images, by what its address has in place of a data set."""
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def routes(base: str) -> list[Route]:
    """The routes below the path of the app."""
    return [
        Route(f"{base}/checkpoints/{{key}}.safetensors", _checkpoint),
        Route(f"{base}/samples/of-model/{{key}}", _samples_of_model),
        Route(f"{base}/samples/of-data/{{name}}", _samples_of_data),
        *networks.routes(base),
    ]


def urls_of(key: str, version: int, base: str) -> dict[str, str]:
    """Where the browser finds a checkpoint and its test images."""
    # The browser keeps test images by their URL, which therefore changes after a download.
    available = "+".join(name for name in DATASETS if is_available(name))
    return {
        "url": f"{base}/checkpoints/{key}.safetensors?{version}",
        "samples": f"{base}/samples/of-model/{key}?{version}+{available}",
    }


def early(query: Mapping[str, str], base: str) -> dict[str, str]:
    """What the browser can load for Explore before the page's script has run; may be empty."""
    shown = {entry.key: entry for entry in gallery.shipped()}
    key = query.get("model", "")
    if not key and query.get("from", "samples").lower() != "samples":
        return {}  # another model may be better at these
    key = key if key in shown or not shown else usual_choice(shown)
    try:
        return urls_of(key, shown[key].path.stat().st_mtime_ns, base) | {
            "label": query.get("class", "")
        }
    except (KeyError, OSError):
        return {}


def _checkpoint(request: Request) -> Response:
    """The file of a checkpoint in the gallery or of a run. The URL contains its version."""
    entry = gallery.find(request.path_params["key"])
    if entry is None or not entry.path.is_file():
        return _missing(DELETED)
    return FileResponse(entry.path, headers=FOREVER, media_type="application/octet-stream")


def _samples_of_model(request: Request) -> Response:
    """The test images for a checkpoint in the gallery or of a run."""
    entry = gallery.find(request.path_params["key"])
    if entry is None:
        return _missing(DELETED)
    try:
        checkpoint = entry.open()
    except CheckpointError as error:
        return _no_samples(str(error), request)
    if dataset := test_images(checkpoint):
        return _samples(dataset, request)
    title = checkpoint.header.provenance.dataset_title
    if checkpoint.header.scaling:
        return _no_samples(
            f"The table “{title}”, on which the model was trained, was not found or has changed, "
            "so there are no test signals. Restore the table.",
            request,
        )
    return _no_samples(
        f"The folder “{title}”, on which the model was trained, was not found or has changed, so "
        "there are no test images. Restore the folder, or upload a picture."
        if is_folder(checkpoint.config.dataset)
        else f"No test images of {title} for this model are available. Upload a picture instead.",
        request,
    )


def _samples_of_data(request: Request) -> Response:
    """The test images of a data set with a name of its own, never of a folder."""
    name = request.path_params["name"]
    if name not in DATASETS and name not in NO_SAMPLES:
        return _missing("There are no such data.")
    if name in NO_SAMPLES or not is_available(name):
        return _no_samples(NO_SAMPLES.get(name, NO_SAMPLES["none"]), request)
    try:
        return _samples(load_dataset(name), request)
    except DataError as error:
        return _no_samples(str(error), request)


def _samples(dataset: Dataset, request: Request) -> Response:
    """What the images are, or the images of one class: bytes, or measured values of signals.

    A class is named by its number, or by its name, so that the browser can ask for it before it
    knows what the images are; with an empty name it is the class that a view shows first.
    """
    labels, images = dataset.test.labels, dataset.test.images
    if dataset.scaling:
        images = dataset.scaling.measured(images.double()).float()
    counts = [int((labels == k).sum()) for k in range(len(dataset.classes))]
    if not {"label", "class"} & request.query_params.keys():
        facts = {
            # Models with the same images share them in the browser.
            "of": hashlib.sha256(dataset.name.encode()).hexdigest()[:16],
            "title": dataset.title,
            "classes": dataset.classes,
            "shape": dataset.input_shape,
            "counts": counts,
        }
        if dataset.scaling:
            facts["range"] = [float(images.min()), float(images.max())]
        return Response(json.dumps(facts), media_type="application/json")
    if "label" in request.query_params:
        wanted = {str(label): label for label in range(len(counts))}
    else:
        wanted = {name: label for label, name in enumerate(dataset.classes)}
        wanted[""] = dataset.classes.index(usual_class(dataset))
    label = wanted.get(request.query_params.get("label", request.query_params.get("class", "")))
    if label is None and "label" not in request.query_params:
        return Response(status_code=204)  # the class in a link, which the view reports
    if label is None:
        return _missing("There is no such class.")
    content = images[labels == label].numpy().tobytes()
    return Response(content, media_type="application/octet-stream")


def _no_samples(sentence: str, request: Request) -> Response:
    """Why a model has no test images. This is no error, which browsers write to their console."""
    if {"label", "class"} & request.query_params.keys():
        return Response(status_code=204)
    return JSONResponse({"missing": sentence})


def _missing(sentence: str) -> Response:
    return Response(sentence, 404, media_type="text/plain")
