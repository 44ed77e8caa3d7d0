"""Files that the views load: checkpoints and test images."""

import json

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from densembed.data import DATASETS, DataError, Dataset, is_available, is_folder, load_dataset
from densembed.runs import gallery
from densembed.training.checkpoint import CheckpointError
from pages.widgets.inputs.checkpoints import DELETED
from pages.widgets.inputs.test_images import test_images

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def routes(base: str) -> list[Route]:
    """The routes below the path of the app."""
    return [
        Route(f"{base}/checkpoints/{{key}}.safetensors", _checkpoint),
        Route(f"{base}/samples/of-model/{{key}}", _samples_of_model),
        Route(f"{base}/samples/of-data/{{name}}", _samples_of_data),
    ]


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
        return _missing(str(error))
    if dataset := test_images(checkpoint):
        return _samples(dataset, request)
    title = checkpoint.header.provenance.dataset_title
    return _missing(
        f"The folder “{title}”, on which the model was trained, was not found or has changed, so "
        "there are no test images. Restore the folder, or upload a picture."
        if is_folder(checkpoint.config.dataset)
        else f"No test images of {title} for this model are available. Upload a picture instead."
    )


def _samples_of_data(request: Request) -> Response:
    """The test images of a data set with a name of its own, never of a folder."""
    name = request.path_params["name"]
    if name not in DATASETS or not is_available(name):
        return _missing("No test images for this model are available. Upload a picture instead.")
    try:
        return _samples(load_dataset(name), request)
    except DataError as error:
        return _missing(str(error))


def _samples(dataset: Dataset, request: Request) -> Response:
    """What the images are, or the images of one class."""
    labels = dataset.test.labels
    counts = [int((labels == k).sum()) for k in range(len(dataset.classes))]
    if "label" not in request.query_params:
        facts = {
            "title": dataset.title, "classes": dataset.classes, "shape": dataset.input_shape,
            "counts": counts,
        }  # fmt: skip
        return Response(json.dumps(facts), media_type="application/json")
    classes = {str(label): label for label in range(len(counts))}
    label = classes.get(request.query_params["label"])
    if label is None:
        return _missing("There is no such class.")
    images = dataset.test.images[labels == label]
    return Response(images.contiguous().numpy().tobytes(), media_type="application/octet-stream")


def _missing(sentence: str) -> Response:
    return Response(sentence, 404, media_type="text/plain")
